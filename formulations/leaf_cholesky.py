"""Costs of many leaves at once, for squared loss.

The Gram matrix of (1, a, y) is kept packed, row by row of its lower triangle. The leaf costs the last pivot of its
Cholesky factorisation with the ridge on the diagonal of a: that is y'y minus what (1, a) explain.

Leaves stand side by side in the last axis, so that every step of the factorisation runs over all of them in vector
registers. A pivot that vanishes, of a column that the ones before it explain, is left out: its coefficient is 0.
"""

import numpy as np

from formulations.compiled import compiled

# A pivot below this share of its diagonal entry counts as 0.
VANISHED = 1e-10
# Leaves that are factored side by side: few enough for the cache, enough for the registers.
LANES = 32


@compiled
def add_gram(T, lane, Z, first, last):  # type: ignore[no-untyped-def]
    """Add the packed Gram matrix of rows of Z to a column of T."""
    size = Z.shape[1]
    for row in range(first, last):
        place = 0
        for i in range(size):
            value = Z[row, i]
            for j in range(i + 1):
                T[place, lane] += value * Z[row, j]
                place += 1


@compiled
def gram_of_rows(Z, start, members):  # type: ignore[no-untyped-def]
    """Packed Gram matrix of the rows of some patterns."""
    size = Z.shape[1]
    T = np.zeros((size * (size + 1) // 2, 1))
    for p in members:
        add_gram(T, 0, Z, start[p], start[p + 1])
    return T[:, 0].copy()


@compiled
def split_grams(Z, start, counts, patterns, members, features):  # type: ignore[no-untyped-def]
    """Packed Gram matrices and rows of both sides of every split: first all m_j = 0, then all m_j = 1."""
    size, n_features = Z.shape[1], len(features)
    length = size * (size + 1) // 2
    T = np.zeros((length, 2 * n_features))
    rows = np.zeros((2, n_features), dtype=np.int64)
    one = np.empty((length, 1))
    for p in members:
        one[:] = 0.0
        add_gram(one, 0, Z, start[p], start[p + 1])
        for place in range(n_features):
            side = 1 if patterns[p, features[place]] else 0
            rows[side, place] += counts[p]
            lane = side * n_features + place
            for t in range(length):
                T[t, lane] += one[t, 0]
    return T, rows


@compiled
def subtract_product(T, target, left, right, lanes):  # type: ignore[no-untyped-def]
    """T[target] -= T[left] T[right] in every lane."""
    for lane in range(lanes):
        T[target, lane] -= T[left, lane] * T[right, lane]


@compiled
def factor_lanes(T, size, inverse, lanes):  # type: ignore[no-untyped-def]
    """Cholesky factorisation in place of packed matrices side by side; the last diagonal entry stays a pivot."""
    for i in range(size):
        row = i * (i + 1) // 2
        for lane in range(lanes):
            inverse[i, lane] = T[row + i, lane]
        for c in range(i):
            for lane in range(lanes):
                T[row + c, lane] *= inverse[c, lane]
            for j in range(c + 1, i + 1):
                subtract_product(T, row + j, row + c, j * (j + 1) // 2 + c, lanes)
        for lane in range(lanes):
            pivot = T[row + i, lane]
            inverse[i, lane] = 1.0 / np.sqrt(pivot) if pivot > VANISHED * inverse[i, lane] else 0.0


@compiled
def add_ridge(T, size, ridge, by_weight, lanes):  # type: ignore[no-untyped-def]
    """Add the ridge to the diagonal entries of the features."""
    for i in range(1, size - 1):
        place = i * (i + 1) // 2 + i
        for lane in range(lanes):
            T[place, lane] += ridge * T[0, lane] if by_weight else ridge


@compiled
def costs_of_lanes(T, size, ridge, by_weight, inverse, lanes, out, at):  # type: ignore[no-untyped-def]
    """Costs of packed Gram matrices side by side, written to ``out`` from ``at`` on; T is overwritten."""
    add_ridge(T, size, ridge, by_weight, lanes)
    factor_lanes(T, size, inverse, lanes)
    last = size * (size + 1) // 2 - 1
    for lane in range(lanes):
        out[at + lane] = max(T[last, lane], 0.0)


@compiled
def leaf_costs(T, size, ridge, by_weight):  # type: ignore[no-untyped-def]
    """Cost of each packed Gram matrix, one a column of T."""
    count = T.shape[1]
    out = np.empty(count)
    work = np.empty((T.shape[0], LANES))
    inverse = np.empty((size, LANES))
    for begin in range(0, count, LANES):
        lanes = min(LANES, count - begin)
        for t in range(T.shape[0]):
            for lane in range(lanes):
                work[t, lane] = T[t, begin + lane]
        costs_of_lanes(work, size, ridge, by_weight, inverse, lanes, out, begin)
    return out
