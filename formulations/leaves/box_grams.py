"""Gram matrices of all boxes of {0,1}^F with at most D fixed literals, and their costs, for squared loss.

A box fixes m_j = v_j for j in a set S. Write G(S, v) for the Gram matrix of its rows and A(U) for that of the rows with
all of U missing. A(U), |U| <= D, is accumulated from the patterns; every other box follows from

    G(S, v)  =  sum over U with {v = 1} <= U <= S of (-1)^{|U| - |v|} A(U).

With S = R + j, j below all of R, and u in {0,1}^R: the boxes (S, u1) come from the A(U + j), U <= R, by |R| sweeps of
differences for all u at once, and G(S, u0) = G(R, u) - G(S, u1). These boxes are laid out side by side, for several j,
and factored together.

Subsets are numbered in colexicographic order: S = {s_1 < .. < s_k} has rank sum_i C(s_i, i). Those with largest element
f are consecutive, and so are those that differ in the smallest element. A(S) with |S| = D is needed only by the boxes
of S: it is held for one f at a time. The last two entries of a matrix count its patterns and its rows.
"""

import numpy as np

from formulations.jit import compiled
from formulations.leaves.cholesky import LANES, add_row, costs_of_lanes, pattern_gram

# Matrix entries that are differenced and laid out at once, few enough to stay in the fastest cache.
ENTRIES = 64


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
def add_to_subsets(one, count, A, offset, missing, n_missing, k, binom, selected):  # type: ignore[no-untyped-def]
    """Add the matrix of a pattern to A(U) for every k-subset U of its missing features."""
    for i in range(k):
        selected[i] = i
    more = k <= n_missing
    while more:
        rank = offset
        for i in range(k):
            rank += binom[missing[selected[i]], i + 1]
        A[rank, A.shape[1] - 2] += 1.0
        A[rank, A.shape[1] - 1] += count
        add_row(one, 0, A, rank)
        more = next_subset(selected, k, n_missing)


@compiled
def all_missing(Z, start, grams, counts, patterns, top, binom, A):  # type: ignore[no-untyped-def]
    """Accumulate A(U) for |U| <= top, by size, then rank."""
    n_features = patterns.shape[1]
    one = np.empty((1, A.shape[1] - 2))
    missing = np.empty(n_features, dtype=np.int64)
    selected = np.empty(n_features + 1, dtype=np.int64)
    for p in range(len(patterns)):
        n_missing = 0
        for j in range(n_features):
            if patterns[p, j]:
                missing[n_missing] = j
                n_missing += 1
        pattern_gram(one, Z, start, grams, p)
        offset = 0
        for k in range(top + 1):
            add_to_subsets(one, counts[p], A, offset, missing, n_missing, k, binom, selected)
            offset += binom[n_features, k]


@compiled
def all_missing_with(Z, start, grams, counts, patterns, f, k, binom, A):  # type: ignore[no-untyped-def]
    """Accumulate A(U) for the k-subsets U with largest element f, by the rank of their elements below f."""
    one = np.empty((1, A.shape[1] - 2))
    missing = np.empty(f + 1, dtype=np.int64)
    selected = np.empty(f + 2, dtype=np.int64)
    for p in range(len(patterns)):
        if patterns[p, f]:
            n_missing = 0
            for j in range(f):
                if patterns[p, j]:
                    missing[n_missing] = j
                    n_missing += 1
            pattern_gram(one, Z, start, grams, p)
            add_to_subsets(one, counts[p], A, 0, missing, n_missing, k - 1, binom, selected)


@compiled
def subset_ranks(R, size, with_lowest, offsets, binom, ranks):  # type: ignore[no-untyped-def]
    """Indices of A(U), or of A(U + 0), for all U <= R; bit i of an index is the i-th element of R."""
    for u in range(2**size):
        held, rank = with_lowest, 0
        for i in range(size):
            if u >> i & 1:
                held += 1
                rank += binom[R[i], held]
        ranks[u] = offsets[held] + rank


@compiled
def fill_pair(A, low, B, high, t, n, G, row):  # type: ignore[no-untyped-def]
    """The lowest bit, for n entries starting at t: G[row] = A[low] - B[high], G[row + 1] = B[high]."""
    for i in range(n):
        missing = B[high, t + i]
        G[row, i] = A[low, t + i] - missing
        G[row + 1, i] = missing


@compiled
def subtract_row(G, row, other, n):  # type: ignore[no-untyped-def]
    """G[row] -= G[other]."""
    for i in range(n):
        G[row, i] -= G[other, i]


@compiled
def fill_boxes(A, ranks, shift, top, top_rank, t, n, G, first, width):  # type: ignore[no-untyped-def]
    """From "all of U missing" to boxes, for n entries starting at t: one row of G per u; the last U is in ``top``."""
    if width == 1:
        for i in range(n):
            G[first, i] = top[top_rank + shift, t + i]
        return
    for u in range(0, width - 2, 2):
        fill_pair(A, ranks[u] + shift, A, ranks[u + 1] + shift, t, n, G, first + u)
    fill_pair(A, ranks[width - 2] + shift, top, top_rank + shift, t, n, G, first + width - 2)
    bit = 2
    while bit < width:
        for block in range(first, first + width, 2 * bit):
            for row in range(block, block + bit):
                subtract_row(G, row, row + bit, n)
        bit *= 2


@compiled
def to_lanes(G, width, t, n, both):  # type: ignore[no-untyped-def]
    """Lay out the boxes in the rows of G side by side."""
    for i in range(n):
        for u in range(width):
            both[t + i, u] = G[u, i]


@compiled
def with_enough_rows(both, G, count, width, min_rows, missing_at, observed_at):  # type: ignore[no-untyped-def]
    """Rows of G whose boxes have enough data rows with j missing, and with j observed; returns their numbers."""
    n_missing, n_observed = 0, 0
    last, entry = len(both) - 1, (len(both) - 1) % ENTRIES
    for box in range(count):
        rows = G[box, entry]
        if rows > min_rows - 0.5:
            missing_at[n_missing] = box
            n_missing += 1
        if both[last, box % width] - rows > min_rows - 0.5:
            observed_at[n_observed] = box
            n_observed += 1
    return n_missing, n_observed


@compiled
def missing_to_lanes(G, boxes, count, t, n, T):  # type: ignore[no-untyped-def]
    """Lay out rows of G side by side."""
    for i in range(n):
        for lane in range(count):
            T[t + i, lane] = G[boxes[lane], i]


@compiled
def observed_to_lanes(both, G, boxes, count, width, t, n, T):  # type: ignore[no-untyped-def]
    """Lay out ``both`` minus rows of G side by side."""
    for i in range(n):
        for lane in range(count):
            box = boxes[lane]
            T[t + i, lane] = both[t + i, box & (width - 1)] - G[box, i]


@compiled
def drop_redundant(T, lane, f, side, redundant):  # type: ignore[no-untyped-def]
    """Add 1 to the diagonal entries of the columns that are constant where m_f is ``side``."""
    for c in range(redundant.shape[2]):
        column = redundant[f, side, c]
        if column < 0:
            break
        T[column * (column + 1) // 2 + column, lane] += 1.0


@compiled
def write_costs(T, boxes, lanes, R, n_upper, lowest, side, options, inverse, costs, out, first):  # type: ignore[no-untyped-def]
    """Write the costs of boxes laid out side by side, at every second index starting at ``first``.

    Box u + 2^n_upper i fixes R as in u, and j = lowest + i to ``side``.
    """
    size, ridge, by_weight, _, end, share, redundant = options
    width = 2**n_upper
    for lane in range(lanes):
        drop_redundant(T, lane, lowest + boxes[lane] // width, side, redundant)
        for i in range(n_upper):
            drop_redundant(T, lane, R[i], boxes[lane] >> i & 1, redundant)
    costs_of_lanes(T, size, ridge, by_weight, T[len(T) - 2], end, share, inverse, lanes, costs, 0)
    for lane in range(lanes):
        out[first + 2 * boxes[lane]] = costs[lane]


@compiled
def costs_above(A, top, top_first, offsets, R, n_upper, n_lower, options, binom, buffers, out, first):  # type: ignore[no-untyped-def]
    """Costs of the boxes of S = R + j for j below ``n_lower``, by j, then v, starting at ``first``.

    ``top`` holds A(S), starting at rank ``top_first``; A(U) of smaller sets is in A. Boxes with too few rows are not
    written. The last entries, which hold the number of rows, are processed first.
    """
    both, G, missing, observed, inverse, costs, ranks, missing_at, observed_at = buffers
    width, length = 2**n_upper, A.shape[1]
    subset_ranks(R, n_upper, 0, offsets, binom, ranks)
    for t in range(0, length, ENTRIES):
        n = min(ENTRIES, length - t)
        fill_boxes(A, ranks, 0, A, ranks[width - 1], t, n, G, 0, width)
        to_lanes(G, width, t, n, both)
    subset_ranks(R, n_upper, 1, offsets, binom, ranks)
    top_rank = ranks[width - 1] - offsets[n_upper + 1] - top_first
    per_batch = len(G) // width
    for begin in range(0, n_lower, per_batch):
        held = min(per_batch, n_lower - begin)
        n_missing, n_observed = -1, -1
        for t in range((length - 1) // ENTRIES * ENTRIES, -1, -ENTRIES):
            n = min(ENTRIES, length - t)
            for j in range(held):
                fill_boxes(A, ranks, begin + j, top, top_rank, t, n, G, j * width, width)
            if n_missing < 0:
                n_missing, n_observed = with_enough_rows(
                    both, G, held * width, width, options[3], missing_at, observed_at
                )
            missing_to_lanes(G, missing_at, n_missing, t, n, missing)
            observed_to_lanes(both, G, observed_at, n_observed, width, t, n, observed)
        at = first + 2 * begin * width
        write_costs(missing, missing_at, n_missing, R, n_upper, begin, 1, options, inverse, costs, out, at + 1)
        write_costs(observed, observed_at, n_observed, R, n_upper, begin, 0, options, inverse, costs, out, at)


@compiled
def costs_with_largest(A, top, top_first, offsets, f, k, options, binom):  # type: ignore[no-untyped-def]
    """Costs of the boxes over the k-subsets with largest element f, by rank, then v; for k = 1 over all j < f.

    ``options``: order, ridges, whether these are times the weight, fewest rows, end of the interval and its share of
    the diagonal (:mod:`formulations.leaves.cholesky`), and the columns that are constant for either value of m_f,
    ended by -1.
    """
    length, size, width = A.shape[1], options[0], 2 ** (k - 1)
    lanes = max(1, LANES // width) * width
    buffers = (
        np.empty((length, width)), np.empty((lanes, ENTRIES)), np.empty((length, lanes)), np.empty((length, lanes)),
        np.empty((size, lanes)), np.empty(lanes), np.empty(width, dtype=np.int64), np.empty(lanes, dtype=np.int64),
        np.empty(lanes, dtype=np.int64),
    )  # fmt: skip
    R = np.empty(k, dtype=np.int64)
    if k == 1:
        out = np.full(2 * f, np.inf)
        costs_above(A, top, top_first, offsets, R, 0, f, options, binom, buffers, out, 0)
        return out
    out = np.full(binom[f, k - 1] << k, np.inf)
    for i in range(k - 2):
        R[i] = i
    R[k - 2] = f
    rank, more = 0, True
    while more:
        costs_above(A, top, top_first, offsets, R, k - 1, R[0], options, binom, buffers, out, rank << k)
        rank += R[0]
        more = next_subset(R, k - 2, f)
    return out
