"""Sums over the rows in which all of U is missing, for all sets U of at most D features, from one pass over rows.

Data        rows z = (1, x, y) with weights s and x_j = 0 if it is missing
Sums        second moments   Q(U) = sum s z z'     |U| <= D,       with the number of rows
            first moments    L(U) = sum s z        |U| = D + 1,    with the number of rows
            weights          W(U) = sum s          |U| = D + 2

For smaller sets, L(U) is the first column of Q(U), and W(U) the first entry. As m_j z summed over U is z summed over
U + j, these are the moments up to degree 2 of (1, x, m, y) over the rows of every U, |U| <= D.

*Algorithm.* A row with missing set m belongs to every U <= m: with 6 of 20 features missing, 57 sets of up to 4. The
features are divided into blocks of at most 10, and U into its part V in the last block that it meets and the part R
before; sets within the first block are those with V empty in the second one. For every R, the rows in which it is
missing are grouped by their missing features within the block. The moments of a group are products of the columns that
are not 0, and

    sum over groups g with V <= g of the moments of g

for all V at once are sums over supersets, one feature of the block after the other. So a row enters 13 products in
place of 57, if there are two blocks. Rows are stored by columns, and those of R + j are copied from those of R: a
product reads consecutive numbers.

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
from formulations.jit import compiled, inlined
from formulations.leaves.subsets import add_cell, binomials, blocks_of, count_sets, sizes_of, sum_supersets

# Rows that are added at once. Measured with 20 features: with 2^15, groups are small, and a row takes more than twice
# the time; with 2^18, a tenth more.
MOST_ROWS = 2**19
# Bytes that the columns of rows may take on all levels of the recursion over sets. MOST_ROWS rows of 20 features take
# 579 MB at depth 4.
MOST_BYTES = 6 * 10**8
# Rows of a product, near the root of MOST_ROWS: so no entry passes more additions than needed.
RUN = 256

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
        most = rows_at_once(X.shape[1], sums.depth)
        chunks = range(0, len(y), most)
        for begin in chunks:
            part = slice(begin, begin + most)
            additions = max(additions, sums.add([(X[part], y[part], s[part])], origin))
        return sums, additions + len(chunks)

    def add(self, blocks: Sequence[Rows], origin: FloatArray) -> float:
        """Add up to ``rows_at_once`` rows (x, y) - ``origin`` of positive weight; returns the number c of additions."""
        d, n, additions = self.n_features, sum(len(y) for _, y, _ in blocks), 0.0
        sets, offsets = (self.second, self.first, self.weights), set_offsets(d, self.depth + 2)
        Z = np.empty((d + 3, n))
        features = blocks_of(d)
        for low, high in features[-max(1, len(features) - 1) :]:
            rows, missing = np.empty((n, d + 2)), np.empty((-(-low // 64), n), dtype=np.uint64)
            groups = [groups_of(X, low, high) for X, _, _ in blocks]
            counts = np.sum([np.bincount(each, minlength=1 << (high - low)) for each in groups], axis=0)
            places = np.cumsum(counts) - counts
            for block, each in zip(blocks, groups, strict=True):
                sort_rows(*block, origin, each, places, low, rows, missing)
            transpose(rows, Z)
            del rows
            in_order = np.repeat(np.arange(len(counts), dtype=np.uint16), counts)
            least = int(low > features[min(1, len(features) - 1)][0])
            given = low, least, sizes_of(high - low), self.depth, offsets, binomials(d), sets
            largest = max(int(counts.max()), add_block(Z, missing, in_order, *given))
            additions = max(additions, float(min(RUN, largest) + largest // RUN + 1 + high - low))
        return additions

    def plus(self, other: "SetSums") -> "SetSums":
        """The sums over the rows of both."""
        parts = ("second", "first", "weights")
        return SetSums(self.n_features, self.depth, *(getattr(self, part) + getattr(other, part) for part in parts))


def rows_at_once(n_features: int, depth: int) -> int:
    """The most rows that are added at once: their columns on all levels take at most MOST_BYTES."""
    return max(1, min(MOST_ROWS, MOST_BYTES // (8 * (depth + 2) * (n_features + 3))))


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
        for word in range(missing.shape[0]):
            bits = np.uint64(0)
            for j in range(64 * word, min(low, 64 * word + 64)):
                bits |= np.uint64(np.isnan(X[row, j])) << np.uint64(j - 64 * word)
            missing[word, at] = bits


@compiled
def transpose(rows, Z):  # type: ignore[no-untyped-def]
    """Write rows as columns, followed by a column of zeros."""
    n, width = rows.shape
    for begin in range(0, n, 64):
        for column in range(width):
            for row in range(begin, min(begin + 64, n)):
                Z[column, row] = rows[row, column]
    Z[width, :n] = 0.0


@compiled
def rows_without(missing, n, j, chosen_rows):  # type: ignore[no-untyped-def]
    """List the rows in which feature j is missing; returns their number."""
    word, bit, count = j >> 6, np.uint64(j & 63), 0
    for row in range(n):
        chosen_rows[count] = row
        count += int(missing[word, row] >> bit & np.uint64(1))
    return count


@compiled
def take_rows(rows, n, source, target, width):  # type: ignore[no-untyped-def]
    """Copy the listed rows of some columns, the missing features before the block, and the groups."""
    Z, missing, groups = source
    own_Z, own_missing, own_groups = target
    for column in range(width):
        for r in range(n):
            own_Z[column, r] = Z[column, rows[r]]
    for word in range(len(missing)):
        for r in range(n):
            own_missing[word, r] = missing[word, rows[r]]
    for r in range(n):
        own_groups[r] = groups[rows[r]]
    own_Z[len(Z) - 1, :n] = 0.0


@compiled
def nonzero_columns(group, low, chosen, columns):  # type: ignore[no-untyped-def]
    """List the columns that are not 0 in a group, those of features that are neither chosen nor missing in it.

    If they are odd in number, the column of zeros follows.
    """
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
def add_products(Z, first, last, columns, count, total):  # type: ignore[no-untyped-def]
    """Add the products of the listed columns over rows to the lower triangle of ``total``, two by two columns."""
    for i in range(0, count, 2):
        a, b = columns[i], columns[i + 1]
        for j in range(0, i + 2, 2):
            c, d = columns[j], columns[j + 1]
            ac = ad = bc = bd = 0.0
            for r in range(np.uint64(first), np.uint64(last)):
                ac += Z[a, r] * Z[c, r]
                ad += Z[a, r] * Z[d, r]
                bc += Z[b, r] * Z[c, r]
                bd += Z[b, r] * Z[d, r]
            total[i, j] += ac
            total[i, j + 1] += ad
            total[i + 1, j] += bc
            total[i + 1, j + 1] += bd


@compiled
def second_moments(Z, first, last, columns, count, total, cells, at):  # type: ignore[no-untyped-def]
    """cells[at] = sum of z z' over rows, packed, and their number."""
    total[:] = 0.0
    for begin in range(first, last, RUN):
        add_products(Z, begin, min(begin + RUN, last), columns, count, total)
    cells[at] = 0.0
    for i in range(count):
        row = columns[i] * (columns[i] + 1) // 2
        for j in range(i + 1):
            cells[at, row + columns[j]] = total[i, j]
    cells[at, cells.shape[1] - 1] = last - first


@compiled
def first_moments(Z, first, last, width, cells, at):  # type: ignore[no-untyped-def]
    """cells[at] = sum of z_0 z over rows, for some columns, and their number."""
    cells[at] = 0.0
    for column in range(width):
        for begin in range(first, last, RUN):
            product = 0.0
            for r in range(np.uint64(begin), np.uint64(min(begin + RUN, last))):
                product += Z[0, r] * Z[column, r]
            cells[at, column] += product
    cells[at, cells.shape[1] - 1] = last - first


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
def sum_groups(data, n, low, chosen, of_second, width, space, cells, is_known):  # type: ignore[no-untyped-def]
    """Write the moments of each group of rows, which are sorted by group."""
    Z, _, groups = data
    columns, total = space
    is_known[:] = False
    begin = 0
    while begin < n:
        group, end = groups[begin], begin + 1
        while end < n and groups[end] == group:
            end += 1
        if of_second:
            count = nonzero_columns(group, low, chosen, columns)
            second_moments(Z, begin, end, columns, count, total, cells, group)
        else:
            first_moments(Z, begin, end, width, cells, group)
        is_known[group] = True
        begin = end


@compiled
def add_set(data, n, chosen, rank, low, least, depth, offsets, binom, sizes, sets, space):  # type: ignore[no-untyped-def]
    """Add rows to the sums of R + V, for the set R of ``chosen`` features and all V in the block from ``least`` on.

    Returns the number of rows of a product that is not divided into groups.
    """
    second, first, weights = sets
    products, vectors, is_known, (columns, total) = space
    size, width, at_once = len(chosen), vectors.shape[1] - 1, 0
    if size < depth or low == 0:
        sum_groups(data, n, low, chosen, True, width, (columns, total), products, is_known)
        for v in range(len(sizes)):
            for i in range(width):
                vectors[v, i] = products[v, i * (i + 1) // 2]
            vectors[v, width] = products[v, products.shape[1] - 1]
        known = sum_supersets(products, is_known, sizes, depth - size)
        for v in range(least, len(sizes)):
            if known[v] and size + sizes[v] <= depth:
                at = offsets[size + sizes[v]] + number_of(v, low, size, rank, binom)
                add_cell(products, v, second, at, 0, second.shape[1])
    else:
        if size == depth and least == 0:  # V is empty
            count, at_once = nonzero_columns(0, low, chosen, columns), n
            second_moments(data[0], 0, n, columns, count, total, products, 0)
            add_cell(products, 0, second, offsets[size] + rank, 0, second.shape[1])
        sum_groups(
            data, n, low, chosen, False, columns_of(size, least, depth, width), (columns, total), vectors, is_known
        )
    known = sum_supersets(vectors, is_known, sizes, depth + 2 - size)
    for v in range(least, len(sizes)):
        if known[v] and size + sizes[v] == depth + 1:
            add_cell(vectors, v, first, number_of(v, low, size, rank, binom), 0, first.shape[1])
        elif known[v] and size + sizes[v] == depth + 2:
            weights[number_of(v, low, size, rank, binom)] += vectors[v, 0]
    return at_once


@inlined
def columns_of(size, least, depth, width):  # type: ignore[no-untyped-def]
    """The columns that a set R of this size needs: one if all its sets have D + 2 features, whose weights suffice."""
    return width if size + least <= depth + 1 else 1


@compiled
def add_block(Z, missing, groups, low, least, sizes, depth, offsets, binom, sets):  # type: ignore[no-untyped-def]
    """Add rows, sorted by group, to all sets R + V with R before a block and V in it; ``sizes`` are those of V.

    V is not empty if ``least`` is 1. Returns the most rows of a product that is not divided into groups.
    """
    (width, n), n_groups = Z.shape, len(sizes)
    width -= 1
    levels = min(depth + 2 - least, low)
    work = np.empty(width + 1, dtype=np.int64), np.empty((width + 1, width + 1))
    cells = np.empty((n_groups, sets[0].shape[1])), np.empty((n_groups, width + 1))
    space = (*cells, np.zeros(n_groups, dtype=np.bool_), work)
    given = low, least, depth, offsets, binom, sizes, sets, space
    at_once = add_set((Z, missing, groups), n, np.empty(0, dtype=np.int64), 0, *given)
    if levels == 0:
        return at_once
    # on each level, the rows in which the features chosen so far are missing
    every_Z = np.empty((levels, width + 1, n))
    every_missing = np.empty((levels, len(missing), n), dtype=np.uint64)
    every_group = np.empty((levels, n), dtype=np.uint16)
    counts, rows = np.full(levels + 1, n), np.empty(n + 1, dtype=np.int32)
    chosen, ranks, level = np.full(levels, -1), np.zeros(levels + 1, dtype=np.int64), 0
    while level >= 0:
        chosen[level] += 1
        j = chosen[level]
        if j == low:
            level -= 1
            continue
        above = level - 1
        source = (every_Z[above], every_missing[above], every_group[above]) if level else (Z, missing, groups)
        target = every_Z[level], every_missing[level], every_group[level]
        n_rows = rows_without(source[1], counts[level], j, rows)
        if n_rows == 0:
            continue
        take_rows(rows, n_rows, source, target, columns_of(level + 1, least, depth, width))
        rank = ranks[level] + binom[j, level + 1]
        at_once = max(at_once, add_set(target, n_rows, chosen[: level + 1], rank, *given))
        if level + 1 < levels:
            level += 1
            ranks[level], counts[level], chosen[level] = rank, n_rows, j
    return at_once
