"""Linear algebra on several quadratics of patterns at once, one in each lane of the processor's vectors.

*Coordinates.* Let u_F be the minimiser of a quadratic with H = L L'. In v = L'(u - u_F) this quadratic is a constant
plus |v|^2 (over the curved directions), and any other one is

    v'A v - 2 b'v + value,      A = L^-1 H L^-T,      b = L^-1 (g - H u_F),      value = m - (2 g - H u_F)'u_F

It is stored packed: the lower triangle of A row by row, then b, then the value. Sums of quadratics are sums of these.

*Least values.* min over v of  sum_i theta_i v_i^2 - 2 s'v + v'A v - 2 b'v + value  is the last pivot of the Cholesky
factorisation of the packed matrix with theta added to its diagonal and s to b (:mod:`formulations.leaves.tiles`). If a
pivot vanishes, :func:`formulations.groups.pricing.quadratics.shifted_minimum` decides instead: such a direction may be
dropped, or make the minimum -infinity.
"""

import numpy as np

from formulations.groups.pricing.quadratics import shifted_minimum
from formulations.jit import compiled
from formulations.leaves.tiles import LANES, TILE, factor_tile, transpose
from formulations.rounding import PIVOT_TOLERANCE


@compiled
def whiten(quadratics, patterns, L, center, K, X, Y, packed):  # type: ignore[no-untyped-def]
    """Write the quadratics of LANES patterns in coordinates v = L'(u - center) to rows of ``packed``.

    X and Y are workspace: row i has the entries (i, 0), (i, 1) .. of all lanes.
    """
    for lane in range(LANES):
        M = quadratics[patterns[lane]]
        value = M[K, K]
        for i in range(K):
            total = 0.0
            for j in range(K):
                X[i, LANES * j + lane] = M[i, j]
                total += M[i, j] * center[j]
            X[i, LANES * K + lane] = M[i, K] - total
            value -= (2.0 * M[i, K] - total) * center[i]
        packed[patterns[lane], (K + 1) * (K + 2) // 2 - 1] = value
    _forward(L, X, K, LANES * (K + 1))
    for i in range(K):
        for j in range(K):
            for lane in range(LANES):
                Y[j, LANES * i + lane] = X[i, LANES * j + lane]
    _forward(L, Y, K, LANES * K)
    for lane in range(LANES):
        p, entry = patterns[lane], 0
        for i in range(K):
            for j in range(i + 1):
                packed[p, entry] = Y[i, LANES * j + lane]
                entry += 1
        for i in range(K):
            packed[p, entry + i] = X[i, LANES * K + lane]


@compiled
def _forward(L, X, K, width):  # type: ignore[no-untyped-def]
    """L^-1 X, in place, for the first entries of each row."""
    for i in range(K):
        for k in range(i):
            factor = L[i, k]
            for t in range(width):
                X[i, t] -= factor * X[k, t]
        scale = L[i, i]
        for t in range(width):
            X[i, t] *= scale


@compiled
def least_values(packed, rows, theta, s, curved, K, T, L, values, v):  # type: ignore[no-untyped-def]
    """Least value of LANES rows of ``packed`` with shares theta and shifts s; leaves their factors in T."""
    order = K + 1
    length = LANES * (order * (order + 1) // 2)
    transpose(packed, rows, np.int64(0), order * (order + 1) // 2, T, np.int64(0))
    at = length - LANES * order
    for i in range(K):
        diagonal = LANES * (i * (i + 3) // 2)
        for lane in range(LANES):
            T[diagonal + lane] += theta[i]
            T[at + LANES * i + lane] += s[i]
    inverse = T[length:]
    for i in range(0, order, TILE):
        for j in range(0, i + 1, TILE):
            factor_tile(T, inverse, i, j, min(TILE, order - i), PIVOT_TOLERANCE, 0.0)
    for lane in range(LANES):
        values[lane] = T[length - LANES + lane]
        for i in range(K):
            if inverse[LANES * i + lane] == 0.0:
                values[lane] = shifted_minimum(packed[rows[lane]], s, theta, curved, K, L, v)
                break


@compiled
def minimiser(lane, K, T, v):  # type: ignore[no-untyped-def]
    """The minimiser of one of the quadratics whose factors are in T, in v."""
    last = LANES * (K * (K + 1) // 2)
    inverse = T[last + LANES * (K + 1) :]
    for i in range(K):
        v[i] = T[last + LANES * i + lane]
    for i in range(K - 1, -1, -1):
        v[i] *= inverse[LANES * i + lane]
        row = LANES * (i * (i + 1) // 2) + lane
        for k in range(i):
            v[k] -= T[row + LANES * k] * v[i]
