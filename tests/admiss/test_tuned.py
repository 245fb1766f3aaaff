"""Tuned predictors: against scikit-learn's grid search, without leaks, and as estimators."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.ensemble import (
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.impute import SimpleImputer
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils.estimator_checks import parametrize_with_checks
from xgboost import XGBRegressor

from admiss.baselines.grids import GRIDS, resolve_grid
from admiss.baselines.kinds import KINDS
from admiss.baselines.tuned import TunedClassifier, TunedRegressor
from admiss.folds import make_folds

SMALL = {
    "linear": {"l1_ratio": [0.5], "lam": [0.1, 1.0]},
    "tree": {"max_depth": [2, 4]},
    "forest": {"n_estimators": [2, 5], "max_depth": [2, None]},
    "xgboost": {"n_estimators": [2, 5], "max_depth": [2]},
    "hist_boosting": {"max_iter": [2, 5], "min_samples_leaf": [2]},
}
# Copies of a row fall into different folds, and are drawn one by one by a forest.
NOT_COPIES = "a weight is not that many copies of the row: folds are made of rows"


def expected_failures(estimator):
    return {"check_sample_weight_equivalence_on_dense_data": NOT_COPIES}


@parametrize_with_checks(
    [
        *(TunedRegressor(kind, grid=SMALL[kind], cv=2) for kind in ("forest", "hist_boosting")),
        *(TunedClassifier(kind, grid=SMALL[kind], cv=2) for kind in ("linear", "tree", "xgboost")),
        TunedRegressor(["tree", "linear"], SimpleImputer(), {k: SMALL[k] for k in ("tree", "linear")}, cv=2),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


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
        # leaves of 20 rows leave no ties, so that truncation is exact
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
    place = by_cell(model.cv_results_, list(grid))
    assert model.n_fits_ == n_fits
    assert len(place) == len(search.cv_results_["params"]) == model.cv_results_.n_rows
    for i, parameters in enumerate(search.cv_results_["params"]):
        row = place[tuple(parameters[prefix + name] for name in grid)]
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
    place = by_cell(model.cv_results_, list(grid))
    for parameters, expected in zip(search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True):
        assert model.cv_results_["mean_score"][place[tuple(parameters[k] for k in grid)]] == pytest.approx(expected)
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
        chosen = {name: model.cv_results_[name][row] for name in ("l1_ratio", "lam")}
        pipeline = clone(model.best_estimator_)
        pipeline.set_params(predictor__lam=float(chosen["lam"]), predictor__l1_ratio=float(chosen["l1_ratio"]))
        expected = cross_val_score(pipeline, X, target, cv=splits, scoring="neg_log_loss" if n_classes else "r2")
        found = [model.cv_results_[f"split{k}_score"][row] for k in range(3)]
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4 if n_classes else 1e-7)


class RecordingImputer(TransformerMixin, BaseEstimator):
    """Remembers the rows that it was fitted on."""

    seen: list = []  # noqa: RUF012

    def fit(self, X, y=None):
        self.seen.append(X.copy())
        self.mean_ = np.nanmean(X, axis=0)
        return self

    def transform(self, X):
        return np.where(np.isnan(X), self.mean_, X)


def test_the_imputer_sees_training_rows_only_and_is_fitted_once_for_each_fold(rows):
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
def test_the_same_seed_on_any_number_of_threads(rows, kind):
    X, y = rows
    shared = {"grid": SMALL[kind], "cv": 3, "imputer": SimpleImputer()}
    models = [TunedRegressor(kind, random_state=seed, n_jobs=n, **shared).fit(X, y) for seed, n in ((7, 1), (7, 3))]
    np.testing.assert_array_equal(models[0].cv_results_["mean_score"], models[1].cv_results_["mean_score"])
    np.testing.assert_array_equal(models[0].predict(X), models[1].predict(X))
    other = TunedRegressor(kind, random_state=8, **shared).fit(X, y)
    assert not np.array_equal(other.cv_results_["mean_score"], models[0].cv_results_["mean_score"])
    again = pickle.loads(pickle.dumps(models[0]))
    np.testing.assert_array_equal(again.predict(X), models[0].predict(X))


@pytest.mark.parametrize("kind", list(KINDS))
def test_rows_of_weight_zero_are_no_rows_and_weights_reach_the_predictor(rows, kind):
    X, y = rows
    s = np.tile([0.0, 1.0, 3.0], 80)
    shared = {"imputer": SimpleImputer(), "grid": SMALL[kind], "cv": 3, "random_state": 0}
    model = TunedRegressor(kind, **shared).fit(X, y, s)
    used = s > 0
    np.testing.assert_array_equal(
        TunedRegressor(kind, **shared).fit(X[used], y[used], s[used]).predict(X), model.predict(X)
    )
    filled = SimpleImputer().fit(X[used]).transform(X)
    folds = make_folds(X[used], y[used], None, s[used], 3, 0)
    for k, (train, test) in enumerate(folds):
        fitted = clone(model.best_estimator_)
        fitted.fit(X[used][train], y[used][train], predictor__sample_weight=s[used][train])
        expected = r2_score(y[used][test], fitted.predict(X[used][test]), sample_weight=s[used][test])
        assert model.cv_results_[f"split{k}_score"][model.best_index_] == pytest.approx(expected, abs=1e-6)
    separate = clone(model.best_estimator_[-1]).fit(filled[used], y[used], sample_weight=s[used])
    np.testing.assert_array_equal(model.predict(X), separate.predict(filled))
    assert not np.array_equal(TunedRegressor(kind, **shared).fit(X[used], y[used]).predict(X), model.predict(X))


def test_missing_values_need_an_imputer_only_for_the_linear_predictor(rows):
    X, y = rows
    for kind in KINDS:
        model = TunedRegressor(kind, grid=SMALL[kind], cv=2, random_state=0)
        if kind == "linear":
            with pytest.raises(ValueError, match="a linear predictor does not take: give an imputer"):
                model.fit(X, y)
            with pytest.raises(ValueError, match="The imputer leaves NaN"):
                model.set_params(imputer=StandardScaler()).fit(X, y)
        else:
            assert np.isfinite(model.fit(X, y).predict(X)).all()
            assert np.isfinite(model.predict(np.full((1, 4), np.nan))).all()


@pytest.mark.parametrize("kind", ["tree", "forest", "xgboost", "hist_boosting"])
def test_missing_only_in_predict_is_the_training_mean(rows, kind):
    X, y = rows
    full = np.nan_to_num(X, nan=0.5)
    model = TunedRegressor(kind, grid=SMALL[kind], cv=2, random_state=0).fit(full, y)
    hole = full.copy()
    hole[::2, 1] = np.nan
    with pytest.warns(UserWarning, match="set to the training mean here: x1"):
        found = model.predict(hole)
    np.testing.assert_array_equal(found, model.predict(np.where(np.isnan(hole), full.mean(axis=0), hole)))
    # in a fold that happens to have a feature complete, and silently
    rare = full.copy()
    rare[0, 2] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isfinite(clone(model).fit(rare, y).best_score_)


def test_a_class_that_a_fold_has_not_seen(rows):
    X, y = rows
    labels = np.where(y > np.median(y), "high", "low").astype(object)
    labels[0] = "a single one"
    for kind in KINDS:
        model = TunedClassifier(kind, SimpleImputer(), SMALL[kind], cv=3, random_state=0).fit(X, labels)
        assert model.classes_.tolist() == ["a single one", "high", "low"]
        assert model.predict_proba(X).shape == (240, 3)
        # the log-loss of a coin is .7, and its row costs 36 / 240; classes in wrong places would cost 36 a row
        assert model.best_score_ > -2.0
    with pytest.raises(ValueError, match="A class is absent from held-out fold 2"):
        TunedClassifier("tree", cv=3, scoring="auc").fit(X, labels)
    with pytest.raises(ValueError, match="of one class: use fewer folds"):
        TunedClassifier("tree", cv=3).fit(X, np.arange(240) == 0)
    with pytest.raises(ValueError, match="Held-out fold 1 has one row, where R2 is not defined"):
        TunedRegressor("tree", cv=KFold(240)).fit(X, y)
    constant = TunedRegressor("tree", cv=3).fit(X, np.ones(240))
    assert constant.best_score_ == 1.0
    loo = TunedRegressor("tree", grid=SMALL["tree"], cv=KFold(240), scoring="squared_error").fit(X, y)
    assert loo.best_score_ < 0


def test_data_frames_and_random_imputers(rows):
    X, y = rows
    frame = pd.DataFrame(X, columns=list("abcd"))

    class NoisyImputer(RecordingImputer):
        def __init__(self, random_state=None):
            self.random_state = random_state

        def transform(self, X):
            noise = np.random.default_rng(self.random_state).normal(size=X.shape)
            return np.where(np.isnan(X), noise, X)

    shared = {"imputer": NoisyImputer(), "grid": SMALL["tree"], "cv": 3, "random_state": 0}
    first, second = (TunedRegressor("tree", **shared).fit(given, y) for given in (frame, X))
    np.testing.assert_array_equal(first.cv_results_["mean_score"], second.cv_results_["mean_score"])
    assert first.feature_names_in_.tolist() == list("abcd")
    assert shared["imputer"].random_state is None


def test_grids_by_name():
    assert {kind: np.prod([len(v) for v in grid.values()]) for kind, grid in GRIDS["authors"].items()} == {
        "linear": 10, "tree": 8, "forest": 70, "xgboost": 120,
    }  # fmt: skip
    assert GRIDS["authors"]["forest"]["n_estimators"] == [50, 75, 100, 125, 150, 175, 200]
    assert GRIDS["authors"]["forest"]["max_depth"] == [5, 10, 15, 20, 25, 30, 35, 40, 45, 50]
    for kind, grid in GRIDS["default"].items():
        KINDS[kind].check(kind, grid)
    both = resolve_grid({"tree": {"max_depth": np.array([3, 1])}}, ("tree", "forest"))
    assert both == {"tree": {"max_depth": [3, 1]}, "forest": GRIDS["default"]["forest"]}


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"kind": "nearest"}, "kind must be one of 'best', 'linear'"),
        ({"kind": []}, "kind must be one of"),
        ({"kind": ["best", "tree"]}, "without 'best'"),
        ({"grid": "large"}, "grid must be one of 'default', 'authors' or a dict, not 'large'"),
        ({"kind": "hist_boosting", "grid": "authors"}, "There is no grid 'authors' for 'hist_boosting'"),
        ({"grid": {"max_depth": 3}}, "The grid of 'max_depth' must be a list of at least one value, not 3"),
        ({"grid": {"max_depth": []}}, "must be a list of at least one value"),
        ({"grid": {"max_depth": [2.5]}}, "must hold whole numbers from 1 on"),
        ({"grid": {"depth": [2]}}, "The predictor 'tree' has no parameter 'depth'"),
        ({"grid": {"ccp_alpha": [0.1]}}, "The parameter 'ccp_alpha' of 'tree' is not tuned here"),
        ({"kind": "linear", "grid": {"lam": [0.0]}}, "The grid of 'lam' must hold positive numbers"),
        ({"kind": ["tree", "forest"], "grid": {"max_depth": [2]}}, "For several kinds grid must have one grid by kind"),
        ({"scoring": "auc"}, "scoring must be one of 'r2', 'squared_error'"),
        ({"imputer": "mean"}, "imputer must be a transformer"),
    ],
)
def test_parameters_without_meaning_are_refused_before_work_starts(rows, parameters, message):
    model = TunedRegressor(**{"kind": "tree", **parameters})
    with pytest.raises(ValueError, match=message):
        model.fit(*rows)
    assert not hasattr(model, "cv_results_")
