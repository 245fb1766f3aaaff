"""MDA-exact and MDA-nested against their definitions, row by row."""

import math

import numpy as np
import pytest

from admiss import AdaptiveClassifier, AdaptiveRegressor, PatternConformalClassifier, PatternConformalRegressor
from admiss.intervals import masking
from tests.properties.entry import make_rows

LEVEL = 0.75


def order_statistic(values, rank):
    return np.sort(values)[rank - 1] if rank <= len(values) else np.inf


@pytest.mark.parametrize("method", ["mda_exact", "mda_nested"])
def test_definition_for_numbers(method, monkeypatch):
    monkeypatch.setattr(masking, "BLOCK", 200)
    X, y = make_rows(AdaptiveRegressor(), 40)
    f = AdaptiveRegressor().fit(*make_rows(AdaptiveRegressor(), 100, 1))
    model = PatternConformalRegressor(f, LEVEL, method=method, prefit=True).conformalize(X, y)
    tests = make_rows(f, 8, 2)[0]
    tests[0, [0, 2, 3]] = np.nan
    prediction, intervals = model.predict_interval(tests)
    np.testing.assert_array_equal(prediction, f.predict(tests))
    M = np.isnan(X)
    for x, found in zip(tests, intervals[:, :, 0], strict=True):
        m = np.isnan(x)
        lower, upper = [], []
        for i in range(len(y)):
            if method == "mda_nested" or not (M[i] & ~m).any():
                union = M[i] | m
                s = abs(y[i] - f.predict(np.where(union, np.nan, X[i])[None])[0])
                centre = f.predict(np.where(union, np.nan, x)[None])[0]
                lower.append(centre - s)
                upper.append(centre + s)
        rank = math.ceil(LEVEL * (len(upper) + 1))
        expected = [-order_statistic(-np.array(lower), rank), order_statistic(np.array(upper), rank)]
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("method", ["mda_exact", "mda_nested"])
def test_definition_for_classes(method):
    X, z = make_rows(AdaptiveClassifier(), 40)
    f = AdaptiveClassifier().fit(*make_rows(AdaptiveClassifier(), 100, 1))
    model = PatternConformalClassifier(f, LEVEL, method=method, prefit=True).conformalize(X, z)
    tests = make_rows(f, 8, 2)[0]
    y, M = (z == "low").astype(int), np.isnan(X)
    for x, found in zip(tests, model.predict_set(tests)[1][:, :, 0], strict=True):
        m = np.isnan(x)
        used = [i for i in range(len(y)) if method == "mda_nested" or not (M[i] & ~m).any()]
        rank, smaller = math.ceil(LEVEL * (len(used) + 1)), np.zeros(2)
        for i in used:
            union = M[i] | m
            s = 1 - f.predict_proba(np.where(union, np.nan, X[i])[None])[0, y[i]]
            smaller += s < 1 - f.predict_proba(np.where(union, np.nan, x)[None])[0] - 1e-12
        np.testing.assert_array_equal(found, smaller < rank)


def test_too_few_rows_are_infinite_and_promises_are_named():
    X, y = make_rows(AdaptiveRegressor(), 30)
    f = AdaptiveRegressor().fit(X, y)
    model = PatternConformalRegressor(f, [0.9, 0.8], method="mda_exact", prefit=True).conformalize(X, y)
    with pytest.warns(UserWarning, match="of 30 rows are infinite"):
        intervals = model.predict_interval(X)[1]
    few = np.array([(~(np.isnan(X) & ~m).any(axis=1)).sum() for m in np.isnan(X)]) < 9
    assert few.any()
    np.testing.assert_array_equal(np.isinf(intervals[:, 1, 0]), few)
    assert model.guarantee_.startswith("Coverage at least 90 % and 80 % given every pattern")
    nested = PatternConformalRegressor(f, method="mda_nested", prefit=True).conformalize(X, y)
    assert nested.guarantee_.startswith("Coverage at least 80 % over all rows")
    assert np.isinf(nested.conformalize(X[:8], y[:8]).predict_interval(X)[1]).all()
