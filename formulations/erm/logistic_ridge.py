"""Ridge paths of the logistic loss and those with a log link, by Newton steps in the smaller of two spaces.

    minimise over (w, f)   sum_i q_i l(y_i, z_i) + lambda sum_j v_j w_j^2 / 2,      z = A w + E f

with the logistic loss or one with a log link; E are the columns without penalty. With g_i the derivative of the risk in
z_i, and D the diagonal matrix of its second derivatives:

*Columns* (at most as many as rows). In u = sqrt(v) w the penalty is lambda |u|^2 / 2. With C = (A / sqrt(v), E) and P
the identity on u and 0 on f, a step solves

    (C'D C + lambda P) dx = -(C'g + lambda P x),      x = (u, f).

*Rows* (fewer than columns). At the optimum lambda v w = -A'g, so that w = A'c / v with c in R^n, z = K c + E f with
K = A diag(1 / v) A', and the conditions are r = g + lambda c = 0 and E'c = 0. With S = D^(1/2), a step solves

    (S K S + lambda) h + S E df = -S^-1 r,    E'S h = -E'c,    dc = S h,

whose matrix is factored at a third of the cost of C'D C alone. As |A_j'r| <= size_j (sum_i r_i^2 / q_i)^(1/2), the
conditions of all columns are bounded without computing them.

Along the path the start is extrapolated from the last solutions, as polynomials in log lambda. C'D C is kept, also from
lambda to lambda, as long as the steps with it converge fast. A step that does not reduce the violation must decrease
the objective; otherwise it is repeated with a new matrix, then halved. Rows of share 0 are left out.
"""

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from formulations.arrays import FloatArray
from formulations.erm.logistic_path import GRADIENT_TOLERANCE, LEAST_SHARE, MAX_STEPS
from formulations.erm.quadratic_path import Path
from formulations.losses import Logistic, Loss

LOGISTIC = Logistic()
# Up to this many columns the steps are so short that the compiled loops of ``logistic_path`` are faster for a path: at
# 64 columns and 4,000 to 10,000 rows they take half the time on one thread, at 300 to 400 columns the same.
FEW_COLUMNS = 64
# A new matrix costs as much as one step and one more per this many unknowns: with 10, paths of 64 to 800 columns take
# 1.0 to 1.9 times as long, without the term up to 2.4 times.
UNKNOWNS_PER_STEP = 40
# Solutions from which the next one is extrapolated: with 2, paths of 20 to 200 columns take up to 1.2 times as long,
# with 4 between .8 and 1.1 times.
EXTRAPOLATED = 3
# In the space of rows D is at least this share of q: a smaller curvature is that of a row without doubt.
SMALLEST_CURVATURE = 1e-13


class Target(NamedTuple):
    """The loss, targets and shares of the rows."""

    loss: Loss
    y: FloatArray
    q: FloatArray

    def slope(self, z: FloatArray) -> FloatArray:
        """The derivative of the risk in each z_i."""
        return np.asarray(self.q * self.loss.derivative(self.y, z))

    def curvature(self, z: FloatArray) -> FloatArray:
        """The second derivative of the risk in each z_i."""
        return np.asarray(self.q * self.loss.curvature(self.y, z))

    def risk(self, z: FloatArray) -> float:
        """The risk."""
        return float(self.q @ self.loss.value(self.y, z))


class Space(ABC):
    """Unknowns x of Newton's method: coefficients of columns, or of rows, and f."""

    # Whether the matrix must be factored anew for every lambda anyway, so that keeping D saves nothing.
    renew: bool
    n_unknowns: int
    has_curvature = False

    @abstractmethod
    def predictions(self, x: FloatArray) -> FloatArray:
        """z."""

    @abstractmethod
    def penalty(self, x: FloatArray, z: FloatArray) -> float:
        """The sum of v_j w_j^2."""

    @abstractmethod
    def residual(self, x: FloatArray, g: FloatArray, lam: float) -> tuple[FloatArray, float]:
        """Residual of the conditions, and a bound on their violation."""

    @abstractmethod
    def set_curvature(self, D: FloatArray) -> None:
        """Take D for the following steps."""

    @abstractmethod
    def factor(self, lam: float) -> None:
        """Factor the matrix for the following steps."""

    @abstractmethod
    def step(self, x: FloatArray, residual: FloatArray) -> FloatArray:
        """A step from x."""


class ColumnSpace(Space):
    """x = (u, f)."""

    renew = False

    def __init__(self, A: FloatArray, E: FloatArray, q: FloatArray, v: FloatArray) -> None:
        self.p = A.shape[1]
        self.C = np.hstack([A / np.sqrt(v), E])
        self.n_unknowns = self.C.shape[1]
        self.size = column_sizes(self.C, q)

    def predictions(self, x: FloatArray) -> FloatArray:
        return self.C @ x

    def penalty(self, x: FloatArray, z: FloatArray) -> float:
        return float(x[: self.p] @ x[: self.p])

    def residual(self, x: FloatArray, g: FloatArray, lam: float) -> tuple[FloatArray, float]:
        residual = g @ self.C
        residual[: self.p] += lam * x[: self.p]
        return residual, float(np.abs(residual / self.size).max(initial=0.0))

    def set_curvature(self, D: FloatArray) -> None:
        rows = np.sqrt(D)[:, None] * self.C
        self.H, self.has_curvature = rows.T @ rows, True

    def factor(self, lam: float) -> None:
        penalties = np.zeros(self.n_unknowns)
        penalties[: self.p] = lam
        self.L = _cholesky(self.H, penalties)

    def step(self, x: FloatArray, residual: FloatArray) -> FloatArray:
        return _cholesky_solve(self.L, -residual)


class RowSpace(Space):
    """x = (c, f), with K = A diag(1 / v) A'."""

    renew = True

    def __init__(self, K: FloatArray, E: FloatArray, q: FloatArray) -> None:
        self.n, self.K, self.E, self.q = len(K), K, E, q
        self.n_unknowns = self.n + E.shape[1]

    def predictions(self, x: FloatArray) -> FloatArray:
        return self.K @ x[: self.n] + self.E @ x[self.n :]

    def penalty(self, x: FloatArray, z: FloatArray) -> float:
        return float(x[: self.n] @ (z - self.E @ x[self.n :]))

    def residual(self, x: FloatArray, g: FloatArray, lam: float) -> tuple[FloatArray, float]:
        residual = g + lam * x[: self.n]
        return residual, float(np.sqrt(np.sum(residual**2 / self.q) / self.q.sum()))

    def set_curvature(self, D: FloatArray) -> None:
        self.S = np.sqrt(np.maximum(D, SMALLEST_CURVATURE * self.q))

    def factor(self, lam: float) -> None:
        self.L = _cholesky(self.S[:, None] * self.K * self.S, np.full(self.n, lam))
        if self.E.shape[1]:
            self.SE = self.S[:, None] * self.E
            self.response = _cholesky_solve(self.L, self.SE)
            self.L_free = _cholesky(self.SE.T @ self.response, np.zeros(self.E.shape[1]))

    def step(self, x: FloatArray, residual: FloatArray) -> FloatArray:
        h = _cholesky_solve(self.L, -residual / self.S)
        df = np.zeros(self.E.shape[1])
        if len(df):
            df = _cholesky_solve(self.L_free, h @ self.SE + x[: self.n] @ self.E)
            h = h - self.response @ df
        return np.concatenate([self.S * h, df])


class LogisticRidge:
    """The ridge problem of the module; paths continue where the last one ended.

    Parameters
    ----------
    A : array of shape (n, p)
        The columns with and without penalty.
    y, q : arrays of shape (n,)
        y is -1 or 1 for the logistic loss.
    v : array of shape (p,)
        0 for columns without penalty.
    loss : Loss
        The logistic loss, or one with a log link.

    Examples
    --------
    >>> A, y = np.array([[1.0, -1.0], [1.0, 1.0], [1.0, 2.0], [1.0, 0.5]]), np.array([-1.0, 1.0, -1.0, 1.0])
    >>> path = LogisticRidge(A, y, np.full(4, 0.25), np.array([0.0, 1.0])).path(np.array([1.0, 0.01]))
    >>> path.w.shape, bool(path.violation.max() < 1e-9)
    ((2, 2), True)
    """

    def __init__(self, A: FloatArray, y: FloatArray, q: FloatArray, v: FloatArray, loss: Loss = LOGISTIC) -> None:
        rows, self.k = q > 0, v > 0
        self.target, self.v = Target(loss, y[rows], q[rows]), v[self.k]
        self.A, self.E = A[np.ix_(rows, self.k)], A[np.ix_(rows, ~self.k)]
        self.space: Space
        if self.A.shape[1] <= len(self.target.q):
            self.space = ColumnSpace(self.A, self.E, self.target.q, self.v)
        else:
            scaled = self.A / np.sqrt(self.v)
            self.space = RowSpace(scaled @ scaled.T, self.E, self.target.q)
        self.last: list[tuple[float, FloatArray]] = []

    def path(self, lambdas: FloatArray, tolerance: float = GRADIENT_TOLERANCE) -> Path:
        """Solutions for each lambda."""
        space, X, violations = self.space, np.zeros((len(lambdas), self.space.n_unknowns)), np.zeros(len(lambdas))
        for i, lam in enumerate(lambdas):
            X[i], violations[i] = newton(space, self.target, float(lam), self._extrapolated(float(lam)), tolerance)
            earlier = [pair for pair in self.last if pair[0] != np.log(lam)]
            self.last = [*earlier[1 - EXTRAPOLATED :], (float(np.log(lam)), X[i])]
        W = np.zeros((len(lambdas), len(self.k)))
        W[:, ~self.k] = X[:, self.space.n_unknowns - self.E.shape[1] :]
        if isinstance(space, RowSpace):
            W[:, self.k] = (X[:, : space.n] @ self.A) / self.v
        else:
            W[:, self.k] = X[:, : len(self.v)] / np.sqrt(self.v)
        return Path(W, violations)

    def _extrapolated(self, lam: float) -> FloatArray:
        """The polynomial through the last solutions in log lambda, at the next lambda."""
        x = np.zeros(self.space.n_unknowns)
        places = [place for place, _ in self.last]
        for place, solution in self.last:
            others = [other for other in places if other != place]
            x += np.prod([(np.log(lam) - other) / (place - other) for other in others]) * solution
        return x


@np.errstate(over="ignore", invalid="ignore")  # a step may go too far, and is halved then
def newton(space: Space, target: Target, lam: float, x: FloatArray, tolerance: float) -> tuple[FloatArray, float]:
    """The solution from a start x, and a bound on its violation."""
    z = space.predictions(x)
    residual, violation = space.residual(x, target.slope(z), lam)
    renew, is_current, is_factored = space.renew or not space.has_curvature, False, False
    for _ in range(MAX_STEPS):
        if violation <= tolerance:
            break
        if renew:
            space.set_curvature(target.curvature(z))
            renew, is_current, is_factored = False, True, False
        if not is_factored:
            space.factor(lam)
            is_factored = True
        step = space.step(x, residual)
        change = space.predictions(step)
        new_residual, new_violation = space.residual(x + step, target.slope(z + change), lam)
        if not new_violation < violation:  # the objective decides
            share = _decreasing_share(space, target, lam, (x, z), (step, change), LEAST_SHARE if is_current else 1.0)
            if share == 0.0:
                if is_current:
                    break
                renew = True
                continue
            step, change = share * step, share * change
            new_residual, new_violation = space.residual(x + step, target.slope(z + change), lam)
        rate = new_violation / violation
        x, z, residual, violation = x + step, z + change, new_residual, new_violation
        is_current = False
        if violation > tolerance:
            steps_left = np.log(tolerance / violation) / np.log(rate) if rate < 1.0 else np.inf
            renew = steps_left > 1.0 + space.n_unknowns / UNKNOWNS_PER_STEP
    return x, violation


def _decreasing_share(
    space: Space,
    target: Target,
    lam: float,
    point: tuple[FloatArray, FloatArray],
    step: tuple[FloatArray, FloatArray],
    smallest: float,
) -> float:
    """The first of 1, 1/2, 1/4, .. of a step (of x and z) that decreases the objective, 0 if none does."""

    def objective(share: float) -> float:
        x, z = (start + share * change for start, change in zip(point, step, strict=True))
        return target.risk(z) + 0.5 * lam * space.penalty(x, z)

    old, share = objective(0.0), 1.0
    while share >= smallest:
        if objective(share) < old:
            return share
        share *= 0.5
    return 0.0


def column_sizes(A: FloatArray, q: FloatArray) -> FloatArray:
    """The largest that a gradient can be: root mean square of the column times the sum of q, 1 if that is 0."""
    size = np.sqrt(q @ A**2 * q.sum())
    return np.where(size > 0, size, 1.0)


def _cholesky(H: FloatArray, penalties: FloatArray) -> FloatArray:
    """Factor of H + diag(penalties), with a little more on the diagonal where that is singular."""
    diagonal, more = np.diagonal(H) + penalties, 0.0
    while True:
        K = H.copy()
        K.flat[:: len(K) + 1] = diagonal * (1.0 + more) + np.finfo(float).tiny
        L, info = dpotrf(K.T, lower=1, overwrite_a=1, clean=0)
        if info == 0 or more > 1.0:
            return L
        more = max(1e-13, 100.0 * more)


def _cholesky_solve(L: FloatArray, b: FloatArray) -> FloatArray:
    return dpotrs(L, b, lower=1)[0]
