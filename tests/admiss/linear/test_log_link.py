"""Poisson, Gamma and Tweedie regressions: agreement with glum and with a direct statement, exposure, limits, errors."""

import cvxpy as cp
import glum
import numpy as np
import pytest
from sklearn.metrics import d2_tweedie_score

from admiss import AdaptiveRegressor, AdaptiveRegressorCV, FiniteRegressor
from admiss.linear.penalty import penalty_weights
from formulations.losses import Gamma, Poisson, Tweedie

LOSSES = [Poisson(), Gamma(), Tweedie(1.5), Tweedie(1.2)]


def rows(loss, n=300, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)) + np.array([0.0, 10.0, -3.0, 0.0])
    M = rng.uniform(size=X.shape) < [0.3, 0.0, 0.2, 0.3]
    exposure = rng.uniform(0.1, 4, size=n)
    mean = exposure * np.exp((X - X.mean(axis=0)) @ [0.5, -0.3, 0.0, 0.2] + 0.5 * M[:, 0])
    y = rng.poisson(mean) + 0.0 if loss.a == 0 else rng.gamma(2.0, mean / 2.0)
    if 0 < loss.a < 1:
        y[rng.uniform(size=n) < 0.3] = 0.0
    return np.where(M, np.nan, X), y, exposure, rng.uniform(0.5, 2, size=n)


def penalties(model, X):
    kind = {"kind": "count", "adaptive_penalty": model.adaptive_penalty, "standardise": model.scale}
    return penalty_weights(model.design_, X, None, **kind)[0]


@pytest.mark.parametrize("loss", LOSSES, ids=str)
@pytest.mark.parametrize("l1_ratio", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("adaptivity", ["affine_intercept", "affine"])
def test_objectives_agree_with_glum(loss, l1_ratio, adaptivity):
    X, y, exposure, s = rows(loss)
    model = AdaptiveRegressor(adaptivity, lam=3.0, l1_ratio=l1_ratio, adaptive_penalty=1.0, loss=loss)
    model.fit(X, y, s, exposure=exposure)
    assert model.certificate_.status == "optimal"
    design, u = model.design_, penalties(model, X)
    A, free = design.dense(X), design.free
    other = glum.GeneralizedLinearRegressor(
        alpha=3.0, l1_ratio=l1_ratio, P1=u[~free], P2=u[~free], family=glum.TweedieDistribution(loss.variance_power),
        link="log", gradient_tol=1e-11, max_iter=10_000,
    )  # fmt: skip
    other.fit(np.asfortranarray(A[:, ~free]), y, sample_weight=s, offset=np.log(exposure))
    z = other.intercept_ + A[:, ~free] @ other.coef_ + np.log(exposure)
    penalty = 3.0 * u[~free] @ (l1_ratio * np.abs(other.coef_) + (1 - l1_ratio) * other.coef_**2 / 2)
    objective = np.average(loss.value(y, z), weights=s) + penalty
    assert model.certificate_.objective == pytest.approx(objective, rel=1e-7)
    assert model.certificate_.bound <= objective


@pytest.mark.parametrize("loss", LOSSES, ids=str)
@pytest.mark.parametrize("parameters", [{"l1_ratio": 0.5}, {"fit_intercept": False}, {"adaptivity": "fully_adaptive"}])
def test_objectives_agree_with_a_direct_statement_and_the_open_program(loss, parameters):
    X, y, exposure, s = rows(loss, 120)
    model = AdaptiveRegressor(**{"lam": 2.0, "loss": loss, **parameters}).fit(X, y, s, exposure=exposure)
    design, u = model.design_, penalties(model, X)
    w = cp.Variable(len(u))
    z = design.dense(X) @ w + np.log(exposure)
    penalty = 2.0 * u @ (model.l1_ratio * cp.abs(w) + (1 - model.l1_ratio) * cp.square(w) / 2)
    problem = cp.Problem(cp.Minimize(loss.total(y, z, s / s.sum()) + penalty))
    problem.solve(solver="CLARABEL")
    if parameters.get("adaptivity") == "fully_adaptive":  # cells without a claim have their infimum at minus infinity
        assert model.certificate_.objective == pytest.approx(problem.value, rel=1e-5)
    else:
        assert model.certificate_.objective == pytest.approx(problem.value, rel=1e-7)
    program = AdaptiveRegressor(**{"lam": 2.0, "loss": loss, **parameters}).program(X, y, s, exposure=exposure)
    program.problem.solve(solver="CLARABEL")
    assert program.problem.value == pytest.approx(model.certificate_.objective, rel=1e-7)
    np.testing.assert_allclose(
        program.solve().predict(X, exposure=exposure), model.predict(X, exposure=exposure), rtol=1e-4
    )


@pytest.mark.parametrize("loss", ["poisson", "gamma", "tweedie"])
def test_exposure_may_have_any_unit(loss):
    X, y, years, _ = rows(Gamma())
    model = AdaptiveRegressor(loss=loss).fit(X, y, exposure=years)
    days = AdaptiveRegressor(loss=loss).fit(X, y, exposure=365 * years)
    np.testing.assert_allclose(days.predict(X, exposure=365 * years), model.predict(X, exposure=years), rtol=1e-6)
    np.testing.assert_allclose(model.predict(X, exposure=2 * years), 2 * model.predict(X, exposure=years))
    assert days.certificate_.objective == pytest.approx(model.certificate_.objective, rel=1e-9)
    without = AdaptiveRegressor(loss=loss).fit(X, y)
    ones = AdaptiveRegressor(loss=loss).fit(X, y, exposure=np.ones(len(y)))
    np.testing.assert_allclose(without.predict(X), ones.predict(X), rtol=1e-9)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_score_is_the_fraction_of_deviance_explained(loss):
    X, y, exposure, s = rows(loss)
    model = AdaptiveRegressor(loss=loss).fit(X, y, s)
    expected = d2_tweedie_score(y, model.predict(X), sample_weight=s, power=loss.variance_power)
    assert model.score(X, y, s) == pytest.approx(expected, rel=1e-9)
    with_exposure = AdaptiveRegressor(loss=loss).fit(X, y, s, exposure=exposure)
    assert 0 < with_exposure.score(X, y, s, exposure=exposure) < 1


def test_scores_of_rows_without_events():
    X, y, exposure, _ = rows(Poisson())
    model = AdaptiveRegressor(loss="poisson").fit(X, y, exposure=exposure)
    assert model.score(X, np.zeros(len(y)), exposure=exposure) == 0.0  # the deviance of the null model is 0
    with pytest.raises(ValueError, match="negative"):
        model.score(X, -y)


def test_predictors_are_kept_near_their_range():
    X, y, exposure, _ = rows(Poisson())
    far = X.copy()
    far[:, 1] = -1e6
    model = AdaptiveRegressor(loss="poisson").fit(X, y, exposure=exposure)
    low, high = model.predictor_range_
    assert model.predict(far).max() <= np.exp(high + (high - low)) * (1 + 1e-12)
    np.testing.assert_allclose(model.predict(far, exposure=3 * exposure), 3 * exposure * model.predict(far))
    tight = AdaptiveRegressor(loss="poisson", max_extrapolation=0.0).fit(X, y, exposure=exposure)
    np.testing.assert_allclose(tight.predict(X), np.exp(tight._scores(X)), rtol=1e-12)
    assert np.isinf(AdaptiveRegressor(loss="poisson", max_extrapolation=np.inf).fit(X, y).predict(far)).all()


def test_cells_without_a_claim():
    X, y, _, _ = rows(Poisson())
    m = np.isnan(X[:, 0])
    y = np.where(m, 0.0, y)
    X[:, 2:] = np.nan_to_num(X[:, 2:])
    model = AdaptiveRegressor("fully_adaptive", loss="poisson").fit(X, y)
    assert model.certificate_.status == "optimal"
    assert model.predict(X)[m].max() < 0.1 * model.predict(X)[~m].min()
    other = AdaptiveRegressor("fully_adaptive", loss="poisson").fit(X[~m], y[~m])
    np.testing.assert_allclose(model.predict(X[~m]), other.predict(X[~m]), rtol=0.02)  # means differ


def test_targets_of_zero_that_are_separable_are_refused():
    x = np.arange(20.0)[:, None]
    y = np.where(x[:, 0] < 10, 0.0, 3.0)
    y[10:] = 2.0
    x[10:] = 10.0
    with pytest.raises(ValueError, match="separable"):
        AdaptiveRegressor(loss="poisson", lam=0).fit(x, y)
    assert AdaptiveRegressor(loss="poisson", lam=1.0).fit(x, y).certificate_.status == "optimal"
    assert AdaptiveRegressor(loss="gamma", lam=0).fit(x, y + 1).certificate_.status == "optimal"


BAD = [
    ("poisson", -1.0, 1.0, "negative"),
    ("gamma", 0.0, 1.0, "larger than 0"),
    ("tweedie", -1.0, 1.0, "negative"),
    ("poisson", 1.0, 0.0, "exposure must be larger than 0"),
    ("poisson", 1.0, np.nan, "exposure"),
    ("squared", 1.0, 1.0, "exposure is for losses with a log link"),
    ("quantile", 1.0, 1.0, "exposure is for losses with a log link"),
]


@pytest.mark.parametrize(("loss", "first", "exposure", "words"), BAD)
@pytest.mark.parametrize("kind", [AdaptiveRegressor, AdaptiveRegressorCV])
def test_bad_targets_and_exposures_are_refused(kind, loss, first, exposure, words):
    X, y = np.random.default_rng(0).normal(size=(20, 2)), np.ones(20)
    y[0], e = first, np.ones(20)
    e[3] = exposure
    with pytest.raises(ValueError, match=words):
        kind(loss=loss).fit(X, y, exposure=e)


def test_other_refusals():
    X, y = np.random.default_rng(0).normal(size=(20, 2)), np.zeros(20)
    with pytest.raises(ValueError, match="0 in every row"):
        AdaptiveRegressor(loss="poisson").fit(X, y)
    with pytest.raises(ValueError, match="one entry for each"):
        AdaptiveRegressor(loss="poisson").fit(X, y + 1, exposure=np.ones(3))
    with pytest.raises(ValueError, match="AdaptiveRegressor"):
        FiniteRegressor(loss="poisson").fit(X, y + 1)
    with pytest.raises(ValueError, match="finite candidate"):
        AdaptiveRegressorCV(["static", "finite"], loss="poisson").fit(X, y + 1)


def test_constraints_hold_for_the_log_of_the_mean():
    X, y, exposure, _ = rows(Poisson())
    model = AdaptiveRegressor("affine", loss="poisson", monotonic_cst=[0, 1, 0, 0]).fit(X, y, exposure=exposure)
    plain = AdaptiveRegressor("affine", loss="poisson").fit(X, y, exposure=exposure)
    assert plain.coef_at([0, 0, 0, 0])[1] < 0 <= model.coef_at([0, 0, 0, 0])[1] + 1e-6
    assert model.certificate_.objective > plain.certificate_.objective
    assert np.isfinite(model.predict(X, exposure=exposure)).all()
