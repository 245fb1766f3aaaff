"""The weights of the penalty, one per column (Section 2.4 of the paper).

    sum_k lambda_k [ alpha |w_k| + (1 - alpha) w_k^2 / 2 ]
        =  lambda sum_k [ alpha u1_k |w_k| + (1 - alpha) u2_k w_k^2 / 2 ]

``"count"``    lambda_k = c_k lambda / n_k, with n_k the weight of the rows in which x_j is observed and phi_k(m) is
               not 0: a column that is 0 on most rows is penalised more. It depends on M only. u1_k = u2_k = c_k / n_k.
``"authors"``  the weights of the authors' code: columns are standardised, and lambda_k = (1 + c_k z_k) lambda / S with
               z_k the share of rows in which the column is 0. In the units of column k, whose standard deviation is
               t_k, that is u1_k = t_k (1 + c_k z_k) / S and u2_k = t_k u1_k.

c_k is ``adaptive_penalty`` for columns whose basis function is not 1, and 1 for others. Free columns have no penalty.
"""

from dataclasses import dataclass

import numpy as np

from admiss.linear.design import Design
from formulations.arrays import FloatArray

PENALTY_WEIGHTS = ("count", "authors")


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
        return self.a1 * self.u1

    @property
    def l2(self) -> FloatArray:
        """Weight of w_k^2 / 2."""
        return self.a2 * self.u2

    def in_units(self, change: FloatArray) -> "Penalty":
        """The same penalty for columns divided, and coefficients multiplied, by ``change``."""
        return Penalty(self.a1, self.a2, self.u1 / change, self.u2 / change**2)


def penalty_weights(
    design: Design,
    X: FloatArray,
    sample_weight: FloatArray,
    *,
    kind: str,
    adaptive_penalty: float,
    standardise: bool,
) -> tuple[FloatArray, FloatArray]:
    """u1 and u2 of each column of the design; ``standardise`` matters only for the authors' weights."""
    multiplier = np.where(design.adaptive, adaptive_penalty, 1.0)
    if kind == "count":
        u1 = u2 = multiplier / np.where(design.counts > 0, design.counts, 1.0)
    else:
        zero_share, deviation = _column_statistics(design, X, sample_weight)
        size = deviation if standardise else np.ones_like(deviation)
        u1 = size * (1.0 + multiplier * zero_share) / sample_weight.sum()
        u2 = size * u1
    return np.where(design.free, 0.0, u1), np.where(design.free, 0.0, u2)


def _column_statistics(design: Design, X: FloatArray, s: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Weighted share of zeros and standard deviation of each column."""
    q = s / s.sum()
    not_zero, mean, square = np.zeros((3, len(design.pairs)))
    shift: FloatArray | None = None  # near the data, so that no digits are lost
    for rows, A in design.blocks(X):
        not_zero += (A != 0).T @ q[rows]
        if isinstance(A, np.ndarray):
            shift = q[rows] @ A / q[rows].sum() if shift is None else shift
            A = A - shift
        mean += A.T @ q[rows]
        square += (A**2 if isinstance(A, np.ndarray) else A.multiply(A)).T @ q[rows]
    return 1.0 - not_zero, np.sqrt(np.maximum(square - mean**2, 0.0))
