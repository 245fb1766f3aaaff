"""Two ways to the same model: the fast engine and the stated program."""

import numpy as np
import pytest

from admiss import AdaptiveClassifier, AdaptiveRegressor
from admiss.adaptivity import Affine, AffineIntercept, FullyAdaptive, Polynomial, Static
from admiss.datasets import make_synthetic
from admiss.linear.design import DesignOptions, fit_design
from admiss.linear.squared import Training, TrainingRows, WeightedRows, eliminate, moments_of, shift_of

CLASSES = [Static(), AffineIntercept(), Affine(), Polynomial(2), FullyAdaptive()]


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("lam", [0.05, 2.0, 50.0])
@pytest.mark.parametrize("adaptivity", CLASSES, ids=str)
def test_regression(adaptivity, lam, alpha, make_rows):
    X, y = make_rows(n=250, d=4)
    fast = AdaptiveRegressor(adaptivity, lam=lam, l1_ratio=alpha, adaptive_penalty=2.0).fit(X, y)
    stated = AdaptiveRegressor(adaptivity, lam=lam, l1_ratio=alpha, adaptive_penalty=2.0, solver="cvxpy").fit(X, y)
    assert fast.certificate_.solver == "admiss engine"
    assert stated.certificate_.solver == "CLARABEL"
    assert fast.certificate_.status == "optimal"
    assert fast.certificate_.objective == pytest.approx(stated.certificate_.objective, rel=1e-9)
    np.testing.assert_allclose(fast.predict(X), stated.predict(X), atol=1e-6)
    if alpha < 1:  # the lasso need not be unique
        np.testing.assert_allclose(fast.coefficients_, stated.coefficients_, atol=1e-6)


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("lam", [0.2, 5.0])
@pytest.mark.parametrize("adaptivity", CLASSES, ids=str)
def test_classification(adaptivity, lam, alpha, make_rows):
    X, y = make_rows(n=250, d=4)
    labels = np.digitize(y + np.random.default_rng(0).normal(size=250), [0.5, 3.0])
    fast = AdaptiveClassifier(adaptivity, lam=lam, l1_ratio=alpha).fit(X, labels)
    stated = AdaptiveClassifier(adaptivity, lam=lam, l1_ratio=alpha, solver="cvxpy").fit(X, labels)
    assert fast.certificate_.solver == "admiss engine"
    assert fast.certificate_.objective == pytest.approx(stated.certificate_.objective, rel=1e-8)
    np.testing.assert_allclose(fast.predict_proba(X), stated.predict_proba(X), atol=1e-6)


@pytest.mark.parametrize("estimator", [AdaptiveRegressor, AdaptiveClassifier])
def test_without_penalty_the_solution_of_minimum_norm(estimator, make_rows):
    X, y = make_rows(n=300, d=3)
    y = y if estimator is AdaptiveRegressor else y + 3 * np.random.default_rng(0).normal(size=300) > 2
    twice = np.column_stack([X, X])
    single = estimator("static", lam=0, scale=False).fit(np.nan_to_num(X), y)
    double = estimator("static", lam=0, scale=False).fit(np.nan_to_num(twice), y)
    np.testing.assert_allclose(double.coef_at([0] * 6), np.tile(single.coef_at([0] * 3), 2) / 2, atol=1e-6)
    stated = estimator("affine", lam=0, solver="cvxpy").fit(X, y)
    assert estimator("affine", lam=0).fit(X, y).certificate_.objective == pytest.approx(
        stated.certificate_.objective, rel=1e-8
    )


def test_rank_deficient_data_of_the_paper():
    """X has rank 5 in 10 dimensions; small and no penalty."""
    data = make_synthetic(n=300, random_state=1)
    full = data.X_full_train @ np.diag(np.ones(10))
    u, s, v = np.linalg.svd(full, full_matrices=False)
    exact = (u[:, :5] * s[:5]) @ v[:5]
    X = np.where(np.isnan(data.X_train), np.nan, exact)
    for lam in (0.0, 1e-6, 1e-2):
        for alpha in (0.2, 1.0):
            model = AdaptiveRegressor("affine", lam=lam, l1_ratio=alpha).fit(X, data.y_train)
            assert np.isfinite(model.predict(data.X_test)).all()
            assert model.certificate_.relative_gap < 1e-6


def test_more_columns_than_rows():
    data = make_synthetic(n=60, random_state=0)
    for adaptivity in ("affine", "polynomial"):
        model = AdaptiveRegressor(adaptivity, lam=0.5).fit(data.X_train, data.y_train)
        assert model.certificate_.status == "optimal"
        assert np.isfinite(AdaptiveRegressor(adaptivity, lam=0).fit(data.X_train, data.y_train).coefficients_).all()


@pytest.mark.parametrize("center", [True, False])
def test_the_quadratic_of_moments_has_the_risk_of_least_squares(make_rows, center):
    X, y = make_rows(n=400, d=4)
    X, y = X + 100.0, y - 1e6
    s = np.random.default_rng(0).uniform(0.5, 2, size=400)
    for adaptivity in (Affine(), FullyAdaptive()):
        design = fit_design(X, s, adaptivity, DesignOptions(center=center))
        shift = shift_of(design, X, y, s)
        rest = slice(90, 400)
        quadratic = eliminate(moments_of(WeightedRows(design, X[rest], y[rest], s[rest], shift)), design.free, shift)
        # the residuals of a least-squares fit, computed from the rows
        A = design.whole(X[rest])
        A = A.toarray() if hasattr(A, "toarray") else A
        w = np.linalg.lstsq(np.sqrt(s[rest])[:, None] * A, np.sqrt(s[rest]) * y[rest], rcond=None)[0]
        risk = s[rest] @ (y[rest] - A @ w) ** 2 / s[rest].sum()
        v = np.linalg.lstsq(quadratic.H, quadratic.b, rcond=None)[0]
        assert quadratic.rho - quadratic.b @ v + v @ quadratic.H @ v / 2 == pytest.approx(risk, rel=1e-4)


@pytest.mark.parametrize("adaptivity", [Affine(), FullyAdaptive()], ids=str)
def test_gradient_and_curvatures_of_few_rows_are_those_of_their_moments(make_rows, adaptivity):
    X, y = make_rows(n=30, d=7)
    rows = TrainingRows(X + 10.0, y - 1e3, np.random.default_rng(0).uniform(0.5, 2, size=30))
    design = rows.design(adaptivity, DesignOptions())
    assert len(design.pairs) > rows.n_rows
    columns = rows.columns(design, 2.0)
    found, expected = rows.at_zero(columns, design.free), Training.at_zero(rows, columns, design.free)
    assert all(np.any(part != 0) for part in expected)
    for own, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(own, other, rtol=0, atol=1e-12 * np.abs(other).max())


def test_fit_holds_no_copy_of_the_features():
    import tracemalloc

    rng = np.random.default_rng(0)
    X = rng.normal(size=(200_000, 20))
    y = X.sum(axis=1)
    X[rng.uniform(size=X.shape) < 0.3] = np.nan
    AdaptiveRegressor().fit(X[:100], y[:100])
    tracemalloc.start()
    AdaptiveRegressor().fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.9 * X.nbytes
