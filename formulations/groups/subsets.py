"""The best partition into groups of few patterns by a dynamic program over subsets, and its proof in exact arithmetic.

With the data of :mod:`formulations.groups.problem`, let f_q(S) be the smallest cost of a partition of the patterns S
into at most q groups. Selecting the group of the lowest pattern of S first gives

    f_1(S) = c_S,      f_q(S) = min over G subset of S with min(S) in G of  c_G + f_{q-1}(S \\ G),      f_q({}) = 0

where c_G is infinite for groups with too few rows. Only f_Q of all P patterns is needed, so the levels in between need
only the subsets without pattern 0: 3^(P-1) / 2 steps per level, after 2^P small Cholesky factorisations.

*Proof.* The costs of all 2^P groups lie between lower and upper ends (:mod:`formulations.leaves.cost`). The best
partition for lower ends bounds the cost of every partition. As for trees (:mod:`formulations.trees.dynamic_program`),
the lower ends of its groups are computed from rows until the gap is closed. In the first of these rounds, all groups
whose Gram matrix says nothing are computed: they look cheapest.
"""

import numpy as np

from formulations.arrays import FloatArray, IntArray
from formulations.certificate import clock
from formulations.groups.pricing.quadratics import add_quadratic, least_value
from formulations.groups.problem import PatternGroupsProblem
from formulations.jit import compiled
from formulations.leaves.cholesky import LOWER, leaf_costs
from formulations.leaves.squared import MOST_GRAMS, SquaredLeafCost
from formulations.trees.dynamic_program import ROUNDING, tolerance_of

# Most patterns: 3^21 / 2 steps are some ten seconds. A proof holds the Gram matrices of all groups, and takes the steps
# several times.
MOST_PATTERNS = 22
MOST_PROVABLE = 16


def best_groups_by_subsets(problem: PatternGroupsProblem) -> tuple[IntArray, float]:
    """Group of each pattern in a partition of smallest cost, numbered in order of appearance, and that cost.

    Examples
    --------
    >>> problem = PatternGroupsProblem(np.array([[[1.0, 1.0], [1.0, 1.0]], [[1.0, 3.0], [3.0, 9.0]]]),
    ...                                np.array([1, 1]), np.ones(2), ridge=0.0, max_groups=1)
    >>> labels, value = best_groups_by_subsets(problem)
    >>> labels, round(value, 9)
    (array([0, 0]), 2.0)
    """
    P = problem.patterns
    if P > MOST_PATTERNS:
        raise ValueError(f"The dynamic program takes at most {MOST_PATTERNS} patterns, not {P}: use column generation.")
    choice = problem.choice()
    cost = _all_costs(choice.quadratics, choice.base, choice.rows, choice.least_rows)
    return best_groups_of_costs(cost, P, problem.max_groups)


def best_groups_of_costs(cost: FloatArray, P: int, max_groups: int) -> tuple[IntArray, float]:
    """The same from the costs of all subsets, by their bits."""
    levels = [cost]
    for _ in range(2, min(max_groups, P)):
        levels.append(_next_level(cost, levels[-1]))
    labels = np.zeros(P, dtype=np.int64)
    left, group, value = 2**P - 1, 0, 0.0
    # The groups follow one after the other: that of the lowest pattern left, then of the rest.
    for level in [*reversed(levels), None] if max_groups > 1 and P > 1 else [None]:
        taken = left if level is None else _best_first_group(cost, level, left)
        value += cost[taken]
        labels[[p for p in range(P) if taken >> p & 1]] = group
        left, group = left ^ taken, group + 1
        if left == 0:
            break
    return labels, float(value)


@compiled
def _all_costs(quadratics, base, rows, least_rows):  # type: ignore[no-untyped-def]
    """c_G of every subset, by its bits; each subset is built from the one without its lowest pattern."""
    P, order = quadratics.shape[0], quadratics.shape[1]
    cost = np.zeros(2**P)
    # stack[p] is the base plus the sum over the patterns >= p of the current subset.
    stack, counts, L = np.zeros((P + 1, order, order)), np.zeros(P + 1, np.int64), np.zeros((order, order))
    add_quadratic(stack[P], base, 1.0)
    for subset in range(1, 2**P):
        # Counting upwards changes only the patterns up to the lowest one of the new subset.
        p = 0
        while not subset >> p & 1:
            p += 1
        above = p + 1
        while above < P and not subset >> above & 1:
            above += 1
        for i in range(order):
            for j in range(order):
                stack[p, i, j] = stack[above, i, j] + quadratics[p, i, j]
        counts[p] = counts[above] + rows[p]
        cost[subset] = least_value(stack[p], L) if counts[p] >= least_rows else np.inf
    return cost


@compiled
def _next_level(cost, level):  # type: ignore[no-untyped-def]
    """f_q from f_{q-1}, for the subsets without pattern 0; infinite for the others."""
    result = np.full(len(cost), np.inf)
    result[0] = 0.0
    for whole in range(2, len(cost), 2):
        lowest = whole & -whole
        others = whole ^ lowest
        best = cost[whole]
        part = others
        while part > 0:
            part = (part - 1) & others
            best = min(best, cost[lowest | part] + level[others ^ part])
        result[whole] = best
    return result


@compiled
def _best_first_group(cost, level, whole):  # type: ignore[no-untyped-def]
    """The group of the lowest pattern in a best partition of ``whole``; ``level`` holds the costs of the rest."""
    lowest = whole & -whole
    others = whole ^ lowest
    best, selected = cost[whole], whole
    part = others
    while part > 0:
        part = (part - 1) & others
        value = cost[lowest | part] + level[others ^ part]
        if value < best:
            best, selected = value, lowest | part
    return selected


def is_provable(leaf_cost: SquaredLeafCost) -> bool:
    """Whether there are few enough patterns."""
    P = len(leaf_cost.rows.patterns)
    return P <= MOST_PROVABLE and 8 * leaf_cost.length << P <= MOST_GRAMS


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
    lower = lower_ends(leaf_cost, min_rows)
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


def lower_ends(leaf_cost: SquaredLeafCost, min_rows: int) -> FloatArray:
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
