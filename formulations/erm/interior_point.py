"""Paths of the absolute, quantile and Huber losses by an interior-point method on the columns.

    minimise over w   sum_i q_i l(y_i, a_i'w) + sum_k l1_k |w_k| + l2_k w_k^2 / 2

for losses of y - z whose conjugate is  t y + c t^2 / 2  on an interval. An l1 penalty is the absolute loss of a row
(e_k, 0) of weight l1_k: with B = (A, rows e_k), ranges [lo, hi] = q_i [low, high] or l1_k [-1, 1] of theta, and
kappa_i = c / q_i or 0, the conditions are

    B'theta + l2 w = 0,      B w - y = kappa theta + u - v,      u (hi - theta) = 0,      v (theta - lo) = 0,
    u, v >= 0,               lo <= theta <= hi.

With the last two products equal to mu > 0 instead, a Newton step has

    (B' D B + l2) dw = -r_d - B'D g,    dtheta = D (B dw + g),    D = 1 / (kappa + u / (hi - theta) + v / (theta - lo)),

r_d = B'theta + l2 w, and g of what is left of the other conditions (Portnoy and Koenker 1997; with the predictor and
corrector of Mehrotra 1992). The gap is the sum of the products. All lambdas of a path are solved side by side, so that
the cost is that of additions and multiplications also for few rows.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from formulations.arrays import BoolArray, FloatArray, IntArray
from formulations.erm.risk import EmpiricalRisk

# Iterations: 10 to 20 are usual.
MAX_STEPS = 50
# Violation below which a step that gains little ends the iterations: the normal equations have no more digits.
ACCURATE = 1e-8
# Added to the diagonal of the normal equations in columns of unit size: with less, perfect fits of dependent columns do
# not converge, with more, ridge fits end at a violation above 1e-8.
DEPENDENT = 1e-12
# Share of the way to the boundary.
INSIDE = 0.9995
# Entries of the columns of all lambdas that are solved side by side.
BATCH_ENTRIES = 2**22


class InteriorPath(NamedTuple):
    """Solutions along a path.

    Attributes
    ----------
    w : array of shape (n_lambdas, p)
    theta : array of shape (n_lambdas, n)
        Multipliers of the rows, q_i times a slope of the loss.
    violation : array of shape (n_lambdas,)
        Gap and violation of B'theta + l2 w = 0, as shares of the objective.
    """

    w: FloatArray
    theta: FloatArray
    violation: FloatArray


def interior_path(
    risk: EmpiricalRisk, l1: FloatArray, l2: FloatArray, lambdas: FloatArray, tolerance: float
) -> InteriorPath:
    """Solve the path of penalties ``lambdas`` times l1 and l2.

    Examples
    --------
    >>> from formulations.losses import Absolute
    >>> risk = EmpiricalRisk(np.ones((3, 1)), np.array([0.0, 1.0, 5.0]), np.full(3, 1 / 3), Absolute())
    >>> interior_path(risk, np.zeros(1), np.zeros(1), np.ones(1), 1e-9).w.round(6)
    array([[1.]])
    """
    problem = _Problem.of(risk, l1, l2)
    n, p = risk.A.shape
    size = max(1, BATCH_ENTRIES // max(1, n * p))
    parts = [problem.path(lambdas[i : i + size], tolerance) for i in range(0, len(lambdas), size)]
    return InteriorPath(*(np.concatenate(values) for values in zip(*parts, strict=True)))


class _Iterate(NamedTuple):
    """w, theta, hi - theta, theta - lo, u and v, one row for each lambda."""

    w: FloatArray
    theta: FloatArray
    above: FloatArray
    below: FloatArray
    u: FloatArray
    v: FloatArray

    @property
    def products(self) -> FloatArray:
        """The sum of the products."""
        return np.asarray((self.above * self.u).sum(axis=1) + (self.below * self.v).sum(axis=1))

    def moved(self, step: "_Iterate", primal: FloatArray, dual: FloatArray) -> "_Iterate":
        """The point after shares of a step, of theta ``dual``, of w, u and v ``primal``."""
        shares = (primal, dual, dual, dual, primal, primal)
        return _Iterate(*(x + share[:, None] * dx for x, dx, share in zip(self, step, shares, strict=True)))

    def some(self, rows: BoolArray) -> "_Iterate":
        """Those of some lambdas."""
        return _Iterate(*(x[rows] for x in self))


@dataclass(frozen=True)
class _Problem:
    """The conditions of the module for one or several lambdas.

    Attributes
    ----------
    A : array of shape (n, p)
    y, kappa : arrays of shape (m,)
        Of the rows of B, m = n + len(k).
    low, high : arrays of shape (1 or lambdas, m)
    l2 : array of shape (1 or lambdas, p)
    k : int array
        Columns with an l1 penalty.
    enough : array of shape (m,)
        Ends of the ranges beyond which larger ones do not matter: a coefficient is 0 if l1_k is above any a_k'theta.
    """

    A: FloatArray
    y: FloatArray
    kappa: FloatArray
    low: FloatArray
    high: FloatArray
    l2: FloatArray
    k: IntArray
    enough: FloatArray

    @classmethod
    def of(cls, risk: EmpiricalRisk, l1: FloatArray, l2: FloatArray) -> "_Problem":
        """The conditions for penalties as they are; every share is positive."""
        c = risk.loss.conjugate_curvature
        if c is None:
            raise TypeError(f"The conjugate of {risk.loss} is not known to be quadratic.")
        k = np.flatnonzero(l1)
        low, high = risk.loss.domain(risk.y)
        rows_of_k = np.zeros(len(k))
        largest = (risk.q * np.maximum(high, -low)) @ np.abs(risk.A[:, k])
        return cls(
            np.ascontiguousarray(risk.A),
            np.concatenate([risk.y, rows_of_k]),
            np.concatenate([c / risk.q, rows_of_k]),
            np.concatenate([risk.q * low, -l1[k]])[None],
            np.concatenate([risk.q * high, l1[k]])[None],
            l2[None],
            k,
            np.concatenate([np.full(len(risk.y), np.inf), np.where(largest > 0, 2.0 * largest, np.inf)]),
        )

    def path(self, lambdas: FloatArray, tolerance: float) -> InteriorPath:
        """Solutions for some multiples of the penalties."""
        n, (of_rows, p) = len(self.A), (np.ones((len(lambdas), len(self.A))), self.A.shape[1])
        factor = np.hstack([of_rows, np.repeat(lambdas[:, None], len(self.k), axis=1)])
        low, high = np.maximum(self.low * factor, -self.enough), np.minimum(self.high * factor, self.enough)
        own = replace(self, low=low, high=high, l2=self.l2 * lambdas[:, None])
        point = own.start()
        scale = own.objective(point)
        solution = InteriorPath(np.zeros((len(lambdas), p)), np.zeros((len(lambdas), n)), np.full(len(lambdas), np.inf))
        number = np.arange(len(lambdas))
        for _ in range(MAX_STEPS):
            with np.errstate(invalid="ignore", over="ignore"):
                violation = own.violation(point, scale)
            before = solution.violation[number]
            better = violation < before
            chosen = number[better]
            solution.w[chosen], solution.theta[chosen] = point.w[better], point.theta[better, :n]
            solution.violation[chosen] = violation[better]
            left = (violation > tolerance) & ((before > ACCURATE) | (violation < 0.9 * before))
            if not left.any():
                break
            own, point = own.some(left), point.some(left)
            number, scale = number[left], scale[left]
            # A step beyond the range of doubles has the violation nan: that lambda ends with its best point.
            with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
                point = own.step(point)
        return solution

    def some(self, rows: BoolArray) -> "_Problem":
        """Those of some lambdas."""
        return replace(self, low=self.low[rows], high=self.high[rows], l2=self.l2[rows])

    def times(self, w: FloatArray) -> FloatArray:
        """B w."""
        return np.hstack([w @ self.A.T, w[:, self.k]])

    def transposed(self, theta: FloatArray) -> FloatArray:
        """B'theta."""
        n = len(self.A)
        product = theta[:, :n] @ self.A
        product[:, self.k] += theta[:, n:]
        return np.asarray(product)

    def start(self) -> _Iterate:
        """Coefficients 0 and multipliers in the middle of their ranges."""
        w = np.zeros((len(self.l2), self.A.shape[1]))
        theta = 0.5 * (self.low + self.high)
        residual = self.times(w) - self.y - self.kappa * theta
        size = np.abs(residual).mean(axis=1, keepdims=True) + np.finfo(float).tiny
        u, v = np.maximum(residual, 0.0) + size, np.maximum(-residual, 0.0) + size
        return _Iterate(w, theta, self.high - theta, theta - self.low, u, v)

    def objective(self, point: _Iterate) -> FloatArray:
        """The objective at w."""
        r = self.times(point.w) - self.y
        t = np.where(r > 0, self.high, self.low)
        t = np.clip(np.divide(r, self.kappa, out=t, where=self.kappa > 0), self.low, self.high)
        return np.asarray((t * r - self.kappa * t**2 / 2).sum(axis=1) + (self.l2 * point.w**2).sum(axis=1) / 2)

    def violation(self, point: _Iterate, scale: FloatArray) -> FloatArray:
        """The gap as a share of the objective, or of a thousandth of that at the start."""
        residual = self.transposed(point.theta) + self.l2 * point.w
        unmet = (np.abs(residual) * np.abs(point.w)).sum(axis=1)
        scale = np.maximum(self.objective(point), 1e-3 * scale) + np.finfo(float).tiny
        return np.asarray((point.products + unmet) / scale)

    def step(self, point: _Iterate) -> _Iterate:
        """A predictor and a corrector."""
        D = 1.0 / (self.kappa + point.u / point.above + point.v / point.below)
        inverse = self.inverse(D)
        first = self.direction(point, inverse, D, -point.above * point.u, -point.below * point.v)
        trial = point.moved(first, *self.shares(point, first, 1.0))
        mu = point.products / (2 * point.theta.shape[1])
        target = (mu * (trial.products / point.products) ** 3)[:, None]
        of_u = target - point.above * point.u - first.above * first.u
        of_v = target - point.below * point.v - first.below * first.v
        step = self.direction(point, inverse, D, of_u, of_v)
        return point.moved(step, *self.shares(point, step, INSIDE))

    def inverse(self, D: FloatArray) -> FloatArray:
        """Inverses of B'DB + l2, in columns of unit size."""
        n, p = self.A.shape
        H = np.matmul(self.A.T * D[:, None, :n], self.A)
        diagonal = np.arange(p)
        H[:, diagonal, diagonal] += self.l2
        H[:, self.k, self.k] += D[:, n:]
        size = np.sqrt(H[:, diagonal, diagonal])
        size[size == 0] = 1.0
        H /= size[:, :, None] * size[:, None, :]
        H[:, diagonal, diagonal] += DEPENDENT
        return np.linalg.inv(H) / (size[:, :, None] * size[:, None, :])

    def direction(
        self, point: _Iterate, inverse: FloatArray, D: FloatArray, of_u: FloatArray, of_v: FloatArray
    ) -> _Iterate:
        """The step that changes the products by ``of_u`` and ``of_v`` to first order, and meets the equations."""
        unmet = self.times(point.w) - self.y - self.kappa * point.theta - point.u + point.v
        g = unmet - of_u / point.above + of_v / point.below
        right = self.transposed(point.theta + D * g) + self.l2 * point.w
        w = -np.matmul(inverse, right[:, :, None])[:, :, 0]
        left = right + self.transposed(D * self.times(w)) + self.l2 * w  # by what was added to the diagonal
        w -= np.matmul(inverse, left[:, :, None])[:, :, 0]
        theta = D * (self.times(w) + g)
        u = (of_u + point.u * theta) / point.above
        v = (of_v - point.v * theta) / point.below
        return _Iterate(w, theta, -theta, theta, u, v)

    def shares(self, point: _Iterate, step: _Iterate, inside: float) -> tuple[FloatArray, FloatArray]:
        """The shares of a step, of w, u and v and of theta, that stay in the ranges; the same if there is a kappa."""
        primal = np.minimum(_largest(point.u, step.u), _largest(point.v, step.v))
        dual = np.minimum(_largest(point.above, step.above), _largest(point.below, step.below))
        if np.any(self.kappa) or np.any(self.l2):
            primal = dual = np.minimum(primal, dual)
        return np.minimum(1.0, inside * primal), np.minimum(1.0, inside * dual)


def _largest(x: FloatArray, dx: FloatArray) -> FloatArray:
    """The largest share of dx with x + share dx >= 0, row by row."""
    ratios = np.divide(-x, dx, out=np.full_like(x, np.inf), where=dx < 0)
    return np.asarray(ratios.min(axis=1))
