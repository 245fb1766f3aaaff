"""A lower bound on the reduced costs of the groups of a node, by Lagrangian decomposition into blocks.

At a node of :mod:`formulations.groups.pricing.branch_and_bound` the patterns F are in, some are out, and R are free.
With

    Q_F(u)  =  Q_0(u) + sum_{p in F} Q_p(u),      minimiser u_F, least value c_F, matrix H = L L'

and v = L'(u - u_F), Q_F is c_F + |v|^2, and  Q_p - pi_p  =  v'A_p v - 2 b_p'v + offset_p  for every p in R. Cut R into
small blocks B, in order. For shares theta_p >= 0 with sum 1 and shifts s_p with sum 0, over p in R and in every
direction i, every completion of F costs at least

    c_F - sum_{p in F} pi_p  +  sum_B  min over S subset of B, v of  sum_{p in B} sum_i (theta_pi v_i^2 - 2 s_pi v_i)
                                                                     + sum_{p in S} (Q_p(v) - pi_p)

because each block has its own v. Wider blocks give higher bounds, at 2^|B| minima per block.

*Ascent.* The bound is concave in (theta, s) and is raised by steps along a supergradient. With v_B the minimiser of
block B and v_R = sum_p theta_p v_B(p) their mean, in each direction: s pulls the minimisers together, in proportion to
v_R - v_B, and theta gives most of Q_F to the blocks whose minimisers lie apart, in proportion to (v_B - v_R)^2 minus
its mean. A pattern needs no share in directions of which its rows say nothing.

*Fixing.* If having a pattern in (or out) lifts the bound over the threshold, it is fixed out (or in): the minima over
the subsets with it, and without it, are known.

*Children* inherit: if p leaves R, its shares and shifts are given to the others in proportion to their own shares. Any
shares are valid, so those of the parent's directions are used in the child's, which differ little.

*Subsets.* For each subset S of a block, the sums of A_p, b_p and offset_p over S are stored: each is the sum of the
subset without its last pattern plus that pattern. Shifts pass from node to node as nu_p = -2 L s_p, the slope in u.
"""

from typing import NamedTuple

import numpy as np

from formulations.arrays import FloatArray, IntArray
from formulations.groups.pricing.quadratics import add_quadratic, forward, minimise, set_quadratic
from formulations.groups.pricing.side_by_side import least_values, minimiser, whiten
from formulations.jit import compiled
from formulations.leaves.tiles import LANES

# Whether a pattern is in the groups of a node, names and not quantities.
FREE, IN, OUT = 0, 1, 2
# Most patterns per block, and the least share, tuned on 20 to 40 patterns.
BLOCK, LEAST_SHARE = 6, 1e-6
# Steps along the supergradient per node, tuned on 20 to 40 patterns.
STEPS = 2


class Workspace(NamedTuple):
    """Arrays of one node; ``packed``: free patterns in coordinates v; ``sub``: sums over subsets of a block."""

    packed: FloatArray
    sub: FloatArray
    X: FloatArray
    Y: FloatArray
    T: FloatArray
    lanes: IntArray
    subsets: IntArray
    values: FloatArray
    theta: FloatArray
    s: FloatArray
    best_theta: FloatArray
    best_s: FloatArray
    v: FloatArray
    low: FloatArray
    matrix: FloatArray
    L: FloatArray
    factor: FloatArray
    curved: FloatArray
    center: FloatArray
    mean: FloatArray
    share: FloatArray
    spread: FloatArray
    trial: FloatArray
    block_s: FloatArray
    free: IntArray


def new_workspace(P: int, K: int) -> Workspace:
    """The arrays for P patterns and K coefficients."""
    blocks, subsets, length = -(-P // BLOCK), 2**BLOCK, (K + 1) * (K + 2) // 2
    # Vectors begin with a cache line.
    sub, T = np.zeros((blocks * subsets, length)), np.empty(LANES * (length + K + 1) + 8)
    return Workspace(
        packed=np.empty((P, length)), sub=sub,
        X=np.empty((K, LANES * (K + 1))), Y=np.empty((K, LANES * K)), T=T[-(T.ctypes.data // 8) % 8 :],
        lanes=np.empty(LANES, dtype=np.int64), subsets=np.empty(subsets, dtype=np.int64), values=np.empty(LANES),
        theta=np.empty((P, K)), s=np.empty((P, K)), best_theta=np.empty((P, K)), best_s=np.empty((P, K)),
        v=np.empty((blocks, K)), low=np.empty((P, 2)),
        matrix=np.empty((K + 1, K + 1)), L=np.zeros((K, K)), factor=np.zeros((K, K)), curved=np.empty(K),
        center=np.empty(K), mean=np.empty(K), share=np.empty(K), spread=np.empty(K), trial=np.empty(K),
        block_s=np.empty(K), free=np.empty(P, dtype=np.int64),
    )  # fmt: skip


@compiled
def enter_node(quadratics, base, prices, status, theta, nu, work):  # type: ignore[no-untyped-def]
    """Set up the workspace of a node, in coordinates v; returns c_F - pi(F) and the number of free patterns."""
    P, K = quadratics.shape[0], quadratics.shape[1] - 1
    matrix, L, curved, center = work.matrix, work.L, work.curved, work.center
    mean, share, s = work.mean, work.share, work.s
    set_quadratic(matrix, base)
    paid, count = 0.0, np.int64(0)
    for i in range(K):
        mean[i], share[i] = 0.0, 0.0
    for p in range(P):
        if status[p] == IN:
            add_quadratic(matrix, quadratics[p], 1.0)
            paid += prices[p]
        elif status[p] == FREE:
            work.free[count] = p
            count += 1
            for i in range(K):
                work.theta[p, i] = max(theta[p, i], LEAST_SHARE)
                share[i] += work.theta[p, i]
    cost = minimise(matrix, L, curved, center, K)
    for first in range(0, count, LANES):
        for lane in range(LANES):
            work.lanes[lane] = work.free[min(first + lane, count - 1)]
        whiten(quadratics, work.lanes, L, center, K, work.X, work.Y, work.packed)
    for f in range(count):
        p = work.free[f]
        work.packed[p, work.packed.shape[1] - 1] -= prices[p]
        for i in range(K):
            work.theta[p, i] /= share[i]
            s[p, i] = nu[p, i]
        forward(L, s[p], K)
        for i in range(K):
            s[p, i] *= -0.5 * curved[i]
            mean[i] += s[p, i]
    # Shifts were stored with rounding, or without directions that had no curvature: make them sum to 0 again.
    for f in range(count):
        p = work.free[f]
        for i in range(K):
            s[p, i] -= work.theta[p, i] * mean[i]
    _prepare_subsets(count, work)
    return cost - paid, count


@compiled
def _prepare_subsets(count, work):  # type: ignore[no-untyped-def]
    """Quadratics of the subsets of each block; the empty subset stays 0."""
    length = work.sub.shape[1]
    for first in range(0, count, BLOCK):
        for f in range(min(BLOCK, count - first)):
            p = work.free[first + f]
            bit = 1 << f
            for rest in range(bit):
                without = (first // BLOCK << BLOCK) + rest
                for entry in range(length):
                    work.sub[without + bit, entry] = work.sub[without, entry] + work.packed[p, entry]


@compiled
def raise_bound(fixed_cost, threshold, status, count, work):  # type: ignore[no-untyped-def]
    """Raise the bound by steps along the supergradient, and fix patterns in ``status``.

    The best multipliers are left in the workspace; ``low[p]`` receives the bounds with pattern p out and in.
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
        if total > best or step == 0:
            best = total
            for f in range(count):
                p = free[f]
                for i in range(K):
                    work.best_theta[p, i] = theta[p, i]
                    work.best_s[p, i] = s[p, i]
        if total >= threshold:
            return total
        if not total > -np.inf:  # a block without curvature says nothing
            best = best if step else -np.inf
            for f in range(count):
                low[free[f], 0], low[free[f], 1] = -np.inf, -np.inf
            break
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
        for i in range(K):
            theta[p, i] = work.best_theta[p, i]
            # nu = -2 L s, where the diagonal of L holds reciprocals.
            total = work.best_s[p, i] / work.L[i, i]
            for k in range(i):
                total += work.L[i, k] * work.best_s[p, k]
            s[p, i] = -2.0 * total
    return best


@compiled
def _block_minimum(first, size, status, work):  # type: ignore[no-untyped-def]
    """Least minimum over the subsets of a block; its minimiser is stored in ``v`` and added to the mean minimiser."""
    free, low, block_s, share, trial = work.free, work.low, work.block_s, work.share, work.trial
    block, K = first // BLOCK, len(block_s)
    must, must_not = 0, 0
    for i in range(K):
        block_s[i], share[i] = 0.0, 0.0
    for f in range(size):
        p = free[first + f]
        for i in range(K):
            share[i] += work.theta[p, i] * work.curved[i]
            block_s[i] += work.s[p, i]
        low[p, 0], low[p, 1] = np.inf, np.inf
        if status[p] == IN:
            must |= 1 << f
        elif status[p] == OUT:
            must_not |= 1 << f
    count, lowest = 0, np.inf
    for subset in range(1 << size):
        if subset & must == must and not subset & must_not:
            work.subsets[count] = subset
            count += 1
    for begin in range(0, count, LANES):
        for lane in range(LANES):
            work.lanes[lane] = (block << BLOCK) + work.subsets[min(begin + lane, count - 1)]
        least_values(work.sub, work.lanes, share, block_s, work.curved, K, work.T, work.factor, work.values, trial)
        best = -1
        for lane in range(min(LANES, count - begin)):
            value = work.values[lane]
            for f in range(size):
                p, side = free[first + f], work.subsets[begin + lane] >> f & 1
                low[p, side] = min(low[p, side], value)
            if value < lowest:
                lowest, best = value, lane
        if best >= 0:
            minimiser(best, K, work.T, work.v[block])
    for i in range(K):
        work.mean[i] += share[i] * work.v[block, i]
    return lowest


@compiled
def _step(missing, count, work):  # type: ignore[no-untyped-def]
    """A step along the supergradient in the metric of the shares, with Polyak's length towards the threshold."""
    free, theta, s, v, mean, curved = work.free, work.theta, work.s, work.v, work.mean, work.curved
    spread, K = work.spread, len(work.mean)
    total, variance = 0.0, 0.0
    for i in range(K):
        spread[i] = 0.0
        for f in range(count):
            spread[i] += curved[i] * theta[free[f], i] * (v[f // BLOCK, i] - mean[i]) ** 2
        total += spread[i]
    if not total > 0.0:
        return
    # Shares move in proportion to the spread of their direction, but not in directions with hardly any.
    least = total / K
    for i in range(K):
        for f in range(count):
            apart = (v[f // BLOCK, i] - mean[i]) ** 2 - spread[i]
            variance += curved[i] * theta[free[f], i] * apart**2 / (spread[i] + least)
    length = min(1.0, missing / (2.0 * total + variance))
    for i in range(K):
        if curved[i] == 0.0:
            continue
        change, share, rate = 0.0, 0.0, length / (spread[i] + least)
        for f in range(count):
            apart = (v[f // BLOCK, i] - mean[i]) ** 2 - spread[i]
            change += theta[free[f], i] * min(1.0, max(-0.5, rate * apart))
        for f in range(count):
            p, away = free[f], v[f // BLOCK, i] - mean[i]
            more = theta[p, i] * (min(1.0, max(-0.5, rate * (away**2 - spread[i]))) - change)
            s[p, i] += more * mean[i] - length * theta[p, i] * away
            theta[p, i] = max(theta[p, i] + more, LEAST_SHARE)
            share += theta[p, i]
        for f in range(count):
            theta[free[f], i] /= share


@compiled
def inherit(status, count, work, theta, nu):  # type: ignore[no-untyped-def]
    """Give the shares of the patterns that are no longer free to those that still are."""
    K = nu.shape[1]
    retained, given = work.share, work.mean
    for i in range(K):
        retained[i], given[i] = 0.0, 0.0
    for f in range(count):
        p = work.free[f]
        for i in range(K):
            if status[p] == FREE:
                retained[i] += work.theta[p, i]
            else:
                given[i] += work.s[p, i]
    for f in range(count):
        p = work.free[f]
        if status[p] == FREE:
            for i in range(K):
                theta[p, i] = work.theta[p, i] / retained[i]
                nu[p, i] = work.s[p, i] + theta[p, i] * given[i]
