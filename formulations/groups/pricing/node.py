"""A node of the pricing problem in the coordinates of its bound.

At a node of :mod:`formulations.groups.pricing.branch_and_bound` the patterns F are in, some are out, and R are free.
With

    Q_F(u)  =  Q_0(u) + sum_{p in F} Q_p(u),      minimiser u_F, least value c_F, matrix H = L L'

the bound of :mod:`formulations.groups.pricing.block_bound` works in v = L'(u - u_F), where Q_F = c_F + |v|^2 and

    Q_p - pi_p  =  v'A_p v - 2 b_p'v + offset_p               of every free pattern p in R
    sum_i theta_pi v_i^2 - 2 s_p'v                            the share of Q_F - c_F that p gets, and its shift

with the theta_p of each direction and the s_p summing to 1 and 0 over R. Shifts pass from node to node as
nu_p = -2 L s_p, the slope in u.

R is cut into blocks of a few patterns, in order. For each subset S of a block that has no forbidden pair, the sums of
A_p, b_p and offset_p over S are stored: each is the sum of the subset without its last pattern plus that pattern.
"""

from typing import NamedTuple

import numpy as np

from formulations.arrays import BoolArray, FloatArray, IntArray
from formulations.groups.pricing.quadratics import add_quadratic, forward, minimise, set_quadratic, whiten
from formulations.jit import compiled

FREE, IN, OUT = 0, 1, 2
# Most patterns per block, and the least share, tuned on 20 to 40 patterns.
BLOCK, LEAST_SHARE = 5, 1e-6


class Workspace(NamedTuple):
    """Arrays of one node; A, b, offset: quadratics of the free patterns in coordinates v; ``sub_``: of subsets."""

    A: FloatArray
    b: FloatArray
    offset: FloatArray
    sub_matrix: FloatArray
    sub_b: FloatArray
    sub_offset: FloatArray
    sub_allowed: BoolArray
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
    blocks, subsets = -(-P // BLOCK), 2**BLOCK
    return Workspace(
        A=np.empty((P, K, K)), b=np.empty((P, K)), offset=np.empty(P),
        sub_matrix=np.zeros((blocks, subsets, K, K)), sub_b=np.zeros((blocks, subsets, K)),
        sub_offset=np.zeros((blocks, subsets)), sub_allowed=np.ones((blocks, subsets), dtype=bool),
        theta=np.empty((P, K)), s=np.empty((P, K)), best_theta=np.empty((P, K)), best_s=np.empty((P, K)),
        v=np.empty((blocks, K)), low=np.empty((P, 2)),
        matrix=np.empty((K + 1, K + 1)), L=np.zeros((K, K)), factor=np.zeros((K, K)), curved=np.empty(K),
        center=np.empty(K), mean=np.empty(K), share=np.empty(K), spread=np.empty(K), trial=np.empty(K),
        block_s=np.empty(K), free=np.empty(P, dtype=np.int64),
    )  # fmt: skip


@compiled
def enter_node(quadratics, base, prices, forbidden, status, theta, nu, work):  # type: ignore[no-untyped-def]
    """Set up the workspace of a node, in coordinates v; returns c_F - pi(F) and the number of free patterns."""
    P, K = quadratics.shape[0], quadratics.shape[1] - 1
    matrix, L, curved, center = work.matrix, work.L, work.curved, work.center
    mean, share, s = work.mean, work.share, work.s
    set_quadratic(matrix, base)
    paid, count = 0.0, 0
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
    for f in range(count):
        p = work.free[f]
        work.offset[p] = whiten(quadratics[p], L, center, K, work.A[p], work.b[p], matrix) - prices[p]
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
    _prepare_subsets(forbidden, count, work)
    return cost - paid, count


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
