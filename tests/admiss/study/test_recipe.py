"""Recipes of objects: the same text for the same object, another for another, and a sentence for what has none."""

import functools
import json
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import loguniform
from sklearn.ensemble import RandomForestRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Ridge, RidgeCV
from sklearn.metrics import make_scorer, mean_squared_error
from sklearn.model_selection import GridSearchCV, KFold, RandomizedSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from xgboost import XGBRegressor

from admiss import AdaptiveRegressor
from admiss.study.recipe import StudyError, recipe_of

DIFFERENT = [
    Ridge(),
    Ridge(alpha=2.0),
    Ridge(alpha=2),
    make_pipeline(SimpleImputer(), RidgeCV()),
    make_pipeline(SimpleImputer(add_indicator=True), RidgeCV()),
    make_pipeline(SimpleImputer(), RidgeCV(alphas=np.logspace(-3, 3, 7))),
    GridSearchCV(Ridge(), {"alpha": [1, 2]}, cv=KFold(5, shuffle=True, random_state=0)),
    GridSearchCV(Ridge(), {"alpha": [1, 2]}, cv=KFold(5, shuffle=True, random_state=1)),
    RandomizedSearchCV(Ridge(), {"alpha": loguniform(1, 2)}),
    RandomizedSearchCV(Ridge(), {"alpha": loguniform(1, 3)}),
    FunctionTransformer(np.log1p),
    FunctionTransformer(np.sqrt),
    make_scorer(mean_squared_error, greater_is_better=False),
    make_scorer(mean_squared_error),
    XGBRegressor(),
    XGBRegressor(n_estimators=7),
    RandomForestRegressor(random_state=3),
    AdaptiveRegressor(),
    AdaptiveRegressor("affine", lam=2.0),
    functools.partial(recipe_of, where="here"),
    functools.partial(recipe_of, where="there"),
    np.arange(5),
    np.arange(1000.0),
    np.arange(1000.0) + 1e-12,
    pd.DataFrame({"a": [1, 2], "b": ["x", None]}),
    pd.DataFrame({"a": [1, 2], "c": ["x", None]}),
    {"b", "a"},
]


def text(value):
    return json.dumps(recipe_of(value, "the value"), sort_keys=True)


def test_different_objects_have_different_recipes():
    texts = [text(value) for value in DIFFERENT]
    assert len(set(texts)) == len(texts)


@pytest.mark.slow
def test_a_recipe_does_not_depend_on_the_process_or_on_the_hash_seed():
    code = (
        "import json, tests.admiss.study.test_recipe as t; print(json.dumps([t.text(value) for value in t.DIFFERENT]))"
    )
    for seed in ("1", "2"):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True,
                              env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)})  # fmt: skip
        assert json.loads(done.stdout) == [text(value) for value in DIFFERENT]


def test_a_fitted_estimator_and_one_with_explicit_defaults_are_the_same_as_a_new_one():
    model = make_pipeline(SimpleImputer(), Ridge())
    before = text(model)
    model.fit(np.eye(4), np.arange(4.0))
    assert text(model) == before
    assert text(Ridge(alpha=1.0, solver="auto")) == text(Ridge())
    assert text(SimpleImputer(missing_values=float("nan"))) == text(SimpleImputer())


def test_frames_of_pandas_and_polars_with_equal_content_are_the_same():
    columns = {"a": [1.5, 2.0], "b": ["x", None]}
    assert text(pd.DataFrame(columns)) == text(pl.DataFrame(columns))


def nested():
    def inner(X):
        return X

    return inner


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        (lambda X: X, "is a lambda, which no name identifies"),
        (nested(), "is defined inside nested, which no name identifies"),
        (np.random.default_rng(0), "changes by use: give an integer"),
        (np.random.RandomState(0), "changes by use: give an integer"),
        (sys.stderr, "cannot be hashed or sent to another process"),
    ],
)
def test_what_has_no_recipe_is_refused_in_one_sentence(value, sentence):
    with pytest.raises(StudyError, match=sentence) as error:
        recipe_of(FunctionTransformer(value), "method 'mine'")
    assert str(error.value).startswith("method 'mine', parameter func is ")
    assert "\n" not in str(error.value)
