"""Tuned predictors: against scikit-learn's grid search, without leaks, and as estimators."""

import threading
import warnings

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.ensemble import (
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, SimpleImputer
from sklearn.metrics import log_loss, r2_score
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils import get_tags
from xgboost import XGBRegressor

from admiss import AdaptiveClassifier, FiniteRegressor
from admiss.baselines.chained_equations import ChainedEquations, complete_transductive
from admiss.baselines.complete_features import CompleteFeatures
from admiss.baselines.grids import GRIDS, resolve_grid
from admiss.baselines.kinds import KINDS
from admiss.baselines.tuned import TunedClassifier, TunedRegressor
from admiss.estimator.cross_validation import make_folds
from admiss.estimator.notices import silence

SMALL = {
    "linear": {"l1_ratio": [0.5], "lam": [0.1, 1.0]},
    "tree": {"max_depth": [2, 4]},
    "forest": {"n_estimators": [2, 5], "max_depth": [2, None]},
    "xgboost": {"n_estimators": [2, 5], "max_depth": [2]},
    "hist_boosting": {"max_iter": [2, 5], "min_samples_leaf": [2]},
}


@pytest.fixture
def rows(make_rows):
    return make_rows(n=240, d=4)


def folds_of(X, y, n_folds=3, seed=0, labels=None):
    return make_folds(X, y, labels, np.ones(len(y)), n_folds, seed)


def by_cell(results, names):
    return {tuple(results[name][i] for name in names): i for i in range(len(results["mean_score"]))}


@pytest.mark.parametrize(
    ("kind", "estimator", "grid", "n_fits"),
    [
        # leaves of 20 rows have no ties: truncation is exact
        ("tree", DecisionTreeRegressor(), {"max_depth": [1, 2, 4], "min_samples_leaf": [20, 30]}, 7),
        (
            "forest",
            RandomForestRegressor(),
            {"n_estimators": [3, 8], "max_depth": [1, 3, None], "min_samples_leaf": [20]},
            4,
        ),
        ("xgboost", XGBRegressor(n_jobs=1), {"n_estimators": [5, 20], "max_depth": [1, 3]}, 7),
        ("hist_boosting", HistGradientBoostingRegressor(), {"max_iter": [5, 20], "learning_rate": [0.1, 0.3]}, 7),
    ],
)
def test_every_cell_scores_as_in_a_grid_search(rows, kind, estimator, grid, n_fits):
    X, y = rows
    imputer = None if kind in ("xgboost", "hist_boosting") else SimpleImputer()
    model = TunedRegressor(kind, imputer, grid, cv=3, random_state=0).fit(X, y)
    plain = estimator.set_params(random_state=0)
    pipeline = make_pipeline("passthrough" if imputer is None else imputer, plain)
    prefix = f"{type(plain).__name__.lower()}__"
    search = GridSearchCV(pipeline, {prefix + name: values for name, values in grid.items()}, cv=folds_of(X, y))
    search.fit(X, y)
    index = by_cell(model.cv_results_, list(grid))
    assert model.n_fits_ == n_fits
    assert len(index) == len(search.cv_results_["params"]) == model.cv_results_.n_rows
    for i, parameters in enumerate(search.cv_results_["params"]):
        row = index[tuple(parameters[prefix + name] for name in grid)]
        for k in range(3):
            expected = search.cv_results_[f"split{k}_test_score"][i]
            assert model.cv_results_[f"split{k}_score"][row] == pytest.approx(expected, abs=1e-9)
    assert model.best_score_ == pytest.approx(search.best_score_, abs=1e-9)
    np.testing.assert_allclose(
        model.predict(X),
        pipeline.set_params(**{prefix + k: v for k, v in model.best_params_.items()}).fit(X, y).predict(X),
    )


@pytest.mark.parametrize("scoring", ["log_loss", "auc"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_classes_score_as_in_a_grid_search(rows, scoring, n_classes):
    X, y = rows
    labels = np.array(["c", "a", "b"])[np.digitize(y, np.quantile(y, [0.4, 0.7])[: n_classes - 1])]
    grid = {"n_estimators": [4, 9], "max_features": [0.5, 1.0]}
    model = TunedClassifier("forest", None, grid, cv=3, scoring=scoring, random_state=0).fit(X, labels)
    codes = np.unique(labels, return_inverse=True)[1]
    name = {"log_loss": "neg_log_loss", "auc": "roc_auc" if n_classes == 2 else "roc_auc_ovr"}[scoring]
    search = GridSearchCV(RandomForestClassifier(random_state=0), grid, scoring=name, cv=folds_of(X, y, labels=codes))
    search.fit(X, labels)
    index = by_cell(model.cv_results_, list(grid))
    for parameters, expected in zip(search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True):
        assert model.cv_results_["mean_score"][index[tuple(parameters[k] for k in grid)]] == pytest.approx(expected)
    np.testing.assert_allclose(model.predict_proba(X), search.best_estimator_.predict_proba(X))
    assert model.predict(X).tolist() == search.predict(X).tolist()


@pytest.mark.parametrize("n_classes", [0, 2])
def test_the_linear_predictor_scores_as_its_estimator(rows, n_classes):
    X, y = rows
    target = (y > np.median(y)).astype(int) if n_classes else y
    tuned = TunedClassifier if n_classes else TunedRegressor
    model = tuned("linear", SimpleImputer(add_indicator=True), cv=3, random_state=0).fit(X, target)
    assert model.cv_results_.n_rows == 300
    assert model.n_fits_ == 10
    splits = folds_of(X, target, labels=target if n_classes else None)
    for row in (model.best_index_, 10, 299):
        cell = {name: model.cv_results_[name][row] for name in ("l1_ratio", "lam")}
        pipeline = clone(model.best_estimator_)
        pipeline.set_params(predictor__lam=float(cell["lam"]), predictor__l1_ratio=float(cell["l1_ratio"]))
        expected = cross_val_score(pipeline, X, target, cv=splits, scoring="neg_log_loss" if n_classes else "r2")
        found = [model.cv_results_[f"split{k}_score"][row] for k in range(3)]
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4 if n_classes else 1e-7)


class RecordingImputer(TransformerMixin, BaseEstimator):
    """Records the rows that it was fitted to."""

    seen: list = []  # noqa: RUF012

    def fit(self, X, y=None):
        self.seen.append(X.copy())
        self.mean_ = np.nanmean(X, axis=0)
        return self

    def transform(self, X):
        return np.where(np.isnan(X), self.mean_, X)


def test_the_imputer_sees_training_rows_only_and_is_fitted_once_per_fold(rows):
    X, y = rows
    RecordingImputer.seen.clear()
    grids = {kind: SMALL[kind] for kind in ("linear", "tree", "xgboost")}
    TunedRegressor(list(grids), RecordingImputer(), grids, cv=3, random_state=0).fit(X, y)
    expected = [X[train] for train, _ in folds_of(X, y)] + [X]
    assert len(RecordingImputer.seen) == 4
    for found, part in zip(RecordingImputer.seen, expected, strict=True):
        np.testing.assert_array_equal(found, part)


def test_best_is_the_best_of_its_kinds_on_the_same_folds(rows):
    X, y = rows
    grids = {kind: SMALL[kind] for kind in ("linear", "tree", "forest", "xgboost")}
    best = TunedRegressor("best", SimpleImputer(), grids, cv=3, random_state=1).fit(X, y)
    alone = [TunedRegressor(kind, SimpleImputer(), grids[kind], cv=3, random_state=1).fit(X, y) for kind in grids]
    scores = np.concatenate([model.cv_results_["mean_score"] for model in alone])
    np.testing.assert_array_equal(best.cv_results_["mean_score"], scores)
    winner = alone[int(np.argmax([model.best_score_ for model in alone]))]
    assert (best.best_kind_, best.best_params_) == (winner.best_kind_, winner.best_params_)
    np.testing.assert_array_equal(best.predict(X), winner.predict(X))
    assert best.n_fits_ == sum(model.n_fits_ - 1 for model in alone) + 1


@pytest.mark.parametrize("kind", list(KINDS))
def test_another_seed_gives_other_scores(rows, kind):
    X, y = rows
    first, other = (
        TunedRegressor(kind, SimpleImputer(), SMALL[kind], cv=3, random_state=seed).fit(X, y).cv_results_["mean_score"]
        for seed in (7, 8)
    )
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("kind", list(KINDS))
def test_weights_reach_the_predictor(rows, kind):
    X, y = rows
    s = np.tile([0.0, 1.0, 3.0], 80)
    shared = {"imputer": SimpleImputer(), "grid": SMALL[kind], "cv": 3, "random_state": 0}
    model = TunedRegressor(kind, **shared).fit(X, y, s)
    used = s > 0
    filled = SimpleImputer().fit(X[used]).transform(X)
    folds = make_folds(X[used], y[used], None, s[used], 3, 0)
    for k, (train, test) in enumerate(folds):
        fitted = clone(model.best_estimator_)
        fitted.fit(X[used][train], y[used][train], predictor__sample_weight=s[used][train])
        expected = r2_score(y[used][test], fitted.predict(X[used][test]), sample_weight=s[used][test])
        assert model.cv_results_[f"split{k}_score"][model.best_index_] == pytest.approx(expected, abs=1e-6)
    separate = clone(model.best_estimator_[-1]).fit(filled[used], y[used], sample_weight=s[used])
    np.testing.assert_array_equal(model.predict(X), separate.predict(filled))


def test_missing_values_need_an_imputer_only_for_the_linear_predictor(rows):
    X, y = rows
    for kind in KINDS:
        model = TunedRegressor(kind, grid=SMALL[kind], cv=2, random_state=0)
        if kind == "linear":
            with pytest.raises(ValueError, match="a linear predictor does not accept: use an imputer"):
                model.fit(X, y)
            with pytest.raises(ValueError, match="The imputer leaves NaN"):
                model.set_params(imputer=StandardScaler()).fit(X, y)
        else:
            assert np.isfinite(model.fit(X, y).predict(X)).all()
            assert np.isfinite(model.predict(np.full((1, 4), np.nan))).all()


@pytest.mark.parametrize("kind", ["tree", "forest", "xgboost", "hist_boosting"])
def test_a_feature_that_is_complete_in_the_rows_of_a_fold_is_not_reported(rows, kind):
    X, y = rows
    rare = np.nan_to_num(X, nan=0.5)
    rare[0, 2] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = TunedRegressor(kind, grid=SMALL[kind], cv=2, random_state=0).fit(rare, y)
    assert np.isfinite(model.best_score_)


def test_a_class_that_a_fold_lacks(rows):
    X, y = rows
    labels = np.where(y > np.median(y), "high", "low").astype(object)
    labels[0] = "a single one"
    for kind in KINDS:
        model = TunedClassifier(kind, SimpleImputer(), SMALL[kind], cv=3, random_state=0).fit(X, labels)
        assert model.classes_.tolist() == ["a single one", "high", "low"]
        assert model.predict_proba(X).shape == (240, 3)
        # the log-loss of a coin is .7, and the single row costs 36 / 240; wrong columns would cost 36 per row
        assert model.best_score_ > -2.0
    with pytest.raises(ValueError, match="fold 2, which lacks a class: use fewer folds, or scoring='log_loss'"):
        TunedClassifier("tree", cv=3, scoring="auc").fit(X, labels)
    with pytest.raises(ValueError, match="of one class: use fewer folds"):
        TunedClassifier("tree", cv=3).fit(X, np.arange(240) == 0)
    with pytest.raises(ValueError, match="fold 1, which has one row: use fewer folds, or scoring='squared_error'"):
        TunedRegressor("tree", cv=KFold(240)).fit(X, y)
    constant = TunedRegressor("tree", cv=3).fit(X, np.ones(240))
    assert constant.best_score_ == 1.0
    loo = TunedRegressor("tree", grid=SMALL["tree"], cv=KFold(240), scoring="squared_error").fit(X, y)
    assert loo.best_score_ < 0


def test_imputers_get_the_seed(rows):
    X, y = rows

    class NoisyImputer(RecordingImputer):
        def __init__(self, random_state=None):
            self.random_state = random_state

        def transform(self, X):
            noise = np.random.default_rng(self.random_state).normal(size=X.shape)
            return np.where(np.isnan(X), noise, X)

    shared = {"imputer": NoisyImputer(), "grid": SMALL["tree"], "cv": 3, "random_state": 0}
    first, second = (TunedRegressor("tree", **shared).fit(X, y).cv_results_["mean_score"] for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert shared["imputer"].random_state is None


@pytest.mark.parametrize("output", ["default", "pandas"])
def test_frames_between_imputer_and_predictor_give_no_warning(rows, output):
    X, y = rows
    expected = TunedRegressor("tree", SimpleImputer(), SMALL["tree"], cv=2, random_state=0).fit(X, y).predict(X)
    imputers = [
        SimpleImputer().set_output(transform=output),
        make_pipeline(SimpleImputer(), StandardScaler()).set_output(transform=output),
    ]
    with warnings.catch_warnings(), config_context(transform_output=output):
        warnings.simplefilter("error")
        for imputer in (SimpleImputer(), *imputers):
            model = TunedRegressor("tree", imputer, SMALL["tree"], cv=2, random_state=0).fit(X, y)
            np.testing.assert_allclose(model.predict(X), expected)


def test_weights_of_classes(rows):
    X, y = rows
    labels = np.where(y > np.quantile(y, 0.7), "rare", "common")
    weights = [None, "balanced", {"rare": 5.0}, {"common": 0.5, "rare": 2.0}]
    grid = {"max_depth": [1, 3], "class_weight": weights, "min_samples_leaf": [20]}
    model = TunedClassifier("tree", SimpleImputer(), grid, cv=3, random_state=0).fit(X, labels)
    codes = np.unique(labels, return_inverse=True)[1]
    pipeline = make_pipeline(SimpleImputer(), DecisionTreeClassifier(random_state=0))
    search = GridSearchCV(
        pipeline,
        {f"decisiontreeclassifier__{name}": values for name, values in grid.items()},
        scoring="neg_log_loss",
        cv=folds_of(X, y, labels=codes),
    ).fit(X, labels)
    found = {
        (str(model.cv_results_["class_weight"][i]), model.cv_results_["max_depth"][i]): score
        for i, score in enumerate(model.cv_results_["mean_score"])
    }
    for parameters, expected in zip(search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True):
        cell = str(parameters["decisiontreeclassifier__class_weight"]), parameters["decisiontreeclassifier__max_depth"]
        assert found[cell] == pytest.approx(expected)
    np.testing.assert_allclose(model.predict_proba(X), search.best_estimator_.predict_proba(X))
    assert model.best_params_["class_weight"] in weights
    for kind in ("forest", "hist_boosting"):
        for weight in weights:
            one = TunedClassifier(kind, None, {**SMALL[kind], "class_weight": [weight]}, cv=2).fit(X, labels)
            assert one.best_params_["class_weight"] == weight


def test_weights_of_classes_if_a_fold_lacks_one(rows):
    X, y = rows
    labels = np.where(y > np.median(y), "high", "low").astype(object)
    labels[0] = "a single one"
    # in the fold without the first class the codes of the others are shifted by one
    train = np.arange(80, 240)
    grid = {"max_depth": [2], "class_weight": [{"a single one": 3.0, "high": 9.0}]}
    model = TunedClassifier("tree", None, grid, cv=[(train, np.arange(1, 80))], random_state=0).fit(X, labels)
    plain = DecisionTreeClassifier(max_depth=2, class_weight={"high": 9.0}, random_state=0).fit(X[train], labels[train])
    expected = -log_loss(labels[1:80], plain.predict_proba(X[1:80]), labels=["high", "low"])
    assert model.best_score_ == pytest.approx(expected)


@pytest.mark.parametrize(
    ("weights", "message"),
    [({"hihg": 2.0}, "class_weight has labels that y does not have"), ({"high": "a"}, "must be non-negative numbers")],
)
def test_invalid_weights_of_classes(rows, weights, message):
    X, y = rows
    with pytest.raises(ValueError, match=message):
        TunedClassifier("tree", grid={"class_weight": [weights]}).fit(X, np.where(y > 0, "high", "low"))


def test_held_out_values_that_are_never_missing_in_their_fold():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(200, 2))
    y = X[:, 0] + 0.1 * rng.normal(size=200)
    s = rng.uniform(0.5, 2, size=200)
    X[150:180, 0] = np.nan
    train, test = np.arange(150), np.arange(150, 200)
    model = TunedRegressor("tree", grid={"max_depth": [4]}, cv=[(train, test)], random_state=0).fit(X, y, s)
    tree = DecisionTreeRegressor(max_depth=4, random_state=0).fit(X[train], y[train], s[train])
    filled = np.where(np.isnan(X), np.average(X[train], axis=0, weights=s[train]), X)
    by_hand, as_they_are = (
        r2_score(y[test], tree.predict(given[test]), sample_weight=s[test]) for given in (filled, X)
    )
    assert model.best_score_ == pytest.approx(by_hand)
    assert abs(by_hand - as_they_are) > 0.01


def recorded(call, *arguments):
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        call(*arguments)
    return [(str(one.message).partition(":")[0], one.filename) for one in warned]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_imputer_warns_once_and_not_for_every_fold(rows, n_jobs):
    X, y = rows
    shared = {"kind": "tree", "grid": SMALL["tree"], "cv": 5, "random_state": 0, "n_jobs": n_jobs}
    empty = np.insert(X, 1, np.nan, axis=1)
    before = list(warnings.filters)
    warned = recorded(TunedRegressor(imputer=ChainedEquations(n_sweeps=1), **shared).fit, empty, y)
    assert warned == [("Never observed in training, and set to 0 throughout", __file__)]
    slow = IterativeImputer(max_iter=1, tol=1e-12)
    assert len(recorded(TunedRegressor(imputer=slow, **shared).fit, X, y)) == len(recorded(slow.fit, X)) == 1
    # every feature has missing values on all rows and, silently, not in all folds
    sparse = np.nan_to_num(X, nan=0.5)
    sparse[np.arange(4), np.arange(4)] = np.nan
    warned = recorded(TunedRegressor(imputer=CompleteFeatures(), **shared).fit, sparse, y)
    assert warned == [("Every feature has missing values in training", __file__)]
    assert list(warnings.filters) == before


def test_silence_in_threads_that_overlap_leaves_the_filters_as_they_were():
    before = list(warnings.filters)
    both_in, first_out = threading.Barrier(2), threading.Event()

    def first():
        with silence():
            both_in.wait(10)
        first_out.set()

    def second():
        with silence():
            both_in.wait(10)
            first_out.wait(10)
            warnings.warn("in here", stacklevel=1)

    threads = [threading.Thread(target=target) for target in (first, second)]
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        warnings.warn("out there", stacklevel=1)
    assert [str(one.message) for one in warned] == ["out there"]
    assert list(warnings.filters) == before


def test_warnings_point_to_the_line_that_called(rows):
    """Through a pipeline, a score or another method than those that the properties of all estimators ask."""
    X, y = rows
    full, empty = np.nan_to_num(X, nan=0.5), np.insert(X, 1, np.nan, axis=1)
    piped = make_pipeline(FunctionTransformer(), AdaptiveClassifier("static"))
    assert recorded(piped.fit, empty, y > np.median(y))[0][1] == __file__
    piped.fit(full, y > np.median(y))
    finite = FiniteRegressor().fit(full, y)
    calls = [(piped.predict, X), (piped.decision_function, X), (finite.apply, X), (finite.score, X, y)]
    calls += [(ChainedEquations().fit_transform, empty), (CompleteFeatures().fit_transform, X)]
    calls += [(complete_transductive, empty, empty)]
    assert [recorded(*call)[0][1] for call in calls] == [__file__] * len(calls)


def test_tags_of_any_kind():
    assert get_tags(TunedRegressor(None)).input_tags.allow_nan
    assert get_tags(TunedRegressor(["tree", "forest"])).input_tags.allow_nan
    assert not get_tags(TunedRegressor(["tree", "linear"])).input_tags.allow_nan
    assert not get_tags(TunedRegressor()).input_tags.allow_nan


def test_grids_by_name():
    assert {kind: np.prod([len(v) for v in grid.values()]) for kind, grid in GRIDS["authors"].items()} == {
        "linear": 10, "tree": 8, "forest": 70, "xgboost": 120,
    }  # fmt: skip
    assert GRIDS["authors"]["forest"]["n_estimators"] == [50, 75, 100, 125, 150, 175, 200]
    assert GRIDS["authors"]["forest"]["max_depth"] == [5, 10, 15, 20, 25, 30, 35, 40, 45, 50]
    for kind, grid in GRIDS["default"].items():
        KINDS[kind].check(kind, grid, is_classifier=False)
        KINDS[kind].check(kind, grid, is_classifier=True)
    both = resolve_grid({"tree": {"max_depth": np.array([3, 1])}}, ("tree", "forest"))
    assert both == {"tree": {"max_depth": [3, 1]}, "forest": GRIDS["default"]["forest"]}


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"kind": [["tree"]]}, "kind must be one of"),
        ({"kind": ["best", "tree"]}, "without 'best'"),
        ({"kind": "hist_boosting", "grid": "authors"}, "There is no grid 'authors' for 'hist_boosting'"),
        ({"grid": {"max_depth": 3}}, "The grid of 'max_depth' must be a list of at least one value, not 3"),
        ({"grid": {"max_depth": [2.5]}}, "must hold positive integers"),
        ({"grid": {"depth": [2]}}, "The predictor 'tree' has no parameter 'depth'"),
        ({"grid": {"ccp_alpha": [0.1]}}, "The parameter 'ccp_alpha' of 'tree' cannot be tuned"),
        ({"kind": "linear", "grid": {"lam": [0.0]}}, "The grid of 'lam' must hold positive numbers"),
        ({"kind": "linear", "grid": {"l1_ratio": [0.5, 2.0]}}, "The grid of 'l1_ratio' must hold numbers from 0 to 1"),
        (
            {"kind": ["tree", "forest"], "grid": {"max_depth": [2]}},
            "For several kinds grid must have one grid per kind",
        ),
        ({"imputer": "mean"}, "imputer must be a transformer"),
    ],
)
def test_invalid_parameters_are_refused_before_work_starts(rows, parameters, message):
    model = TunedRegressor(**{"kind": "tree", **parameters})
    with pytest.raises(ValueError, match=message):
        model.fit(*rows)
    assert not hasattr(model, "cv_results_")
