"""What the joint ones promise: scikit-learn's checks, and the same with missing values, which these never feed."""

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone, is_classifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils.estimator_checks import parametrize_with_checks

from admiss.joint import JointImputeClassifier, JointImputeRegressor

ESTIMATORS = [
    JointImputeRegressor(algorithm="paper"),
    JointImputeRegressor(Ridge(), algorithm="auto", random_state=0),
    JointImputeRegressor(make_pipeline(StandardScaler(), DecisionTreeRegressor(max_depth=3)), "paper", random_state=0),
    JointImputeClassifier(LogisticRegression(tol=1e-8), algorithm="paper"),
    JointImputeClassifier(LogisticRegression(C=0.5), algorithm="auto", random_state=0),
    JointImputeClassifier(LogisticRegression(tol=1e-8), algorithm="paper", error="auc"),
]


@parametrize_with_checks([model for model in ESTIMATORS if "auc" not in str(model) and "Pipeline" not in str(model)])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.fixture(params=ESTIMATORS, ids=str)
def model(request):
    return clone(request.param)


@pytest.fixture
def rows(model, make_rows):
    X, y = make_rows(n=150, d=4)
    if is_classifier(model):
        y = np.where(y > np.median(y), "high", "low")
    return X, y


def scores(model, X):
    return model.predict_proba(X) if is_classifier(model) else model.predict(X)


def assert_same(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


def test_the_value_under_a_nan_cannot_matter(model, rows):
    """NaN with another payload or sign is the same NaN, and X is left as it was."""
    X, y = rows
    other = np.where(np.isnan(X), -np.nan, X)
    other.view(np.uint64)[np.isnan(X)] += 1234
    before = X.copy()
    expected = scores(clone(model).fit(X, y), X)
    np.testing.assert_array_equal(scores(clone(model).fit(other, y), other), expected)
    np.testing.assert_array_equal(X, before)


def test_predictions_are_those_of_the_fitted_predictor_at_the_imputed_values(model, rows):
    X, y = rows
    fitted = model.fit(X, y)
    filled = np.where(np.isnan(X), fitted.imputation_, X)
    f = fitted.estimator_
    np.testing.assert_array_equal(
        scores(fitted, X), f.predict_proba(filled) if is_classifier(model) else f.predict(filled)
    )
    assert fitted.imputation_.shape == (4,)
    assert fitted.note_


def test_rows_that_are_all_missing(model, rows):
    X, y = rows
    X[:4] = np.nan
    fitted = model.fit(X, y)
    assert np.isfinite(scores(fitted, X)).all()
    unseen = clone(model).fit(X[4:], y[4:])
    assert np.isfinite(scores(unseen, X[:4])).all()


def test_columns_that_are_all_missing_are_zero_and_told(model, rows):
    X, y = rows
    with_empty = np.insert(X, 2, np.nan, axis=1)
    with pytest.warns(UserWarning, match="Never observed in training, and set to 0 throughout: x2"):
        fitted = clone(model).fit(with_empty, y)
    expected = scores(fitted, with_empty)
    assert fitted.imputation_[2] == 0
    assert_same(expected, scores(clone(model).fit(X, y), X))
    with_empty[:, 2] = 3.0  # observed at prediction only: still set to 0
    np.testing.assert_array_equal(scores(fitted, with_empty), expected)


def test_nothing_observed_at_all(model, rows):
    _, y = rows
    X = np.full((len(y), 2), np.nan)
    with pytest.warns(UserWarning, match="set to 0 throughout: x0, x1"):
        fitted = model.fit(X, y)
    assert np.ptp(scores(fitted, X), axis=0).max() < 1e-9


def test_missing_only_in_fit(model, rows):
    X, y = rows
    assert np.isfinite(scores(model.fit(X, y), np.nan_to_num(X))).all()


def test_missing_only_in_predict_is_the_training_mean(model, rows):
    X, y = rows
    X[:, 1] = np.nan_to_num(X[:, 1], nan=0.5)
    fitted = model.fit(X, y)
    assert fitted.imputation_[1] == pytest.approx(X[:, 1].mean(), rel=1e-12)
    hole = X.copy()
    hole[::2, 1] = np.nan
    filled = X.copy()
    filled[::2, 1] = X[:, 1].mean()
    with pytest.warns(UserWarning, match="set to the training mean here: x1"):
        found = scores(fitted, hole)
    assert_same(found, scores(fitted, filled))


@pytest.mark.parametrize("kind", ["pandas", "pandas nullable", "polars", "object", "list", "fortran"])
def test_kinds_of_input(model, rows, kind):
    X, y = rows
    X = X.round(2)
    X[:, 3] = np.round(X[:, 3])
    X[:, 2] = np.where(np.isnan(X[:, 2]), np.nan, X[:, 2] > 0)
    expected = scores(clone(model).fit(X, y), X)
    names = ["a", "b", "c", "d"]
    frame = pd.DataFrame(X, columns=names)
    kinds = {
        "pandas": lambda: frame,
        "pandas nullable": lambda: frame.astype({"a": "Float64", "c": "boolean", "d": "Int64"}),
        "polars": lambda: pl.DataFrame(frame.to_dict("list")).fill_nan(None).with_columns(pl.col("d").cast(pl.Int64)),
        "object": lambda: np.where(np.isnan(X), None, X.astype(object)),
        "list": lambda: [[None if np.isnan(v) else float(v) for v in row] for row in X],
        "fortran": lambda: np.asfortranarray(X),
    }
    given = kinds[kind]()
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # f sees no names, in fit and in predict
        fitted = clone(model).fit(given, y)
        assert_same(scores(fitted, given), expected)
    if kind in ("pandas", "pandas nullable", "polars"):
        assert fitted.feature_names_in_.tolist() == names
        with pytest.raises(ValueError, match="feature names"):
            scores(fitted, given[names[::-1]])


def test_integer_and_boolean_matrices(model, rows):
    X, y = rows
    for matrix in (np.round(np.nan_to_num(X)).astype(int), np.nan_to_num(X) > 0):
        fitted = clone(model).fit(matrix, y)
        assert_same(fitted.imputation_, matrix.mean(axis=0))


def test_permuted_columns(model, rows):
    """With one feature that can be missing the order of the search does not matter."""
    X, y = rows
    X[:, 1:] = np.nan_to_num(X[:, 1:])
    order = [2, 0, 3, 1]
    first, second = clone(model).fit(X, y), clone(model).fit(X[:, order], y)
    assert_same(second.imputation_, first.imputation_[order])
    if "Pipeline" not in str(model):  # a tree breaks ties between features by their order
        assert_same(scores(second, X[:, order]), scores(first, X))


def test_infinities_are_refused(model, rows):
    X, y = rows
    bad = X.copy()
    bad[5, 2] = np.inf
    with pytest.raises(ValueError, match="infinity in column 2"):
        clone(model).fit(bad, y)
    with pytest.raises(ValueError, match="infinity in column 2"):
        scores(model.fit(X, y), bad)


def test_unseen_patterns(model, rows):
    X, y = rows
    fitted = model.fit(X[~np.isnan(X).all(axis=1)], y[~np.isnan(X).all(axis=1)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = scores(fitted, np.full((3, 4), np.nan))
    assert_same(found, scores(fitted, np.tile(fitted.imputation_, (3, 1))))


@pytest.mark.parametrize("model", [model for model in ESTIMATORS if model.algorithm == "paper"], ids=str, indirect=True)
def test_weights_are_copies(rows, model):
    """Not for the closed form, which cross-validates: copies of a row fall into different folds."""
    X, y = rows
    s = np.random.default_rng(0).integers(0, 4, size=len(y))
    weighted = clone(model).fit(X, y, sample_weight=s)
    copied = clone(model).fit(np.repeat(X, s, axis=0), np.repeat(y, s))
    steps = [np.array([move for round in m.history_ for move in round.moves]) for m in (weighted, copied)]
    assert_same(*steps)
    assert_same(weighted.imputation_, copied.imputation_)
    if "Pipeline" not in str(model):  # the scaler of a pipeline is not given the weights
        np.testing.assert_allclose(scores(weighted, X), scores(copied, X), rtol=1e-3, atol=1e-3)


def test_same_random_state_same_model(make_rows):
    from sklearn.ensemble import RandomForestRegressor

    X, y = make_rows()
    predictions = [
        JointImputeRegressor(RandomForestRegressor(5), "paper", random_state=seed).fit(X, y).predict(X)
        for seed in (0, 0, 1)
    ]
    np.testing.assert_array_equal(predictions[0], predictions[1])
    assert np.abs(predictions[0] - predictions[2]).max() > 0
    forest = RandomForestRegressor(5, random_state=7)
    fitted = JointImputeRegressor(forest, "paper", random_state=0).fit(X, y)
    assert fitted.estimator_.random_state == 7
    assert not hasattr(forest, "estimators_")


def test_pickle_clone_and_search(model, rows):
    X, y = rows
    fitted = clone(model).fit(X, y)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(scores(again, X), scores(fitted, X))
    if isinstance(model.estimator, Ridge):
        search = GridSearchCV(model, {"estimator__alpha": [0.1, 100.0], "algorithm": ["auto", "paper"]}, cv=3).fit(X, y)
        assert np.isfinite(search.cv_results_["mean_test_score"]).all()
        assert np.ptp(search.cv_results_["mean_test_score"]) > 1e-3
    pipeline = make_pipeline(StandardScaler(), model)
    assert cross_val_score(pipeline, X, y, cv=3).mean() > (0.55 if is_classifier(model) else 0.3)
