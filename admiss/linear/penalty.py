"""The penalty of the columns (Section 2.4 of the paper), and the units in which programs are solved.

    sum_k lambda_k [ alpha |w_k| + (1 - alpha) w_k^2 / 2 ]
        =  lambda sum_k [ alpha u1_k |w_k| + (1 - alpha) u2_k w_k^2 / 2 ]

``"count"``    lambda_k = c_k f_k lambda / n_k, with n_k the weight of the rows in which x_j is observed and phi_k(m) is
               not 0: a column that is 0 on most rows is penalised more. It depends on M only.
               u1_k = u2_k = c_k f_k / n_k.
``"authors"``  the weights of the authors' code: columns are standardised, and lambda_k = (1 + c_k z_k) f_k lambda / S
               with z_k the share of rows in which the column is 0, up to rounding. In the units of column k, whose
               standard deviation is t_k, that is u1_k = t_k (1 + c_k z_k) f_k / S and u2_k = t_k u1_k.

c_k is 1 for columns whose basis function is 1, and ``adaptive_penalty`` for others; f_k are the penalty factors of the
class, mostly 1. Free columns have no penalty.

With ``adaptive_penalty="auto"`` c_k is 1 for intercepts, and 8 K_j for the K_j columns by which w_j departs from a
constant weight of feature j: affine weights have d + 1 times as many columns as a static model, and their penalty grows
with that number. In a class without constant weights, or with penalty factors of its own, all c_k are 1.

*Units.* Programs are solved with y and columns of unit size, divided by powers of two: not a digit of the data changes.
With y = u y', w = u w' and  l(u y', u z') = c l'(y', z'),  the penalties of w' are  l1' = l1 u / c  and
l2' = l2 u^2 / c. A penalty above 1e40 in these units makes a coefficient 0. The solvers see 1e40, whose bound holds for
the larger one.
"""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from admiss.estimator.scaling import power_of_two
from admiss.linear.design import Design
from formulations.arrays import BoolArray, FloatArray
from formulations.certificate import clock
from formulations.losses import Loss

PENALTY_WEIGHTS = ("count", "authors")
AUTO = "auto"
# The penalty of a column by which a weight departs from a constant is this times their number.
PENALTY_OF_DEPARTURES = 8.0
# A column is 0 below these shares of the deviation and of the centre of its feature: the accuracy of the centre.
ZERO_OF_SPREAD, ZERO_OF_CENTRE = 2.0**-35, 2.0**-42
# A penalty that makes a coefficient 0, in units of columns and y of size 1.
OVERWHELMING = 1e40
# Smaller ones than this are refused: the inverse of two of them, squared, would leave the range of floating point.
SMALLEST_PENALTY = 1e-75
# The path to a single fit starts at this multiple of its penalty at most.
LARGEST_MULTIPLE = 1e15

# u1 and u2 of the columns, the penalties for lambda = 1, for each adaptive penalty.
UnitPenalties = list[tuple[FloatArray, FloatArray]]


@dataclass(frozen=True)
class Penalty:
    """sum_k a1 u1_k |w_k| + a2 u2_k w_k^2 / 2, with a1 = alpha lambda and a2 = (1 - alpha) lambda."""

    a1: float
    a2: float
    u1: FloatArray
    u2: FloatArray

    @property
    def l1(self) -> FloatArray:
        """Weight of |w_k|."""
        with np.errstate(over="ignore"):
            return self.a1 * self.u1

    @property
    def l2(self) -> FloatArray:
        """Weight of w_k^2 / 2."""
        with np.errstate(over="ignore"):
            return self.a2 * self.u2

    @property
    def is_positive(self) -> bool:
        """Whether any column has a penalty."""
        return bool(np.any(self.l1) or np.any(self.l2))

    def in_units(self, change: FloatArray) -> "Penalty":
        """The same penalty for columns divided, and coefficients multiplied, by ``change``."""
        with np.errstate(over="ignore"):
            return Penalty(self.a1, self.a2, self.u1 / change, self.u2 / change**2)

    def for_target(self, unit: float, factor: float) -> "Penalty":
        """The same penalty for coefficients divided by ``unit``, next to a risk divided by ``factor``."""
        with np.errstate(over="ignore"):
            return Penalty(self.a1, self.a2, self.u1 * (unit / factor), self.u2 * (unit**2 / factor))

    def at_most(self, largest: float) -> "Penalty":
        """The penalty with weights up to ``largest``."""
        return Penalty(1.0, 1.0, np.minimum(self.l1, largest), np.minimum(self.l2, largest))


@dataclass(frozen=True)
class UnitProgram:
    """The program of a fit in the units of the module.

    Attributes
    ----------
    design : Design
        The columns, divided by ``change``, an array of shape (p,).
    penalty : Penalty
        Of their coefficients.
    overwhelmed : bool array of shape (p,)
        Whether the penalty makes a coefficient 0.
    loss : Loss
    unit, factor : float
        u and c.
    start : float
        When the solve began, a time of ``clock``.
    """

    design: Design
    change: FloatArray
    penalty: Penalty
    overwhelmed: BoolArray
    loss: Loss
    unit: float
    factor: float
    start: float

    @classmethod
    def of(cls, design: Design, penalty: Penalty, loss: Loss, largest_target: float) -> "UnitProgram":
        """The program of a fit, given the largest |y_i|."""
        start = clock()
        unit = float(power_of_two(np.array(largest_target))) if loss.of_residual else 1.0
        own_loss, factor = loss.in_units(unit)
        scaled, change = design.in_powers_of_two()
        stated = penalty.for_target(unit, factor).in_units(change)
        overwhelmed = np.maximum(stated.l1, stated.l2) >= OVERWHELMING
        if not design.adaptivity.has_structure():
            stated = stated.at_most(OVERWHELMING)
        return cls(scaled, change, stated, overwhelmed, own_loss, unit, factor, start)

    def restored(self, w: FloatArray) -> FloatArray:
        """Coefficients in the user's units."""
        return w / self.design.column_scale * self.unit


def penalty_weights(
    design: Design,
    X: FloatArray | None,
    sample_weight: FloatArray | None,
    *,
    kind: str,
    adaptive_penalty: float | str,
    standardise: bool,
) -> tuple[FloatArray, FloatArray]:
    """u1 and u2 of each column of the design; rows and ``standardise`` matter only for the authors' weights."""
    multiplier = _multipliers(design, adaptive_penalty)
    if kind == "count":
        u1 = u2 = multiplier * design.factors / np.where(design.counts > 0, design.counts, 1.0)
    elif X is None or sample_weight is None:
        raise ValueError("penalty_weights='authors' needs the rows, not only their statistics: use 'count'.")
    else:
        zero_share, deviation = _column_statistics(design, X, sample_weight)
        size = deviation if standardise else np.ones_like(deviation)
        u1 = size * (1.0 + multiplier * zero_share) * design.factors / sample_weight.sum()
        u2 = size * u1
    return np.where(design.free, 0.0, u1), np.where(design.free, 0.0, u2)


def _multipliers(design: Design, adaptive_penalty: float | str) -> FloatArray:
    """c_k of each column."""
    if adaptive_penalty != AUTO:
        return np.where(design.adaptive, float(adaptive_penalty), 1.0)
    if design.has_factors:
        return np.ones(len(design.pairs))
    feature, size = design.pairs[:, 0], len(design.features) + 1
    departures = np.bincount(feature[design.adaptive], minlength=size)[feature]
    is_constant = np.bincount(feature[~design.adaptive], minlength=size)[feature] > 0
    return np.where(design.adaptive & (feature > 0) & is_constant, PENALTY_OF_DEPARTURES * departures, 1.0)


def _column_statistics(design: Design, X: FloatArray, s: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Weighted share of zeros, up to the accuracy of the centre, and standard deviation of each column."""
    accuracy = np.maximum(ZERO_OF_SPREAD * design.spread, ZERO_OF_CENTRE * np.abs(design.centre))
    q, zero = s / s.sum(), np.append(ZERO_OF_SPREAD, accuracy)[design.pairs[:, 0]] / design.column_scale
    not_zero, mean, square = np.zeros((3, len(design.pairs)))
    shift: FloatArray | None = None  # near the data, so that no digits are lost
    for rows, A in design.blocks(X):
        if isinstance(A, np.ndarray):
            is_used = np.abs(A) > zero
        else:
            is_used = sp.csr_array((np.abs(A.data) > zero[A.indices], A.indices, A.indptr), shape=A.shape)
        not_zero += is_used.T @ q[rows]
        if isinstance(A, np.ndarray):
            shift = q[rows] @ A / q[rows].sum() if shift is None else shift
            A = A - shift
        mean += A.T @ q[rows]
        square += (A**2 if isinstance(A, np.ndarray) else A.multiply(A)).T @ q[rows]
    return 1.0 - not_zero, np.sqrt(np.maximum(square - mean**2, 0.0))


def lambdas_to_one(gradient: FloatArray, l1: FloatArray, steps_per_decade: int) -> FloatArray:
    """Multiples of the penalty that lead to 1 from the one at which all coefficients are 0."""
    with np.errstate(over="ignore"):
        largest = min(float(np.max(gradient / l1)), LARGEST_MULTIPLE) if len(l1) and np.all(l1 > 0) else 1.0
    steps = int(np.ceil(steps_per_decade * np.log10(largest))) if largest > 1.0 else 0
    return np.geomspace(largest, 1.0, steps + 1) if steps else np.ones(1)
