"""Local search by moving single patterns: good partitions, and groups of small reduced cost.

*Partitions.* The patterns are visited in turn. Pattern p moves from its group G to the group H, possibly an empty one,
for which

    c_{G - p} + c_{H + p} - c_G - c_H

is lowest, if that is below 0, among the moves after which all non-empty groups have enough rows. The search ends after
a round of visits without a move: no move of a single pattern is an improvement. A visit costs one small Cholesky
factorisation per group. With many random starts the best partition is nearly always found; the groups of the others are
good columns too.

*Groups.* From a group G, the single pattern whose change lowers

    c_G - sum_{p in G} pi_p

the most is added or dropped, until no change lowers it. Groups keep enough rows; a start with too few
rows takes patterns in until it has enough. The starts are the groups of the relaxation's basis, whose
reduced cost is 0, and if these lead to nothing, random groups, as many as there are patterns. This proves nothing, but
finds most of the columns that :mod:`formulations.groups.pricing.branch_and_bound` would.
"""

from collections.abc import Callable

import numpy as np

from formulations.arrays import BoolArray, FloatArray, IntArray
from formulations.groups.pricing.quadratics import GroupChoice, add_quadratic, least_value, set_quadratic
from formulations.jit import compiled
from formulations.linear_solver import HIGHS_TOLERANCE

# Partitions: most patterns in all starts.
RESTARTED_PATTERNS = 40_000
# Patterns visited between two looks at the clock.
VISITS = 200_000
# A move counts if it lowers the cost by this share of the cost of G, a change if it lowers the reduced cost by it: the
# tolerance of prices.
LOWER = HIGHS_TOLERANCE


def exchanged_partitions(
    c: GroupChoice, start: IntArray, max_groups: int, rng: np.random.Generator, stop: Callable[[], bool], most: int
) -> list[IntArray]:
    """Labels of the partitions reached from ``start`` and from random starts, at most so many, the best first."""
    P, Q = c.patterns, min(max_groups, c.patterns)
    starts = [start, np.arange(P) % Q]
    while len(starts) < min(most, RESTARTED_PATTERNS // P):
        starts.append(rng.integers(Q, size=P))
    partitions: list[tuple[float, int, IntArray]] = []
    for labels in starts:
        improved, value = improved_partition(c, labels, max_groups, stop)
        partitions.append((value, len(partitions), improved))
        if stop():
            break
    return [labels for _, _, labels in sorted(partitions)]


def improved_partition(
    c: GroupChoice, labels: IntArray, max_groups: int, stop: Callable[[], bool]
) -> tuple[IntArray, float]:
    """A partition with enough rows that no move of a single pattern improves, and its cost."""
    Q = min(max_groups, c.patterns)
    labels = _with_enough_rows(labels.astype(np.int64), c.rows, c.least_rows)
    while True:
        value, done = improve_partition(c.quadratics, c.base, c.rows, c.least_rows, labels, Q, VISITS)
        if done or stop():
            return labels, value


def _with_enough_rows(labels: IntArray, rows: IntArray, least_rows: int) -> IntArray:
    """Labels with groups of too few rows merged into the smallest other group."""
    while True:
        names, labels_of = np.unique(labels, return_inverse=True)
        counts = np.bincount(labels_of, weights=rows)
        if len(names) == 1 or counts.min() >= least_rows:
            return labels
        smallest, second = np.argsort(counts, kind="stable")[:2]
        labels = np.where(labels == names[smallest], names[second], labels)


@compiled
def improve_partition(quadratics, base, rows, least_rows, labels, groups, visits):  # type: ignore[no-untyped-def]
    """Move one pattern at a time to its best group, in place, as long as the total cost falls.

    The non-empty groups of ``labels`` have enough rows before and after. Returns the cost, and whether no move is left;
    ``visits`` limits how many patterns are visited.
    """
    P, order = quadratics.shape[0], quadratics.shape[1]
    matrices, costs = np.empty((groups, order, order)), np.zeros(groups)
    counts, sizes = np.zeros(groups, np.int64), np.zeros(groups, np.int64)
    L = np.zeros((order, order))
    for g in range(groups):
        set_quadratic(matrices[g], base)
    for p in range(P):
        add_quadratic(matrices[labels[p]], quadratics[p], 1.0)
        counts[labels[p]] += rows[p]
        sizes[labels[p]] += 1
    for g in range(groups):
        costs[g] = least_value(matrices[g], L) if sizes[g] > 0 else 0.0
    still, p = 0, -1
    while still < P and visits > 0:
        p = (p + 1) % P
        still += 1
        visits -= 1
        source = labels[p]
        if sizes[source] > 1 and counts[source] - rows[p] < least_rows:
            continue
        add_quadratic(matrices[source], quadratics[p], -1.0)
        left = least_value(matrices[source], L) if sizes[source] > 1 else 0.0
        target, joined = _best_target(matrices, costs, counts, quadratics[p], rows[p], source, left, least_rows, L)
        if target < 0:
            add_quadratic(matrices[source], quadratics[p], 1.0)
            continue
        add_quadratic(matrices[target], quadratics[p], 1.0)
        counts[source] -= rows[p]
        counts[target] += rows[p]
        sizes[source] -= 1
        sizes[target] += 1
        costs[source], costs[target] = left, joined
        labels[p] = target
        still = 0
    return costs.sum(), still >= P


@compiled
def _best_target(matrices, costs, counts, quadratic, rows, source, left, least_rows, L):  # type: ignore[no-untyped-def]
    """The group to which a pattern moves, and its new cost; -1 if the pattern should stay.

    The pattern has been taken out of the matrix of ``source``, which costs ``left`` without it.
    """
    target, lowest, joined = -1, -LOWER * costs[source], 0.0
    for g in range(len(costs)):
        if g != source and counts[g] + rows >= least_rows:
            add_quadratic(matrices[g], quadratic, 1.0)
            cost = least_value(matrices[g], L)
            add_quadratic(matrices[g], quadratic, -1.0)
            change = left + cost - costs[source] - costs[g]
            if change < lowest:
                target, lowest, joined = g, change, cost
    return target, joined


def price_by_exchange(
    c: GroupChoice,
    prices: FloatArray,
    threshold: float,
    basis: BoolArray,
    rng: np.random.Generator,
    stop: Callable[[], bool],
) -> BoolArray:
    """Distinct groups with cost minus prices below ``threshold``; the search ends early when ``stop()`` holds."""
    shares = rng.random((c.patterns, 1))
    starts = np.concatenate([basis, rng.random((c.patterns, c.patterns)) < shares])
    found: list[BoolArray] = []
    for k, member in enumerate(starts):
        if k == len(basis) and found:
            break
        if improve_group(c.quadratics, c.base, prices, c.rows, c.least_rows, member) < threshold:
            found.append(member)
        if stop():
            break
    return np.unique(found, axis=0) if found else np.zeros((0, c.patterns), dtype=bool)


@compiled
def improve_group(quadratics, base, prices, rows, least_rows, member):  # type: ignore[no-untyped-def]
    """Add or drop one pattern at a time, the best first, in place, as long as the reduced cost falls; returns it."""
    P, order = quadratics.shape[0], quadratics.shape[1]
    matrix, trial, L = base.copy(), np.empty((order, order)), np.zeros((order, order))
    paid, count = 0.0, 0
    for p in range(P):
        if member[p]:
            add_quadratic(matrix, quadratics[p], 1.0)
            paid += prices[p]
            count += rows[p]
    value = least_value(matrix, L) - paid if count >= least_rows else np.inf
    while True:
        selected, best = -1, value - LOWER * abs(value) if value < np.inf else np.inf
        for p in range(P):
            sign = -1 if member[p] else 1
            # With too few rows, patterns may only be added.
            enough = count + sign * rows[p] >= least_rows or (value == np.inf and not member[p])
            if enough:
                set_quadratic(trial, matrix)
                add_quadratic(trial, quadratics[p], float(sign))
                changed = least_value(trial, L) - paid - sign * prices[p]
                if changed < best:
                    selected, best = p, changed
        if selected < 0:
            return value
        sign = -1 if member[selected] else 1
        member[selected] = not member[selected]
        paid += sign * prices[selected]
        count += sign * rows[selected]
        add_quadratic(matrix, quadratics[selected], float(sign))
        value = best if count >= least_rows else np.inf
