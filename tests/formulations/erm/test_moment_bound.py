"""The bound from cross products, against optima in exact arithmetic."""

from fractions import Fraction

import numpy as np
import pytest

from formulations.arrays import FloatArray
from formulations.erm.moment_bound import moment_bound
from formulations.erm.quadratic_path import quadratic_path


def exact_minimum(M: FloatArray, S: float, l2: FloatArray) -> Fraction:
    """min over w of v'M v / S + sum l2 w^2 / 2 with v = (-w, 1): the last pivot of an elimination in fractions."""
    A = [[Fraction(float(value)) for value in row] for row in M]
    p = len(l2)
    for k in range(p):
        A[k][k] += Fraction(float(S)) * Fraction(float(l2[k])) / 2
    for k in range(p):
        for i in range(k + 1, p + 1):
            factor = A[i][k] / A[k][k]
            A[i] = [a - factor * b for a, b in zip(A[i], A[k], strict=True)]
    return A[p][p] / Fraction(float(S))


@pytest.mark.parametrize("collinear", [1.0, 1e-3, 1e-7])
def test_bound_is_below_and_objective_above_the_optimum(collinear: float) -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        U = np.round(rng.normal(size=(12, 5)) * 2**20) / 2**20  # products are exact
        U[:, 1] = U[:, 0] + np.round(collinear * U[:, 1] * 2**20) / 2**20
        M, l2 = U.T @ U, np.abs(rng.normal(size=4)) * 10.0 ** rng.integers(-8, 2)
        exact = exact_minimum(M, 12.0, l2)
        w = np.linalg.solve(M[:4, :4] / 6.0 + np.diag(l2), M[:4, 4] / 6.0)
        noise = rng.uniform(-1, 1, size=M.shape)
        D, e = np.sqrt(np.diag(M)), 1e-13
        measured = M + e * np.outer(D, D) * (noise + noise.T) / 2.0
        up, low = moment_bound(measured, D, e, 12.0, np.zeros(4), l2, w)
        assert Fraction(low) <= exact <= Fraction(up)
        if collinear == 1.0:
            assert up - low <= 1e-9 * up
        assert Fraction(moment_bound(measured, D, e, 12.0, np.zeros(4), l2, 1.1 * w)[1]) <= exact


def test_lasso_is_proven_by_a_subgradient() -> None:
    rng = np.random.default_rng(1)
    U = rng.normal(size=(200, 7))
    U[:, -1] += U[:, 0]
    M, S = U.T @ U, 200.0
    l1 = np.full(6, 0.3)
    path = quadratic_path(2.0 * M[:6, :6] / S, 2.0 * M[:6, 6] / S, l1, np.zeros(6), np.ones(1))
    assert np.any(path.w[0] == 0)
    up, low = moment_bound(M, np.sqrt(np.diag(M)), 1e-13, S, l1, np.zeros(6), path.w[0])
    assert up - low < 1e-9 * up
    worse = moment_bound(M, np.sqrt(np.diag(M)), 1e-13, S, l1, np.zeros(6), path.w[0] + 0.01)
    assert worse[1] <= up
    assert worse[0] > up


def test_dependent_columns_prove_nothing() -> None:
    U = np.random.default_rng(2).normal(size=(50, 3))
    U[:, 1] = U[:, 0]
    M = U.T @ U
    assert moment_bound(M, np.sqrt(np.diag(M)), 1e-13, 50.0, np.zeros(2), np.zeros(2), np.zeros(2))[1] == 0.0
