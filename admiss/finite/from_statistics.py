"""Finite models from row statistics: the fit, held-out losses of a grid, and one more pass over rows if it is needed.

Optimal trees of many rows in memory are found from the same sums over sets of missing features as those of statistics.

Two kinds of statistics serve.

*Patterns.* The pseudo-rows of each pattern (:mod:`admiss.statistics.pattern_factors`) take the place of the rows, for
any partition.

*Sets of missing features*, for trees of any number of patterns. Rows of leaf features and target are linear in
e = (1, x, m, y), with x and y around the origins of the statistics:

    (1, a, y) = C e,     a_j = x_j + (o_j - c_j) (1 - m_j),    or  m_j

The held-out loss of a leaf with intercept b and weights w is t'M t, with t = C'(-b, -w, 1) and M the moments of e over
the held-out rows of the leaf. Leaves that are too ill-conditioned for sums are settled by one more pass over the rows.

Every fold has its own means, scales, leaf costs and partitions, from the statistics of the other folds. Held-out losses
are those of predictions that are not truncated. Losses of rows are not known; the rule of one standard error takes the
error from the means of the folds.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed

from admiss.estimator.notices import warn, warn_never_observed
from admiss.estimator.scaling import power_of_two
from admiss.estimator.validation import (
    feature_names,
    read_features,
    read_regression_target,
    read_weights,
    unchanged_on_error,
)
from admiss.finite.base import FiniteModel, LeafFeatures, leaf_scores
from admiss.finite.search import LARGEST_LOSS, FiniteGrid, FoldLosses, HeldOut, compared, fitted_cells
from admiss.partition.base import Partition, Partitioner, tree_partition
from admiss.partition.greedy import Greedy
from admiss.partition.optimal_tree import MOST_BOXES, OptimalTree
from admiss.patterns import PatternTable
from admiss.statistics.blocks import RowBlock, anchored
from admiss.statistics.feature_sums import FeatureSummary
from admiss.statistics.missing_sets import MOST_BYTES, MissingSets
from admiss.statistics.pattern_factors import POINT_ROUNDING, relative_error
from admiss.statistics.row_statistics import (
    MISSING_SETS,
    PATTERN_FACTORS,
    RowStatistics,
    adopt_features,
    require_squared,
)
from admiss.terminal.progress import progress
from formulations.arrays import FloatArray, IntArray
from formulations.leaves import double_double
from formulations.leaves.box_costs import count_boxes
from formulations.leaves.cost import LeafModel, PatternTotals
from formulations.leaves.pseudo_rows import PseudoRowsCost, RowError
from formulations.leaves.set_costs import SetSumsCost, Settled
from formulations.leaves.set_moments import SetMoments
from formulations.leaves.set_sums import SetSums
from formulations.leaves.squared import SquaredLeafCost
from formulations.leaves.subsets import count_sets
from formulations.losses import Loss, Squared
from formulations.trees.dynamic_program import ILL_CONDITIONED, tolerance_of

# Targets of -1 and 1 are classes: a mean square within this of 1 with no larger value.
SIGNS = 1e-9
# Passes over the rows after which leaves keep their intervals.
MOST_PASSES = 20
# Fewest rows in memory, and rows for each set of missing features, from which sums over sets replace those of patterns.
# Measured with 5 to 40 features and depths 2 to 4: the two break even at 20,000 rows if there are few patterns, at 5 to
# 10 rows per set if there are many.
FEWEST_ROWS, ROWS_PER_SET = 20_000, 10

Chunks = Iterable[tuple[Any, ...]]
# Squared loss of the models of the leaves of a partition.
PartitionLoss = Callable[[Partition, list[LeafModel]], float]


class LeafSums(ABC):
    """What is known of the rows of some folds."""

    def __init__(self, statistics: RowStatistics, folds: IntArray) -> None:
        self.statistics, self.folds = statistics, folds

    @property
    def summary(self) -> FeatureSummary:
        """Counts, means and ranges of the rows."""
        return self.statistics.summary(self.folds)

    def features(self, leaf_model: str, center: bool, scale: bool) -> LeafFeatures:
        """The leaf features of these rows."""
        summary = self.summary
        observed = np.flatnonzero(summary.n_observed > 0)
        moments = summary.mean[observed], summary.deviation[observed], summary.size[observed]
        missable, indicators = summary.n_observed < summary.n_rows, np.flatnonzero(summary.missing_once)
        return LeafFeatures.of_moments(missable, indicators, observed, moments, leaf_model, center, scale)

    @property
    def rarest_class(self) -> int | None:
        """Rows of the rarer of two classes, if the targets are -1 and 1; weights count as equal."""
        summary = self.summary
        mean, square = summary.mean[-1], summary.mean[-1] ** 2 + summary.deviation[-1] ** 2
        if summary.size[-1] != 1.0 or square < 1.0 - SIGNS:
            return None
        return round(summary.n_rows * (1.0 - abs(mean)) / 2.0)

    @abstractmethod
    def leaf_cost(self, features: LeafFeatures, ridge: float, ridge_scale: str) -> SquaredLeafCost:
        """Costs of leaves."""

    @abstractmethod
    def loss(self, features: LeafFeatures) -> PartitionLoss:
        """The squared loss of models of these leaf features on the rows."""


class PatternLeafRows(LeafSums):
    """Any partition, from the pseudo-rows of each pattern."""

    def leaf_cost(self, features: LeafFeatures, ridge: float, ridge_scale: str) -> PseudoRowsCost:
        summary = self.summary
        origin = np.append(features.centre, 0.0)
        pseudo = self.statistics.pseudo_rows(self.folds, origin)
        if not pseudo.is_exact.all():  # else they are the rows
            origin[-1] = summary.mean[-1]
            pseudo = self.statistics.pseudo_rows(self.folds, origin)
        centred = replace(features, centre=np.zeros(len(features.centre)))
        rows = centred.pattern_rows(pseudo.X, pseudo.y, pseudo.sample_weight)
        codes = PatternTable.of(features.split(pseudo.X)[1]).codes
        counts = np.rint(np.bincount(codes, pseudo.count)).astype(np.int64)
        totals = PatternTotals(
            *(rows.patterns, rows.start, rows.A, rows.y, rows.s, rows.ridge_weights),
            totals=(counts, rows.weights),
            rarest=self.rarest_class,
        )
        unit = np.concatenate([[1.0], features.column_unit, [1.0]])
        sizes, lost = (
            np.concatenate([[of_one], size[features.observed], np.full(len(features.indicators), of_one), size[-1:]])
            for of_one, size in ((1.0, summary.size + np.abs(origin)), (0.0, pseudo.lost))
        )
        error = RowError(
            rounding=POINT_ROUNDING,
            of_sums=np.sqrt(relative_error(summary.n_rows, len(features.observed))) * sizes / unit,
            lost=lost / unit,
            is_exact=np.bincount(codes, ~pseudo.is_exact) == 0,
        )
        return PseudoRowsCost(totals, error, float(origin[-1]), ridge, ridge_scale)

    def loss(self, features: LeafFeatures) -> PartitionLoss:
        pseudo = self.statistics.pseudo_rows(self.folds)
        filled, M = features.split(pseudo.X)
        A = features.columns(filled, M) / features.column_unit

        def of_models(partition: Partition, models: list[LeafModel]) -> float:
            intercepts, weights = (np.array(part) for part in zip(*(model[:2] for model in models), strict=True))
            scores = leaf_scores(intercepts, weights, partition.assign(M), A)[:, 0]
            return float(pseudo.sample_weight @ (pseudo.y - scores) ** 2)

        return of_models


class SetLeafSums(LeafSums):
    """Trees, from sums over sets of missing features."""

    def __init__(self, statistics: RowStatistics, folds: IntArray, part: MissingSets) -> None:
        super().__init__(statistics, folds)
        self.origin, self.moments = part.origin, part.moments(folds)

    def leaf_cost(self, features: LeafFeatures, ridge: float, ridge_scale: str) -> SetSumsCost:
        columns = set_columns(features, self.origin, self.summary.mean[-1])
        weights = features.ridge_weights
        return SetSumsCost(self.moments, *columns, sources_of(features), weights, ridge, ridge_scale, self.rarest_class)

    def loss(self, features: LeafFeatures) -> PartitionLoss:
        C, shift = set_columns(features, self.origin, self.summary.mean[-1])
        everything = np.eye(2 * len(features.missable) + 2)
        boxes: dict[tuple[tuple[int, bool], ...], FloatArray] = {}

        def of_models(partition: Partition, models: list[LeafModel]) -> float:
            total = 0.0
            for box, model in zip(partition.boxes or [], models, strict=True):
                key = tuple(box)
                if key not in boxes:
                    boxes[key] = self.moments.box(box, everything)[0]
                w = model.weights[0]
                b = model.intercept[0] + w @ shift[1:-1] - shift[-1]
                t = np.concatenate([[-b], -w, [1.0]]) @ C
                total += float(t @ boxes[key] @ t)
            return max(0.0, total)

        return of_models


def set_columns(features: LeafFeatures, origin: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
    """C of the module for (1, a, y) minus a shift, with leaf features in units of the solvers; and the shift.

    y, and features that were never missing in training, are shifted by their means, which intercepts absorb.
    """
    d, j, i = len(features.missable), features.observed, features.indicators
    C = np.zeros((2 + len(j) + len(i), 2 * d + 2))
    C[0, 0] = C[-1, -1] = 1.0
    at, unit, missable = 1 + np.arange(len(j)), features.unit[j], features.missable[j]
    middle = np.where(missable, features.centre[j], features.mean[j])
    C[at, 0], C[at, 1 + j] = (origin[j] - middle) / unit, 1.0 / unit
    # a missing value is 0 after centring, or the mean if it was never missing in training: then 0 after the shift
    C[at, 1 + d + j] = -C[at, 0]
    C[1 + len(j) + np.arange(len(i)), 1 + d + i] = 1.0
    C[-1, 0] = origin[-1] - level
    shift = np.zeros(len(C))
    shift[at], shift[-1] = (middle - features.centre[j]) / unit, level
    return C, shift


def sources_of(features: LeafFeatures) -> IntArray:
    """What each leaf feature is made of: j for x_j, d + j for m_j."""
    return np.append(features.observed, len(features.missable) + features.indicators)


def leaf_sums(statistics: RowStatistics, partitioners: Iterable[Partitioner], folds: IntArray) -> LeafSums:
    """The statistics from which partitioners find leaves of some folds, or an error that says what to do."""
    if PATTERN_FACTORS in statistics.parts:
        return PatternLeafRows(statistics, folds)
    sets = statistics.parts.get(MISSING_SETS)
    for partitioner in partitioners:
        if not isinstance(partitioner, Greedy | OptimalTree):
            raise ValueError(
                f"{type(partitioner).__name__} needs the moments of each pattern: collect them with "
                "RowStatistics(patterns=True)."
            )
        depth = sets.depth if isinstance(sets, MissingSets) else 0
        if set_depth(partitioner, statistics.n_features_in_) > depth:
            is_limited = partitioner.max_depth is not None or partitioner.max_leaves is not None
            needed = set_depth(partitioner, statistics.n_features_in_) if is_limited else "its max_depth"
            raise ValueError(
                f"{partitioner!r} needs sums for trees of depth {needed}, and the statistics have them up to {depth}: "
                f"collect them with RowStatistics(tree_depth={needed}), or lower max_depth."
            )
    if not isinstance(sets, MissingSets):
        raise ValueError("These statistics have no sums for trees: collect them with RowStatistics(tree_depth=3).")
    return SetLeafSums(statistics, folds, sets)


def set_depth(partitioner: Greedy | OptimalTree, n_features: int) -> int:
    """Most literals of a leaf."""
    depth = n_features if partitioner.max_depth is None else min(partitioner.max_depth, n_features)
    return depth if partitioner.max_leaves is None else min(depth, partitioner.max_leaves - 1)


def sets_pay(shape: tuple[int, int], partitioner: OptimalTree) -> bool:
    """Whether sums over sets of missing features take less time than those of patterns."""
    n_rows, n_features = shape
    if n_rows < FEWEST_ROWS:
        return False
    depth = set_depth(partitioner, n_features)
    n_sets = count_sets(n_features, depth)
    is_small = 16 * n_sets * (n_features + 1) ** 2 <= MOST_BYTES and count_boxes(n_features, depth) <= MOST_BOXES
    return is_small and n_rows >= ROWS_PER_SET * n_sets


class StatisticsFit(FiniteModel):
    """``fit_statistics`` of a finite regression, and optimal trees of many rows."""

    target_range_: tuple[float, float]

    def _fit_partition(self, X: FloatArray, y: FloatArray, s: FloatArray, partitioner: Partitioner, loss: Loss) -> None:
        """Find an optimal tree of many rows from sums over sets of missing features; its proof may need the rows."""
        if isinstance(loss, Squared) and isinstance(partitioner, OptimalTree) and sets_pay(X.shape, partitioner):
            leaf_cost = self._cost_of_sets(X, y, s, partitioner)
            partition = partitioner.partition(leaf_cost.rows, leaf_cost, feature_names(self))
            if partition.certificate.status != ILL_CONDITIONED:
                self._adopt(leaf_cost, partition)
                table = PatternTable.of_missing(X, s)
                of_rows = PatternTotals.of_totals(
                    table.patterns, table.counts, table.weights, self.leaf_features_.ridge_weights, complete=True
                )
                self.pattern_rows_ = table.counts
                self.partition_ = tree_partition(of_rows, partition.tree, self.certificate_)
                return
        super()._fit_partition(X, y, s, partitioner, loss)

    def _cost_of_sets(self, X: FloatArray, y: FloatArray, s: FloatArray, partitioner: OptimalTree) -> SetSumsCost:
        """Costs of boxes, from sums around the centres of the features if they are centred."""
        features, level = self.leaf_features_, float(s @ y / s.sum())
        origin = np.append(features.centre, level)
        if not self.center:
            rows = RowBlock(X, y, s, np.zeros(len(y), dtype=np.int64))
            origin = np.nan_to_num(anchored(np.full(len(origin), np.nan), rows))
        sums, additions = SetSums.of(X, y, s, origin, set_depth(partitioner, X.shape[1]))
        moments = SetMoments(sums, np.zeros(len(origin)), additions)
        signs = (np.abs(y) == 1.0).all()
        rarest = int(min((y > 0).sum(), (y < 0).sum())) if signs else None
        columns, weights = set_columns(features, origin, level), features.ridge_weights
        ridge = float(self.ridge)
        return SetSumsCost(moments, *columns, sources_of(features), weights, ridge, self.ridge_scale, rarest)

    def fit_statistics(self, statistics: RowStatistics, settle: Chunks | None = None) -> Self:
        """Choose and fit the leaves from statistics of the rows, as :meth:`fit` does from the rows.

        Parameters
        ----------
        statistics : RowStatistics
            With ``tree_depth`` for the trees of Greedy and OptimalTree, or with ``patterns=True`` for any partitioner.
        settle : iterable of (X, y) or (X, y, sample_weight), optional
            The same rows in chunks, to be read again if leaves are too ill-conditioned for sums over sets: their costs
            are then as accurate as in memory. It must start anew in every iteration, as a list does.
        """
        partitioner, loss = self._check_parameters()
        require_squared(loss)
        with unchanged_on_error(self):
            adopt_features(self, statistics)
            sums = leaf_sums(statistics, [partitioner], np.arange(statistics.n_folds))
            self._fit_sums(sums, partitioner, settle)
            self.target_range_ = float(sums.summary.low[-1]), float(sums.summary.high[-1])
        return self

    def _fit_sums(self, sums: LeafSums, partitioner: Partitioner, settle: Chunks | None) -> None:
        names = feature_names(self)
        self.leaf_features_ = sums.features(self.leaf_model, bool(self.center), bool(self.scale))
        if len(self.leaf_features_.never_observed):
            warn_never_observed(names, self.leaf_features_.never_observed)
        leaf_cost = sums.leaf_cost(self.leaf_features_, float(self.ridge), self.ridge_scale)
        partition = partitioner.partition(leaf_cost.rows, leaf_cost, names)
        if isinstance(leaf_cost, SetSumsCost):
            for _ in range(MOST_PASSES if settle is not None else 0):
                doubtful = _doubtful(leaf_cost, partition)
                if not doubtful or settle is None:
                    break
                leaf_cost.settle(self._settled(leaf_cost, doubtful, settle))
                partition = partitioner.partition(leaf_cost.rows, leaf_cost, names)
            if settle is None and _doubtful(leaf_cost, partition):
                warn(
                    "Some leaves are too ill-conditioned for sums, and their weights are inaccurate: give the rows "
                    "once more as settle, use a larger ridge, or leave out features that nearly depend on others."
                )
        self._adopt(leaf_cost, partition)

    def _settled(self, leaf_cost: SetSumsCost, leaves: list[IntArray], chunks: Chunks) -> dict[bytes, Settled]:
        """Gram matrices of leaves in pairs of doubles, from one pass over the rows."""
        features = self.leaf_features_
        grams = [np.zeros((2, leaf_cost.length)) for _ in leaves]
        rows = np.zeros(len(leaves), dtype=np.int64)
        n_rows = 0
        for X, y, *weight in chunks:
            array = read_features(self, X, reset=False)
            target = read_regression_target(self, y, len(array))
            s = read_weights(weight[0] if weight else None, array, allow_zero=True)
            array = array[s > 0]
            target = target[s > 0]
            s = s[s > 0]
            n_rows += len(s)
            filled, M = features.split(array)
            A = features.columns(filled, M) / features.column_unit
            for i, members in enumerate(leaves):
                inside = leaf_cost.holds(members, M)
                data = A[inside], target[inside], s[inside], leaf_cost.centre, leaf_cost.level, leaf_cost.unit
                double_double.add_precise_gram(grams[i], *data, 0, int(inside.sum()))
                rows[i] += int(inside.sum())
        if n_rows != leaf_cost.rows.n_rows:
            raise ValueError(
                f"settle has {n_rows:,} rows of positive weight, the statistics {leaf_cost.rows.n_rows:,}: give the "
                "same rows, in an iterable that starts anew every time."
            )
        return {members.tobytes(): (G, int(n)) for members, G, n in zip(leaves, grams, rows, strict=True)}


def _doubtful(leaf_cost: SetSumsCost, partition: Partition) -> list[IntArray]:
    """Leaves that rows would settle, if the partition is not proven optimal."""
    if partition.certificate.status == "optimal":
        return []
    for leaf in range(partition.n_leaves):
        leaf_cost.interval(partition.members(leaf))
    tolerance = tolerance_of(leaf_cost, partition.certificate.objective)
    return leaf_cost.doubtful(tolerance / partition.n_leaves)


def statistics_losses(grid: FiniteGrid, statistics: RowStatistics, names: list[str], n_jobs: int | None) -> HeldOut:
    """Fit every cell in every fold."""
    n_folds = statistics.n_folds
    if statistics.folds is None:
        raise ValueError("These statistics have no folds: collect them with RowStatistics(folds=HashFolds(5)).")
    weights = [statistics.summary(np.array([fold])).weight for fold in range(n_folds)]
    empty = [fold for fold, weight in enumerate(weights) if not weight > 0]
    if empty:
        raise ValueError(f"Fold {empty[0]} has no rows: use fewer folds, or keys with more values.")
    # errors come before the work, and sums that wait for more rows are complete before threads read them
    leaf_sums(statistics, grid.partitioners.values(), np.arange(n_folds))
    tasks = [(leaf_model, fold) for leaf_model in grid.leaf_models for fold in range(n_folds)]
    runs = Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")(
        delayed(_fold)(grid, leaf_model, statistics, names, fold) for leaf_model, fold in tasks
    )
    folds = list(progress(runs, len(tasks), "cross-validation: folds"))
    return compared(grid, folds, [np.array([weight]) for weight in weights])


def _fold(grid: FiniteGrid, leaf_model: str, statistics: RowStatistics, names: list[str], fold: int) -> FoldLosses:
    everything = np.arange(statistics.n_folds)
    return fold_losses(grid, leaf_model, statistics, names, everything[everything != fold], fold)


def fold_losses(
    grid: FiniteGrid, leaf_model: str, statistics: RowStatistics, names: list[str], folds: IntArray, fold: int
) -> FoldLosses:
    """Losses of every cell on the rows of a fold, fitted to the rows of other folds."""
    held_out = np.array([fold])
    training = leaf_sums(statistics, grid.partitioners.values(), folds)
    features = training.features(leaf_model, grid.center, grid.scale)
    loss = leaf_sums(statistics, grid.partitioners.values(), held_out).loss(features)
    shape = len(grid.partitioners), len(grid.ridges)
    total, leaves = np.empty(shape), np.empty(shape)
    any_ridge = training.leaf_cost(features, grid.ridges[0], grid.ridge_scale)
    for cell, partition, models in fitted_cells(grid, any_ridge, names):
        total[cell] = loss(partition, models)
        leaves[cell] = partition.n_leaves
    weight = statistics.summary(held_out).weight
    unit = float(power_of_two(statistics.summary().size[-1])) ** 2
    losses = np.minimum(total / weight / unit, LARGEST_LOSS)[:, :, None]
    return FoldLosses(losses, total, leaves, len(features.column_unit) + 1)
