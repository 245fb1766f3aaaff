"""Factorisation and layout side by side agree with numpy; sums over subsets, and costs of boxes, with direct ones."""

import tracemalloc
from itertools import chain, combinations
from math import comb

import numpy as np
import pytest

from formulations.leaves import squared, subsets
from formulations.leaves.box_costs import box_costs, members_of
from formulations.leaves.box_grams import write_box_costs
from formulations.leaves.cholesky import ESTIMATE, LOWER, UPPER, costs_of_rows, leaf_costs, workspace
from formulations.leaves.cost import PatternRows
from formulations.leaves.squared import SquaredLeafCost
from formulations.leaves.tiles import LANES
from tests.formulations.rows import random_rows


def packed_grams(count, size, rng):
    """Gram matrices as squares, and packed."""
    Z = rng.normal(size=(count, 2 * size, size))
    G = Z.transpose(0, 2, 1) @ Z
    return G, np.ascontiguousarray(G[:, *np.tril_indices(size)])


def last_pivot(G):
    return np.linalg.cholesky(G)[-1, -1] ** 2


@pytest.mark.parametrize("size", [*range(2, 14), 31, 52])
@pytest.mark.parametrize("count", [1, LANES, 2 * LANES + 3])
def test_costs_are_last_pivots(size, count):
    G, packed = packed_grams(count, size, np.random.default_rng(size))
    ridge = np.append(0.0, np.append(np.arange(1.0, size - 1), 0.0))
    expected = [last_pivot(g + np.diag(ridge)) for g in G]
    np.testing.assert_allclose(leaf_costs(packed, size, ridge, False, 0, ESTIMATE, 0.0), expected, rtol=1e-11)


@pytest.mark.parametrize("left_out", [1, 2, 3])
@pytest.mark.parametrize("size", [6, 9, 20])
def test_columns_that_are_left_out(size, left_out):
    rng = np.random.default_rng(size + left_out)
    G, packed = packed_grams(LANES, size, rng)
    order, ridge = size - left_out, np.append(0.0, np.append(rng.random(size - 2), 0.0))
    columns = np.empty((LANES, size), dtype=np.int64)
    for lane in range(LANES):
        columns[lane, : order - 1] = np.append(0, 1 + rng.permutation(size - 2)[: order - 2])
        columns[lane, order - 1] = size - 1
    costs, padded = np.empty(LANES), np.vstack([packed, packed[:1]])
    options = (order, ridge, False, ESTIMATE, 0.0)
    costs_of_rows(padded, np.arange(LANES), np.ones(LANES), columns, *options, workspace(size), costs)
    for lane, kept in enumerate(columns[:, :order]):
        expected = last_pivot((G[lane] + np.diag(ridge))[np.ix_(kept, kept)])
        assert costs[lane] == pytest.approx(expected, rel=1e-11)


def test_a_pivot_that_is_not_positive_concerns_its_own_matrix():
    size = 11
    G, _ = packed_grams(LANES, size, np.random.default_rng(0))
    bad, column = 1, 6
    G[bad, :, column] = G[bad, :, 3]
    G[bad, column, :] = G[bad, 3, :]
    G[bad, column, column] = 0.9 * G[bad, 3, 3]
    packed = np.ascontiguousarray(G[:, *np.tril_indices(size)])
    expected = np.array([last_pivot(np.delete(np.delete(g, column, 0), column, 1)) for g in G])
    others = np.arange(LANES) != bad
    full = np.array([last_pivot(g) for g in G[others]])
    for end in (LOWER, ESTIMATE, UPPER):
        costs = leaf_costs(packed, size, np.zeros(size), False, 0, end, 0.0)
        np.testing.assert_allclose(costs[others], full, rtol=1e-11)
        assert costs[bad] == (0.0 if end == LOWER else pytest.approx(expected[bad], rel=1e-11))


def rows_with_indicators(seed, n=300, d=6):
    """Rows whose columns are features, 0 where they are missing, and indicators, which are constant in boxes."""
    rng = np.random.default_rng(seed)
    M = rng.random((n, d)) < 0.4
    M[:, 3] = M[:, 2]  # a box that fixes one of these makes both constant
    X = rng.standard_normal((n, d))
    y = X.sum(axis=1) + M @ rng.standard_normal(d) + rng.standard_normal(n)
    patterns, codes = np.unique(M, axis=0, return_inverse=True)
    return PatternRows.of(patterns, codes.ravel(), np.hstack([np.where(M, 0.0, X), M]), y, np.ones(n))


@pytest.mark.parametrize("width", [1, 2, 10])
@pytest.mark.parametrize("held", [True, False])
def test_sums_over_subsets_are_direct_sums(width, held, monkeypatch):
    monkeypatch.setattr(subsets, "BLOCK_FEATURES", width)
    if not held:
        monkeypatch.setattr(squared, "MOST_GRAMS", 0)
    rows = rows_with_indicators(0, n=2000)
    leaf_cost, d, depth = SquaredLeafCost(rows, 1.0), rows.patterns.shape[1], 4
    sets = [sorted(combinations(range(d), k), key=lambda s: s[::-1]) for k in range(depth)]
    data = leaf_cost.Z, rows.start, leaf_cost.grams, rows.counts, rows.patterns
    A = leaf_cost.space_for_sums(np.arange(d), depth)
    columns = np.full((d, 2, 1), -1)
    options = leaf_cost.size, leaf_cost.scaled_ridge, False, 1, ESTIMATE, 0.0, columns, 1.0
    first = np.append(0, np.cumsum([comb(d, k) << k for k in range(depth + 1)]))
    list(write_box_costs(data, A, depth, options, first, np.empty(first[-1])))
    for total, subset in zip(A, chain(*sets), strict=True):
        members = np.flatnonzero(rows.patterns[:, list(subset)].all(axis=1))
        assert tuple(total[-2:]) == (len(members), rows.counts[members].sum())
        direct = leaf_cost.gram(members)[0]
        assert np.array_equal(total[:-2], direct)  # sums are without error


@pytest.mark.parametrize("held", [True, False])
def test_sums_take_little_memory_beside_what_is_held(held, monkeypatch):
    rows = random_rows(np.random.default_rng(0), 4000, 60, (0.4, 0.5))
    leaf_cost, members = SquaredLeafCost(rows, 1.0), np.arange(len(rows.patterns))
    size = 8 * leaf_cost.length * len(members)
    assert size > 6e7
    if not held:
        monkeypatch.setattr(squared, "MOST_GRAMS", size - 1)
    assert len(leaf_cost.grams) == held * len(members)
    inside = np.array([members % 2 == 0, members % 2 == 1])
    tracemalloc.start()
    sums = leaf_cost.sums_of_grams(inside, members)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3e7
    assert np.array_equal(sums.sum(axis=0), leaf_cost.gram(members)[0])


@pytest.mark.parametrize("depth", [1, 2, 4])
@pytest.mark.parametrize("held", [True, False])
def test_boxes_are_enclosed_by_the_intervals_of_their_rows(depth, held, monkeypatch):
    if not held:
        monkeypatch.setattr(squared, "MOST_GRAMS", 0)
    rows, scale = rows_with_indicators(depth), ("leaf", "sample")[depth % 2]
    leaf_cost = SquaredLeafCost(rows, 0.1, scale)
    features = np.array([0, 1, 2, 4, 5])
    lower, upper = (box_costs(leaf_cost, features, depth, 5, end=end) for end in (LOWER, UPPER))
    for k, level in enumerate(lower.costs):
        for (rank, v), low in np.ndenumerate(level):
            members, high = members_of(rows.patterns, lower.literals(k, rank, v)), upper.costs[k][rank, v]
            if k and rows.counts[members].sum() < 5:
                assert low == high == np.inf
                continue
            refined = leaf_cost.interval(members)
            assert low <= refined[1]
            assert refined[0] <= high
            assert high - low <= 1e-9 * high + 1e-12 * upper.costs[0][0, 0]
