"""Training cost against the number of leaves, and the trees close to the optimum.

The curve of greedy splitting has the cost of its tree with at most 1, 2, .. leaves; the curve of the optimum has the
bound that the dynamic program proves for every tree with so many leaves. Both are costs of the same program, that of
the certificates.
"""

from dataclasses import replace

from admiss.compare.near_optimal import NearOptimal, near_optimal
from admiss.compare.setting import Setting
from admiss.estimator.notices import silence
from admiss.partition.greedy import grow_greedily, tree_objective
from admiss.partition.proof import enumerated_boxes
from admiss.terminal.progress import progress
from formulations.certificate import clock
from formulations.leaves.cholesky import LOWER, UPPER
from formulations.leaves.cost import LeafCost
from formulations.trees.dynamic_program import best_costs


class Curves:
    """Curves of one data set, and the trees close to the optimum, as far as they have been computed.

    Attributes
    ----------
    costs : dict of lists
        "greedy" and "optimum".
    near : NearOptimal, optional
    """

    def __init__(self) -> None:
        self.costs: dict[str, list[float]] = {}
        self.near: NearOptimal | None = None

    def compute(self, setting: Setting, leaf_cost: LeafCost, is_exact: bool, seconds: float | None) -> str:
        """Compute the curves, and with an exact tree the trees close to it; return why some are unknown, if so.

        Parameters
        ----------
        setting : Setting
        leaf_cost : LeafCost
            Costs of the training rows at these settings.
        is_exact : bool
            Whether there is an exact tree.
        seconds : float, optional
            Time limit.
        """
        start = clock()
        limits = setting.partitioner("tree").limits(leaf_cost.rows)
        numbers = progress(range(1, limits.leaves + 1), limits.leaves, "greedy trees")
        trees = [grow_greedily(leaf_cost, replace(limits, leaves=q)) for q in numbers]
        self.costs["greedy"] = [tree_objective(leaf_cost, tree) for tree in trees]
        with silence():  # the exact tree has issued them
            lower, reason = enumerated_boxes(leaf_cost, limits, limits.depth, seconds, start, LOWER)
            if lower is None:
                return reason
            optimum = best_costs(lower, limits.leaves).tolist()
            self.costs["optimum"] = optimum + [optimum[-1]] * (limits.leaves - len(optimum))
            if not is_exact:
                return ""
            upper, reason = enumerated_boxes(leaf_cost, limits, limits.depth, seconds, start, UPPER)
        if upper is not None:
            max_leaves = setting.max_leaves or 1 << limits.depth  # rows and patterns limit leaves anyway
            self.near = near_optimal(lower, upper, max_leaves, leaf_cost.rows.patterns, trees[-1])
        return reason
