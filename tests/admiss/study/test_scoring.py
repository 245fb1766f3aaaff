"""Estimators and functions as methods: rows in any form, scores as scikit-learn computes them, and seeds."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.metrics import get_scorer
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from admiss.study.rows import Rows, rows_of, size_facts
from admiss.study.scoring import score_estimator, score_function

METRICS = {"r2": "r2", "neg_mean_absolute_error": "neg_mean_absolute_error"}


def rows(n=80, d=4):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(n, d))
    return X, X.sum(axis=1) + rng.normal(size=n)


def test_scores_are_those_of_the_scorers_on_the_split_of_the_seed():
    X, y = rows()
    found = score_estimator((X, y), 11, estimator=Ridge(), metrics=METRICS, test_share=0.3)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, random_state=11)
    model = Ridge().fit(X_train, y_train)
    for name in METRICS:
        assert found[name] == get_scorer(name)(model, X_test, y_test)
    assert found["score"] == found["r2"]
    assert (found["n_train"], found["n_test"], found["d"], found["missing"]) == (56, 24, 4, 0.0)
    assert found["seconds"] >= 0


def test_open_random_states_follow_the_seed_and_given_ones_stay():
    made = train_test_split(*rows(), random_state=0)
    open_forest = make_pipeline(StandardScaler(), RandomForestRegressor(5))
    given = clone(open_forest).set_params(randomforestregressor__random_state=3)

    def scores(estimator):
        return [score_estimator(made, s, estimator=estimator, metrics=METRICS, test_share=0.3)["r2"] for s in (1, 1, 2)]

    first, again, other = scores(open_forest)
    assert first == again != other
    assert len(set(scores(given))) == 1
    assert open_forest[-1].random_state is None


def test_classes_keep_their_shares_and_several_metrics_are_reported():
    X, _ = rows(200)
    y = np.where(np.arange(200) % 10 == 0, "rare", "frequent")
    split = rows_of((X, y), 3, 0.25)
    assert sum(split.y_test == "rare") == 5
    found = score_estimator(
        (X, y),
        3,
        estimator=LogisticRegression(),
        metrics={"roc_auc": "roc_auc", "accuracy": "accuracy"},
        test_share=0.25,
    )
    assert found["score"] == found["roc_auc"]
    assert found["accuracy"] == 0.9


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_are_split_and_counted(frame):
    X, y = rows()
    X[::4, 1] = np.nan
    named = frame({f"x{j}": X[:, j] for j in range(4)})
    split = rows_of((named, y), 0, 0.25)
    assert list(split.X_train.columns) == ["x0", "x1", "x2", "x3"]
    expected = rows_of((X, y), 0, 0.25)
    assert np.array_equal(split.X_train.to_numpy(), expected.X_train, equal_nan=True)
    assert size_facts(split) == size_facts(expected)
    assert 0 < size_facts(split)["missing"] < 0.25


def test_missing_values_of_text_are_counted():
    X = pd.DataFrame({"a": ["u", None, "v", np.nan], "b": [1.0, np.nan, 2.0, 3.0]})
    assert size_facts(Rows(X, X, [0] * 4, [0] * 4))["missing"] == pytest.approx(3 / 8)


def number(rows):
    return float(rows.X_train.shape[0])


def several(rows, seed):
    return {"r2": 0.25, "note": f"seed {seed}"}


def fitted(rows):
    return LinearRegression().fit(rows.X_train, rows.y_train)


def searched(rows):
    return GridSearchCV(Ridge(), {"alpha": [1.0, 2.0]}).fit(rows.X_train, rows.y_train)


def unscored(rows):
    return {"mine": 1.0}


def predicted(rows):
    return fitted(rows).predict(rows.X_test)


def test_functions_return_a_number_a_dict_or_a_model():
    made = rows()

    def run(function):
        return score_function(made, 7, function=function, metrics=METRICS, test_share=0.25)

    assert run(number)["score"] == 60.0
    found = run(several)
    assert (found["score"], found["note"]) == (0.25, "seed 7")
    assert run(fitted)["r2"] == pytest.approx(
        score_estimator(made, 7, estimator=LinearRegression(), metrics=METRICS, test_share=0.25)["r2"]
    )
    assert np.isfinite(run(searched)["cv_score"])
    with pytest.raises(ValueError, match="the function returned no score: its dict must have score or r2"):
        run(unscored)
    with pytest.raises(ValueError, match="the function returned ndarray: return a number, a dict of numbers"):
        run(predicted)
    with pytest.raises(ValueError, match="gives a fitted model: name scorers for it in the study, metrics='r2'"):
        score_function(made, 7, function=fitted, metrics={"score": "score"}, test_share=0.25)


def total(made):
    return sum(made)


def test_a_function_receives_what_is_no_rows_as_it_is():
    assert score_function({1, 2, 3}, 0, function=total, metrics={"score": "score"}, test_share=0.25)["score"] == 6.0
    with pytest.raises(ValueError, match="the instance made set instead of rows: return X, y"):
        score_estimator({1, 2}, 0, estimator=Ridge(), metrics=METRICS, test_share=0.25)
