"""Sums over the rows in which all of U is missing, for all sets U of at most D features, from one pass over rows.

Data        rows z = (1, x, y) with weights s and x_j = 0 if it is missing
Sums        second moments   Q(U) = sum s z z'     |U| <= D,       with the number of rows
            first moments    L(U) = sum s z        |U| = D + 1,    with the number of rows
            weights          W(U) = sum s          |U| = D + 2

For smaller sets, L(U) is the first column of Q(U), and W(U) the first entry. As m_j z summed over U is z summed over
U + j, these are the moments up to degree 2 of (1, x, m, y) over the rows of every U, |U| <= D.

*Algorithm.* A row with missing set m belongs to every U <= m: with 6 of 20 features missing, 57 sets of up to 4. The
sets are visited depth first, with the lists of their rows, whose moments are products of blocks of rows.

*Error.* Every sum is a tree of additions. With c the largest number of additions that an entry passes, the error of an
entry of Q(U) is at most u (c + 8) sqrt(Q(U)_ii Q(U)_jj), u = 2^-53: additions, the root of the weight, the product. The
bound holds for merged sums with c the larger one plus 1.

Sets are numbered by size, then in colexicographic order (:mod:`formulations.leaves.box_grams`). Q is packed by rows
of its lower triangle; the number of rows follows its last entry.
"""

from dataclasses import dataclass
from math import comb

import numpy as np

from formulations.arrays import FloatArray, IntArray
from formulations.jit import compiled
from formulations.leaves.box_grams import binomials

# Rows that are added at once: few enough for a cache, many enough for products of blocks in small sets. With 2^13 to
# 2^16 rows at once, times differ by 15 %.
MOST_ROWS = 2**14
# Rows of a product of blocks, near the root of MOST_ROWS: so no entry passes more additions than needed.
RUN = 128


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

    def add(self, X: FloatArray, y: FloatArray, s: FloatArray) -> float:
        """Add rows, NaN if missing, with positive weights; returns the number c of additions of these rows."""
        sets, offsets = (self.second, self.first, self.weights), set_offsets(self.n_features, self.depth + 2)
        chunks = range(0, len(y), MOST_ROWS)
        for begin in chunks:
            part = slice(begin, begin + MOST_ROWS)
            M, root = np.isnan(X[part]), np.sqrt(s[part])
            Z = np.column_stack([root, np.where(M, 0.0, X[part]) * root[:, None], y[part] * root])
            start, missing = np.append(0, np.cumsum(M.sum(axis=1))), np.nonzero(M)[1].astype(np.int32)
            add_rows(Z, missing, start, self.depth, offsets, binomials(self.n_features), sets)
        return float(RUN + min(len(y), MOST_ROWS) // RUN + 1 + len(chunks))

    def plus(self, other: "SetSums") -> "SetSums":
        """The sums over the rows of both."""
        parts = ("second", "first", "weights")
        return SetSums(self.n_features, self.depth, *(getattr(self, part) + getattr(other, part) for part in parts))


def count_sets(n_features: int, depth: int) -> int:
    """Number of sets of at most ``depth`` features."""
    return sum(comb(n_features, k) for k in range(depth + 1))


def set_offsets(n_features: int, depth: int) -> IntArray:
    """Number of smaller sets, for each size up to ``depth`` + 1."""
    return np.array([count_sets(n_features, k - 1) for k in range(depth + 2)], dtype=np.int64)


@compiled
def second_moments(Z, rows, n_rows, block, product, total):  # type: ignore[no-untyped-def]
    """total = sum of z_r z_r' over the listed rows; ``block`` and ``product`` are workspace."""
    width = Z.shape[1]
    total[:] = 0.0
    for first in range(0, n_rows, RUN):
        n = min(RUN, n_rows - first)
        for r in range(n):
            for j in range(width):
                block[r, j] = Z[rows[first + r], j]
        np.dot(block[:n].T, block[:n], product)
        for i in range(width):
            for j in range(width):
                total[i, j] += product[i, j]


@compiled
def first_moments(Z, rows, n_rows, width, total):  # type: ignore[no-untyped-def]
    """total[j] = sum of z_r0 z_rj over the listed rows, for j < width; the second row of ``total`` is workspace."""
    for j in range(width):
        total[0, j] = 0.0
    for first in range(0, n_rows, RUN):
        for j in range(width):
            total[1, j] = 0.0
        for r in range(first, min(first + RUN, n_rows)):
            row = rows[r]
            for j in range(width):
                total[1, j] += Z[row, 0] * Z[row, j]
        for j in range(width):
            total[0, j] += total[1, j]


@compiled
def add_set(Z, rows, n_rows, size, rank, depth, offsets, sets, work):  # type: ignore[no-untyped-def]
    """Add the rows of a set of ``size`` features to its sums."""
    second, first, weights = sets
    block, product, total = work
    width = Z.shape[1]
    if size <= depth:
        second_moments(Z, rows, n_rows, block, product, total)
        at, entry = offsets[size] + rank, 0
        for i in range(width):
            for j in range(i + 1):
                second[at, entry] += total[i, j]
                entry += 1
        second[at, entry] += n_rows
    elif size == depth + 1:
        first_moments(Z, rows, n_rows, width, total)
        for j in range(width):
            first[rank, j] += total[0, j]
        first[rank, width] += n_rows
    else:
        first_moments(Z, rows, n_rows, 1, total)
        weights[rank] += total[0, 0]


@compiled
def divide(rows, n_rows, missing, start, above, lists, counts):  # type: ignore[no-untyped-def]
    """For each feature j > ``above`` the rows in which it is missing, and their number."""
    counts[:] = 0
    for r in range(n_rows):
        row = rows[r]
        at, first = start[row + 1] - 1, start[row]
        while at >= first and missing[at] > above:
            j = missing[at]
            lists[j, counts[j]] = row
            counts[j] += 1
            at -= 1


@compiled
def add_rows(Z, missing, start, depth, offsets, binom, sets):  # type: ignore[no-untyped-def]
    """Add rows to all their sets; ``missing`` lists their missing features, from start[row] to start[row + 1]."""
    n, width = Z.shape
    d = width - 2
    levels = min(depth + 2, d)
    work = np.empty((RUN, width)), np.empty((width, width)), np.empty((width, width))
    everything = np.arange(n).astype(np.int32)
    add_set(Z, everything, n, 0, 0, depth, offsets, sets, work)
    # on each level, the rows of every child of a set
    lists, counts = np.empty((levels, d, n), dtype=np.int32), np.zeros((levels, d), dtype=np.int64)
    chosen, ranks, level = np.full(levels, -1), np.zeros(levels, dtype=np.int64), 0
    divide(everything, n, missing, start, -1, lists[0], counts[0])
    while level >= 0:
        chosen[level] += 1
        j = chosen[level]
        if j == d:
            level -= 1
            continue
        n_rows = counts[level, j]
        if n_rows == 0:
            continue
        rank, rows = ranks[level] + binom[j, level + 1], lists[level, j]
        add_set(Z, rows, n_rows, level + 1, rank, depth, offsets, sets, work)
        if level + 1 < levels:
            divide(rows, n_rows, missing, start, j, lists[level + 1], counts[level + 1])
            level += 1
            ranks[level], chosen[level] = rank, j
