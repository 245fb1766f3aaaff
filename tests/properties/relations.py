"""Relations between two fits: the same model in other words predicts the same."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import is_classifier, is_regressor
from sklearn.model_selection import KFold
from sklearn.utils import get_tags

from admiss import (
    AdaptiveStackClassifier,
    AdaptiveStackRegressor,
    ExpectedFeaturesClassifier,
    ExpectedFeaturesRegressor,
)
from admiss.partition import Greedy
from tests.properties.entry import (
    NAMES,
    assert_close,
    is_transformer,
    make_rows,
    outputs,
    prop,
    takes_weights,
)

STANDARDISING = (
    AdaptiveStackClassifier,
    AdaptiveStackRegressor,
    ExpectedFeaturesClassifier,
    ExpectedFeaturesRegressor,
)


def scores(model: Any, X: Any) -> Any:
    """Predictions of a regressor, their logs with a log link, log-odds of a classifier."""
    if is_classifier(model):
        return model.decision_function(X)
    return np.log(model.predict(X)) if get_tags(model).target_tags.positive_only else model.predict(X)


def folds_of(model: Any, index: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Folds of the rows, and the same folds of the rows at an index: nothing to set without folds."""
    if "cv" not in model.get_params() or model.cv is None:
        return {}, {}
    folds = list(KFold(2, shuffle=True, random_state=0).split(np.empty(index.max() + 1)))
    return {"cv": folds}, {"cv": [tuple(np.flatnonzero(np.isin(index, part)) for part in fold) for fold in folds]}


def assert_same_search(first: Any, second: Any) -> None:
    """Equal objectives, and equal scores of a search."""
    if hasattr(first, "certificate_"):
        assert first.certificate_.objective == pytest.approx(second.certificate_.objective, rel=1e-7)
    if hasattr(first, "best_score_"):
        assert first.best_score_ == pytest.approx(second.best_score_, rel=1e-5)


@prop(relation=True)
def permuted_columns(entry, seed=0):
    """Columns in another order give the same predictions; of a transformer, the same columns by name."""
    X, y = make_rows(entry.model, seed=seed)
    first, second = pd.DataFrame(X, columns=NAMES), pd.DataFrame(X, columns=NAMES)[list("cadb")]
    folds, _ = folds_of(entry.model, np.arange(len(y)))
    model, other = entry.fit(second, y, **folds), entry.fit(first, y, **folds)
    found, expected = outputs(model, second), outputs(other, first)
    if is_transformer(model):
        found = pd.DataFrame(found, columns=model.get_feature_names_out()).sort_index(axis=1)
        expected = pd.DataFrame(expected, columns=other.get_feature_names_out()).sort_index(axis=1)
        assert list(found) == list(expected)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@prop(relation=True)
def permuted_rows(entry, seed=0):
    """Rows in another order, in the same folds, give the same predictions."""
    X, y = make_rows(entry.model, seed=seed)
    order = np.random.default_rng(seed).permutation(len(y))
    first, second = folds_of(entry.model, order)
    model, other = entry.fit(X, y, **first), entry.fit(X[order], y[order], **second)
    np.testing.assert_allclose(outputs(other, X), outputs(model, X), rtol=1e-5, atol=1e-6)
    assert_same_search(model, other)


@prop(takes_weights, relation=True)
def weights_are_copies(entry, seed=0):
    """A weight equals that many copies of the row, in the same fold."""
    X, y = make_rows(entry.model, seed=seed)
    s = np.random.default_rng(seed).integers(1, 4, size=len(y))
    copies = np.repeat(np.arange(len(y)), s)
    first, second = folds_of(entry.model, copies)
    weighted, copied = entry.fit(X, y, s, **first), entry.fit(X[copies], y[copies], **second)
    assert_close(outputs(weighted, X), outputs(copied, X), accuracy=entry.accuracy)
    assert_same_search(weighted, copied)


@prop(takes_weights, relation=True)
def rows_of_weight_zero(entry, seed=0):
    """Rows of weight zero are dropped; other weights count."""
    X, y = make_rows(entry.model, seed=seed)
    s = np.where(np.arange(len(y)) % 4 == 0, 0.0, np.random.default_rng(seed).uniform(1, 3, len(y)))
    X[s == 0, 1], y[s == 0] = 1e3, y[s > 0][0]
    found = outputs(entry.fit(X, y, s), X)
    np.testing.assert_array_equal(found, outputs(entry.fit(X[s > 0], y[s > 0], s[s > 0]), X))
    assert np.abs(found - outputs(entry.fit(X, y), X)).max() > 1e-6


@prop(lambda model: takes_weights(model) and "cv" in model.get_params())
def rows_of_weight_zero_in_given_folds(entry):
    """Folds that are given count all rows, those of weight zero included."""
    X, y = make_rows(entry.model)
    s = (np.arange(len(y)) % 4 > 0).astype(float)
    position = np.cumsum(s > 0) - 1
    folds = list(KFold(2, shuffle=True, random_state=0).split(X))
    left = [tuple(position[part[s[part] > 0]] for part in fold) for fold in folds]
    found = outputs(entry.fit(X, y, s, cv=folds), X)
    np.testing.assert_array_equal(found, outputs(entry.fit(X[s > 0], y[s > 0], s[s > 0], cv=left), X))


def standardises(model: Any) -> bool:
    """Whether the units of features are those of the model's choice."""
    return hasattr(model, "scale") or isinstance(model, STANDARDISING)


@prop(standardises, relation=True)
def origin_and_units_of_features(entry, seed=0):
    """With ``scale`` units do not matter, with ``center`` and an intercept neither does the origin.

    Without ``scale`` units do; other estimators that standardise features have no such parameter. One feature is
    constant where it is observed. Steps of a class that is not linear in x have no units at all.
    """
    X, y = make_rows(entry.model, seed=seed)
    X[:, 3] = np.where(np.isnan(X[:, 3]), np.nan, 2.5)
    units = np.array([1e-3, 1.0, 1e4, 30.0])
    is_centred = getattr(entry.model, "center", True) and getattr(entry.model, "fit_intercept", True)
    origin = np.array([7.0, -1e3, 1e6, 0.0]) * is_centred
    folds, _ = folds_of(entry.model, np.arange(len(y)))
    moved = X * units + origin
    first, second = entry.fit(X, y, **folds), entry.fit(moved, y, **folds)
    expected = outputs(first, X)
    assert_close(outputs(second, moved), expected, accuracy=entry.accuracy)
    if not hasattr(entry.model, "scale"):
        return
    unscaled = outputs(entry.fit(moved, y, scale=False, **folds), moved)
    if hasattr(first, "design_") and not first.design_.adaptivity.linear_in_x:
        assert_close(unscaled, expected)
        return
    if hasattr(first, "coef_at"):
        for m in ([0, 0, 0, 0], [0, 1, 0, 1]):
            assert_close(second.coef_at(m) * units, first.coef_at(m), accuracy=entry.accuracy)
    assert np.abs(unscaled - expected).max() > 1e-3


@prop(is_regressor, relation=True)
def units_of_the_target(entry, seed=0):
    """Predictions of a multiple of y are the multiple of those of y: by a power of two, so that nothing is rounded."""
    X, y = make_rows(entry.model, seed=seed)
    folds, _ = folds_of(entry.model, np.arange(len(y)))
    expected = outputs(entry.fit(X, y, **folds), X)
    for unit in (2.0**-30, 2.0**20):
        found = outputs(entry.fit(X, unit * y, **folds), X)
        np.testing.assert_allclose(found / unit, expected, rtol=1e-5, atol=1e-6)


@prop(lambda model: getattr(model, "partitioner", None) is not None, relation=True)
def no_dearer_than_greedy(entry, seed=0):
    """A partition costs no more than the greedy one within the same limits, and its bound is below that cost."""
    X, y = make_rows(entry.model, seed=seed)
    model = entry.fit(X, y)
    known = Greedy().get_params()
    limits = {name: value for name, value in entry.model.partitioner.get_params().items() if name in known}
    greedy = entry.fit(X, y, partitioner=Greedy(**{"max_depth": None, **limits}))
    cost = greedy.certificate_.objective
    slack = model.certificate_.tolerance + 1e-9 * cost
    assert model.certificate_.bound <= model.certificate_.objective <= cost + slack
