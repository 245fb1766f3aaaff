"""The best tree by the textbook mixed-integer formulation (:mod:`formulations.trees.split_assign`)."""

import time
from collections.abc import Sequence
from dataclasses import replace

from admiss.partition.base import Features, Partitioner
from admiss.partition.greedy import grow_greedily, tree_objective
from admiss.partition.partition import Partition, tree_partition
from admiss.partition.proof import DISAGREE, certified, deadline, enumerated_boxes
from formulations.certificate import SOLVERS_BOUND
from formulations.leaves.cost import LeafCost, PatternRows
from formulations.trees.proven_tree import proven_tree
from formulations.trees.split_assign import solve_split_assign_tree


class SplitAssignTree(Partitioner):
    """The best tree by the textbook formulation: split binaries, pattern-to-leaf assignment, leaf models, big-M.

    It needs ``loss="absolute"`` and ``ridge=0``, for which it is linear. It exists for comparison with
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
        split_features: Features | None = None,
        solver: str = "highs",
        time_limit: float | None = 60.0,
    ) -> None:
        super().__init__(max_depth, max_leaves, min_rows, split_features)
        self.solver = solver
        self.time_limit = time_limit

    def partition(
        self, statistics: PatternRows, leaf_cost: LeafCost, feature_names: Sequence[str] | None = None
    ) -> Partition:
        """Solve the program, starting from the greedy tree, and confirm its tree by the dynamic program."""
        start = time.perf_counter()
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
        boxes = None
        if certificate.status == SOLVERS_BOUND:
            boxes, _ = enumerated_boxes(leaf_cost, limits, limits.depth, self.time_limit, start)
        if boxes is not None:
            found = proven_tree(leaf_cost, boxes, limits.leaves, deadline(self.time_limit, start))
            if abs(certificate.objective - found.objective) > certificate.tolerance:
                certificate = replace(certificate, bound=0.0, status=DISAGREE)
                return tree_partition(statistics, tree, certificate)
            if found.objective < certificate.objective:  # equal up to the tolerance of the solver
                tree = found.tree
            certificate = certified(leaf_cost, tree_objective(leaf_cost, tree), found.bound, certificate, start, True)
        return tree_partition(statistics, tree, certificate)
