"""Cross-validated errors of one adaptivity class over a grid of penalties.

In every fold the model is fitted on the other rows along a path of lambda, for each pair (alpha, c) of l1_ratio and
adaptive penalty, and its loss on the held-out rows is summed. Everything that a fit learns (the basis, the scale of the
features, the counts n_k) is learned on the training rows of the fold. If the basis comes out the same as on all rows,
which is the rule, the sufficient statistics of the fold are the total minus the held-out ones.

The lambdas are geometric, from the smallest at which all penalised coefficients are 0 on all rows.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import scipy.sparse as sp
from joblib import Parallel, delayed

from admiss.adaptivity import Adaptivity
from admiss.estimator.folds import FoldedRows
from admiss.linear.design import Design, fit_design
from admiss.linear.fit import MAX_COLUMNS, MAX_OFFSET, squared_path, squared_quadratic
from admiss.linear.logistic_problem import LogisticProblem, is_separable, outside_one_class_cells
from admiss.linear.moments import Moments, Quadratic, eliminate, held_out_error, linear_term, moments_of
from admiss.linear.penalty import Penalty, penalty_weights
from admiss.linear.weighted_rows import WeightedRows, shift_of
from admiss.terminal.progress import progress
from formulations.arrays import FloatArray
from formulations.erm.risk import EmpiricalRisk, centred
from formulations.losses import Logistic

# alpha is at least this when the largest lambda is computed: that of ridge is infinite.
SMALLEST_ALPHA = 1e-3
# The conditions of a logistic fit in a path hold to this share of the size of their column.
PATH_TOLERANCE = 5e-6
# A fit with a larger violation is discarded.
UNFINISHED = 1e-3
# Lambdas between two checks of the error, if a path may stop early.
CHUNK = 10

FoldPath = Callable[[int, float, FloatArray, Any], tuple[FloatArray, FloatArray, Any]]
Weights = list[tuple[FloatArray, FloatArray]]


@dataclass(frozen=True)
class GridOptions:
    """The grid that is crossed with every adaptivity class, and what all of its fits share."""

    l1_ratios: Sequence[float]
    adaptive_penalties: Sequence[float]
    n_lambdas: int
    eps: float | None
    penalty_weights: str
    scale: bool
    fit_intercept: bool
    stop_early: bool

    def design(self, X: FloatArray, s: FloatArray, adaptivity: Adaptivity) -> Design:
        """The design of an adaptivity class on some rows; features that are not scaled are so inside, see `weights`."""
        design = fit_design(X, s, adaptivity, scale=self.scale, fit_intercept=self.fit_intercept)
        return design if self.scale else design.in_powers_of_two()[0]

    def weights(self, design: Design, X: FloatArray, s: FloatArray) -> Weights:
        """u1 and u2 of the columns, for each adaptive penalty."""
        kind, standardise = self.penalty_weights, self.scale
        divisor = np.ones(len(design.pairs)) if self.scale else design.column_scale
        parts = [
            penalty_weights(design, X, s, kind=kind, adaptive_penalty=c, standardise=standardise)
            for c in self.adaptive_penalties
        ]
        return [(u1 / divisor, u2 / divisor**2) for u1, u2 in parts]


@dataclass(frozen=True)
class ClassFolds:
    """The folds of one adaptivity class, ready for paths.

    Attributes
    ----------
    name : str
        The class in words.
    n_columns : int
        Columns of its design on all rows.
    largest : array of shape (n_penalties,)
        For each adaptive penalty, alpha times the smallest lambda at which all penalised coefficients are 0.
    eps : float
        Smallest lambda as a share of the largest.
    paths : list of callables
        One function per fold of (adaptive penalty index, alpha, lambdas, state) that returns, for each lambda, the
        summed loss on the held-out rows and the violation of the optimality conditions, and a state from which the path
        can continue.
    weight : float
        Weight of all held-out rows.
    """

    name: str
    n_columns: int
    largest: FloatArray
    eps: float
    paths: list[FoldPath]
    weight: float


def path_cells(folds: list[ClassFolds], options: GridOptions, n_jobs: int | None) -> Iterator[dict[str, Any]]:
    """The cells of each path of every class, as columns of a table of results."""
    tasks = list(product(range(len(folds)), range(len(options.adaptive_penalties)), options.l1_ratios))
    runs = Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")(
        delayed(_path_errors)(folds[k], c, alpha, options) for k, c, alpha in tasks
    )
    paths = progress(runs, len(tasks), "cross-validation: paths")
    for (k, c, alpha), (lambdas, errors, violations) in zip(tasks, paths, strict=True):
        yield {
            "class_index": k,
            "adaptivity": folds[k].name,
            "columns": folds[k].n_columns,
            "adaptive_penalty": options.adaptive_penalties[c],
            "l1_ratio": alpha,
            "lam": lambdas,
            "mean_loss": errors.sum(axis=0) / folds[k].weight,
            "violation": violations,
        }


def _path_errors(
    folds: ClassFolds, penalty: int, alpha: float, options: GridOptions
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Lambdas, the held-out loss by fold and lambda (NaN after an early stop), and the largest violations."""
    largest = folds.largest[penalty] / max(alpha, SMALLEST_ALPHA)
    lambdas = np.geomspace(largest, folds.eps * largest, options.n_lambdas)
    errors, violations = np.full((2, len(folds.paths), options.n_lambdas), np.nan)
    states: list[Any] = [None] * len(folds.paths)
    size = CHUNK if options.stop_early else options.n_lambdas
    for start in range(0, options.n_lambdas, size):
        part = slice(start, start + size)
        for f, path in enumerate(folds.paths):
            errors[f, part], violations[f, part], states[f] = path(penalty, alpha, lambdas[part], states[f])
        total = errors[:, : part.stop].sum(axis=0)
        best = int(total.argmin())
        # clearly past the minimum: by more than a tenth, for the whole last chunk
        if options.stop_early and best < start and total[part].min() > 1.1 * total[best]:
            break
    errors[violations > UNFINISHED] = np.inf
    return lambdas, errors, violations.max(axis=0)


def _narrow_design(X: FloatArray, s: FloatArray, adaptivity: Adaptivity, options: GridOptions) -> Design:
    """The design of all rows, if fast paths apply to it."""
    design = options.design(X, s, adaptivity)
    if len(design.pairs) > MAX_COLUMNS:
        raise ValueError(
            f"{adaptivity!r} has {len(design.pairs):,} columns, and fast paths go up to {MAX_COLUMNS:,}: "
            "leave it out, or search with scikit-learn's GridSearchCV."
        )
    far = np.flatnonzero(np.abs(design.mean) > MAX_OFFSET * design.spread)
    if len(far):
        listed = ", ".join(str(j) for j in design.features[far][:5])
        raise ValueError(
            f"The features in columns {listed} of X lie more than {MAX_OFFSET:,.0f} standard deviations away from 0: "
            "centre them first, for instance with scikit-learn's StandardScaler."
        )
    return design


def _class_folds(
    adaptivity: Adaptivity,
    design: Design,
    rows: FoldedRows,
    gradient: FloatArray,
    paths: list[FoldPath],
    options: GridOptions,
) -> ClassFolds:
    """The folds, given the gradient on all rows in the penalised columns if all their coefficients are 0."""
    penalties = [u1[~design.free] for u1, _ in options.weights(design, rows.X, rows.s)]
    slopes = [float(np.max(np.abs(gradient)[u1 > 0] / u1[u1 > 0], initial=0.0)) for u1 in penalties]
    largest = np.array([slope if slope > 0 else 1.0 for slope in slopes])
    eps = options.eps or (1e-2 if len(rows.X) < len(design.pairs) else 1e-4)
    weight = sum(float(rows.s[test].sum()) for _, test in rows.splits)
    return ClassFolds(repr(adaptivity), len(design.pairs), largest, eps, paths, weight)


def squared_folds(rows: FoldedRows, adaptivity: Adaptivity, options: GridOptions) -> ClassFolds:
    """The folds of one class for the squared loss."""
    X, (y,), s = rows.X, rows.targets, rows.s
    design = _narrow_design(X, s, adaptivity, options)
    shift = shift_of(design, X, y, s)
    total: Moments | None = None
    paths = []
    for train, test in rows.splits:
        own = options.design(X[train], s[train], design.adaptivity)
        if _same_columns(own, design) and np.array_equal(np.sort(np.concatenate([train, test])), np.arange(len(X))):
            if total is None:
                total = moments_of(WeightedRows(design, X, y, s, shift))
            held = moments_of(WeightedRows(design, X[test], y[test], s[test], shift))
            columns = np.flatnonzero(np.isin(design.position, own.position))
            quadratic = eliminate((total - held).selected(columns), own.free, shift.selected(columns))
            quadratic = quadratic.in_units(design.column_scale[columns] / own.column_scale)
        else:
            fold = X[train], y[train], s[train]
            quadratic = squared_quadratic(WeightedRows(own, *fold, shift_of(own, *fold)))
        error = held_out_error(own, quadratic, X[test], y[test], s[test])
        paths.append(_squared_fold(quadratic, options.weights(own, X[train], s[train]), error))
    moments = moments_of(WeightedRows(design, X, y, s, shift)) if total is None else total
    return _class_folds(adaptivity, design, rows, linear_term(moments, design.free), paths, options)


def _same_columns(own: Design, design: Design) -> bool:
    """Whether the columns of the design of a fold are some of ``design`` in other units."""
    first, second = vars(own.adaptivity), vars(design.adaptivity)
    return (
        np.array_equal(own.features, design.features)
        and np.array_equal(own.missable, design.missable)
        and first.keys() == second.keys()
        and all(np.array_equal(first[name], second[name]) for name in first)
        and set(own.position) <= set(design.position)
    )


def _squared_fold(quadratic: Quadratic, weights: Weights, error: Callable[[FloatArray], FloatArray]) -> FoldPath:
    def path(penalty: int, alpha: float, lambdas: FloatArray, state: Any) -> tuple[FloatArray, FloatArray, Any]:
        found = squared_path(quadratic, Penalty(alpha, 1.0 - alpha, *weights[penalty]), lambdas, state)
        return error(found.w), found.violation, found.w[-1]

    return path


def logistic_folds(rows: FoldedRows, adaptivity: Adaptivity, options: GridOptions) -> ClassFolds:
    """The folds of one class for the logistic loss, summed over targets (one against the rest)."""
    X, targets, s = rows.X, rows.targets, rows.s
    design = _narrow_design(X, s, adaptivity, options)
    paths = []
    for train, test in rows.splits:
        own = options.design(X[train], s[train], adaptivity)
        A, q = _dense(own, X[train]), s[train] / s[train].sum()
        problems = []
        for y in targets:
            certain, risk = outside_one_class_cells(own, EmpiricalRisk(A, y[train], q, Logistic()))
            problems.append(LogisticProblem.of(risk, own.free, certain))
        weights, tests = options.weights(own, X[train], s[train]), [y[test] for y in targets]
        paths.append(_logistic_fold(problems, weights, _dense(own, X[test]), tests, s[test]))
    A, q = _dense(design, X), s / s.sum()
    gradients = []
    for y in targets:
        risk = centred(EmpiricalRisk(A, y, q, Logistic()), design.free).risk
        root, E = np.sqrt(q), A[:, design.free]
        mean = E @ np.linalg.lstsq(root[:, None] * E, root * y, rcond=None)[0]
        # at the best free coefficients the derivative of the loss is (mean of y - y) / 2
        gradients.append(np.abs(risk.A[:, ~design.free].T @ (q * (mean - y) / 2.0)))
    return _class_folds(adaptivity, design, rows, np.max(gradients, axis=0), paths, options)


def _dense(design: Design, X: FloatArray) -> FloatArray:
    A = design.whole(X)
    return A.toarray() if sp.issparse(A) else A


def _logistic_fold(
    problems: list[LogisticProblem], weights: Weights, A: FloatArray, targets: list[FloatArray], s: FloatArray
) -> FoldPath:
    """The path on the problems of a fold, one per target, with columns, targets and weights of the held-out rows."""
    separable = [
        any(is_separable(p.projected.risk, p.projected.free, Penalty(1.0, 1.0, u1, u2)) for p in problems)
        for u1, u2 in weights
    ]

    def path(penalty: int, alpha: float, lambdas: FloatArray, state: Any) -> tuple[FloatArray, FloatArray, Any]:
        errors, violations = np.zeros((2, len(lambdas)))
        if separable[penalty]:
            return errors + np.inf, violations, None
        states = []
        for t, problem in enumerate(problems):
            start = None if state is None else state[t]
            found = problem.path(Penalty(alpha, 1.0 - alpha, *weights[penalty]), lambdas, start, PATH_TOLERANCE)
            violations = np.maximum(violations, found.violation)
            states.append(found.w[-1])
            errors += s @ Logistic().value(targets[t][:, None], A @ problem.restore(found.w).T)
        return errors, violations, states

    return path
