"""Sums over the rows in which all of U is missing, for all sets U of at most D features, from one pass over rows.

Data        rows z = (1, x, y) with weights s and x_j = 0 if it is missing
Sums        second moments   Q(U) = sum s z z'     |U| <= D,       with the number of rows
            first moments    L(U) = sum s z        |U| = D + 1,    with the number of rows
            weights          W(U) = sum s          |U| = D + 2

For smaller sets, L(U) is the first column of Q(U), and W(U) the first entry. As m_j z summed over U is z summed over
U + j, these are the moments up to degree 2 of (1, x, m, y) over the rows of every U, |U| <= D.

:mod:`formulations.leaves.set_kernel` has the algorithm.

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
from formulations.leaves.box_grams import binomials
from formulations.leaves.set_kernel import HEIGHT, RUN, add_sorted, sorted_rows

# Most rows that are sorted at once, which bounds the number of additions and the memory.
MOST_ROWS = 2**18
# Rows for each pattern of the last t features, the largest t, and the bytes of the tables of their sums.
ROWS_PER_PATTERN, MOST_LAST, MOST_BYTES = 512, 7, 2 * 10**8


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
        longest = 0.0
        for begin in range(0, len(y), MOST_ROWS):
            part = slice(begin, begin + MOST_ROWS)
            longest = max(longest, self._add(X[part], y[part], s[part])) + 1.0
        return longest

    def _add(self, X: FloatArray, y: FloatArray, s: FloatArray) -> float:
        (n, d), depth = X.shape, self.depth
        last = self._last(n)
        M = np.isnan(X)
        keys = (M[:, d - last :] @ (1 << np.arange(last))).astype(np.uint8)
        order = np.argsort(keys, kind="stable")
        Z = np.empty((n, -(-(d + 2) // HEIGHT) * HEIGHT))
        sorted_rows(X, y, s, order, Z)
        others = M[order, : d - last]
        start = np.append(0, np.cumsum(others.sum(axis=1)))
        columns = (np.flatnonzero(others) % max(1, d - last)).astype(np.int16)
        groups = np.append(0, np.cumsum(np.bincount(keys, minlength=1 << last)))
        offsets = np.array([set_offsets(d - last, depth + 2), set_offsets(d, depth + 2)])
        h, patterns = d - last, 1 << last
        tables = (
            np.empty((count_sets(h, depth - 1) * patterns, self.second.shape[1])),
            np.empty((comb(h, depth) * patterns, d + 3)),
            np.empty((comb(h, depth + 1) * patterns, 2)),
            np.empty((count_sets(h, depth + 1), patterns), dtype=bool),
            np.zeros((3, max(comb(d, depth + k) for k in range(3))), dtype=np.int64),
        )
        sets = (self.second, self.first, self.weights)
        add_sorted(Z, groups, columns, start, last, depth, offsets, binomials(d), tables, sets)
        most = int(np.diff(groups).max(initial=0))
        return float(min(RUN, most) + max(most // RUN + 1, int(tables[-1].max(initial=0))) + last + 1)

    def _last(self, n: int) -> int:
        """t: as large as the rows and the memory for the tables allow."""
        d, last = self.n_features, 0
        while last < min(MOST_LAST, d) and n >= ROWS_PER_PATTERN << last:
            entries = count_sets(d - last - 1, self.depth - 1) * self.second.shape[1] << (last + 1)
            if 8 * entries > MOST_BYTES:
                break
            last += 1
        return last

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
