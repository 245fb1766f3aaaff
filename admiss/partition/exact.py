"""Exact partitioners beyond the tree by enumeration: boxes, arbitrary groups, and the textbook formulation of the tree.

Each starts from the greedy or the best tree, and returns the best partition found with its gap where time runs out.
"""

import time
from collections.abc import Sequence
from dataclasses import replace
from math import comb

import numpy as np

from admiss.partition.base import Limits, Partitioner
from admiss.partition.greedy import grow_greedily
from admiss.partition.optimal_tree import cheap_bound, enumerated_boxes, settled, unproven
from admiss.partition.partition import Partition, box_partition, group_partition, tree_partition
from admiss.patterns import PatternTable
from admiss.terminal.progress import gap_teller
from formulations.boxes.box_partition import solve_box_partition
from formulations.groups.problem import PatternGroupsProblem, solve_pattern_groups
from formulations.leaves.boxes import members_of
from formulations.leaves.cost import LeafCost, PatternRows, SquaredLeafCost
from formulations.linear_solver import time_left
from formulations.trees.dynamic_program import best_tree, leaves_of
from formulations.trees.split_assign import solve_split_assign_tree

# Entries of a set-partitioning matrix, and patterns to be grouped, beyond which a tree is returned with its gap.
MOST_ENTRIES = 5 * 10**6
MOST_PATTERNS = 5000


class SplitAssignTree(Partitioner):
    """The best tree by the textbook formulation: split binaries, pattern-to-leaf assignment, leaf models, big-M.

    For ``loss="absolute"`` and ``ridge=0``, where it is linear. It is here to be compared with
    :class:`~admiss.partition.OptimalTree`, which solves the same problem much faster.

    Parameters
    ----------
    max_depth, max_leaves, min_rows, split_features
        Limits, see :class:`~admiss.partition.Partitioner`.
    solver : str
        "highs", or any mixed-integer solver that Pyomo knows.
    time_limit : float, optional
        Seconds after which the best tree found is returned with its gap.
    """

    def __init__(
        self,
        max_depth: int | None = 2,
        max_leaves: int | None = None,
        min_rows: int | None = None,
        split_features: Sequence[int] | Sequence[str] | None = None,
        solver: str = "highs",
        time_limit: float | None = 60.0,
    ) -> None:
        self.max_depth = max_depth
        self.max_leaves = max_leaves
        self.min_rows = min_rows
        self.split_features = split_features
        self.solver = solver
        self.time_limit = time_limit

    def partition(
        self, statistics: PatternRows, leaf_cost: LeafCost, feature_names: Sequence[str] | None = None
    ) -> Partition:
        """Solve the program."""
        limits = self.limits(statistics, feature_names)
        tree, certificate = solve_split_assign_tree(
            leaf_cost,
            limits.features,
            limits.depth,
            limits.leaves,
            limits.rows,
            start=grow_greedily(leaf_cost, limits),
            solver=self.solver,
            time_limit=self.time_limit,
        )
        return tree_partition(statistics, tree, certificate)


class BoxPartition(Partitioner):
    """The best cover of the observed patterns by disjoint boxes, which need not be the leaves of a tree.

    Parameters
    ----------
    max_depth, max_leaves, min_rows, split_features
        Limits, see :class:`~admiss.partition.Partitioner`; ``max_depth`` bounds the literals of a box.
    solver : str
        "highs", or any mixed-integer solver that Pyomo knows.
    time_limit : float, optional
        Seconds after which the best partition found is returned with its gap.

    Examples
    --------
    >>> from admiss import FiniteRegressor
    >>> from admiss.datasets import make_synthetic
    >>> from admiss.partition import BoxPartition
    >>> data = make_synthetic(n=300, d=5, rank=3, n_active=3, random_state=0)
    >>> model = FiniteRegressor(BoxPartition(max_depth=2, max_leaves=4)).fit(data.X_train, data.y_train)
    >>> model.certificate_.status
    'optimal'
    """

    def __init__(
        self,
        max_depth: int | None = 3,
        max_leaves: int | None = None,
        min_rows: int | None = None,
        split_features: Sequence[int] | Sequence[str] | None = None,
        solver: str = "highs",
        time_limit: float | None = 60.0,
    ) -> None:
        self.max_depth = max_depth
        self.max_leaves = max_leaves
        self.min_rows = min_rows
        self.split_features = split_features
        self.solver = solver
        self.time_limit = time_limit

    def partition(
        self, statistics: PatternRows, leaf_cost: LeafCost, feature_names: Sequence[str] | None = None
    ) -> Partition:
        """Solve the program, starting from the best tree."""
        began = time.perf_counter()
        limits = self.limits(statistics, feature_names)
        most = min(len(statistics.patterns), max(1, len(statistics.s) // limits.rows))
        # more than the leaves of a tree of that depth are possible
        limits = replace(limits, leaves=min(most, self.max_leaves or most))
        boxes, stopped = enumerated_boxes(leaf_cost, limits, limits.depth, self.time_limit, began)
        if boxes is None:
            greedy = grow_greedily(leaf_cost, limits)
            bound = cheap_bound(leaf_cost, limits, stopped)
            return tree_partition(statistics, greedy, unproven(leaf_cost, greedy, bound, stopped, began))
        if _entries(statistics, limits) > MOST_ENTRIES:
            tree, stopped = best_tree(boxes, limits.leaves)[0], "too many boxes to choose"
            bound = cheap_bound(leaf_cost, limits, stopped)
            return tree_partition(statistics, tree, unproven(leaf_cost, tree, bound, stopped, began))
        chosen, certificate = solve_box_partition(
            leaf_cost,
            boxes,
            limits.leaves,
            start=best_tree(boxes, limits.leaves)[0],
            solver=self.solver,
            time_limit=time_left(self.time_limit, began),
        )
        certificate = replace(certificate, seconds=time.perf_counter() - began)
        objective = leaf_cost.total(members_of(statistics.patterns, literals) for literals in chosen)
        return box_partition(statistics, chosen, settled(certificate, leaf_cost, objective))


def _entries(statistics: PatternRows, limits: Limits) -> int:
    """Entries of the matrix that says which patterns lie in which boxes."""
    cells = len(PatternTable.of(statistics.patterns[:, limits.features]).patterns)
    return cells * sum(comb(len(limits.features), k) for k in range(limits.depth + 1))


class PatternGroups(Partitioner):
    """The best division of the observed patterns into arbitrary groups, by column generation.

    Squared loss; a few tens of patterns. The bound is strongest with ``ridge_scale="sample"``.

    Parameters
    ----------
    max_leaves : int
        Most groups.
    min_rows : int, optional
        Fewest rows of a group; 2 (d + 1) by default.
    time_limit : float, optional
        Seconds after which the best groups found are returned with their gap.
    random_state : int
        Seed of the restarts of the exchange heuristic.

    Examples
    --------
    >>> from admiss import FiniteRegressor
    >>> from admiss.datasets import make_synthetic
    >>> from admiss.partition import PatternGroups
    >>> data = make_synthetic(n=300, d=4, rank=3, n_active=3, random_state=0)
    >>> model = FiniteRegressor(PatternGroups(max_leaves=3), ridge_scale="sample", ridge=1e-3)
    >>> model.fit(data.X_train, data.y_train).certificate_.status
    'optimal'
    """

    max_depth: int | None = None
    split_features: Sequence[int] | Sequence[str] | None = None

    def __init__(
        self,
        max_leaves: int = 4,
        min_rows: int | None = None,
        time_limit: float | None = 60.0,
        random_state: int = 0,
    ) -> None:
        self.max_leaves = max_leaves
        self.min_rows = min_rows
        self.time_limit = time_limit
        self.random_state = random_state

    def partition(
        self, statistics: PatternRows, leaf_cost: LeafCost, feature_names: Sequence[str] | None = None
    ) -> Partition:
        """Generate groups and choose among them."""
        if not isinstance(leaf_cost, SquaredLeafCost):
            raise ValueError("PatternGroups needs the squared loss: use BoxPartition or OptimalTree for other losses.")
        limits = self.limits(statistics, feature_names)
        if len(statistics.patterns) > MOST_PATTERNS:
            began = time.perf_counter()
            tree = grow_greedily(leaf_cost, limits)
            return tree_partition(statistics, tree, unproven(leaf_cost, tree, 0.0, "too many patterns", began))
        problem = PatternGroupsProblem(
            gram=_pattern_grams(leaf_cost),
            rows=statistics.counts,
            weights=statistics.weights,
            ridge=leaf_cost.ridge,
            ridge_scale=leaf_cost.ridge_scale,
            max_groups=limits.leaves,
            min_rows=limits.rows,
        )
        with gap_teller("pattern groups") as tell:
            labels, certificate = solve_pattern_groups(
                problem,
                start=_labels(statistics, leaf_cost, limits),
                time_limit=self.time_limit,
                random_state=self.random_state,
                on_progress=tell,
            )
        partition = group_partition(statistics, labels, certificate)
        objective = leaf_cost.total(partition.members(leaf) for leaf in range(partition.n_leaves))
        return replace(partition, certificate=settled(certificate, leaf_cost, objective))


def _pattern_grams(leaf_cost: SquaredLeafCost) -> np.ndarray:
    """Gram matrix of (1, a, y) of every pattern."""
    Z, start, _ = leaf_cost.statistics
    return np.array([Z[start[p] : start[p + 1]].T @ Z[start[p] : start[p + 1]] for p in range(len(start) - 1)])


def _labels(statistics: PatternRows, leaf_cost: LeafCost, limits: Limits) -> np.ndarray:
    """The leaves of the greedy tree as groups."""
    labels = np.zeros(len(statistics.patterns), dtype=np.int64)
    for number, literals in enumerate(leaves_of(grow_greedily(leaf_cost, limits))):
        labels[members_of(statistics.patterns, literals)] = number
    return labels
