"""The best partition into boxes, by set partitioning (:mod:`formulations.boxes.partition`)."""

from collections.abc import Sequence
from dataclasses import replace
from math import comb
from typing import Any

from admiss.partition.base import Features, Limits, Partition, Partitioner, box_partition
from admiss.partition.greedy import grow_greedily, tree_objective
from admiss.partition.optimal_tree import (
    cheap_bound,
    deadline,
    enumerated_boxes,
    greedy_if_cheaper,
    one_leaf,
    stated_boxes,
    unproven,
)
from admiss.partition.program import StatedPartition, require_partition
from admiss.patterns import PatternTable
from formulations.boxes.partition import box_partition_problem, build_box_partition, solve_box_partition
from formulations.certificate import Certificate, clock
from formulations.leaves.box_costs import members_of
from formulations.leaves.cost import LeafCost, PatternRows
from formulations.linear_solver import time_left
from formulations.trees.dynamic_program import ILL_CONDITIONED, leaves_of, proven_tree

# Entries of the set-partitioning matrix beyond which a tree is returned with its gap.
MOST_ENTRIES = 5 * 10**6


class BoxPartition(Partitioner):
    """The best cover of the observed patterns by disjoint boxes, which need not be the leaves of a tree.

    Parameters
    ----------
    max_depth, max_leaves, min_rows, split_features
        As in :class:`~admiss.partition.Partitioner`; ``max_depth`` bounds the literals of a box.
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
        split_features: Features | None = None,
        solver: str = "highs",
        time_limit: float | None = 60.0,
    ) -> None:
        super().__init__(max_depth, max_leaves, min_rows, split_features)
        self.solver = solver
        self.time_limit = time_limit

    def limits(self, statistics: PatternRows, feature_names: Sequence[str] | None = None) -> Limits:
        limits = super().limits(statistics, feature_names)
        most = min(len(statistics.patterns), max(1, statistics.n_rows // limits.rows))
        # boxes can be more than the leaves of a tree of that depth
        return replace(limits, leaves=min(most, self.max_leaves or most))

    def program(
        self,
        leaf_cost: LeafCost,
        feature_names: Sequence[str] | None = None,
        integer: bool | None = None,
        last_splits: str = "all",
    ) -> StatedPartition:
        """The integer program, with the greedy tree to start from."""
        limits, rows = self.limits(leaf_cost.rows, feature_names), leaf_cost.rows
        if _entries(rows, limits) > MOST_ENTRIES:
            raise ValueError("There are too many boxes for a program: lower max_depth or list split_features.")
        boxes, greedy = stated_boxes(leaf_cost, limits), grow_greedily(leaf_cost, limits)
        problem = box_partition_problem(rows, boxes, limits.leaves, feature_names)
        literals = {B: boxes.literals(*box) for B, box in zip(problem.box_names, problem.boxes, strict=True)}
        members = {B: members_of(rows.patterns, held) for B, held in literals.items()}
        by_members = {held.tobytes(): B for B, held in members.items()}

        def partition(taken: set[Any], certificate: Certificate) -> Partition:
            require_partition([members[B] for B in taken], len(rows.patterns))
            return box_partition(rows, [literals[B] for B in problem.box_names if B in taken], certificate)

        return StatedPartition(
            model=build_box_partition(problem, tree_objective(leaf_cost, greedy) or 1.0, bool(integer)),
            members=members,
            start={by_members[members_of(rows.patterns, leaf).tobytes()] for leaf in leaves_of(greedy)},
            partition=partition,
        )

    def partition(
        self, statistics: PatternRows, leaf_cost: LeafCost, feature_names: Sequence[str] | None = None
    ) -> Partition:
        """Solve the program, starting from the best tree."""
        start = clock()
        limits = self.limits(statistics, feature_names)
        if limits.leaves < 2:
            return box_partition(statistics, leaves_of(None), one_leaf(leaf_cost, start))
        boxes, reason = enumerated_boxes(leaf_cost, limits, limits.depth, self.time_limit, start)
        if boxes is None:
            tree = grow_greedily(leaf_cost, limits)
        else:
            tree = proven_tree(leaf_cost, boxes, limits.leaves, deadline(self.time_limit, start)).tree
        if boxes is not None and _entries(statistics, limits) > MOST_ENTRIES:
            reason = "too many boxes to choose"
        if boxes is None or reason:
            return unproven(leaf_cost, tree, cheap_bound(leaf_cost, limits, reason), reason, start)
        boxes_of_solution, certificate = solve_box_partition(
            leaf_cost,
            boxes,
            limits.leaves,
            start=tree,
            solver=self.solver,
            time_limit=time_left(self.time_limit, start),
        )
        certificate = replace(certificate, seconds=clock() - start)
        best = box_partition(statistics, boxes_of_solution, certificate)
        return best if certificate.status != ILL_CONDITIONED else greedy_if_cheaper(leaf_cost, limits, best, start)


def _entries(statistics: PatternRows, limits: Limits) -> int:
    """Entries of the matrix of patterns and the boxes that contain them."""
    cells = len(PatternTable.of(statistics.patterns[:, limits.features]).patterns)
    return cells * sum(comb(len(limits.features), k) for k in range(limits.depth + 1))
