"""Costs of many leaves at once, for squared loss.

The Gram matrix of (1, a, y) is kept packed, row by row of its lower triangle. The leaf costs the last pivot of its
Cholesky factorisation with the ridge on the diagonal of a: that is y'y minus what (1, a) explain.

Leaves stand side by side in the last axis, so that every step of the factorisation runs over all of them in vector
registers. A pivot that vanishes, of a column that the ones before it explain, is left out: its coefficient is 0.
"""

import numpy as np

from formulations.jit import compiled

# A pivot below this share of its diagonal entry counts as 0.
VANISHED = 1e-10
# Leaves that are factored side by side: few enough for the cache, enough for the registers.
LANES = 64


@compiled
def add_gram(total, Z, first, last):  # type: ignore[no-untyped-def]
    """Add the packed Gram matrix of rows of Z."""
    size = Z.shape[1]
    for row in range(first, last):
        place = 0
        for i in range(size):
            value = Z[row, i]
            for j in range(i + 1):
                total[place] += value * Z[row, j]
                place += 1


@compiled
def all_grams(Z, start, length):  # type: ignore[no-untyped-def]
    """Packed Gram matrix of every pattern."""
    grams = np.zeros((len(start) - 1, length))
    for p in range(len(grams)):
        add_gram(grams[p], Z, start[p], start[p + 1])
    return grams


@compiled
def add_row(source, row, target, place):  # type: ignore[no-untyped-def]
    """target[place] += source[row]."""
    for t in range(source.shape[1]):
        target[place, t] += source[row, t]


@compiled
def copy_row(source, row, target, place):  # type: ignore[no-untyped-def]
    """target[place] = source[row]: a whole row at once, which is what memory is fast at."""
    for t in range(source.shape[1]):
        target[place, t] = source[row, t]


@compiled
def pattern_gram(one, Z, start, grams, p):  # type: ignore[no-untyped-def]
    """Packed Gram matrix of a pattern in the row ``one[0]``: as it is held, or else from the rows."""
    if len(grams):
        copy_row(grams, p, one, 0)
    else:
        one[0, :] = 0.0
        add_gram(one[0], Z, start[p], start[p + 1])


@compiled
def gram_of_patterns(Z, start, grams, members, length):  # type: ignore[no-untyped-def]
    """Packed Gram matrix of some patterns together."""
    total, one = np.zeros((1, length)), np.empty((1, length))
    for p in members:
        pattern_gram(one, Z, start, grams, p)
        add_row(one, 0, total, 0)
    return total


@compiled
def split_grams(Z, start, grams, counts, patterns, members, features, length):  # type: ignore[no-untyped-def]
    """Packed Gram matrices and rows of both sides of every split: first all m_j = 0, then all m_j = 1."""
    n_features = len(features)
    G = np.zeros((2 * n_features, length))
    rows = np.zeros((2, n_features), dtype=np.int64)
    one = np.empty((1, length))
    for p in members:
        pattern_gram(one, Z, start, grams, p)
        for place in range(n_features):
            side = 1 if patterns[p, features[place]] else 0
            rows[side, place] += counts[p]
            add_row(one, 0, G, side * n_features + place)
    return G, rows


@compiled
def to_lanes(G, begin, lanes, work):  # type: ignore[no-untyped-def]
    """Rows of G side by side, a cache line at a time."""
    length = work.shape[0]
    for block in range(0, length, 8):
        for t in range(block, min(block + 8, length)):
            for lane in range(lanes):
                work[t, lane] = G[begin + lane, t]


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
def leaf_costs(G, size, ridge, by_weight):  # type: ignore[no-untyped-def]
    """Cost of each packed Gram matrix, one a row of G."""
    out = np.empty(len(G))
    work, inverse = np.empty((size * (size + 1) // 2, LANES)), np.empty((size, LANES))
    for begin in range(0, len(G), LANES):
        lanes = min(LANES, len(G) - begin)
        to_lanes(G, begin, lanes, work)
        costs_of_lanes(work, size, ridge, by_weight, inverse, lanes, out, begin)
    return out


@compiled
def moments_where_not_zero(A, s):  # type: ignore[no-untyped-def]
    """For each column mean and standard deviation of the entries that are not 0, and whether some entry is 0."""
    n, k = A.shape
    weight, mean, variance = np.zeros(k), np.zeros(k), np.zeros(k)
    has_zero = np.zeros(k, dtype=np.bool_)
    for i in range(n):
        for j in range(k):
            if A[i, j] == 0.0:
                has_zero[j] = True
            else:
                weight[j] += s[i]
                mean[j] += s[i] * A[i, j]
    for j in range(k):
        mean[j] = mean[j] / weight[j] if weight[j] > 0.0 else 0.0
    for i in range(n):
        for j in range(k):
            if A[i, j] != 0.0:
                variance[j] += s[i] * (A[i, j] - mean[j]) ** 2
    for j in range(k):
        variance[j] = variance[j] / weight[j] if weight[j] > 0.0 else 0.0
    return mean, np.sqrt(variance), has_zero
