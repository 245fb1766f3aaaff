"""The best tree of missingness patterns, proven optimal.

The costs of all boxes with at most D literals come first; then a mixed-integer program or a dynamic program, two
independent computations, choose the tree.
"""

import time
from collections.abc import Sequence
from dataclasses import replace

from admiss._version import __version__
from admiss.partition.base import Features, Limits, Partitioner
from admiss.partition.greedy import grow_greedily
from admiss.partition.partition import Partition, tree_partition
from admiss.partition.proof import cheap_bound, enumerated_boxes, settled, unproven
from formulations.certificate import Certificate
from formulations.leaves.box_costs import BoxCosts
from formulations.leaves.cost import LeafCost, PatternRows
from formulations.linear_solver import time_left
from formulations.trees.dynamic_program import Tree, best_tree
from formulations.trees.flow import CLOSED, solve_optimal_tree

METHODS = ("dp", "mio", "both")


class OptimalTree(Partitioner):
    """The best tree of a given depth and number of leaves.

    If there are too many boxes to enumerate or time runs out, the greedy tree is returned with a lower bound.

    Parameters
    ----------
    max_depth, max_leaves, min_rows, split_features
        Limits, see :class:`~admiss.partition.Partitioner`.
    method : {"dp", "mio", "both"}
        Dynamic program, mixed-integer program (Pyomo), or both, compared.
    solver : str
        Solver of the mixed-integer program: "highs", or any mixed-integer solver that Pyomo knows.
    time_limit : float, optional
        Seconds after which the best tree found is returned with its gap.

    Examples
    --------
    >>> from admiss import FiniteRegressor
    >>> from admiss.datasets import make_synthetic
    >>> from admiss.partition import OptimalTree
    >>> data = make_synthetic(n=500, mechanism="censoring", random_state=0)
    >>> model = FiniteRegressor(OptimalTree(max_depth=2, method="both")).fit(data.X_train, data.y_train)
    >>> model.certificate_.status
    'optimal'
    """

    def __init__(
        self,
        max_depth: int | None = 3,
        max_leaves: int | None = None,
        min_rows: int | None = None,
        split_features: Features | None = None,
        method: str = "dp",
        solver: str = "highs",
        time_limit: float | None = None,
    ) -> None:
        super().__init__(max_depth, max_leaves, min_rows, split_features)
        self.method = method
        self.solver = solver
        self.time_limit = time_limit

    def check_limits(self) -> None:
        super().check_limits()
        if self.method not in METHODS:
            raise ValueError(f"method must be one of {', '.join(map(repr, METHODS))}, not {self.method!r}.")

    def partition(
        self, statistics: PatternRows, leaf_cost: LeafCost, feature_names: Sequence[str] | None = None
    ) -> Partition:
        """Find the tree."""
        start = time.perf_counter()
        limits = self.limits(statistics, feature_names)
        depth = min(limits.depth, max(0, limits.leaves - 1))  # a tree with Q leaves has depth Q - 1 at most
        boxes, reason = enumerated_boxes(leaf_cost, limits, depth, self.time_limit, start)
        if boxes is None:
            greedy = grow_greedily(leaf_cost, limits)
            return unproven(leaf_cost, greedy, cheap_bound(leaf_cost, limits, reason), reason, start)
        tree, certificate = self._choose(leaf_cost, boxes, limits, start)
        certificate = replace(certificate, seconds=time.perf_counter() - start)
        return settled(tree_partition(statistics, tree, certificate), leaf_cost)

    def _choose(self, leaf_cost: LeafCost, boxes: BoxCosts, limits: Limits, start: float) -> tuple[Tree, Certificate]:
        if self.method != "mio":
            tree, value = best_tree(boxes, limits.leaves)
            by_program = Certificate(value, value, "optimal", "dynamic program", f"of admiss {__version__}", 0.0)
            if self.method == "dp":
                return tree, by_program
        greedy = grow_greedily(leaf_cost, limits)
        left = time_left(self.time_limit, start)
        found, certificate = solve_optimal_tree(boxes, limits.leaves, start=greedy, solver=self.solver, time_limit=left)
        if self.method == "both":
            agree = abs(value - certificate.objective) <= CLOSED * max(abs(value), abs(certificate.objective))
            if certificate.status == "optimal" and not agree:
                low, status = min(value, certificate.bound), "mixed-integer and dynamic program disagree"
                better = found if certificate.objective < value else tree
                return better, replace(certificate, bound=low, status=status)
            if certificate.status != "optimal":  # the dynamic program has the proof that the solver did not finish
                return tree, by_program
        return found, certificate
