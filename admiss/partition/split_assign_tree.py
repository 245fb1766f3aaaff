"""The best tree by the textbook mixed-integer formulation (:mod:`formulations.trees.split_assign`)."""

from collections.abc import Sequence

from admiss.partition.base import Features, Partitioner
from admiss.partition.greedy import grow_greedily
from admiss.partition.partition import Partition, tree_partition
from formulations.leaves.cost import LeafCost, PatternRows
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
        """Solve the program, starting from the greedy tree."""
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
