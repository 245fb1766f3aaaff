"""The best tree by the textbook mixed-integer formulation (:mod:`formulations.trees.split_assign`)."""

from collections.abc import Sequence
from dataclasses import replace

from admiss.partition.base import Features, Limits, Partition, Partitioner, tree_partition
from admiss.partition.greedy import grow_greedily, tree_objective
from admiss.partition.optimal_tree import DISAGREE, certified, enumerated_boxes
from formulations.certificate import SOLVERS_BOUND, Certificate, clock
from formulations.leaves.box_costs import BoxCosts
from formulations.leaves.cost import LeafCost, PatternRows
from formulations.trees.dynamic_program import Tree, proven_tree, tolerance_of
from formulations.trees.split_assign import solve_split_assign_tree


class SplitAssignTree(Partitioner):
    """The best tree by the textbook formulation: split binaries, pattern-to-leaf assignment, leaf models, big-M.

    It needs ``loss="absolute"`` and ``ridge=0``, for which it is linear. It exists for comparison with
    :class:`~admiss.partition.OptimalTree`, which solves the same problem much faster.

    Parameters
    ----------
    max_depth, max_leaves, min_rows, split_features
        As in :class:`~admiss.partition.Partitioner`.
    solver : str
        "highs", or any mixed-integer solver that Pyomo knows.
    time_limit : float, optional
        Seconds after which the best tree found is returned with its gap.

    Examples
    --------
    >>> from admiss import FiniteRegressor
    >>> from admiss.datasets import make_interacting
    >>> from admiss.partition import SplitAssignTree
    >>> data = make_interacting(n=40, d=4, random_state=0)
    >>> tree = SplitAssignTree(max_depth=1, min_rows=10, split_features=[0, 1])
    >>> model = FiniteRegressor(tree, loss="absolute", ridge=0.0, leaf_model="static").fit(data.X_train, data.y_train)
    >>> model.n_leaves_ <= 2
    True
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
        start = clock()
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
        if certificate.bound > 0:  # the costs of all boxes are known
            boxes, _ = enumerated_boxes(leaf_cost, limits, limits.depth, None, start)
            if boxes is not None:
                tree, certificate = _confirmed(leaf_cost, boxes, limits, tree, certificate, start)
        if certificate.status != SOLVERS_BOUND:
            certificate = replace(certificate, tolerance=tolerance_of(leaf_cost, certificate.objective))
        return tree_partition(statistics, tree, certificate)


def _confirmed(
    leaf_cost: LeafCost, boxes: BoxCosts, limits: Limits, tree: Tree, certificate: Certificate, start: float
) -> tuple[Tree, Certificate]:
    """The tree with a bound that the dynamic program confirms; the better of two that are equal for the solver."""
    found, closed = proven_tree(leaf_cost, boxes, limits.leaves), certificate.status == SOLVERS_BOUND
    if closed and abs(certificate.objective - found.objective) <= certificate.tolerance:
        tree = tree if certificate.objective <= found.objective else found.tree
        return tree, certified(leaf_cost, tree_objective(leaf_cost, tree), found.bound, certificate, start, True)
    bound, status = min(certificate.bound, found.bound), DISAGREE if closed else certificate.status
    return tree, replace(certificate, bound=bound, status=status)
