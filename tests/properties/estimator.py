"""Properties of an estimator of scikit-learn's kind, on rows with missing values."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import (
    check_transformer_get_feature_names_out,
    check_transformer_get_feature_names_out_pandas,
)

from tests.properties.entry import (
    NAMES,
    assert_close,
    assert_finite,
    is_transformer,
    make_rows,
    outputs,
    prop,
    takes_weights,
)


@prop()
def not_fitted(entry):
    X, _ = make_rows(entry.model)
    methods = ("predict", "predict_proba", "decision_function", "transform", "apply", "get_feature_names_out")
    present = [name for name in methods if hasattr(entry.model, name)]
    assert present
    for name in present:
        with pytest.raises(NotFittedError):
            getattr(clone(entry.model), name)(X)


@prop()
def inputs_and_parameters_are_left_alone(entry):
    """Rows, target and weights are not written to, parameters stay the same objects, nested ones unfitted."""
    X, y = make_rows(entry.model)
    s = np.linspace(1, 2, len(y)) if takes_weights(entry.model) else None
    given = X.copy(), y.copy(), None if s is None else s.copy()
    model = clone(entry.model)
    before = model.get_params(deep=False)
    nested = {name: set(vars(value)) for name, value in before.items() if isinstance(value, BaseEstimator)}
    text = {name: repr(value) for name, value in before.items()}
    model.fit(*given) if s is not None else model.fit(*given[:2])
    outputs(model, given[0])
    np.testing.assert_array_equal(given[0], X)
    np.testing.assert_array_equal(given[1], y)
    assert s is None or np.array_equal(given[2], s)
    after = model.get_params(deep=False)
    assert all(after[name] is value for name, value in before.items())
    assert {name: repr(value) for name, value in after.items()} == text
    assert all(set(vars(after[name])) == attributes for name, attributes in nested.items())


@prop()
def clone_pickle_and_repr(entry):
    X, y = make_rows(entry.model)
    model = entry.fit(X, y)
    text = repr(model)
    assert text == repr(entry.model) == repr(clone(model))
    assert type(model).__name__ in text
    assert not [name for name in vars(clone(model)) if name.endswith("_")]
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(outputs(again, X), outputs(model, X))
    assert repr(again) == text


@prop()
def same_seed_same_model(entry):
    """On any number of threads, after any earlier fit, and without touching the global random state."""
    X, y = make_rows(entry.model)
    other, other_y = make_rows(entry.model, n=40, seed=1)
    np.random.seed(3)
    state = np.random.get_state()[1].copy()
    model = entry.fit(X, y)
    expected = outputs(model, X)
    np.testing.assert_array_equal(outputs(entry.fit(X, y), X), expected)
    np.testing.assert_array_equal(np.random.get_state()[1], state)
    refitted = entry.fit(pd.DataFrame(other, columns=NAMES), other_y).fit(X, y)
    np.testing.assert_array_equal(outputs(refitted, X), expected)
    assert not hasattr(refitted, "feature_names_in_")
    if "n_jobs" in model.get_params():
        np.testing.assert_array_equal(outputs(entry.fit(X, y, n_jobs=2), X), expected)


@prop()
def failed_fit_changes_nothing(entry):
    X, y = make_rows(entry.model)
    model = entry.fit(X, y)
    expected, attributes = outputs(model, X), set(vars(model))
    bad = pd.DataFrame(X.copy(), columns=NAMES)  # pandas before 3 writes through
    bad.iloc[-1, -1] = np.inf
    attempts = [(bad, y)]
    if not is_transformer(model):
        unknown = ["low", "high", *[None] * 8] if is_classifier(model) else [1.0, np.nan, *range(8)]
        attempts += [(X[:10, :2], y), (X[:10, :2], unknown)]
    for rows, target in attempts:
        with pytest.raises(ValueError, match="infinity|NaN|missing|inconsistent"):
            model.fit(rows, target)
        assert set(vars(model)) == attributes
        np.testing.assert_array_equal(outputs(model, X), expected)


@prop()
def names_and_number_of_features(entry):
    X, y = make_rows(entry.model)
    frame = pd.DataFrame(X, columns=NAMES)
    model = entry.fit(X, y)
    assert model.n_features_in_ == 4
    assert not hasattr(model, "feature_names_in_")
    for wrong in (X[:, :3], np.hstack([X, X])):
        with pytest.raises(ValueError, match=f"X has {wrong.shape[1]} features, but .* is expecting 4 features"):
            outputs(model, wrong)
    for rows in (frame, pl.DataFrame(frame.to_dict("list"))):
        model = entry.fit(rows, y)
        assert model.feature_names_in_.tolist() == NAMES
        for wrong in (rows[NAMES[::-1]], rows[NAMES[:3]]):
            with pytest.raises(ValueError, match="feature names"):
                outputs(model, wrong)


@prop()
def search_in_a_pipeline(entry):
    """Every cell of a grid search has a score, the parameter matters, and the best one reaches the model."""
    X, y = make_rows(entry.model)
    steps = (entry.model, Ridge()) if is_transformer(entry.model) else (FunctionTransformer(), entry.model)
    pipeline = make_pipeline(*map(clone, steps))
    prefix = type(entry.model).__name__.lower()
    grid = {f"{prefix}__{name}": values for name, values in entry.grid.items()} or {"ridge__alpha": [0.1, 100.0]}
    ((name, values),) = grid.items()
    search = GridSearchCV(pipeline, grid, cv=2, error_score="raise").fit(X, y)
    assert_finite(search.cv_results_["mean_test_score"])
    found = [outputs(pipeline.set_params(**{name: value}).fit(X, y), X) for value in values]
    assert np.abs(found[0] - found[1]).max() > 1e-6
    np.testing.assert_array_equal(outputs(search.best_estimator_, X), found[search.best_index_])
    last = cross_val_score(pipeline, X, y, cv=2, error_score="raise").mean()
    assert last == pytest.approx(search.cv_results_["mean_test_score"][-1])


@prop(lambda model: not is_transformer(model))
def kinds_of_target(entry):
    """Lists, columns, series and frames of the target give the model of the same array; an index does not matter."""
    X, y = make_rows(entry.model)
    expected = outputs(entry.fit(X, y), X)
    kinds = {
        "list": y.tolist(),
        "column": y[:, None],
        "series": pd.Series(y, index=np.arange(len(y))[::-1]),
        "frame": pd.DataFrame({"y": y}),
        "polars": pl.Series(y.tolist()),
        "objects": y.astype(object),
        "arrow": pa.array(y.tolist()),
        "pandas type": pd.Series(y, dtype="category" if is_classifier(entry.model) else "Float64"),
        "masked": np.ma.MaskedArray(y, mask=False),
    }
    for kind, target in kinds.items():
        assert_close(outputs(entry.fit(X, target), X), expected, kind)


@prop(is_classifier)
def labels_of_any_type(entry):
    """Strings, truth values and numbers, two classes or three, with probabilities that sum to one."""
    X, z = make_rows(Ridge())
    for n_classes in (2, 3):
        codes = np.digitize(z, np.quantile(z, np.arange(1, n_classes) / n_classes))
        expected = outputs(model := entry.fit(X, codes), X)
        assert expected.shape == (len(X), n_classes)
        assert expected.min() >= 0
        np.testing.assert_allclose(expected.sum(axis=1), 1.0)
        assert np.mean(model.predict(X) == codes) > 0.5
        for names in ([-1, 7, 30], ["a", "x", "yy"], [False, True], [0.0, 1.0, 2.0], [0, 2**60, 2**61]):
            if len(names) < n_classes:
                continue
            labels = np.array(names[:n_classes], dtype=object if isinstance(names[0], str) else None)
            model = entry.fit(X, labels[codes])
            assert_close(outputs(model, X), expected)
            assert model.classes_.tolist() == labels.tolist()
            predicted = np.searchsorted(labels, found := model.predict(X))
            assert np.all(expected[np.arange(len(X)), predicted] >= expected.max(axis=1) - 1e-6)
            assert model.score(X, labels[codes]) == np.mean(found == labels[codes])


@prop(is_transformer)
def columns_are_named(entry):
    """One name per column, in frames of both libraries."""
    X, _ = make_rows(entry.model)
    frame = pd.DataFrame(X, columns=NAMES)
    for kind, given in ((pd.DataFrame, frame), (pl.DataFrame, pl.DataFrame(frame.to_dict("list")))):
        model = entry.fit(given, None)
        expected = outputs(model, given)
        assert expected.shape[1] == len(model.get_feature_names_out())
        model.set_output(transform=kind.__module__.split(".")[0])
        found = model.transform(given)
        assert isinstance(found, kind)
        assert list(found.columns) == model.get_feature_names_out().tolist()
        np.testing.assert_array_equal(found.to_numpy(), expected)
    name = type(model).__name__
    check_transformer_get_feature_names_out(name, clone(entry.model))
    check_transformer_get_feature_names_out_pandas(name, clone(entry.model))
