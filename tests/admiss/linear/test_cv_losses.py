"""Cross-validation for other losses than the squared one: each cell is the held-out loss of the fits of its folds."""

import itertools

import numpy as np
import pytest
from sklearn import config_context
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GroupKFold, KFold, LeaveOneGroupOut, TimeSeriesSplit

from admiss import (
    AdaptiveClassifier,
    AdaptiveClassifierCV,
    AdaptiveRegressor,
    AdaptiveRegressorCV,
    AdaptiveStackRegressor,
    ExpectedFeaturesRegressor,
    FiniteRegressorCV,
    JointImputeClassifierCV,
    JointImputeRegressorCV,
    PatternConformalClassifier,
    PatternConformalRegressor,
)
from admiss.baselines import TunedRegressor
from formulations.losses import Absolute, Huber, Poisson, Quantile, Tweedie, resolve_loss
from tests.admiss.linear.test_log_link import rows

LOSSES = ["absolute", Huber(0.5), Quantile(0.8), "poisson", "gamma", Tweedie(1.4)]
SMALL = {"l1_ratios": [0.0, 0.7], "n_lambdas": 6, "adaptive_penalties": [1.0], "cv": KFold(3)}


def cells(model, X, y, loss, exposure=None):
    """The held-out loss of each cell, fitted one by one."""
    loss = resolve_loss(loss)
    losses = []
    table = model.cv_results_
    for lam, alpha, c in zip(table["lam"], table["l1_ratio"], table["adaptive_penalty"], strict=True):
        total = 0.0
        for train, test in KFold(3).split(X):
            single = AdaptiveRegressor("affine_intercept", lam, alpha, c, loss=model.loss)
            if loss.of_residual:
                single.set_params(max_extrapolation=np.inf).fit(X[train], y[train])
                total += loss.value(y[test], single.predict(X[test])).sum()
            else:
                single.fit(X[train], y[train], exposure=exposure[train])
                total += loss.value(y[test], np.log(single.predict(X[test], exposure=exposure[test]))).sum()
        losses.append(total / len(y))
    return losses


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_cells_are_held_out_losses(loss):
    own = resolve_loss(loss)
    X, y, exposure, _ = rows(own if not own.of_residual else Tweedie(1.5), 90, seed=3)
    model = AdaptiveRegressorCV("affine_intercept", loss=loss, **SMALL)
    given = {} if own.of_residual else {"exposure": exposure}
    model.fit(X, y, **given)
    np.testing.assert_allclose(model.cv_results_["mean_loss"], cells(model, X, y, loss, exposure), rtol=2e-4)
    assert model.best_score_ == -model.cv_results_["mean_loss"].min()
    assert model.best_estimator_.loss == loss
    assert model.best_estimator_.certificate_.status == "optimal"
    assert np.isfinite(model.score(X, y, **given))


@pytest.mark.parametrize("loss", ["quantile", "poisson"])
def test_the_choice_does_not_depend_on_threads(loss):
    X, y, _, _ = rows(Poisson(), 90, seed=4)
    one, two = (AdaptiveRegressorCV("affine", loss=loss, n_jobs=n, **SMALL).fit(X, y) for n in (1, 2))
    np.testing.assert_array_equal(one.cv_results_["mean_loss"], two.cv_results_["mean_loss"])
    assert one.best_params_ == two.best_params_


def test_absolute_is_twice_the_median():
    X, y, _, _ = rows(Tweedie(1.5), 90, seed=5)
    absolute, median = (
        AdaptiveRegressorCV("affine_intercept", loss=loss, **SMALL).fit(X, y) for loss in (Absolute(), "quantile")
    )
    np.testing.assert_allclose(absolute.cv_results_["mean_loss"], 2 * median.cv_results_["mean_loss"], rtol=1e-4)


def test_a_loss_without_paths_is_refused():
    class Other(Absolute):
        pass

    class Own(Huber.__mro__[1]):
        smooth = False

        def value(self, y, z):
            return np.abs(y - z)

        def total(self, y, z, q):
            raise NotImplementedError

        def conjugate_inside(self, y, t):
            return t * y

    X, y = np.random.default_rng(0).normal(size=(30, 2)), np.arange(30.0)
    with pytest.raises(ValueError, match="GridSearchCV"):
        AdaptiveRegressorCV(loss=Own()).fit(X, y)
    assert AdaptiveRegressorCV("static", loss=Other(), **SMALL).fit(X, y).best_score_ < 0


SEARCHES = [
    AdaptiveRegressorCV("affine_intercept", n_lambdas=5),
    AdaptiveRegressorCV("affine_intercept", n_lambdas=5, l1_ratios=[0.5], loss="quantile"),
    AdaptiveClassifierCV("affine_intercept", n_lambdas=5, l1_ratios=[0.5]),
    FiniteRegressorCV(max_depths=[1], ridges=[1.0]),
    AdaptiveStackRegressor(["conditional_mean", "affine_intercept"]),
    ExpectedFeaturesRegressor(0),
    TunedRegressor("tree", grid={"max_depth": [1, 2]}),
    JointImputeRegressorCV([Ridge()], "paper"),
    JointImputeClassifierCV([LogisticRegression()], "paper"),
]


def grouped_rows(model):
    X, y, _, _ = rows(Poisson(), 80, seed=6)
    groups = np.repeat(np.arange(8), 10)
    return X, y > 1 if isinstance(model, AdaptiveClassifierCV | JointImputeClassifierCV) else y, groups


@pytest.mark.parametrize("model", SEARCHES, ids=lambda model: type(model).__name__)
def test_groups_are_those_of_the_splitter(model):
    X, y, groups = grouped_rows(model)
    model.set_params(random_state=0)
    by_groups = model.set_params(cv=LeaveOneGroupOut()).fit(X, y, groups=groups).predict(X)
    listed = model.set_params(cv=list(LeaveOneGroupOut().split(X, y, groups))).fit(X, y).predict(X)
    np.testing.assert_array_equal(by_groups, listed)
    with pytest.raises(ValueError, match="LeaveOneGroupOut needs groups"):
        model.set_params(cv=LeaveOneGroupOut()).fit(X, y)
    with pytest.raises(ValueError, match="groups need a splitter"):
        model.set_params(cv=3).fit(X, y, groups=groups)
    with pytest.raises(TypeError, match=rf"{type(model).__name__}.fit\(\) got an unexpected keyword argument 'colour'"):
        model.fit(X, y, colour=1)


@pytest.mark.parametrize("model", SEARCHES, ids=lambda model: type(model).__name__)
def test_metadata_is_routed_to_the_splitter(model):
    X, y, groups = grouped_rows(model)
    model.set_params(random_state=0, cv=GroupKFold(4))
    expected = model.fit(X, y, groups=groups).predict(X)
    with config_context(enable_metadata_routing=True):
        np.testing.assert_array_equal(model.fit(X, y, groups=groups).predict(X), expected)
        model.set_params(cv=KFold(4)).fit(X, y)
        with pytest.raises(TypeError, match="groups|unexpected"):
            model.set_params(cv=3).fit(X, y, groups=groups)


def test_exposure_is_routed_through_a_search():
    from sklearn.model_selection import GridSearchCV

    X, y, exposure, _ = rows(Poisson(), 80)
    with config_context(enable_metadata_routing=True):
        model = AdaptiveRegressor(loss="poisson").set_fit_request(exposure=True).set_score_request(exposure=True)
        search = GridSearchCV(model, {"lam": [0.1, 10.0]}, cv=3).fit(X, y, exposure=exposure)
    assert 0 < search.best_score_ < 1


@pytest.mark.parametrize("model", [*SEARCHES[:4], *SEARCHES[5:]], ids=lambda model: type(model).__name__)
def test_time_series(model):
    X, y, _ = grouped_rows(model)
    assert len(model.set_params(cv=TimeSeriesSplit(3), random_state=0).fit(X, y).predict(X)) == len(y)


def whole_groups(size):
    """Mean and deviation of the numbers of some of eight groups of one size."""
    chosen = [np.array(some, dtype=float) for some in itertools.combinations(range(8), size)]
    return [pytest.approx((some.mean(), some.std())) for some in chosen]


def test_conformal_calibration_by_group():
    X, y, groups = grouped_rows(None)
    X[:, 1] = groups
    model = PatternConformalClassifier(AdaptiveClassifier(), random_state=0).fit(X, y > 1, groups=groups)
    assert len(model.scores_) == 20  # two of eight groups
    seen = model.estimator_.design_
    assert (seen.mean[1], seen.spread[1]) in whole_groups(6)
    assert "split by group" in model.guarantee_
    assert "split by group" not in PatternConformalRegressor(AdaptiveRegressor(), random_state=0).fit(X, y).guarantee_
    with pytest.raises(ValueError, match="at least two groups"):
        model.fit(X, y, groups=np.zeros(80))
    with pytest.raises(ValueError, match="one entry for each"):
        model.fit(X, y, groups=groups[:5])
