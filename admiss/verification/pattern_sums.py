"""The data of a finitely adaptive model as exact sums over missingness patterns.

Leaf features of a row (x, m) are (x_j - c_j) / unit_j, 0 if missing, and for the affine intercept the indicators m_j of
the features that are missing in some rows and observed in others. The difference x_j - c_j is the double next to it,
and the unit a power of two: it is the data of the program, which is exact from there on. So is the ridge of column j,
the double next to ridge (scale_j / unit_j)^2. A feature that is never observed is left out.

Every pattern has one integer matrix, the Gram matrix of its weighted rows (1, a, y), with the ridge of its rows on the
diagonal if the ridge is per sample. In units of integers the ridge of column j is multiplied by 2^(2 e_j + e_s).
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from flint import fmpq, fmpq_mat, fmpz_mat

from admiss.verification.claim import require
from admiss.verification.exact import (
    BITS,
    Enclosure,
    enclose_cost,
    independent_columns,
    integers_of,
    power_of_two,
)
from formulations.arrays import BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class PatternSums:
    """Exact sums over the rows of each pattern.

    Attributes
    ----------
    patterns : bool array of shape (P, d)
        Distinct patterns, in lexicographic order.
    rows : int array of shape (P,)
        Their numbers of rows.
    grams : list of fmpz_mat
        Their Gram matrices of (1, a, y), with a ridge per sample.
    base : fmpz_mat
        The ridge per leaf.
    ridge : float
        The least ridge of a column.
    exponents : list of int
        Of the columns 1, a, y.
    unit : Fraction
        Value of one unit of a cost: costs are integers in units of 2^-BITS of the last diagonal entry.
    """

    patterns: BoolArray
    rows: IntArray
    grams: list[fmpz_mat]
    base: fmpz_mat
    ridge: float
    exponents: list[int]
    unit: Fraction

    @cached_property
    def columns(self) -> list[int]:
        """Columns that matter in some leaf: at ridge 0 those that depend on others in all rows are left out."""
        if self.ridge > 0:
            return list(range(len(self.exponents) - 1))
        k, total = len(self.exponents) - 1, self.total(range(len(self.grams))).tolist()
        return independent_columns(fmpz_mat(k, k, [entry for row in total[:k] for entry in row[:k]]))

    @cached_property
    def reduced(self) -> list[fmpz_mat]:
        """The Gram matrices of ``columns`` and y."""
        kept = [*self.columns, len(self.exponents) - 1]
        if len(kept) == len(self.exponents):
            return self.grams
        tables = (gram.tolist() for gram in self.grams)
        return [fmpz_mat(len(kept), len(kept), [table[i][j] for i in kept for j in kept]) for table in tables]

    @property
    def squares(self) -> Fraction:
        """Sum of the squares of y."""
        return Fraction(int(sum(gram.entries()[-1] for gram in self.grams))) * self.unit * power_of_two(BITS)

    def total(self, members: "range | IntArray") -> fmpz_mat:
        """Sum of the Gram matrices of some patterns."""
        total = fmpz_mat(self.base.nrows(), self.base.ncols())
        for p in members:
            total += self.grams[p]
        return total

    def enclose(self, gram: fmpz_mat) -> Enclosure:
        """Cost of a leaf with this sum of ``reduced`` matrices."""
        # at ridge 0 the base is 0, and the columns may be fewer than its
        return enclose_cost(gram + self.base if self.ridge > 0 else gram, self.ridge > 0)

    def enclose_members(self, members: "range | IntArray") -> Enclosure:
        """Cost of the leaf that holds these patterns."""
        total = fmpz_mat(self.reduced[0].nrows(), self.reduced[0].ncols())
        for p in members:
            total += self.reduced[p]
        return self.enclose(total)

    def value(self, members: IntArray, intercept: float, weights: FloatArray) -> Fraction:
        """Exact cost of a model in the leaf that holds these patterns."""
        e = self.exponents
        model = [Fraction(value) * power_of_two(e[-1] - e[j]) for j, value in enumerate([intercept, *weights.tolist()])]
        u = fmpq_mat(len(e), 1, [*(fmpq(v.numerator, v.denominator) for v in model), fmpq(-1)])
        cost = (u.transpose() * fmpq_mat(self.total(members) + self.base) * u)[0, 0]
        return Fraction(int(cost.p), int(cost.q)) * self.unit * power_of_two(BITS)


def leaf_features(X: FloatArray, centre: FloatArray, unit: FloatArray, leaf_model: str) -> FloatArray:
    """The features of the linear models in the leaves."""
    M = np.isnan(X)
    observed, indicated = ~M.all(axis=0), M.any(axis=0) & ~M.all(axis=0)
    A = np.where(M, 0.0, (X - centre) / unit)[:, observed]
    return np.hstack([A, M[:, indicated]]) if leaf_model == "affine_intercept" else A


def ridges_of(X: FloatArray, scale: FloatArray, unit: FloatArray, width: int, ridge: float) -> FloatArray:
    """The ridges of ``width`` leaf features, of which the last are indicators."""
    with np.errstate(over="ignore", under="ignore"):
        weights = ((scale / unit) ** 2)[~np.isnan(X).all(axis=0)]
        ridges = ridge * np.append(weights, np.ones(width - len(weights)))
    normal = np.isfinite(ridges) & (ridges >= np.finfo(float).tiny)
    require(ridge == 0 or bool(normal.all()), "the ridge of a feature leaves the range of floating-point numbers")
    return np.asarray(ridges)


def pattern_sums(
    X: FloatArray, y: FloatArray, s: FloatArray, A: FloatArray, ridges: FloatArray, ridge_scale: str
) -> PatternSums:
    """The sums for rows of positive weight with their leaf features, and the ridges of these."""
    M, ridge = np.isnan(X), float(ridges.min(initial=np.inf)) if len(ridges) else 0.0
    Z, weights = integers_of(np.column_stack([np.ones(len(X)), A, y])), integers_of(s[:, None])
    penalty = integers_of(ridges[None, :])
    per_sample = ridge_scale == "sample"
    # exponents of the ridges in units of the Gram matrix; a factor 2^spare makes all of them non-negative
    per = 0 if per_sample else weights.exponents[0]
    shifts = [2 * e - f + per for e, f in zip(Z.exponents[1:-1], penalty.exponents, strict=True)]
    spare = max(0, -min(shifts, default=0)) if ridge > 0 else 0
    diagonal = (number << max(0, shift + spare) for number, shift in zip(penalty.numbers, shifts, strict=True))
    base = _diagonal([0, *diagonal, 0])

    patterns, codes, rows = np.unique(M, axis=0, return_inverse=True, return_counts=True)
    order = np.split(np.argsort(codes.ravel(), kind="stable"), np.cumsum(rows)[:-1])
    grams, width = [], Z.shape[1]
    for members in order:
        numbers, shares = Z.rows(members), weights.rows(members)
        weighted = [number * shares[i // width] for i, number in enumerate(numbers)]
        shape = (len(members), width)
        gram = fmpz_mat(*shape, weighted).transpose() * fmpz_mat(*shape, numbers)
        gram = gram * (1 << spare)
        grams.append(gram + base * sum(shares) if per_sample else gram)
    unit = power_of_two(-(2 * Z.exponents[-1] + weights.exponents[0] + spare + BITS))
    nothing = _diagonal([0] * width)
    return PatternSums(patterns, rows, grams, nothing if per_sample else base, ridge, Z.exponents, unit)


def _diagonal(numbers: list[int]) -> fmpz_mat:
    size = len(numbers)
    return fmpz_mat(size, size, [numbers[i] if i == j else 0 for i in range(size) for j in range(size)])
