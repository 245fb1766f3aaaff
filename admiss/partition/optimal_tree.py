"""The best tree of missingness patterns, proven optimal.

Intervals of the costs of all boxes with at most D literals come first; then a dynamic program, whose bound holds in
exact arithmetic, or a mixed-integer program, whose bound is the solver's, choose the tree. These are two independent
computations.
"""

from collections.abc import Sequence
from dataclasses import replace

from admiss._version import __version__
from admiss.partition.base import Features, Limits, Partition, Partitioner, tree_partition
from admiss.partition.greedy import grow_greedily
from admiss.partition.proof import (
    DISAGREE,
    certified,
    cheap_bound,
    cheaper_greedy,
    deadline,
    enumerated_boxes,
    one_leaf,
    unproven,
)
from formulations.certificate import SOLVERS_BOUND, Certificate, certify, clock
from formulations.leaves.box_costs import BoxCosts
from formulations.leaves.cost import LeafCost, PatternRows
from formulations.linear_solver import time_left
from formulations.trees.dynamic_program import (
    CLOSED,
    ROUNDING,
    Refinement,
    Tree,
    best_tree,
    leaves_of,
    proven_tree,
    tolerance_of,
)
from formulations.trees.flow import solve_optimal_tree

METHODS = ("dp", "mio", "both")


class OptimalTree(Partitioner):
    """The best tree of a given depth and number of leaves.

    If there are too many boxes to enumerate or time runs out, the greedy tree is returned with a lower bound.

    Parameters
    ----------
    max_depth, max_leaves, min_rows, split_features
        As in :class:`~admiss.partition.Partitioner`.
    method : {"dp", "mio", "both"}
        Dynamic program, mixed-integer program (Pyomo), or both, compared. The bound of the mixed-integer program alone
        is computed in floating point by the solver: its status is "solver's bound", not "optimal".
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
        if not isinstance(self.method, str) or self.method not in METHODS:
            raise ValueError(f"method must be one of {', '.join(map(repr, METHODS))}, not {self.method!r}.")

    def partition(
        self, statistics: PatternRows, leaf_cost: LeafCost, feature_names: Sequence[str] | None = None
    ) -> Partition:
        """Find the tree."""
        start = clock()
        limits = self.limits(statistics, feature_names)
        if limits.leaves < 2:
            return tree_partition(statistics, None, one_leaf(leaf_cost, start))
        depth = min(limits.depth, max(0, limits.leaves - 1))  # a tree with Q leaves has depth Q - 1 at most
        boxes, reason = enumerated_boxes(leaf_cost, limits, depth, self.time_limit, start)
        if boxes is None:
            greedy = grow_greedily(leaf_cost, limits)
            return unproven(leaf_cost, greedy, cheap_bound(leaf_cost, limits, reason), reason, start)
        choose = {"dp": self._by_dynamic_program, "mio": self._by_integer_program, "both": self._by_both}[self.method]
        tree, certificate = choose(leaf_cost, boxes, limits, start)
        return cheaper_greedy(leaf_cost, limits, certificate, start) or tree_partition(statistics, tree, certificate)

    def _by_dynamic_program(
        self, leaf_cost: LeafCost, boxes: BoxCosts, limits: Limits, start: float
    ) -> tuple[Tree, Certificate]:
        found = proven_tree(leaf_cost, boxes, limits.leaves, deadline(self.time_limit, start))
        tolerance, version = tolerance_of(leaf_cost, found.objective), f"of admiss {__version__}"
        return found.tree, certify(
            found.objective, found.bound, tolerance, found.reason, "dynamic program", version, start
        )

    def _by_integer_program(
        self, leaf_cost: LeafCost, boxes: BoxCosts, limits: Limits, start: float
    ) -> tuple[Tree, Certificate]:
        """Solve the program, refining the lower ends of the leaves of its tree until these settle its cost.

        The bound of the solver is not taken if it is above that of the dynamic program.
        """
        refinement, tree = Refinement(leaf_cost, boxes), grow_greedily(leaf_cost, limits)
        while True:
            left = time_left(self.time_limit, start)
            tree, found = solve_optimal_tree(boxes, limits.leaves, start=tree, solver=self.solver, time_limit=left)
            objective = refinement.upper(leaves_of(tree))
            bound = min(found.bound, best_tree(boxes, limits.leaves)[1] * (1.0 - ROUNDING))
            certificate = certified(leaf_cost, objective, bound, found, start, rigorous=False)
            ended = certificate.status == SOLVERS_BOUND or found.status != SOLVERS_BOUND
            if ended or not refinement.refine(leaves_of(tree)):
                return tree, certificate

    def _by_both(self, leaf_cost: LeafCost, boxes: BoxCosts, limits: Limits, start: float) -> tuple[Tree, Certificate]:
        """The dynamic program has the proof; the integer program must find the same least sum of lower ends.

        The tree of the proof has the least upper ends found. Where intervals are loose, its lower ends sum to more.
        """
        tree, proof = self._by_dynamic_program(leaf_cost, boxes, limits, start)
        greedy, left = grow_greedily(leaf_cost, limits), time_left(self.time_limit, start)
        found, certificate = solve_optimal_tree(boxes, limits.leaves, start=greedy, solver=self.solver, time_limit=left)
        if certificate.status != SOLVERS_BOUND:
            return tree, proof
        value = best_tree(boxes, limits.leaves)[1]
        if abs(value - certificate.objective) > CLOSED * max(value, certificate.objective) + certificate.tolerance:
            low = min(proof.bound, certificate.bound)
            return (found if certificate.objective < value else tree), replace(proof, bound=low, status=DISAGREE)
        return tree, replace(proof, solver=f"dynamic program and {certificate.solver}", version=certificate.version)
