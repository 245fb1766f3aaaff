"""Cholesky factorisation of one matrix in compiled loops, since LAPACK raises on singular matrices.

Rows are factored in order, so that rows at the top stay valid when later ones change. Four rows are factored together,
with four columns j .. j + 3 at a time,

    T  =  A_IJ - sum over k < j of L_Ik L_Jk',      L_IJ  =  T L_JJ^-T

where the 16 sums are accumulated in registers: one step loads 8 numbers for 16 multiplications and additions. Row
numbers are unsigned: signed ones that may be negative, counting from the end, would not be vectorised.
"""

import numpy as np

from formulations.jit import compiled, inlined
from formulations.rounding import PIVOT_TOLERANCE

# Rows and columns of a tile, whose loops are written out below.
TILE = 4


@compiled
def cholesky(L, m, start):  # type: ignore[no-untyped-def]
    """Factor the lower triangle in place, whose rows before ``start`` are factored; False if a pivot vanishes."""
    row = start
    while row < m:
        stop, first = row + 1, 0
        if row + TILE <= m:
            stop, first = row + TILE, row // TILE * TILE
            for j in range(0, first, TILE):
                _solve_tile(L, row, j)
        for i in range(row, stop):
            for j in range(first, i):
                L[i, j] = (L[i, j] - _dot(L, i, j)) / L[j, j]
            pivot = L[i, i] - _dot(L, i, i)
            if not pivot > PIVOT_TOLERANCE * L[i, i]:
                return False
            L[i, i] = np.sqrt(pivot)
        row = stop
    return True


@inlined
def _dot(L, i, j):  # type: ignore[no-untyped-def]
    """sum over k < j of L_ik L_jk."""
    total = 0.0
    for k in range(np.uint64(j)):
        total += L[i, k] * L[j, k]
    return total


@compiled
def _solve_tile(L, i, j):  # type: ignore[no-untyped-def]
    """Set columns j .. j + 3 of rows i .. i + 3; columns before j are set."""
    s00, s01, s02, s03, s10, s11, s12, s13 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    s20, s21, s22, s23, s30, s31, s32, s33 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for k in range(np.uint64(j)):
        x, y0, y1, y2, y3 = L[i, k], L[j, k], L[j + 1, k], L[j + 2, k], L[j + 3, k]
        s00, s01, s02, s03 = s00 + x * y0, s01 + x * y1, s02 + x * y2, s03 + x * y3
        x = L[i + 1, k]
        s10, s11, s12, s13 = s10 + x * y0, s11 + x * y1, s12 + x * y2, s13 + x * y3
        x = L[i + 2, k]
        s20, s21, s22, s23 = s20 + x * y0, s21 + x * y1, s22 + x * y2, s23 + x * y3
        x = L[i + 3, k]
        s30, s31, s32, s33 = s30 + x * y0, s31 + x * y1, s32 + x * y2, s33 + x * y3
    d0, d1, d2, d3 = 1.0 / L[j, j], 1.0 / L[j + 1, j + 1], 1.0 / L[j + 2, j + 2], 1.0 / L[j + 3, j + 3]
    _solve_row(L, i, j, s00, s01, s02, s03, d0, d1, d2, d3)
    _solve_row(L, i + 1, j, s10, s11, s12, s13, d0, d1, d2, d3)
    _solve_row(L, i + 2, j, s20, s21, s22, s23, d0, d1, d2, d3)
    _solve_row(L, i + 3, j, s30, s31, s32, s33, d0, d1, d2, d3)


@inlined
def _solve_row(L, i, j, s0, s1, s2, s3, d0, d1, d2, d3):  # type: ignore[no-untyped-def]
    """Set columns j .. j + 3 of row i, from their sums and the reciprocals of L_jj .. of these columns."""
    x0 = (L[i, j] - s0) * d0
    x1 = (L[i, j + 1] - s1 - x0 * L[j + 1, j]) * d1
    x2 = (L[i, j + 2] - s2 - x0 * L[j + 2, j] - x1 * L[j + 2, j + 1]) * d2
    x3 = (L[i, j + 3] - s3 - x0 * L[j + 3, j] - x1 * L[j + 3, j + 1] - x2 * L[j + 3, j + 2]) * d3
    L[i, j], L[i, j + 1], L[i, j + 2], L[i, j + 3] = x0, x1, x2, x3


@compiled
def cholesky_solve(L, m, x):  # type: ignore[no-untyped-def]
    """Solve L L'x = b in place, b in the first m entries of x."""
    for i in range(m):
        total = x[i]
        for k in range(np.uint64(i)):
            total -= L[i, k] * x[k]
        x[i] = total / L[i, i]
    for i in range(m - 1, -1, -1):
        x[i] /= L[i, i]
        value = x[i]
        for k in range(np.uint64(i)):
            x[k] -= L[i, k] * value
