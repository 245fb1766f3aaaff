"""Leaves of any convex loss: intervals contain the exact cost, and ill-conditioned leaves end with a model."""

from dataclasses import replace

import numpy as np
import pytest
from flint import fmpq

from formulations.leaves.any_loss import ProgramLeafCost
from formulations.leaves.cost import PatternRows
from formulations.losses import Absolute, Huber, Logistic, Quantile, Squared, best_constant
from tests.admiss.partition.exact_losses import AbsoluteLeaves, HuberLeaves, QuantileLeaves

ONE = np.array([0])
EXACT = {Absolute(): AbsoluteLeaves, Quantile(0.5): QuantileLeaves, Huber(1.0): HuberLeaves}


def nasty_leaf(seed, most_rows=60):
    """A leaf with few rows, dependent columns, offsets, units, ties, weights of twelve decades or without a column."""
    rng = np.random.default_rng(seed)
    n, k = int(rng.choice([1, 2, 3, 5, 8, 20, most_rows])), int(rng.choice([0, 1, 2, 4, 8]))
    A, kind = rng.normal(size=(n, k)), int(rng.integers(8))
    if k > 1:
        A[:, 1] = {0: A[:, 0], 1: A[:, 0] + 1e-9 * A[:, 1], 2: 3.0 * A[:, 0], 3: np.ones(n)}.get(kind, A[:, 1])
    if kind == 4:
        A *= 10.0 ** rng.integers(-8, 9, size=k)
    if kind == 5:
        A += 1e6
    y = A.sum(axis=1) / (1.0 + np.abs(A).max(initial=0.0)) + rng.standard_t(1.5, size=n)
    y = np.round(y) if rng.random() < 0.2 else y
    y = (y + 1e6 * (rng.random() < 0.2)) * 10.0 ** rng.integers(-6, 7)
    s = 10.0 ** rng.uniform(-6, 6, size=n) if rng.random() < 0.5 else np.ones(n)
    d = 4.0 ** rng.integers(-6, 7, size=k) if rng.random() < 0.5 else None
    ridge = float(rng.choice([0.0, 1e-12, 1e-3, 1.0, 1e6, 1e30, 1e300]))
    rows = PatternRows(np.zeros((1, 1), dtype=bool), np.array([0, n]), A, y[:, None], s, d)
    return rows, ridge, ("leaf", "sample")[int(rng.integers(2))]


def value(rows, loss, ridges, model):
    """The cost of a model, from its predictions."""
    prediction = model.intercept[0] + rows.A @ model.weights[0]
    return float(rows.s @ loss.value(rows.y[:, 0], prediction) + ridges @ model.weights[0] ** 2)


@pytest.mark.parametrize("loss", EXACT, ids=str)
@pytest.mark.parametrize("seeds", [range(25), pytest.param(range(25, 300), marks=pytest.mark.slow)])
def test_intervals_contain_the_exact_cost(loss, seeds):
    for seed in seeds:
        rows, ridge, scale = nasty_leaf(seed, most_rows=20)
        d = np.ones(rows.A.shape[1]) if rows.ridge_weights is None else rows.ridge_weights
        if ridge > 1.0 or not len(d):
            continue
        leaves = EXACT[loss](np.zeros((len(rows.s), 1)), rows.A / np.sqrt(d), rows.y[:, 0], rows.s, ridge, scale)
        low, high = leaves.enclosed(1)
        lower, upper = ProgramLeafCost(rows, loss, ridge, scale).interval(ONE)
        unit = fmpq(2) ** leaves.shift
        assert fraction(lower) * unit <= high, seed
        assert fraction(upper) * unit >= low, seed


def fraction(number):
    return fmpq(*float(number).as_integer_ratio())


@pytest.mark.parametrize("loss", [Absolute(), Quantile(0.9), Huber(1.0)], ids=str)
def test_no_leaf_ends_with_an_error(loss):
    wide = 0
    for seed in range(60):
        rows, ridge, scale = nasty_leaf(seed)
        leaf_cost = ProgramLeafCost(rows, loss, ridge, scale)
        lower, upper = leaf_cost.interval(ONE)
        model = leaf_cost.fit(ONE)
        assert np.isfinite(upper)
        assert np.isfinite(np.append(model.weights, model.intercept)).all()
        y, b = rows.y[:, 0], best_constant(rows.y[:, 0], rows.s, loss)[0]
        constant = float(rows.s @ loss.value(y, np.full_like(y, b)))
        rounding = 1e-9 * float(rows.s @ loss.value(y, np.zeros_like(y)))
        assert upper <= constant * (1.0 + 1e-6) + rounding
        wide += upper - lower > 1e-5 * upper + 1e-9 * constant + rounding
    assert wide <= 15  # twelve decades of weights, columns that depend on each other up to rounding


@pytest.mark.parametrize("loss", [Absolute(), Quantile(0.8), Huber(0.5), Squared()], ids=str)
@pytest.mark.parametrize("scale", ["leaf", "sample"])
def test_ridge_weights_are_scaled_columns(loss, scale):
    rng = np.random.default_rng(3)
    A, d = rng.normal(size=(40, 3)) + 2.0, np.array([0.01, 1.0, 30.0])
    y, s = A @ [1.0, -2.0, 3.0] + rng.normal(size=40), rng.uniform(0.5, 2.0, size=40)
    rows = PatternRows(np.zeros((1, 1), dtype=bool), np.array([0, 40]), A, y[:, None], s, d)
    plain = replace(rows, A=A / np.sqrt(d), ridge_weights=None)
    weighted, scaled = ProgramLeafCost(rows, loss, 0.7, scale), ProgramLeafCost(plain, loss, 0.7, scale)
    model, other = weighted.fit(ONE), scaled.fit(ONE)
    assert model.cost == pytest.approx(other.cost, rel=1e-7)
    assert weighted.interval(ONE)[0] == pytest.approx(model.cost, rel=1e-7)
    prediction = model.intercept + A @ model.weights[0]
    assert prediction == pytest.approx(other.intercept + plain.A @ other.weights[0], abs=1e-5)
    ridges = 0.7 * d * (s.sum() if scale == "sample" else 1.0)
    assert model.cost == pytest.approx(value(rows, loss, ridges, model), rel=1e-9)


@pytest.mark.parametrize("loss", [Absolute(), Quantile(0.8), Huber(0.5), Squared()], ids=str)
def test_without_columns_the_best_constant_is_proven(loss):
    rng = np.random.default_rng(0)
    y, s = rng.standard_t(2, size=30), rng.uniform(0.1, 3.0, size=30)
    rows = PatternRows(np.zeros((1, 1), dtype=bool), np.array([0, 30]), np.zeros((30, 0)), y[:, None], s)
    lower, upper = ProgramLeafCost(rows, loss, 1.0).interval(ONE)
    grid = np.concatenate([y, np.linspace(-3, 3, 2001)])
    best = min(float(s @ loss.value(y, np.full(30, b))) for b in grid)
    assert lower <= upper <= lower * (1.0 + 1e-9)
    assert upper == pytest.approx(best, rel=1e-4)


def test_best_constant_of_classes_is_their_log_odds():
    b, theta = best_constant(np.array([1.0, 1.0, -1.0]), np.ones(3), Logistic())
    assert b == pytest.approx(np.log(2.0))
    assert theta.sum() == pytest.approx(0.0, abs=1e-12)


def test_a_leaf_that_no_solver_solves_keeps_a_constant(monkeypatch):
    monkeypatch.setattr("formulations.leaves.any_loss.run", lambda *_: ("a panic of the solver", np.inf))
    rows, _, _ = nasty_leaf(11)
    rows = replace(rows, A=np.random.default_rng(0).normal(size=(len(rows.s), 2)), ridge_weights=None)
    leaf_cost = ProgramLeafCost(rows, Absolute(), 1.0)
    lower, upper = leaf_cost.interval(ONE)
    b, _ = best_constant(rows.y[:, 0], rows.s, Absolute())
    assert not leaf_cost.fit(ONE).weights.any()
    assert leaf_cost.fit(ONE).intercept[0] == pytest.approx(b)
    assert 0.0 <= lower <= upper


def test_the_median_of_an_even_number_of_rows_is_halfway():
    b, theta = best_constant(np.array([4.0, 1.0, 3.0, 2.0]), np.ones(4), Absolute())
    assert b == 2.5
    assert theta.tolist() == [-1.0, 1.0, -1.0, 1.0]
