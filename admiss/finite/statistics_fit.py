"""Finite regression from row statistics: the fit, and one more pass over rows for leaves that they do not settle."""

from collections.abc import Iterable
from typing import Any, Self

import numpy as np

from admiss.estimator.notices import warn, warn_never_observed
from admiss.estimator.validation import (
    feature_names,
    read_features,
    read_regression_target,
    read_weights,
    unchanged_on_error,
)
from admiss.finite.base import FiniteModel
from admiss.finite.from_statistics import LeafSums, leaf_sums
from admiss.partition.base import Partitioner
from admiss.partition.partition import Partition
from admiss.statistics.row_statistics import RowStatistics, adopt_features, require_squared
from formulations.arrays import IntArray
from formulations.leaves import double_double
from formulations.leaves.summed import Settled, SummedLeafCost
from formulations.trees.proven_tree import tolerance_of

# Passes over the rows after which leaves keep their intervals.
MOST_PASSES = 20

Chunks = Iterable[tuple[Any, ...]]


class StatisticsFit(FiniteModel):
    """``fit_statistics`` of a finite regression."""

    target_range_: tuple[float, float]

    def fit_statistics(self, statistics: RowStatistics, settle: Chunks | None = None) -> Self:
        """Choose and fit the leaves from statistics of the rows, as :meth:`fit` does from the rows.

        Parameters
        ----------
        statistics : RowStatistics
            With ``tree_depth`` for the trees of Greedy and OptimalTree, or with ``patterns=True`` for any partitioner.
        settle : iterable of (X, y) or (X, y, sample_weight), optional
            The same rows in chunks, to be read again if leaves are too ill-conditioned for sums: their costs are then
            as accurate as in memory. It must start anew in every iteration, as a list does.
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
        warn_never_observed(names, np.setdiff1d(np.arange(len(names)), self.leaf_features_.observed))
        leaf_cost = sums.leaf_cost(self.leaf_features_, float(self.ridge), self.ridge_scale)
        partition = partitioner.partition(leaf_cost.rows, leaf_cost, names)
        for _ in range(MOST_PASSES if settle is not None else 0):
            doubtful = _doubtful(leaf_cost, partition)
            if not doubtful or settle is None:
                break
            leaf_cost.settle(self._settled(leaf_cost, doubtful, settle))
            partition = partitioner.partition(leaf_cost.rows, leaf_cost, names)
        if settle is None and _doubtful(leaf_cost, partition):
            warn(
                "Some leaves are too ill-conditioned for sums, and their weights are inaccurate: give the rows once "
                "more as settle, use a larger ridge, or leave out features that nearly depend on others."
            )
        self._adopt(leaf_cost, partition)

    def _settled(self, leaf_cost: SummedLeafCost, leaves: list[IntArray], chunks: Chunks) -> dict[bytes, Settled]:
        """Gram matrices of leaves in pairs of doubles, from one pass over the rows."""
        features = self.leaf_features_
        found = [np.zeros((2, leaf_cost.length)) for _ in leaves]
        rows = np.zeros(len(leaves), dtype=np.int64)
        n_rows = 0
        for X, y, *weight in chunks:
            array = read_features(self, X, reset=False)
            target = read_regression_target(self, y, len(array))
            s = read_weights(weight[0] if weight else None, array, allow_zero=True)
            array, target, s = array[s > 0], target[s > 0], s[s > 0]
            n_rows += len(s)
            filled, M = features.split(array)
            A = features.columns(filled, M) / features.column_unit
            for i, members in enumerate(leaves):
                inside = leaf_cost.holds(members, M)
                data = A[inside], target[inside], s[inside], leaf_cost.centre, leaf_cost.level, leaf_cost.unit
                double_double.add_precise_gram(found[i], *data, 0, int(inside.sum()))
                rows[i] += int(inside.sum())
        if n_rows != leaf_cost.rows.n_rows:
            raise ValueError(
                f"settle has {n_rows:,} rows of positive weight, the statistics {leaf_cost.rows.n_rows:,}: give the "
                "same rows, in an iterable that starts anew every time."
            )
        return {members.tobytes(): (G, int(n)) for members, G, n in zip(leaves, found, rows, strict=True)}


def _doubtful(leaf_cost: SummedLeafCost, partition: Partition) -> list[IntArray]:
    """Leaves that rows would settle, if the partition is not proven optimal."""
    if partition.certificate.status == "optimal":
        return []
    for leaf in range(partition.n_leaves):
        leaf_cost.interval(partition.members(leaf))
    tolerance = tolerance_of(leaf_cost, partition.certificate.objective)
    return leaf_cost.doubtful(tolerance / partition.n_leaves)
