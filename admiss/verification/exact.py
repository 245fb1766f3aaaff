"""Exact sums of floating-point numbers over missingness patterns, and enclosures of the costs of leaves.

A float is an integer times a power of 2. Column j of a matrix is N_j 2^-e_j with integers N_j, and with weights
s = N_s 2^-e_s

    sum_i s_i z_ij z_ik  =  2^-(e_j + e_k + e_s)  (N_j' diag(N_s) N_k),

which python-flint computes without rounding.

*Costs.* With G the integer Gram matrix of (1, a, y) over the rows of a leaf, its ridge on the diagonal of a,

    c = min over (b, w) of (b, w, -1) G (b, w, -1)'.

If G is regular, 1/c is the last entry of the solution x of  G x = (0, .., 0, 1): python-flint encloses it in balls.
Otherwise (at ridge 0: a column that is 0, duplicated or constant in the leaf, fewer rows than columns; or a perfect
fit) the cost is a rational number: with I an independent set of columns,

    c = G_yy - G_yI G_II^-1 G_Iy        provided that   G_jj - G_jI G_II^-1 G_Ij = 0   for every other column j.

I comes from elimination modulo a prime, which proves that its columns are independent; the condition, exact over the
integers, proves that the others depend on them.

Costs are pairs of integers, lower and upper end in units of 2^-BITS.

*Patterns.* Leaf features of a row (x, m) are (x_j - c_j) / unit_j, 0 if missing, and for the affine intercept the
indicators m_j of the features that are missing in some rows and observed in others, one of those that are always
missing together. The difference x_j - c_j is the double next to it, and the unit a power of two: it is the data of the
program, which is exact from there on. So is the ridge of column j, the double next to ridge (scale_j / unit_j)^2. A
feature that is never observed is left out.

Every pattern has one integer matrix, the Gram matrix of its weighted rows (1, a, y), with the ridge of its rows on the
diagonal if the ridge is per sample. In units of integers the ridge of column j is multiplied by 2^(2 e_j + e_s).
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import flint
import numpy as np
from flint import arb, arb_mat, fmpq, fmpq_mat, fmpz, fmpz_mat, nmod_mat

from admiss.patterns import missing_once
from admiss.verification.claim import require
from formulations.arrays import BoolArray, FloatArray, IntArray

# Binary digits of balls: 640 hold products of six doubles, with 320 to spare for equations next to singular.
PRECISION = 640
# Binary digits of costs after the point.
BITS = 128
# Binary digits to which a ball must be known.
ACCURATE = 110
# Primes below 2^64.
PRIMES = (18446744073709551557, 18446744073709551533, 18446744073709551521)

Enclosure = tuple[int, int]


class Integers(NamedTuple):
    """Integers ``numbers`` of the given shape, row by row; column j stands for numbers 2^-exponents[j]."""

    numbers: list[int]
    shape: tuple[int, int]
    exponents: list[int]

    def rows(self, chosen: IntArray) -> list[int]:
        """The numbers of some rows, row by row."""
        width = self.shape[1]
        return [number for i in chosen.tolist() for number in self.numbers[i * width : (i + 1) * width]]

    def matrix(self) -> fmpz_mat:
        """All numbers as a matrix of flint."""
        return fmpz_mat(*self.shape, self.numbers)


def integers_of(values: FloatArray) -> Integers:
    """The columns of a matrix of finite floats as integers, each with its own exponent.

    Examples
    --------
    >>> integers_of(np.array([[0.5, 3.0], [2.0, -8.0]]))
    Integers(numbers=[1, 3, 4, -8], shape=(2, 2), exponents=[1, 0])
    """
    mantissa, exponent = np.frexp(values)
    whole = (mantissa * 2.0**53).astype(np.int64)
    twos = np.frexp((whole & -whole).astype(float))[1] - 1  # trailing zeros
    is_zero = whole == 0
    whole >>= np.where(is_zero, 0, twos)
    exponent = np.where(is_zero, np.iinfo(np.int32).max, exponent - 53 + twos).astype(np.int64)
    least = exponent.min(axis=0, initial=np.iinfo(np.int32).max)
    least[least == np.iinfo(np.int32).max] = 0  # a column of zeros
    shift = np.where(is_zero, 0, exponent - least)
    if shift.max(initial=0) <= 9:  # 53 bits, shifted
        numbers = (whole << shift).ravel().tolist()
    else:
        numbers = [n << k for n, k in zip(whole.ravel().tolist(), shift.ravel().tolist(), strict=True)]
    return Integers(numbers, (values.shape[0], values.shape[1]), (-least).tolist())


def power_of_two(exponent: int) -> Fraction:
    """2 to an integer power, exactly.

    Examples
    --------
    >>> power_of_two(-2)
    Fraction(1, 4)
    """
    return Fraction(1 << exponent) if exponent >= 0 else Fraction(1, 1 << -exponent)


def ends_of(ball: arb) -> tuple[Fraction, Fraction]:
    """Lower and upper end of a finite ball."""
    mantissas = ((int(part) for part in end.man_exp()) for end in (ball.lower(), ball.upper()))
    low, high = (Fraction(mantissa) * power_of_two(exponent) for mantissa, exponent in mantissas)
    return low, high


def enclose_cost(G: fmpz_mat, regular: bool) -> Enclosure:
    """The cost of a leaf; ``regular`` if its ridge is positive, so that no column depends on others."""
    entries, size = G.tolist(), G.nrows() - 1
    columns = list(range(size)) if regular else _varying_columns(entries)
    independent = columns
    if not regular:
        H = _part(entries, columns, columns)
        if nmod_mat(H, PRIMES[0]).rank() < len(columns):
            independent = [columns[j] for j in _pivots(H, PRIMES[0])]
    if len(independent) == len(columns):
        chosen = [*columns, size]
        balls = _by_balls(G if len(chosen) == G.nrows() else _part(entries, chosen, chosen))
        if balls is not None:
            return balls
    return _exactly(entries, columns)


def independent_columns(H: fmpz_mat) -> list[int]:
    """Columns on which all others depend, from their Gram matrix."""
    columns = list(range(H.nrows()))
    if nmod_mat(H, PRIMES[0]).rank() == len(columns):
        return columns
    bordered = [[*row, fmpz(0)] for row in H.tolist()] + [[fmpz(0)] * (len(columns) + 1)]
    return _proven_independent(bordered, columns)[0]


def _part(entries: list[list[fmpz]], rows: list[int], columns: list[int]) -> fmpz_mat:
    return fmpz_mat(len(rows), len(columns), [entries[i][j] for i in rows for j in columns])


def _varying_columns(entries: list[list[fmpz]]) -> list[int]:
    """The intercept and the columns that are not a multiple of it (equality in the inequality of Cauchy-Schwarz)."""
    first, one = entries[0], entries[0][0]
    return [0] + [j for j in range(1, len(entries) - 1) if first[j] * first[j] != one * entries[j][j]]


def _pivots(H: fmpz_mat, prime: int) -> list[int]:
    reduced, rank = nmod_mat(H, prime).rref()
    rows = reduced.tolist()[:rank]
    return [next(j for j, entry in enumerate(row) if int(entry)) for row in rows]


def _by_balls(G: fmpz_mat) -> Enclosure | None:
    """The cost if G is regular, or None if balls of some thousand digits do not show that."""
    m = G.nrows()
    start = max(256, 10 * m + 64)  # flint solves directly if there are more than 10 m bits
    for precision in (start, 4 * start, 16 * start):
        with flint.ctx.workprec(precision):
            try:
                cost = 1 / arb_mat(G).solve(arb_mat(m, 1, [0] * (m - 1) + [1]))[m - 1, 0]
            except ZeroDivisionError:
                continue
            if cost.is_finite() and cost.rel_accuracy_bits() >= ACCURATE:
                return max(0, floor_of(cost)), -floor_of(-cost)
    return None


def floor_of(ball: arb) -> int:
    """The largest integer below the ball, in units of 2^-BITS."""
    mantissa, exponent = (int(part) for part in ball.lower().man_exp())
    shift = exponent + BITS
    return mantissa << shift if shift >= 0 else mantissa >> -shift


def _exactly(entries: list[list[fmpz]], columns: list[int]) -> Enclosure:
    y = len(entries) - 1
    independent, solution = _proven_independent(entries, columns)
    cost = fmpq(entries[y][y])
    for i, j in enumerate(independent):
        cost -= entries[y][j] * solution[i]
    scaled = cost * fmpz(1 << BITS)
    return int(scaled.p // scaled.q), -int(-scaled.p // scaled.q)


def _proven_independent(entries: list[list[fmpz]], columns: list[int]) -> tuple[list[int], list[fmpq]]:
    """Independent columns on which the other ``columns`` depend, and the coefficients of y on them."""
    y = len(entries) - 1
    H = _part(entries, columns, columns)
    for prime in PRIMES:
        pivots = _pivots(H, prime)
        chosen = [columns[j] for j in pivots]
        others = [j for j in columns if j not in set(chosen)]
        solution = _part(entries, chosen, chosen).solve(_part(entries, chosen, [*others, y])).tolist()
        products = [
            sum((entries[c][j] * solution[i][position] for i, c in enumerate(chosen)), fmpq(0))
            for position, j in enumerate(others)
        ]
        if all(part == entries[j][j] for part, j in zip(products, others, strict=True)):
            return chosen, [row[-1] for row in solution]
    raise ArithmeticError("No prime reveals the rank of a Gram matrix.")


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
        columns = [*self.columns, len(self.exponents) - 1]
        if len(columns) == len(self.exponents):
            return self.grams
        tables = (gram.tolist() for gram in self.grams)
        return [
            fmpz_mat(len(columns), len(columns), [table[i][j] for i in columns for j in columns]) for table in tables
        ]

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
    observed = ~M.all(axis=0)
    indicated = np.setdiff1d(missing_once(M), np.flatnonzero(~observed))
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
