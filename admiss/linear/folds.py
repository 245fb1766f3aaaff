"""The folds of one adaptivity class, ready for paths of lambda.

In every fold the model is fitted on the other rows along a path of lambda, for each pair (alpha, c) of l1_ratio and
adaptive penalty, and its loss on the held-out rows is summed. Everything that a fit learns (the basis, means and scales
of the features, the counts n_k) is learned on the training rows of the fold: from these rows, or from sums over them,
which are the sum of those of the other folds.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from admiss.adaptivity import Adaptivity
from admiss.estimator.cv import FoldedRows
from admiss.estimator.scaling import power_of_two
from admiss.linear.design import MAX_COLUMNS, MAX_OFFSET, Design, far_from_origin
from admiss.linear.grid_paths import ClassFolds, FoldPath, GridOptions, Weights
from admiss.linear.logistic import LogisticProblem, is_separable, outside_one_class_cells, summed_losses
from admiss.linear.moments import Quadratic, curvature, eliminate, linear_term, squared_path
from admiss.linear.penalty import Penalty
from admiss.linear.training_rows import Training, TrainingRows
from admiss.linear.training_sums import TrainingSums, sums_are_faster
from formulations.arrays import FloatArray, IntArray
from formulations.erm.risk import EmpiricalRisk, centred
from formulations.losses import Logistic


def _narrow_design(X: FloatArray, s: FloatArray, adaptivity: Adaptivity, options: GridOptions) -> Design:
    """The design of all rows, if fast paths apply to it."""
    return check_narrow(options.design(X, s, adaptivity), adaptivity)


def check_narrow(design: Design, adaptivity: Adaptivity) -> Design:
    """The design, if fast paths apply to it."""
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
    return design


def class_folds(
    adaptivity: Adaptivity,
    design: Design,
    n_rows: int,
    weight: float,
    weights: Weights,
    gradient: FloatArray,
    curvatures: FloatArray,
    paths: list[FoldPath],
    options: GridOptions,
    exact: bool,
) -> ClassFolds:
    """The folds, given gradient and curvatures on all rows in the penalised columns if all their coefficients are 0."""
    largest = [_largest_ratio(np.abs(gradient), u1[~design.free]) for u1, _ in weights]
    balanced = [_largest_ratio(curvatures, u2[~design.free]) for _, u2 in weights]
    by_rule = 1e-2 if n_rows < len(design.pairs) else 1e-4
    eps = by_rule if isinstance(options.eps, str) else options.eps
    return ClassFolds(
        repr(adaptivity), len(design.pairs), np.array(largest), np.array(balanced), eps, paths, weight, exact
    )  # fmt: skip


def of_rows(design: Design, rows: FoldedRows, options: GridOptions) -> tuple[int, float, Weights]:
    """Number of rows, weight of the held-out ones, and weights of the penalty."""
    weight = sum(float(rows.weights_in(f)[test].sum()) for f, (_, test) in enumerate(rows.splits))
    return len(rows.X), weight, options.weights(design, rows.X, rows.s)


def _largest_ratio(size: FloatArray, u: FloatArray) -> float:
    """The largest size_k / u_k, 1 if all are 0."""
    return float(np.max(size[u > 0] / u[u > 0], initial=0.0)) or 1.0


def squared_folds(rows: FoldedRows, adaptivity: Adaptivity, options: GridOptions) -> ClassFolds:
    """The folds of one class for the squared loss on rows in memory; by sums over the rows if that is faster."""
    X, (y,), s = rows.X, rows.targets, rows.s
    fold = _fold_of_rows(rows)
    if fold is not None and options.penalty_weights == "count" and sums_are_faster(X, adaptivity):
        return folds_of_sums(TrainingSums.of_rows(X, y, s, fold, adaptivity), adaptivity, options)
    folds: list[tuple[Training, Training]] = [
        (TrainingRows(X[train], y[train], s[train]), TrainingRows(X[test], y[test], s[test]))
        for train, test in rows.splits
    ]
    weight = sum(float(s[test].sum()) for _, test in rows.splits)
    return _squared_folds(TrainingRows(X, y, s), folds, (len(X), weight), adaptivity, options)


def folds_of_sums(sums: TrainingSums, adaptivity: Adaptivity, options: GridOptions) -> ClassFolds:
    """The folds of one class for the squared loss; ``sums`` are those of all folds."""
    summary = sums.summary()
    folds: list[tuple[Training, Training]] = []
    for f in sums.folds:
        held = sums.within(np.array([f]))
        if not held.summary().n_rows:
            raise ValueError(f"Fold {f} has no rows: collect the statistics with fewer folds (--cv).")
        folds.append((sums.within(np.delete(sums.folds, f)), held))
    return _squared_folds(sums, folds, (summary.n_rows, summary.weight), adaptivity, options)


def _fold_of_rows(rows: FoldedRows) -> IntArray | None:
    """The fold in which each row is held out; None if rows are not held out once, and in training otherwise."""
    fold = np.full(len(rows.X), -1)
    for f, (train, test) in enumerate(rows.splits):
        if len(train) + len(test) != len(fold) or np.any(fold[test] >= 0):
            return None
        fold[test] = f
    is_partition = fold.min() >= 0 and all(np.all(fold[train] != f) for f, (train, _) in enumerate(rows.splits))
    return fold if is_partition else None


def _squared_folds(
    rows: Training,
    folds: list[tuple[Training, Training]],
    n_rows_and_weight: tuple[int, float],
    adaptivity: Adaptivity,
    options: GridOptions,
) -> ClassFolds:
    """The folds, given all rows and pairs of training and held-out ones; y is divided by a power of two."""
    unit = float(power_of_two(np.abs(rows.target_range).max()))
    design = check_narrow(options.in_units(rows.design(adaptivity, **options.of_design)), adaptivity)
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
    return class_folds(adaptivity, design, *n_rows_and_weight, weights, *slope, paths, options, exact=True)


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
    design = _narrow_design(X, rows.s, adaptivity, options)
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
    return class_folds(adaptivity, design, *of_rows(design, rows, options), *slope, paths, options, exact=False)


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
