"""Certificates of linear models on nasty data, against optima in ninety digits: no bound is above the optimum."""

import warnings
from collections import Counter
from contextlib import suppress
from fractions import Fraction

import numpy as np
import pytest
from sklearn.base import clone

from admiss import AdaptiveClassifier, AdaptiveRegressor, AdaptiveRegressorCV
from admiss.adaptivity import FusedPatterns, LowRankAffine
from admiss.streaming import RowStatistics
from formulations.certificate import ROUNDING, SOLVERS_BOUND, SolverError
from formulations.losses import resolve_loss
from tests.admiss.linear.nasty_fits import nasty_fit
from tests.admiss.linear.precise_optimum import optimum_from_above


def checked(model, X, y, s, words=""):
    """Fit, and check the claims of the certificate; returns it with the distance of the fit to the optimum."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y, s)
    assert model.certificate_.dual.shape == ((s > 0).sum(),), words
    return checked_claims(model, X, y, s, words)


def checked_claims(model, X, y, s, words=""):
    """Check the claims of the certificate of a fitted model against the optimum in ninety digits."""
    used, certificate, loss = s > 0, model.certificate_, resolve_loss(model.loss)
    target = y if loss.task == "regression" else np.where(y == model.classes_[1], 1.0, -1.0)
    optimum, own = optimum_from_above(model, X[used], target[used], s[used], loss)
    assert Fraction(certificate.bound) <= optimum, words
    if certificate.status == "optimal":
        assert own - optimum <= Fraction(certificate.tolerance), words
        share = 1 if certificate.dual is None else 4  # moments raise the objective by their rounding
        assert abs(own - Fraction(certificate.objective)) <= Fraction(certificate.tolerance) / share, words
    return certificate, own - optimum


@pytest.mark.parametrize("units", [1e16, 1e-16, (1.0, 1e-9, 1e9), (1e-115, 1.0, 1e115)], ids=str)
@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("lam", [0.0, 1e-3])
def test_units(units, lam, center):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = X @ [1.0, -2.0, 0.5] + rng.normal(size=60)
    X[rng.uniform(size=X.shape) < 0.2] = np.nan
    model = AdaptiveRegressor(lam=lam, l1_ratio=0.5, center=center, scale=False)
    certificate, _ = checked(model, X * units, y, np.ones(60))
    assert certificate.status == "optimal"
    if lam == 0:  # then units do not change the predictions
        moved, plain = model, clone(model).fit(X, y)
        np.testing.assert_allclose(moved.predict(X * units), plain.predict(X), rtol=1e-9)
        np.testing.assert_allclose(moved.certificate_.dual, plain.certificate_.dual, atol=1e-12)


@pytest.mark.parametrize("seed", range(40))
def test_nasty_fits(seed):
    model, X, y, s, words = nasty_fit(seed, losses=("squared", "squared", "logistic"))
    with suppress(SolverError, ValueError):  # not solved, or separable without a penalty
        checked(model, X, y, s, words)


def test_the_loss_of_cells_with_one_class_counts_in_a_tiny_objective():
    model, X, y, s, words = nasty_fit(5200415, losses=("squared", "squared", "squared", "logistic"))
    certificate, _ = checked(model, X, y, s, words)
    assert certificate.objective < 1e-8
    assert certificate.status == ROUNDING


FROM_PATTERNS = ("static", "affine_intercept", "affine", "fully_adaptive", "missingness_avoiding")


def fitted_from_statistics(seed, by_patterns):
    """A nasty fit from moments of its class or of each pattern, of rows in blocks."""
    model, X, y, s, words = nasty_fit(seed, losses=("squared",))
    model.set_params(penalty_weights="count")
    X, y, s = X[s > 0], y[s > 0], s[s > 0]
    if by_patterns:  # more rows than pseudo-rows
        X, s = np.tile(X, (4, 1)), np.tile(s, 4)
        y = np.tile(y, 4) + np.std(y) * np.random.default_rng(seed).normal(size=4 * len(y))
        model.set_params(adaptivity=FROM_PATTERNS[seed % len(FROM_PATTERNS)])
    collected = RowStatistics(None if by_patterns else model.adaptivity, tree_depth=None, patterns=by_patterns)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for rows in np.array_split(np.arange(len(y)), 1 + seed % 4):
            collected.update(X[rows], y[rows], s[rows])
        model.fit_statistics(collected)
    return model, X, y, s, words


@pytest.mark.parametrize("by_patterns", [False, True])
def test_nasty_fits_from_statistics(by_patterns):
    statuses = Counter()
    for seed in range(40):
        with suppress(ValueError):  # classes that statistics do not serve, or dependent columns without penalty
            model, *rows = fitted_from_statistics(seed, by_patterns)
            checked_claims(model, *rows)
            statuses[model.certificate_.status] += 1
    assert statuses["optimal"] > 15, statuses


@pytest.mark.parametrize("loss", ["huber", "absolute", "quantile", "poisson", "gamma", "tweedie", "tweedie at 1.5"])
def test_nasty_fits_of_other_losses(loss):
    for seed in range(100, 106):
        model, X, y, s, words = nasty_fit(seed, losses=(loss,))
        with suppress(SolverError, ValueError):  # not solved, or targets of 0 that are separable without a penalty
            checked(model, X, y, s, words)


def test_curvatures_far_above_the_weights_move_the_products_of_other_columns():
    """A row of weight 1e-9 with a mean of 1e9 times that of the others: its column sizes count in that curvature."""
    checked(*nasty_fit(5200, losses=("poisson", "gamma", "tweedie")))


@pytest.mark.exhaustive
@pytest.mark.parametrize("losses", [None, ("poisson", "gamma", "tweedie", "tweedie at 1.5")], ids=str)
def test_a_thousand_nasty_fits(losses):
    """None is certified above its optimum; nineteen in twenty of those that reach it are proven optimal."""
    count = Counter()
    for seed in range(1000, 2000):
        model, X, y, s, words = nasty_fit(seed, losses) if losses else nasty_fit(seed)
        try:
            certificate, distance = checked(model, X, y, s, words)
        except (SolverError, ValueError) as error:
            count[type(error).__name__] += 1
            continue
        count["optimal" if certificate.status == "optimal" else "not proven"] += 1
        count["reached"] += distance <= Fraction(certificate.tolerance)
    print(dict(count))
    assert count["optimal"] >= 0.95 * count["reached"]


def test_columns_that_are_dependent_up_to_rounding_are_not_proven():
    """The third column is the sum of the others, rounded: its rounding errors explain y a little better."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    X = np.column_stack([X, X.sum(axis=1)])
    y = rng.normal(size=30)
    certificate, distance = checked(AdaptiveRegressor("static", lam=0.0), X, y, np.ones(30))
    assert distance > Fraction(certificate.tolerance)
    assert certificate.status == "rounding errors exceed the tolerance"
    assert certificate.bound == 0.0


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("estimator", [AdaptiveRegressor, AdaptiveClassifier])
def test_exact_dependencies_are_proven(estimator, center):
    """Duplicated columns in other units, and indicators of values that are missing together."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(80, 2))
    X[rng.uniform(size=80) < 0.3] = np.nan
    X = np.column_stack([X, 4.0 * X[:, 0]])
    y = np.nansum(X, axis=1) + 3 * rng.normal(size=80)
    y = y if estimator is AdaptiveRegressor else y > 0
    assert checked(estimator(lam=0.0, center=center, scale=False), X, y, np.ones(80))[0].status == "optimal"


def test_the_dual_point_is_the_derivative_of_the_risk(make_rows):
    X, y = make_rows(n=120, d=3)
    s = np.random.default_rng(0).uniform(0.0, 2.0, size=120) * (np.arange(120) % 7 > 0)
    used = s > 0
    q = s[used] / s.sum()
    model = AdaptiveRegressor("affine", lam=0.3).fit(X, y, s)
    np.testing.assert_allclose(model.certificate_.dual, 2 * q * (model.predict(X) - y)[used], rtol=1e-6, atol=1e-12)
    sign = np.where(y > np.median(y), 1.0, -1.0)
    classifier = AdaptiveClassifier("affine", lam=0.3).fit(X, sign, s)
    z = classifier.decision_function(X)[used]
    np.testing.assert_allclose(
        classifier.certificate_.dual, -q * sign[used] / (1 + np.exp(sign[used] * z)), rtol=1e-5, atol=1e-10
    )


def test_rows_of_cells_with_one_class_have_no_dual_weight():
    X = np.array([[0.0], [1.0], [2.0], [3.0], [np.nan], [np.nan]])
    model = AdaptiveClassifier("fully_adaptive", lam=0.1).fit(X, [0, 1, 0, 1, 1, 1])
    assert model.certificate_.dual[4:].tolist() == [0.0, 0.0]
    assert np.all(model.certificate_.dual[:4] != 0)


@pytest.mark.parametrize("adaptivity", [FusedPatterns(0.1), LowRankAffine(0.1)], ids=str)
def test_a_structure_has_the_bound_of_the_solver(adaptivity, make_rows):
    X, y = make_rows(n=150, d=3)
    certificate = AdaptiveRegressor(adaptivity, lam=0.1).fit(X, y).certificate_
    assert certificate.status == SOLVERS_BOUND
    assert certificate.bound < certificate.objective
    assert certificate.dual.shape == (150,)


def test_units_do_not_matter_in_cross_validation(make_rows):
    """The lasso of unscaled features depends on their units only by the penalty; powers of two change no digit."""
    X, y = make_rows(n=200, d=3)
    search = {"adaptivity": ["affine_intercept"], "l1_ratios": [1.0], "n_lambdas": 10, "random_state": 0}
    plain = AdaptiveRegressorCV(scale=False, **search).fit(X, y)
    far = AdaptiveRegressorCV(scale=False, **search).fit(X * 2.0**60, y)
    assert plain.certificate_.status == far.certificate_.status == "optimal"
    scaled = AdaptiveRegressorCV(**search).fit(X, y)
    again = AdaptiveRegressorCV(**search).fit(X * 2.0**60, y)
    np.testing.assert_array_equal(scaled.predict(X), again.predict(X * 2.0**60))


def test_a_model_without_columns_is_proven_in_closed_form():
    with pytest.warns(UserWarning, match="Never observed"):
        model = AdaptiveRegressor("static", fit_intercept=False).fit(np.full((5, 1), np.nan), np.arange(5.0))
    assert model.certificate_.status == "optimal"
    assert model.certificate_.bound <= 6.0 <= model.certificate_.objective * (1 + 1e-15)
