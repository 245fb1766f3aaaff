"""Settings of a comparison: those of the estimators, and the same model by every door."""

import numpy as np
import pytest

from admiss import FiniteClassifier, FiniteClassifierCV, FiniteRegressor, FiniteRegressorCV
from admiss.compare.setting import METHODS, Setting
from admiss.datasets import make_interacting
from admiss.partition import Greedy, OptimalTree

DATA = make_interacting(n=1000, d=4, n_test=200, random_state=0)
KINDS = {
    "regression": (FiniteRegressor, FiniteRegressorCV, DATA.y_train),
    "classification": (FiniteClassifier, FiniteClassifierCV, DATA.y_train > 0),
}


@pytest.mark.parametrize("task", KINDS)
@pytest.mark.parametrize("method", METHODS)
def test_settings_that_are_not_given_are_those_of_the_estimators(task, method):
    kind, _, _ = KINDS[task]
    given, default = Setting(task=task).estimator(method).get_params(), kind().get_params()
    assert type(Setting(task=task).estimator(method)) is kind
    assert {name: given[name] for name in default if name != "partitioner"} == {
        name: default[name] for name in default if name != "partitioner"
    }


@pytest.mark.parametrize("task", KINDS)
@pytest.mark.parametrize(("method", "partitioner"), [("greedy", Greedy), ("tree", OptimalTree)])
@pytest.mark.parametrize(
    "changes",
    [
        {"ridge": 0.01},
        {"center": False, "scale": False, "leaf_model": "static", "ridge": 1e-5, "ridge_scale": "sample"},
    ],
)
def test_the_same_model_by_every_door(task, method, partitioner, changes):
    kind, search, y = KINDS[task]
    setting = Setting(task=task, max_depth=2, **changes)
    compared = setting.estimator(method).fit(DATA.X_train, y)
    assert compared.n_leaves_ == 4
    predict = "predict" if task == "regression" else "predict_proba"
    expected = getattr(compared, predict)(DATA.X_test)
    by_hand = kind(partitioner(max_depth=2), **changes).fit(DATA.X_train, y)
    np.testing.assert_array_equal(getattr(by_hand, predict)(DATA.X_test), expected)
    grid = {"ridges": [setting.ridge], "leaf_models": [setting.leaf_model], "max_depths": [2]}
    shared = {name: getattr(setting, name) for name in ("ridge_scale", "center", "scale")}
    selected = search(partitioner(), **grid, **shared, one_standard_error=False, cv=10, random_state=0)
    selected.fit(DATA.X_train, y)
    assert selected.best_params_["partitioner"].max_leaves is None  # not "no split"
    np.testing.assert_array_equal(getattr(selected, predict)(DATA.X_test), expected)


@pytest.mark.parametrize(
    ("changes", "methods", "words"),
    [
        ({}, ("best",), "Unknown method best"),
        ({}, (), "choose among"),
        ({"task": "ranking"}, ("tree",), "task must be one of"),
        ({"task": "classification"}, ("groups",), "groups is for regression: use tree or boxes"),
        ({"task": "classification"}, ("split-assign",), "split-assign is for regression"),
        ({"task": "classification", "loss": "absolute"}, ("tree",), "FiniteClassifier takes 'logistic'"),
        ({"loss": "logistic"}, ("tree",), "is for classification"),
        ({}, ("split-assign",), "use the absolute loss and ridge 0"),
        ({"loss": "huber"}, ("groups",), "groups needs the squared loss"),
        ({"folds": 1}, ("tree",), "must be 0 or at least 2"),
        ({"time_limit": -1.0}, ("tree",), "non-negative number of seconds"),
        ({"time_limit": np.nan}, ("tree",), "non-negative number of seconds"),
        ({"max_depth": 0}, ("tree",), "max_depth must be"),
    ],
)
def test_settings_that_cannot_work_are_refused_in_one_sentence(changes, methods, words):
    with pytest.raises(ValueError, match=words):
        Setting(**changes).check(methods)
