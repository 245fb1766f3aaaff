"""Leaf costs: closed form, Newton and cvxpy agree; equivalent rows and patterns give the same cost."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

from formulations.leaves.any_loss import ProgramLeafCost
from formulations.leaves.cost import PatternRows
from formulations.leaves.logistic import LogisticLeafCost
from formulations.leaves.squared import SquaredLeafCost
from formulations.leaves.squared_estimates import SquaredEstimates
from formulations.losses import Absolute, Huber, Logistic, Quantile, Squared


def make_pattern_rows(n=80, d=3, seed=0, classes=False, weights=False):
    rng = np.random.default_rng(seed)
    X = 3.0 + rng.normal(size=(n, d))
    M = rng.uniform(size=(n, d)) < 0.4
    y = 10.0 + X @ rng.normal(size=d) + M @ rng.normal(size=d) + rng.normal(size=n)
    y = np.where(y > np.median(y), 1.0, -1.0) if classes else y
    s = rng.uniform(0.5, 2.0, size=n) if weights else np.ones(n)
    patterns, codes = np.unique(M, axis=0, return_inverse=True)
    return PatternRows.of(patterns, codes.ravel(), np.where(M, 0.0, X), y, s)


MEMBERS = np.array([0, 2, 3])


@pytest.mark.parametrize("scale", ["leaf", "sample"])
@pytest.mark.parametrize("ridge", [0.0, 0.7])
@pytest.mark.parametrize("n", [60, 4000])
def test_closed_form_is_the_ridge_regression_of_the_rows(scale, ridge, n):
    rows = make_pattern_rows(n, weights=True)
    leaf_cost = SquaredLeafCost(rows, ridge, scale)
    indices = rows.of_patterns(MEMBERS)
    A, y, s = rows.A[indices], rows.y[indices, 0], rows.s[indices]
    alpha = ridge * (s.sum() if scale == "sample" else 1.0)
    ridge_model = Ridge(alpha=alpha, solver="svd").fit(A, y, s)
    value = s @ (y - ridge_model.predict(A)) ** 2 + alpha * ridge_model.coef_ @ ridge_model.coef_
    fitted = leaf_cost.fit(MEMBERS)
    assert fitted.cost == pytest.approx(value, rel=1e-10)
    assert leaf_cost.cost(MEMBERS) == pytest.approx(value, rel=1e-10)
    assert fitted.weights[0] == pytest.approx(ridge_model.coef_, abs=1e-8)
    assert fitted.intercept[0] == pytest.approx(ridge_model.intercept_)


def test_columns_that_explain_each_other_have_a_cost():
    rows = make_pattern_rows()
    doubled = PatternRows(rows.patterns, rows.start, np.hstack([rows.A, rows.A, np.ones_like(rows.A)]), rows.y, rows.s)
    single, double = SquaredLeafCost(rows, 0.0), SquaredLeafCost(doubled, 0.0)
    assert double.cost(MEMBERS) == pytest.approx(single.cost(MEMBERS), rel=1e-9)
    assert double.fit(MEMBERS).cost == pytest.approx(single.cost(MEMBERS), rel=1e-9)


def test_fewer_rows_than_columns_cost_nothing_without_ridge():
    rows = make_pattern_rows(n=40, d=3)
    smallest = int(rows.counts.argmin())
    assert rows.counts[smallest] <= 4
    assert SquaredLeafCost(rows, 0.0).cost(np.array([smallest])) == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("scale", ["leaf", "sample"])
@pytest.mark.parametrize("kind", [SquaredLeafCost, SquaredEstimates, LogisticLeafCost])
def test_costs_of_the_best_split_are_those_of_its_sides(kind, scale):
    rows = make_pattern_rows(classes=kind is LogisticLeafCost)
    leaf_cost = kind(rows, 0.5, scale)
    everything, features = np.arange(len(rows.patterns)), np.array([0, 2])
    split = leaf_cost.best_split(everything, features, 1)
    inside = rows.patterns[:, split.feature]
    assert split.observed == pytest.approx(leaf_cost.fit(everything[~inside]).cost, rel=1e-10)
    assert split.missing == pytest.approx(leaf_cost.fit(everything[inside]).cost, rel=1e-10)
    assert leaf_cost.best_split(everything, features, 80) is None


@pytest.mark.parametrize("scale", ["leaf", "sample"])
def test_newton_agrees_with_cvxpy_and_scikit_learn(scale):
    rows = make_pattern_rows(200, classes=True, weights=True)
    newton = LogisticLeafCost(rows, 0.3, scale)
    fitted = newton.fit(MEMBERS)
    program = ProgramLeafCost(rows, Logistic(), 0.3, scale).fit(MEMBERS)
    assert fitted.cost == pytest.approx(program.cost, rel=1e-8)
    assert fitted.cost <= program.cost * (1 + 1e-12)
    indices = rows.of_patterns(MEMBERS)
    s = rows.s[indices]
    C = 0.5 / newton.penalty(float(s.sum()))
    model = LogisticRegression(C=C, tol=1e-12, max_iter=10_000).fit(rows.A[indices], rows.y[indices, 0], s)
    assert fitted.weights[0] == pytest.approx(model.coef_[0], abs=1e-5)


def test_a_leaf_with_one_class_is_certain():
    rows = make_pattern_rows(classes=True)
    one = PatternRows(rows.patterns, rows.start, rows.A, np.ones_like(rows.y), rows.s)
    fitted = LogisticLeafCost(one, 1.0).fit(MEMBERS)
    assert fitted.cost < 1e-10
    assert fitted.intercept[0] == 30.0


@pytest.mark.parametrize("loss", [Absolute(), Huber(1.0), Quantile(0.8), Squared()])
def test_programs_find_the_minimum(loss):
    import scipy.optimize

    rows = make_pattern_rows(70)
    program = ProgramLeafCost(rows, loss, 0.2)
    for members in (MEMBERS, np.array([1]), np.arange(len(rows.patterns))):
        fitted = program.fit(members)
        indices = rows.of_patterns(members)
        A, y = np.column_stack([np.ones(len(indices)), rows.A[indices]]), rows.y[indices, 0]

        def cost(v, A=A, y=y):
            return loss.value(y, A @ v).sum() + 0.2 * v[1:] @ v[1:]

        start = np.append(fitted.intercept, fitted.weights)
        assert fitted.cost == pytest.approx(cost(start), rel=1e-12)
        other = scipy.optimize.minimize(cost, start + 0.01, method="Powell", options={"xtol": 1e-10, "ftol": 1e-14})
        assert fitted.cost <= other.fun + 1e-6 * abs(other.fun)
    if isinstance(loss, Squared):
        assert program.fit(MEMBERS).cost == pytest.approx(SquaredLeafCost(rows, 0.2).cost(MEMBERS), rel=1e-8)


def test_offset_and_units_do_not_spoil_a_program():
    rows = make_pattern_rows(70)
    far = PatternRows(rows.patterns, rows.start, rows.A, 1e5 + 0.01 * rows.y, rows.s)
    plain, shifted = ProgramLeafCost(rows, Absolute(), 0.0), ProgramLeafCost(far, Absolute(), 0.0)
    assert shifted.fit(MEMBERS).cost == pytest.approx(0.01 * plain.fit(MEMBERS).cost, rel=1e-6)


def test_logistic_without_ridge_is_refused():
    with pytest.raises(ValueError, match="ridge > 0"):
        LogisticLeafCost(make_pattern_rows(classes=True), 0.0)


def test_another_ridge_forgets_costs():
    rows = make_pattern_rows(classes=True)
    first = LogisticLeafCost(rows, 1.0)
    first.cost(MEMBERS)
    assert first.with_ridge(5.0).cost(MEMBERS) == LogisticLeafCost(rows, 5.0).cost(MEMBERS)


def test_union_costs_at_least_the_parts_with_the_sample_scaled_ridge():
    for seed in range(20):
        leaf_cost = SquaredLeafCost(make_pattern_rows(seed=seed), 0.1, "sample")
        parts = [leaf_cost.cost(np.array([p])) for p in MEMBERS]
        assert leaf_cost.cost(MEMBERS) >= sum(parts) * (1 - 1e-12)
