"""Sums over the rows in which all of U is missing, for all sets U of at most D features, from one pass over rows.

Data        rows z = (1, x, y) with weights s and x_j = 0 if it is missing
Sums        second moments   Q(U) = sum s z z'     |U| <= D,       with the number of rows
            first moments    L(U) = sum s z        |U| = D + 1,    with the number of rows
            weights          W(U) = sum s          |U| = D + 2

For smaller sets, L(U) is the first column of Q(U), and W(U) the first entry. As m_j z summed over U is z summed over
U + j, these are the moments up to degree 2 of (1, x, m, y) over the rows of every U, |U| <= D.

*Algorithm.* A row with missing set m belongs to every U <= m: with 6 of 20 features missing, 57 sets of up to 4. The
features are divided into blocks of at most 10, and U into its part V in the last block that it meets and the part R
before; sets within the first block are those with V empty in the second one. Rows are sorted by their missing features
within the block, and processed in chunks that have its upper half H in common and stay in the cache. For every R, the
rows of a chunk in which it is missing are grouped by their missing features within the lower half. The moments of a
group are products of the columns that are not 0, and

    sum over groups g with V <= g of the moments of g

for all V at once are sums over supersets, one feature after the other. They are added to R + V + H' for all H' <= H. So
a row enters 13 products in place of 57, if there are two blocks.

*Error.* Every sum is a tree of additions. With c the largest number of additions that an entry passes, the error of an
entry of Q(U) is at most u (c + 8) sqrt(Q(U)_ii Q(U)_jj), u = 2^-53: additions, the root of the weight, the product. The
bound holds for merged sums with c the larger one plus 1.

Sets are numbered by size, then in colexicographic order (:mod:`formulations.leaves.subsets`). Q is packed by rows
of its lower triangle; the number of rows follows its last entry.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb

import numpy as np

from formulations.arrays import FloatArray, IntArray
from formulations.jit import compiled
from formulations.leaves.subsets import add_cell, binomials, blocks_of, count_sets, sizes_of, sum_supersets

# Bytes of the sorted rows that are added at once, 2^19 rows of 20 features.
MOST_BYTES = 2**19 * 8 * 22
# Most rows of a chunk: 1.4 MB of 20 features. With 2^12 a row takes a quarter more time, with 2^15 a tenth.
CHUNK = 2**13
# Most rows of a product, near the root of the rows of a chunk: so no entry passes more additions than needed. Products
# are over a multiple of a quarter: compiled loops add four vectors of up to 8 rows at once.
RUN = 128

# Rows as (X, y, s), NaN if missing.
Rows = tuple[FloatArray, FloatArray, FloatArray]


@dataclass
class SetSums:
    """Sums over sets of missing features, see the module.

    Attributes
    ----------
    second : array of shape (sets of at most D, (d + 2) (d + 3) / 2 + 1)
    first : array of shape (sets of D + 1, d + 3)
    weights : array of shape (sets of D + 2,)
    """

    n_features: int
    depth: int
    second: FloatArray
    first: FloatArray
    weights: FloatArray

    @classmethod
    def zero(cls, n_features: int, depth: int) -> "SetSums":
        """Sums over no rows."""
        size, depth = n_features + 2, min(depth, n_features)
        return cls(
            n_features,
            depth,
            np.zeros((count_sets(n_features, depth), size * (size + 1) // 2 + 1)),
            np.zeros((comb(n_features, depth + 1), size + 1)),
            np.zeros(comb(n_features, depth + 2)),
        )

    @classmethod
    def of(cls, X: FloatArray, y: FloatArray, s: FloatArray, origin: FloatArray, depth: int) -> tuple["SetSums", float]:
        """The sums over rows in memory, and the number c of their additions."""
        sums, additions = cls.zero(X.shape[1], depth), 0.0
        most = rows_at_once(X.shape[1])
        chunks = range(0, len(y), most)
        for begin in chunks:
            part = slice(begin, begin + most)
            additions = max(additions, sums.add([(X[part], y[part], s[part])], origin))
        return sums, additions + len(chunks)

    def add(self, blocks: Sequence[Rows], origin: FloatArray) -> float:
        """Add up to ``rows_at_once`` rows (x, y) - ``origin`` of positive weight; returns the number c of additions."""
        d, n, additions = self.n_features, sum(len(y) for _, y, _ in blocks), 0.0
        sets, offsets = (self.second, self.first, self.weights), set_offsets(d, self.depth + 2)
        features = blocks_of(d)
        for low, high in features[-max(1, len(features) - 1) :]:
            rows, missing = np.empty((n, d + 2)), np.empty((n, -(-low // 64)), dtype=np.uint64)
            groups = [groups_of(X, low, high) for X, _, _ in blocks]
            counts = np.sum([np.bincount(each, minlength=1 << (high - low)) for each in groups], axis=0)
            places = np.cumsum(counts) - counts
            for block, each in zip(blocks, groups, strict=True):
                sort_rows(*block, origin, each, places, low, rows, missing)
            in_order = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
            least = int(low > features[min(1, len(features) - 1)][0])
            tables = offsets, binomials(d), sizes_of(high - low)
            n_lower = (high - low + 1) // 2
            chunks = add_block(rows, missing, in_order, low, n_lower, least, self.depth, tables, sets)
            additions = max(additions, float(RUN + CHUNK // RUN + 1 + n_lower + chunks))
        return additions

    def plus(self, other: "SetSums") -> "SetSums":
        """The sums over the rows of both."""
        parts = ("second", "first", "weights")
        return SetSums(self.n_features, self.depth, *(getattr(self, part) + getattr(other, part) for part in parts))


def rows_at_once(n_features: int) -> int:
    """The most rows that are added at once."""
    return max(1, MOST_BYTES // (8 * (n_features + 2)))


def set_offsets(n_features: int, depth: int) -> IntArray:
    """Number of smaller sets, for each size up to ``depth`` + 1."""
    return np.array([count_sets(n_features, k - 1) for k in range(depth + 2)], dtype=np.int64)


@compiled
def groups_of(X, low, high):  # type: ignore[no-untyped-def]
    """The missing features of each row from low to high, as bits."""
    groups = np.empty(len(X), dtype=np.uint16)
    for row in range(len(X)):
        group = 0
        for j in range(low, high):
            group |= np.isnan(X[row, j]) << (j - low)
        groups[row] = group
    return groups


@compiled
def sort_rows(X, y, s, origin, groups, places, low, rows, missing):  # type: ignore[no-untyped-def]
    """Write the rows (1, x, y) minus the origin times the roots of their weights, 0 if missing, sorted by group.

    ``places`` are those of the next row of each group. ``missing`` has the features before ``low`` that are missing, as
    bits, 64 in a word.
    """
    d = X.shape[1]
    for row in range(len(X)):
        at, root = places[groups[row]], np.sqrt(s[row])
        places[groups[row]] += 1
        rows[at, 0], rows[at, d + 1] = root, root * (y[row] - origin[d])
        for j in range(d):
            x = X[row, j]
            rows[at, j + 1] = 0.0 if np.isnan(x) else root * (x - origin[j])
        for word in range(missing.shape[1]):
            bits = np.uint64(0)
            for j in range(64 * word, min(low, 64 * word + 64)):
                bits |= np.uint64(np.isnan(X[row, j])) << np.uint64(j - 64 * word)
            missing[at, word] = bits


@compiled
def rows_without(missing, listed, n, j, chosen_rows):  # type: ignore[no-untyped-def]
    """List those of n listed rows in which feature j is missing; returns their number."""
    word, bit, count = j >> 6, np.uint64(j & 63), 0
    for i in range(n):
        chosen_rows[count] = listed[i]
        count += int(missing[listed[i], word] >> bit & np.uint64(1))
    return count


@compiled
def nonzero_columns(group, low, chosen, columns):  # type: ignore[no-untyped-def]
    """List the columns that are not 0 in a group, those of features that are neither chosen nor missing in it."""
    width, count = len(columns) - 1, 0
    for column in range(width):
        j, is_missing = column - 1, False
        if j < low:
            for feature in chosen:
                is_missing |= feature == j
        elif j < width - 2:
            is_missing = group >> (j - low) & 1 == 1
        if not is_missing:
            columns[count] = column
            count += 1
    columns[count] = width
    return count


@compiled
def take_columns(rows, listed, first, last, columns, count, Z):  # type: ignore[no-untyped-def]
    """Copy columns of listed rows, and rows of zeros up to a multiple of RUN / 4; returns the number of rows."""
    n = last - first
    step = RUN // 4
    size = (n + step - 1) // step * step
    for r in range(n):
        row = listed[first + r]
        for c in range(count):
            Z[c, r] = rows[row, columns[c]]
    for c in range(count):
        for r in range(n, size):
            Z[c, r] = 0.0
    if count % 2:
        for r in range(size):
            Z[count, r] = 0.0
    return size


@compiled
def products_of(Z, n, count, total):  # type: ignore[no-untyped-def]
    """Write the products of columns over rows to the lower triangle of ``total``, two by two columns."""
    for i in range(0, count, 2):
        for j in range(0, i + 2, 2):
            ac = ad = bc = bd = 0.0
            for r in range(np.uint64(n)):
                ac += Z[i, r] * Z[j, r]
                ad += Z[i, r] * Z[j + 1, r]
                bc += Z[i + 1, r] * Z[j, r]
                bd += Z[i + 1, r] * Z[j + 1, r]
            total[i, j] = ac
            total[i, j + 1] = ad
            total[i + 1, j] = bc
            total[i + 1, j + 1] = bd


@compiled
def add_second(rows, listed, first, last, columns, count, work, cells, at):  # type: ignore[no-untyped-def]
    """cells[at] += sum of z z' over listed rows, packed."""
    Z, total = work
    products_of(Z, take_columns(rows, listed, first, last, columns, count, Z), count, total)
    for i in range(count):
        row = columns[i] * (columns[i] + 1) // 2
        for j in range(i + 1):
            cells[at, row + columns[j]] += total[i, j]


@compiled
def add_first(rows, listed, first, last, width, part, cells, at):  # type: ignore[no-untyped-def]
    """cells[at] += sum of z_0 z over listed rows, for some columns; ``part`` is workspace."""
    for column in range(width):
        part[column] = 0.0
    for r in range(first, last):
        row = listed[r]
        for column in range(width):
            part[column] += rows[row, 0] * rows[row, column]
    for column in range(width):
        cells[at, column] += part[column]


@compiled
def sum_groups(data, listed, n, chosen, mask, width, work, cells, is_known):  # type: ignore[no-untyped-def]
    """Write the moments of each group of listed rows, which are sorted: first ones of some columns, or second ones.

    Groups are the bits of ``mask`` of the features missing in the block; second moments are written for a width of 0.
    """
    rows, groups, low, above = data
    columns, Z, total = work
    is_known[:] = False
    end = 0
    while end < n:
        begin, group = end, groups[listed[end]] & mask
        most = min(n, begin + RUN)
        while end < most and groups[listed[end]] & mask == group:
            end += 1
        if not is_known[group]:
            cells[group] = 0.0
            is_known[group] = True
        if width == 0:
            count = nonzero_columns(group | above, low, chosen, columns)
            add_second(rows, listed, begin, end, columns, count, (Z, total), cells, group)
        else:
            add_first(rows, listed, begin, end, width, total[0], cells, group)
        cells[group, cells.shape[1] - 1] += end - begin


@compiled
def number_of(v, low, size, rank, binom):  # type: ignore[no-untyped-def]
    """The rank of R + V for a set R of this size and rank, and the bits v of a later block."""
    number, held, j = rank, size, low
    while v:
        if v & 1:
            held += 1
            number += binom[j, held]
        v >>= 1
        j += 1
    return number


@compiled
def add_set(data, listed, n, chosen, rank, least, depth, tables, sets, space):  # type: ignore[no-untyped-def]
    """Add listed rows to the sums of R + V, for the set R of ``chosen`` features and all V in the block from ``least``.

    V is divided into v in the lower half, and ``more`` in the upper half, within what the rows have in common.
    """
    low, above = data[2:]
    offsets, binom, sizes = tables
    second, first, weights = sets
    products, vectors, is_known, work = space
    size, width, mask, none = len(chosen), vectors.shape[1] - 1, len(vectors) - 1, np.int64(0)
    if size < depth:
        sum_groups(data, listed, n, chosen, mask, none, work, products, is_known)
        for v in range(len(vectors)):
            for i in range(width):
                vectors[v, i] = products[v, i * (i + 1) // 2]
            vectors[v, width] = products[v, products.shape[1] - 1]
        sum_supersets(products, is_known, sizes, depth - size)
    else:
        if size == depth and least == 0:  # V is empty
            sum_groups(data, listed, n, chosen, none, none, work, products, is_known)
        needed = width if size + least <= depth + 1 else 1  # for sets of D + 2 features, weights suffice
        sum_groups(data, listed, n, chosen, mask, needed, work, vectors, is_known)
    known = sum_supersets(vectors, is_known, sizes, depth + 2 - size)
    for v in range(len(vectors)):
        if not known[v] or size + sizes[v] > depth + 2:
            continue
        more = above
        while more >= 0:
            count = size + sizes[v | more]
            if count <= depth + 2 and (v | more or least == 0):
                at = number_of(v | more, low, size, rank, binom)
                if count <= depth:
                    add_cell(products, v, second, offsets[count] + at, none, second.shape[1])
                elif count == depth + 1:
                    add_cell(vectors, v, first, at, none, first.shape[1])
                else:
                    weights[at] += vectors[v, 0]
            more = (more - 1) & above if more else -1


@compiled
def add_chunk(data, missing, lists, counts, chosen, ranks, least, depth, tables, sets, space):  # type: ignore[no-untyped-def]
    """Add the rows lists[0] to all sets R + V; on each level, there are the rows without the features chosen so far."""
    low, binom, levels = data[2], tables[1], len(lists) - 1
    add_set(data, lists[0], counts[0], chosen[:0], ranks[0], least, depth, tables, sets, space)
    chosen[:] = -1
    level = 0 if levels else -1
    while level >= 0:
        chosen[level] += 1
        j = chosen[level]
        if j == low:
            level -= 1
            continue
        n = rows_without(missing, lists[level], counts[level], j, lists[level + 1])
        if n == 0:
            continue
        rank = ranks[level] + binom[j, level + 1]
        add_set(data, lists[level + 1], n, chosen[: level + 1], rank, least, depth, tables, sets, space)
        if level + 1 < levels:
            level += 1
            ranks[level], counts[level], chosen[level] = rank, n, j


@compiled
def add_block(rows, missing, groups, low, n_lower, least, depth, tables, sets):  # type: ignore[no-untyped-def]
    """Add rows, sorted by group, to all sets R + V with R before a block and V in it.

    The lower half of the block has ``n_lower`` features, and V at least ``least``. Returns the number of chunks.
    """
    n, width = rows.shape
    levels, n_cells = min(depth + 2 - least, low), 1 << n_lower
    work = np.empty(width + 1, dtype=np.int64), np.empty((width + 1, RUN)), np.empty((width + 1, width + 1))
    cells = np.empty((n_cells, sets[0].shape[1])), np.empty((n_cells, width + 1))
    space = (*cells, np.zeros(n_cells, dtype=np.bool_), work)
    lists, counts = np.empty((levels + 1, CHUNK + 1), dtype=np.int32), np.zeros(levels + 1, dtype=np.int64)
    chosen, ranks = np.full(levels, -1), np.zeros(levels + 1, dtype=np.int64)
    n_chunks, end = 0, 0
    while end < n:
        begin, above = end, groups[end] >> n_lower << n_lower
        while end < min(n, begin + CHUNK) and groups[end] >> n_lower << n_lower == above:
            lists[0, end - begin] = end
            end += 1
        counts[0] = end - begin
        data = rows, groups, low, above
        add_chunk(data, missing, lists, counts, chosen, ranks, least, depth, tables, sets, space)
        n_chunks += 1
    return n_chunks
