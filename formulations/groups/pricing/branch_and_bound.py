"""The group of patterns with the smallest reduced cost, by branch and bound.

Sets and data
    p in P      patterns, each with a convex quadratic Q_p(u) >= 0 of the coefficients u
    Q_0(u)      a quadratic that every group pays once (the ridge per leaf, or 0)
    pi_p        the price of pattern p
    r_p, r      rows of pattern p, and the rows that a group needs
Variables
    G subset of P,  u
Objective
    min  Q_0(u) + sum_{p in G} (Q_p(u) - pi_p)
Constraints
    sum_{p in G} r_p >= r

*Branch and bound.* A node has patterns in, patterns out, and free ones. Its bound, and the patterns that this fixes,
come from :mod:`formulations.groups.pricing.block_bound`; the rows that a group needs fix more. The node with the lowest
bound is next, and is split on the free pattern with the largest difference between the bounds of in and out. A node
without free patterns is a single group, which is reported if it is below the threshold. All groups below the threshold
are found; if the search stops early, no group is below the lowest of the threshold, the bounds of open nodes and the
groups found.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from formulations.arrays import BoolArray, FloatArray, IntArray
from formulations.groups.pricing.block_bound import FREE, IN, OUT, enter_node, inherit, new_workspace, raise_bound
from formulations.groups.pricing.quadratics import GroupChoice
from formulations.jit import compiled

# Memory for the open nodes of a tree; a search that needs more stops, with a valid bound.
POOL_BYTES = 2**29


@dataclass(frozen=True)
class Priced:
    """Groups below the threshold and their values, a lower bound on every value, and whether these are all groups."""

    groups: BoolArray
    values: FloatArray
    bound: float
    finished: bool


def price_groups(
    choice: GroupChoice,
    prices: FloatArray,
    threshold: float,
    stop: Callable[[], bool],
    most_groups: int = 50,
    most_nodes: float = np.inf,
) -> Priced:
    """Find the groups with cost minus prices below ``threshold``, and prove that there are no others.

    The search ends early, with a valid bound, when ``stop()`` holds, or after ``most_groups`` groups or ``most_nodes``
    nodes: columns of a relaxation need not be all of them, an enumeration has to be.
    """
    P, K = choice.patterns, choice.base.shape[0] - 1
    most_slots = max(64, POOL_BYTES // (8 * P * K))
    pool = _new_pool(P, K, min(1024, most_slots))
    work = new_workspace(P, K)
    counters = np.array([1, 0, 0], dtype=np.int64)
    found, values = np.zeros((most_groups, P), dtype=bool), np.zeros(most_groups)
    # Nodes for some hundredths of a second between two looks at the clock.
    slice_nodes = max(1, 10_000_000 // (P * K**3))
    while counters[0] > 0 and counters[1] < most_groups and counters[2] < most_nodes and not stop():
        if counters[0] + 2 > len(pool.bounds):
            if len(pool.bounds) == most_slots:
                break
            pool = _grown(pool, min(2 * len(pool.bounds), most_slots))
        budget = int(min(slice_nodes, most_nodes - counters[2]))
        _search(
            choice.quadratics, choice.base, prices, choice.rows, choice.least_rows,
            threshold, budget, pool, work, counters, found, values,
        )  # fmt: skip
    groups, values = found[: counters[1]], values[: counters[1]]
    still_open = pool.bounds[pool.heap[: counters[0]]]
    bound = min(threshold, values.min(initial=np.inf), still_open.min(initial=np.inf))
    return Priced(groups, values, float(bound), len(still_open) == 0)


class _Pool(NamedTuple):
    """Open nodes: the front of ``heap`` is a heap of slots by bound, the slots behind it are unused."""

    bounds: FloatArray
    status: NDArray[np.int8]
    theta: NDArray[np.float32]
    nu: NDArray[np.float32]
    heap: IntArray


def _new_pool(P: int, K: int, slots: int) -> _Pool:
    return _Pool(
        np.full(slots, -np.inf),
        np.zeros((slots, P), dtype=np.int8),
        np.full((slots, P, K), 1.0 / P, dtype=np.float32),
        np.zeros((slots, P, K), dtype=np.float32),
        np.arange(slots),
    )


def _grown(pool: _Pool, slots: int) -> _Pool:
    old = len(pool.bounds)
    grown = _new_pool(pool.nu.shape[1], pool.nu.shape[2], slots)
    grown.bounds[:old], grown.status[:old] = pool.bounds, pool.status
    grown.theta[:old], grown.nu[:old] = pool.theta, pool.nu
    grown.heap[:old] = pool.heap
    return grown


@compiled
def _search(quadratics, base, prices, rows, least_rows, threshold, budget, pool, work, tally, found, values):  # type: ignore[no-untyped-def]
    """Process up to ``budget`` nodes, lowest bound first; ``tally``: open nodes, groups found, nodes processed."""
    status = np.empty(len(rows), np.int8)
    for _ in range(budget):
        if tally[0] == 0 or tally[0] + 2 > len(pool.bounds) or tally[1] == len(found):
            break
        slot = _pop(pool.heap, pool.bounds, tally[0])
        tally[0] -= 1
        tally[2] += 1
        bound = pool.bounds[slot]
        for p in range(len(status)):
            status[p] = pool.status[slot, p]
        if not _propagate(status, rows, least_rows):
            continue
        paid, count = enter_node(quadratics, base, prices, status, pool.theta[slot], pool.nu[slot], work)
        bound = max(bound, raise_bound(paid, threshold, status, count, work))
        if bound >= threshold or not _propagate(status, rows, least_rows):
            continue
        selected = _branching_pattern(status, work.low)
        if selected < 0:
            # Everything is fixed, and the bound of a node without free patterns is its reduced cost.
            cost, _ = enter_node(quadratics, base, prices, status, pool.theta[slot], pool.nu[slot], work)
            if cost < threshold:
                for p in range(len(status)):
                    found[tally[1], p] = status[p] == IN
                values[tally[1]] = cost
                tally[1] += 1
            continue
        for side in range(2):
            child = pool.heap[tally[0]]
            pool.bounds[child] = max(bound, work.low[selected, side])
            for p in range(len(status)):
                pool.status[child, p] = status[p]
            pool.status[child, selected] = IN if side == 1 else OUT
            inherit(pool.status[child], count, work, pool.theta[child], pool.nu[child])
            _push(pool.heap, pool.bounds, tally[0])
            tally[0] += 1


@compiled
def _propagate(status, rows, least_rows):  # type: ignore[no-untyped-def]
    """Fix the patterns without which a group has too few rows; False if no group is left."""
    possible = 0
    for p in range(len(status)):
        if status[p] != OUT:
            possible += rows[p]
    if possible < least_rows:
        return False
    for p in range(len(status)):
        if status[p] == FREE and possible - rows[p] < least_rows:
            status[p] = IN
    return True


@compiled
def _branching_pattern(status, low):  # type: ignore[no-untyped-def]
    """The free pattern that makes the largest difference; -1 if none is free."""
    selected, largest = -1, -np.inf
    nothing_in = True
    for p in range(len(status)):
        if status[p] == IN:
            nothing_in = False
    for p in range(len(status)):
        if status[p] == FREE:
            # The first pattern to go in should lower the bound.
            score = low[p, 0] - low[p, 1] if nothing_in else abs(low[p, 0] - low[p, 1])
            if score > largest or selected < 0:  # not a number if the bounds say nothing
                selected, largest = p, score if score == score else -np.inf
    return selected


@compiled
def _push(heap, bounds, size):  # type: ignore[no-untyped-def]
    """Add the slot at ``heap[size]`` to the heap."""
    i = size
    while i > 0 and bounds[heap[i]] < bounds[heap[(i - 1) // 2]]:
        heap[i], heap[(i - 1) // 2] = heap[(i - 1) // 2], heap[i]
        i = (i - 1) // 2


@compiled
def _pop(heap, bounds, size):  # type: ignore[no-untyped-def]
    """The slot with the lowest bound, moved behind the heap."""
    first = heap[0]
    heap[0], heap[size - 1] = heap[size - 1], first
    i = 0
    while True:
        child = 2 * i + 1
        if child >= size - 1:
            return first
        if child + 1 < size - 1 and bounds[heap[child + 1]] < bounds[heap[child]]:
            child += 1
        if bounds[heap[i]] <= bounds[heap[child]]:
            return first
        heap[i], heap[child] = heap[child], heap[i]
        i = child
