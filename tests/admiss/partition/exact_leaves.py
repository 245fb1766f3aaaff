"""Leaf costs of the squared loss without any rounding.

    c(G) = min over b, w of  sum_{i in G} s_i (y_i - b - w'a_i)^2 + sum_k r_k(G) w_k^2
    r_k(G) = ridge_k or ridge_k W(G)

Floats are dyadic: times powers of 2, all columns, weights and the ridges are integers, and so is the Gram matrix H of
(1, a, y) with the ridge on the diagonal of a. H is positive semidefinite. Its echelon form without fractions has as
pivots the minors of the leading independent columns, so that

    c(G) = (last pivot) / (pivot before it)     if y is independent of (1, a), else 0

also if columns are collinear or a leaf has fewer rows than columns.

Sets of patterns are bit masks. Costs are returned in fixed point: lo <= c(G) 2^K <= hi, both integers, with K such that
the cost without a split has 280 bits.
"""

from functools import cached_property

import numpy as np
from flint import fmpq, fmpz, fmpz_mat

# Bits of the cost without a split in fixed point.
BITS = 280


class LeafRows:
    """The rows of a program by pattern: codes of patterns, leaf features, targets, weights, ridge (of each column)."""

    def __init__(self, M, A, y, s, ridge, ridge_scale):
        self.patterns, codes = np.unique(M, axis=0, return_inverse=True)
        codes = codes.ravel()
        order = np.argsort(codes, kind="stable")
        self.A, self.y, self.s = A[order], np.asarray(y, dtype=float)[order], s[order]
        self.counts = np.bincount(codes, minlength=len(self.patterns))
        self.start = np.append(0, np.cumsum(self.counts))
        self.ridges = np.broadcast_to(np.asarray(ridge, dtype=float), A.shape[1])
        self.per_sample = ridge_scale == "sample"
        self.known = {}

    @property
    def everything(self):
        """The mask of all patterns."""
        return (1 << len(self.patterns)) - 1

    def members(self, mask):
        """Indices of the patterns of a mask."""
        return [p for p in range(len(self.patterns)) if mask >> p & 1]

    def n_rows(self, mask):
        """Number of rows of a set of patterns."""
        return sum(int(self.counts[p]) for p in self.members(mask))

    def rows_of(self, mask):
        """Indices of the rows of a set of patterns."""
        return np.concatenate([np.arange(self.start[p], self.start[p + 1]) for p in self.members(mask)])

    def missing(self, j):
        """The mask of the patterns in which feature j is missing."""
        return sum(1 << p for p in np.flatnonzero(self.patterns[:, j]).tolist())

    def cost(self, mask):
        """The enclosure (lo, hi) of c(G) in fixed point."""
        if mask not in self.known:
            self.known[mask] = self.enclosed(mask)
        return self.known[mask]

    @cached_property
    def shift(self):
        """K."""
        size = self.size_of_costs()
        return BITS - (int(size.p).bit_length() - int(size.q).bit_length())


class ExactLeaves(LeafRows):
    """Exact costs of the squared loss."""

    def __init__(self, M, A, y, s, ridge, ridge_scale):
        super().__init__(M, A, y, s, ridge, ridge_scale)
        columns, self.units = zip(*[integers(column) for column in (*self.A.T, self.y)], strict=True)
        weights, weight_unit = integers(self.s)
        self.p, self.q = integers(self.ridges) if len(self.ridges) else ([], 1)
        self.weight_unit = weight_unit * self.q
        rows = [[1, *row] for row in zip(*columns, strict=True)]
        weighted = [[w * self.q * z for z in row] for w, row in zip(weights, rows, strict=True)]
        self.grams = {
            1 << p: fmpz_mat(rows[first:last]).transpose() * fmpz_mat(weighted[first:last])
            for p, (first, last) in enumerate(zip(self.start[:-1], self.start[1:], strict=True))
        }

    def gram(self, mask):
        """Gram matrix of a set of patterns, without the ridge."""
        if mask not in self.grams:
            lowest = mask & -mask
            self.grams[mask] = self.gram(mask ^ lowest) + self.grams[lowest]
        return self.grams[mask]

    def exact(self, mask):
        """c(G) as a fraction."""
        H = fmpz_mat(self.gram(mask))
        weight = H[0, 0] if self.per_sample else fmpz(self.weight_unit)
        for j, (p, unit) in enumerate(zip(self.p, self.units[:-1], strict=True), start=1):
            H[j, j] += p * weight // self.q * unit * unit
        U, last = H.fflu()[3], H.ncols() - 1
        row, before = 0, fmpz(1)
        for column in range(last):
            if U[row, column]:
                before, row = U[row, column], row + 1
        return fmpq(U[row, last], before) / (self.weight_unit * self.units[-1] ** 2)

    def size_of_costs(self):
        """The cost without a split, or the sum of squares if it is 0, or 1."""
        squares = fmpq(self.gram(self.everything)[len(self.units), len(self.units)])
        return self.exact(self.everything) or squares / (self.weight_unit * self.units[-1] ** 2) or fmpq(1)

    def enclosed(self, mask):
        c = self.exact(mask)
        scaled = (c.p << self.shift) if self.shift >= 0 else c.p
        divisor = c.q if self.shift >= 0 else c.q << -self.shift
        lo = int(scaled // divisor)
        return lo, lo + (scaled % divisor != 0)


def fraction(value):
    """A float as the fraction that it is."""
    return fmpq(*float(value).as_integer_ratio())


def integers(column):
    """A column of floats times a power of 2, as integers, and that power."""
    ratios = [value.as_integer_ratio() for value in column.tolist()]
    unit = max(denominator for _, denominator in ratios)
    return [numerator * (unit // denominator) for numerator, denominator in ratios], unit
