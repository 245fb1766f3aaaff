"""Pseudo-rows have the weight, mean and scatter of the rows of each pattern."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from admiss.adaptivity import Adaptivity, Affine, AffineIntercept, FullyAdaptive, Polynomial, Static
from admiss.linear.estimators import AdaptiveRegressor
from admiss.streaming import HashFolds, RowStatistics

BLOCK = 50


def table(n: int = 900, offset: float = 0.0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 4)) + offset
    X[:, 3] = X[:, 2] + 1e-7 * rng.normal(size=n)
    y = X @ np.array([1.0, -1.0, 0.5, 0.0]) + rng.normal(size=n)
    X[:, :2][rng.random((n, 2)) < 0.3] = np.nan
    return X, y, rng.integers(0, 3, n).astype(float)


def collected(X: np.ndarray, y: np.ndarray, s: np.ndarray, **settings: Any) -> RowStatistics:
    parts = [RowStatistics([], tree_depth=None, patterns=True, **settings) for _ in range(2)]
    for begin in range(0, len(y), BLOCK):
        block = slice(begin, begin + BLOCK)
        parts[begin // BLOCK % 2].update(X[block], y[block], s[block], place=(0, 0, begin))
    return parts[0].merge(parts[1])


def exact_moments(X: np.ndarray, y: np.ndarray, s: np.ndarray) -> list[list[Fraction]]:
    """Sums of s (1, x, y)(1, x, y)', as fractions."""
    rows = [[Fraction(1), *map(Fraction, x), Fraction(t)] for x, t in zip(X.tolist(), y.tolist(), strict=True)]
    weighted = list(zip(map(Fraction, s.tolist()), rows, strict=True))
    size = len(rows[0])
    return [[sum((w * z[i] * z[j] for w, z in weighted), Fraction(0)) for j in range(size)] for i in range(size)]


@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_moments_of_each_pattern_are_those_of_the_rows(offset: float) -> None:
    X, y, s = table(offset=offset)
    origin = np.full(5, offset)
    pseudo = collected(X, y, s).pseudo_rows(origin=origin)
    assert len(pseudo) < 50
    assert pseudo.count.sum() == pytest.approx((s > 0).sum())
    for pattern in np.unique(np.isnan(X), axis=0):
        inside, own = ((np.isnan(part) == pattern).all(axis=1) for part in (X, pseudo.X))
        true = exact_moments(X[inside][:, ~pattern], y[inside], s[inside])
        found = exact_moments(pseudo.X[own][:, ~pattern] + offset, pseudo.y[own] + offset, pseudo.sample_weight[own])
        for i, row in enumerate(true):
            for j, entry in enumerate(row):
                size = np.sqrt(float(true[i][i] * true[j][j]))
                assert abs(float(found[i][j] - entry)) <= 1e-14 * size
        # the residual of one of two columns that are collinear to 1e-7, which a covariance would lose
        v = np.zeros(len(true), dtype=int)
        v[-3], v[-2] = 1, -1
        values = [float(sum(m[i][j] * int(v[i] * v[j]) for i in (-3, -2) for j in (-3, -2))) for m in (true, found)]
        assert values[1] == pytest.approx(values[0], rel=1e-7 if offset == 0 else 1e-2)


@pytest.mark.parametrize("adaptivity", [Static(), AffineIntercept(), Affine(), Polynomial(2), FullyAdaptive()])
def test_a_fit_of_them_is_a_fit_of_the_rows(adaptivity: Adaptivity) -> None:
    X, y, _ = table()
    X = X[:, :3]
    pseudo = collected(X, y, np.ones(len(y))).pseudo_rows()
    model = AdaptiveRegressor(adaptivity, lam=0.1)
    expected = model.fit(X, y).predict(X)
    found = model.fit(pseudo.X, pseudo.y, pseudo.sample_weight).predict(X)
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_few_rows_are_kept_as_they_are_and_saved(tmp_path: Any) -> None:
    X, y, s = table(200)
    statistics = collected(X, y, s, folds=HashFolds(3))
    statistics.save(tmp_path / "rows.npz")
    loaded = RowStatistics.load(tmp_path / "rows.npz", [])
    pseudo, again = statistics.pseudo_rows(np.array([0, 2])), loaded.pseudo_rows(np.array([0, 2]))
    for name in ("X", "y", "sample_weight", "count", "fold", "is_exact", "lost"):
        np.testing.assert_array_equal(getattr(pseudo, name), getattr(again, name))
    assert set(pseudo.fold.tolist()) == {0, 2}
    kept = pseudo.is_exact
    assert kept.any()
    assert not kept.all()
    assert set(pseudo.y[kept].tolist()) <= set(y.tolist())


def test_without_patterns_there_are_no_pseudo_rows() -> None:
    X, y, s = table(50)
    with pytest.raises(ValueError, match="patterns=True"):
        RowStatistics.of(X, y, s, adaptivity=[], tree_depth=None).pseudo_rows()


def test_a_block_without_weight_adds_nothing() -> None:
    X, y, _ = table(100)
    statistics = RowStatistics.of(X, y, adaptivity=[], tree_depth=None, patterns=True)
    before = statistics.pseudo_rows()
    after = statistics.update(X, y, np.zeros(100)).pseudo_rows()
    np.testing.assert_array_equal(before.X, after.X)
    np.testing.assert_array_equal(before.count, after.count)
