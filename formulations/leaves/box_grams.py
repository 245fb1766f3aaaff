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

*Sums over sets.* The sets U are divided into a part in a block of features and a part R above it. For every R, the
patterns with all of R missing are grouped by their missing features within the block, and the sums over supersets of
:mod:`formulations.leaves.subsets` are the A(U) of all U with this R. The last two entries of a sum count its patterns
and its rows.
"""

from collections.abc import Iterator
from itertools import combinations
from math import comb
from typing import Any

import numpy as np

from formulations.arrays import BoolArray, FloatArray, IntArray
from formulations.jit import compiled, inlined
from formulations.leaves.cholesky import costs_of_rows, rounded_gram, workspace
from formulations.leaves.subsets import PIECE, add_cell, binomials, blocks_of, sizes_of, sum_supersets
from formulations.leaves.tiles import LANES

# Boxes that are sorted together, in steps of LANES.
BOXES = 4 * LANES


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
                row, other = first + step * u, first + step * (u + bit)
                for i in range(np.uint64(t), np.uint64(t + n)):
                    G[row, i] -= G[other, i]
        bit *= 2


@compiled
def fill_sets(A, ranks, begin, count, top, top_rank, both, width, G):  # type: ignore[no-untyped-def]
    """The boxes of S = R + j for ``count`` of j starting at ``begin``, by j, then v; ``both`` holds the boxes of R."""
    length = both.shape[1]
    for j in range(count):
        first = 2 * width * j
        for t in range(0, length, PIECE):
            n = min(PIECE, length - t)
            fill_boxes(A, ranks, begin + j, top, top_rank, t, n, G, first + 1, np.int64(2), width)
            for u in range(width):
                observed, missing = first + 2 * u, first + 2 * u + 1
                for i in range(np.uint64(t), np.uint64(t + n)):
                    G[observed, i] = both[u, i] - G[missing, i]


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
    for number in range(len(starts)):
        starts[number] = 0
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
def costs_above(A, cells, known, top, v, at, R, lower, offsets, options, binom, boxes, buffers, out, first):  # type: ignore[no-untyped-def]
    """Costs of the boxes of S = R + j for j from lower[0] to lower[1], by j, then v; those of j = 0 would be at first.

    A(S) is in the cells of the bits v and that of j, and copied to A if other sets need it; without cells it is in A.
    That of j = 0 would be in row ``at`` of A. Boxes with too few rows are not written.
    """
    both, G, ranks = boxes
    low, high = lower
    n_upper, length, none = len(R), both.shape[1], np.int64(0)
    width = 1 << n_upper
    sums, top_rank = A, at
    if len(cells):
        sums, top_rank = top, -low
        for j in range(low, high):
            cell = v | 1 << (j - low)
            for t in range(length):
                top[j - low, t] = cells[cell, t] if known[cell] else 0.0
            if at + j < len(A):
                for t in range(length):
                    A[at + j, t] = top[j - low, t]
    subset_ranks(R, n_upper, none, offsets, binom, ranks)
    for t in range(0, length, PIECE):
        n = min(PIECE, length - t)
        fill_boxes(A, ranks, none, A, ranks[width - 1], t, n, both, none, none + 1, width)
    subset_ranks(R, n_upper, none + 1, offsets, binom, ranks)
    n_values = 2 * width
    per_batch = len(G) // n_values
    for begin in range(low, high, per_batch):
        count = min(per_batch, high - begin)
        fill_sets(A, ranks, begin, count, sums, top_rank, both, width, G)
        write_costs(G, count * n_values, n_values, begin, R, n_upper, options, buffers, out, first + n_values * begin)


@compiled
def sum_groups(data, members, groups, one, cells, is_known):  # type: ignore[no-untyped-def]
    """Add the matrices of the listed patterns, and their numbers of patterns and rows, to the cells of their groups.

    If matrices are not held, ``one`` is workspace for one of them.
    """
    Z, start, grams, counts, _ = data
    length, none = cells.shape[1] - 2, np.int64(0)
    is_known[:] = False
    for p in members:
        group = groups[p]
        if not is_known[group]:
            cells[group] = 0.0
            is_known[group] = True
        if len(grams):
            add_cell(grams, p, cells, group, none, length)
        else:
            rounded_gram(one[0], one[1], Z, start[p], start[p + 1])
            add_cell(one, none, cells, group, none, length)
        cells[group, length] += 1.0
        cells[group, length + 1] += counts[p]


def write_block(
    A: FloatArray,
    cells: FloatArray,
    known: BoolArray,
    above: tuple[int, ...],
    block: tuple[int, int],
    depth: int,
    offsets: IntArray,
    first: IntArray,
    given: tuple[Any, ...],
) -> None:
    """Write the costs of the boxes of R + V, for R = ``above`` and all sets V != 0 in the block of features below it.

    ``cells`` holds the sums of R + V by the bits of V, and they are written to A if other sets need them; without
    cells, all sums are in A. The costs of the boxes with k literals begin at first[k]. The other arguments of
    :func:`costs_above` are ``given``.
    """
    binom, (low, high) = given[1], block
    top = np.empty((high - low, A.shape[1]))
    for k in range(min(depth - len(above), high - low)):
        size = 1 + k + len(above)
        sets = np.array(list(combinations(range(low, high), k)), dtype=np.int64).reshape(comb(high - low, k), k)
        members = np.hstack([sets, np.tile(np.array(above, dtype=np.int64), (len(sets), 1))])
        ranks = binom[members, np.arange(2, size + 1)].sum(axis=1).tolist()
        bits = (1 << (sets - low)).sum(axis=1).tolist()
        for R, rank, v in zip(members, ranks, bits, strict=True):
            lower = low, int(R[0]) if k else high
            at, begin = int(offsets[size]) + rank, int(first[size]) + (rank << size)
            costs_above(A, cells, known, top, v, at, R, lower, offsets, *given, begin)


def write_box_costs(
    data: tuple[Any, ...], A: FloatArray, depth: int, options: tuple[Any, ...], first: IntArray, out: FloatArray
) -> Iterator[int]:
    """Write the costs of all boxes with k = 1 to ``depth`` literals, from first[k]; yields how many are done.

    ``data``: rows, starts of patterns, their matrices, numbers of rows and missing features. ``A`` begins with the sum
    of all patterns; it holds all sums of at most ``depth`` features, or has space for those of fewer. ``options``:
    order, ridges, whether these are times the weight, fewest rows, end of the interval and its share of the diagonal
    (:mod:`formulations.leaves.cholesky`), the columns that are constant for either value of m_f, ended by -1, and the
    error of a pattern.
    """
    patterns, (length, size) = data[4], (A.shape[1], options[0])
    n_features = patterns.shape[1]
    offsets = np.append(0, np.cumsum([comb(n_features, k) for k in range(depth + 1)]))
    is_complete = len(A) == offsets[-1]
    n_boxes, binom = max(BOXES, 2**depth), binomials(n_features)
    half = 2 ** max(0, depth - 1)
    boxes = np.empty((half, length)), np.empty((n_boxes, length)), np.empty(half, dtype=np.int64)
    buffers = (
        np.empty((n_boxes, size), dtype=np.int64), np.zeros(size, dtype=np.bool_), np.empty(n_boxes, dtype=np.int64),
        np.empty(size, dtype=np.int64), np.empty(n_boxes, dtype=np.int64), np.empty(LANES, dtype=np.int64),
        np.empty((LANES, size), dtype=np.int64), np.empty(LANES), np.empty(LANES), workspace(size),
    )  # fmt: skip
    done, one = 1, np.empty((0 if len(data[2]) else 2, length - 2))
    for low, high in reversed(blocks_of(n_features)):
        sizes = sizes_of(high - low)
        cells, known = np.empty((0 if is_complete else len(sizes), length)), np.zeros(len(sizes), dtype=np.bool_)
        groups = patterns[:, low:high] @ (1 << np.arange(high - low))
        order = np.argsort(groups, kind="stable")
        for k in range(depth):
            for above in combinations(range(high, n_features), k):
                if not is_complete:
                    members = order[patterns[:, list(above)].all(axis=1)[order]]
                    sum_groups(data, members, groups, one, cells, known)
                    known = sum_supersets(cells, known, sizes, depth - k)
                given = options, binom, boxes, buffers, out
                write_block(A, cells, known, above, (low, high), depth, offsets, first, given)
                done += sum(comb(high - low, i) << (k + i) for i in range(1, depth - k + 1))
                yield done
