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

CLASSES = [Static(), AffineIntercept(), Affine(), Polynomial(2), Polynomial(3), FullyAdaptive()]


def dense(matrix):
    return matrix.toarray() if sp.issparse(matrix) else matrix


def test_only_missable_features_have_indicators():
    M = np.array([[0, 0, 1], [1, 0, 0]], dtype=bool)
    assert Affine().fit(np.zeros((2, 3)), M).names(list("abc")) == ["1", "a missing", "c missing"]


@pytest.mark.parametrize("degree", [0, 1, 2, 3, 5])
@pytest.mark.parametrize("missable", [0, 1, 3, 4])
def test_number_of_columns_of_polynomials(degree, missable):
    M = np.eye(5, 4, dtype=bool) & (np.arange(4) < missable)
    fitted = Polynomial(degree).fit(np.zeros(M.shape), M)
    assert fitted.mask(4).sum() == Polynomial(degree).n_columns(4, missable)


def test_polynomial_refuses_too_many_columns():
    M = np.eye(60, dtype=bool)
    with pytest.raises(ValueError, match=r"2,092,851 columns on 60 features, of which 60.*max_columns=20,000"):
        Polynomial(3).fit(np.zeros(M.shape), M)
    assert Polynomial(1, max_columns=3661).fit(np.zeros(M.shape), M).mask(60).sum() == 3661


def test_names_of_classes():
    assert isinstance(resolve_adaptivity("affine"), Affine)
    with pytest.raises(ValueError, match="choose one of 'static', 'affine_intercept', 'affine'"):
        resolve_adaptivity("afine")
    with pytest.raises(TypeError, match="must implement basis"):
        Adaptivity().basis(np.zeros((1, 1)))
