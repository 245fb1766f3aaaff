"""Enumeration of the partitions better than the best one known, from groups of small value.

*Which groups.* For prices pi, the value of a group is c_G - pi(G), and no value is below t <= 0. A partition costs
sum_p pi_p plus its values, of at most Q groups; empty groups may be added with value 0 >= t. If it costs less than U,
the two largest of its values sum to less than U - sum_p pi_p - (Q - 2) t, and all but the largest are below

    (U - sum_p pi_p - (Q - 2) t) / 2

If few groups are below that, :mod:`formulations.groups.pricing.branch_and_bound` enumerates them.

*Joining them.* A depth-first search selects disjoint groups in ascending order of value; the patterns left over are the
last group, of the largest value. If the excess over t of the groups selected so far sums to e, the next group has at
most the excess of the last group: it needs  e + 2 (value - t) < U - sum_p pi_p - Q t, and the search goes no further
in the ascending list.
"""

from collections.abc import Callable

import numpy as np

from formulations.arrays import BoolArray, FloatArray
from formulations.groups.pricing.branch_and_bound import price_groups
from formulations.groups.pricing.choice import GroupChoice
from formulations.groups.pricing.quadratics import add_quadratic, least_value, set_quadratic
from formulations.jit import compiled

# Most groups enumerated, and most steps of joining them.
MOST_ENUMERATED, MOST_JOINED = 50_000, 3 * 10**8


def small_groups(
    c: GroupChoice, prices: FloatArray, lowest: float, max_groups: int, value: float, stop: Callable[[], bool]
) -> tuple[BoolArray, FloatArray] | None:
    """Groups, except the last, of partitions that cost less than ``value``, in ascending order; None if cut short."""
    left = value - float(prices.sum())
    priced = price_groups(c, prices, 0.5 * (left - (max_groups - 2) * lowest), stop, MOST_ENUMERATED)
    order = np.argsort(priced.values, kind="stable")
    return (priced.groups[order], priced.values[order]) if priced.finished else None


@compiled
def join_groups(quadratics, base, prices, rows, least_rows, groups, values, lowest, most, limit, steps):  # type: ignore[no-untyped-def]
    """Labels of a partition into disjoint ``groups`` and the rest, with values that sum to less than ``limit``.

    The value of a group is its cost minus its prices, at least ``lowest``; ``values`` ascend, and the rest is taken to
    have the largest value in the partition. The first label is -1 if there is no such partition; ``steps[0]`` counts
    down, and the search ends at 0.
    """
    P, order, m = quadratics.shape[0], quadratics.shape[1], len(groups)
    gap = limit - most * lowest
    words = _bits(groups)
    labels, selected = np.full(P, -1), np.full(most, -1)
    union, total = np.zeros((most, words.shape[1]), np.int64), np.zeros(most)
    matrix, L = np.empty((order, order)), np.zeros((order, order))
    depth, g = 0, -1
    # Groups are selected in order of value; the selected ones have the sum total[depth] and the patterns union[depth].
    while True:
        g += 1
        steps[0] -= 1
        excess = total[depth] - depth * lowest
        if steps[0] <= 0:
            return labels
        if depth == most - 1 or g >= m or excess + 2.0 * (values[g] - lowest) >= gap:
            if depth == 0:
                return labels
            depth -= 1
            g = selected[depth]
            continue
        disjoint = True
        for w in range(words.shape[1]):
            if union[depth, w] & words[g, w]:
                disjoint = False
        if not disjoint:
            continue
        selected[depth] = g
        depth += 1
        total[depth] = total[depth - 1] + values[g]
        for w in range(words.shape[1]):
            union[depth, w] = union[depth - 1, w] | words[g, w]
        rest = _value_of_rest(quadratics, base, prices, rows, least_rows, union[depth], matrix, L)
        if total[depth] + rest < limit:
            for p in range(P):
                labels[p] = depth
                for k in range(depth):
                    if groups[selected[k], p]:
                        labels[p] = k
            return labels


@compiled
def _bits(groups):  # type: ignore[no-untyped-def]
    """The members of each group as bits, 63 per word."""
    m, P = groups.shape
    words = np.zeros((m, P // 63 + 1), np.int64)
    for g in range(m):
        for p in range(P):
            if groups[g, p]:
                words[g, p // 63] |= 1 << (p % 63)
    return words


@compiled
def _value_of_rest(quadratics, base, prices, rows, least_rows, union, matrix, L):  # type: ignore[no-untyped-def]
    """The value of the group of all patterns outside ``union``: 0 if there are none, infinite with too few rows."""
    set_quadratic(matrix, base)
    paid, count = 0.0, 0
    for p in range(len(rows)):
        if not union[p // 63] >> (p % 63) & 1:
            add_quadratic(matrix, quadratics[p], 1.0)
            paid += prices[p]
            count += rows[p]
    if count == 0:
        return 0.0
    return least_value(matrix, L) - paid if count >= least_rows else np.inf
