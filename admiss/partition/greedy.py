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
from formulations.leaves.cost import LeafCost, PatternRows
from formulations.trees.dynamic_program import Tree, leaves_of

# An improvement below this share of the cost of a leaf is rounding.
ROUNDING = 1e-12


@dataclass(eq=False)
class _Node:
    """A leaf that may be split: its patterns, cost and best split, and the nodes below once it is split."""

    members: IntArray
    cost: float
    depth: int
    feature: int = -1
    gain: float = 0.0
    observed: "_Node | None" = None
    missing: "_Node | None" = None
    side_costs: tuple[float, float] = (0.0, 0.0)

    def tree(self) -> Tree:
        if self.observed is None or self.missing is None:
            return None
        return self.feature, self.observed.tree(), self.missing.tree()


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
    everything = np.arange(len(leaf_cost.rows.patterns))
    if limits.leaves < 2 or not len(_allowed(everything, leaf_cost.rows, limits)):
        return None
    root = _Node(everything, leaf_cost.cost(everything), 0)
    open_leaves, n_leaves = [root], 1
    _find_split(root, leaf_cost, limits)
    while n_leaves < limits.leaves:
        worthwhile = [leaf for leaf in open_leaves if leaf.gain > max(min_improvement, ROUNDING) * abs(leaf.cost)]
        if not worthwhile:
            break
        node = max(worthwhile, key=lambda leaf: leaf.gain)  # ties go to the first
        missing = leaf_cost.rows.patterns[node.members, node.feature]
        node.observed = _Node(node.members[~missing], node.side_costs[0], node.depth + 1)
        node.missing = _Node(node.members[missing], node.side_costs[1], node.depth + 1)
        open_leaves.remove(node)
        n_leaves += 1
        for side in (node.observed, node.missing) if n_leaves < limits.leaves else ():
            _find_split(side, leaf_cost, limits)
            open_leaves.append(side)
    return root.tree()


def _allowed(members: IntArray, rows: PatternRows, limits: Limits) -> IntArray:
    """Features by which these patterns may be split into two leaves with enough rows."""
    counts = rows.counts[members]
    missing = counts @ rows.patterns[np.ix_(members, limits.features)]
    least = max(1, limits.rows)
    return limits.features[(missing >= least) & (counts.sum() - missing >= least)]


def _find_split(node: _Node, leaf_cost: LeafCost, limits: Limits) -> None:
    """Find the split of a leaf that lowers its cost most; ties go to the first feature."""
    features = _allowed(node.members, leaf_cost.rows, limits)
    if node.depth >= limits.depth or not len(features):
        return
    observed, missing = leaf_cost.split_costs(node.members, features, limits.rows)
    best = int(np.argmin(observed + missing))
    if np.isfinite(observed[best] + missing[best]):
        node.feature = int(features[best])
        node.gain = node.cost - float(observed[best] + missing[best])
        node.side_costs = float(observed[best]), float(missing[best])


def tree_objective(leaf_cost: LeafCost, tree: Tree) -> float:
    """Cost of the leaves of a tree, computed from their rows."""
    return leaf_cost.total(members_of(leaf_cost.rows.patterns, literals) for literals in leaves_of(tree))
