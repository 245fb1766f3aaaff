"""Gram matrices of all boxes of {0,1}^F with at most D fixed literals, and their costs, for squared loss.

A box fixes m_j = v_j for j in a set S. Write G(S, v) for the Gram matrix of its rows and A(U) for that of the rows where
all of U is missing. A(U), |U| <= D, is accumulated from the patterns; every other box follows from

    G(S, v)  =  sum over U with {v = 1} <= U <= S of (-1)^{|U| - |v|} A(U).

With S = R + j, j below all of R, and u in {0,1}^R: the boxes (S, u1) come from the A(U + j), U <= R, by |R| sweeps of
differences for all u at once, and G(S, u0) = G(R, u) - G(S, u1). These boxes stand side by side, for several j, and are
factored together.

Subsets are numbered in colexicographic order: S = {s_1 < .. < s_k} has rank sum_i C(s_i, i). So those with largest
element f are consecutive, and so are those that differ in the smallest element. A(S) with |S| = D is needed by the boxes
of S alone: it is held for one f at a time.
"""

import numpy as np

from formulations.compiled import compiled
from formulations.leaf_cholesky import LANES, add_row, copy_row, costs_of_lanes, pattern_gram, to_lanes


def binomials(n: int) -> np.ndarray:
    """C(i, k) for i, k up to n + 1."""
    table = np.zeros((n + 2, n + 2), dtype=np.int64)
    table[:, 0] = 1
    for i in range(1, n + 2):
        table[i, 1:] = table[i - 1, 1:] + table[i - 1, :-1]
    return table


@compiled
def next_subset(c, k, n):  # type: ignore[no-untyped-def]
    """The next k-subset of range(n) in colexicographic order, in place; False after the last one."""
    for i in range(k):
        limit = c[i + 1] if i + 1 < k else n
        if c[i] + 1 < limit:
            c[i] += 1
            for low in range(i):
                c[low] = low
            return True
    return False


@compiled
def add_to_subsets(one, count, A, offset, missing, n_missing, k, binom, chosen):  # type: ignore[no-untyped-def]
    """Add a pattern's matrix to A(U) for every k-subset U of what it misses."""
    for i in range(k):
        chosen[i] = i
    more = k <= n_missing
    while more:
        rank = offset
        for i in range(k):
            rank += binom[missing[chosen[i]], i + 1]
        A[rank, A.shape[1] - 1] += count
        add_row(one, 0, A, rank)
        more = next_subset(chosen, k, n_missing)


@compiled
def all_missing(Z, start, grams, counts, patterns, top, binom, length):  # type: ignore[no-untyped-def]
    """A(U) for |U| <= top, by size, then rank; the last entry of each is the number of rows."""
    n_features = patterns.shape[1]
    total = 0
    for k in range(top + 1):
        total += binom[n_features, k]
    A = np.zeros((total, length))
    one = np.empty((1, length - 1))
    missing = np.empty(n_features, dtype=np.int64)
    chosen = np.empty(n_features + 1, dtype=np.int64)
    for p in range(len(patterns)):
        n_missing = 0
        for j in range(n_features):
            if patterns[p, j]:
                missing[n_missing] = j
                n_missing += 1
        pattern_gram(one, Z, start, grams, p)
        offset = 0
        for k in range(top + 1):
            add_to_subsets(one, counts[p], A, offset, missing, n_missing, k, binom, chosen)
            offset += binom[n_features, k]
    return A


@compiled
def all_missing_with(Z, start, grams, counts, patterns, f, k, binom, length):  # type: ignore[no-untyped-def]
    """A(U) for the k-subsets U with largest element f, by the rank of what they hold below f."""
    A = np.zeros((binom[f, k - 1], length))
    one = np.empty((1, length - 1))
    missing = np.empty(f + 1, dtype=np.int64)
    chosen = np.empty(f + 2, dtype=np.int64)
    for p in range(len(patterns)):
        if patterns[p, f]:
            n_missing = 0
            for j in range(f):
                if patterns[p, j]:
                    missing[n_missing] = j
                    n_missing += 1
            pattern_gram(one, Z, start, grams, p)
            add_to_subsets(one, counts[p], A, 0, missing, n_missing, k - 1, binom, chosen)
    return A


@compiled
def subset_ranks(R, size, with_lowest, offsets, binom, ranks):  # type: ignore[no-untyped-def]
    """Places of A(U) for all U <= R, or of A(U + 0) in their stead; bit i of an index is the i-th element of R."""
    for u in range(2**size):
        held, rank = with_lowest, 0
        for i in range(size):
            if u >> i & 1:
                held += 1
                rank += binom[R[i], held]
        ranks[u] = offsets[held] + rank


@compiled
def subtract_row(G, place, other):  # type: ignore[no-untyped-def]
    """G[place] -= G[other]."""
    for t in range(G.shape[1]):
        G[place, t] -= G[other, t]


@compiled
def difference(G, count, n_upper):  # type: ignore[no-untyped-def]
    """From "all of U missing" to boxes, in place, in every block of 2^n_upper rows."""
    for i in range(n_upper):
        bit = 1 << i
        for block in range(0, count, 2 * bit):
            for place in range(block, block + bit):
                subtract_row(G, place, place + bit)


@compiled
def other_side(E, G, count, width):  # type: ignore[no-untyped-def]
    """G = E - G, with E repeated every ``width`` rows."""
    for place in range(count):
        source = place % width
        for t in range(G.shape[1]):
            G[place, t] = E[source, t] - G[place, t]


@compiled
def costs_of_boxes(G, count, options, work, inverse, costs, out, first):  # type: ignore[no-untyped-def]
    """Costs of the boxes in the rows of G, to every second place from ``first`` on; infinite with too few rows."""
    size, ridge, by_weight, min_rows = options
    last = G.shape[1] - 1
    for begin in range(0, count, LANES):
        lanes = min(LANES, count - begin)
        some = False
        for place in range(begin, begin + lanes):
            some = some or G[place, last] > min_rows - 0.5
        if some:
            to_lanes(G, begin, lanes, work)
            costs_of_lanes(work, size, ridge, by_weight, inverse, lanes, costs, 0)
        for lane in range(lanes):
            enough = G[begin + lane, last] > min_rows - 0.5
            out[first + 2 * (begin + lane)] = costs[lane] if enough else np.inf


@compiled
def costs_above(A, top, top_first, offsets, R, n_upper, n_lower, options, binom, buffers, out, first):  # type: ignore[no-untyped-def]
    """Costs of the boxes of S = R + j for j below ``n_lower``, by j, then v, from ``first`` on.

    ``top`` holds A(S), from rank ``top_first`` on; A(U) of smaller sets is in A.
    """
    E, G, work, inverse, costs, ranks = buffers
    width = 2**n_upper
    subset_ranks(R, n_upper, 0, offsets, binom, ranks)
    for u in range(width):
        copy_row(A, ranks[u], E, u)
    difference(E, width, n_upper)
    subset_ranks(R, n_upper, 1, offsets, binom, ranks)
    top_rank = ranks[width - 1] - offsets[n_upper + 1] - top_first
    together = len(G) // width
    for begin in range(0, n_lower, together):
        held = min(together, n_lower - begin)
        for place in range(held):
            for u in range(width - 1):
                copy_row(A, ranks[u] + begin + place, G, place * width + u)
            copy_row(top, top_rank + begin + place, G, place * width + width - 1)
        count = held * width
        difference(G, count, n_upper)
        at = first + 2 * begin * width
        costs_of_boxes(G, count, options, work, inverse, costs, out, at + 1)
        other_side(E, G, count, width)
        costs_of_boxes(G, count, options, work, inverse, costs, out, at)


@compiled
def costs_with_largest(A, top, top_first, offsets, f, k, options, binom):  # type: ignore[no-untyped-def]
    """Costs of the boxes over the k-subsets with largest element f, by rank, then v; for k = 1 over all j < f."""
    length, size, width = A.shape[1], options[0], 2 ** (k - 1)
    buffers = (
        np.empty((width, length)), np.empty((max(1, LANES // width) * width, length)), np.empty((length - 1, LANES)),
        np.empty((size, LANES)), np.empty(LANES), np.empty(width, dtype=np.int64),
    )  # fmt: skip
    R = np.empty(k, dtype=np.int64)
    if k == 1:
        out = np.empty(2 * f)
        costs_above(A, top, top_first, offsets, R, 0, f, options, binom, buffers, out, 0)
        return out
    out = np.empty(binom[f, k - 1] << k)
    for i in range(k - 2):
        R[i] = i
    R[k - 2] = f
    rank, more = 0, True
    while more:
        costs_above(A, top, top_first, offsets, R, k - 1, R[0], options, binom, buffers, out, rank << k)
        rank += R[0]
        more = next_subset(R, k - 2, f)
    return out
