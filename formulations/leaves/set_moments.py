"""Moments of leaf features over sets of missing features, and over boxes.

With the sums of :mod:`formulations.leaves.set_sums`, the second moments of e = (1, x, m, y) over the rows with all of U
missing are, as m_j selects the rows of U + j,

    <x_i, x_j> = Q(U)_ij      <x_i, m_j> = L(U + j)_i      <m_i, m_j> = W(U + i + j)

and those of any leaf features, which are linear in e, follow: rows v = T e have the moments T M(U) T'. Centring is such
a map, (1 - m_j) (x_j - c) = x_j + (a - c) (1 - m_j) for sums of x around a.

*Error.* Let the sums have been collected around other origins first, at most k_j away. As their errors are bounded by
the sizes of what was summed, those of v are at most

    |E(U)_ij|  <=  e sqrt(N_i N_j),    sqrt(N_i) = sum_j |T_ij| (|e_j| + k_j |1|),    |e_j| = sqrt(M(U)_jj),

with e = u (c + 64), c the number of additions.

*Boxes.* The box with O observed and V missing has the moments sum over U with V <= U <= V + O of (-1)^|U - V| M(U).
"""

from dataclasses import dataclass
from functools import cache
from itertools import combinations
from math import comb

import numpy as np

from formulations.arrays import BoolArray, FloatArray, IntArray
from formulations.jit import compiled
from formulations.leaves.cholesky import U
from formulations.leaves.set_sums import SetSums, set_offsets
from formulations.leaves.subsets import binomials, count_sets, next_subset, with_element

# Roundings of the maps applied to sums: origins, centres, and differences of sets.
MAPS = 64
# Sets whose moments are computed at once.
AT_ONCE = 256
# A box as pairs (feature, whether it is missing).
Box = list[tuple[int, bool]]


@dataclass(frozen=True)
class SetMoments:
    """Sums over sets, with the origins of x and y and the bounds of their error.

    Attributes
    ----------
    sums : SetSums
    moved : array of shape (d + 1,)
        k_j of the module, for x and y.
    additions : float
        c of the module.
    """

    sums: SetSums
    moved: FloatArray
    additions: float

    @property
    def error(self) -> float:
        """e of the module."""
        return U * (self.additions + MAPS)

    def of_sets(self, ranks: IntArray, size: int) -> FloatArray:
        """M(U) for sets of one size, by their ranks."""
        sums, d = self.sums, self.sums.n_features
        M = np.zeros((len(ranks), 2 * d + 2, 2 * d + 2))
        fill_moments(*self._data, count_sets(d, size - 1) + np.asarray(ranks), unions(d, sums.depth), M)
        return M

    @property
    def _data(self) -> tuple[tuple[FloatArray, FloatArray, FloatArray], IntArray]:
        """The sums, and the numbers of sets with at most D, and D + 1, features."""
        sums = self.sums
        limits = np.array([count_sets(sums.n_features, sums.depth + k) for k in range(2)])
        return (sums.second, sums.first, sums.weights), limits

    def counts(self, ranks: IntArray, size: int) -> FloatArray:
        """Rows with all of U missing."""
        if size > self.sums.depth:
            return self.sums.first[ranks, -1]
        return self.sums.second[count_sets(self.sums.n_features, size - 1) + ranks, -1]

    def sizes(self, M: FloatArray, T: FloatArray) -> FloatArray:
        """sqrt(N_i) of the module, one row for each matrix M(U)."""
        d = self.sums.n_features
        norms = np.sqrt(np.maximum(np.diagonal(M, axis1=1, axis2=2), 0.0))
        far = np.concatenate([[0.0], self.moved[:-1], np.zeros(d), self.moved[-1:]])
        return (norms + norms[:, :1] * far) @ np.abs(T).T

    def rows(self, literals: Box) -> float:
        """Rows of a box with at most D + 1 literals."""
        missing, observed = _sides(literals)
        total = 0.0
        for k in range(len(observed) + 1):
            ranks = np.array([rank_of(sorted([*missing, *more])) for more in combinations(observed, k)])
            total += (-1.0) ** k * float(self.counts(ranks, len(missing) + k).sum())
        return total

    def box(self, literals: Box, T: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Moments of T e over a box, and the N_i of its error."""
        missing, observed = _sides(literals)
        width = len(T)
        G, N = np.zeros((width, width)), np.zeros(width)
        for k in range(len(observed) + 1):
            sets = [sorted([*missing, *more]) for more in combinations(observed, k)]
            ranks = np.array([rank_of(held) for held in sets])
            M = self.of_sets(ranks, len(missing) + k)
            G += (-1.0) ** k * (T @ M.sum(axis=0) @ T.T)
            N += (self.sizes(M, T) ** 2).sum(axis=0)
        return G, N

    def packed(self, features: IntArray, depth: int, T: FloatArray) -> FloatArray:
        """Packed moments of T e over the rows of each U <= ``features``, |U| <= depth, and the number of rows.

        They are in the order of :mod:`formulations.leaves.subsets`, with one free entry before the last.
        """
        width = len(T)
        low = np.tril_indices(width)
        A = np.zeros((count_sets(len(features), depth), width * (width + 1) // 2 + 2))
        begin = 0
        for k in range(depth + 1):
            ranks = ranks_within(features, k)
            for first in range(0, len(ranks), AT_ONCE):
                part = ranks[first : first + AT_ONCE]
                A[begin : begin + len(part), :-2] = (T @ self.of_sets(part, k) @ T.T)[:, low[0], low[1]]
                A[begin : begin + len(part), -1] = self.counts(part, k)
                begin += len(part)
        return A

    def rebased(self, shift: FloatArray) -> "SetMoments":
        """The same for x and y plus ``shift``, where observed."""
        sums, d = self.sums, self.sums.n_features
        found, union = SetSums.zero(d, sums.depth), unions(d, sums.depth)
        found.second[:, -1], found.first[:], found.weights[:] = sums.second[:, -1], sums.first, sums.weights
        move_second(*self._data, union, shift, found.second)
        move_first(*self._data, union, shift, found.first)
        return SetMoments(found, self.moved + np.abs(shift), self.additions + MAPS)


def _sides(literals: Box) -> tuple[list[int], list[int]]:
    """Missing and observed features of a box."""
    return [j for j, is_missing in literals if is_missing], [j for j, is_missing in literals if not is_missing]


def rank_of(elements: list[int]) -> int:
    """Colexicographic rank of a set, ascending."""
    return sum(comb(j, i + 1) for i, j in enumerate(elements))


def subsets(n: int, k: int) -> IntArray:
    """The k-subsets of range(n), ascending, in colexicographic order."""
    descending = np.array(list(combinations(range(n - 1, -1, -1), k)), dtype=np.int64).reshape(comb(n, k), k)
    return descending[::-1, ::-1]


def ranks_within(features: IntArray, k: int) -> IntArray:
    """Ranks of the k-subsets of some features, ascending, in the colexicographic order of these."""
    sets = subsets(len(features), k)
    table = binomials(int(features.max(initial=0)) + 1)
    return np.asarray(sum((table[features[sets[:, i]], i + 1] for i in range(k)), np.zeros(len(sets), dtype=np.int64)))


def atoms(moments: SetMoments, features: IntArray) -> tuple[BoolArray, IntArray]:
    """Patterns {U : |U| <= D} of some features, and numbers of rows that count every box with at most D literals.

    The numbers n(U), some of them negative, have  sum over U' >= U of n(U') = rows with all of U missing. So their sums
    over the patterns in a box are its rows, by the same differences.
    """
    d, depth = len(features), min(moments.sums.depth, len(features))
    patterns, counts = [], []
    for k in range(depth + 1):
        M = np.zeros((comb(d, k), d), dtype=bool)
        np.put_along_axis(M, subsets(d, k), True, axis=1)
        patterns.append(M)
        counts.append(np.round(moments.counts(ranks_within(features, k), k)).astype(np.int64))
    numbers, levels = counts[depth], [counts[depth]]
    for k in range(depth - 1, -1, -1):
        above = np.concatenate(patterns[k + 1 :])
        inside = patterns[k].astype(np.float32) @ above.T.astype(np.float32) == k
        levels.insert(0, counts[k] - inside @ numbers)
        numbers = np.concatenate([levels[0], numbers])
    return np.concatenate(patterns), numbers


@cache
def unions(d: int, depth: int) -> IntArray:
    """The number of U + j, for every set U of at most ``depth`` + 1 features and every j; sets by size, then rank."""
    table = np.empty((count_sets(d, depth + 1), d), dtype=np.int64)
    fill_unions(d, depth + 1, set_offsets(d, depth + 2), binomials(d + 1), table)
    return table


@compiled
def fill_unions(d, depth, offsets, binom, table):  # type: ignore[no-untyped-def]
    """Write the numbers of U + j."""
    at = 0
    for k in range(min(depth, d) + 1):
        S, more = np.arange(k), True
        while more:
            for j in range(d):
                position, rank = with_element(S, k, j, binom)
                table[at, j] = at if position < 0 else offsets[k + 1] + rank
            at += 1
            more = next_subset(S, k, d)


@compiled
def set_sum(sums, limits, at, column):  # type: ignore[no-untyped-def]
    """L(U)_column of the set with this number, or W(U) if it has D + 2 features."""
    if at < limits[0]:
        return sums[0][at, column * (column + 1) // 2]
    return sums[1][at - limits[0], column] if at < limits[1] else sums[2][at - limits[1]]


@compiled
def fill_moments(sums, limits, numbers, union, M):  # type: ignore[no-untyped-def]
    """Write M(U) of the sets with these numbers."""
    d = union.shape[1]
    y = 2 * d + 1
    for r in range(len(numbers)):
        at = numbers[r]
        for i in range(d + 2):
            for j in range(i + 1):
                row, column = i if i <= d else y, j if j <= d else y
                M[r, row, column] = M[r, column, row] = sums[0][at, i * (i + 1) // 2 + j]
        for j in range(d):
            other, m = union[at, j], 1 + d + j
            for i in range(d + 2):
                row = i if i <= d else y
                M[r, row, m] = M[r, m, row] = set_sum(sums, limits, other, i)
            M[r, m, m] = M[r, 0, m]
            for i in range(j):
                M[r, m, 1 + d + i] = M[r, 1 + d + i, m] = set_sum(sums, limits, union[other, i], 0)


@compiled
def move_second(sums, limits, union, shift, out):  # type: ignore[no-untyped-def]
    """Second moments for x and y plus a shift, where observed."""
    d = union.shape[1]
    observed = np.empty(d + 1)
    for at in range(len(out)):
        weight = sums[0][at, 0]
        out[at, 0] = weight
        for j in range(d):
            observed[j] = weight - set_sum(sums, limits, union[at, j], 0)
        observed[d] = weight
        for i in range(1, d + 2):
            row, a = i * (i + 1) // 2, shift[i - 1]
            own = sums[0][at, row]
            other = union[at, i - 1] if i <= d else at
            out[at, row] = own + a * observed[i - 1]
            for j in range(1, i + 1):
                b = shift[j - 1]
                # sums of x_j where x_i is observed, of x_i where x_j is, and the weight where both are
                first, second, both = sums[0][at, j * (j + 1) // 2], own, observed[j - 1]
                if i <= d:
                    first -= set_sum(sums, limits, other, j)
                    second -= set_sum(sums, limits, union[at, j - 1], i)
                    both -= set_sum(sums, limits, other, 0) - set_sum(sums, limits, union[other, j - 1], 0)
                elif j <= d:
                    second -= set_sum(sums, limits, union[at, j - 1], i)
                out[at, row + j] = sums[0][at, row + j] + a * first + b * second + a * b * both


@compiled
def move_first(sums, limits, union, shift, out):  # type: ignore[no-untyped-def]
    """First moments of sets of D + 1 features for x and y plus a shift, where observed."""
    first, d = sums[1], union.shape[1]
    for rank in range(len(first)):
        for j in range(d):
            observed = first[rank, 0] - set_sum(sums, limits, union[limits[0] + rank, j], 0)
            out[rank, j + 1] = first[rank, j + 1] + shift[j] * observed
        out[rank, d + 1] = first[rank, d + 1] + shift[d] * first[rank, 0]
