"""Distances to points that meet equations exactly, against rational arithmetic, and dependent columns."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from flint import fmpq, fmpq_mat

from formulations.erm.dual_rows import Rows
from formulations.erm.risk import EmpiricalRisk
from formulations.losses import Squared


def rational(values):
    return [[fmpq(*float(v).as_integer_ratio()) for v in row] for row in np.atleast_2d(values)]


def blocks_of(A, size=7):
    return [(slice(i, min(i + size, len(A))), A[i : i + size]) for i in range(0, len(A), size)]


def rows_of(A, q):
    return replace(Rows.of(EmpiricalRisk(A, np.zeros(len(A)), q, Squared())), blocks=blocks_of(A))


@pytest.mark.parametrize("collinearity", [1.0, 1e-3, 1e-6, 1e-9])
@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_the_distance_is_an_upper_bound(collinearity, seed, whole):
    rng = np.random.default_rng(seed)
    A, q = rng.normal(size=(30, 4)), rng.uniform(0.5, 2.0, size=30) / 30
    A[:, 3] = A[:, 0] + collinearity * A[:, 3]
    theta = q * rng.normal(size=30) * 1e-12
    rows = rows_of(A, q)
    factor = rows.factor(np.arange(4), rows.q if whole else q.copy())
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
    A, q = rng.normal(size=(40, 3)), np.full(40, 1 / 40)
    members = rng.integers(0, 2, size=40)
    exact = [np.column_stack([A, -2.0 * A[:, 1]]), np.column_stack([A[:, :1], np.ones(40), members, 1 - members])]
    for columns in exact:
        factor = rows_of(columns, q).factor(np.arange(4), q)
        assert len(factor.columns) == 3
        np.testing.assert_allclose(columns[:, factor.columns] @ factor.combination, columns[:, factor.others])
    rounded = np.column_stack([A, A.sum(axis=1)])
    assert rows_of(rounded, q).factor(np.arange(4), q) is None


def test_dependencies_are_sought_in_rows_of_positive_weight():
    rng = np.random.default_rng(0)
    A, q = rng.normal(size=(40, 3)), np.full(40, 1 / 40)
    A[:30, 2] = -0.5 * A[:30, 0]
    assert len(rows_of(A, q).factor(np.arange(3), q).columns) == 3
    assert len(rows_of(A, q).factor(np.arange(3), np.where(np.arange(40) < 30, q, 0.0)).columns) == 2


def test_dependencies_are_seen_in_the_columns_before_a_shift():
    rng = np.random.default_rng(0)
    members = rng.integers(0, 2, size=40).astype(float)
    stated = np.column_stack([np.ones(40), members, 1.0 - members])
    shifted = stated - np.array([0.0, members.mean(), 1.0 - members.mean()])
    q = np.full(40, 1 / 40)
    rows = replace(rows_of(shifted, q), stated=blocks_of(stated), constants=np.array([0]))
    factor = rows.factor(np.arange(3), rows.q)
    assert len(factor.columns) == 2


def test_disjoint_columns_need_no_factorisation():
    A = np.kron(np.eye(3), np.ones((4, 1)))
    factor = rows_of(A, np.full(12, 1 / 12)).factor(np.arange(3), np.full(12, 1 / 12))
    assert factor.X.ndim == 1
    assert factor.distance(np.array([0.3, 0.0, 0.4]), np.zeros(3)) == pytest.approx(0.5 * 3**0.5)
