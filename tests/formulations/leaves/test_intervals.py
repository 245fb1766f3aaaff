"""Intervals of leaf costs contain the exact cost, computed in fractions, and are narrow where that is possible."""

from fractions import Fraction

import numpy as np
import pytest

from formulations.leaves.box_costs import box_costs, members_of
from formulations.leaves.cholesky import LOWER, UPPER
from formulations.leaves.cost import PatternRows
from formulations.leaves.squared import SquaredLeafCost

SCALES = ("leaf", "sample")


def exact_cost(rows, members, ridge, ridge_scale):
    """c(G) by elimination in fractions: the last pivot of the Gram matrix of (1, a, y)."""
    inside = rows.of_patterns(members)
    table = [[Fraction(1), *map(Fraction, rows.A[i].tolist()), Fraction(float(rows.y[i, 0]))] for i in inside]
    weights = [Fraction(float(w)) for w in rows.s[inside]]
    order = len(table[0])
    G = [
        [sum(w * z[i] * z[j] for w, z in zip(weights, table, strict=True)) for j in range(order)] for i in range(order)
    ]
    strength = Fraction(ridge) * (sum(weights) if ridge_scale == "sample" else 1)
    for i in range(1, order - 1):
        G[i][i] += strength
    for i in range(order - 1):
        if G[i][i]:  # a pivot of 0 has a row of zeros
            for j in range(i + 1, order):
                factor = G[j][i] / G[i][i]
                G[j] = [a - factor * b for a, b in zip(G[j], G[i], strict=True)]
    return G[-1][-1]


def nasty_rows(seed):
    """Few rows with collinear, nearly collinear, duplicated and constant columns, offsets and units."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(8, 40)), 3
    M = rng.random((n, d)) < 0.4
    X = rng.standard_normal((n, d))
    if seed % 3 == 0:
        X[:, 2] = X[:, 0] + 10.0 ** -rng.integers(3, 9) * rng.standard_normal(n)
    if seed % 4 == 1:
        X[:, 1] = X[:, 0]
    if seed % 5 == 2:
        X[:, 1] += 1e6
    y = X @ rng.standard_normal(d) + rng.standard_normal(n)
    X *= 10.0 ** rng.integers(-6, 7, size=d) if seed % 2 else 1.0
    A = np.where(M, 0.0, X)
    if seed % 7 == 3:
        A = np.hstack([A, M])
    patterns, codes = np.unique(M, axis=0, return_inverse=True)
    weights = np.ones(n) if seed % 3 else 10.0 ** rng.uniform(-3, 3, size=n)
    return PatternRows.of(patterns, codes.ravel(), A, y, weights)


@pytest.mark.parametrize("seed", range(40))
def test_boxes_are_enclosed(seed):
    rows, ridge = nasty_rows(seed), [0.0, 1e-14, 1e-3, 1.0][seed % 4]
    leaf_cost = SquaredLeafCost(rows, ridge, SCALES[seed % 2])
    lower, upper = (box_costs(leaf_cost, np.arange(3), 2, 1, end=end) for end in (LOWER, UPPER))
    root = exact_cost(rows, np.arange(len(rows.patterns)), ridge, SCALES[seed % 2])
    for k, level in enumerate(lower.costs):
        for (rank, v), low in np.ndenumerate(level):
            members = members_of(rows.patterns, lower.literals(k, rank, v))
            if not len(members):
                assert np.isinf(low)
                continue
            exact = exact_cost(rows, members, ridge, SCALES[seed % 2])
            assert Fraction(float(low)) <= exact <= Fraction(float(upper.costs[k][rank, v]))
            refined = leaf_cost.interval(members)
            assert Fraction(refined[0]) <= exact <= Fraction(refined[1])
            assert refined[1] - refined[0] <= 1e-10 * refined[1] + 1e-13 * float(root) or refined[0] == 0.0


def test_well_conditioned_leaves_are_narrow_from_gram_matrices():
    rng = np.random.default_rng(0)
    n, d = 2000, 5
    M = rng.random((n, d)) < 0.3
    X = rng.standard_normal((n, d))
    patterns, codes = np.unique(M, axis=0, return_inverse=True)
    rows = PatternRows.of(patterns, codes.ravel(), np.where(M, 0.0, X), X.sum(axis=1) + rng.normal(size=n), np.ones(n))
    for ridge in (0.0, 1.0):
        leaf_cost = SquaredLeafCost(rows, ridge)
        lower, upper = (box_costs(leaf_cost, np.arange(d), 3, 20, end=end) for end in (LOWER, UPPER))
        for low, high in zip(lower.costs, upper.costs, strict=True):
            finite = np.isfinite(low)
            assert np.all(high[finite] - low[finite] <= 1e-10 * high[finite])


def test_exactly_dependent_columns_are_settled_without_a_ridge():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((60, 2))
    A = np.column_stack([X, X[:, 0], X[:, 1] * 4.0, rng.integers(0, 2, size=(60, 1)), np.full(60, 0.3)])
    A = np.column_stack([A, 1.0 - A[:, 4]])
    rows = PatternRows(np.zeros((1, 2), dtype=bool), np.array([0, 60]), A, rng.normal(size=(60, 1)), np.ones(60))
    low, high = SquaredLeafCost(rows, 0.0).interval(np.array([0]))
    assert 0 < high - low <= 1e-11 * high
    assert Fraction(low) <= exact_cost(rows, np.array([0]), 0.0, "leaf") <= Fraction(high)


def test_a_column_that_depends_up_to_rounding_is_not_called_dependent():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((30, 2))
    A = np.column_stack([X, 3.0 * X[:, 0] + X[:, 1]])  # rounded, so that it is a direction of its own
    rows = PatternRows(np.zeros((1, 2), dtype=bool), np.array([0, 30]), A, rng.normal(size=(30, 1)), np.ones(30))
    low, high = SquaredLeafCost(rows, 0.0).interval(np.array([0]))
    assert Fraction(low) <= exact_cost(rows, np.array([0]), 0.0, "leaf") <= Fraction(high)
