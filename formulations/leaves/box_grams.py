"""Gram matrices of all boxes of {0,1}^F with at most D fixed literals, and their costs, for squared loss.

A box fixes m_j = v_j for j in a set S. Write G(S, v) for the Gram matrix of its rows and A(U) for that of the rows with
all of U missing. Every box follows from

    G(S, v)  =  sum over U with {v = 1} <= U <= S of (-1)^{|U| - |v|} A(U).

With S = R + j, j below all of R, and u in {0,1}^R: the boxes (S, u1) come from the A(U + j), U <= R, by |R| sweeps of
differences for all u at once, and G(S, u0) = G(R, u) - G(S, u1). A(S) with |S| = D is needed only by the boxes of S: it
is held for one R at a time.

Columns that are constant in a box, such as a feature that is missing there, are left out of its matrix. Boxes are
sorted by the number of such columns and factored side by side; where one has more than its neighbours, it keeps the
surplus, with 1 added to the diagonal.

*Sums over sets.* A(U) is accumulated for all sets U of at most D features. Subsets are numbered in colexicographic
order: U = {u_1 < .. < u_k} has rank sum_i C(u_i, i). So the sets R + j, for a set R and all j below its smallest
element, are consecutive, and their sums A(R + j) are accumulated together: each pattern with all of R missing is added
to those whose j it misses. Entries are processed in pieces, few enough for the sums to stay in the fastest cache. The
last two entries of a sum count its patterns and its rows.
"""

from typing import Any

import numpy as np

from formulations.arrays import FloatArray, IntArray
from formulations.jit import compiled, inlined
from formulations.leaves.cholesky import add_row, costs_of_rows, rounded_gram, workspace
from formulations.leaves.tiles import LANES

# Entries of a matrix that are processed at once.
ENTRIES = 128
# Patterns and sums that are collected before they are added, and at least as many as there are features.
PAIRS = 512


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
def with_element(S, k, j, binom):  # type: ignore[no-untyped-def]
    """Position of j in S + j, and the rank of S + j; position -1 if j is in S."""
    position, rank = 0, 0
    for i in range(k):
        if S[i] == j:
            return -1, 0
        if S[i] < j:
            position += 1
            rank += binom[S[i], i + 1]
        else:
            rank += binom[S[i], i + 2]
    return position, rank + binom[j, position + 1]


@inlined
def add_part(grams, p, sums, at, begin, end):  # type: ignore[no-untyped-def]
    """Add entries of the matrix of a pattern to a sum."""
    for t in range(np.uint64(begin), np.uint64(end)):
        sums[at, t] += grams[p, t]


@compiled
def add_pairs(Z, start, grams, pairs, count, sums, one):  # type: ignore[no-untyped-def]
    """Add the matrix of each pattern to its sum; if these are not held, ``one`` is workspace for one of them."""
    if len(grams):
        length = grams.shape[1]
        for begin in range(0, length, ENTRIES):
            for i in range(count):
                add_part(grams, pairs[i, 0], sums, pairs[i, 1], begin, min(begin + ENTRIES, length))
        return
    for i in range(count):
        p = pairs[i, 0]
        if i == 0 or p != pairs[i - 1, 0]:
            rounded_gram(one[0], one[1], Z, start[p], start[p + 1])
        add_row(one, 0, sums, pairs[i, 1])


@compiled
def patterns_with(patterns, f, members):  # type: ignore[no-untyped-def]
    """Write the patterns in which f is missing, all of them if f < 0; returns their number."""
    count = 0
    for p in range(len(patterns)):
        if f < 0 or patterns[p, f]:
            members[count] = p
            count += 1
    return count


def space_for_sums(data: tuple[Any, ...], length: int) -> tuple[np.ndarray, np.ndarray, FloatArray]:
    """Workspace: patterns, pairs of a pattern and a sum, and the matrix of a pattern if these are not held."""
    _, _, grams, _, patterns = data
    n_patterns, n_features = patterns.shape
    pairs = np.empty((PAIRS + n_features, 2), dtype=np.int64)
    return np.empty(n_patterns, dtype=np.int64), pairs, np.empty((0 if len(grams) else 2, length))


@compiled
def add_sums(data, space, n_members, R, size, n_lower, sums, first):  # type: ignore[no-untyped-def]
    """Add A(R + j), j < n_lower, to sums[first + j]; ``space`` begins with the patterns without R's largest element."""
    Z, start, grams, counts, patterns = data
    members, pairs, one = space
    length, held = sums.shape[1] - 2, 0
    for member in range(n_members):
        p, i = members[member], 0
        while i < size and patterns[p, R[i]]:
            i += 1
        if i < size:
            continue
        for j in range(n_lower):
            if patterns[p, j]:
                sums[first + j, length] += 1.0
                sums[first + j, length + 1] += counts[p]
                pairs[held, 0], pairs[held, 1] = p, first + j
                held += 1
        if held >= PAIRS:
            add_pairs(Z, start, grams, pairs, held, sums, one)
            held = 0
    add_pairs(Z, start, grams, pairs, held, sums, one)


def all_sums(data: tuple[Any, ...], depth: int, A: FloatArray) -> None:
    """Accumulate A(U) for 0 < |U| < depth, by size, then rank, starting at A[1]."""
    _write_sums(data, depth, A, np.empty(depth, dtype=np.int64), space_for_sums(data, A.shape[1] - 2))


@compiled
def _write_sums(data, depth, A, R, space):  # type: ignore[no-untyped-def]
    patterns, members = data[4], space[0]
    n_features, first = patterns.shape[1], 1
    for k in range(1, depth):
        for i in range(k - 1):
            R[i] = i
        largest, more = -1, True
        n_members = patterns_with(patterns, -1, members)
        while more:
            if k > 1 and R[k - 2] != largest:
                largest = R[k - 2]
                n_members = patterns_with(patterns, largest, members)
            n_lower = R[0] if k > 1 else n_features
            add_sums(data, space, n_members, R, k - 1, n_lower, A, first)
            first += n_lower
            more = next_subset(R, k - 1, n_features)


# Boxes that are sorted together.
BOXES = 32


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


@inlined
def fill_pair(A, low, B, high, t, n, G, observed, missing):  # type: ignore[no-untyped-def]
    """One literal, for n entries starting at t: G[observed] = A[low] - B[high], G[missing] = B[high]."""
    for i in range(np.uint64(t), np.uint64(t + n)):
        entry = B[high, i]
        G[observed, i] = A[low, i] - entry
        G[missing, i] = entry


@inlined
def fill_other(both, u, G, missing, t, n, observed):  # type: ignore[no-untyped-def]
    """G[observed] = both[u] - G[missing], for n entries starting at t."""
    for i in range(np.uint64(t), np.uint64(t + n)):
        G[observed, i] = both[u, i] - G[missing, i]


@inlined
def subtract_row(G, row, other, t, n):  # type: ignore[no-untyped-def]
    """G[row] -= G[other], for n entries starting at t."""
    for i in range(np.uint64(t), np.uint64(t + n)):
        G[row, i] -= G[other, i]


@compiled
def fill_boxes(A, ranks, shift, top, top_rank, t, n, G, first, step, width):  # type: ignore[no-untyped-def]
    """From "all of U missing" to boxes, for n entries starting at t; the last U is in ``top``.

    Box u is in row first + step u of G.
    """
    if width == 1:
        for i in range(np.uint64(t), np.uint64(t + n)):
            G[first, i] = top[top_rank + shift, i]
        return
    for u in range(0, width - 2, 2):
        at = first + step * u
        fill_pair(A, ranks[u] + shift, A, ranks[u + 1] + shift, t, n, G, at, at + step)
    at = first + step * (width - 2)
    fill_pair(A, ranks[width - 2] + shift, top, top_rank + shift, t, n, G, at, at + step)
    bit = 2
    while bit < width:
        for block in range(0, width, 2 * bit):
            for u in range(block, block + bit):
                subtract_row(G, first + step * u, first + step * (u + bit), t, n)
        bit *= 2


@compiled
def fill_sets(A, ranks, begin, count, top, top_rank, both, G):  # type: ignore[no-untyped-def]
    """The boxes of S = R + j for ``count`` of j starting at ``begin``, by j, then v; ``both`` holds the boxes of R."""
    width, length = both.shape
    for j in range(count):
        first = 2 * width * j
        for t in range(0, length, ENTRIES):
            n = min(ENTRIES, length - t)
            fill_boxes(A, ranks, begin + j, top, top_rank, t, n, G, first + 1, 2, width)
            for u in range(width):
                fill_other(both, u, G, first + 2 * u + 1, t, n, first + 2 * u)


@compiled
def constant_in_box(box, j, R, n_upper, v, redundant, held, constant):  # type: ignore[no-untyped-def]
    """List the columns that are constant in a box; returns their number. ``held`` is whether a column is listed."""
    count = 0
    for i in range(-1, n_upper):
        f, side = (j, v & 1) if i < 0 else (R[i], v >> (i + 1) & 1)
        for c in range(redundant.shape[2]):
            column = redundant[f, side, c]
            if column < 0:
                break
            if not held[column]:
                held[column] = True
                constant[box, count] = column
                count += 1
    for c in range(count):
        held[constant[box, c]] = False
    return count


@compiled
def sort_boxes(G, n_boxes, n_values, lowest, R, n_upper, options, buffers):  # type: ignore[no-untyped-def]
    """List the boxes with enough rows, those with most constant columns first; returns their number."""
    constant, held, numbers, starts, order = buffers[:5]
    min_rows, redundant = options[3], options[6]
    starts[:] = 0
    for box in range(n_boxes):
        numbers[box] = -1
        if G[box, G.shape[1] - 1] > min_rows - 0.5:
            j, v = lowest + box // n_values, box % n_values
            numbers[box] = constant_in_box(box, j, R, n_upper, v, redundant, held, constant)
            starts[numbers[box]] += 1
    count = 0
    for number in range(len(starts) - 1, -1, -1):
        count += starts[number]
        starts[number] = count - starts[number]
    for box in range(n_boxes):
        if numbers[box] >= 0:
            order[starts[numbers[box]]] = box
            starts[numbers[box]] += 1
    return count


@compiled
def leave_out(constant, box, count, held, columns, lane, size):  # type: ignore[no-untyped-def]
    """The columns of a box without ``count`` constant ones, whose places the last columns before y take."""
    for c in range(size - 1):
        columns[lane, c] = c
    columns[lane, size - 1 - count] = size - 1
    for c in range(count):
        held[constant[box, c]] = True
    last = size - 2
    for c in range(count):
        if constant[box, c] < size - 1 - count:
            while held[last]:
                last -= 1
            columns[lane, constant[box, c]] = last
            last -= 1
    for c in range(count):
        held[constant[box, c]] = False


@compiled
def write_costs(G, n_boxes, n_values, lowest, R, n_upper, options, buffers, out, first):  # type: ignore[no-untyped-def]
    """Write the costs of the boxes in the rows of G, by j starting at ``lowest``, then v."""
    constant, held, numbers, _, order, rows, columns, patterns, costs, T = buffers
    size, ridge, by_weight, _, end, share, _, pattern_error = options
    count = sort_boxes(G, n_boxes, n_values, lowest, R, n_upper, options, buffers)
    for begin in range(0, count, LANES):
        used = min(LANES, count - begin)
        left_out = numbers[order[begin + used - 1]]
        for lane in range(LANES):
            box = order[begin + min(lane, used - 1)]
            rows[lane], patterns[lane] = box, pattern_error * G[box, G.shape[1] - 2]
            leave_out(constant, box, left_out, held, columns, lane, size)
            for c in range(left_out, numbers[box]):
                G[box, constant[box, c] * (constant[box, c] + 3) // 2] += 1.0
        costs_of_rows(G, rows, patterns, columns, size - left_out, ridge, by_weight, end, share, T, costs)
        for lane in range(used):
            out[first + rows[lane]] = costs[lane]


@compiled
def costs_above(A, top, top_rank, offsets, R, n_upper, n_lower, options, binom, boxes, buffers, out, first):  # type: ignore[no-untyped-def]
    """Costs of the boxes of S = R + j for j below ``n_lower``, by j, then v, starting at ``first``.

    ``top`` holds A(S), starting at ``top_rank``; A(U) of smaller sets is in A. Boxes with too few rows are not written.
    """
    both, G, ranks = boxes
    width, length = both.shape
    subset_ranks(R, n_upper, 0, offsets, binom, ranks)
    for t in range(0, length, ENTRIES):
        fill_boxes(A, ranks, 0, A, ranks[width - 1], t, min(ENTRIES, length - t), both, 0, 1, width)
    subset_ranks(R, n_upper, 1, offsets, binom, ranks)
    n_values = 2 * width
    per_batch = len(G) // n_values
    for begin in range(0, n_lower, per_batch):
        count = min(per_batch, n_lower - begin)
        fill_sets(A, ranks, begin, count, top, top_rank, both, G)
        at = first + n_values * begin
        write_costs(G, count * n_values, n_values, begin, R, n_upper, options, buffers, out, at)


def costs_with_largest(
    data: tuple[Any, ...], A: FloatArray, offsets: IntArray, f: int, k: int, options: tuple[Any, ...], binom: IntArray
) -> FloatArray:
    """Costs of the boxes over the k-subsets with largest element f, by rank, then v; for k = 1 over all j < f.

    ``A`` holds A(U) of all smaller sets, and those of the k-subsets unless these are the largest. ``options``: order,
    ridges, whether these are times the weight, fewest rows, end of the interval and its share of the diagonal
    (:mod:`formulations.leaves.cholesky`), the columns that are constant for either value of m_f, ended by -1, and the
    error of a pattern.
    """
    length, size, width = A.shape[1], options[0], 2 ** (k - 1)
    n_boxes = max(1, BOXES // (2 * width)) * 2 * width
    boxes = np.empty((width, length)), np.empty((n_boxes, length)), np.empty(width, dtype=np.int64)
    buffers = (
        np.empty((n_boxes, size), dtype=np.int64), np.zeros(size, dtype=np.bool_), np.empty(n_boxes, dtype=np.int64),
        np.empty(size, dtype=np.int64), np.empty(n_boxes, dtype=np.int64), np.empty(LANES, dtype=np.int64),
        np.empty((LANES, size), dtype=np.int64), np.empty(LANES), np.empty(LANES), workspace(size),
    )  # fmt: skip
    largest, R = bool(offsets[k] == len(A)), np.arange(k)
    R[max(0, k - 2)] = f
    out = np.full(int(binom[f, k - 1] if k > 1 else f) << k, np.inf)
    sums, space = np.empty((f if largest else 0, length)), space_for_sums(data, length - 2)
    _write_with_largest(data, A, offsets, R, f, k, options, binom, largest, sums, space, boxes, buffers, out)
    return out


@compiled
def _write_with_largest(data, A, offsets, R, f, k, options, binom, largest, sums, space, boxes, buffers, out):  # type: ignore[no-untyped-def]
    """Write the costs for all R, the first of which is given; ``sums`` is space for those of the largest sets."""
    n_members = patterns_with(data[4], f if k > 1 else -1, space[0]) if largest else 0
    first_rank = offsets[k] + (binom[f, k] if k > 1 else 0)
    rank, more = 0, True
    while more:
        n_lower, top, top_rank = R[0], A, first_rank + rank
        if largest:
            top, top_rank = sums, 0
            sums[:n_lower] = 0.0
            add_sums(data, space, n_members, R, k - 1, n_lower, sums, 0)
        costs_above(A, top, top_rank, offsets, R, k - 1, n_lower, options, binom, boxes, buffers, out, rank << k)
        rank += n_lower
        more = next_subset(R, k - 2, f)
