"""Properties of single families of estimators: coefficients, reports on patterns, imputed values, sets."""

import numpy as np
import pytest
from sklearn.base import is_classifier, is_regressor

from tests.properties.entry import assert_close, assert_finite, has, make_rows, outputs, prop
from tests.properties.relations import scores


@prop(has("coef_at"))
def coefficients_give_the_prediction(entry):
    """f(x, m) is linear in x at every pattern, seen or not, without weight on what is missing."""
    X, y = make_rows(entry.model)
    untruncated = {"truncate": False} if hasattr(entry.model, "truncate") else {}
    model = entry.fit(X[:45], y[:45], **untruncated)
    for x, expected in zip(X, scores(model, X), strict=True):
        m = np.isnan(x)
        assert model.intercept_at(m) + model.coef_at(m) @ np.nan_to_num(x) == pytest.approx(expected, abs=1e-9)
        assert not model.coef_at(m)[m].any()
    names = {f"x{j}" for j in range(4)}
    assert set(model.coef_table()["feature"]) <= {"(intercept)", *names}
    assert any(name in model.to_text() for name in names)


@prop(has("pattern_report"))
def unseen_patterns_are_reported(entry):
    """The report counts rows of seen and unseen patterns; ``on_unseen_pattern`` warns or refuses, if asked to."""
    X, y = make_rows(entry.model)
    known = np.isnan(X).sum(axis=1) < 3
    X, y = X[known], y[known]
    new = np.array([[np.nan, 1.0, np.nan, np.nan]] * 3)
    model = entry.fit(X, y)
    report = model.pattern_report(np.vstack([new, X[:1]]))
    assert report["rows"].tolist() == [3, 1]
    assert report["seen"].tolist() == [False, True]
    same = (np.isnan(X) == np.isnan(X[0])).all(axis=1)
    assert report["training_rows"].tolist() == [0, same.sum()]
    partition = getattr(getattr(model, "best_estimator_", model), "partition_", None)
    if partition is not None and partition.seen(np.isnan(new)).all():  # the splits decide every pattern
        assert_finite(outputs(entry.fit(X, y, on_unseen_pattern="error"), new))
        return
    with pytest.warns(UserWarning, match="not seen"):
        found = outputs(entry.fit(X, y, on_unseen_pattern="warn"), new)
    np.testing.assert_array_equal(found, outputs(model, new))
    with pytest.raises(ValueError, match="not seen"):
        outputs(entry.fit(X, y, on_unseen_pattern="error"), new)


def is_joint(model):
    return hasattr(model, "algorithm") and (is_classifier(model) or is_regressor(model))


@prop(is_joint)
def predictions_at_imputed_values(entry):
    """Predictions are those of ``estimator_`` at ``imputation_``: the mean of a feature that was never missing."""
    X, y = make_rows(entry.model)
    model = entry.fit(X, y)
    filled = np.where(np.isnan(X), model.imputation_, X)
    chosen = getattr(model, "best_estimator_", model)
    np.testing.assert_array_equal(outputs(model, X), outputs(chosen.estimator_, filled))
    assert_close(model.imputation_[1], X[:, 1].mean())
    assert chosen.note_


@prop(is_joint)
def permuted_columns_with_one_missable(entry):
    """With one feature that can be missing the order of the search does not matter."""
    X, y = make_rows(entry.model)
    X[:, 2:] = np.nan_to_num(X[:, 2:])
    order = [2, 0, 3, 1]
    first, second = entry.fit(X, y), entry.fit(X[:, order], y)
    assert_close(second.imputation_, first.imputation_[order])
    assert_close(outputs(second, X[:, order]), outputs(first, X))


@prop(has("conformalize"))
def sets_of_rows(entry):
    """Sets depend on the row alone, are nested across levels, and infinite (with one warning) if never calibrated."""
    X, y = make_rows(entry.model)
    model = entry.fit(X, y, confidence_level=[0.6, 0.5, 0.7], basis="features")
    predict = model.predict_set if is_classifier(model) else model.predict_interval
    predictions, sets = predict(X)
    np.testing.assert_array_equal(predictions, model.predict(X))
    for rows in (slice(None, None, -1), slice(7, 8)):  # the last digit of a prediction may depend on the batch
        np.testing.assert_allclose(predict(X[rows])[1], sets[rows], rtol=1e-12)
    assert sets.shape == (len(X), 2, 3)
    sizes = sets.sum(axis=1) if is_classifier(model) else np.nan_to_num(sets[:, 1] - sets[:, 0])
    assert (np.diff(sizes[:, [1, 0, 2]], axis=1) >= 0).all()
    hole = X[:3].copy()
    hole[:, 1] = np.nan
    with pytest.warns(UserWarning, match="infinite.*x1"):
        _, sets = predict(hole)
    assert sets.all() if is_classifier(model) else np.isinf(sets).all()
