"""Imputed values in closed form, from a linear model of the target (Section 3.1 of the paper).

A ridge on z, the standardised observed values with 0 where missing, and on the indicators m of missing values predicts
a + w'z + b'm (:mod:`admiss.joint.indicator_ridge`). The imputed values make w_j z_j + b_j m_j one linear term:

    mu_j = mean_j + deviation_j delta_j,   delta_j = b_j / w_j  clipped to [-4, 4],   delta_j = 0 if w_j = 0.

b = 0, an infinite penalty on m, is mean imputation. Several classes are fitted one against the rest with the same
penalties and share one mu: delta_j = sum_k w_kj b_kj / sum_k w_kj^2, the least squares solution of b_kj = w_kj delta_j.

Both penalties are selected by cross-validation of this linear model. A second cross-validation decides whether f gains
by mu; it recomputes means, deviations, penalties, mu and f in each fold, and mu is used if its held-out error is below
that of the means. Within a fold of the second cross-validation, the folds of the first are the other folds: every
training set is all rows without one fold or without two.

With the squared loss and fewer rows than features, the ridge is solved in the space of rows. Let A, B and t be the
centred z, m and y of a training set, rows times the roots of their shares of the weight. With P = 1 - A (A'A +
alpha)^-1 A', which has the eigenvectors of AA',

    b = B' P^(1/2) (P^(1/2) BB' P^(1/2) + beta)^-1 P^(1/2) t,      w = A' (AA' + alpha)^-1 (t - B b),

and all decompositions are of n x n matrices.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from admiss.estimator.cross_validation import Split, make_folds
from admiss.estimator.notices import warn
from admiss.estimator.scaling import standardised
from admiss.joint.indicator_ridge import (
    Cell,
    IndicatorRidge,
    LogisticRidge,
    Parts,
    Solutions,
    SquaredRidge,
    penalised_inverse,
    standardised_columns,
)
from admiss.joint.problem import Imputation, JointProblem, Round, imputed
from admiss.terminal.progress import progress
from formulations.arrays import FloatArray, IntArray
from formulations.jit import is_interrupt


@dataclass(frozen=True)
class ClosedForm:
    """The closed form as an ``ImputationSearch``.

    Parameters
    ----------
    penalties : sequence of float
        Candidates for the penalty on the indicators; infinity is mean imputation.
    feature_penalties : sequence of float
        Candidates for the penalty on the features.
    limit : float
        Largest distance of mu from the mean, in standard deviations.
    folds : int
        Number of folds of both cross-validations, at least 3, and at most the number of rows.
    gate : bool
        Whether mu is used only if cross-validation of f prefers it to the means; this takes two fits of f per fold.

    Notes
    -----
    With the squared loss and five folds, the linear model is fitted to 15 training sets, each in O(min(n, d)^3) time:
    on one core all of them take 1 s for 300 rows and 800 features, 7 s for 1000 rows and 800 features, and 4 s for
    400,000 rows and 40 features. The rows are read in blocks and not copied.

    Examples
    --------
    y is 2x if x is observed, and 10 on average if it is missing, as if x were 5.

    >>> from sklearn.linear_model import LinearRegression
    >>> X = np.array([[0.0], [1.0], [2.0], [np.nan], [np.nan]])
    >>> y = np.array([0.0, 2.0, 4.0, 9.0, 11.0])
    >>> problem = JointProblem(X, y, np.ones(5), LinearRegression(), "squared")
    >>> plain = ClosedForm(penalties=[0.0], feature_penalties=[0.0], limit=np.inf, gate=False)
    >>> plain(problem, np.random.RandomState(0)).mu.round(6).tolist()
    [5.0]
    """

    penalties: Sequence[float] = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, math.inf)
    feature_penalties: Sequence[float] = (1e-4, 1e-2, 1.0)
    limit: float = 4.0
    folds: int = 5
    gate: bool = True

    def __call__(self, problem: JointProblem, random_state: np.random.RandomState) -> Imputation:
        """Impute by the closed form, or by the means."""
        self._check()
        if not (problem.sample_weight > 0).all():
            raise ValueError("Weights of rows must be positive: use problem.weighted_rows().")
        means = problem.means()
        if not np.isnan(problem.X).any():
            return Imputation(means, note="the mean: nothing is missing")
        if len(problem.X) < 3:
            return Imputation(means, note="the mean: there are fewer than 3 rows")
        labels = problem.y.astype(int) if problem.n_classes else None
        n_folds = min(self.folds, len(problem.X))
        splits = make_folds(problem.X, problem.y, labels, problem.sample_weight, n_folds, random_state)
        ridge = self._ridge(problem, splits)
        mu, (alpha, beta) = self._imputation(ridge, frozenset(range(n_folds)), means)
        selected = f"penalty {beta:g} of the indicators and {alpha:g} of the features"
        if np.array_equal(mu, means):
            return Imputation(means, note=f"the mean: the closed form agrees with it, {selected}")
        moves = tuple((int(j), float(mu[j] - means[j])) for j in np.flatnonzero(mu != means))
        if not self.gate:
            return Imputation(mu, (Round(math.nan, moves),), f"the closed form, not compared with the mean, {selected}")
        try:
            at_mean, at_mu = self._held_out_errors(problem, splits, ridge)
        except _PredictorError as failure:
            warn(f"{failure}; missing values are set to the mean.")
            return Imputation(means, note=f"the mean: {failure}")
        if not at_mu < at_mean:
            note = f"the mean: cross-validated error {at_mean:.6g} against {at_mu:.6g} for the closed form, {selected}"
            return Imputation(means, (Round(at_mean),), note)
        note = f"kept: cross-validated error {at_mu:.6g} against {at_mean:.6g} for the mean, {selected}"
        return Imputation(mu, (Round(at_mean, moves), Round(at_mu)), note)

    def _check(self) -> None:
        for name in ("penalties", "feature_penalties"):
            values = np.asarray(getattr(self, name), dtype=float)
            if values.ndim != 1 or not len(values) or not (values >= 0).all():
                raise ValueError(f"{name} must be a list of non-negative numbers, not {getattr(self, name)!r}.")
        if not np.isfinite(np.asarray(self.feature_penalties, dtype=float)).all():
            raise ValueError("feature_penalties must be finite; only penalties may be infinite.")
        if not self.limit >= 0:
            raise ValueError(f"limit must be a non-negative number, not {self.limit!r}.")
        if not isinstance(self.folds, int | np.integer) or self.folds < 3:
            raise ValueError(f"folds must be an integer of at least 3, not {self.folds!r}.")

    def _ridge(self, problem: JointProblem, splits: list[Split]) -> IndicatorRidge:
        # the largest penalties come first and win ties
        grids = [sorted(map(float, grid), reverse=True) for grid in (self.feature_penalties, self.penalties)]
        cells = [(alpha, beta) for alpha, beta in product(*grids)]
        held_out = [test for _, test in splits]
        X = problem.X
        y = problem.y
        s = problem.sample_weight
        if problem.n_classes:
            return LogisticRidge(X, y.astype(int), problem.n_classes, s, held_out, cells)
        kind = RowRidge if len(X) < X.shape[1] else SquaredRidge
        return kind(X, y.astype(float), s, held_out, cells)

    def _imputation(self, ridge: IndicatorRidge, parts: Parts, means: FloatArray) -> tuple[FloatArray, Cell]:
        """mu from the rows of some folds, with the penalties selected by cross-validation over these folds."""
        best = 0
        if len(ridge.cells) > 1:
            best = int(np.argmin(np.sum([ridge.errors(parts - {part}, part) for part in sorted(parts)], axis=0)))
        w, b, deviations = ridge.coefficients(parts, best)
        size = np.sqrt(np.sum(w**2, axis=0))
        # a coefficient below 1e-10 of the largest counts as 0, and so does a move of 1e-10 standard deviations
        used = size > 1e-10 * size.max()
        delta = np.where(used, np.sum(w * b, axis=0) / np.where(used, size, 1.0) ** 2, 0.0)
        delta = np.where(np.abs(delta) > 1e-10, np.clip(delta, -self.limit, self.limit), 0.0)
        return means + deviations * delta, ridge.cells[best]

    def _held_out_errors(self, problem: JointProblem, splits: list[Split], ridge: IndicatorRidge) -> tuple[float, ...]:
        """Cross-validated errors of f with the means and with mu."""
        parts = frozenset(range(len(splits)))
        at_mean, at_mu = (np.zeros((len(problem.X), max(problem.n_classes, 1))) for _ in range(2))
        for part, (rows, test) in enumerate(progress(splits, len(splits), "comparing imputed values")):
            training = problem.rows(rows)
            means = training.means()
            mu, _ = self._imputation(ridge, parts - {part}, means)
            at_mean[test] = _outputs(training, means, problem.X[test])
            at_mu[test] = at_mean[test] if np.array_equal(mu, means) else _outputs(training, mu, problem.X[test])
        choices = (at_mean, at_mu) if problem.n_classes else (at_mean[:, 0], at_mu[:, 0])
        return tuple(problem.total_error(outputs) for outputs in choices)


class _PredictorError(Exception):
    """f could not be fitted, or failed to predict."""


def _outputs(training: JointProblem, mu: FloatArray, X: FloatArray) -> FloatArray:
    """Outputs for other rows of f fitted with mu: one column, or one per class."""
    try:
        outputs = training.outputs(training.fit(mu), imputed(X, mu))
        return outputs.reshape(len(X), max(training.n_classes, 1))
    except Exception as failure:
        if is_interrupt(failure):
            raise
        name = type(training.estimator).__name__
        raise _PredictorError(f"{name} failed in cross-validation ({failure})") from failure


class RowRidge(IndicatorRidge):
    """The squared loss of a numeric target, from rows; parameters and results as in ``SquaredRidge``."""

    def __init__(
        self, X: FloatArray, y: FloatArray, s: FloatArray, held_out: list[IntArray], cells: list[Cell]
    ) -> None:
        super().__init__(X, s, held_out, cells)
        self.columns = self._columns(X)
        self.target = standardised(y[:, None], s)[0][:, 0]

    def _solve(self, training: Parts, cells: list[Cell], selecting: bool) -> Solutions:
        rows = np.sort(np.concatenate([self.held_out[part] for part in training]))
        d, q = self.d, self.s[rows] / self.s[rows].sum()
        zm, mean, deviation = standardised_columns(self.columns[rows], q)
        y = self.target[rows]
        level, y_level = q @ zm, q @ y
        root = np.sqrt(q)
        centred = (zm - level) * root[:, None]
        w, b = _row_solutions(centred[:, :d], centred[:, d:], (y - y_level) * root, cells)
        a = y_level - w @ level[:d] - b @ level[d:]
        return Solutions(w[:, None], b[:, None], a[:, None], mean, deviation)

    def _errors(self, coefficients: FloatArray, held: int) -> FloatArray:
        rows = self.held_out[held]
        residuals = self.target[rows, None] - self.columns[rows] @ coefficients[:, 0].T
        return np.asarray(self.s[rows] @ residuals**2)


def _row_solutions(A: FloatArray, B: FloatArray, t: FloatArray, cells: list[Cell]) -> tuple[FloatArray, FloatArray]:
    """w and b for each cell."""
    roots, U = np.linalg.eigh(A @ A.T)
    roots = np.maximum(roots, 0.0)
    K = U.T @ (B @ B.T) @ U
    w, b = np.zeros((len(cells), A.shape[1])), np.zeros((len(cells), A.shape[1]))
    for alpha in {alpha for alpha, _ in cells}:
        shrunk = penalised_inverse(roots, alpha)
        half = np.sqrt(np.maximum(1.0 - roots * shrunk, 0.0))  # P^(1/2), in the coordinates of U
        half[half < 1e-7] = 0.0  # the root of a rounded 0
        left, V = np.linalg.eigh(half[:, None] * K * half)
        unexplained = V.T @ (half * (U.T @ t))
        for i, cell in enumerate(cells):
            if cell[0] == alpha:
                b[i] = B.T @ (U @ (half * (V @ (penalised_inverse(left, cell[1]) * unexplained))))
                w[i] = A.T @ (U @ (shrunk * (U.T @ (t - B @ b[i]))))
    return w, b
