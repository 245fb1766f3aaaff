"""The residual of the polynomial class is below every tree, and is that of the stated least-squares problem."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from formulations.leaves.any_loss import ProgramLeafCost
from formulations.leaves.box_costs import box_costs
from formulations.leaves.cost import PatternRows
from formulations.leaves.squared import SquaredLeafCost
from formulations.losses import Absolute
from formulations.trees import polynomial_bound as module
from formulations.trees.dynamic_program import best_tree
from formulations.trees.polynomial_bound import polynomial_bound
from tests.formulations.rows import random_rows


def with_indicators(rows):
    return replace(rows, A=np.column_stack([rows.A, np.repeat(rows.patterns, rows.counts, axis=0)]))


def least_squares(rows, features, order):
    """The bound as it is stated, from all rows and all columns."""
    M = np.repeat(rows.patterns, rows.counts, axis=0)[:, features]
    subsets = [list(S) for k in range(order + 1) for S in combinations(range(len(features)), k)]
    A = np.column_stack([np.ones(len(M)), rows.A])
    X = np.column_stack([A * M[:, S].all(axis=1)[:, None] for S in subsets]) * np.sqrt(rows.s)[:, None]
    y = rows.y[:, 0] * np.sqrt(rows.s)
    residual = y - X @ np.linalg.lstsq(X, y, rcond=1e-12)[0]
    return residual @ residual


@pytest.mark.parametrize("seed", range(20))
def test_below_the_best_tree(seed):
    rng = np.random.default_rng(seed)
    d, depth = int(rng.integers(2, 6)), int(rng.integers(1, 4))
    rows = random_rows(rng, int(rng.integers(50, 400)), d)
    rows = with_indicators(rows) if seed % 3 == 0 else rows
    features = np.sort(rng.permutation(d)[: rng.integers(1, d + 1)])
    depth = min(depth, len(features))
    for ridge, scale in ((0.0, "leaf"), (0.1, "leaf"), (0.01, "sample")):
        leaf_cost = SquaredLeafCost(rows, ridge, scale)
        _, value = best_tree(box_costs(leaf_cost, features, depth, 1), 1 << depth)
        assert 0.0 <= polynomial_bound(leaf_cost, features, depth) <= value


@pytest.mark.parametrize("indicators", [False, True])
@pytest.mark.parametrize("order", [0, 1, 2, 3])
def test_is_the_least_squares_problem(order, indicators):
    rows = random_rows(np.random.default_rng(order), 400, 4)
    rows = with_indicators(rows) if indicators else rows
    bound = polynomial_bound(SquaredLeafCost(rows, 1.0), np.array([0, 2, 3]), order)
    expected = least_squares(rows, np.array([0, 2, 3]), order)
    assert expected > 0
    assert bound == pytest.approx(expected, rel=1e-8)
    assert bound <= expected


def test_order_0_is_one_leaf_and_full_order_a_model_for_each_pattern():
    rows = random_rows(np.random.default_rng(0), 500, 3)
    leaf_cost = SquaredLeafCost(rows, 0.0)
    patterns = np.arange(len(rows.patterns))
    assert polynomial_bound(leaf_cost, np.arange(3), 0) == pytest.approx(leaf_cost.cost(patterns), rel=1e-8)
    apart = leaf_cost.total([[p] for p in patterns])
    assert polynomial_bound(leaf_cost, np.arange(3), 3) == pytest.approx(apart, rel=1e-8)


def test_blocks_of_rows(monkeypatch):
    rows = random_rows(np.random.default_rng(5), 400, 4)
    leaf_cost = SquaredLeafCost(rows, 1.0)
    whole = polynomial_bound(leaf_cost, np.arange(4), 2)
    monkeypatch.setattr(module, "BLOCK", 17)
    assert polynomial_bound(leaf_cost, np.arange(4), 2) == pytest.approx(whole, rel=1e-10)


def test_too_many_columns_bounds_by_a_model_for_each_pattern(monkeypatch):
    rows = random_rows(np.random.default_rng(0), 500, 3)
    leaf_cost = SquaredLeafCost(rows, 0.5)
    full = polynomial_bound(leaf_cost, np.arange(3), 2)
    monkeypatch.setattr(module, "MOST_WORK", 500 * 25)
    apart = SquaredLeafCost(rows, 0.0).total([[p] for p in range(len(rows.patterns))])
    bound = polynomial_bound(leaf_cost, np.arange(3), 2)
    assert bound == pytest.approx(apart, rel=1e-8)
    assert 0 < bound < full


def test_zero_where_nothing_is_known():
    rng = np.random.default_rng(0)
    assert polynomial_bound(SquaredLeafCost(random_rows(rng, 20, 5), 0.1), np.arange(5), 3) == 0.0
    rows = random_rows(rng, 200, 3)
    assert polynomial_bound(ProgramLeafCost(rows, Absolute(), 0.0), np.arange(3), 1) == 0.0
    exact = PatternRows(rows.patterns, rows.start, rows.A, rows.A @ np.ones((3, 1)), rows.s)
    assert polynomial_bound(SquaredLeafCost(exact, 0.0), np.arange(3), 1) == 0.0


def test_rank_deficient_columns():
    rows = random_rows(np.random.default_rng(2), 300, 3)
    A = np.column_stack([rows.A, 2.0 * rows.A[:, 0], np.ones(300), np.zeros(300)])
    copied = PatternRows(rows.patterns, rows.start, A, rows.y, rows.s)
    plain, more = (polynomial_bound(SquaredLeafCost(each, 0.1), np.arange(3), 2) for each in (rows, copied))
    assert more == pytest.approx(plain, rel=1e-8)
