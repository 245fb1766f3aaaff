"""Bad input gets one clear sentence, before any work."""

import inspect

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import Ridge
from sklearn.model_selection import GroupKFold, LeaveOneGroupOut, StratifiedGroupKFold

import admiss
from admiss import (
    AdaptiveClassifier,
    AdaptiveRegressor,
    AdaptiveRegressorCV,
    AdaptiveStackRegressor,
    FiniteRegressorCV,
)
from admiss.terminal.table import Table
from formulations.erm.program import SolverError

X = np.array([[1.0, np.nan], [2.0, 1.0], [3.0, 0.5], [4.0, np.nan]])
y = np.array([1.0, 2.0, 3.0, 4.0])


@pytest.mark.parametrize(
    ("bad", "sentence"),
    [
        ({"lam": "1"}, "lam must be"),
        ({"l1_ratio": 1.5}, "l1_ratio must be"),
        ({"adaptivity": "quadratic"}, "adaptivity 'quadratic'"),
        ({"loss": "cubic"}, "loss 'cubic'"),
        ({"loss": "logistic"}, "loss 'logistic' is for classification"),
        ({"penalty_weights": "counts"}, "penalty_weights must be"),
    ],
)
def test_parameters(bad, sentence):
    model = AdaptiveRegressor(**bad)
    with pytest.raises(ValueError, match=sentence):
        model.fit(X, y)
    assert not hasattr(model, "n_features_in_")


def test_loss_of_a_classifier():
    with pytest.raises(ValueError, match="is for regression: AdaptiveClassifier takes 'logistic'"):
        AdaptiveClassifier(loss="squared").fit(X, [0, 1, 0, 1])


@pytest.mark.parametrize(
    ("bad", "sentence"),
    [
        (np.array([["2020-01-01"]] * 4, dtype="datetime64[D]"), "dates"),
        (pd.DataFrame({"a": pd.Series([pd.Timestamp("2020")] * 4, dtype=object)}), "columns a of X"),
        (np.array([["a", "b"]] * 4), "strings: encode them .*OneHotEncoder"),
        (np.array([[1.0, "b"]] * 4, dtype=object), "strings"),
        ([["1", "2"]] * 4, "strings"),
        (pd.DataFrame({"a": [1, 2, 3, 4], "city": list("abca")}), "columns city of X"),
        (pd.DataFrame({"a": pd.Categorical(list("abca"))}), "columns a of X"),
        (pd.DataFrame({"a": pd.date_range("2020", periods=4)}), "columns a of X are dates or times: turn"),
        (pl.DataFrame({"a": [1, 2, 3, 4], "city": list("abca")}), "columns city of X"),
    ],
)
def test_data_that_are_not_numbers(bad, sentence):
    """Those of the wrong shape are refused in every estimator by the checks of scikit-learn."""
    with pytest.raises(ValueError, match=sentence):
        AdaptiveRegressor().fit(bad, y)


def test_weights():
    for bad, sentence in (
        ([1, 1, 1, -1], "Negative values"),
        (np.zeros(4), "0 for every row|non-zero"),
        ([1, 1], "shape"),
    ):
        with pytest.raises(ValueError, match=sentence):
            AdaptiveRegressor().fit(X, y, sample_weight=bad)


def test_a_solver_that_is_not_installed():
    with pytest.raises(SolverError, match="MOSEK is not installed; cvxpy has"):
        AdaptiveRegressor(solver="mosek").fit(X, y)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_one_row_with_none(make):
    """A column of None has no type, and is missing all the same."""
    model = AdaptiveRegressor(lam=0.1).fit(make({"a": X[:, 0].tolist(), "b": [None, 1.0, 0.5, None]}), y)
    expected = model.predict(make({"a": [2.0], "b": [float("nan")]}))
    np.testing.assert_array_equal(model.predict(make([{"a": 2.0, "b": None}])), expected)
    with pytest.warns(UserWarning, match="left out of the model: b"):
        AdaptiveRegressor().fit(make({"a": X[:, 0].tolist(), "b": [None] * 4}), y)


def test_a_fit_that_fails_in_the_solver_changes_nothing():
    three = AdaptiveClassifier().fit(X, [0, 1, 2, 1])
    with pytest.raises(SolverError, match="not installed"):
        three.set_params(solver="nosuch").fit(X, [0, 1, 0, 1])
    assert three.predict_proba(X).shape == (4, 3)


@pytest.mark.parametrize(
    "cv", [["nonsense"], [1.0], b"auto", 0.5, True, object, GroupKFold, [([0, 1], [100])], [("a", "b")]]
)
def test_folds(cv):
    with pytest.raises(ValueError, match="cv must be"):
        AdaptiveRegressorCV("static", cv=cv).fit(X, y)


GROUPS = np.array([0, 0, 1, 1])


@pytest.mark.parametrize("splitter", [GroupKFold(2), LeaveOneGroupOut(), StratifiedGroupKFold(2)])
@pytest.mark.parametrize("model", [AdaptiveRegressorCV("static"), AdaptiveStackRegressor(), FiniteRegressorCV()])
def test_splitters_of_groups_need_groups_or_their_folds_are_given(splitter, model):
    with pytest.raises(ValueError, match=rf"^{type(splitter).__name__} needs groups"):
        model.set_params(cv=splitter).fit(X, y)
    many, target, groups = np.repeat(X, 10, axis=0), np.repeat(y, 10), np.repeat(GROUPS, 10)
    folds = list(splitter.split(many, target > 0, groups))
    model.set_params(cv=folds).fit(many, target)
    assert np.isfinite(model.predict(many)).all()


@pytest.mark.parametrize("name", [name for name in admiss.__all__ if hasattr(getattr(admiss, name), "fit")])
def test_arguments_of_fit_that_do_not_exist_are_refused_in_the_name_of_the_class(name):
    splits = "cv" in _unfitted(getattr(admiss, name)).get_params() or "Conformal" in name  # and takes groups
    for argument in ("nonsense",) if splits else ("groups", "nonsense"):
        with pytest.raises(TypeError, match=f"^{name}.fit\\(\\) got an unexpected keyword argument '{argument}'"):
            _unfitted(getattr(admiss, name)).fit(X, y, **{argument: GROUPS})


def _unfitted(estimator):
    takes_estimator = "estimator" in inspect.signature(estimator).parameters
    return estimator(Ridge()) if takes_estimator else estimator()


def test_class_weights():
    for bad in ({0: -1, 1: 1}, {0: np.nan, 1: 1}, {0: np.inf, 1: 1}):
        with pytest.raises(ValueError, match="class_weight must hold"):
            AdaptiveClassifier(class_weight=bad).fit(X, [0, 1, 0, 1])


def test_long_tables_are_cut():
    text = repr(Table(a=np.arange(1000)))
    assert len(text.splitlines()) == 102
    assert ".." in text


def test_table_becomes_a_data_frame():
    table = Table(a=[1, 2], b=["x", "y"])
    assert pd.DataFrame(table).shape == pl.DataFrame(table).shape == (2, 2)
    assert table.n_rows == 2
    with pytest.raises(ValueError, match="same length"):
        Table(a=[1], b=[1, 2])
