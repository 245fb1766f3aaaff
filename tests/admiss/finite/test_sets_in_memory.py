"""Optimal trees of rows in memory by sums over missing sets, against those by the rows of each pattern."""

from typing import Any

import numpy as np
import pytest

from admiss import FiniteRegressor, verify
from admiss.finite import from_statistics
from admiss.partition import OptimalTree
from tests.admiss.finite.test_from_statistics import same_model, table


@pytest.fixture
def by_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums over sets whatever the number of rows."""
    monkeypatch.setattr(from_statistics, "FEWEST_ROWS", 0)
    monkeypatch.setattr(from_statistics, "ROWS_PER_SET", 0)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"leaf_model": "static", "ridge": 0.0},
        {"ridge_scale": "sample", "ridge": 0.01},
        {"center": False, "scale": False},
    ],
)
@pytest.mark.parametrize("offset", [0.0, 1e3])
@pytest.mark.parametrize("classes", [False, True])
def test_trees_and_what_is_known_of_patterns_are_those_of_the_rows(
    options: dict[str, Any], offset: float, classes: bool, request: pytest.FixtureRequest
) -> None:
    X, y = table(1500, offset=offset)
    y = np.sign(y - offset) if classes else y
    s = np.random.default_rng(1).uniform(0.5, 2.0, len(y))
    model = FiniteRegressor(OptimalTree(2, min_rows=None if classes else 40), **options)
    of_rows = model.fit(X, y, s)
    request.getfixturevalue("by_sets")
    of_sets = FiniteRegressor(**model.get_params(deep=False)).fit(X, y, s)
    assert of_sets.certificate_.status == of_rows.certificate_.status == "optimal"
    assert of_sets.partition_.tree == of_rows.partition_.tree
    assert of_sets.certificate_.objective == pytest.approx(of_rows.certificate_.objective, rel=1e-9)
    assert of_sets.certificate_.bound <= of_rows.certificate_.objective
    for name in ("patterns", "leaf", "complete", "boxes"):
        np.testing.assert_array_equal(getattr(of_sets.partition_, name), getattr(of_rows.partition_, name))
    np.testing.assert_allclose(of_sets.partition_.weights, of_rows.partition_.weights, rtol=1e-12)
    for name in ("leaf_rows_", "pattern_rows_"):
        np.testing.assert_array_equal(getattr(of_sets, name), getattr(of_rows, name))
    same_model(of_rows, of_sets, X, 1e-7)
    assert verify(of_sets, X, y, s).verified


def test_of_features_that_are_missing_together_the_first_is_split_on(by_sets: None) -> None:
    X, y = table(1500)
    X = np.c_[X, np.where(np.isnan(X[:, [3, 0, 4]]), np.nan, X[:, [2, 2, 2]])]
    model = FiniteRegressor(OptimalTree(2, min_rows=40)).fit(X, y)
    assert model.certificate_.status == "optimal"
    assert {feature for box in model.partition_.boxes or [] for feature, _ in box} == {0, 3, 4}


def test_leaves_that_need_the_digits_of_the_rows_get_them(by_sets: None) -> None:
    rng, n = np.random.default_rng(3), 500
    a, b, z = rng.normal(size=(3, n))
    m = rng.random(n) < 0.5
    X = np.c_[a, a + 1e-7 * z, np.where(m, np.nan, b)]
    y = a + z + 0.1 * rng.normal(size=n)
    model = FiniteRegressor(OptimalTree(1), ridge=0.0, leaf_model="static").fit(X, y)
    assert model.certificate_.status == "optimal"
    assert model.certificate_.objective < 0.02 * n


def test_many_rows_take_sums_over_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = table(20_000)
    monkeypatch.setattr(from_statistics.FiniteModel, "_fit_partition", None)
    assert FiniteRegressor(OptimalTree(2)).fit(X, y).certificate_.status == "optimal"
