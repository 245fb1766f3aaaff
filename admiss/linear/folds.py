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

from admiss.adaptivity import Adaptivity
from admiss.estimator.cross_validation import FoldedRows, Split
from admiss.estimator.scaling import power_of_two
from admiss.linear.design import (
    Design,
    DesignOptions,
    fit_design,
    refuse_without_cross_products,
    sums_are_faster,
)
from admiss.linear.logistic import LogisticFold, LogisticRows
from admiss.linear.penalty import UnitPenalties, penalty_weights
from admiss.linear.piecewise import PiecewiseFold
from admiss.linear.squared import SquaredFold, Training, TrainingRows, eliminate
from admiss.linear.training_patterns import TrainingPatterns
from admiss.linear.training_sums import TrainingSums
from formulations.arrays import BoolArray, FloatArray, IntArray
from formulations.erm.risk import EmpiricalRisk, centred, null_multipliers
from formulations.log_link import LogLink
from formulations.losses import Logistic, Loss

# Rules for the range of lambda: that of glmnet, and one of its own for ridge.
EPS_RULES = ("auto", "glmnet")
# alpha is at least this when the largest lambda is computed by the rule of glmnet: that of ridge is infinite.
SMALLEST_ALPHA = 1e-3
# Largest and smallest lambda of ridge, as multiples of the one at which the penalty equals the curvature of the risk.
RIDGE_RANGE = (1e2, 1e-6)

# From the index of an adaptive penalty, alpha, lambdas, a state and a tolerance to the summed loss on the held-out rows
# and the violation of the optimality conditions for each lambda, and a state from which the path can continue.
FoldPath = Callable[[int, float, FloatArray, Any, float], tuple[FloatArray, FloatArray, Any]]


@dataclass(frozen=True)
class GridOptions:
    """The grid that is crossed with every adaptivity class, and what all of its fits share."""

    l1_ratios: Sequence[float]
    adaptive_penalties: Sequence[float]
    n_lambdas: int
    eps: float | str
    penalty_weights: str
    of_design: DesignOptions
    stop_early: bool

    def in_units(self, design: Design) -> Design:
        """The design in the units of the paths: features that are not scaled are so inside."""
        return design if self.of_design.scale else design.in_powers_of_two()[0]

    def unit_penalties(self, design: Design, X: FloatArray | None, s: FloatArray | None) -> UnitPenalties:
        """The penalties of the columns for lambda = 1; rows matter only for the authors' weights."""
        kind, standardise = self.penalty_weights, self.of_design.scale
        divisor = np.ones(len(design.pairs)) if standardise else design.column_scale
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
        The class as text.
    n_columns : int
        Columns of its design on all rows.
    lambdas : dict
        From (adaptive penalty index, alpha) to the lambdas of the path, from large to small.
    paths : list of callables
        One for each fold.
    weight : float
        Weight of all held-out rows.
    exact : bool
        Whether the paths are exact whatever the tolerance.
    """

    name: str
    n_columns: int
    lambdas: dict[tuple[int, float], FloatArray]
    paths: list[FoldPath]
    weight: float
    exact: bool


def squared_folds(rows: FoldedRows, adaptivity: Adaptivity, options: GridOptions) -> ClassFolds:
    """The folds of one class for the squared loss on rows in memory; by sums over the rows if that is faster."""
    X = rows.X
    (y,) = rows.targets
    s = rows.s
    fold = _fold_of_rows(rows)
    if fold is not None and options.penalty_weights == "count" and sums_are_faster(X, adaptivity):
        return folds_of_sums(TrainingSums.of_rows(X, y, s, fold, adaptivity), adaptivity, options)
    return training_folds(TrainingRows(X, y, s), rows.splits, adaptivity, options)


def _fold_of_rows(rows: FoldedRows) -> IntArray | None:
    """The fold in which each row is held out; None if rows are not held out once, and in training otherwise."""
    fold = np.full(len(rows.X), -1)
    for f, (train, test) in enumerate(rows.splits):
        if len(train) + len(test) != len(fold) or np.any(fold[test] >= 0):
            return None
        fold[test] = f
    is_partition = fold.min() >= 0 and all(np.all(fold[train] != f) for f, (train, _) in enumerate(rows.splits))
    return fold if is_partition else None


def folds_of_sums(sums: TrainingSums | TrainingPatterns, adaptivity: Adaptivity, options: GridOptions) -> ClassFolds:
    """The folds of one class for the squared loss; ``sums`` are those of all folds."""
    splits = [(np.delete(sums.folds, f), sums.folds[f : f + 1]) for f in range(len(sums.folds))]
    return training_folds(sums, splits, adaptivity, options)


def training_folds(rows: Training, splits: Sequence[Split], adaptivity: Adaptivity, options: GridOptions) -> ClassFolds:
    """The folds for the squared loss; ``splits`` are the parts of the rows to train on and to hold out."""
    largest = np.abs(rows.target_range).max()
    design = rows.design(adaptivity, options.of_design)
    refuse_without_cross_products(design)
    unit, design = float(power_of_two(largest)), options.in_units(design)
    penalties = options.unit_penalties(design, rows.X, rows.s)
    columns = rows.columns(design, unit)
    gradient, curvatures = rows.at_zero(columns, design.free)
    paths: list[FoldPath] = []
    weight, n_rows = 0.0, rows.n_rows
    for f, (train, test) in enumerate(splits):
        training, held_out = rows.part(train), rows.part(test)
        if not held_out.n_rows:
            raise ValueError(f"Fold {f} has no rows: collect the statistics with fewer folds (--cv).")
        weight += held_out.weight
        n_rows = min(n_rows, training.n_rows)
        of_fold = options.in_units(training.design(adaptivity, options.of_design))
        columns = training.columns(of_fold, unit)
        quadratic = eliminate(training.moments(columns), of_fold.free, columns.shift)
        of_columns = options.unit_penalties(of_fold, training.X, training.s)
        paths.append(SquaredFold(quadratic, of_columns, held_out.squared_error(columns, quadratic), unit))
    lambdas = _lambdas(design, n_rows, penalties, unit * gradient, curvatures, options)
    return ClassFolds(repr(adaptivity), len(design.pairs), lambdas, paths, weight, exact=True)


def logistic_folds(
    rows: FoldedRows,
    adaptivity: Adaptivity,
    options: GridOptions,
    loss: Loss,
    max_extrapolation: float = np.inf,
) -> ClassFolds:
    """The folds of one class for the logistic loss, summed over targets (one against the rest), or with a log link.

    Exposure multiplies the weights of rows in the risk and in held-out losses, and not elsewhere.
    """
    X, targets = rows.X, rows.targets
    design = fit_design(X, rows.s, adaptivity, options.of_design)
    refuse_without_cross_products(design)
    design = options.in_units(design)
    penalties = options.unit_penalties(design, X, rows.s)
    factor = np.ones(len(X)) if rows.exposure is None else loss.weight_of(rows.exposure)
    A, q = design.dense(X), factor * rows.s / rows.s.sum()
    parts = [_at_null(EmpiricalRisk(A, y, q, loss), design.free) for y in targets]
    gradient, curvature = (np.max(part, axis=0) for part in zip(*parts, strict=True))
    n_rows = min(len(train) for train, _ in rows.splits)
    lambdas = _lambdas(design, n_rows, penalties, gradient, curvature, options)
    paths: list[FoldPath] = []
    weight = 0.0
    for (train, test), s in zip(rows.splits, rows.fold_weights, strict=True):
        weight += float(s[test].sum())
        of_fold = options.in_units(fit_design(X[train], s[train], adaptivity, options.of_design))
        penalties = options.unit_penalties(of_fold, X[train], s[train])
        training, held_out = (
            LogisticRows(of_fold.dense(X[part]), [y[part] for y in targets], s[part] * factor[part])
            for part in (train, test)
        )
        share = s[train].sum() / training.s.sum()
        penalties = [(u1 * share, u2 * share) for u1, u2 in penalties]
        paths.append(LogisticFold(of_fold, penalties, training, held_out, loss, max_extrapolation))
    return ClassFolds(repr(adaptivity), len(design.pairs), lambdas, paths, weight, exact=False)


def piecewise_folds(rows: FoldedRows, adaptivity: Adaptivity, options: GridOptions, loss: Loss) -> ClassFolds:
    """The folds of one class for the absolute, quantile and Huber losses."""
    X, (y,), s = rows.X, rows.targets, rows.s
    design = fit_design(X, s, adaptivity, options.of_design)
    refuse_without_cross_products(design)
    design = options.in_units(design)
    A, unit = design.dense(X), float(power_of_two(np.abs(y).max()))
    n_rows = min(len(train) for train, _ in rows.splits)
    at_null = _at_null(EmpiricalRisk(A, y, s / s.sum(), loss), design.free)
    lambdas = _lambdas(design, n_rows, options.unit_penalties(design, X, s), *at_null, options)
    paths: list[FoldPath] = []
    for train, test in rows.splits:
        of_fold = options.in_units(fit_design(X[train], s[train], adaptivity, options.of_design))
        own, held = ((of_fold.dense(X[part]), y[part], s[part]) for part in (train, test))
        penalties = options.unit_penalties(of_fold, X[train], s[train])
        paths.append(PiecewiseFold(of_fold, penalties, own, held, loss, unit))
    weight = sum(float(s[test].sum()) for _, test in rows.splits)
    return ClassFolds(repr(adaptivity), len(design.pairs), lambdas, paths, weight, exact=False)


def _at_null(risk: EmpiricalRisk, free: BoolArray) -> tuple[FloatArray, FloatArray]:
    """The sizes of the gradient in the penalised columns at the best free coefficients, and curvatures.

    The derivative of the logistic loss is (mean of y - y) / 2 there. A piecewise loss has the multipliers of
    :func:`formulations.losses.best_constant`, and counts as a multiple of the squared one with the same risk.
    """
    A, y, q = risk.A[:, ~free], risk.y, risk.q
    own = centred(risk, free).risk
    columns = own.A[:, ~free]
    if isinstance(risk.loss, LogLink):
        zero = np.zeros(len(y))
        gradient = columns.T @ (own.q * risk.loss.derivative(own.y, zero))
        return np.abs(gradient), (own.q * risk.loss.curvature(own.y, zero)) @ A**2
    if isinstance(risk.loss, Logistic):
        root, E = np.sqrt(q), risk.A[:, free]
        mean = E @ np.linalg.lstsq(root[:, None] * E, root * y, rcond=None)[0]
        return np.abs(columns.T @ (q * (mean - y) / 2.0)), risk.loss.largest_curvature * (q @ A**2)
    theta, z = null_multipliers(risk, free)
    share = 2.0 * float(q @ risk.loss.value(y, z)) / (float(q @ (y - z) ** 2) or 1.0)
    return np.abs(columns.T @ theta), share * (q @ columns**2)


def _lambdas(
    design: Design,
    n_rows: int,
    penalties: UnitPenalties,
    gradient: FloatArray,
    curvatures: FloatArray,
    options: GridOptions,
) -> dict[tuple[int, float], FloatArray]:
    """``lambdas`` of :class:`ClassFolds`.

    Gradient and curvatures are those of the risk on all rows in the penalised columns, at coefficients 0; ``n_rows``
    are those that the smallest fold trains on.
    """
    k, is_wide = ~design.free, n_rows < len(design.pairs)
    lambdas = {}
    for c, (u1, u2) in enumerate(penalties):
        vanishing, balanced = _largest_ratio(np.abs(gradient), u1[k]), _largest_ratio(curvatures, u2[k])
        for alpha in options.l1_ratios:
            eps = _eps(options.eps, alpha, is_wide)
            if alpha == 0.0 and options.eps != "glmnet":
                large, small = (factor * balanced for factor in RIDGE_RANGE)
                small = small if options.eps == "auto" else eps * large
            else:
                large = vanishing / max(alpha, SMALLEST_ALPHA)
                small = eps * large
            lambdas[c, alpha] = np.geomspace(large, small, options.n_lambdas)
    return lambdas


def _eps(rule: float | str, alpha: float, is_wide: bool) -> float:
    """Smallest lambda as a share of the largest, which is proportional to 1 / alpha.

    With more columns than rows, the best lambda hardly depends on alpha: paths of "auto" end at the same one.
    """
    if not isinstance(rule, str):
        return rule
    if not is_wide:
        return 1e-4
    return 1e-2 if rule == "glmnet" else max(1e-4, 1e-2 * alpha)


def _largest_ratio(size: FloatArray, u: FloatArray) -> float:
    """The largest size_k / u_k, 1 if all are 0."""
    return float(np.max(size[u > 0] / u[u > 0], initial=0.0)) or 1.0
