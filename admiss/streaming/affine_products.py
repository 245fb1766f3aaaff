"""Second moments of the columns of affine weights, by sums over sets of missing features.

The columns are monomials m_J, |J| <= 2, values z_j m_K with z_j = o_j (x_j - a_j) and |K| <= 1, and z_0 = y - a_y. As
m_J m_K = m_{J + K}, their products are determined by

    sum s z_j z_l m_U   |U| <= 2,        sum s z_j m_U   |U| <= 3,        sum s m_U   |U| <= 4,

and a row with missing features M adds to the sums of the sets U within M only: for 6 missing of 20 features, to 22, 42
and 57 sets. The matrix of d^2 columns is then read off from these sums.
"""

import itertools
from functools import lru_cache
from math import comb

import numpy as np

from formulations.arrays import IntArray
from formulations.jit import compiled
from formulations.leaves.subset_sums import binomials

# Most features: beyond, the places of all products take too much memory.
MOST_FEATURES = 30


@lru_cache(maxsize=4)
def set_tables(d: int) -> tuple[IntArray, IntArray]:
    """C(i, k) for i up to d, and the number of sets of fewer than k features, k up to 5."""
    return binomials(d), np.array([sum(comb(d, size) for size in range(k)) for k in range(6)])


@lru_cache(maxsize=4)
def product_places(d: int) -> tuple[IntArray, int]:
    """For each pair of columns the place of the sum of their products, and the number of sums.

    Columns are in the order of :mod:`admiss.streaming.product_columns`: monomials, values by feature, y. Sums are those
    of the module one after the other, by set.
    """
    sets = [J for size in range(5) for J in itertools.combinations(range(d), size)]
    n_sets = set_tables(d)[1][3:]
    # sets by their bits: the place of a union is found in the sorted list of all
    bits = np.array([sum(1 << j for j in J) for J in sets], dtype=np.int64)
    choose, smaller = set_tables(d)
    rank = np.array([smaller[len(J)] + sum(choose[u, i + 1] for i, u in enumerate(J)) for J in sets])
    order = np.argsort(bits)
    functions = bits[: n_sets[0]]
    values = [(j, k) for j in range(d) for k in (-1, *range(d)) if k != j]
    own = np.concatenate([functions, [0 if k < 0 else 1 << k for _, k in values], [0]])
    factor = np.concatenate([np.full(n_sets[0], -1), [j for j, _ in values], [d]])  # -1 is the constant 1
    union = rank[order[np.searchsorted(bits[order], own[:, None] | own)]]
    low, high = np.minimum(factor[:, None], factor), np.maximum(factor[:, None], factor)
    pairs = (d + 1) * (d + 2) // 2
    first, weights = n_sets[0] * pairs, n_sets[0] * pairs + n_sets[1] * (d + 1)
    second = union * pairs + high * (high + 1) // 2 + low
    places = np.where(low >= 0, second, np.where(high >= 0, first + union * (d + 1) + high, weights + union))
    return places, weights + n_sets[2]


@compiled
def _rank(members, size, choose, smaller):  # type: ignore[no-untyped-def]
    """The place of a set {u_1 < .. < u_k}: by size, then in colexicographic order, the sum of C(u_i, i)."""
    place = smaller[size]
    for i in range(size):
        place += choose[members[i], i + 1]
    return place


@compiled
def _add(sums, begin, values, weight):  # type: ignore[no-untyped-def]
    part = sums[begin : begin + len(values)]  # indices from 0, so that the loop is vectorised
    for j in range(len(values)):
        part[j] += weight * values[j]


@compiled
def add_rows(X, y, s, order, anchor, choose, smaller, sums):  # type: ignore[no-untyped-def]
    """Add rows to the sums of the module, given C(i, k) and the number of smaller sets by size."""
    d = X.shape[1]
    pairs = (d + 1) * (d + 2) // 2
    first = smaller[3] * pairs
    weights = first + smaller[4] * (d + 1)
    z, products = np.empty(d + 1), np.empty(pairs)
    missing, chosen = np.empty(d, dtype=np.int64), np.empty(4, dtype=np.int64)
    for row in order:
        weight, n_missing = s[row], 0
        for j in range(d):
            x = X[row, j]
            z[j] = 0.0 if np.isnan(x) else x - anchor[j]
            missing[n_missing] = j
            n_missing += np.isnan(x)
        z[d] = y[row] - anchor[d]
        at = 0
        for j in range(d + 1):
            for l in range(j + 1):
                products[at + l] = z[j] * z[l]
            at += j + 1
        # all sets of at most 4 missing features, a being the last one
        for a in range(-1, n_missing):
            for b in range(-1, max(a, 0)):
                for c in range(-1, max(b, 0)):
                    for e in range(-1, max(c, 0)):
                        size = 0
                        for index in (e, c, b, a):
                            if index >= 0:
                                chosen[size] = missing[index]
                                size += 1
                        place = _rank(chosen, size, choose, smaller)
                        sums[weights + place] += weight
                        if size <= 3:
                            _add(sums, first + place * (d + 1), z, weight)
                        if size <= 2:
                            _add(sums, place * pairs, products, weight)
