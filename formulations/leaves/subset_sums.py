"""Sums of Gram matrices over the patterns with all of U missing, for all sets U of at most D features.

Subsets are numbered in colexicographic order: U = {u_1 < .. < u_k} has rank sum_i C(u_i, i). So the sets R + j, for a
set R and all j below its smallest element, are consecutive, and their sums A(R + j) are accumulated together: each
pattern with all of R missing is added to those whose j it misses. Entries are processed in pieces, few enough for the
sums to stay in the fastest cache. The last two entries of a sum count its patterns and its rows.
"""

from typing import Any

import numpy as np

from formulations.arrays import FloatArray
from formulations.jit import compiled, inlined
from formulations.leaves.cholesky import add_row, rounded_gram

# Entries of a matrix that are processed at once.
ENTRIES = 128
# Patterns and sums that are collected before they are added, and at least as many as there are features.
PAIRS = 512


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


@inlined
def add_part(grams, p, sums, at, begin, end):  # type: ignore[no-untyped-def]
    """Add entries of the matrix of a pattern to a sum."""
    for t in range(np.uint64(begin), np.uint64(end)):
        sums[at, t] += grams[p, t]


@compiled
def add_pairs(Z, start, grams, pairs, count, sums, one):  # type: ignore[no-untyped-def]
    """Add the matrix of each pattern to its sum; if these are not held, ``one`` is workspace for one of them."""
    if len(grams):
        length = grams.shape[1]
        for begin in range(0, length, ENTRIES):
            for i in range(count):
                add_part(grams, pairs[i, 0], sums, pairs[i, 1], begin, min(begin + ENTRIES, length))
        return
    for i in range(count):
        p = pairs[i, 0]
        if i == 0 or p != pairs[i - 1, 0]:
            rounded_gram(one[0], one[1], Z, start[p], start[p + 1])
        add_row(one, 0, sums, pairs[i, 1])


@compiled
def patterns_with(patterns, f, members):  # type: ignore[no-untyped-def]
    """Write the patterns in which f is missing, all of them if f < 0; returns their number."""
    count = 0
    for p in range(len(patterns)):
        if f < 0 or patterns[p, f]:
            members[count] = p
            count += 1
    return count


def space_for_sums(data: tuple[Any, ...], length: int) -> tuple[np.ndarray, np.ndarray, FloatArray]:
    """Workspace: patterns, pairs of a pattern and a sum, and the matrix of a pattern if these are not held."""
    _, _, grams, _, patterns = data
    n_patterns, n_features = patterns.shape
    pairs = np.empty((PAIRS + n_features, 2), dtype=np.int64)
    return np.empty(n_patterns, dtype=np.int64), pairs, np.empty((0 if len(grams) else 2, length))


@compiled
def add_sums(data, space, n_members, R, size, n_lower, sums, first):  # type: ignore[no-untyped-def]
    """Add A(R + j), j < n_lower, to sums[first + j]; ``space`` begins with the patterns without R's largest element."""
    Z, start, grams, counts, patterns = data
    members, pairs, one = space
    length, held = sums.shape[1] - 2, 0
    for member in range(n_members):
        p, i = members[member], 0
        while i < size and patterns[p, R[i]]:
            i += 1
        if i < size:
            continue
        for j in range(n_lower):
            if patterns[p, j]:
                sums[first + j, length] += 1.0
                sums[first + j, length + 1] += counts[p]
                pairs[held, 0], pairs[held, 1] = p, first + j
                held += 1
        if held >= PAIRS:
            add_pairs(Z, start, grams, pairs, held, sums, one)
            held = 0
    add_pairs(Z, start, grams, pairs, held, sums, one)


def all_sums(data: tuple[Any, ...], depth: int, A: FloatArray) -> None:
    """Accumulate A(U) for 0 < |U| < depth, by size, then rank, starting at A[1]."""
    _write_sums(data, depth, A, np.empty(depth, dtype=np.int64), space_for_sums(data, A.shape[1] - 2))


@compiled
def _write_sums(data, depth, A, R, space):  # type: ignore[no-untyped-def]
    patterns, members = data[4], space[0]
    n_features, first = patterns.shape[1], 1
    for k in range(1, depth):
        for i in range(k - 1):
            R[i] = i
        largest, more = -1, True
        n_members = patterns_with(patterns, -1, members)
        while more:
            if k > 1 and R[k - 2] != largest:
                largest = R[k - 2]
                n_members = patterns_with(patterns, largest, members)
            n_lower = R[0] if k > 1 else n_features
            add_sums(data, space, n_members, R, k - 1, n_lower, A, first)
            first += n_lower
            more = next_subset(R, k - 1, n_features)
