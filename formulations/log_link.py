"""Losses of counts and amounts, whose predictions are mu = exp(z): half the deviance of Poisson, Gamma and Tweedie.

With the power p of the variance mu^p, from 1 to 2, a = p - 1, b = 2 - p and d = z - log y,

    l(y, z) = y^b [ E_b(d) + E_a(-d) ]    y > 0,         E_c(x) = (exp(c x) - 1) / c,   E_0(x) = x,
              exp(b z) / b                y = 0 < b,

=========== ===== ============================================== ===============================================
name        power l(y, z), mu = exp(z)                           domain of t
=========== ===== ============================================== ===============================================
poisson     1     mu - y - y log(mu / y)                         -y < t
gamma       2     y / mu - 1 - log(y / mu), y > 0                t < 1
tweedie     p     y^b [ E_b(d) + E_a(-d) ]                       all numbers; t >= 0 for y = 0
=========== ===== ============================================== ===============================================

*Derivatives.* l' = mu^b - y mu^-a and l'' = b mu^b + a y mu^-a > 0, so that |l'''| <= l''.

*Conjugate.* With G(d) = E_b(d) + E_a(-d) and x = t / y^b,  l*(t) = t log y + y^b G*(x)  for y > 0, and
(t log t - t) / b for y = 0. G* is closed for

    p = 1:  (1 + x) log(1 + x) - x,         p = 2:  (1 - x) log(1 - x) + x,         p = 3/2:  d = 2 arsinh(x / 2).

Otherwise the d with G'(d) = x is found by Newton's method, and its value would be too low. At any d, with the residual
r = x - G'(d), the function  x d - G(d)  is concave with a second derivative of at most -m, so that

    G*(x) <= x d - G(d) + r^2 / (2 m),       m = min G'' = (a / b)^(b - a).

*Exposure.* Rows that are observed for a time or number e_i have the prediction e_i exp(z_i): the offset is log e_i. As
l(y, z + log e) = e^b l(y / e, z),  that is a row with target y / e and weight e^b, and no offset.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from scipy.special import xlog1py, xlogy

from formulations.arrays import BoolArray, FloatArray
from formulations.loss import Loss

if TYPE_CHECKING:
    import cvxpy as cp

# Newton steps for the conjugate: from their start they take 4 to 8, for the smallest and largest powers up to 20.
MAX_STEPS = 60
# Rows of y = 0 alone have their infimum at minus infinity: a predictor at which exp(b z) is 0 even for a small b.
NOTHING = -1e6


class LogLink(Loss):
    """Half the unit deviance of a variance mu^power, with mu = exp(z); see the module."""

    of_residual: ClassVar[bool] = False
    largest_curvature: ClassVar[float] = np.inf

    @property
    @abstractmethod
    def variance_power(self) -> float:
        """p."""

    @property
    def a(self) -> float:
        """p - 1."""
        return self.variance_power - 1.0

    @property
    def b(self) -> float:
        """2 - p."""
        return 2.0 - self.variance_power

    def best_constant(self, y: FloatArray, s: FloatArray) -> float:
        """The z of the weighted mean of y."""
        mean = float(y[0]) if np.ptp(y) == 0 else float(s @ y / s.sum())
        return float(np.log(mean)) if mean > 0 else NOTHING

    def best_of_row(self, y: FloatArray) -> FloatArray:
        """The z of each row alone."""
        return np.where(y > 0, _log(y)[1], NOTHING)

    def weight_of(self, exposure: FloatArray) -> FloatArray:
        """The weight e^b of rows whose target is divided by their exposure."""
        return np.asarray(exposure**self.b)

    def total(self, y: FloatArray, z: "cp.Expression", q: FloatArray) -> "cp.Expression":
        import cvxpy as cp

        positive = y > 0
        y_b = q[positive] @ y[positive] ** self.b
        up = q @ cp.exp(self.b * z) / self.b if self.b > 0 else q @ z
        down = (q * y) @ cp.exp(-self.a * z) / self.a if self.a > 0 else -(q * y) @ z
        if self.b == 0:
            return up + down - q @ (1.0 + np.log(y))
        if self.a == 0:
            return up + down + q @ (xlogy(y, y) - y)
        return up + down - y_b / (self.a * self.b)

    def value(self, y: FloatArray, z: FloatArray) -> FloatArray:
        positive, log_y = _log(y)
        with np.errstate(over="ignore"):
            at_zero = np.exp(self.b * z) / (self.b or 1.0)
            d = np.where(positive, z - log_y, 0.0)
            return np.where(positive, y**self.b * (_expm1(self.b, d) + _expm1(self.a, -d)), at_zero)

    def derivative(self, y: FloatArray, z: FloatArray) -> FloatArray:
        with np.errstate(over="ignore"):
            return np.where(y > 0, np.exp(self.b * z) - y * np.exp(-self.a * z), np.exp(self.b * z))

    def curvature(self, y: FloatArray, z: FloatArray) -> FloatArray:
        with np.errstate(over="ignore"):
            down = np.where(y > 0, y * np.exp(-self.a * z), 0.0)
            return np.asarray(self.b * np.exp(self.b * z) + self.a * down)

    def value_size(self, y: FloatArray, z: FloatArray) -> FloatArray:
        """What the rounding error of the value at this z is relative to, for y that is rounded too."""
        positive, log_y = _log(y)
        d = np.where(positive, z - log_y, 0.0)
        with np.errstate(over="ignore"):
            terms = y**self.b * (np.abs(_expm1(self.b, d)) + np.abs(_expm1(self.a, -d)))
        slope = np.abs(self.derivative(y, z)) * (1.0 + np.abs(z) + np.abs(log_y))
        return np.asarray(np.where(positive, terms, self.value(y, z)) + slope)

    def domain(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        low = -y if self.a == 0 else np.where(y > 0, -np.inf, 0.0)
        high = np.full_like(y, np.inf if self.b > 0 else 1.0)
        return low, high

    def conjugate_inside(self, y: FloatArray, t: FloatArray) -> FloatArray:
        positive, log_y = _log(y)
        unit = np.where(positive, y, 1.0) ** self.b
        x = np.where(positive, t / unit, 0.0)
        at_zero = np.where(positive, 0.0, t)
        return np.where(
            positive, t * log_y + unit * self._conjugate(x), (xlogy(at_zero, at_zero) - at_zero) / (self.b or 1.0)
        )

    def dual_slope(self, y: FloatArray, t: FloatArray) -> FloatArray:
        positive, log_y = _log(y)
        with np.errstate(divide="ignore"):
            at_zero = np.log(np.where(positive, 1.0, t)) / (self.b or 1.0)
        return np.where(
            positive, log_y + self._inverse(np.where(positive, t / np.where(positive, y, 1.0) ** self.b, 0.0)), at_zero
        )

    def dual_curvature(self, y: FloatArray, t: FloatArray) -> FloatArray:
        if self.a == 0:
            return y + t
        if self.b == 0:
            return 1.0 - t
        unit = np.where(y > 0, y, 1.0) ** self.b
        d = self._inverse(np.where(y > 0, t / unit, 0.0))
        inside = unit * (self.b * np.exp(self.b * d) + self.a * np.exp(-self.a * d))
        return np.where(y > 0, inside, self.b * t)

    def conjugate_size(self, y: FloatArray, t: FloatArray) -> FloatArray:
        positive, log_y = _log(y)
        z = self.dual_slope(y, np.where((t == 0) & ~positive, 1.0, t))
        unit = np.where(positive, y**self.b, 0.0)
        return np.asarray((1.0 + np.abs(log_y) + np.abs(z) + 40.0) * (np.abs(t) / (self.b or 1.0) + unit))

    def _conjugate(self, x: FloatArray) -> FloatArray:
        """G*(x), or an upper bound on it."""
        if self.a == 0:
            return np.asarray(xlog1py(1.0 + x, x) - x)
        if self.b == 0:
            return np.asarray(xlog1py(1.0 - x, -x) + x)
        d = self._inverse(x)
        r = x - (np.exp(self.b * d) - np.exp(-self.a * d))
        least = (self.a / self.b) ** (self.b - self.a)
        return np.asarray(x * d - (_expm1(self.b, d) + _expm1(self.a, -d)) + r**2 / (2.0 * least))

    def _inverse(self, x: FloatArray) -> FloatArray:
        """The d with G'(d) = x, up to rounding."""
        with np.errstate(divide="ignore"):
            if self.a == 0:
                return np.log1p(x)
            if self.b == 0:
                return -np.log1p(-x)
        if self.a == self.b:
            return 2.0 * np.arcsinh(x / 2.0)
        # d has the sign of x; a step that leaves what is known to hold it is replaced by one to the middle
        low = np.minimum(-np.log1p(np.maximum(-x, 0.0)) / self.a, 0.0)
        high = np.maximum(np.log1p(np.maximum(x, 0.0)) / self.b, 0.0)
        d = np.where(x > 0, high, low)
        for _ in range(MAX_STEPS):
            up, down = np.exp(self.b * d), np.exp(-self.a * d)
            residual = x - (up - down)
            low, high = np.where(residual >= 0, d, low), np.where(residual <= 0, d, high)
            new = d + residual / (self.b * up + self.a * down)
            new = np.where((new < low) | (new > high), 0.5 * (low + high), new)
            step, d = np.abs(new - d), new
            if np.all(step <= 1e-15 * (1.0 + np.abs(d))):
                break
        return d


@dataclass(frozen=True)
class Poisson(LogLink):
    """Half the Poisson deviance, mu - y - y log(mu / y) with mu = exp(z) and y >= 0: counts.

    Examples
    --------
    >>> Poisson().value(np.array([0.0, 2.0]), np.log([0.5, 2.0])).tolist()
    [0.5, 0.0]
    """

    @property
    def variance_power(self) -> float:
        return 1.0


@dataclass(frozen=True)
class Gamma(LogLink):
    """Half the Gamma deviance, y / mu - 1 - log(y / mu) with mu = exp(z) and y > 0: amounts, and times until an event.

    Examples
    --------
    >>> Gamma().value(np.array([3.0]), np.log([3.0])).tolist()
    [0.0]
    """

    @property
    def variance_power(self) -> float:
        return 2.0


@dataclass(frozen=True)
class Tweedie(LogLink):
    """Half the Tweedie deviance with mu = exp(z) and y >= 0: sums of a random number of amounts, many of them 0.

    Parameters
    ----------
    power : float
        That of the variance, between 1 (Poisson) and 2 (Gamma).

    Examples
    --------
    >>> Tweedie(1.5).value(np.array([0.0, 4.0]), np.log([4.0, 4.0])).tolist()
    [4.0, 0.0]
    """

    power: float = 1.5

    def __post_init__(self) -> None:
        if not 1 < self.power < 2:
            raise ValueError(f"Tweedie needs a power between 1 and 2, not {self.power!r}: these are Poisson and Gamma.")

    @property
    def variance_power(self) -> float:
        return self.power


def _log(y: FloatArray) -> tuple[BoolArray, FloatArray]:
    """Whether y > 0, and log y there, else 0."""
    positive = np.asarray(y > 0)
    return positive, np.log(np.where(positive, y, 1.0))


def _expm1(c: float, x: FloatArray) -> FloatArray:
    """E_c(x)."""
    return np.asarray(np.expm1(c * x) / c if c > 0 else x)
