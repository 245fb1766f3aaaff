"""The best tree with its proof: a dynamic program over lower ends, refined where it matters.

Every leaf cost lies between a lower and an upper end (:mod:`formulations.leaves.cost`). The lower ends of the leaves of
a tree sum to at most its cost: the minimum V of this sum over all trees is a lower bound on the optimum. The tree that
attains V costs at most the sum of its upper ends.

The lower ends of all boxes come from one pass in floating point, and are loose where a leaf is ill-conditioned, or
where there are very many patterns. So

1. take the tree that attains V; if its upper ends exceed V by no more than the tolerance, it is optimal;
2. otherwise replace the lower ends of its leaves by those computed from their rows, update V, and repeat.

A tree whose leaves have all been refined has the gap of its own intervals: then no refinement can close it further.
"""

from dataclasses import dataclass

import numpy as np

from formulations.certificate import clock
from formulations.leaves.box_costs import BoxCosts, Literals, members_of
from formulations.leaves.cholesky import LOWER
from formulations.leaves.cost import LeafCost
from formulations.trees.dynamic_program import Tree, best_values, leaves_of, tree_of_values, update_values

# A gap below this share of the objective counts as closed, or below this share of the cost without a split.
CLOSED, NOISE = 1e-9, 1e-12
# Relative rounding error of sums of the costs of leaves.
ROUNDING = 1e-14
# Reason for a gap that remains when all leaves of the tree have been computed from rows.
ILL_CONDITIONED = "not proven: leaf costs are not accurate enough; rescale features or use a larger ridge"


def tolerance_of(leaf_cost: LeafCost, objective: float) -> float:
    """The largest gap that counts as closed."""
    everything = np.arange(len(leaf_cost.rows.patterns))
    unsplit = leaf_cost.quick_end(everything, LOWER) or leaf_cost.interval(everything)[0]
    return max(CLOSED * abs(objective), NOISE * unsplit)


class Refinement:
    """Lower ends of boxes that are replaced, one leaf at a time, by those from rows."""

    def __init__(self, leaf_cost: LeafCost, boxes: BoxCosts) -> None:
        self.leaf_cost, self.boxes = leaf_cost, boxes
        self.refined: set[tuple[int, int, int]] = set()

    def upper(self, leaves: list[Literals]) -> float:
        """Cost of a partition, from the rows of its leaves."""
        patterns = self.leaf_cost.rows.patterns
        return self.leaf_cost.total(members_of(patterns, leaf) for leaf in leaves)

    def refine(self, leaves: list[Literals]) -> list[Literals]:
        """Raise the lower ends of these boxes; returns those that were not refined before."""
        new = [leaf for leaf in leaves if self.boxes.index(leaf) not in self.refined]
        for leaf in new:
            k, rank, v = self.boxes.index(leaf)
            lower, _ = self.leaf_cost.interval(members_of(self.leaf_cost.rows.patterns, leaf))
            self.boxes.costs[k][rank, v] = max(self.boxes.costs[k][rank, v], lower)
            self.refined.add((k, rank, v))
        return new


@dataclass(frozen=True)
class ProvenTree:
    """A tree, its cost, a lower bound on the cost of every tree, and why the gap is open if it is."""

    tree: Tree
    objective: float
    bound: float
    reason: str


def proven_tree(leaf_cost: LeafCost, boxes: BoxCosts, max_leaves: int, deadline: float = np.inf) -> ProvenTree:
    """The best tree with at most ``max_leaves`` leaves; lower ends in ``boxes`` are refined in place.

    If ``clock()`` is past the deadline, the gap may be open.
    """
    refinement = Refinement(leaf_cost, boxes)
    values = best_values(boxes, max_leaves)
    best, objective = None, np.inf
    while True:
        tree, bound = tree_of_values(values, boxes)
        leaves = leaves_of(tree)
        cost = refinement.upper(leaves)
        if cost < objective:
            best, objective = tree, cost
        bound *= 1.0 - ROUNDING
        late = clock() > deadline
        closed = objective - bound <= tolerance_of(leaf_cost, objective)
        if closed or late or not (changed := refinement.refine(leaves)):
            return ProvenTree(best, objective, bound, "time limit" if late else ILL_CONDITIONED)
        update_values(values, boxes, changed)
