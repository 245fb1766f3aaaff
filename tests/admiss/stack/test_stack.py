"""Stacks: their weights, candidates and accuracy."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import RandomForestRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline

from admiss import AdaptiveStackClassifier, AdaptiveStackRegressor
from admiss.datasets import paper_instance
from admiss.estimator.cross_validation import make_folds
from admiss.stack.candidates import CANDIDATES, candidate, default_candidates

FEW = ["conditional_mean", "expected_features"]


@pytest.fixture(scope="module")
def data():
    return paper_instance(200, "mcar", "nn", 0.3, 1)


@pytest.fixture(scope="module")
def fitted(data):
    return AdaptiveStackRegressor(random_state=0).fit(data.X_train, data.y_train)


def test_prediction_is_the_weighted_sum_of_its_candidates(data, fitted):
    parts = fitted.candidate_predictions(data.X_test)
    weights = fitted.weights_["weight"]
    assert list(parts) == fitted.weights_["candidate"].tolist() == list(CANDIDATES)
    np.testing.assert_allclose(fitted.predict(data.X_test), np.column_stack(list(parts.values())) @ weights)
    forest = fitted.estimators_["forest"].predict(fitted.members_.prepare(data.X_test))
    np.testing.assert_allclose(parts["forest"], forest)
    assert weights.sum() == pytest.approx(1)
    assert fitted.certificate_.relative_gap < 1e-6


def test_held_out_predictions_come_from_other_rows(data):
    """The weights from candidates that are fitted by hand on the training rows of each fold, and on nothing else."""
    X, y = data.X_train, data.y_train
    model = AdaptiveStackRegressor(FEW, shrinkage=0.0, random_state=0).fit(X, y)
    random = np.random.RandomState(0)
    folds = make_folds(X, y, None, np.ones(len(y)), 5, random)
    seeds = [int(random.randint(2**31 - 1)) for _ in FEW]
    held = np.empty((len(y), 2))
    for train, test in folds:
        mean, scale = np.nanmean(X[train], axis=0), np.nanstd(X[train], axis=0)
        for k, (name, seed) in enumerate(zip(FEW, seeds, strict=True)):
            member = candidate(name, "regression").set_params(random_state=seed)
            member.fit((X[train] - mean) / scale, y[train])
            held[test, k] = np.clip(member.predict((X[test] - mean) / scale), y[train].min(), y[train].max())
    # two weights that sum to one: a quadratic in the first
    gap = held[:, 0] - held[:, 1]
    first = np.clip(np.mean(gap * (y - held[:, 1])) / np.mean(gap**2), 0, 1)
    np.testing.assert_allclose(model.weights_["weight"], [first, 1 - first], atol=1e-5)
    assert model.weights_["held_out_score"] == pytest.approx(
        1 - np.mean((y[:, None] - held) ** 2, axis=0) / np.var(y), rel=1e-6
    )


def test_shrinkage_leads_to_equal_weights(data):
    X, y = data.X_train, data.y_train
    spread = [
        np.std(AdaptiveStackRegressor(FEW, shrinkage=c, random_state=0).fit(X, y).weights_["weight"])
        for c in (0.0, 30.0, 1e9)
    ]
    assert spread[0] >= spread[1] > spread[2]
    assert spread[2] < 1e-5


def test_a_class_that_a_fold_lacks(data):
    labels = np.where(data.y_train > 0, "a", "b")
    labels[0] = "rare"
    model = AdaptiveStackClassifier(FEW, random_state=0).fit(data.X_train, labels)
    assert model.predict_proba(data.X_test).shape[1] == 3


def test_affine_is_left_out_if_it_is_large():
    assert default_candidates(10, 10) == list(CANDIDATES)
    assert "affine" not in default_candidates(130, 22)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"candidates": []}, "candidates must be"),
        ({"candidates": ["affin"]}, "Unknown candidate 'affin'"),
        ({"candidates": ["forest", "forest"]}, "different names"),
        ({"candidates": [("mine", DummyClassifier())]}, "is not for regression"),
        ({"candidates": [("mine", LinearRegression())]}, "'mine' could not be fitted: Input X contains NaN"),
    ],
)
def test_errors(data, parameters, words):
    with pytest.raises(ValueError, match=words):
        AdaptiveStackRegressor(**{"candidates": FEW, **parameters}).fit(data.X_train, data.y_train)
    with pytest.raises(ValueError, match="takes no sample_weight"):
        AdaptiveStackRegressor([("near", KNeighborsRegressor())]).fit(data.X_train, data.y_train, np.ones(200))


def test_constant_features_and_features_that_a_fold_lacks(data):
    X, y = data.X_train[:80].copy(), data.y_train[:80]
    X[:, 1] = np.where(np.arange(80) == 5, 1.0, np.nan)  # observed once: never in some folds
    X[:, 4] = 7.0
    names = ["affine_intercept", "conditional_mean", "expected_features_censored", "forest", "boosting"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = AdaptiveStackRegressor(names, cv=3, random_state=0).fit(X, y)
        found = model.predict(X)
    assert np.isfinite(found).all()
    X[0, 4] = np.nan
    with pytest.warns(UserWarning, match="set to the training mean here: x4"):
        np.testing.assert_allclose(model.predict(X), found)


class Strange(DummyRegressor):
    """Predicts arrays of a wrong shape, or NaN."""

    def __init__(self, strange=None):
        super().__init__()
        self.strange = strange

    def predict(self, X):
        return np.full((len(X), 1), 0.0) if self.strange == "shape" else np.full(len(X), np.nan)


@pytest.mark.parametrize(("strange", "words"), [("shape", r"an array of shape \(\d+, 1\)"), ("nan", "NaN or infinity")])
def test_invalid_predictions_are_named(data, strange, words):
    with pytest.raises(ValueError, match=f"The candidate 'odd' predicts {words}"):
        AdaptiveStackRegressor(["conditional_mean", ("odd", Strange(strange))]).fit(data.X_train, data.y_train)


def test_only_seeds_left_at_none_are_set(data):
    forest = RandomForestRegressor(5)
    own = [("fixed", clone(forest).set_params(random_state=42)), ("open", make_pipeline(SimpleImputer(), forest))]
    X, y = data.X_train[:80], data.y_train[:80]
    first, second = (AdaptiveStackRegressor(own, random_state=0).fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(first.predict(X), second.predict(X))
    assert first.estimators_["fixed"].random_state == 42


def test_only_the_ratios_of_weights_count(data):
    X, y = data.X_train[:100], data.y_train[:100]
    s = np.random.default_rng(0).uniform(0.5, 2, 100)
    names = ["affine_intercept", "conditional_mean", "boosting"]
    model = AdaptiveStackRegressor(names, cv=3, random_state=0)
    first, second = (clone(model).fit(X, y, c * s).predict(X) for c in (1, 1 / 128))
    np.testing.assert_allclose(first, second, rtol=1e-6)


@pytest.mark.parametrize("unit", [1e-150, 1e100])
def test_units_of_y(data, unit):
    X, y = data.X_train[:100], data.y_train[:100]
    first, second = (AdaptiveStackRegressor(FEW, random_state=0).fit(X, c * y) for c in (1.0, unit))
    np.testing.assert_allclose(second.combination_, first.combination_, atol=1e-5)
    np.testing.assert_allclose(second.predict(X) / unit, first.predict(X), rtol=1e-4, atol=1e-4)


def test_values_far_out(data):
    X, y = data.X_train[:80], data.y_train[:80]
    model = AdaptiveStackRegressor(["conditional_mean", "forest"], cv=2, random_state=0).fit(X, y)
    far = np.nan_to_num(X[:2])
    far[0, 0] = 1e45
    assert np.isfinite(model.predict(far)).all()


def test_splitters_see_the_classes(data):
    labels = np.repeat(["a", "b", "c"], [60, 20, 20])
    seen = []

    class Spy(StratifiedKFold):
        def split(self, X, y, groups=None):
            seen.append(np.unique(y).size)
            return super().split(X, y, groups)

    AdaptiveStackClassifier(FEW, cv=Spy(3), random_state=0).fit(data.X_train[:100], labels)
    assert seen == [3]


def test_targets_and_features_without_information_are_refused(data):
    one = np.where(np.arange(60) == 0, "rare", "often")
    with pytest.raises(ValueError, match="all of one class"):
        AdaptiveStackClassifier(FEW).fit(data.X_train[:60], one)
    with pytest.raises(ValueError, match="no observed value"):
        AdaptiveStackRegressor(FEW).fit(np.full((30, 2), np.nan), np.arange(30.0))
