"""The factorisation in tiles against LAPACK, from any row, and the active set that keeps rows of its factor."""

import numpy as np
import pytest

from formulations.erm.active_set import solve_quadratic
from formulations.erm.cholesky import cholesky, cholesky_solve


def gram(m, seed=0, n=None):
    A = np.random.default_rng(seed).normal(size=(n or 2 * m + 3, m))
    return A.T @ A


@pytest.mark.parametrize("m", [1, 2, 3, 4, 5, 7, 8, 11, 16, 41])
def test_every_start_gives_the_factor_of_lapack(m):
    K = gram(m) * np.outer(10.0 ** np.arange(m), 10.0 ** np.arange(m)) ** (6 / m)  # units of 1 to 1e6
    expected = np.linalg.cholesky(K)
    for start in range(m + 1):
        L = np.full((m + 2, m + 2), np.nan)
        L[:m, :m] = np.tril(K)
        L[:start, :start] = expected[:start, :start]
        L[np.triu_indices(m + 2, 1)] = np.nan
        assert cholesky(L, m, start)
        np.testing.assert_allclose(np.tril(L[:m, :m]), expected, rtol=1e-12, atol=0)
    b = gram(m, 1)[0]
    x = b.copy()
    cholesky_solve(L, m, x)
    np.testing.assert_allclose(x, np.linalg.solve(K, b), rtol=1e-9)


@pytest.mark.parametrize("row", [0, 3, 4, 9, 10])
def test_a_column_that_depends_on_others_is_found(row):
    K = gram(11)
    K[row], K[:, row] = 0.0, 0.0
    assert not cholesky(K.copy(), 11, 0)
    if row > 0:  # nearly a copy of the column before
        A = np.random.default_rng(0).normal(size=(30, 11))
        A[:, row] = A[:, row - 1] * (1 + 1e-9)
        assert not cholesky(A.T @ A, 11, 0)


def solved(H, b, l1, l2, w, memory, known, sweep):
    m = len(b)
    q = H @ w
    tolerance = 1e-12 * np.abs(b).max()
    result = solve_quadratic(H, m, b, l1, l2, w, q, *memory, tolerance, known, sweep)
    g = q - b + l2 * w
    conditions = np.where(w != 0, np.abs(g + l1 * np.sign(w)), np.abs(g) - l1)
    assert conditions.max() <= 10 * tolerance
    return result


def test_known_rows_of_the_factor_give_the_same_minimiser():
    m, rng = 23, np.random.default_rng(2)
    H, l2 = gram(m, 3), rng.uniform(0, 1, m)
    kept = (np.full((m, m), np.nan), np.zeros(m, dtype=np.int64), *(np.zeros(m) for _ in range(3)))
    w, known, sizes = np.zeros(m), 0, set()
    for step in range(30):  # the support changes at the start, in the middle and at the end
        b, l1 = 20 * rng.normal(size=m) + np.sin(step + np.arange(m)), np.full(m, 12.0)
        support, known = solved(H, b, l1, l2, w, kept, known, step % 2 == 0)
        new = (np.full((m, m), np.nan), np.zeros(m, dtype=np.int64), *(np.zeros(m) for _ in range(3)))
        fresh = np.zeros(m)
        solved(H, b, l1, l2, fresh, new, 0, True)
        np.testing.assert_allclose(w, fresh, rtol=1e-9, atol=1e-12)
        assert known == support
        sizes.add(support)
    assert len(sizes) > 5
