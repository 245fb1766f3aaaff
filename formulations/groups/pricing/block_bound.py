"""A lower bound on the reduced costs of the groups of a node, by Lagrangian decomposition into blocks.

At a node of :mod:`formulations.groups.pricing.branch_and_bound` the patterns F are in, some are out, and R are free.
Write Q_F = Q_0 + sum_{p in F} Q_p, and cut R into small blocks B. For shares theta_p >= 0 with sum 1 and shifts nu_p
with sum 0, over p in R, every completion of F costs at least

    - sum_{p in F} pi_p  +  sum_B  min over S subset of B, u of  sum_{p in B} (theta_p Q_F(u) + nu_p'u)
                                                                 + sum_{p in S} (Q_p(u) - pi_p)

because each block has its own u. Wider blocks give higher bounds, at 2^|B| minima per block. The coordinates v are
those of :mod:`formulations.groups.pricing.node`.

*Ascent.* The bound is concave in (theta, nu) and is raised by steps along a supergradient. With v_B the minimiser of
block B and v_R = sum_p theta_p v_B(p) their mean: nu pulls the minimisers together, in proportion to v_R - v_B, and
theta gives most of Q_F to the blocks whose minimisers lie apart, in proportion to |v_B - v_R|^2 minus its mean.

*Fixing.* If having a pattern in (or out) lifts the bound over the threshold, it is fixed out (or in): the minima over
the subsets with it, and without it, are known.

*Children* inherit: if p leaves R, its share of Q_F (with Q_p, if it goes in) is given to the others in proportion to
their own shares. A sum of minima is at most the minimum of the sum, so the bound of a child starts no lower.
"""

import numpy as np

from formulations.groups.pricing.node import BLOCK, FREE, IN, LEAST_SHARE, OUT
from formulations.groups.pricing.quadratics import shifted_minimum
from formulations.jit import compiled

# Steps along the supergradient per node, tuned on 20 to 40 patterns.
STEPS = 2


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
                work.best_theta[p] = theta[p]
                for i in range(K):
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
    """Least minimum over the subsets of a block; its minimiser is stored in ``v`` and added to the mean minimiser."""
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
        value = work.sub_offset[block, subset] + shifted_minimum(
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
    change, share = 0.0, 0.0
    for block in range(blocks):
        apart[block] = min(1.0, max(-0.5, length * (apart[block] / spread - 1.0)))
    for f in range(count):
        change += theta[free[f]] * apart[f // BLOCK]
    for f in range(count):
        p = free[f]
        more = theta[p] * (apart[f // BLOCK] - change)
        for i in range(K):
            s[p, i] += curved[i] * (length * theta[p] * (mean[i] - v[f // BLOCK, i]) + more * mean[i])
        theta[p] = max(theta[p] + more, LEAST_SHARE)
        share += theta[p]
    for f in range(count):
        theta[free[f]] /= share


@compiled
def inherit(status, count, work, theta, nu):  # type: ignore[no-untyped-def]
    """Give the shares of the patterns that are no longer free to those that still are."""
    K = nu.shape[1]
    retained, given = 0.0, work.mean
    for i in range(K):
        given[i] = 0.0
    for f in range(count):
        p = work.free[f]
        if status[p] == FREE:
            retained += work.theta[p]
        else:
            for i in range(K):
                given[i] += work.s[p, i]
    for f in range(count):
        p = work.free[f]
        if status[p] == FREE:
            theta[p] = work.theta[p] / retained
            for i in range(K):
                nu[p, i] = work.s[p, i] + theta[p] * given[i]
