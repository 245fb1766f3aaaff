"""Intervals and sets: split conformal as a limit, scores, calibration, warnings, and every estimator inside."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from threadpoolctl import threadpool_limits

from admiss import AdaptiveClassifier, AdaptiveRegressor, PatternConformalClassifier, PatternConformalRegressor
from admiss.adaptivity import FullyAdaptive, Polynomial
from formulations.conformal.thresholds import order_threshold
from formulations.losses import Quantile
from tests.properties.entry import make_rows
from tests.properties.table import TABLE


def rows(n=400, seed=0, classes=False):
    return make_rows(AdaptiveClassifier() if classes else AdaptiveRegressor(), n, seed)


@pytest.fixture(scope="module")
def fitted():
    return AdaptiveRegressor().fit(*rows(seed=1))


def test_constant_basis_is_split_conformal_to_the_last_digit(fitted):
    X, y = rows()
    model = PatternConformalRegressor(fitted, [0.9, 0.8], "constant", prefit=True).conformalize(X, y)
    prediction, interval = model.predict_interval(X)
    for k, level in enumerate((0.9, 0.8)):
        t = order_threshold(np.abs(y - fitted.predict(X)), level)
        np.testing.assert_array_equal(interval[:, 0, k], prediction - t)
        np.testing.assert_array_equal(interval[:, 1, k], prediction + t)
    X, z = rows(classes=True)
    classifier = AdaptiveClassifier().fit(X, z)
    model = PatternConformalClassifier(classifier, 0.8, "constant", prefit=True).conformalize(X, z)
    probability = classifier.predict_proba(X)
    t = order_threshold(1 - probability[np.arange(len(z)), (z == "low").astype(int)], 0.8)
    np.testing.assert_array_equal(model.predict_set(X)[1][:, :, 0], 1 - probability <= t)


def test_fully_adaptive_basis_is_split_conformal_within_each_pattern(fitted):
    X, y = rows(800)
    basis = FullyAdaptive().fit(X, np.isnan(X))
    model = PatternConformalRegressor(fitted, 0.8, basis, prefit=True).conformalize(X, y)
    prediction, interval = model.predict_interval(X)
    scores, patterns = np.abs(y - fitted.predict(X)), np.isnan(X) @ [1, 2, 4, 8]
    expected = np.array([order_threshold(scores[patterns == p], 0.8) for p in patterns])
    np.testing.assert_allclose(interval[:, 1, 0] - prediction, expected)
    assert "span of the basis of FullyAdaptive()" in model.guarantee_


def test_independent_of_order_of_calibration_rows_and_of_threads(fitted):
    X, y = rows()
    order = np.random.default_rng(0).permutation(len(y))
    found = []
    for threads, index in ((1, slice(None)), (2, order)):
        with threadpool_limits(threads):
            model = PatternConformalRegressor(fitted, basis="features", prefit=True).conformalize(X[index], y[index])
            found.append(model._thresholds(X))
    np.testing.assert_array_equal(*found)


def test_randomised_sets_are_drawn_by_seed_and_pattern(fitted):
    X, y = rows()
    frozen = FrozenEstimator(fitted)
    model = PatternConformalRegressor(frozen, [0.5, 0.9], "features", prefit=True, random_state=3, randomize=True)
    expected = model.conformalize(X, y).predict_interval(X)[1]
    np.testing.assert_array_equal(clone(model).conformalize(X, y).predict_interval(X[5:9])[1], expected[5:9])
    other = clone(model).set_params(random_state=4).conformalize(X, y).predict_interval(X)[1]
    assert not np.array_equal(other, expected, equal_nan=True)
    conservative = clone(model).set_params(randomize=False).conformalize(X, y).predict_interval(X)[1]
    assert (np.nan_to_num(expected[:, 1], nan=-np.inf) <= conservative[:, 1]).all()
    assert "exactly 50 % and 90 %" in model.guarantee_


def test_empty_sets_are_nan(fitted):
    X, y = rows(12)
    model = PatternConformalRegressor(
        FrozenEstimator(fitted), 0.05, "constant", prefit=True, randomize=True, random_state=0
    )
    found = [clone(model).set_params(random_state=k).conformalize(X, y).predict_interval(X[:1])[1] for k in range(40)]
    empty = np.isnan(np.array(found)[:, 0]).all(axis=(1, 2))
    assert 0 < empty.sum() < 40
    report = model.conformalize(X, y).coverage_report(X, y).table
    assert np.isfinite(report["mean_width"]).all()


def test_basis_auto_counts_functions_on_training_rows():
    X, y = rows(1000)
    model = PatternConformalRegressor(AdaptiveRegressor(), random_state=0)
    assert model.fit(X, y).basis_.name == "features"  # 1 + 3 features that can be missing, 300 calibration rows
    assert len(model.scores_) == 300
    assert "for every feature" in model.guarantee_
    assert model.set_params(calibration_size=0.15).fit(X, y).basis_.name == "count"
    assert "nothing is promised by feature" in model.guarantee_
    prefit = PatternConformalRegressor(model.models_.point, prefit=True)
    assert prefit.conformalize(X[:248], y[:248]).basis_.name == "count"
    assert prefit.conformalize(X[:249], y[:249]).basis_.name == "features"


@pytest.mark.parametrize("basis", ["affine", Polynomial(2), "fully_adaptive"])
def test_adaptivity_classes_are_bases(basis):
    X, y = rows(600)
    model = PatternConformalRegressor(AdaptiveRegressor(), 0.8, basis, calibration_size=0.5, random_state=0).fit(X, y)
    assert np.isfinite(model.predict_interval(X)[1]).mean() > 0.5
    prefit = PatternConformalRegressor(model.models_.point, basis=basis, prefit=True)
    with pytest.raises(ValueError, match="depends on training rows"):
        prefit.conformalize(X, y)


def test_the_steps_of_mapie():
    X, y = rows(300)
    model = PatternConformalRegressor(AdaptiveRegressor(), calibration_size=0, random_state=0)
    with pytest.raises(NotFittedError):
        model.conformalize(X, y)
    model.fit(X[:200], y[:200])
    np.testing.assert_array_equal(model.predict(X), AdaptiveRegressor().fit(X[:200], y[:200]).predict(X))
    with pytest.raises(NotFittedError, match="call conformalize"):
        model.predict_interval(X)
    interval = model.conformalize(X[200:], y[200:]).predict_interval(X)[1]
    prefit = PatternConformalRegressor(model.models_.point, basis="count", prefit=True).conformalize(X[200:], y[200:])
    np.testing.assert_array_equal(interval, prefit.predict_interval(X)[1])


def test_names_reach_the_estimator():
    X, y = rows(100)
    frame = pd.DataFrame(X, columns=list("abcd"))
    for given in (frame, pl.DataFrame(frame.to_dict("list"))):
        model = PatternConformalRegressor(HistGradientBoostingRegressor(), 0.5, random_state=0).fit(given, y)
        assert model.models_.point.feature_names_in_.tolist() == list("abcd")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model.predict_interval(given)


def test_one_warning_names_rare_features(fitted):
    X, y = rows(300)
    X[:, 0], X[5:, 2] = np.where(np.arange(300) < 4, X[:, 1], np.nan), X[5:, 1]
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = PatternConformalRegressor(AdaptiveRegressor().fit(frame, y), basis="features", prefit=True)
    model.conformalize(frame, y)
    with pytest.warns(UserWarning, match="are infinite") as caught:
        _, interval = model.predict_interval(frame)
    assert len(caught) == 1
    text = str(caught[0].message)
    assert "missing in fewer than 9: c" in text
    assert "observed in fewer than 9: a" in text
    rare = ~np.isnan(X[:, 0]) | np.isnan(X[:, 2])
    np.testing.assert_array_equal(np.isinf(interval[:, 1, 0]), rare)


@pytest.mark.parametrize("estimator", [
    AdaptiveRegressor(loss="quantile"),
    (AdaptiveRegressor(loss=Quantile(0.1)), AdaptiveRegressor(loss=Quantile(0.9))),
    (AdaptiveRegressor(loss=Quantile(0.1)), AdaptiveRegressor(loss=Quantile(0.9)), AdaptiveRegressor()),
    HistGradientBoostingRegressor(loss="quantile", quantile=0.5, max_iter=10),
])  # fmt: skip
def test_quantile_scores(estimator):
    X, y = rows(200)
    model = PatternConformalRegressor(estimator, 0.8, "constant", "quantile", random_state=0, calibration_size=0.5)
    prediction, interval = model.fit(X, y).predict_interval(X)
    low, high = model.models_.lower.predict(X), model.models_.upper.predict(X)
    t = interval[:, 1, 0] - high
    np.testing.assert_allclose(t, t[0])
    np.testing.assert_allclose(low - interval[:, 0, 0], t)
    third = isinstance(estimator, tuple) and len(estimator) == 3
    np.testing.assert_allclose(prediction, model.models_.point.predict(X) if third else (low + high) / 2)
    assert np.mean((interval[:, 0, 0] <= y) & (y <= interval[:, 1, 0])) > 0.75


@pytest.mark.parametrize("n", [2, 3])
def test_scaled_scores_need_two_training_rows(n):
    X, y = rows(n)
    model = PatternConformalRegressor(AdaptiveRegressor(), conformity_score="scaled", calibration_size=0.7)
    with pytest.raises(ValueError, match=r"^conformity_score='scaled' needs at least 2 training rows"):
        model.fit(X, y)
    assert model.set_params(conformity_score="absolute").fit(X, y).n_features_in_ == X.shape[1]


def test_scaled_scores():
    rng = np.random.default_rng(0)
    X, _ = rows(900)
    y = np.nan_to_num(X[:, 1]) + (1 + 3 * np.isnan(X[:, 0])) * rng.normal(size=900)
    model = PatternConformalRegressor(AdaptiveRegressor(), 0.9, "constant", "scaled", random_state=0).fit(X, y)
    width = np.diff(model.predict_interval(X)[1][:, :, 0], axis=1)[:, 0]
    assert width[np.isnan(X[:, 0])].mean() > 2 * width[~np.isnan(X[:, 0])].mean()
    assert width.min() > 0


def test_errors_are_sentences(fitted):
    X, y = rows(40)
    with pytest.raises(ValueError, match="randomize"):
        PatternConformalRegressor(AdaptiveRegressor(), method="mda_exact", randomize=True).fit(X, y)
    with pytest.raises(ValueError, match="scale_estimator of"):
        PatternConformalRegressor(fitted, conformity_score="scaled", prefit=True).conformalize(X, y)
    with pytest.raises(ValueError, match="scale_estimator is used"):
        PatternConformalRegressor(AdaptiveRegressor(), scale_estimator=AdaptiveRegressor()).fit(X, y)
    with pytest.raises(NotFittedError):
        PatternConformalRegressor(AdaptiveRegressor(), prefit=True).conformalize(X, y)
    X, z = rows(40, classes=True)
    with pytest.raises(ValueError, match="predict_proba"):
        PatternConformalClassifier(AdaptiveRegressor()).fit(X, z)
    model = PatternConformalClassifier(AdaptiveClassifier(), random_state=0).fit(X, z)
    with pytest.raises(ValueError, match="does not know: other"):
        model.conformalize(X, np.where(np.arange(40) == 3, "other", z))


def test_a_class_that_training_lacks_has_probability_zero():
    X, z = rows(60, classes=True)
    z = np.where(np.arange(60) == 7, "other", z)
    model = PatternConformalClassifier(HistGradientBoostingClassifier(), 0.5, calibration_size=0.5, random_state=1)
    for seed in range(20):
        model.set_params(random_state=seed).fit(X, z)
        if "other" not in model.estimator_.classes_:
            break
    assert model.classes_.tolist() == ["high", "low", "other"]
    assert not model.predict_proba(X)[:, 2].any()
    assert model.predict_set(X)[1].shape == (60, 3, 1)


@pytest.mark.slow
@pytest.mark.parametrize(
    "model", [entry.model for entry in TABLE if is_regressor(entry.model) or is_classifier(entry.model)]
)
def test_every_estimator_of_the_package_works_inside(model):
    if "PatternConformal" in type(model).__name__:
        model = model.estimator
    X, y = make_rows(model, 80)
    kind = PatternConformalClassifier if is_classifier(model) else PatternConformalRegressor
    outer = kind(model, 0.7, "count", calibration_size=0.4, random_state=0).fit(X, y)
    table = outer.coverage_report(X, y).table
    assert table["coverage"][0] > 0.5
    assert outer.guarantee_.startswith("Coverage at least 70 %")


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("method", ["class", "mda_exact", "mda_nested"])
def test_strange_tables(method):
    rng = np.random.default_rng(0)
    X, y = rows(40)
    tables = {
        "two rows": (X[:2], y[:2]),
        "wide": (np.where(rng.uniform(size=(12, 60)) < 0.3, np.nan, rng.normal(size=(12, 60))), y[:12]),
        "nothing observed": (np.full((20, 3), np.nan), y[:20]),
        "nothing missing": (np.nan_to_num(X), y),
        "copies and constants": (np.column_stack([X, X, np.ones(40), np.full(40, np.nan)]), y),
        "large units": (X * [1e8, 1e-8, 1.0, 1e30], 1e90 * y),
        "small units": (X, 1e-90 * y),
        "constant target": (X, np.ones(40)),
        "few values": (X, y.round()),
    }
    for name, (features, target) in tables.items():
        for basis in ("auto", "features", "affine", "fully_adaptive"):
            model = PatternConformalRegressor(AdaptiveRegressor(), [0.5, 0.9], basis, method=method, random_state=0)
            model.set_params(calibration_size=0.5).fit(features, target)
            interval = model.predict_interval(features)[1]
            assert interval.shape == (len(target), 2, 2), name
            assert not np.isnan(interval).any(), name
            assert (interval[:, 1, 0] <= interval[:, 1, 1]).all(), name
            assert model.coverage_report(features, target).table.n_rows >= 2
