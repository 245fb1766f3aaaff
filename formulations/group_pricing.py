"""The group of patterns with the smallest reduced cost, by branch and bound.

Sets and data
    p in P      patterns, each with a convex quadratic Q_p(u) >= 0 of the coefficients u
    Q_0(u)      a quadratic that every group pays once (the ridge per leaf, or 0)
    pi_p        the price of pattern p
    r_p, r      rows of pattern p, and the rows that a group needs
    E           pairs of patterns that must not be together
Variables
    G subset of P,  u
Objective
    min  Q_0(u) + sum_{p in G} (Q_p(u) - pi_p)
Constraints
    sum_{p in G} r_p >= r,     not both p and q in G  for {p, q} in E

*Bound.* At a node the patterns F are in, some are out, and R are free. Write Q_F = Q_0 + sum_{p in F} Q_p, and cut R
into small blocks B. For shares theta_p >= 0 with sum 1 and shifts nu_p with sum 0, over p in R, every completion of F
costs at least

    - sum_{p in F} pi_p  +  sum_B  min over S subset of B, u of  sum_{p in B} (theta_p Q_F(u) + nu_p'u)
                                                                 + sum_{p in S} (Q_p(u) - pi_p)

because each block may choose its own u. This Lagrangian bound is concave in (theta, nu) and is raised by steps along a
supergradient: nu pulls the minimisers of the blocks together, theta gives most of Q_F to the blocks whose minimisers
lie apart. Wider blocks give higher bounds, at 2^|B| minima a block. Work is done in coordinates v, a linear map of
u - u_F, in which Q_F = c_F + |v|^2.

*Fixing.* Where a pattern in (or out) lifts the bound over the threshold, it goes out (or in).

*Children* inherit: if p leaves R, its share of Q_F (with Q_p, if it goes in) is given to the others in proportion to
their own shares. The sum of minima is at most the minimum of a sum, so that the bound of a child starts no lower.

A quadratic is a symmetric matrix M of order K + 1:  Q(u) = (-u, 1) M (-u, 1)'.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from formulations.compiled import compiled

Array = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

# A pivot below this share of its diagonal entry counts as 0: the direction has no curvature.
PIVOT_TOLERANCE = 1e-11
FREE, IN, OUT = 0, 1, 2
# Most patterns a block, steps along the supergradient a node, and the least share: all tuned on 20 to 40 patterns.
BLOCK, STEPS, LEAST_SHARE = 5, 2, 1e-6
# Memory that the open nodes of a tree may take; a tree that needs more stops, with a valid bound.
POOL_BYTES = 2**28


@dataclass(frozen=True)
class GroupChoice:
    """The data of the pricing problem but for the prices: quadratics, rows and forbidden pairs."""

    quadratics: Array
    base: Array
    rows: IntArray
    least_rows: int
    forbidden: BoolArray

    @property
    def patterns(self) -> int:
        return len(self.rows)

    def cost(self, member: BoolArray) -> float:
        """c(G) = min over u of Q_0 + the quadratics of the members."""
        return float(least_value(self.base + self.quadratics[member].sum(axis=0), np.zeros_like(self.base)))


@dataclass(frozen=True)
class Priced:
    """Groups below the threshold and their values, a lower bound on every value, and whether these are all groups."""

    groups: BoolArray
    values: Array
    bound: float
    finished: bool


def price_groups(
    choice: GroupChoice,
    prices: Array,
    threshold: float,
    stop: Callable[[], bool],
    most_groups: int,
    most_nodes: float = np.inf,
) -> Priced:
    """Find the groups whose cost less prices is below ``threshold``, and prove that there are no others.

    The search ends early, with the bound that it has, when ``stop()`` holds, or after ``most_groups`` groups or
    ``most_nodes`` nodes.
    """
    P, K = choice.patterns, choice.base.shape[0] - 1
    most_slots = max(64, POOL_BYTES // (4 * P * (K + 1)))
    pool = _new_pool(P, K, min(1024, most_slots))
    work = _new_workspace(P, K)
    counters = np.array([1, 0, 0], dtype=np.int64)
    found, values = np.zeros((most_groups, P), dtype=bool), np.zeros(most_groups)
    # Some hundredths of a second of nodes between two looks at the clock.
    slice_nodes = max(1, 10_000_000 // (P * K**3))
    while counters[0] > 0 and counters[1] < most_groups and counters[2] < most_nodes and not stop():
        if counters[0] + 2 > len(pool.bounds):
            if len(pool.bounds) == most_slots:
                break
            pool = _grown(pool, min(2 * len(pool.bounds), most_slots))
        budget = int(min(slice_nodes, most_nodes - counters[2]))
        _search(
            choice.quadratics, choice.base, prices, choice.rows, choice.least_rows, choice.forbidden,
            threshold, budget, pool, work, counters, found, values,
        )  # fmt: skip
    groups, values = found[: counters[1]], values[: counters[1]]
    still_open = pool.bounds[pool.heap[: counters[0]]]
    bound = min(threshold, values.min(initial=np.inf), still_open.min(initial=np.inf))
    return Priced(groups, values, float(bound), len(still_open) == 0)


class _Pool(NamedTuple):
    """Open nodes: the slots at the front of ``heap`` are a heap by bound, those behind it are unused."""

    bounds: Array
    status: NDArray[np.int8]
    theta: NDArray[np.float32]
    nu: NDArray[np.float32]
    heap: IntArray


class _Workspace(NamedTuple):
    """Arrays of one node; A, b, offset: quadratics of the free patterns in coordinates v; ``sub_``: of subsets."""

    A: Array
    b: Array
    offset: Array
    sub_matrix: Array
    sub_b: Array
    sub_offset: Array
    sub_allowed: BoolArray
    theta: Array
    s: Array
    best_theta: Array
    best_s: Array
    v: Array
    apart: Array
    low: Array
    matrix: Array
    L: Array
    factor: Array
    curved: Array
    center: Array
    mean: Array
    trial: Array
    block_s: Array
    free: IntArray


def _new_pool(P: int, K: int, slots: int) -> _Pool:
    return _Pool(
        np.full(slots, -np.inf),
        np.zeros((slots, P), dtype=np.int8),
        np.full((slots, P), 1.0 / P, dtype=np.float32),
        np.zeros((slots, P, K), dtype=np.float32),
        np.arange(slots),
    )


def _grown(pool: _Pool, slots: int) -> _Pool:
    old = len(pool.bounds)
    grown = _new_pool(pool.nu.shape[1], pool.nu.shape[2], slots)
    for new, values in zip(grown[:-1], pool[:-1], strict=True):
        new[:old] = values
    grown.heap[:old] = pool.heap
    return grown


def _new_workspace(P: int, K: int) -> _Workspace:
    blocks, subsets = -(-P // BLOCK), 2**BLOCK
    return _Workspace(
        A=np.empty((P, K, K)), b=np.empty((P, K)), offset=np.empty(P),
        sub_matrix=np.zeros((blocks, subsets, K, K)), sub_b=np.zeros((blocks, subsets, K)),
        sub_offset=np.zeros((blocks, subsets)), sub_allowed=np.ones((blocks, subsets), dtype=bool),
        theta=np.empty(P), s=np.empty((P, K)), best_theta=np.empty(P), best_s=np.empty((P, K)),
        v=np.empty((blocks, K)), apart=np.empty(blocks), low=np.empty((P, 2)),
        matrix=np.empty((K + 1, K + 1)), L=np.zeros((K, K)), factor=np.zeros((K, K)), curved=np.empty(K),
        center=np.empty(K), mean=np.empty(K), trial=np.empty(K), block_s=np.empty(K), free=np.empty(P, dtype=np.int64),
    )  # fmt: skip


@compiled
def _search(quadratics, base, prices, rows, least_rows, forbidden, threshold, budget, pool, work, tally, found, values):  # type: ignore[no-untyped-def]
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
        if not _propagate(status, rows, least_rows, forbidden):
            continue
        paid, count = _enter_node(quadratics, base, prices, forbidden, status, pool.theta[slot], pool.nu[slot], work)
        bound = max(bound, _raise_bound(paid, threshold, status, count, work))
        if bound >= threshold or not _propagate(status, rows, least_rows, forbidden):
            continue
        chosen = _branching_pattern(status, work.low)
        if chosen < 0:
            # Everything is fixed, and the bound of a node without free patterns is its reduced cost.
            cost, _ = _enter_node(quadratics, base, prices, forbidden, status, pool.theta[slot], pool.nu[slot], work)
            if cost < threshold:
                for p in range(len(status)):
                    found[tally[1], p] = status[p] == IN
                values[tally[1]] = cost
                tally[1] += 1
            continue
        for side in range(2):
            child = pool.heap[tally[0]]
            pool.bounds[child] = max(bound, work.low[chosen, side])
            for p in range(len(status)):
                pool.status[child, p] = status[p]
            pool.status[child, chosen] = IN if side == 1 else OUT
            _inherit(pool.status[child], count, work, pool.theta[child], pool.nu[child])
            _push(pool.heap, pool.bounds, tally[0])
            tally[0] += 1


@compiled
def _propagate(status, rows, least_rows, forbidden):  # type: ignore[no-untyped-def]
    """Fix what rows and forbidden pairs leave no choice about; False where no group is left."""
    P = len(status)
    settled = False
    while not settled:
        settled = True
        for p in range(P):
            if status[p] == IN:
                for q in range(P):
                    if forbidden[p, q]:
                        if status[q] == IN:
                            return False
                        status[q] = OUT
        possible = 0
        for p in range(P):
            if status[p] != OUT:
                possible += rows[p]
        if possible < least_rows:
            return False
        for p in range(P):
            if status[p] == FREE and possible - rows[p] < least_rows:
                status[p] = IN
                settled = False
    return True


@compiled
def _enter_node(quadratics, base, prices, forbidden, status, theta, nu, work):  # type: ignore[no-untyped-def]
    """Put the node into the workspace, in coordinates v; returns c_F - pi(F) and the number of free patterns."""
    P, K = quadratics.shape[0], quadratics.shape[1] - 1
    matrix, L, curved, center, mean, s = work.matrix, work.L, work.curved, work.center, work.mean, work.s
    _set(matrix, base)
    paid, share, count = 0.0, 0.0, 0
    for p in range(P):
        if status[p] == IN:
            add_quadratic(matrix, quadratics[p], 1.0)
            paid += prices[p]
        elif status[p] == FREE:
            work.free[count] = p
            count += 1
            work.theta[p] = max(theta[p], LEAST_SHARE)
            share += work.theta[p]
    _factor(matrix, L, curved, K)
    cost = matrix[K, K]
    for i in range(K):
        center[i] = matrix[K, i]
        mean[i] = 0.0
    _forward(L, center, K)
    for i in range(K):
        center[i] *= curved[i]
        cost -= center[i] * center[i]
    _backward(L, center, K)
    for f in range(count):
        p = work.free[f]
        work.theta[p] /= share
        work.offset[p] = _whiten(quadratics[p], L, center, K, work.A[p], work.b[p], matrix) - prices[p]
        for i in range(K):
            s[p, i] = nu[p, i]
        _forward(L, s[p], K)
        for i in range(K):
            s[p, i] *= -0.5 * curved[i]
            mean[i] += s[p, i]
    # Shifts were stored with rounding, or without directions that had no curvature: make them sum to 0 again.
    for f in range(count):
        p = work.free[f]
        for i in range(K):
            s[p, i] -= work.theta[p] * mean[i]
    _prepare_subsets(forbidden, count, work)
    return max(cost, 0.0) - paid, count


@compiled
def _prepare_subsets(forbidden, count, work):  # type: ignore[no-untyped-def]
    """Quadratics of the subsets of each block; the empty subset stays 0."""
    K = work.b.shape[1]
    for first in range(0, count, BLOCK):
        block = first // BLOCK
        for f in range(min(BLOCK, count - first)):
            p = work.free[first + f]
            bit = 1 << f
            for rest in range(bit):
                subset = rest | bit
                allowed = work.sub_allowed[block, rest]
                for g in range(f):
                    if rest >> g & 1 and forbidden[p, work.free[first + g]]:
                        allowed = False
                work.sub_allowed[block, subset] = allowed
                for i in range(K):
                    for j in range(i + 1):
                        work.sub_matrix[block, subset, i, j] = work.sub_matrix[block, rest, i, j] + work.A[p, i, j]
                    work.sub_b[block, subset, i] = work.sub_b[block, rest, i] + work.b[p, i]
                work.sub_offset[block, subset] = work.sub_offset[block, rest] + work.offset[p]


@compiled
def _raise_bound(fixed_cost, threshold, status, count, work):  # type: ignore[no-untyped-def]
    """Steps along the supergradient; the best multipliers are left in the workspace, and ``status`` has what is fixed.

    ``low[p]`` receives the bound of the node with pattern p out, and in.
    """
    free, theta, s, low = work.free, work.theta, work.s, work.low
    K = s.shape[1]
    best = -np.inf
    for step in range(STEPS + 1):
        total = fixed_cost
        for i in range(K):
            work.mean[i] = 0.0
        for first in range(0, count, BLOCK):
            total += _block_minimum(first, min(BLOCK, count - first), status, work)
        if total > best:
            best = total
            for f in range(count):
                p = free[f]
                work.best_theta[p] = theta[p]
                for i in range(K):
                    work.best_s[p, i] = s[p, i]
        if total >= threshold:
            return total
        for f in range(count):
            p = free[f]
            others = total - min(low[p, 0], low[p, 1])
            low[p, 0] += others
            low[p, 1] += others
            if status[p] == FREE and max(low[p, 0], low[p, 1]) >= threshold:
                status[p] = IN if low[p, 1] < low[p, 0] else OUT
        if step < STEPS:
            _step(threshold - total, count, work)
    for f in range(count):
        p = free[f]
        theta[p] = work.best_theta[p]
        for i in range(K):
            # nu = -2 L s, where the diagonal of L holds reciprocals.
            total = work.best_s[p, i] / work.L[i, i]
            for k in range(i):
                total += work.L[i, k] * work.best_s[p, k]
            s[p, i] = -2.0 * total
    return best


@compiled
def _block_minimum(first, size, status, work):  # type: ignore[no-untyped-def]
    """The least of the minima of the subsets of a block, its minimiser in ``v``; adds that to the mean minimiser."""
    free, low, block_s, trial = work.free, work.low, work.block_s, work.trial
    block, K = first // BLOCK, len(block_s)
    share, must, must_not = 0.0, 0, 0
    for i in range(K):
        block_s[i] = 0.0
    for f in range(size):
        p = free[first + f]
        share += work.theta[p]
        for i in range(K):
            block_s[i] += work.s[p, i]
        low[p, 0], low[p, 1] = np.inf, np.inf
        if status[p] == IN:
            must |= 1 << f
        elif status[p] == OUT:
            must_not |= 1 << f
    lowest = np.inf
    for subset in range(1 << size):
        if subset & must != must or subset & must_not or not work.sub_allowed[block, subset]:
            continue
        value = work.sub_offset[block, subset] + _minimum(
            work.sub_matrix[block, subset],
            work.sub_b[block, subset],
            block_s,
            share,
            work.curved,
            K,
            work.factor,
            trial,
        )
        for f in range(size):
            p, side = free[first + f], subset >> f & 1
            low[p, side] = min(low[p, side], value)
        if value < lowest:
            lowest = value
            for i in range(K):
                work.v[block, i] = trial[i]
    for i in range(K):
        work.mean[i] += share * work.v[block, i] * work.curved[i]
    return lowest


@compiled
def _step(missing, count, work):  # type: ignore[no-untyped-def]
    """A step along the supergradient in the metric of the shares, with Polyak's length towards the threshold."""
    free, theta, s, v, apart, mean, curved = work.free, work.theta, work.s, work.v, work.apart, work.mean, work.curved
    K = len(mean)
    blocks = (count + BLOCK - 1) // BLOCK
    for block in range(blocks):
        apart[block] = 0.0
        for i in range(K):
            apart[block] += curved[i] * (v[block, i] - mean[i]) ** 2
    spread, variance = 0.0, 0.0
    for f in range(count):
        spread += theta[free[f]] * apart[f // BLOCK]
    if not spread > 0.0:
        return
    for f in range(count):
        variance += theta[free[f]] * (apart[f // BLOCK] - spread) ** 2
    length = min(1.0, missing / (2.0 * spread + variance / spread))
    change = 0.0
    for block in range(blocks):
        apart[block] = min(1.0, max(-0.5, length * (apart[block] / spread - 1.0)))
    for f in range(count):
        change += theta[free[f]] * apart[f // BLOCK]
    for f in range(count):
        p = free[f]
        more = theta[p] * (apart[f // BLOCK] - change)
        for i in range(K):
            s[p, i] += curved[i] * (length * theta[p] * (mean[i] - v[f // BLOCK, i]) + more * mean[i])
        theta[p] += more


@compiled
def _branching_pattern(status, low):  # type: ignore[no-untyped-def]
    """The free pattern that makes the largest difference; -1 where none is free."""
    chosen, largest = -1, -np.inf
    nothing_in = True
    for p in range(len(status)):
        if status[p] == IN:
            nothing_in = False
    for p in range(len(status)):
        if status[p] == FREE:
            # The first pattern to go in should be one that wants to.
            score = low[p, 0] - low[p, 1] if nothing_in else abs(low[p, 0] - low[p, 1])
            if score > largest:
                chosen, largest = p, score
    return chosen


@compiled
def _inherit(status, count, work, theta, nu):  # type: ignore[no-untyped-def]
    """Give the shares of the patterns that are no longer free to those that still are."""
    K = nu.shape[1]
    kept, given = 0.0, work.mean
    for i in range(K):
        given[i] = 0.0
    for f in range(count):
        p = work.free[f]
        if status[p] == FREE:
            kept += work.theta[p]
        else:
            for i in range(K):
                given[i] += work.s[p, i]
    for f in range(count):
        p = work.free[f]
        if status[p] == FREE:
            theta[p] = work.theta[p] / kept
            for i in range(K):
                nu[p, i] = work.s[p, i] + theta[p] * given[i]


@compiled
def _push(heap, bounds, size):  # type: ignore[no-untyped-def]
    """Take the slot at ``heap[size]`` into the heap."""
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


@compiled
def _set(M, value):  # type: ignore[no-untyped-def]
    for i in range(M.shape[0]):
        for j in range(M.shape[1]):
            M[i, j] = value[i, j]


@compiled
def add_quadratic(M, other, sign):  # type: ignore[no-untyped-def]
    """M + sign * other, in place. Array expressions do the same, but take seconds to compile."""
    for i in range(M.shape[0]):
        for j in range(M.shape[1]):
            M[i, j] += sign * other[i, j]


@compiled
def least_value(M, L):  # type: ignore[no-untyped-def]
    """min over u of the quadratic M; L is workspace."""
    order = M.shape[0]
    for i in range(order):
        for j in range(i):
            total = M[i, j]
            for k in range(j):
                total -= L[i, k] * L[j, k]
            L[i, j] = total * L[j, j]
        total = M[i, i]
        for k in range(i):
            total -= L[i, k] * L[i, k]
        if i == order - 1:
            return max(total, 0.0)
        # The diagonal of L holds reciprocals, and 0 where a direction has no curvature.
        L[i, i] = 1.0 / np.sqrt(total) if total > PIVOT_TOLERANCE * M[i, i] else 0.0
    return 0.0


@compiled
def _factor(H, L, curved, K):  # type: ignore[no-untyped-def]
    """L L' = H + 1 on the diagonal of directions without curvature; the diagonal of L holds reciprocals."""
    for i in range(K):
        for j in range(i):
            total = H[i, j]
            for k in range(j):
                total -= L[i, k] * L[j, k]
            L[i, j] = total * L[j, j] * curved[j]
        total = H[i, i]
        for k in range(i):
            total -= L[i, k] * L[i, k]
        if total > PIVOT_TOLERANCE * H[i, i]:
            L[i, i], curved[i] = 1.0 / np.sqrt(total), 1.0
        else:
            L[i, i], curved[i] = 1.0, 0.0


@compiled
def _forward(L, x, K):  # type: ignore[no-untyped-def]
    for i in range(K):
        total = x[i]
        for k in range(i):
            total -= L[i, k] * x[k]
        x[i] = total * L[i, i]


@compiled
def _backward(L, x, K):  # type: ignore[no-untyped-def]
    for i in range(K - 1, -1, -1):
        x[i] *= L[i, i]
        value = x[i]
        for k in range(i):
            x[k] -= L[i, k] * value


@compiled
def _whiten(M, L, center, K, A, b, work):  # type: ignore[no-untyped-def]
    """The quadratic M in coordinates v = L'(u - center): v'A v - 2 b'v + the value returned; lower triangle of A."""
    value = M[K, K]
    for i in range(K):
        total = 0.0
        for j in range(K):
            total += M[i, j] * center[j]
        b[i] = M[i, K] - total
        value -= (M[i, K] + b[i]) * center[i]
    _forward(L, b, K)
    # A = L^-1 M L^-T, first from the left, then from the right.
    for i in range(K):
        for j in range(K):
            work[i, j] = M[i, j]
        for k in range(i):
            factor = L[i, k]
            for j in range(K):
                work[i, j] -= factor * work[k, j]
        scale = L[i, i]
        for j in range(K):
            work[i, j] *= scale
    for i in range(K):
        for j in range(i + 1):
            total = work[i, j]
            for k in range(j):
                total -= A[i, k] * L[j, k]
            A[i, j] = total * L[j, j]
    return value


@compiled
def _minimum(A, b, s, theta, curved, K, L, v):  # type: ignore[no-untyped-def]
    """min over v of theta |v|^2 - 2 s'v + v'A v - 2 b'v, its minimiser in v; |v|^2 over curved directions only."""
    value = 0.0
    for i in range(K):
        total = b[i] + s[i]
        for j in range(i):
            entry = A[i, j]
            for k in range(j):
                entry -= L[i, k] * L[j, k]
            entry *= L[j, j]
            L[i, j] = entry
            total -= entry * v[j]
        diagonal = A[i, i] + theta * curved[i]
        pivot = diagonal
        for k in range(i):
            pivot -= L[i, k] * L[i, k]
        L[i, i] = 1.0 / np.sqrt(pivot) if pivot > PIVOT_TOLERANCE * diagonal else 0.0
        v[i] = total * L[i, i]
        value -= v[i] * v[i]
    _backward(L, v, K)
    return value


@compiled
def improve_group(quadratics, base, prices, rows, least_rows, forbidden, member):  # type: ignore[no-untyped-def]
    """Add or drop one pattern at a time, the best first, as long as the reduced cost falls; returns it."""
    P, order = quadratics.shape[0], quadratics.shape[1]
    matrix, trial, L = base.copy(), np.empty((order, order)), np.zeros((order, order))
    paid, count = 0.0, 0
    against = np.zeros(P, np.int64)  # members that a pattern must not be with
    for p in range(P):
        member[p] = member[p] and against[p] == 0
        if member[p]:
            add_quadratic(matrix, quadratics[p], 1.0)
            paid += prices[p]
            count += rows[p]
            for q in range(P):
                against[q] += forbidden[p, q]
    value = least_value(matrix, L) - paid if count >= least_rows else np.inf
    while True:
        chosen, best = -1, value - 1e-12 * abs(value) if value < np.inf else np.inf
        for p in range(P):
            sign = -1 if member[p] else 1
            # Too few rows yet: patterns may only come in.
            enough = count + sign * rows[p] >= least_rows or (value == np.inf and not member[p])
            if enough and (member[p] or against[p] == 0):
                _set(trial, matrix)
                add_quadratic(trial, quadratics[p], sign)
                changed = least_value(trial, L) - paid - sign * prices[p]
                if changed < best:
                    chosen, best = p, changed
        if chosen < 0:
            return value
        sign = -1 if member[chosen] else 1
        member[chosen] = not member[chosen]
        paid += sign * prices[chosen]
        count += sign * rows[chosen]
        add_quadratic(matrix, quadratics[chosen], sign)
        for q in range(P):
            against[q] += sign * forbidden[chosen, q]
        value = best if count >= least_rows else np.inf
