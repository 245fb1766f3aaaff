"""The folds of one adaptivity class, ready for paths of lambda.

In every fold the model is fitted on the other rows along a path of lambda, for each pair (alpha, c) of l1_ratio and
adaptive penalty, and its loss on the held-out rows is summed. Everything that a fit learns (the basis, means and scales
of the features, the counts n_k) is learned on the training rows of the fold: from these rows, or from sums over them,
which are the sum of those of the other folds.

The lambdas are geometric, from the smallest at which all penalised coefficients are 0 on all rows. For ridge there is
none: its path is set by the curvature h_k of the risk in column k, and covers multiples of max_k h_k / u_k.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from admiss.adaptivity import Adaptivity
from admiss.estimator.cv import FoldedRows
from admiss.estimator.scaling import power_of_two
from admiss.linear.design import MAX_COLUMNS, MAX_OFFSET, Design, far_from_origin, fit_design
from admiss.linear.logistic import LogisticProblem, is_separable, outside_one_class_cells, summed_losses
from admiss.linear.penalty import Penalty, penalty_weights
from admiss.linear.squared import Quadratic, Training, TrainingRows, curvature, eliminate, linear_term, squared_path
from admiss.linear.training_patterns import TrainingPatterns
from admiss.linear.training_sums import TrainingSums, sums_are_faster
from formulations.arrays import FloatArray, IntArray
from formulations.erm.risk import EmpiricalRisk, centred
from formulations.losses import Logistic

# Rules for the range of lambda: that of glmnet, and one of its own for ridge.
EPS_RULES = ("auto", "glmnet")
# alpha is at least this when the largest lambda is computed by the rule of glmnet: that of ridge is infinite.
SMALLEST_ALPHA = 1e-3
# Largest and smallest lambda of ridge, as multiples of the one at which the penalty equals the curvature of the risk.
RIDGE_RANGE = (1e2, 1e-6)

FoldPath = Callable[[int, float, FloatArray, Any, float], tuple[FloatArray, FloatArray, Any]]
Weights = list[tuple[FloatArray, FloatArray]]


@dataclass(frozen=True)
class GridOptions:
    """The grid that is crossed with every adaptivity class, and what all of its fits share."""

    l1_ratios: Sequence[float]
    adaptive_penalties: Sequence[float]
    n_lambdas: int
    eps: float | str
    penalty_weights: str
    center: bool
    scale: bool
    fit_intercept: bool
    stop_early: bool

    def design(self, X: FloatArray, s: FloatArray, adaptivity: Adaptivity) -> Design:
        """The design of an adaptivity class on some rows; features that are not scaled are so inside, see `weights`."""
        return self.in_units(fit_design(X, s, adaptivity, **self.of_design))

    def in_units(self, design: Design) -> Design:
        """The design in the units of the paths."""
        return design if self.scale else design.in_powers_of_two()[0]

    @property
    def of_design(self) -> dict[str, bool]:
        """The options of a design."""
        return {"center": self.center, "scale": self.scale, "fit_intercept": self.fit_intercept}

    def weights(self, design: Design, X: FloatArray | None = None, s: FloatArray | None = None) -> Weights:
        """u1 and u2 of the columns, for each adaptive penalty; rows matter only for the authors' weights."""
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
    balanced : array of shape (n_penalties,)
        For each adaptive penalty, the smallest lambda at which a ridge is at least the curvature of the risk.
    eps : float
        Smallest lambda as a share of the largest.
    paths : list of callables
        One function per fold of (adaptive penalty index, alpha, lambdas, state, tolerance) that returns, for each
        lambda, the summed loss on the held-out rows and the violation of the optimality conditions, and a state from
        which the path can continue.
    weight : float
        Weight of all held-out rows.
    exact : bool
        Whether the paths are exact whatever the tolerance.
    """

    name: str
    n_columns: int
    largest: FloatArray
    balanced: FloatArray
    eps: float
    paths: list[FoldPath]
    weight: float
    exact: bool

    def lambdas(self, penalty: int, alpha: float, options: GridOptions) -> FloatArray:
        """The lambdas of a path, from large to small."""
        if alpha == 0.0 and options.eps != "glmnet":
            large, small = (factor * float(self.balanced[penalty]) for factor in RIDGE_RANGE)
            return np.geomspace(large, small if options.eps == "auto" else self.eps * large, options.n_lambdas)
        largest = self.largest[penalty] / max(alpha, SMALLEST_ALPHA)
        return np.geomspace(largest, self.eps * largest, options.n_lambdas)


def check_narrow(design: Design, adaptivity: Adaptivity) -> None:
    """Raise an error if fast paths do not apply to the design of all rows."""
    if len(design.pairs) > MAX_COLUMNS:
        raise ValueError(
            f"{adaptivity!r} has {len(design.pairs):,} columns, and fast paths go up to {MAX_COLUMNS:,}: "
            "leave it out, or search with scikit-learn's GridSearchCV."
        )
    far = far_from_origin(design)
    if len(far):
        listed = ", ".join(str(j) for j in design.features[far][:5])
        raise ValueError(
            f"The features in columns {listed} of X lie more than {MAX_OFFSET:,.0f} standard deviations away from 0: "
            "use center=True."
        )


def lambda_ranges(
    design: Design, n_rows: int, weights: Weights, gradient: FloatArray, curvatures: FloatArray, options: GridOptions
) -> tuple[FloatArray, FloatArray, float]:
    """``largest``, ``balanced`` and ``eps`` of :class:`ClassFolds`.

    Gradient and curvatures are those of the risk on all rows in the penalised columns, at coefficients 0.
    """
    largest = [_largest_ratio(np.abs(gradient), u1[~design.free]) for u1, _ in weights]
    balanced = [_largest_ratio(curvatures, u2[~design.free]) for _, u2 in weights]
    by_rule = 1e-2 if n_rows < len(design.pairs) else 1e-4
    return np.array(largest), np.array(balanced), by_rule if isinstance(options.eps, str) else options.eps


def _largest_ratio(size: FloatArray, u: FloatArray) -> float:
    """The largest size_k / u_k, 1 if all are 0."""
    return float(np.max(size[u > 0] / u[u > 0], initial=0.0)) or 1.0


def squared_folds(rows: FoldedRows, adaptivity: Adaptivity, options: GridOptions) -> ClassFolds:
    """The folds of one class for the squared loss on rows in memory; by sums over the rows if that is faster."""
    X, (y,), s = rows.X, rows.targets, rows.s
    fold = _fold_of_rows(rows)
    if fold is not None and options.penalty_weights == "count" and sums_are_faster(X, adaptivity):
        return folds_of_sums(TrainingSums.of_rows(X, y, s, fold, adaptivity), adaptivity, options)
    whole = TrainingRows(X, y, s)
    folds = [(whole.part(train), whole.part(test)) for train, test in rows.splits]
    return training_folds(whole, folds, adaptivity, options)


def folds_of_sums(sums: TrainingSums | TrainingPatterns, adaptivity: Adaptivity, options: GridOptions) -> ClassFolds:
    """The folds of one class for the squared loss; ``sums`` are those of all folds."""
    folds = []
    for f in sums.folds.tolist():
        held = sums.within(np.array([f]))
        if not held.n_rows:
            raise ValueError(f"Fold {f} has no rows: collect the statistics with fewer folds (--cv).")
        folds.append((sums.within(np.delete(sums.folds, f)), held))
    return training_folds(sums, folds, adaptivity, options)


def _fold_of_rows(rows: FoldedRows) -> IntArray | None:
    """The fold in which each row is held out; None if rows are not held out once, and in training otherwise."""
    fold = np.full(len(rows.X), -1)
    for f, (train, test) in enumerate(rows.splits):
        if len(train) + len(test) != len(fold) or np.any(fold[test] >= 0):
            return None
        fold[test] = f
    is_partition = fold.min() >= 0 and all(np.all(fold[train] != f) for f, (train, _) in enumerate(rows.splits))
    return fold if is_partition else None


def training_folds(
    rows: Training, folds: Sequence[tuple[Training, Training]], adaptivity: Adaptivity, options: GridOptions
) -> ClassFolds:
    """The folds, given all rows and pairs of training and held-out ones; y is divided by a power of two."""
    unit = float(power_of_two(np.abs(rows.target_range).max()))
    design = options.in_units(rows.design(adaptivity, **options.of_design))
    check_narrow(design, adaptivity)
    paths = []
    for train, held in folds:
        own = options.in_units(train.design(adaptivity, **options.of_design))
        columns = train.columns(own, unit)
        quadratic = eliminate(train.moments(columns), own.free, columns.shift)
        error = held.squared_error(columns, quadratic)
        paths.append(squared_fold(quadratic, options.weights(own, *train.features_and_weights), error, unit))
    moments = rows.moments(rows.columns(design, unit))
    weights = options.weights(design, *rows.features_and_weights)
    slope = unit * linear_term(moments, design.free), curvature(moments, design.free)
    ranges = lambda_ranges(design, rows.n_rows, weights, *slope, options)
    weight = sum(held.weight for _, held in folds)
    return ClassFolds(repr(adaptivity), len(design.pairs), *ranges, paths, weight, exact=True)


def squared_fold(
    quadratic: Quadratic, weights: Weights, error: Callable[[FloatArray], FloatArray], unit: float
) -> FoldPath:
    """The path on the quadratic of a fold, given the squared error on its held-out rows, for y in units."""

    def path(
        penalty: int, alpha: float, lambdas: FloatArray, state: Any, _: float
    ) -> tuple[FloatArray, FloatArray, Any]:
        in_units = Penalty(alpha, 1.0 - alpha, *weights[penalty]).for_target(unit, unit**2)
        found, state = squared_path(quadratic, in_units, lambdas, state)
        return error(found.w) * unit**2, found.violation, state

    return path


def logistic_folds(rows: FoldedRows, adaptivity: Adaptivity, options: GridOptions) -> ClassFolds:
    """The folds of one class for the logistic loss, summed over targets (one against the rest)."""
    X, targets = rows.X, rows.targets
    design = options.design(X, rows.s, adaptivity)
    check_narrow(design, adaptivity)
    paths = []
    for f, (train, test) in enumerate(rows.splits):
        s = rows.weights_in(f)
        own = options.design(X[train], s[train], adaptivity)
        A, q = _dense(own, X[train]), s[train] / s[train].sum()
        problems = []
        for y in targets:
            certain, risk = outside_one_class_cells(own, EmpiricalRisk(A, y[train], q, Logistic()))
            problems.append(LogisticProblem.of(risk, own.free, certain))
        weights, tests = options.weights(own, X[train], s[train]), [y[test] for y in targets]
        paths.append(_logistic_fold(problems, weights, _dense(own, X[test]), tests, s[test]))
    A, q = _dense(design, X), rows.s / rows.s.sum()
    gradients = []
    for y in targets:
        risk = centred(EmpiricalRisk(A, y, q, Logistic()), design.free).risk
        root, E = np.sqrt(q), A[:, design.free]
        mean = E @ np.linalg.lstsq(root[:, None] * E, root * y, rcond=None)[0]
        # at the best free coefficients the derivative of the loss is (mean of y - y) / 2
        gradients.append(np.abs(risk.A[:, ~design.free].T @ (q * (mean - y) / 2.0)))
    slope = np.max(gradients, axis=0), Logistic.largest_curvature * (q @ A[:, ~design.free] ** 2)
    ranges = lambda_ranges(design, len(X), options.weights(design, X, rows.s), *slope, options)
    weight = sum(float(rows.weights_in(f)[test].sum()) for f, (_, test) in enumerate(rows.splits))
    return ClassFolds(repr(adaptivity), len(design.pairs), *ranges, paths, weight, exact=False)


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

    def path(
        penalty: int, alpha: float, lambdas: FloatArray, state: Any, tolerance: float
    ) -> tuple[FloatArray, FloatArray, Any]:
        errors, violations = np.zeros((2, len(lambdas)))
        if separable[penalty]:
            return errors + np.inf, violations, None
        states = []
        for t, problem in enumerate(problems):
            last = None if state is None else state[t]
            found, last = problem.path(Penalty(alpha, 1.0 - alpha, *weights[penalty]), lambdas, last, tolerance)
            violations = np.maximum(violations, found.violation)
            states.append(last)
            errors += summed_losses(targets[t], s, A @ problem.restore(found.w).T)
        return errors, violations, states

    return path
