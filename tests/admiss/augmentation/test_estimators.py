"""Augmented estimators: the expectation against copies and against the stated program, weights, folds, pipelines."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline

from admiss import (
    AdaptiveClassifier,
    AdaptiveRegressor,
    AdaptiveRegressorCV,
    DeletionAugmentedClassifier,
    DeletionAugmentedRegressor,
    FiniteRegressorCV,
)
from admiss.adaptivity import Affine, Polynomial
from admiss.augmentation.deletions import Deletions
from admiss.augmentation.estimators import with_whole_rows
from admiss.augmentation.expected import is_exact
from admiss.datasets import make_synthetic
from admiss.partition import Greedy
from formulations.certificate import SOLVERS_BOUND
from tests.admiss.augmentation.test_expected_moments import every_deletion, make_rows

LIMITLESS = {"max_extrapolation": np.inf}
CLASSES = ["static", "affine_intercept", "affine", Polynomial(2)]


@pytest.mark.parametrize("adaptivity", CLASSES, ids=str)
@pytest.mark.parametrize(
    "options", [{"lam": 0.3}, {"lam": 0.3, "l1_ratio": 0.7}, {"lam": 0.0}, {"lam": 1e3, "scale": False}]
)
def test_the_expectation_is_the_fit_on_all_deletions(adaptivity, options):
    X, y, s = make_rows()
    law = Deletions(0.0, 0.7, 0.5)
    rows, target, weights = every_deletion(X, y, s, law)
    model = AdaptiveRegressor(adaptivity, **options, **LIMITLESS)
    augmented = DeletionAugmentedRegressor(model).fit(X, y, s)
    stated = model.fit(rows, target, weights)
    assert augmented.copies_ == np.inf
    assert augmented.estimator_.certificate_.objective == pytest.approx(
        stated.certificate_.objective, rel=1e-6, abs=1e-9
    )
    np.testing.assert_allclose(augmented.predict(rows), stated.predict(rows), rtol=0, atol=1e-5)
    pattern = np.array([1, 0, 0])
    np.testing.assert_allclose(augmented.estimator_.coef_at(pattern), stated.coef_at(pattern), rtol=1e-3, atol=1e-7)


def test_solvers_agree():
    X, y, s = make_rows()
    found = [
        DeletionAugmentedRegressor(AdaptiveRegressor("affine", lam=0.3, l1_ratio=0.5, solver=solver)).fit(X, y, s)
        for solver in ("auto", "cvxpy")
    ]
    np.testing.assert_allclose(found[0].predict(X), found[1].predict(X), rtol=0, atol=1e-5)
    for model, status in zip(found, ("optimal", "solver's bound"), strict=True):
        certificate = model.estimator_.certificate_
        assert certificate.gap <= 1e-6 * certificate.objective
        assert certificate.status == status


@pytest.mark.parametrize("seed", range(10))
def test_no_coefficients_on_all_deletions_are_below_the_bound(seed):
    """The rows of all deletions are solved by another way; their objective is that of the expectation to 1e-13."""
    X, y, s = make_rows(seed=seed)
    X[:, 1] = X[:, 0] + 10.0 ** -(seed % 5) * X[:, 1]
    rows, target, weights = every_deletion(X, y, s, Deletions(0.0, 0.7, 0.5))
    model = AdaptiveRegressor(CLASSES[seed % 4], lam=10.0 ** -(seed % 3), l1_ratio=0.5 * (seed % 2))
    found = DeletionAugmentedRegressor(model).fit(X, y, s).estimator_.certificate_
    stated = model.set_params(solver="cvxpy").fit(rows, target, weights).certificate_
    assert found.status == "optimal"
    assert found.bound <= stated.objective * (1.0 + 1e-13)
    assert stated.bound <= found.objective * (1.0 + 1e-13)


def test_copies_converge_to_the_expectation():
    """At the rate 1 / sqrt(copies): 64 times as many copies, an eighth of the distance, within a factor of 2."""
    X, y, s = make_rows(n=60, seed=1)
    model = AdaptiveRegressor("affine", lam=1.0, **LIMITLESS)
    exact = DeletionAugmentedRegressor(model).fit(X, y, s).predict(X)
    distance = {}
    for copies in (4, 256):
        draws = [
            DeletionAugmentedRegressor(model, copies=copies, random_state=seed).fit(X, y, s).predict(X) - exact
            for seed in range(8)
        ]
        distance[copies] = np.sqrt(np.mean(np.square(draws)))
    assert 4 < distance[4] / distance[256] < 16


@pytest.mark.parametrize("scale", [True, False])
def test_the_expected_search_is_the_search_on_all_deletions(scale):
    """On folds of whole rows, cell by cell; held-out rows have deletions too."""
    X, y, s = make_rows(n=40)
    y = y - 1e4
    law, grid = Deletions(0.0, 0.7, 0.5), {"l1_ratios": [0.0, 0.5], "n_lambdas": 12, "adaptive_penalties": [1.0, 4.0]}
    rows, target, weights = every_deletion(X, y, s, law)
    index = np.tile(np.arange(len(X)), len(rows) // len(X))
    folds = list(KFold(3, shuffle=True, random_state=0).split(X))
    copied = [tuple(np.flatnonzero(np.isin(index, part)) for part in fold) for fold in folds]
    search = AdaptiveRegressorCV(["static", "affine"], **grid, cv=folds, scale=scale)
    exact = DeletionAugmentedRegressor(search).fit(X, y, s).estimator_
    stated = search.set_params(cv=copied).fit(rows, target, weights)
    first, second = exact.cv_results_, stated.cv_results_
    lasso = first["l1_ratio"] > 0  # the range of ridge depends on a centre of the columns that need not be precise
    for column in ("lam", "mean_loss"):
        np.testing.assert_allclose(first[column][lasso], second[column][lasso], rtol=1e-6)
        np.testing.assert_allclose(first[column], second[column], rtol=0.01)
    assert exact.best_index_ == stated.best_index_
    scale = np.ptp(stated.predict(X))
    np.testing.assert_allclose(exact.predict(X), stated.predict(X), rtol=0, atol=0.01 * scale)


def test_default_classes_count_all_features_as_missable():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 20))
    model = DeletionAugmentedRegressor(AdaptiveRegressorCV(n_lambdas=5, random_state=0)).fit(X, X[:, 0])
    assert set(model.estimator_.cv_results_["adaptivity"]) == {"AffineIntercept()"}


def at_least_one(program):
    return [program.weight("x1") >= 1.0]


@pytest.mark.parametrize(
    "estimator",
    [
        AdaptiveRegressor("fully_adaptive"),
        AdaptiveRegressor(loss="huber"),
        AdaptiveRegressor(penalty_weights="authors"),
        AdaptiveRegressor(on_unseen_pattern="error"),
        AdaptiveRegressor(monotonic_cst=[0, 1, 0]),
        AdaptiveRegressorCV(monotonic_cst=[0, 1, 0]),
        AdaptiveRegressor(constraints=at_least_one),
        AdaptiveRegressorCV(["affine", "finite"]),
        type("Own", (Affine,), {})(),
        HistGradientBoostingRegressor(),
    ],
)
def test_no_expectation(estimator):
    assert not is_exact(AdaptiveRegressor(estimator) if isinstance(estimator, Affine) else estimator)


@pytest.mark.parametrize(
    "estimator",
    [
        AdaptiveRegressor("static", monotonic_cst=[0, 1, 0]),
        AdaptiveRegressor("static", constraints=at_least_one),
        AdaptiveRegressorCV("static", l1_ratios=[0.0], n_lambdas=2, cv=2, monotonic_cst=[0, 1, 0]),
    ],
)
def test_constraints_hold_under_deletions(estimator):
    X = np.random.default_rng(0).normal(size=(60, 3))
    model = DeletionAugmentedRegressor(estimator, random_state=0).fit(X, X @ [1.0, -2.0, 0.5])
    assert model.copies_ == 4
    least = 1.0 if getattr(estimator, "constraints", None) else 0.0
    assert model.estimator_.coef_at([0, 0, 0])[1] == pytest.approx(least, abs=1e-6)
    assert model.estimator_.certificate_.status == SOLVERS_BOUND


def test_without_weights_rows_and_copies_weigh_the_same():
    X, y, s = make_rows()
    model = make_pipeline(SimpleImputer(), KNeighborsRegressor(2))
    with pytest.raises(ValueError, match=r"takes? sample_weight: pass no weights and use keep=0\.2"):
        DeletionAugmentedRegressor(model).fit(X, y)
    with pytest.raises(ValueError, match="pass no weights"):
        DeletionAugmentedRegressor(model, keep=0.2).fit(X, y, s)
    assert np.isfinite(DeletionAugmentedRegressor(model, keep=0.2, random_state=0).fit(X, y).predict(X)).all()


class Recorder(AdaptiveRegressor):
    """A regressor that remembers what it was fitted to."""

    cv: object

    def __init__(self, cv=None):
        super().__init__()
        self.cv = cv

    def fit(self, X, y, sample_weight=None):
        self.rows_ = X, y, sample_weight
        return super().fit(X, y, sample_weight)


@pytest.mark.parametrize(
    "cv", [None, 3, KFold(4), [(np.arange(20), np.arange(20, 30)), (np.arange(10, 30), np.arange(10))]]
)
@pytest.mark.parametrize("wrap", [lambda model: model, lambda model: make_pipeline(SimpleImputer(), model)])
def test_folds_hold_whole_rows(cv, wrap):
    X, y, s = make_rows(n=30)
    s[::7] = 0.0
    fitted = DeletionAugmentedRegressor(wrap(Recorder(cv)), random_state=0).fit(X, y, s).estimator_
    recorder = fitted if isinstance(fitted, Recorder) else fitted[-1]
    _, target, weights = recorder.rows_
    assert len(target) == 5 * np.sum(s > 0)
    np.testing.assert_allclose([weights[target == each].sum() for each in y[s > 0]], s[s > 0])
    assert len(recorder.cv) == {None: 5, 3: 3}.get(
        cv if not hasattr(cv, "split") and not isinstance(cv, list) else 0, len(recorder.cv)
    )
    for train, test in recorder.cv:
        assert not set(target[train]) & set(target[test])
        assert all(len(part) == 5 * len(set(target[part])) for part in (train, test))


def test_searches_of_every_kind_select_on_whole_rows():
    X, y, _ = make_rows(n=40)
    hist = HistGradientBoostingRegressor(max_iter=3, min_samples_leaf=5)
    searches = [
        GridSearchCV(hist, {"max_depth": [1, 2]}, cv=3),
        make_pipeline(SimpleImputer(), RidgeCV()),
        FiniteRegressorCV(Greedy(min_rows=5), max_depths=[1], ridges=[1.0], random_state=0),
    ]
    for search in searches:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model = DeletionAugmentedRegressor(search, copies=2, random_state=0).fit(X, y)
        assert np.isfinite(model.predict(X)).all()
        cv = (model.estimator_ if hasattr(model.estimator_, "cv") else model.estimator_[-1]).cv
        assert isinstance(cv, list)


@pytest.mark.parametrize("copies", ["auto", 1])
@pytest.mark.parametrize("in_pipeline", [False, True])
def test_folds_by_groups_are_listed(copies, in_pipeline):
    X, y, _ = make_rows(n=40)
    splitter, groups = GroupKFold(2), np.repeat(np.arange(4), 10)
    search = AdaptiveRegressorCV("static", n_lambdas=3, cv=splitter)
    model = DeletionAugmentedRegressor(make_pipeline("passthrough", search) if in_pipeline else search, copies=copies)
    name = "adaptiveregressorcv__cv" if in_pipeline else "cv"
    with pytest.raises(
        ValueError, match=rf"^GroupKFold needs groups, which fit does not take: list its folds, {name}="
    ):
        model.fit(X, y)
    model.set_params(**{f"estimator__{name}": list(splitter.split(X, y, groups))})
    assert np.isfinite(model.fit(X, y).predict(X)).all()


def test_searches_inside_of_searches_are_reported():
    X, y, _ = make_rows(n=40)
    nested = GridSearchCV(make_pipeline(SimpleImputer(), RidgeCV(cv=2)), {"simpleimputer__strategy": ["mean"]}, cv=2)
    with pytest.warns(UserWarning, match="estimator__ridgecv__cv: folds of a search inside another estimator"):
        DeletionAugmentedRegressor(nested, copies=1, random_state=0).fit(X, y)
    assert with_whole_rows(Recorder("prefit"), X, y, None, np.ones(40), np.arange(40), 0).cv == "prefit"


def test_classes_and_methods_of_the_estimator():
    X, y, s = make_rows(n=60)
    labels = np.where(y > np.median(y), "late", "soon")
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = DeletionAugmentedClassifier(HistGradientBoostingClassifier(max_iter=5), random_state=0)
    model.fit(frame, labels, s)
    assert model.estimator_.feature_names_in_.tolist() == ["a", "b", "c"]
    assert model.classes_.tolist() == ["late", "soon"]
    assert model.predict_proba(frame).shape == (60, 2)
    assert model.decision_function(frame).shape == (60,)
    assert not hasattr(DeletionAugmentedClassifier(KNeighborsRegressor()), "predict_proba")
    logistic = DeletionAugmentedClassifier(make_pipeline(SimpleImputer(), LogisticRegression()), random_state=0)
    assert logistic.fit(X, labels).score(X, labels) > 0.5


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (DeletionAugmentedRegressor(AdaptiveClassifier()), "estimator must be a regressor that accepts NaN"),
        (DeletionAugmentedClassifier(AdaptiveRegressor()), "estimator must be a classifier"),
        (DeletionAugmentedRegressor(AdaptiveRegressor), "estimator must be a regressor"),
    ],
)
def test_bad_parameters(model, words):
    X, y, _ = make_rows()
    with pytest.raises(ValueError, match=words):
        model.fit(X, y)


def test_far_features_without_centring_are_refused():
    X, y, _ = make_rows()
    X[:, 0] += 1e9
    for estimator in (AdaptiveRegressor(center=False), AdaptiveRegressorCV("static", center=False, random_state=0)):
        with pytest.raises(ValueError, match="use center=True"):
            DeletionAugmentedRegressor(estimator).fit(X, y)


def test_too_many_columns_are_refused(monkeypatch):
    X, y, s = make_rows()
    monkeypatch.setattr("admiss.augmentation.expected.MAX_COLUMNS", 5)
    for estimator in (AdaptiveRegressor("affine"), AdaptiveRegressorCV("affine", random_state=0)):
        with pytest.raises(ValueError, match="13 columns if every feature can be missing"):
            DeletionAugmentedRegressor(estimator).fit(X, y, s)


@pytest.mark.slow
def test_what_deletions_cost_without_a_shift():
    """Nothing if values are missing completely at random; accuracy if they are missing because of what they are."""
    gains = {}
    for mechanism in ("mcar", "censoring"):
        for adaptivity in ("affine", "affine_intercept"):
            changes = []
            for seed in range(6):
                rows = make_synthetic(n=400, d=8, mechanism=mechanism, missing_fraction=0.2, random_state=seed)
                search = AdaptiveRegressorCV(adaptivity, random_state=0)
                models = search, DeletionAugmentedRegressor(search, random_state=0)
                plain, augmented = (m.fit(rows.X_train, rows.y_train).score(rows.X_test, rows.y_test) for m in models)
                changes.append(augmented - plain)
            gains[mechanism, adaptivity] = np.mean(changes)
    assert gains["mcar", "affine"] > 0.005
    assert abs(gains["mcar", "affine_intercept"]) < 0.005
    assert gains["censoring", "affine"] < -0.005
    assert gains["censoring", "affine_intercept"] < -0.02
