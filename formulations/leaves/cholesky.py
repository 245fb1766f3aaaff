"""Costs of many leaves at once, for squared loss.

The Gram matrix of (1, a, y) is stored packed, row by row of its lower triangle. The cost of a leaf is the last pivot of
its Cholesky factorisation with the ridge added to the diagonal of a: y'y minus what (1, a) explain.

Leaves are laid out side by side in the last axis, the lanes: each step of the factorisation runs over all of them in
vector registers. A vanishing pivot, of a column explained by the ones before it, is left out: its coefficient is 0.
"""

import numpy as np

from formulations.jit import compiled

# A pivot below this share of its diagonal entry counts as 0.
VANISHED = 1e-10
# Leaves factored side by side: few enough for the cache, enough for the registers.
LANES = 64


@compiled
def add_gram(total, Z, first, last):  # type: ignore[no-untyped-def]
    """Add the packed Gram matrix of rows of Z."""
    size = Z.shape[1]
    for row in range(first, last):
        entry = 0
        for i in range(size):
            value = Z[row, i]
            for j in range(i + 1):
                total[entry] += value * Z[row, j]
                entry += 1


@compiled
def all_grams(Z, start, length):  # type: ignore[no-untyped-def]
    """Packed Gram matrix of every pattern."""
    grams = np.zeros((len(start) - 1, length))
    for p in range(len(grams)):
        add_gram(grams[p], Z, start[p], start[p + 1])
    return grams


@compiled
def add_row(source, row, target, at):  # type: ignore[no-untyped-def]
    """target[at] += source[row]."""
    for t in range(source.shape[1]):
        target[at, t] += source[row, t]


@compiled
def copy_row(source, row, target, at):  # type: ignore[no-untyped-def]
    """target[at] = source[row], a whole row at once, which is fast in memory."""
    for t in range(source.shape[1]):
        target[at, t] = source[row, t]


@compiled
def pattern_gram(one, Z, start, grams, p):  # type: ignore[no-untyped-def]
    """Packed Gram matrix of a pattern in ``one[0]``: copied if held, else computed from the rows."""
    if len(grams):
        copy_row(grams, p, one, 0)
    else:
        one[0, :] = 0.0
        add_gram(one[0], Z, start[p], start[p + 1])


@compiled
def gram_of_patterns(Z, start, grams, members, length):  # type: ignore[no-untyped-def]
    """Packed Gram matrix of a set of patterns."""
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
        for i in range(n_features):
            side = 1 if patterns[p, features[i]] else 0
            rows[side, i] += counts[p]
            add_row(one, 0, G, side * n_features + i)
    return G, rows


@compiled
def to_lanes(G, begin, lanes, work):  # type: ignore[no-untyped-def]
    """Copy rows of G side by side, one cache line at a time."""
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
    """Cholesky factorisation in place of packed matrices side by side; the last diagonal entry remains a pivot."""
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
        diagonal = i * (i + 1) // 2 + i
        for lane in range(lanes):
            T[diagonal, lane] += ridge * T[0, lane] if by_weight else ridge


@compiled
def costs_of_lanes(T, size, ridge, by_weight, inverse, lanes, out, at):  # type: ignore[no-untyped-def]
    """Costs of packed Gram matrices side by side, written to ``out`` starting at ``at``; T is overwritten."""
    add_ridge(T, size, ridge, by_weight, lanes)
    factor_lanes(T, size, inverse, lanes)
    last = size * (size + 1) // 2 - 1
    for lane in range(lanes):
        out[at + lane] = max(T[last, lane], 0.0)


@compiled
def leaf_costs(G, size, ridge, by_weight):  # type: ignore[no-untyped-def]
    """Cost of each packed Gram matrix, one per row of G."""
    out = np.empty(len(G))
    work, inverse = np.empty((size * (size + 1) // 2, LANES)), np.empty((size, LANES))
    for begin in range(0, len(G), LANES):
        lanes = min(LANES, len(G) - begin)
        to_lanes(G, begin, lanes, work)
        costs_of_lanes(work, size, ridge, by_weight, inverse, lanes, out, begin)
    return out
