"""Finite models from row statistics: leaf costs, held-out losses, and the settlement of doubtful leaves.

Rows of leaf features and target are linear in e = (1, x, m, y), with x and y around the origins of the statistics:

    (1, a, y) = C e,     a_j = x_j + (o_j - c_j) (1 - m_j),    or  m_j

The moments of e over a leaf come from sums over sets of missing features (trees), or from those of its patterns (any
partition, if the statistics hold them). The held-out loss of a leaf with intercept b and weights w is t'M t, with
t = C'(-b, -w, 1) and M the moments of e over the held-out rows of the leaf. Predictions are not truncated in it.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator

import numpy as np

from admiss.finite.leaf_features import LeafFeatures
from admiss.partition.base import Partitioner
from admiss.partition.greedy import Greedy
from admiss.partition.optimal_tree import OptimalTree
from admiss.partition.partition import Partition
from admiss.statistics.feature_sums import FeatureSummary
from admiss.statistics.missing_sets import MissingSets
from admiss.statistics.pattern_grams import PatternGrams, squared
from admiss.statistics.row_statistics import MISSING_SETS, PATTERN_GRAMS, RowStatistics
from formulations.arrays import FloatArray, IntArray
from formulations.leaves.cost import LeafModel, PatternTotals
from formulations.leaves.pattern_costs import PatternGramsCost
from formulations.leaves.set_costs import SetSumsCost
from formulations.leaves.summed import SummedLeafCost

# Targets of -1 and 1 are classes: a mean square within this of 1 with no larger value.
SIGNS = 1e-9
# Patterns whose moments are expanded at once.
AT_ONCE = 256


class LeafSums(ABC):
    """Moments of e over leaves, for the rows of some folds."""

    def __init__(self, statistics: RowStatistics, folds: IntArray, origin: FloatArray) -> None:
        self.statistics, self.folds, self.origin = statistics, folds, origin

    @property
    def summary(self) -> FeatureSummary:
        """Counts, means and ranges of the rows."""
        return self.statistics.summary(self.folds)

    def features(self, leaf_model: str, center: bool, scale: bool) -> LeafFeatures:
        """The leaf features of these rows."""
        found = self.summary
        observed = np.flatnonzero(found.n_observed > 0)
        moments = found.mean[observed], found.deviation[observed], found.size[observed]
        missable = found.n_observed < found.n_rows
        return LeafFeatures.of_moments(missable, observed, moments, leaf_model, center, scale)

    def columns(self, features: LeafFeatures) -> tuple[FloatArray, FloatArray]:
        """C of the module for (1, a, y) minus a shift, with leaf features in units of the solvers; and the shift.

        y, and features that are never missing, are shifted by their means, which intercepts absorb.
        """
        d, j, i = len(features.missable), features.observed, features.indicators
        C, mean = np.zeros((2 + len(j) + len(i), 2 * d + 2)), self.summary.mean
        C[0, 0] = C[-1, -1] = 1.0
        at, unit, missable = 1 + np.arange(len(j)), features.unit[j], features.missable[j]
        middle = np.where(missable, features.centre[j], mean[j])
        C[at, 0], C[at, 1 + j] = (self.origin[j] - middle) / unit, 1.0 / unit
        # a missing value is 0 after centring, or the mean if it was never missing in training: then 0 after the shift
        C[at, 1 + d + j] = -C[at, 0]
        C[1 + len(j) + np.arange(len(i)), 1 + d + i] = 1.0
        C[-1, 0] = self.origin[-1] - mean[-1]
        shift = np.zeros(len(C))
        shift[at], shift[-1] = (middle - features.centre[j]) / unit, mean[-1]
        return C, shift

    @property
    def rarest_class(self) -> int | None:
        """Rows of the rarer of two classes, if the targets are -1 and 1; weights count as equal."""
        found = self.summary
        mean, square = found.mean[-1], found.mean[-1] ** 2 + found.deviation[-1] ** 2
        if found.size[-1] != 1.0 or square < 1.0 - SIGNS:
            return None
        return round(found.n_rows * (1.0 - abs(mean)) / 2.0)

    @abstractmethod
    def leaf_cost(self, features: LeafFeatures, ridge: float, ridge_scale: str) -> SummedLeafCost:
        """Costs of leaves."""

    @abstractmethod
    def of_leaves(self, partition: Partition, features: LeafFeatures) -> FloatArray:
        """Moments of e over the rows of every leaf."""


class SetLeafSums(LeafSums):
    """Trees, from sums over sets of missing features."""

    def __init__(self, statistics: RowStatistics, folds: IntArray, part: MissingSets) -> None:
        super().__init__(statistics, folds, part.origin)
        self.moments = part.moments(folds)
        self._boxes: dict[tuple[tuple[int, bool], ...], FloatArray] = {}

    def leaf_cost(self, features: LeafFeatures, ridge: float, ridge_scale: str) -> SetSumsCost:
        sources = np.append(features.observed, len(features.missable) + features.indicators)
        C, shift = self.columns(features)
        weights = features.ridge_weights
        return SetSumsCost(self.moments, C, shift, sources, weights, ridge, ridge_scale, self.rarest_class)

    def of_leaves(self, partition: Partition, features: LeafFeatures) -> FloatArray:
        d = len(features.missable)
        for box in partition.boxes or []:
            if tuple(box) not in self._boxes:
                self._boxes[tuple(box)] = self.moments.box(box, np.eye(2 * d + 2))[0]
        return np.array([self._boxes[tuple(box)] for box in partition.boxes or []])


class PatternLeafSums(LeafSums):
    """Any partition, from the moments of each pattern."""

    def __init__(self, statistics: RowStatistics, folds: IntArray, part: PatternGrams) -> None:
        super().__init__(statistics, folds, part.origin)
        counts = part.counts[:, folds].sum(axis=1)
        held = counts > 0
        self.patterns, self.counts = part.patterns[held], counts[held]
        self.moments = squared(part.grams[held][:, folds].sum(axis=1))
        self.moved, self.error = part.moved, part.error

    def _expanded(self, part: slice) -> FloatArray:
        """Moments of e of some patterns."""
        patterns = self.patterns[part]
        d = patterns.shape[1]
        B = np.zeros((len(patterns), 2 * d + 2, d + 2))
        B[:, : d + 1, : d + 1] = np.eye(d + 1)
        B[:, 1 + d : -1, 0] = patterns
        B[:, -1, -1] = 1.0
        return np.asarray(B @ self.moments[part] @ B.swapaxes(1, 2))

    def _parts(self) -> Iterator[slice]:
        for begin in range(0, len(self.patterns), AT_ONCE):
            yield slice(begin, begin + AT_ONCE)

    def leaf_cost(self, features: LeafFeatures, ridge: float, ridge_scale: str) -> PatternGramsCost:
        (C, shift), d = self.columns(features), self.patterns.shape[1]
        low = np.tril_indices(len(C))
        grams = np.concatenate([(C @ self._expanded(part) @ C.T)[:, low[0], low[1]] for part in self._parts()])
        far = np.abs(C[:, 1 : 1 + d]) @ self.moved[:-1] + np.abs(C[:, 0])
        far[0], far[-1] = 0.0, self.moved[-1] + abs(C[-1, 0])
        M = features.split(np.where(self.patterns, np.nan, 0.0))[1]
        rows = PatternTotals.of_totals(M, self.counts, self.moments[:, 0, 0], features.ridge_weights, self.rarest_class)
        indicators = np.arange(len(C) - 2) >= len(features.observed)
        return PatternGramsCost(rows, grams, shift, indicators, far, self.error, ridge, ridge_scale)

    def of_leaves(self, partition: Partition, features: LeafFeatures) -> FloatArray:
        d = self.patterns.shape[1]
        leaves = partition.assign(features.split(np.where(self.patterns, np.nan, 0.0))[1])
        total = np.zeros((partition.n_leaves, 2 * d + 2, 2 * d + 2))
        for part in self._parts():
            np.add.at(total, leaves[part], self._expanded(part))
        return total


def leaf_sums(statistics: RowStatistics, partitioners: Iterable[Partitioner], folds: IntArray) -> LeafSums:
    """The moments from which partitioners find leaves of the rows of some folds, or an error that says what to do."""
    patterns, sets = statistics.parts.get(PATTERN_GRAMS), statistics.parts.get(MISSING_SETS)
    if isinstance(patterns, PatternGrams):
        return PatternLeafSums(statistics, folds, patterns)
    for partitioner in partitioners:
        if not isinstance(partitioner, Greedy | OptimalTree):
            raise ValueError(
                f"{type(partitioner).__name__} needs the Gram matrix of each pattern: collect them with "
                "RowStatistics(patterns=True)."
            )
        depth = partitioner.max_depth
        if partitioner.max_leaves is not None:
            depth = min(partitioner.max_leaves - 1, partitioner.max_leaves if depth is None else depth)
        held = sets.depth if isinstance(sets, MissingSets) else 0
        n_features = statistics.n_features_in_
        if min(n_features if depth is None else depth, n_features) > held:
            wanted = "its max_depth" if depth is None else depth
            raise ValueError(
                f"{partitioner!r} needs sums for trees of depth {wanted}, and the statistics have them up to {held}: "
                f"collect them with RowStatistics(tree_depth={wanted}), or lower max_depth."
            )
    if not isinstance(sets, MissingSets):
        raise ValueError("These statistics have no sums for trees: collect them with RowStatistics(tree_depth=3).")
    return SetLeafSums(statistics, folds, sets)


def residual(model: LeafModel, C: FloatArray, shift: FloatArray) -> FloatArray:
    """t of the module: the residual of a leaf's model as a combination of e."""
    w = model.weights[0]
    v = np.concatenate([[shift[-1] - model.intercept[0] - w @ shift[1:-1]], -w, [1.0]])
    return v @ C
