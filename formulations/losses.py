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

with r = y - z; those of counts and amounts (Poisson, Gamma, Tweedie) are in :mod:`formulations.log_link`. The squared
loss has no factor 1/2, as in the paper. Each loss provides its cvxpy expression, its value, its derivatives in z if
they exist, its conjugate (for the dual bound), and its behaviour under a change of units. cvxpy is imported only when
an expression is built.
"""

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from scipy.optimize import brentq, minimize_scalar
from scipy.special import expit, logit, xlogy

from formulations.arrays import FloatArray
from formulations.log_link import Gamma, LogLink, Poisson, Tweedie
from formulations.loss import Loss
from formulations.rounding import UNIT

if TYPE_CHECKING:
    import cvxpy as cp

__all__ = [
    "CERTAIN",
    "LOSSES",
    "Absolute",
    "Gamma",
    "Huber",
    "Logistic",
    "Loss",
    "Poisson",
    "Quantile",
    "Squared",
    "Tweedie",
    "best_constant",
    "resolve_loss",
]

# Its square must be a number.
LARGEST_DELTA = 1e120


@dataclass(frozen=True)
class Squared(Loss):
    """(y - z)^2."""

    conjugate_curvature: ClassVar[float | None] = 0.5

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

    conjugate_curvature: ClassVar[float | None] = 0.5
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
    conjugate_curvature: ClassVar[float | None] = 0.0
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
    conjugate_curvature: ClassVar[float | None] = 0.0

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
    of_residual: ClassVar[bool] = False
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

    def dual_slope(self, y: FloatArray, t: FloatArray) -> FloatArray:
        return np.asarray(-y * logit(-y * t))

    def dual_curvature(self, y: FloatArray, t: FloatArray) -> FloatArray:
        u = np.abs(t)
        return np.asarray(u * (1.0 - u))

    def conjugate_size(self, y: FloatArray, t: FloatArray) -> FloatArray:
        return np.ones_like(t)


LOSSES: dict[str, type[Loss]] = {
    "squared": Squared,
    "absolute": Absolute,
    "huber": Huber,
    "quantile": Quantile,
    "logistic": Logistic,
    "poisson": Poisson,
    "gamma": Gamma,
    "tweedie": Tweedie,
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
    The multipliers of the rows with y_i = b take what is left to make the sum 0. Any other loss that is not smooth is
    minimised by its values, with differences of them for slopes: b and theta have half the digits then. With a log link
    b is the log of the mean.

    Examples
    --------
    >>> best_constant(np.array([1.0, 2.0, 3.0, 4.0]), np.ones(4), Quantile(0.7))[0]
    3.0
    """
    if isinstance(loss, LogLink):
        b = loss.best_constant(y, s)
        return b, s * loss.derivative(y, np.full_like(y, b))
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
    if not np.isfinite(above - below):
        return _best_by_values(y, s, loss)
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


def _best_by_values(y: FloatArray, s: FloatArray, loss: Loss) -> tuple[float, FloatArray]:
    """The same from values alone, for y of any size."""
    spread, middle = float(np.ptp(y)), float(0.5 * y.max() + 0.5 * y.min())

    def values(share: float) -> FloatArray:
        return loss.value(y, np.full_like(y, middle + share * spread))

    best = float(
        minimize_scalar(
            lambda share: s @ values(share), bounds=(-0.5, 0.5), method="bounded", options={"xatol": 1e-10}
        ).x
    )
    b, h = middle + best * spread, max(spread, abs(middle), np.finfo(float).tiny) * UNIT ** (1 / 3)
    slopes = (loss.value(y, np.full_like(y, b + h)) - loss.value(y, np.full_like(y, b - h))) / (2.0 * h)
    return b, s * slopes
