"""Bounds on what rounding leaves, against rational arithmetic."""

from fractions import Fraction

import numpy as np
import pytest
from flint import fmpq, fmpq_mat

from formulations.erm.rounding import exact_products, exact_sum, factor_of


def rational(values):
    return [[fmpq(*float(v).as_integer_ratio()) for v in row] for row in np.atleast_2d(values)]


def blocks_of(A, size=7):
    return [(slice(i, min(i + size, len(A))), A[i : i + size]) for i in range(0, len(A), size)]


def sizes_of(A, q):
    return np.sqrt(q @ A**2)


def test_sums_are_rounded_once():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 50)) * 10.0 ** rng.integers(-8, 8, size=(2, 50))
    values = np.array([1e17, -1e17, 0.1])
    exact = sum(map(Fraction, values)) + sum(Fraction(x) * Fraction(y) for x, y in zip(a, b, strict=True))
    assert exact_sum(values, a, b) == float(exact)
    np.testing.assert_array_equal(exact_products(np.outer(a, [1.0, 2.0]), b), exact_sum(a[:0], a, b) * np.array([1, 2]))


@pytest.mark.parametrize("collinearity", [1.0, 1e-3, 1e-6, 1e-9])
@pytest.mark.parametrize("seed", range(3))
def test_the_distance_is_an_upper_bound(collinearity, seed):
    rng = np.random.default_rng(seed)
    A, q = rng.normal(size=(30, 4)), rng.uniform(0.5, 2.0, size=30) / 30
    A[:, 3] = A[:, 0] + collinearity * A[:, 3]
    theta = q * rng.normal(size=30) * 1e-12
    factor = factor_of(blocks_of(A), q, np.arange(4), sizes_of(A, q))
    exact_A, Q = fmpq_mat(rational(A)), rational(q)[0]
    weighted = fmpq_mat([[entry * weight for entry in row] for row, weight in zip(exact_A.tolist(), Q, strict=True)])
    eps = exact_A.transpose() * fmpq_mat(rational(theta)).transpose()
    square = (eps.transpose() * (weighted.transpose() * exact_A).inv() * eps)[0, 0]
    stated = np.array([float(Fraction(int(v[0].p), int(v[0].q))) for v in eps.tolist()])
    delta = factor.distance(stated[factor.columns], np.abs(stated)[factor.columns] * 2.0**-52)
    exact = float(Fraction(int(square.p), int(square.q))) ** 0.5
    assert exact <= delta <= 1.01 * exact + 1e-18 / collinearity


def test_dependent_columns():
    rng = np.random.default_rng(0)
    A, q, every = rng.normal(size=(40, 3)), np.full(40, 1 / 40), np.arange(4)
    members = rng.integers(0, 2, size=40)
    exact = [np.column_stack([A, -2.0 * A[:, 1]]), np.column_stack([A[:, :1], np.ones(40), members, 1 - members])]
    for columns in exact:
        factor = factor_of(blocks_of(columns), q, every, sizes_of(columns, q))
        assert len(factor.columns) == 3
    rounded = np.column_stack([A, A.sum(axis=1)])
    assert factor_of(blocks_of(rounded), q, every, sizes_of(rounded, q)) is None


def test_dependencies_are_seen_in_the_columns_before_a_shift():
    rng = np.random.default_rng(0)
    members = rng.integers(0, 2, size=40).astype(float)
    stated = np.column_stack([np.ones(40), members, 1.0 - members])
    shifted = stated - np.array([0.0, members.mean(), 1.0 - members.mean()])
    q = np.full(40, 1 / 40)
    factor = factor_of(blocks_of(shifted), q, np.arange(3), sizes_of(shifted, q), blocks_of(stated), np.array([0]))
    assert len(factor.columns) == 2


def test_disjoint_columns_need_no_factorisation():
    A = np.kron(np.eye(3), np.ones((4, 1)))
    factor = factor_of(blocks_of(A), np.full(12, 1 / 12), np.arange(3), np.full(3, 1 / 3**0.5))
    assert factor.X.ndim == 1
    assert factor.distance(np.array([0.3, 0.0, 0.4]), np.zeros(3)) == pytest.approx(0.5 * 3**0.5)
