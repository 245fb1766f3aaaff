import numpy as np
import pytest
import scipy.sparse as sp

from admiss.adaptivity import (
    Adaptivity,
    Affine,
    AffineIntercept,
    FullyAdaptive,
    Polynomial,
    Static,
    resolve_adaptivity,
)
from admiss.patterns import PatternTable

CLASSES = [Static(), AffineIntercept(), Affine(), Polynomial(2), Polynomial(3), FullyAdaptive()]


def dense(matrix):
    return matrix.toarray() if sp.issparse(matrix) else matrix


@pytest.mark.parametrize("adaptivity", CLASSES, ids=str)
def test_columns_are_the_products_one_by_one(adaptivity, make_rows):
    X, _ = make_rows(n=60, d=4)
    M = np.isnan(X)
    fitted = adaptivity.fit(X, M)
    columns = dense(fitted.columns(X, M))
    phi, Z = dense(fitted.basis(M.astype(float))), np.column_stack([np.ones(60), np.nan_to_num(X)])
    pairs = np.argwhere(fitted.mask(4))
    np.testing.assert_allclose(columns, np.column_stack([Z[:, j] * phi[:, k] for j, k in pairs]), rtol=1e-14)
    assert len(fitted.names(list("abcd"))) == phi.shape[1]


@pytest.mark.parametrize("adaptivity", [Affine(), Polynomial(2)], ids=str)
def test_sparse_columns_equal_dense_ones(adaptivity, make_rows, monkeypatch):
    X, _ = make_rows(n=60, d=4)
    fitted = adaptivity.fit(X, np.isnan(X))
    expected = fitted.columns(X, np.isnan(X))
    monkeypatch.setattr("admiss.adaptivity.base.DENSE_ENTRIES", 10)
    found = fitted.columns(X, np.isnan(X))
    assert sp.issparse(found)
    assert not sp.issparse(expected)
    np.testing.assert_array_equal(found.toarray(), expected)


@pytest.mark.parametrize("adaptivity", CLASSES, ids=str)
def test_counts_are_weights_of_rows(adaptivity, make_rows):
    X, _ = make_rows(n=80, d=4)
    X[:10, 0] = 0.0  # an observed zero counts
    M, s = np.isnan(X), np.random.default_rng(1).uniform(size=80)
    fitted = adaptivity.fit(X, M)
    table = PatternTable.of(M, s)
    phi, observed = dense(fitted.basis(M.astype(float))), np.column_stack([np.ones(80), ~M])
    brute = [[s[(observed[:, j] == 1) & (phi[:, k] != 0)].sum() for k in range(phi.shape[1])] for j in range(5)]
    np.testing.assert_allclose(fitted.counts(table.patterns, table.weights), brute, atol=1e-12)


def test_only_missable_features_have_indicators():
    M = np.array([[0, 0, 1], [1, 0, 0]], dtype=bool)
    assert Affine().fit(np.zeros((2, 3)), M).names(list("abc")) == ["1", "a missing", "c missing"]


@pytest.mark.parametrize("degree", [0, 1, 2, 3, 5])
@pytest.mark.parametrize("missable", [0, 1, 3, 4])
def test_number_of_columns_of_polynomials(degree, missable):
    M = np.zeros((3, 4), dtype=bool)
    M[1, :missable] = True
    fitted = Polynomial(degree).fit(np.zeros((3, 4)), M)
    assert fitted.mask(4).sum() == Polynomial(degree).n_columns(4, missable)


def test_polynomial_refuses_too_many_columns():
    M = np.ones((1, 60), dtype=bool)
    with pytest.raises(ValueError, match=r"2,092,851 columns on 60 features, of which 60.*max_columns=20,000"):
        Polynomial(3).fit(np.zeros((1, 60)), M)
    assert Polynomial(1, max_columns=3661).fit(np.zeros((1, 60)), M).mask(60).sum() == 3661


def test_fit_does_not_change_the_original():
    M = np.array([[0, 1]], dtype=bool)
    for adaptivity in CLASSES:
        before = dict(vars(adaptivity))
        fitted = adaptivity.fit(np.zeros((1, 2)), M)
        assert vars(adaptivity) == before
        learned = {name: value for name, value in vars(fitted).items() if name.endswith("_")}
        assert learned
        assert all(isinstance(value, np.ndarray) for value in learned.values())


def test_names_of_classes():
    assert isinstance(resolve_adaptivity("affine"), Affine)
    with pytest.raises(ValueError, match="choose one of 'static', 'affine_intercept', 'affine'"):
        resolve_adaptivity("afine")
    with pytest.raises(TypeError, match="must implement basis"):
        Adaptivity().basis(np.zeros((1, 1)))
