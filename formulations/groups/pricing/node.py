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
from formulations.groups.pricing.quadratics import add_quadratic, forward, minimise, set_quadratic
from formulations.groups.pricing.side_by_side import whiten
from formulations.jit import compiled
from formulations.leaves.tiles import LANES

FREE, IN, OUT = 0, 1, 2
# Most patterns per block, and the least share, tuned on 20 to 40 patterns.
BLOCK, LEAST_SHARE = 6, 1e-6


class Workspace(NamedTuple):
    """Arrays of one node; ``packed``: free patterns in coordinates v; ``sub``: sums over subsets of a block."""

    packed: FloatArray
    sub: FloatArray
    sub_allowed: BoolArray
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
    # A further row, since transposition reads beyond the last one; vectors begin with a cache line.
    sub, T = np.zeros((blocks * subsets + 1, length)), np.empty(LANES * (length + K + 1 + LANES) + 8)
    return Workspace(
        packed=np.empty((P, length)), sub=sub, sub_allowed=np.ones((blocks, subsets), dtype=bool),
        X=np.empty((K, LANES * (K + 1))), Y=np.empty((K, LANES * K)), T=T[-(T.ctypes.data // 8) % 8 :],
        lanes=np.empty(LANES, dtype=np.int64), subsets=np.empty(subsets, dtype=np.int64), values=np.empty(LANES),
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
    _prepare_subsets(forbidden, count, work)
    return cost - paid, count


@compiled
def _prepare_subsets(forbidden, count, work):  # type: ignore[no-untyped-def]
    """Quadratics of the subsets of each block; the empty subset stays 0."""
    subsets, length = work.sub_allowed.shape[1], work.sub.shape[1]
    for first in range(0, count, BLOCK):
        block = first // BLOCK
        for f in range(min(BLOCK, count - first)):
            p = work.free[first + f]
            bit = 1 << f
            for rest in range(bit):
                allowed = work.sub_allowed[block, rest]
                for g in range(f):
                    if rest >> g & 1 and forbidden[p, work.free[first + g]]:
                        allowed = False
                work.sub_allowed[block, rest | bit] = allowed
                without = block * subsets + rest
                for entry in range(length):
                    work.sub[without + bit, entry] = work.sub[without, entry] + work.packed[p, entry]
