"""Costs of many leaves at once, for squared loss, and their lower or upper ends.

The Gram matrix of (1, a, y) is stored packed, row by row of its lower triangle. The cost of a leaf is the last pivot of
its Cholesky factorisation with the ridge added to the diagonal of a: y'y minus what (1, a) explain.

*Exact sums.* Columns are scaled to a sum of squares of at most 1, see :mod:`formulations.leaves.squared`. The matrices
of patterns are rounded to multiples of 2^-52: their sums and differences over any patterns are then without error. With
u = 2^-53, m the order and N the number of rows of the largest pattern, the matrix of a leaf is off by E,

    |E_ij|  <=  2u (number of its patterns)  +  g sqrt(G_ii G_jj),      g = u (BLOCK + N / BLOCK + 8)

*Ends.* |v'E v| <= m sum_i (2u patterns + g G_ii) v_i^2, and the factorisation is exact for a matrix that is off by
another u (m + 12) sqrt(H_ii H_jj), H = G + ridge. So the last pivot of

    H_ii (1 -+ m (g + u (m + 12))) -+ 2u m patterns      on the diagonal, H_ij elsewhere

is below (above) the cost, whatever the order of the sums in the factorisation, and wherever a product and a sum are
rounded once. If a pivot is not positive, the lower end is 0; for the upper end, the coefficient of this column is 0. An
estimate has an unchanged diagonal, and coefficients 0 for pivots that are nearly 0.

*Redundant columns.* A column that is 0 in a leaf, or constant, has coefficient 0 in a best model: it is left out, or 1
on the diagonal is added, which do not change the cost. A column counts as 0 if its sum of squares is; that of any other
column is rounded to at least 2^-52. The bounds above, for all columns, hold for fewer.

Several leaves are factored side by side, see :mod:`formulations.leaves.tiles`.
"""

import numpy as np

from formulations.arrays import FloatArray
from formulations.jit import compiled
from formulations.leaves.tiles import LANES, TILE, factor_tile, transpose
from formulations.rounding import PIVOT_TOLERANCE, UNIT

# Ends of the interval of a cost, or an estimate of it.
LOWER, ESTIMATE, UPPER = -1, 0, 1
# Rows summed before they are added to a total, which bounds the rounding error of long sums.
BLOCK = 64
U = UNIT
# The grid has multiples of 1 / GRID.
GRID = 0.5 / UNIT


@compiled
def rounded_gram(total, part, Z, first, last):  # type: ignore[no-untyped-def]
    """The packed Gram matrix of rows of Z on the grid, in blocks of rows; ``part`` is workspace."""
    size = Z.shape[1]
    for entry in range(len(total)):
        total[entry] = 0.0
    for begin in range(first, last, BLOCK):
        for entry in range(len(total)):
            part[entry] = 0.0
        for row in range(begin, min(begin + BLOCK, last)):
            entry = 0
            for i in range(size):
                value = Z[row, i]
                for j in range(i + 1):
                    part[entry] += value * Z[row, j]
                    entry += 1
        for entry in range(len(total)):
            total[entry] += part[entry]
    for entry in range(len(total)):
        total[entry] = np.rint(total[entry] * GRID) / GRID
    diagonal = -1
    for i in range(size):
        diagonal += i + 1
        if total[diagonal] == 0.0:
            for row in range(first, last):
                if Z[row, i] != 0.0:
                    total[diagonal] = 1.0 / GRID


@compiled
def write_grams(Z, start, members, grams, part):  # type: ignore[no-untyped-def]
    """Write the packed Gram matrix of each of the patterns; ``part`` is workspace."""
    for i in range(len(members)):
        rounded_gram(grams[i], part, Z, start[members[i]], start[members[i] + 1])


def workspace(size: int) -> FloatArray:
    """Space for LANES matrices side by side and the pivots of their factors, aligned to cache lines."""
    space = np.empty(LANES * (size * (size + 3) // 2 + LANES) + 8)
    return space[-(space.ctypes.data // 8) % 8 :]


@compiled
def to_lanes(G, rows, columns, order, T):  # type: ignore[no-untyped-def]
    """Lay out matrices of this order side by side, with the columns i of G at columns[lane, i].

    Columns that are not at their own place are few.
    """
    last, none = columns[0, order - 1], np.int64(0)
    transpose(G, rows, none, order * (order - 1) // 2, T, none)
    transpose(G, rows, last * (last + 1) // 2, order - 1, T, order * (order - 1) // 2)
    for lane in range(LANES):
        T[LANES * (order * (order + 1) // 2 - 1) + lane] = G[rows[lane], last * (last + 3) // 2]
        for i in range(order - 1):
            column, at = columns[lane, i], i * (i + 1) // 2
            if column == i:
                continue
            for j in range(order):
                low, high = min(column, columns[lane, j]), max(column, columns[lane, j])
                T[LANES * at + lane] = G[rows[lane], high * (high + 1) // 2 + low]
                at += 1 if j < i else j + 1


@compiled
def add_ridge(T, patterns, columns, order, ridge, by_weight, end, share):  # type: ignore[no-untyped-def]
    """Add the ridge to the diagonal, 1 where it is 0, and the error in the direction of ``end``."""
    for i in range(order - 1, -1, -1):  # the first entry last: it holds the weight
        diagonal = LANES * (i * (i + 1) // 2 + i)
        for lane in range(LANES):
            entry, weight, error = T[diagonal + lane], T[lane], 2.0 * U * len(ridge) * patterns[lane]
            if entry == 0.0 and i < order - 1:
                entry = 1.0
            if by_weight:
                entry += ridge[columns[lane, i]] * max(weight + end * (share * weight + error), 0.0)
            else:
                entry += ridge[columns[lane, i]]
            T[diagonal + lane] = entry + end * (share * entry + error)


@compiled
def costs_of_rows(G, rows, patterns, columns, order, ridge, by_weight, end, share, T, out):  # type: ignore[no-untyped-def]
    """Costs of the matrices in LANES rows of G, of numbers of patterns, with some of their columns; T is workspace."""
    to_lanes(G, rows, columns, order, T)
    add_ridge(T, patterns, columns, order, ridge, by_weight, end, share)
    least, otherwise = PIVOT_TOLERANCE if end == ESTIMATE else 0.0, np.nan if end == LOWER else 0.0
    length = LANES * (order * (order + 1) // 2)
    inverse = T[length:]
    for i in range(0, order, TILE):
        for j in range(0, i + 1, TILE):
            factor_tile(T, inverse, i, j, min(TILE, order - i), least, otherwise)
    for lane in range(LANES):
        pivot = T[length - LANES + lane]
        out[lane] = pivot if pivot > 0.0 else 0.0


def leaf_costs(
    G: FloatArray, size: int, ridge: FloatArray, by_weight: bool, n_patterns: float, end: int, share: float
) -> FloatArray:
    """Cost of each packed Gram matrix of a number of patterns, one per row of G."""
    columns = np.tile(np.arange(size), (LANES, 1))
    patterns, costs, T = np.full(LANES, float(n_patterns)), np.empty(LANES), workspace(size)
    G, out = np.ascontiguousarray(G), np.empty(len(G))
    for begin in range(0, len(G), LANES):
        rows = np.minimum(np.arange(begin, begin + LANES), len(G) - 1)
        costs_of_rows(G, rows, patterns, columns, size, ridge, by_weight, end, share, T, costs)
        out[begin : begin + LANES] = costs[: len(G) - begin]
    return out
