"""Losses l(y, z) of a target y and a prediction z, convex in z.

=========== ====================================================== =================================================
name        l(y, z)                                                conjugate l*(t) = sup_z t z - l(y, z), domain of t
=========== ====================================================== =================================================
squared     (y - z)^2                                              t y + t^2 / 4
absolute    |y - z|                                                t y                       -1 <= t <= 1
huber       r^2 if |r| <= delta else 2 delta |r| - delta^2         t y + t^2 / 4             |t| <= 2 delta
quantile    max{tau r, (tau - 1) r}                                t y                       -tau <= t <= 1 - tau
logistic    log(1 + exp(-y z)), y in {-1, 1}                       u log u + (1-u) log(1-u)  u = -y t in [0, 1]
=========== ====================================================== =================================================

with r = y - z. The squared loss has no factor 1/2, as in the paper. Each loss provides its cvxpy expression, its value,
its derivatives in z if they exist, its conjugate (for the dual bound), and its behaviour under a change of units.
cvxpy is imported only when an expression is built.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass, is_dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, xlogy

from formulations.arrays import FloatArray
from formulations.certificate import plain_value
from formulations.rounding import UNIT

if TYPE_CHECKING:
    import cvxpy as cp


# Its square must be a number.
LARGEST_DELTA = 1e120


class Loss(ABC):
    """A convex loss; see the table in the module docstring.

    A loss of one's own implements ``value``, ``total`` and ``conjugate_inside``, and ``domain`` if the conjugate is not
    finite everywhere. Smooth ones have ``derivative`` and ``curvature``, or say ``smooth = False``.

    Examples
    --------
    >>> class Expectile(Loss):  # squared errors, of which those above z count 4 times
    ...     smooth = False
    ...
    ...     def value(self, y, z):
    ...         return np.where(y > z, 0.8, 0.2) * (y - z) ** 2
    ...
    ...     def total(self, y, z, q):
    ...         import cvxpy as cp
    ...
    ...         return q @ (0.8 * cp.square(cp.pos(y - z)) + 0.2 * cp.square(cp.neg(y - z)))
    ...
    ...     def conjugate_inside(self, y, t):
    ...         return t * y + t**2 / (4 * np.where(t < 0, 0.8, 0.2))
    >>> y, z, t = np.array([[1.0, 2.0], [3.0, 1.0], [-3.2, 0.4]])
    >>> (Expectile().value(y, z) + Expectile().conjugate(y, t) >= t * z).tolist()  # by the definition of l*
    [True, True]
    """

    task: ClassVar[str] = "regression"
    smooth: ClassVar[bool] = True
    largest_curvature: ClassVar[float] = 2.0
    # The c of a conjugate t y + c t^2 / 2.
    conjugate_curvature: ClassVar[float] = 0.0

    @abstractmethod
    def total(self, y: FloatArray, z: "cp.Expression", q: FloatArray) -> "cp.Expression":
        """The risk sum_i q_i l(y_i, z_i) as a cvxpy expression."""

    @abstractmethod
    def value(self, y: FloatArray, z: FloatArray) -> FloatArray:
        """l(y, z), row by row."""

    @abstractmethod
    def conjugate_inside(self, y: FloatArray, t: FloatArray) -> FloatArray:
        """l*(t), row by row, for t within the domain."""

    def conjugate(self, y: FloatArray, t: FloatArray) -> FloatArray:
        """l*(t), row by row; infinite outside its domain."""
        low, high = self.domain(y)
        return np.where((t < low) | (t > high), np.inf, self.conjugate_inside(y, np.clip(t, low, high)))

    def domain(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Smallest and largest t with a finite conjugate."""
        return np.full_like(y, -np.inf), np.full_like(y, np.inf)

    def derivative(self, y: FloatArray, z: FloatArray) -> FloatArray:
        """dl/dz, row by row; smooth losses only."""
        raise TypeError(f"{self} has no derivative everywhere")

    def curvature(self, y: FloatArray, z: FloatArray) -> FloatArray:
        """d2l/dz2, row by row; smooth losses only."""
        raise TypeError(f"{self} has no second derivative everywhere")

    def in_units(self, sigma: float) -> tuple["Loss", float]:
        """The loss l' and the factor c with l(sigma y, sigma z) = c l'(y, z)."""
        return (self if sigma == 1.0 else InUnits(self, sigma)), 1.0

    def description(self) -> dict[str, Any]:
        """Name and parameters in plain values.

        Examples
        --------
        >>> Huber().description()
        {'name': 'Huber', 'delta': 1.0}
        """
        parameters: dict[str, Any] = asdict(self) if is_dataclass(self) else {}
        return {"name": type(self).__name__} | {name: plain_value(value) for name, value in parameters.items()}


@dataclass(frozen=True)
class InUnits(Loss):
    """l(sigma y, sigma z), for losses that do not say how they change with the units of y."""

    loss: Loss
    sigma: float

    @property
    def smooth(self) -> bool:  # type: ignore[override]
        return self.loss.smooth

    @property
    def largest_curvature(self) -> float:  # type: ignore[override]
        return self.sigma**2 * self.loss.largest_curvature

    @property
    def conjugate_curvature(self) -> float:  # type: ignore[override]
        return self.loss.conjugate_curvature / self.sigma**2

    def total(self, y: FloatArray, z: "cp.Expression", q: FloatArray) -> "cp.Expression":
        return self.loss.total(self.sigma * y, self.sigma * z, q)

    def value(self, y: FloatArray, z: FloatArray) -> FloatArray:
        return self.loss.value(self.sigma * y, self.sigma * z)

    def domain(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        low, high = self.loss.domain(self.sigma * y)
        return self.sigma * low, self.sigma * high

    def conjugate_inside(self, y: FloatArray, t: FloatArray) -> FloatArray:
        return self.loss.conjugate_inside(self.sigma * y, t / self.sigma)

    def derivative(self, y: FloatArray, z: FloatArray) -> FloatArray:
        return self.sigma * self.loss.derivative(self.sigma * y, self.sigma * z)

    def curvature(self, y: FloatArray, z: FloatArray) -> FloatArray:
        return self.sigma**2 * self.loss.curvature(self.sigma * y, self.sigma * z)


@dataclass(frozen=True)
class Squared(Loss):
    """(y - z)^2."""

    conjugate_curvature: ClassVar[float] = 0.5

    def total(self, y: FloatArray, z: "cp.Expression", q: FloatArray) -> "cp.Expression":
        import cvxpy as cp

        return cp.sum_squares(cp.multiply(np.sqrt(q), y - z))

    def value(self, y: FloatArray, z: FloatArray) -> FloatArray:
        return (y - z) ** 2

    def derivative(self, y: FloatArray, z: FloatArray) -> FloatArray:
        return 2.0 * (z - y)

    def curvature(self, y: FloatArray, z: FloatArray) -> FloatArray:
        return np.full_like(z, 2.0)

    def conjugate_inside(self, y: FloatArray, t: FloatArray) -> FloatArray:
        return t * y + t**2 / 4.0

    def in_units(self, sigma: float) -> tuple[Loss, float]:
        return self, sigma**2


@dataclass(frozen=True)
class Huber(Loss):
    """Squared up to ``delta``, linear beyond.

    Parameters
    ----------
    delta : float
        In the units of y.

    Examples
    --------
    >>> Huber(1.0).value(np.array([0.5, 3.0]), np.zeros(2)).tolist()
    [0.25, 5.0]
    """

    conjugate_curvature: ClassVar[float] = 0.5
    delta: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.delta <= LARGEST_DELTA:
            raise ValueError(f"Huber needs delta > 0, and at most {LARGEST_DELTA:g}, not {self.delta!r}.")

    def total(self, y: FloatArray, z: "cp.Expression", q: FloatArray) -> "cp.Expression":
        import cvxpy as cp

        return q @ cp.huber(y - z, self.delta)

    def value(self, y: FloatArray, z: FloatArray) -> FloatArray:
        r = np.abs(y - z)
        return np.where(r <= self.delta, r**2, 2.0 * self.delta * r - self.delta**2)

    def derivative(self, y: FloatArray, z: FloatArray) -> FloatArray:
        return 2.0 * np.clip(z - y, -self.delta, self.delta)

    def curvature(self, y: FloatArray, z: FloatArray) -> FloatArray:
        return np.where(np.abs(y - z) <= self.delta, 2.0, 0.0)

    def domain(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.full_like(y, -2.0 * self.delta), np.full_like(y, 2.0 * self.delta)

    def conjugate_inside(self, y: FloatArray, t: FloatArray) -> FloatArray:
        return t * y + t**2 / 4.0

    def in_units(self, sigma: float) -> tuple[Loss, float]:
        return replace(self, delta=self.delta / sigma), sigma**2


@dataclass(frozen=True)
class Quantile(Loss):
    """max{tau r, (tau - 1) r} with r = y - z: its minimiser is the quantile of order ``level`` (tau).

    Parameters
    ----------
    level : float
        Between 0 and 1.

    Examples
    --------
    >>> Quantile(0.75).value(np.array([4.0, -4.0]), np.zeros(2)).tolist()
    [3.0, 1.0]
    """

    smooth: ClassVar[bool] = False
    largest_curvature: ClassVar[float] = np.inf
    level: float = 0.5

    def __post_init__(self) -> None:
        if not 0 < self.level < 1:
            raise ValueError(f"Quantile needs a level between 0 and 1, not {self.level!r}.")

    def total(self, y: FloatArray, z: "cp.Expression", q: FloatArray) -> "cp.Expression":
        import cvxpy as cp

        r = y - z  # not as cp.maximum, whose values cvxpy 1.9.3 gives wrong limits that HiGHS uses
        return (self.level - 0.5) * (q @ r) + 0.5 * (q @ cp.abs(r))

    def value(self, y: FloatArray, z: FloatArray) -> FloatArray:
        r = y - z
        return np.maximum(self.level * r, (self.level - 1.0) * r)

    def domain(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.full_like(y, -self.level), np.full_like(y, 1.0 - self.level)

    def conjugate_inside(self, y: FloatArray, t: FloatArray) -> FloatArray:
        return t * y

    def in_units(self, sigma: float) -> tuple[Loss, float]:
        return self, sigma


@dataclass(frozen=True)
class Absolute(Loss):
    """|y - z|."""

    smooth: ClassVar[bool] = False
    largest_curvature: ClassVar[float] = np.inf

    def total(self, y: FloatArray, z: "cp.Expression", q: FloatArray) -> "cp.Expression":
        import cvxpy as cp

        return q @ cp.abs(y - z)

    def value(self, y: FloatArray, z: FloatArray) -> FloatArray:
        return np.abs(y - z)

    def domain(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.full_like(y, -1.0), np.full_like(y, 1.0)

    def conjugate_inside(self, y: FloatArray, t: FloatArray) -> FloatArray:
        return t * y

    def in_units(self, sigma: float) -> tuple[Loss, float]:
        return self, sigma


@dataclass(frozen=True)
class Logistic(Loss):
    """log(1 + exp(-y z)) with y in {-1, 1}: z is the log-odds of y = 1."""

    task: ClassVar[str] = "classification"
    largest_curvature: ClassVar[float] = 0.25

    def total(self, y: FloatArray, z: "cp.Expression", q: FloatArray) -> "cp.Expression":
        import cvxpy as cp

        return q @ cp.logistic(-cp.multiply(y, z))

    def value(self, y: FloatArray, z: FloatArray) -> FloatArray:
        return np.logaddexp(0.0, -y * z)

    def derivative(self, y: FloatArray, z: FloatArray) -> FloatArray:
        return -y * expit(-y * z)

    def curvature(self, y: FloatArray, z: FloatArray) -> FloatArray:
        return expit(z) * expit(-z)

    def domain(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.minimum(-y, 0.0), np.maximum(-y, 0.0)

    def conjugate_inside(self, y: FloatArray, t: FloatArray) -> FloatArray:
        u = -y * t
        return xlogy(u, u) + xlogy(1.0 - u, 1.0 - u)


LOSSES: dict[str, type[Loss]] = {
    "squared": Squared,
    "absolute": Absolute,
    "huber": Huber,
    "quantile": Quantile,
    "logistic": Logistic,
}


def resolve_loss(loss: str | Loss) -> Loss:
    """The loss of this name (with its default parameter), or the loss itself.

    Examples
    --------
    >>> resolve_loss("quantile")
    Quantile(level=0.5)
    """
    if isinstance(loss, Loss):
        return loss
    if isinstance(loss, str) and loss in LOSSES:
        return LOSSES[loss]()
    known = ", ".join(repr(name) for name in LOSSES)
    raise ValueError(f"Unknown loss {loss!r}: choose one of {known}, or an object such as Quantile(0.9).")


# Log-odds beyond which a class is certain: the probability of the other is below rounding.
CERTAIN = -math.log(UNIT)


def best_constant(y: FloatArray, s: FloatArray, loss: Loss) -> tuple[float, FloatArray]:
    """The b that minimises sum_i s_i l(y_i, b), and multipliers that prove it.

    These are theta_i = s_i times a slope of the loss of row i at b, which add up to 0 up to rounding. A smooth loss has
    its derivative at 0 there, which is found by bisection. The absolute and the quantile loss have slopes u for b < y_i
    and v for b > y_i: b is the weighted quantile of y of order -u / (v - u), halfway between two values if both are.
    The multipliers of the rows with y_i = b take what is left to make the sum 0.

    Examples
    --------
    >>> best_constant(np.array([1.0, 2.0, 3.0, 4.0]), np.ones(4), Quantile(0.7))[0]
    3.0
    """
    if loss.smooth:
        low, high = (float(y.min()), float(y.max())) if loss.task == "regression" else (-CERTAIN, CERTAIN)

        def slope(b: float) -> float:
            return float(s @ loss.derivative(y, np.full_like(y, b)))

        if slope(low) < 0 < slope(high):
            b = float(brentq(slope, low, high, xtol=2.0**-60 * (high - low), maxiter=1000, disp=False))
        else:
            b = low if slope(low) >= 0 else high
        return b, s * loss.derivative(y, np.full_like(y, b))
    below, above = (float(end[0]) for end in loss.domain(y))
    order = np.argsort(y, kind="stable")
    share, level = np.cumsum(s[order]) / s.sum(), -below / (above - below)
    rounding = 4 * len(y) * UNIT  # of a share
    ends = np.searchsorted(share, [level - rounding, level + rounding]).clip(max=len(y) - 1)
    b = float(y[order[ends]].mean())
    theta = s * np.where(y > b, below, above)
    tied = y == b
    if tied.any():
        theta[tied] = -s[tied] / s[tied].sum() * theta[~tied].sum()
    return b, theta
