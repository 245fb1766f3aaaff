"""Good partitions by moving single patterns between groups.

The patterns are visited in turn. Pattern p moves from its group G to the group H, or to an empty one, where

    c_{G - p} + c_{H + p} - c_G - c_H

is lowest, if that is below 0, among the moves after which all groups that are not empty have enough rows. A round of
visits without a move ends it: no move of a single pattern is an improvement. A visit costs one small Cholesky
factorisation a group.

Among many random starts the best partition is nearly always found; the groups of the others are good columns too.
"""

from collections.abc import Callable

import numpy as np

from formulations.arrays import IntArray
from formulations.groups.pricing.choice import GroupChoice
from formulations.groups.pricing.quadratics import add_quadratic, least_value, set_quadratic
from formulations.jit import compiled

# Starts: at most, at least, and at most so many patterns in all of them.
RESTARTS, LEAST_RESTARTS, RESTARTED_PATTERNS = 1000, 4, 40_000
# Patterns visited between two looks at the clock.
VISITS = 200_000
# A move counts if it lowers the cost by this share of the cost of G.
LOWER = 1e-10


def exchanged_partitions(
    c: GroupChoice, start: IntArray, max_groups: int, rng: np.random.Generator, stop: Callable[[], bool]
) -> list[IntArray]:
    """Labels of the partitions that ``start`` and random starts lead to, the best first."""
    P, Q = c.patterns, min(max_groups, c.patterns)
    starts = [start, np.arange(P) % Q]
    while len(starts) < max(LEAST_RESTARTS, min(RESTARTS, RESTARTED_PATTERNS // P)):
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
    """A partition with enough rows from which no move of a single pattern is an improvement, and its cost."""
    Q = min(max_groups, c.patterns)
    labels = _with_enough_rows(labels.astype(np.int64), c.rows, c.least_rows)
    while True:
        value, done = improve_partition(c.quadratics, c.base, c.rows, c.least_rows, labels, Q, VISITS)
        if done or stop():
            return labels, value


def _with_enough_rows(labels: IntArray, rows: IntArray, least_rows: int) -> IntArray:
    """Labels where groups with too few rows have been put together with the smallest other group."""
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

    The groups of ``labels`` that are not empty have enough rows, and keep them. Returns the cost, and whether there is
    nothing left to improve; ``visits`` limits how many patterns are looked at.
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
    """The group to which a pattern moves, and what it then costs; -1 where the pattern should stay.

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
