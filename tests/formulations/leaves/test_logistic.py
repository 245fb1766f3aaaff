"""Logistic leaves: intervals contain the exact cost, weights of the ridge are scaled columns, no leaf is refused."""

from dataclasses import replace

import numpy as np
import pytest
from flint import fmpq

from formulations.leaves.logistic import LogisticLeafCost
from tests.admiss.partition.exact_logistic import LogisticLeaves
from tests.formulations.leaves.test_any_loss import ONE, fraction, nasty_leaf


def nasty_classes(seed, most_rows=60):
    """The leaf of another test with two classes, which its columns may separate."""
    rows, ridge, scale = nasty_leaf(seed, most_rows)
    level = np.median(rows.y)
    return replace(rows, y=np.where(rows.y > level, 1.0, -1.0)), max(ridge, 1e-14), scale


@pytest.mark.parametrize("seeds", [range(30), pytest.param(range(30, 300), marks=pytest.mark.slow)])
def test_intervals_contain_the_exact_cost(seeds):
    for seed in seeds:
        rows, ridge, scale = nasty_classes(seed, most_rows=20)
        d = np.ones(rows.A.shape[1]) if rows.ridge_weights is None else rows.ridge_weights
        if ridge > 1.0 or ridge < 1e-6 or np.abs(rows.A).max(initial=0.0) > 1e3 or np.ptp(rows.y) == 0:
            continue
        scaled = rows.A / np.sqrt(d)
        leaves = LogisticLeaves(np.zeros((len(rows.s), 1)), scaled, rows.y[:, 0], rows.s, ridge, scale)
        low, high = leaves.enclosed(1)
        lower, upper = LogisticLeafCost(rows, ridge, scale).interval(ONE)
        unit = fmpq(2) ** leaves.shift
        assert fraction(lower) * unit <= high, seed
        assert fraction(upper) * unit >= low, seed


@pytest.mark.parametrize("scale", ["leaf", "sample"])
def test_ridge_weights_are_scaled_columns(scale):
    rng = np.random.default_rng(3)
    A, d = rng.normal(size=(60, 3)) + 2.0, np.array([0.01, 1.0, 30.0])
    y = np.where(A @ [1.0, -2.0, 1.0] + rng.normal(size=60) > 0, 1.0, -1.0)
    rows, _, _ = nasty_leaf(0)
    rows = replace(rows, start=np.array([0, 60]), A=A, y=np.column_stack([y, -y]), s=np.ones(60), ridge_weights=d)
    plain = replace(rows, A=A / np.sqrt(d), ridge_weights=None)
    weighted, scaled = LogisticLeafCost(rows, 0.7, scale), LogisticLeafCost(plain, 0.7, scale)
    model, other = weighted.fit(ONE), scaled.fit(ONE)
    assert model.cost == pytest.approx(other.cost, rel=1e-10)
    assert weighted.interval(ONE)[0] == pytest.approx(model.cost, rel=1e-9)
    assert model.intercept + A @ model.weights.T == pytest.approx(other.intercept + plain.A @ other.weights.T, abs=1e-7)


def test_no_leaf_ends_with_an_error():
    wide = 0
    for seed in range(200):
        rows, ridge, scale = nasty_classes(seed)
        leaf_cost = LogisticLeafCost(rows, ridge, scale)
        lower, upper = leaf_cost.interval(ONE)
        model = leaf_cost.fit(ONE)
        assert np.isfinite(np.append(model.weights, model.intercept)).all()
        assert 0.0 <= lower <= upper <= float(rows.s.sum()) * (np.log(2.0) + 1e-6)
        wide += upper - lower > 1e-6 * upper + 1e-9 * float(rows.s.sum())
    assert wide <= 10
