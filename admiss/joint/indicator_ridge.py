"""Ridge regression on features and indicators of missing values, on unions of folds, over a grid of penalties.

With z_j = (x_j - mean_j) / deviation_j if x_j is observed, else 0, mean and deviation over the observed values,

    min over a, w, b    (1/S) sum_i s_i l(y_i, a + w'z_i + b'm_i)  +  alpha |w|^2  +  beta |b|^2

with l the squared loss, or the logistic loss of each class against the rest (then with half the penalty). A cell of the
grid is a pair (alpha, beta); beta = infinity is b = 0.

Squared loss: with u = (1, x, m, y), the moments Q = sum_i s_i u_i u_i' of the folds add up to those of any training
set. They give its means and deviations, and those of (1, z, m, y), because z is linear in (1, x, m). After centring,

    b = (G_mm - G_mx (G_xx + alpha)^-1 G_xm + beta)^-1 (c_m - G_mx (G_xx + alpha)^-1 c_x),
    w = (G_xx + alpha)^-1 (c_x - G_xm b),

where one eigendecomposition of G_xx serves all alpha, and for each alpha one of the matrix of b serves all beta. The
error of held-out rows is a quadratic form in their moments, so the rows are read once, whatever the grid.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from admiss.estimator.scaling import observed_moments, observed_scale, standardised
from formulations.arrays import FloatArray, IntArray
from formulations.erm.logistic_path import logistic_path
from formulations.erm.logistic_ridge import FEW_COLUMNS, ColumnSpace, RowSpace, Target, newton
from formulations.losses import Logistic

# An eigenvalue below this share of the largest counts as 0.
ZERO = 1e-10
# Rows per block when moments are summed: of 100 features they take 7 MB.
BLOCK_ROWS = 4096
# Rows from which the penalties of the logistic loss are selected; more would hardly matter.
SELECTION_ROWS = 20_000

Parts = frozenset[int]
Cell = tuple[float, float]


@dataclass(frozen=True)
class Solutions:
    """Coefficients for each cell and target, and the means and deviations that define z.

    ``w`` and ``b`` have shape (cells, targets, d), ``a`` (cells, targets). Means and deviations are in the units of the
    columns x; a constant feature has deviation 0 and z = 0.
    """

    w: FloatArray
    b: FloatArray
    a: FloatArray
    mean: FloatArray
    deviation: FloatArray

    def of_columns(self) -> FloatArray:
        """Coefficients of the columns (1, x, m), of shape (cells, targets, 1 + 2d)."""
        slope = self.w * _reciprocal(self.deviation)
        return np.concatenate([(self.a - slope @ self.mean)[..., None], slope, self.b + slope * self.mean], axis=-1)


class IndicatorRidge(ABC):
    """Base class of the ridge for a loss.

    Parameters
    ----------
    X : array of shape (n, d)
        Features with NaN.
    s : array of shape (n,)
        Weights of rows, all positive.
    held_out : list of int arrays
        The rows of each fold.
    cells : list of (alpha, beta)
    """

    def __init__(self, X: FloatArray, s: FloatArray, held_out: list[IntArray], cells: list[Cell]) -> None:
        self.d = X.shape[1]
        self.s = s
        self.held_out = held_out
        self.cells = cells
        self.mean, deviation, size, _ = observed_moments(X, s)
        self.unit, self.is_constant = observed_scale(deviation, size)
        self._solved: dict[Parts, FloatArray] = {}

    def errors(self, training: Parts, held: int) -> FloatArray:
        """Summed error on a fold of each cell, fitted to the rows of other folds."""
        if training not in self._solved:
            self._solved[training] = self._solve(training, self.cells, selecting=True).of_columns()
        return self._errors(self._solved[training], held)

    def coefficients(self, training: Parts, cell: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """w and b of shape (targets, d) in one cell, and the deviations in the units of X."""
        solutions = self._solve(training, [self.cells[cell]], selecting=False)
        return solutions.w[0], solutions.b[0], solutions.deviation * self.unit

    def _columns(self, X: FloatArray) -> FloatArray:
        """(1, x, m), with x standardised by its observed values, 0 where missing."""
        M = np.isnan(X)
        columns = np.empty((len(X), 1 + 2 * self.d))
        columns[:, 0] = 1.0
        columns[:, 1 : 1 + self.d] = np.where(M | self.is_constant, 0.0, (X - self.mean) / self.unit)
        columns[:, 1 + self.d :] = M
        return columns

    @abstractmethod
    def _solve(self, training: Parts, cells: list[Cell], selecting: bool) -> Solutions:
        """Solutions on the rows of some folds."""

    @abstractmethod
    def _errors(self, coefficients: FloatArray, held: int) -> FloatArray:
        """Errors on a fold, from the coefficients of the columns."""


class SquaredRidge(IndicatorRidge):
    """The squared loss of a numeric target, from moments.

    Examples
    --------
    >>> X, y = np.array([[0.0], [1.0], [2.0], [np.nan]]), np.array([1.0, 3.0, 5.0, 7.0])
    >>> ridge = SquaredRidge(X, y, np.ones(4), [np.arange(4)], [(0.0, 0.0)])
    >>> w, b, deviation = ridge.coefficients(frozenset([0]), 0)
    >>> (b / w * deviation).round(6).tolist()
    [[2.0]]
    """

    def __init__(
        self, X: FloatArray, y: FloatArray, s: FloatArray, held_out: list[IntArray], cells: list[Cell]
    ) -> None:
        super().__init__(X, s, held_out, cells)
        target = standardised(y[:, None], s)[0][:, 0]
        self.moments = [np.zeros((2 * self.d + 2, 2 * self.d + 2)) for _ in held_out]
        for part, test in enumerate(held_out):
            for start in range(0, len(test), BLOCK_ROWS):
                rows = test[start : start + BLOCK_ROWS]
                u = np.column_stack([self._columns(X[rows]), target[rows]])
                self.moments[part] += (u * s[rows, None]).T @ u

    def _solve(self, training: Parts, cells: list[Cell], selecting: bool) -> Solutions:
        Q = np.sum([self.moments[part] for part in sorted(training)], axis=0)
        d, total = self.d, Q[0, 0]
        x, m = slice(1, 1 + d), slice(1 + d, 1 + 2 * d)
        observed = total - Q[0, m]
        observed = np.where(observed > ZERO * total, observed, math.inf)  # never observed: mean and deviation 0
        mean = Q[0, x] / observed
        deviation = _deviation(np.diagonal(Q)[x] / observed - mean**2)
        scale = _reciprocal(deviation)
        for _ in range(2):  # z = scale (x - mean (1 - m)): in the rows of Q, then in its columns
            Q[x] = scale[:, None] * (Q[x] - mean[:, None] * (Q[0] - Q[m]))
            Q = Q.T
        centred = (Q[1:, 1:] - np.outer(Q[1:, 0] / total, Q[0, 1:])) / total
        w, b = _ridge_solutions(centred, d, cells)
        a = (Q[0, -1] - w @ Q[0, x] - b @ Q[0, m]) / total
        return Solutions(w[:, None], b[:, None], a[:, None], mean, deviation)

    def _errors(self, coefficients: FloatArray, held: int) -> FloatArray:
        residual = np.column_stack([coefficients[:, 0], np.full(len(coefficients), -1.0)])
        return np.asarray(np.sum((residual @ self.moments[held]) * residual, axis=1))


def _ridge_solutions(G: FloatArray, d: int, cells: list[Cell]) -> tuple[FloatArray, FloatArray]:
    """w and b for each cell, from the centred moments of (z, m, y)."""
    c_x, c_m = G[:d, -1], G[d:-1, -1]
    roots, U = np.linalg.eigh(G[:d, :d])
    w, b = np.zeros((len(cells), d)), np.zeros((len(cells), d))
    for alpha in {alpha for alpha, _ in cells}:
        inverse = (U * penalised_inverse(roots, alpha)) @ U.T
        response = inverse @ G[:d, d:-1]
        left, V = np.linalg.eigh(G[d:-1, d:-1] - G[d:-1, :d] @ response)
        unexplained = V.T @ (c_m - response.T @ c_x)
        for i, cell in enumerate(cells):
            if cell[0] == alpha:
                b[i] = V @ (penalised_inverse(left, cell[1]) * unexplained)
                w[i] = inverse @ c_x - response @ b[i]
    return w, b


def penalised_inverse(roots: FloatArray, penalty: float) -> FloatArray:
    """1 / (roots + penalty), or 0 for directions without variation and penalty."""
    sums = np.maximum(roots, 0.0) + penalty
    return np.where(sums > ZERO * max(roots[-1], ZERO), 1.0 / np.where(sums > 0, sums, 1.0), 0.0)


class LogisticRidge(IndicatorRidge):
    """The logistic loss of each class against the rest, or of the second of two classes.

    Examples
    --------
    >>> X, y = np.array([[0.0], [1.0], [0.0], [1.0], [np.nan], [np.nan]]), np.array([0, 1, 1, 0, 1, 1])
    >>> ridge = LogisticRidge(X, y, 2, np.ones(6), [np.arange(6)], [(0.1, 0.1)])
    >>> w, b, _ = ridge.coefficients(frozenset([0]), 0)
    >>> bool(abs(w[0, 0]) < 1e-6), bool(b[0, 0] > 0)
    (True, True)
    """

    def __init__(
        self, X: FloatArray, y: IntArray, n_classes: int, s: FloatArray, held_out: list[IntArray], cells: list[Cell]
    ) -> None:
        super().__init__(X, s, held_out, cells)
        self.columns = self._columns(X)
        self.targets = [np.where(y == k, 1.0, -1.0) for k in (range(n_classes) if n_classes > 2 else [1])]
        self.stride = math.ceil(len(X) / SELECTION_ROWS)

    def _solve(self, training: Parts, cells: list[Cell], selecting: bool) -> Solutions:
        rows = np.sort(np.concatenate([self.held_out[part] for part in training]))
        tolerance = 1e-9
        if selecting:
            rows = rows[:: self.stride]
            tolerance = 1e-5
        d, q = self.d, self.s[rows] / self.s[rows].sum()
        A, mean, deviation = standardised_columns(self.columns[rows], q)
        solved = [_logistic_solutions(A, target[rows], q, cells, tolerance) for target in self.targets]
        coefficients = np.stack(solved, axis=1)
        return Solutions(coefficients[..., :d], coefficients[..., d:-1], coefficients[..., -1], mean, deviation)

    def _errors(self, coefficients: FloatArray, held: int) -> FloatArray:
        rows = self.held_out[held][:: self.stride]
        errors = np.zeros(len(coefficients))
        for k, target in enumerate(self.targets):
            scores = self.columns[rows] @ coefficients[:, k].T
            errors += self.s[rows] @ np.logaddexp(0.0, -target[rows, None] * scores)
        return errors


def _logistic_solutions(A: FloatArray, y: FloatArray, q: FloatArray, cells: list[Cell], tolerance: float) -> FloatArray:
    """(w, b, a) for each cell."""
    d = A.shape[1] // 2
    coefficients = np.zeros((len(cells), 2 * d + 1))
    if np.ptp(y) == 0:
        coefficients[:, -1] = 30.0 * y[0]  # log-odds of a class that all rows have, or that none has
        return coefficients
    if 2 * d > FEW_COLUMNS and min(map(min, cells)) > 0:
        return _newton_solutions(A, y, q, cells, tolerance)
    columns = np.insert(A, 0, 1.0, axis=1)
    for i, (alpha, beta) in enumerate(cells):
        if i == 0 or alpha != cells[i - 1][0]:  # the last solution has weaker penalties, and can be far
            start = np.zeros(2 * d + 1)
        width = 1 + (d if math.isinf(beta) else 2 * d)
        v2 = np.concatenate([[0.0], np.repeat([alpha, beta], d)])[:width]
        path = logistic_path(
            columns[:, :width], 1, y, q, np.zeros(width), v2, np.ones(1), tolerance, start[:width].copy()
        )
        start = np.zeros(2 * d + 1)
        start[:width] = path.w[0]
        coefficients[i] = np.roll(start, -1)
    return coefficients


def _newton_solutions(A: FloatArray, y: FloatArray, q: FloatArray, cells: list[Cell], tolerance: float) -> FloatArray:
    """The same in the space of columns or of rows, whichever is smaller, see :mod:`formulations.erm.logistic_ridge`."""
    n, width = A.shape
    d = width // 2
    E = np.ones((n, 1))
    target = Target(Logistic(), y, q)
    coefficients = np.zeros((len(cells), width + 1))
    penalties = np.array([np.repeat(cell, d) for cell in cells])
    if n < width:
        kernels = [part @ part.T for part in (A[:, :d], A[:, d:])]
        c = np.zeros(n + 1)
        for i, (alpha, beta) in enumerate(cells):
            space = RowSpace(kernels[0] / alpha + kernels[1] / beta, E, q)
            c, _ = newton(space, target, 1.0, c, tolerance)
            coefficients[i] = np.append((c[:n] @ A) / penalties[i], c[n])
        return coefficients
    for i in range(len(cells)):
        used = np.append(np.isfinite(penalties[i]), True)
        v, start = penalties[i][used[:-1]], coefficients[i - 1, used]
        columns = ColumnSpace(A[:, used[:-1]], E, q, v)
        units = np.append(np.sqrt(v), 1.0)
        coefficients[i, used] = newton(columns, target, 1.0, units * start, tolerance)[0] / units
    return coefficients


def standardised_columns(columns: FloatArray, q: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """(z, m) from (1, x, m) of training rows with weights q that sum to 1, and the means and deviations of z."""
    d = columns.shape[1] // 2
    x, m = columns[:, 1 : 1 + d], columns[:, 1 + d :]
    observed = q @ (1.0 - m)
    observed = np.where(observed > ZERO, observed, math.inf)  # never observed: mean and deviation 0
    mean = q @ x / observed
    centred = x - mean * (1.0 - m)
    deviation = _deviation(q @ centred**2 / observed)
    return np.hstack([centred * _reciprocal(deviation), m]), mean, deviation


def _deviation(variance: FloatArray) -> FloatArray:
    deviation = np.sqrt(np.maximum(variance, 0.0))
    return np.where(deviation > 1e-7, deviation, 0.0)  # as a share of the deviation in all rows: less is rounding


def _reciprocal(deviation: FloatArray) -> FloatArray:
    """1 / deviation, or 0 if it is 0."""
    return np.where(deviation > 0, 1.0 / np.where(deviation > 0, deviation, 1.0), 0.0)
