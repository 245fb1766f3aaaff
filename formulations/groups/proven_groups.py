"""The best partition into groups with its proof in exact arithmetic, for few patterns.

The costs of all 2^P groups lie between lower and upper ends (:mod:`formulations.leaves.cost`). The best partition for
lower ends, by the dynamic program of :mod:`formulations.groups.subsets`, bounds the cost of every partition. As for
trees (:mod:`formulations.trees.dynamic_program`), the lower ends of its groups are computed from rows until the gap is
closed. In the first of these rounds, all groups whose Gram matrix says nothing are computed: they look cheapest.
"""

import numpy as np

from formulations.arrays import FloatArray, IntArray
from formulations.certificate import clock
from formulations.groups.subsets import best_groups_of_costs
from formulations.leaves.cholesky import LOWER, leaf_costs
from formulations.leaves.squared import SquaredLeafCost
from formulations.trees.dynamic_program import ROUNDING, tolerance_of

# Most patterns, and most bytes of the Gram matrices of all groups.
MOST_PATTERNS = 16
MOST_BYTES = 10**9


def is_provable(leaf_cost: SquaredLeafCost) -> bool:
    """Whether there are few enough patterns."""
    P = len(leaf_cost.rows.patterns)
    return P <= MOST_PATTERNS and 8 * leaf_cost.length << P <= MOST_BYTES


def proven_groups(
    leaf_cost: SquaredLeafCost, start: IntArray, max_groups: int, min_rows: int, deadline: float = np.inf
) -> tuple[IntArray, float, float]:
    """Labels of the best partition, its cost, and a lower bound on the cost of every partition.

    Parameters
    ----------
    leaf_cost : SquaredLeafCost
    start : array of shape (P,)
        Labels of a good partition.
    max_groups, min_rows : int
        Most groups, and fewest rows of a group; all patterns together are always allowed.
    deadline : float
        On ``clock()``; after it, the gap may be open.
    """
    P = len(leaf_cost.rows.patterns)
    lower = _lower_ends(leaf_cost, min_rows)
    best, objective = start, _cost(leaf_cost, start)
    refined: set[int] = set()
    while True:
        labels, bound = best_groups_of_costs(lower, P, max_groups)
        cost = _cost(leaf_cost, labels)
        if cost < objective:
            best, objective = labels, cost
        bound *= 1.0 - ROUNDING
        groups = {int((1 << np.flatnonzero(labels == g)).sum()) for g in range(labels.max() + 1)}
        if not refined:
            groups |= set((np.flatnonzero(lower[1:] == 0.0) + 1).tolist())
        new = groups - refined
        closed = objective - bound <= tolerance_of(leaf_cost, objective)
        if closed or not new or clock() > deadline:
            return best, objective, bound
        for group in new:
            members = np.flatnonzero(group >> np.arange(P) & 1)
            lower[group] = max(lower[group], leaf_cost.interval(members)[0])
        refined |= new


def _cost(leaf_cost: SquaredLeafCost, labels: IntArray) -> float:
    return leaf_cost.total(np.flatnonzero(labels == g) for g in np.unique(labels))


def _lower_ends(leaf_cost: SquaredLeafCost, min_rows: int) -> FloatArray:
    """Lower ends of the costs of all groups, by their bits; infinite with too few rows."""
    P, counts = len(leaf_cost.rows.patterns), leaf_cost.rows.counts
    G, rows = np.zeros((1 << P, leaf_cost.length)), np.zeros(1 << P, dtype=np.int64)
    for p in range(P):
        half = 1 << p
        G[half : 2 * half] = G[:half] + leaf_cost.grams[p]
        rows[half : 2 * half] = rows[:half] + counts[p]
    by_weight = leaf_cost.ridge_scale == "sample"
    error, share = leaf_cost.pattern_error * P, leaf_cost.share_of_error
    ends = leaf_costs(G, leaf_cost.size, leaf_cost.scaled_ridge, by_weight, error, LOWER, share)
    ends *= leaf_cost.unit[-1] ** 2
    ends[rows < min(max(min_rows, 1), rows[-1])] = np.inf
    ends[0] = 0.0
    return np.asarray(ends)
