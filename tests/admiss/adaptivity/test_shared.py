"""Sharing pattern submodels: the program of the paper, its limits, and many patterns."""

import cvxpy as cp
import numpy as np
import pytest

from admiss import AdaptiveClassifier, AdaptiveRegressor, AdaptiveRegressorCV
from admiss.adaptivity import BinnedAffine, FrequentPatterns, SharedPatterns
from admiss.patterns import PatternTable
from admiss.testing import check_adaptivity


def make_rows(n=120, offset=0.0):
    """Rows with two patterns of a single row, one of them without features."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(n, 4))
    M = rng.uniform(size=(n, 4)) < [0.5, 0.3, 0.0, 0.1]
    M[:2] = [[True] * 4, [False, True, True, False]]
    y = 3.0 + values @ np.arange(1.0, 5.0) + M @ rng.normal(size=4) * values[:, 0] + rng.normal(size=n)
    return np.where(M, np.nan, values * [1.0, 5.0, 0.1, 1.0] + offset), y


def papers_program(Z, y, lambda_0, strength, logistic=False):
    """Objective and predictions of the program as the paper states it, with theta and one Delta per pattern."""
    (n, d), table = Z.shape, PatternTable.of(np.isnan(Z))
    with_one = np.column_stack([np.ones(n), np.nan_to_num(Z)])
    theta, Delta = cp.Variable(d + 1), cp.Variable((d + 1, len(table.patterns)))
    z = with_one @ theta + cp.sum(cp.multiply(with_one, Delta[:, table.codes].T), axis=1)
    loss = cp.sum(cp.logistic(cp.multiply(-y, z))) if logistic else cp.sum_squares(y - z)
    penalties = lambda_0 / n * cp.norm1(theta[1:]) + cp.sum(cp.abs(Delta), axis=0) @ (strength / table.counts)
    value = cp.Problem(cp.Minimize(loss / n + penalties)).solve(solver="CLARABEL")
    return value, z.value


@pytest.mark.parametrize(("lambda_0", "strength"), [(1.0, 1.0), (0.2, 5.0), (20.0, 0.05)])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_the_squared_loss_gives_the_papers_program(lambda_0, strength, offset):
    X, y = make_rows(offset=offset)
    options = {"lam": lambda_0, "l1_ratio": 1.0, "adaptive_penalty": strength / lambda_0}
    model = AdaptiveRegressor("shared_patterns", **options).fit(X, y)
    Z = (X - model.design_.centre) / model.design_.scale
    objective, predictions = papers_program(Z, y, lambda_0, strength)
    assert model.certificate_.status == "optimal"
    assert model.certificate_.objective == pytest.approx(objective, rel=1e-7)
    np.testing.assert_allclose(model.predict(X), predictions, atol=1e-3)


def test_the_logistic_loss_gives_the_papers_program():
    X, y = make_rows()
    labels = np.where(y > np.median(y), 1.0, -1.0)
    model = AdaptiveClassifier(
        "shared_patterns", lam=0.3, l1_ratio=1.0, adaptive_penalty=2.0, scale=False, center=False
    ).fit(X, labels)
    objective, log_odds = papers_program(X, labels, 0.3, 0.6, logistic=True)
    assert model.certificate_.status == "optimal"
    assert model.certificate_.objective == pytest.approx(objective, rel=1e-6)
    np.testing.assert_allclose(model.decision_function(X), log_odds, atol=1e-2)


def test_auto_is_as_strong_for_deviations_as_for_shared_weights():
    X, y = make_rows()
    options = {"lam": 0.5, "l1_ratio": 1.0}
    auto = AdaptiveRegressor("shared_patterns", **options).fit(X, y)
    one = AdaptiveRegressor("shared_patterns", adaptive_penalty=1.0, **options).fit(X, y)
    assert auto.certificate_.objective == one.certificate_.objective


def test_unseen_patterns_use_the_shared_weights():
    X, y = make_rows()
    unseen = (np.isnan(X) == [True, True, False, False]).all(axis=1)
    assert unseen.any()
    model = AdaptiveRegressor("shared_patterns", lam=0.3, l1_ratio=1.0).fit(X[~unseen], y[~unseen])
    table = model.coef_table()
    theta = {f: w for f, b, w in zip(table["feature"], table["basis"], table["coefficient"], strict=True) if b == "1"}
    np.testing.assert_allclose(model.coef_at([1, 1, 0, 0]), [0.0, 0.0, theta["x2"], theta["x3"]], atol=1e-12)


def test_the_rarest_patterns_go_first():
    rng = np.random.default_rng(1)
    M = rng.uniform(size=(3000, 12)) < 0.5
    X, y = np.where(M, np.nan, rng.normal(size=M.shape)), rng.normal(size=3000)
    fitted = SharedPatterns(max_columns=300).fit(X, M)
    table = PatternTable.of(M)
    assert 0 < fitted.mask(12)[:, 1:].sum() <= 300 < (1 + (~table.patterns[table.counts >= fitted.min_rows_ - 1])).sum()
    assert set(fitted.weights_) == {size for size in table.counts if size >= fitted.min_rows_}
    few = SharedPatterns(min_rows=4).fit(X, M)
    assert few.min_rows_ == 4
    assert len(few.patterns_) == (table.counts >= 4).sum()
    assert SharedPatterns(max_columns=0).fit(X, M).mask(12).sum() == 13
    model = AdaptiveRegressorCV(SharedPatterns(max_columns=100), n_lambdas=5, random_state=0).fit(X[:400], y[:400])
    assert model.certificate_.status == "optimal"


@pytest.mark.slow
@pytest.mark.parametrize("adaptivity", [SharedPatterns(9, 20), FrequentPatterns(3), BinnedAffine(3)], ids=repr)
def test_contract_with_other_parameters(adaptivity):
    check_adaptivity(adaptivity)
