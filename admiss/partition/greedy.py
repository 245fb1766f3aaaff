"""Greedy partitioning by recursive splits (Algorithm 1 of the paper).

Start with one leaf. For each leaf find the feature j whose split into m_j = 0 and m_j = 1 lowers the cost most; make
the best of these splits over all leaves; repeat until no split is allowed or lowers the cost enough.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from admiss._version import __version__
from admiss.partition.base import Features, Limits, Partition, Partitioner, tree_partition
from formulations.arrays import IntArray
from formulations.certificate import Certificate, clock
from formulations.leaves.box_costs import members_of
from formulations.leaves.cost import LeafCost, PatternRows, Split
from formulations.trees.dynamic_program import Tree, leaves_of

# An improvement below this share of the cost of a leaf is rounding.
LEAST_GAIN = 1e-12


@dataclass(eq=False)
class _Node:
    """A leaf with its best split, or a split with the nodes below."""

    members: IntArray
    depth: int
    cost: float
    split: Split | None
    observed: "_Node | None" = None
    missing: "_Node | None" = None

    @property
    def gain(self) -> float:
        """What the split lowers the cost by."""
        return 0.0 if self.split is None else self.cost - (self.split.observed + self.split.missing)

    def tree(self) -> Tree:
        if self.split is None or self.observed is None or self.missing is None:
            return None
        return self.split.feature, self.observed.tree(), self.missing.tree()


class Greedy(Partitioner):
    """The greedy heuristic of the paper: one split at a time, the best first.

    Its certificate has the cost of the tree and no bound.

    Parameters
    ----------
    max_depth, max_leaves, min_rows, split_features
        As in :class:`~admiss.partition.Partitioner`.
    min_improvement : float
        A split must lower the cost of its leaf by more than this share.

    Examples
    --------
    >>> from admiss import FiniteRegressor
    >>> from admiss.datasets import make_synthetic
    >>> from admiss.partition import Greedy
    >>> data = make_synthetic(n=500, mechanism="censoring", random_state=0)
    >>> model = FiniteRegressor(Greedy(max_depth=2)).fit(data.X_train, data.y_train)
    >>> model.partition_.n_leaves
    3
    """

    def __init__(
        self,
        max_depth: int | None = 3,
        max_leaves: int | None = None,
        min_rows: int | None = None,
        split_features: Features | None = None,
        min_improvement: float = 0.0,
    ) -> None:
        super().__init__(max_depth, max_leaves, min_rows, split_features)
        self.min_improvement = min_improvement

    def check_limits(self) -> None:
        super().check_limits()
        if not (isinstance(self.min_improvement, int | float | np.number) and 0 <= self.min_improvement < 1):
            raise ValueError(f"min_improvement must be at least 0 and less than 1, not {self.min_improvement!r}.")

    def partition(
        self, statistics: PatternRows, leaf_cost: LeafCost, feature_names: Sequence[str] | None = None
    ) -> Partition:
        """Grow the tree."""
        start = clock()
        tree = grow_greedily(leaf_cost, self.limits(statistics, feature_names), float(self.min_improvement))
        objective = tree_objective(leaf_cost, tree)
        seconds = clock() - start
        certificate = Certificate(objective, -np.inf, "heuristic", "greedy", f"of admiss {__version__}", seconds)
        return tree_partition(statistics, tree, certificate)


def grow_greedily(leaf_cost: LeafCost, limits: Limits, min_improvement: float = 0.0) -> Tree:
    """The tree of Algorithm 1, best split first; splits that the limits forbid are never costed."""

    def best_split(members: IntArray, depth: int) -> Split | None:
        allowed = depth < limits.depth and n_leaves < limits.leaves
        return leaf_cost.best_split(members, limits.features, limits.rows) if allowed else None

    everything, n_leaves = np.arange(len(leaf_cost.rows.patterns)), 1
    split = best_split(everything, 0)
    if split is None:
        return None
    root = _Node(everything, 0, leaf_cost.cost(everything), split)
    open_leaves = [root]
    while n_leaves < limits.leaves:
        worthwhile = [leaf for leaf in open_leaves if leaf.gain > max(min_improvement, LEAST_GAIN) * abs(leaf.cost)]
        if not worthwhile:
            break
        node = max(worthwhile, key=lambda leaf: leaf.gain)  # ties go to the first
        open_leaves.remove(node)
        n_leaves += 1
        assert node.split is not None
        missing, depth = leaf_cost.rows.patterns[node.members, node.split.feature], node.depth + 1
        observed, absent = node.members[~missing], node.members[missing]
        node.observed = _Node(observed, depth, node.split.observed, best_split(observed, depth))
        node.missing = _Node(absent, depth, node.split.missing, best_split(absent, depth))
        open_leaves += [node.observed, node.missing]
    return root.tree()


def tree_objective(leaf_cost: LeafCost, tree: Tree) -> float:
    """Cost of the leaves of a tree, computed from their rows."""
    return leaf_cost.total(members_of(leaf_cost.rows.patterns, literals) for literals in leaves_of(tree))
