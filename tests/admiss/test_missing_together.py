"""Features that are always missing together are one feature of the pattern."""

import numpy as np
import pytest

from admiss import AdaptiveRegressor, FiniteRegressor, PatternConformalRegressor
from admiss.adaptivity import Affine, AffineIntercept, Polynomial
from admiss.partition import BoxPartition, Greedy, OptimalTree
from admiss.statistics.row_statistics import RowStatistics


@pytest.fixture
def rows():
    """A category of three columns that are missing together, and two features that are missing by themselves."""
    rng = np.random.default_rng(0)
    level = rng.integers(3, size=400)
    X = np.column_stack([rng.normal(size=(400, 2)), level[:, None] == np.arange(3)]).astype(float)
    y = X @ [1.0, -1.0, 0.0, 1.0, 2.0] + rng.normal(size=400)
    X[rng.random(400) < 0.3, 2:] = np.nan
    X[rng.random(400) < 0.3, 0] = np.nan
    X[rng.random(400) < 0.3, 1] = np.nan
    return X, y


@pytest.mark.parametrize("adaptivity", [AffineIntercept(), Affine(), Polynomial(2)])
def test_columns_that_are_missing_together_have_one_indicator(rows, adaptivity):
    X, y = rows
    model = AdaptiveRegressor(adaptivity, lam=0.1).fit(X, y)
    single = [name for name in model.design_.adaptivity.names(list("abcde")) if "&" not in name]
    assert single == ["1", "a missing", "b missing", "c, d, e missing"]


@pytest.mark.parametrize("adaptivity", [AffineIntercept(), Affine()])
@pytest.mark.parametrize("batches", [1, 7])
def test_statistics_know_what_is_missing_together(rows, adaptivity, batches):
    X, y = rows
    parts = []
    for part in np.array_split(np.arange(400), batches):
        parts.append(RowStatistics(adaptivity).update(X[part], y[part]))
    statistics = parts[0]
    for part in parts[1:]:
        statistics = statistics.merge(part)
    model = AdaptiveRegressor(adaptivity, lam=0.1).fit(X, y)
    found = AdaptiveRegressor(adaptivity, lam=0.1).fit_statistics(statistics)
    assert found.coefficients_.shape == model.coefficients_.shape
    np.testing.assert_allclose(found.predict(X), model.predict(X), rtol=1e-10, atol=1e-10)


def test_one_row_with_a_part_of_them_separates_them(rows):
    X, y = rows
    X[np.flatnonzero(np.isnan(X[:, 3]))[0], 3] = 1.0
    model = AdaptiveRegressor(AffineIntercept(), lam=0.1).fit(X, y)
    assert model.design_.adaptivity.names(list("abcde"))[3:] == ["c, e missing", "d missing"]


def test_a_row_with_a_part_of_them_missing_is_predicted(rows):
    X, y = rows
    model = AdaptiveRegressor(Affine(), lam=0.1).fit(X, y)
    part = X[:1].copy()
    part[0] = [0.0, 0.0, np.nan, 1.0, 0.0]
    with pytest.warns(UserWarning, match="pattern"):
        model.set_params(on_unseen_pattern="warn").predict(part)


@pytest.mark.parametrize("partitioner", [Greedy(), OptimalTree(), BoxPartition()])
def test_they_are_split_on_once_and_have_one_indicator_in_leaves(rows, partitioner):
    X, y = rows
    model = FiniteRegressor(partitioner).fit(X, y)
    assert model.leaf_features_.indicators.tolist() == [0, 1, 2]
    assert {feature for box in model.partition_.boxes for feature, _ in box} <= {0, 1, 2}


def test_coverage_is_reported_once(rows):
    X, y = rows
    report = PatternConformalRegressor(AdaptiveRegressor(), random_state=0).fit(X, y).coverage_report(X, y)
    groups = list(report.table["group"])
    assert groups.count("x2, x3, x4 missing") == 1
    assert "3 missing" in groups
    assert "5 missing" not in groups
