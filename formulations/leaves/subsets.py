"""Subsets of features: their numbers, and sums over all supersets of a set.

Subsets of one size are numbered in colexicographic order: U = {u_1 < .. < u_k} has rank sum_i C(u_i, i). So the sets
R + j, for a set R and all j below its smallest element, are consecutive.

*Sums over supersets.* The rows in which all features of U are missing are those of all missing sets that contain U.
Features are divided into blocks. Where the part of U outside a block is fixed, rows are grouped by their missing
features within the block, as bits, and

    sum over groups g with V <= g of the sum of g      for all V <= block, |V| <= k,

takes one addition for each V and feature, feature by feature, instead of one for each V and group.
"""

from itertools import pairwise
from math import comb

import numpy as np

from formulations.arrays import IntArray
from formulations.jit import compiled, inlined

# Features of a block: its 2^10 groups have 200 rows each in 2 x 10^5 rows. With 20 features, 6 of them missing, a row
# is then in 9 products for sets of up to 3; with blocks of one feature in 42.
BLOCK_FEATURES = 10
# Entries of sums over supersets that are processed at once: with 2^10 groups they stay in a cache of 1 MB.
PIECE = 64


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


def count_sets(n_features: int, depth: int) -> int:
    """Number of sets of at most ``depth`` features."""
    return sum(comb(n_features, k) for k in range(depth + 1))


def blocks_of(n_features: int) -> list[tuple[int, int]]:
    """Blocks of consecutive features of about equal size, as (first, end)."""
    edges = np.linspace(0, n_features, 1 + max(1, -(-n_features // BLOCK_FEATURES))).astype(np.int64).tolist()
    return list(pairwise(edges))


def sizes_of(n_features: int) -> IntArray:
    """The number of bits of each group of a block."""
    sizes = np.zeros(1, dtype=np.int64)
    for _ in range(n_features):
        sizes = np.concatenate([sizes, sizes + 1])
    return sizes


@inlined
def add_cell(source, row, target, at, begin, end):  # type: ignore[no-untyped-def]
    """target[at] += source[row], for entries from begin to end."""
    for t in range(np.uint64(begin), np.uint64(end)):
        target[at, t] += source[row, t]


@compiled
def sum_supersets(cells, is_known, sizes, limit):  # type: ignore[no-untyped-def]
    """Replace cells[v] by the sum over all known cells u >= v, as sets of bits, for all |v| <= limit.

    ``sizes`` are numbers of bits. Cells that are not known count as 0; returns which sums are known.
    """
    known = np.empty(len(is_known), dtype=np.bool_)
    for begin in range(0, cells.shape[1], PIECE):
        end = min(begin + PIECE, cells.shape[1])
        for v in range(len(is_known)):
            known[v] = is_known[v]
        bit = 1
        while bit < len(cells):
            for v in range(len(cells)):
                if v & bit or not known[v | bit] or sizes[v & (bit - 1)] > limit:
                    continue
                if not known[v]:
                    known[v] = True
                    for t in range(begin, end):
                        cells[v, t] = 0.0
                add_cell(cells, v | bit, cells, v, begin, end)
            bit *= 2
    return known
