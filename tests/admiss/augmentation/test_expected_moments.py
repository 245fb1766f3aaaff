"""Expected moments against the enumeration of all deletions, with Gauss quadrature over the rate."""

from itertools import product

import numpy as np
import pytest

from admiss.adaptivity import Affine, AffineIntercept, Polynomial, Static
from admiss.augmentation.deletions import Deletions
from admiss.augmentation.expected import ExpectedRows
from admiss.linear.design import DesignOptions, fit_design

CLASSES = [Static(), AffineIntercept(), Affine(), Polynomial(2), Polynomial(3)]
LAWS = [Deletions(0.0, 0.7, 0.5), Deletions(0.3, 0.3, 0.0), Deletions(0.2, 1.0, 0.9)]


def make_rows(n=25, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) * [1.0, 1e3, 1e-3] + [1e6, 0.0, -3.0]
    X[rng.uniform(size=X.shape) < [0.3, 0.0, 0.4]] = np.nan
    X[0] = np.nan
    return X, 1e4 + rng.normal(size=n), rng.uniform(1.0, 3.0, n)


def every_deletion(X, y, s, law):
    """All deletions of all rows, with weights that integrate over the rate exactly (up to degree 15)."""
    nodes, weights = np.polynomial.legendre.leggauss(8)
    rates = law.low + (law.high - law.low) * (nodes + 1) / 2
    parts, shares = [X], [law.keep]
    for deleted in product([False, True], repeat=X.shape[1]):
        k = sum(deleted)
        parts.append(np.where(deleted, np.nan, X))
        shares.append((1 - law.keep) * float(weights @ (rates**k * (1 - rates) ** (X.shape[1] - k))) / 2)
    all_s = np.concatenate([share * s for share in shares])
    used = all_s > 0
    return np.vstack(parts)[used], np.tile(y, len(parts))[used], all_s[used]


@pytest.mark.parametrize("adaptivity", CLASSES, ids=repr)
@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize(("center", "fit_intercept"), [(True, True), (False, True), (True, False)])
def test_moments_are_those_of_all_deletions(adaptivity, law, center, fit_intercept):
    X, y, s = make_rows()
    X = X if center and fit_intercept else X / [1e6, 1.0, 1.0]
    options = DesignOptions(center, True, fit_intercept)
    own = ExpectedRows(X, y, s, law)
    design = own.design(adaptivity, options)
    rows, target, weights = every_deletion(X, y, s, law)
    stated = fit_design(rows, weights, adaptivity, options)
    for name in ("pairs", "position", "free", "adaptive", "missable", "features"):
        np.testing.assert_array_equal(getattr(design, name), getattr(stated, name), err_msg=name)
    for name in ("counts", "scale", "spread"):
        np.testing.assert_allclose(getattr(design, name), getattr(stated, name), rtol=1e-8, err_msg=name)
    np.testing.assert_allclose(design.centre, stated.centre, rtol=0, atol=1e-9 * design.spread.max())
    columns = own.columns(design, 1.0)
    found = own.moments(columns)
    A, t = design.matrix(rows), target - columns.shift.y
    size = np.sqrt(weights.sum() * np.diag(A.T @ (weights[:, None] * A))) + 1e-300
    np.testing.assert_allclose(
        found.G, A.T @ (weights[:, None] * A), rtol=0, atol=1e-11 * weights.sum() * np.abs(A).max() ** 2
    )
    np.testing.assert_allclose(found.c, A.T @ (weights * t), rtol=0, atol=1e-11 * size.max() * np.abs(t).max())
    np.testing.assert_allclose(found.a, A.T @ weights, rtol=0, atol=1e-11 * size.max())
    assert found.S == pytest.approx(weights.sum(), rel=1e-12)
    assert found.r == pytest.approx(weights @ t**2, rel=1e-10)


def test_moments_add_over_blocks_of_rows(monkeypatch):
    X, y, s = make_rows()
    rows = ExpectedRows(X, y, s, LAWS[0])
    columns = rows.columns(rows.design(Affine(), DesignOptions()), 1.0)
    expected = rows.moments(columns)
    monkeypatch.setattr("admiss.augmentation.expected.BLOCK", 7)
    found = rows.moments(columns)
    for name in ("G", "c", "a"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-9, atol=1e-9)


def test_the_mean_rate_is_not_enough():
    """kept(2) at the mean rate differs by the variance of the rate: 5 % for the default rates."""
    uniform, fixed = Deletions(0.0, 0.7, 0.0), Deletions(0.35, 0.35, 0.0)
    pair = np.array([2])
    assert uniform.kept(pair)[0] - fixed.kept(pair)[0] == pytest.approx(0.7**2 / 12)
    assert fixed.kept(pair)[0] / uniform.kept(pair)[0] - 1 == pytest.approx(-0.088, abs=0.001)
