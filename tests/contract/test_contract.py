"""What every estimator promises: scikit-learn's checks, and the same with missing values, which those never feed."""

import pickle
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone, is_classifier
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from admiss import AdaptiveClassifier, AdaptiveRegressor, FiniteClassifier, FiniteRegressor
from admiss.adaptivity import Polynomial
from admiss.partition import BoxPartition, Greedy, OptimalTree, PatternGroups

NAMES = ["static", "affine_intercept", "affine", "polynomial", "fully_adaptive"]
ESTIMATORS = [estimator(name, lam=0.5) for estimator in (AdaptiveRegressor, AdaptiveClassifier) for name in NAMES]
ESTIMATORS += [
    FiniteRegressor(Greedy(max_depth=2, min_rows=1), scale=True, truncate=False),
    FiniteRegressor(OptimalTree(max_depth=2, max_leaves=3, min_rows=1, method="both"), leaf_model="static", scale=True),
    FiniteRegressor(BoxPartition(max_depth=2, min_rows=1), scale=True, truncate=False),
    FiniteRegressor(
        PatternGroups(max_leaves=2, min_rows=1), ridge=0.01, ridge_scale="sample", scale=True, truncate=False
    ),
    FiniteClassifier(Greedy(max_depth=2, min_rows=1), scale=True),
    FiniteClassifier(OptimalTree(max_depth=2, min_rows=1), leaf_model="static", scale=True),
]


@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.fixture(
    params=ESTIMATORS, ids=lambda e: f"{type(e).__name__}-{getattr(e, 'adaptivity', None) or e.partitioner}"
)
def model(request):
    return clone(request.param)


@pytest.fixture
def rows(model, make_rows):
    X, y = make_rows(n=150, d=4)
    if is_classifier(model):
        y = np.where(y > np.median(y), "high", "low")
    return X, y


def scores(model, X):
    return model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X)


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


def test_rows_that_are_all_missing(model, rows):
    X, y = rows
    X[:4] = np.nan
    fitted = model.fit(X, y)
    assert np.isfinite(scores(fitted, X)).all()
    unseen = clone(model).fit(X[4:], y[4:])
    assert np.isfinite(scores(unseen, X[:4])).all()


def test_columns_that_are_all_missing_are_left_out_and_told(model, rows):
    X, y = rows
    with_empty = np.insert(X, 2, np.nan, axis=1)
    with pytest.warns(UserWarning, match="left out of the model: x2"):
        fitted = clone(model).fit(with_empty, y)
    assert_same(scores(fitted, with_empty), scores(clone(model).fit(X, y), X))
    with_empty[:, 2] = 3.0  # observed at prediction only: still left out
    assert_same(scores(fitted, with_empty), scores(clone(model).fit(X, y), X))
    assert np.all(fitted.coef_at([0, 0, 0, 0, 0])[2] == 0)


def test_nothing_observed_at_all_is_the_intercept(model, rows):
    _, y = rows
    X = np.full((len(y), 2), np.nan)
    with pytest.warns(UserWarning, match="left out of the model: x0, x1"):
        fitted = model.fit(X, y)
    assert np.ptp(scores(fitted, X)) < 1e-9


def test_missing_only_in_fit(model, rows):
    X, y = rows
    assert np.isfinite(scores(model.fit(X, y), np.nan_to_num(X))).all()


def test_missing_only_in_predict_is_the_training_mean(model, rows):
    X, y = rows
    full = np.nan_to_num(X, nan=0.5)
    fitted = model.fit(full, y)
    hole = full.copy()
    hole[::2, 1] = np.nan
    filled = np.where(np.isnan(hole), full.mean(axis=0), hole)
    with pytest.warns(UserWarning, match="set to the training mean here: x1"):
        found = scores(fitted, hole)
    assert_same(found, scores(fitted, filled))


@pytest.mark.parametrize("kind", ["pandas", "pandas nullable", "polars", "object", "list", "float32", "fortran"])
def test_kinds_of_input(model, rows, kind):
    X, y = rows
    X = X.round(2)
    X[:, 3] = np.round(X[:, 3])
    expected = scores(clone(model).fit(X, y), X)
    names = ["a", "b", "c", "d"]
    frame = pd.DataFrame(X, columns=names)
    kinds = {
        "pandas": lambda: frame,
        "pandas nullable": lambda: frame.astype({"a": "Float64", "b": "Float64", "d": "Int64"}),
        "polars": lambda: pl.DataFrame(frame.to_dict("list")).fill_nan(None).with_columns(pl.col("d").cast(pl.Int64)),
        "object": lambda: np.where(np.isnan(X), None, X.astype(object)),
        "list": lambda: [[None if np.isnan(v) else float(v) for v in row] for row in X],
        "float32": lambda: X.astype(np.float32),
        "fortran": lambda: np.asfortranarray(X),
    }
    given = kinds[kind]()
    fitted = clone(model).fit(given, y)
    tolerance = 1e-4 if kind == "float32" else 1e-6
    np.testing.assert_allclose(scores(fitted, given), expected, rtol=tolerance, atol=tolerance)
    if kind in ("pandas", "pandas nullable", "polars"):
        assert fitted.feature_names_in_.tolist() == names
        assert set(fitted.coef_table()["feature"]) <= {"(intercept)", *names}
        with pytest.raises(ValueError, match="feature names"):
            scores(fitted, given[names[::-1]])


def test_permuted_columns(model, rows):
    X, y = rows
    order = [2, 0, 3, 1]
    first, second = clone(model).fit(X, y), clone(model).fit(X[:, order], y)
    assert_same(scores(second, X[:, order]), scores(first, X))


def test_weights_are_copies(model, rows):
    X, y = rows
    s = np.random.default_rng(0).integers(0, 4, size=len(y))
    weighted = clone(model).fit(X, y, sample_weight=s)
    copied = clone(model).fit(np.repeat(X, s, axis=0), np.repeat(y, s))
    assert_same(scores(weighted, X), scores(copied, X))
    assert weighted.certificate_.objective == pytest.approx(copied.certificate_.objective, rel=1e-7)


def test_units_of_the_features_do_not_matter(model, rows):
    X, y = rows
    X[:, 3] = np.where(np.isnan(X[:, 3]), np.nan, 2.5)  # constant where it is observed
    units = np.array([1e-3, 1.0, 1e4, 30.0])
    first, second = clone(model).fit(X, y), clone(model).fit(X * units, y)
    assert_same(scores(second, X * units), scores(first, X))
    pattern = [0, 1, 0, 0]
    assert_same(second.coef_at(pattern) * units, first.coef_at(pattern))
    unscaled = clone(model).set_params(scale=False)
    assert np.abs(scores(unscaled.fit(X * units, y), X * units) - scores(first, X)).max() > 1e-3


def test_coefficients_at_a_pattern_give_the_prediction(model, rows):
    X, y = rows
    fitted = model.fit(X[:100], y[:100])
    expected = scores(fitted, X)
    for x, value in zip(X, expected, strict=True):
        pattern = np.isnan(x)
        found = fitted.intercept_at(pattern) + fitted.coef_at(pattern) @ np.nan_to_num(x)
        assert found == pytest.approx(value, abs=1e-9)
        assert np.all(fitted.coef_at(pattern)[pattern] == 0)


def test_unseen_patterns(model, rows):
    X, y = rows
    X[:, 0] = np.where(np.arange(len(X)) < 2, np.nan, np.nan_to_num(X[:, 0]))
    X[:2, 1:] = 1.0
    new = np.full((3, 4), np.nan)
    fitted = model.fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isfinite(scores(fitted, new)).all()
    if not isinstance(getattr(model, "partitioner", None), Greedy | OptimalTree | BoxPartition):
        with pytest.warns(UserWarning, match="1 patterns of 3 rows were not seen"):
            scores(fitted.set_params(on_unseen_pattern="warn"), new)
        with pytest.raises(ValueError, match="1 patterns of 3 rows were not seen"):
            scores(fitted.set_params(on_unseen_pattern="error"), new)
    assert np.isfinite(scores(fitted, X)).all()
    report = fitted.pattern_report(np.vstack([new, X[:1]]))
    assert report["rows"].tolist() == [3, 1]
    assert report["seen"].tolist() == [False, True]
    assert report["training_rows"].tolist() == [0, 2]


def test_infinities_are_refused(model, rows):
    X, y = rows
    bad = X.copy()
    bad[5, 2] = np.inf
    with pytest.raises(ValueError, match="infinity in column 2"):
        clone(model).fit(bad, y)
    with pytest.raises(ValueError, match="infinity in column 2"):
        scores(model.fit(X, y), bad)


def test_pickle_clone_and_search(model, rows):
    X, y = rows
    fitted = clone(model).fit(X, y)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(scores(again, X), scores(fitted, X))
    finite = isinstance(model, FiniteRegressor | FiniteClassifier)
    grid = {"ridge": [0.1, 10.0]} if finite else {"lam": [0.1, 10.0], "l1_ratio": [0.0, 1.0]}
    search = GridSearchCV(model, grid, cv=3).fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_inside_a_pipeline_and_nested_parameters(rows, make_rows):
    X, y = make_rows(n=150, d=4)
    search = GridSearchCV(AdaptiveRegressor(Polynomial()), {"adaptivity__degree": [0, 1, 2]}, cv=3).fit(X, y)
    assert search.best_params_["adaptivity__degree"] in (0, 1, 2)
    pipeline = make_pipeline(StandardScaler(), AdaptiveRegressor("affine"))
    assert cross_val_score(pipeline, X, y, cv=3).mean() > 0.3


def test_a_pickle_loads_and_predicts_without_cvxpy(tmp_path, make_rows):
    X, y = make_rows()
    for k, estimator in enumerate((AdaptiveRegressor("affine"), AdaptiveClassifier("fully_adaptive"))):
        target = y if k == 0 else (y > np.median(y)).astype(int)
        (tmp_path / "model.pickle").write_bytes(pickle.dumps((estimator.fit(X, target), X, estimator.predict(X))))
        code = (
            "import pickle, sys\n"
            "sys.modules['cvxpy'] = None\n"
            "model, X, expected = pickle.load(open(sys.argv[1], 'rb'))\n"
            "assert (model.predict(X) == expected).all() and model.certificate_.status == 'optimal'\n"
        )
        subprocess.run([sys.executable, "-c", code, str(tmp_path / "model.pickle")], check=True)
