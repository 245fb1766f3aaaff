"""The best split of a leaf, and costs and models without proofs, agree with the fits of all sides."""

from dataclasses import replace

import numpy as np
import pytest

from formulations.leaves import squared_estimates
from formulations.leaves.cost import PatternRows
from formulations.leaves.logistic import LogisticLeafCost
from formulations.leaves.squared import SquaredLeafCost
from formulations.leaves.squared_estimates import SquaredEstimates
from tests.formulations.leaves.test_any_loss import nasty_leaf
from tests.formulations.leaves.test_cost import make_pattern_rows

ROWS = 20


def costs_of_splits(leaf_cost, members, features):
    """Cost of both sides for each feature, from their fits; infinite if one has too few rows."""
    totals = []
    for j in features:
        missing = leaf_cost.rows.patterns[members, j]
        sides = members[~missing], members[missing]
        few = any(leaf_cost.rows.counts[side].sum() < ROWS for side in sides)
        totals.append(np.inf if few else sum(leaf_cost.fit(side).cost for side in sides))
    return np.array(totals)


def parts_of(rows):
    """All patterns, and the halves of them."""
    everything = np.arange(len(rows.patterns))
    return [everything, everything[::2], everything[1::2]]


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("scale", ["leaf", "sample"])
def test_the_best_logistic_split_is_that_of_all_fits(seed, scale):
    rng = np.random.default_rng(seed)
    rows = make_pattern_rows(n=int(rng.integers(80, 400)), d=4, seed=seed, classes=True, weights=seed % 2 == 0)
    rows = replace(rows, y=np.column_stack([rows.y[:, 0], -rows.y[:, 0]])[:, : 1 + seed % 2])
    shared, features = LogisticLeafCost(rows, 1.0, scale), np.arange(4)
    for ridge in 10.0 ** rng.uniform(-3, 2, 4):
        leaf_cost, alone = shared.with_ridge(ridge), LogisticLeafCost(rows, ridge, scale)
        for members in parts_of(rows):
            split = leaf_cost.best_split(members, features, ROWS)
            total = costs_of_splits(alone, members, features)
            cost = alone.cost(members)
            if split is None:
                assert total.min() > cost * (1.0 - 1e-9)
            else:
                assert split.observed + split.missing == pytest.approx(total.min(), rel=1e-9)
                assert split.observed + split.missing < cost


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("scale", ["leaf", "sample"])
def test_estimates_are_the_fits_with_proofs(seed, scale):
    rng = np.random.default_rng(seed)
    rows = make_pattern_rows(n=int(rng.integers(30, 300)), d=4, seed=seed, weights=seed % 2 == 0)
    A = rows.A * 10.0 ** rng.uniform(-4, 4, rows.A.shape[1]) + np.where(seed % 3 == 0, 1e5, 0.0)
    rows = replace(rows, A=A, y=rows.y + (1e6 if seed % 5 == 0 else 0.0))
    shared, features = SquaredEstimates(rows, 1.0, scale), np.arange(4)
    for ridge in 10.0 ** rng.uniform(-3, 2, 4):
        estimates, exact = shared.with_ridge(ridge), SquaredLeafCost(rows, ridge, scale)
        for members in parts_of(rows):
            split, best = (cost.best_split(members, features, ROWS) for cost in (estimates, exact))
            assert split is None if best is None else split.feature == best.feature
            sides = [rows.patterns[members, best.feature] == side for side in (False, True)] if best else []
            for leaf in [members, *(members[side] for side in sides)]:
                estimate, model = estimates.fit(leaf), exact.fit(leaf)
                inside = A[rows.of_patterns(leaf)]
                scores, expected = (inside @ each.weights[0] + each.intercept for each in (estimate, model))
                size = np.ptp(rows.y)
                np.testing.assert_allclose(scores, expected, rtol=1e-9, atol=1e-7 * size)
                assert estimate.cost == pytest.approx(model.cost, rel=1e-6, abs=1e-9 * size**2)


def test_estimates_of_nasty_leaves_are_no_worse_than_fits():
    everything = np.array([0])
    for seed in range(300):
        rows, ridge, scale = nasty_leaf(seed, 40)
        estimates, exact = SquaredEstimates(rows, ridge, scale), SquaredLeafCost(rows, ridge, scale)
        estimate, model = estimates.fit(everything), exact.fit(everything)
        per = rows.s.sum() if scale == "sample" else 1.0
        values = []
        for each in (estimate, model):
            residual = rows.y[:, 0] - rows.A @ each.weights[0] - each.intercept
            values.append(rows.s @ residual**2 + per * ridge * estimates.ridge_weights @ each.weights[0] ** 2)
        spread = rows.s @ (rows.y[:, 0] - rows.s @ rows.y[:, 0] / rows.s.sum()) ** 2
        assert values[0] <= values[1] * (1.0 + 1e-6) + 1e-9 * spread, seed


def test_a_split_that_isolates_a_class_is_found():
    missing = np.zeros((1000, 2), dtype=bool)
    missing[500:, 0] = True
    for begin, end in [(0, 55), (300, 330), (700, 725)]:
        missing[begin:end, 1] = True
    y = np.where(np.arange(1000) < 100, -1.0, 1.0)
    patterns, codes = np.unique(missing, axis=0, return_inverse=True)
    rows = PatternRows.of(patterns, codes.ravel(), np.zeros((1000, 1)), y, np.ones(1000))
    split = LogisticLeafCost(rows, 1.0).best_split(np.arange(len(patterns)), np.arange(2), 1)
    assert split.feature == 0
    assert split.observed + split.missing == pytest.approx(250.20, abs=0.01)


def unbalanced_leaf(seed):
    """Few rows, of which few are negative, with columns that may separate them."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(20, 200)), int(rng.integers(3, 8))
    missing = rng.random((n, d)) < rng.uniform(0.05, 0.6, d)
    A = np.where(missing, 0.0, rng.normal(size=(n, d)))
    score = A @ rng.normal(size=d) + rng.choice([0.0, 3.0]) * (missing @ rng.normal(size=d))
    score += rng.choice([0.0, 1.0]) * rng.logistic(size=n)
    y = np.where(score > np.quantile(score, rng.choice([0.05, 0.1, 0.3])), 1.0, -1.0)
    patterns, codes = np.unique(missing, axis=0, return_inverse=True)
    return PatternRows.of(patterns, codes.ravel(), A, y, np.ones(n)), 10.0 ** rng.uniform(-3, 2)


def test_the_best_split_of_unbalanced_leaves_is_that_of_all_fits():
    for seed in range(150):
        rows, ridge = unbalanced_leaf(seed)
        members, features = np.arange(len(rows.patterns)), np.arange(rows.patterns.shape[1])
        split = LogisticLeafCost(rows, ridge).best_split(members, features, ROWS)
        total = costs_of_splits(LogisticLeafCost(rows, ridge), members, features)
        if split is not None:
            assert split.observed + split.missing == pytest.approx(total.min(), rel=1e-6, abs=1e-9), seed


def test_collinear_leaves_have_the_lower_ends_of_proofs():
    rng = np.random.default_rng(0)
    missing = rng.random((800, 6)) < 0.3
    A = np.where(missing, 0.0, rng.normal(size=(800, 6)))
    A[:, 5] = A[:, 4]
    patterns, codes = np.unique(missing, axis=0, return_inverse=True)
    rows = PatternRows.of(patterns, codes.ravel(), A, A @ np.ones(6) + rng.normal(size=800), np.ones(800))
    lower, upper = SquaredEstimates(rows, 0.0).interval(np.arange(len(patterns)))
    assert lower == pytest.approx(upper, rel=1e-6)


def test_models_have_no_rounding_errors_of_other_rows():
    rng = np.random.default_rng(0)
    absent = np.arange(400) < 200
    x = np.where(absent, np.where(np.arange(400) % 2, 1e8, -1e8), rng.normal(size=400))
    x[~absent] -= x[~absent].mean()
    A = np.column_stack([np.where(absent, 0.0, rng.normal(size=400)), x])
    patterns, codes = np.array([[False, False], [True, False]]), absent.astype(int)
    rows = PatternRows.of(patterns, codes, A, np.where(absent, 0.0, x), np.ones(400))
    estimates = SquaredEstimates(rows, 1e-6)
    estimates.best_split(np.arange(2), np.arange(2), ROWS)
    model = estimates.fit(np.array([0]))
    assert model.weights[0, 1] == pytest.approx(1.0, rel=1e-6)
    assert model.cost < 1e-5


def test_memory_of_sums_is_bounded(monkeypatch):
    monkeypatch.setattr(squared_estimates, "MOST_GRAMS", 10_000)
    held = squared_estimates.Held()
    for i in range(100):
        assert held.get(bytes([i]), lambda i=i: i, 999) == i
    assert held.get(bytes([99]), lambda: -1, 999) == 99
    assert held.get(bytes([0]), lambda: -1, 999) == -1
