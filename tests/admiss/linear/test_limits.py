"""Limits in which two models coincide."""

import numpy as np
import pytest
from scipy.optimize import minimize

from admiss import AdaptiveClassifier, AdaptiveRegressor
from admiss.adaptivity import Affine, AffineIntercept, FullyAdaptive, Polynomial, Static

CLASSES = [Static(), AffineIntercept(), Affine(), Polynomial(2), FullyAdaptive()]
LAMBDAS = [0.0, 0.3, 5.0]


def scores(model, X):
    return model.decision_function(X) if isinstance(model, AdaptiveClassifier) else model.predict(X)


@pytest.fixture(params=[AdaptiveRegressor, AdaptiveClassifier], ids=["regression", "classification"])
def task(request, make_rows):
    """An estimator class with rows; the classes overlap, which gives lam = 0 a solution."""
    X, y = make_rows(n=400, d=3)
    if request.param is AdaptiveRegressor:
        return AdaptiveRegressor, X, y
    noisy = y + 4 * np.random.default_rng(5).normal(size=len(y))
    return AdaptiveClassifier, X, (noisy > np.median(noisy)).astype(int)


@pytest.mark.parametrize("lam", LAMBDAS)
def test_polynomials_of_low_order(task, lam):
    estimator, X, y = task
    for order, simpler in ((0, Static()), (1, Affine())):
        polynomial = estimator(Polynomial(order), lam=lam).fit(X, y)
        np.testing.assert_allclose(
            scores(polynomial, X), scores(estimator(simpler, lam=lam).fit(X, y), X), rtol=1e-6, atol=1e-6
        )


@pytest.mark.parametrize("order", [2, 3, 4])
def test_polynomial_of_high_order_is_fully_adaptive(task, order):
    """Order d - 1 reaches the weights; the all-missing pattern would need order d in the intercept, and is absent."""
    estimator, X, y = task
    polynomial = estimator(Polynomial(order), lam=0).fit(X, y)
    full = estimator(FullyAdaptive(), lam=0).fit(X, y)
    np.testing.assert_allclose(scores(polynomial, X), scores(full, X), rtol=1e-5, atol=1e-5)
    below = estimator(Polynomial(1), lam=0).fit(X, y)
    assert np.abs(scores(below, X) - scores(full, X)).max() > 1e-2


@pytest.mark.parametrize("lam", LAMBDAS)
def test_without_missing_data_all_classes_are_one(task, lam):
    estimator, X, y = task
    X = np.nan_to_num(X)
    expected = scores(estimator("static", lam=lam).fit(X, y), X)
    for adaptivity in CLASSES[1:]:
        found = scores(estimator(adaptivity, lam=lam, adaptive_penalty=7.0).fit(X, y), X)
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


def test_affine_intercept_is_the_best_constant_imputation(make_rows):
    """Against a search over mu with least squares inside."""
    X, y = make_rows(n=200, d=3)
    M = np.isnan(X)
    model = AdaptiveRegressor("affine_intercept", lam=0).fit(X, y)
    assert np.all(model.coef_at([0, 0, 0]) != 0)

    def least_squares(mu):
        A = np.column_stack([np.ones(len(y)), np.where(M, mu, np.nan_to_num(X))])
        w = np.linalg.lstsq(A, y, rcond=None)[0]
        return np.mean((y - A @ w) ** 2)

    search = minimize(
        least_squares,
        model.imputation_ + 0.5,
        method="Nelder-Mead",
        options={"fatol": 1e-14, "xatol": 1e-9, "maxiter": 10_000},
    )
    assert model.certificate_.objective == pytest.approx(search.fun, rel=1e-7)
    np.testing.assert_allclose(model.imputation_, search.x, atol=1e-3)
    assert least_squares(model.imputation_) == pytest.approx(model.certificate_.objective, rel=1e-9)


def test_fully_adaptive_is_a_regression_for_each_pattern(make_rows):
    from sklearn.linear_model import LinearRegression

    X, y = make_rows(n=400, d=3)
    M = np.isnan(X)
    model = AdaptiveRegressor("fully_adaptive", lam=0).fit(X, y)
    for pattern in np.unique(M, axis=0):
        rows = (M == pattern).all(axis=1)
        own = LinearRegression().fit(X[rows][:, ~pattern], y[rows])
        np.testing.assert_allclose(model.coef_at(pattern)[~pattern], own.coef_, rtol=1e-7, atol=1e-9)
        assert model.intercept_at(pattern) == pytest.approx(own.intercept_, rel=1e-7)
        assert np.all(model.coef_at(pattern)[pattern] == 0)


def paper_program(X, y, lam, alpha):
    """Predictions of affine weights by Section 2.4 of the paper, written out: 0 for a missing value, lambda / n_k."""
    import cvxpy as cp

    M, filled = np.isnan(X), np.nan_to_num(X)
    n, d = X.shape
    columns = [filled[:, j] for j in range(d)] + [M[:, j].astype(float) for j in range(d)]
    counts = [np.sum(~M[:, j]) for j in range(d)] + [np.sum(M[:, j]) for j in range(d)]
    for j in range(d):
        for k in range(d):
            if k != j:  # the weight of feature j in rows in which it is observed, and k is missing
                columns.append(filled[:, j] * M[:, k])
                counts.append(np.sum(~M[:, j] & M[:, k]))
    A = np.column_stack(columns)
    intercept, w = cp.Variable(), cp.Variable(A.shape[1])
    weights = lam / np.array(counts)
    penalty = alpha * weights @ cp.abs(w) + (1 - alpha) / 2 * weights @ cp.square(w)
    problem = cp.Problem(cp.Minimize(cp.sum_squares(y - intercept - A @ w) / n + penalty))
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12)
    return intercept.value + A @ w.value


@pytest.mark.parametrize("alpha", [0.0, 0.5])
def test_three_parameters_give_the_program_of_the_paper(make_rows, alpha):
    X, y = make_rows(n=300, d=3)
    assert np.isnan(X).any(axis=0).all()
    expected = paper_program(X, y, lam=20.0, alpha=alpha)
    parameters = {"center": False, "scale": False, "adaptive_penalty": 1.0}
    for left_out in (None, *parameters):
        given = {name: value for name, value in parameters.items() if name != left_out}
        model = AdaptiveRegressor("affine", lam=20.0, l1_ratio=alpha, max_extrapolation=np.inf, **given).fit(X, y)
        difference = np.abs(model.predict(X) - expected).max() / np.std(y)
        assert (difference < 1e-6) == (left_out is None), left_out
        assert difference < 1e-6 or difference > 1e-3
