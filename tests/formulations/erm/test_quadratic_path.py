"""The quadratic path against its optimality conditions, cvxpy and scikit-learn."""

import numpy as np
import pytest
from sklearn.linear_model import lasso_path

from formulations.erm.optimality import optimality_residual
from formulations.erm.program import AdaptiveERM, compile_erm, solve_erm
from formulations.erm.quadratic_path import quadratic_path
from formulations.erm.risk import EmpiricalRisk
from formulations.losses import Squared


def problem(n, p, rank=None, seed=0):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, p)) if rank is None else rng.normal(size=(n, rank)) @ rng.normal(size=(rank, p))
    A *= rng.uniform(size=A.shape) < 0.7
    y = A[:, :3].sum(axis=1) + rng.normal(size=n)
    A, y = A - A.mean(axis=0), y - y.mean()
    return EmpiricalRisk(A, y, np.full(n, 1 / n), Squared()), rng.uniform(0.5, 3.0, size=p)


def quadratic(risk):
    return 2 * risk.A.T @ risk.A / len(risk.y), 2 * risk.A.T @ risk.y / len(risk.y)


@pytest.mark.parametrize("alpha", [0.0, 0.1, 0.5, 1.0])
@pytest.mark.parametrize(
    ("n", "p", "rank"), [(200, 30, None), (200, 40, 5), (30, 80, None), (150, 300, None), (60, 400, 8)]
)
def test_paths_satisfy_the_optimality_conditions(n, p, rank, alpha):
    risk, u = problem(n, p, rank)
    H, b = quadratic(risk)
    largest = np.max(np.abs(b) / u) / max(alpha, 1e-3)
    lambdas = np.geomspace(largest, 1e-3 * largest, 40)
    path = quadratic_path(H, b, alpha * u, (1 - alpha) * u, lambdas)
    assert path.violation.max() < 1e-9
    for lam, w in zip(lambdas, path.w, strict=True):
        assert optimality_residual(risk, alpha * lam * u, (1 - alpha) * lam * u, w) < 1e-8
    if alpha > 0:
        np.testing.assert_allclose(path.w[0], 0.0, atol=1e-12)


def test_paths_agree_with_cvxpy():
    risk, u = problem(150, 25)
    H, b = quadratic(risk)
    compiled = compile_erm(AdaptiveERM(risk, u, u))
    lambdas = np.geomspace(0.5, 1e-3, 8)
    for alpha in (0.2, 1.0):
        path = quadratic_path(H, b, alpha * u, (1 - alpha) * u, lambdas)
        for lam, w in zip(lambdas, path.w, strict=True):
            reference, _ = solve_erm(compiled, alpha * lam, (1 - alpha) * lam)
            np.testing.assert_allclose(w, reference, atol=1e-8)


def test_lasso_agrees_with_scikit_learn():
    risk, _ = problem(300, 50)
    H, b = quadratic(risk)
    lambdas = np.geomspace(np.abs(b).max(), 1e-2 * np.abs(b).max(), 20)
    _, expected, _ = lasso_path(risk.A, risk.y, alphas=lambdas / 2, tol=1e-12, max_iter=100_000)
    np.testing.assert_allclose(quadratic_path(H, b, np.ones(50), np.zeros(50), lambdas).w.T, expected, atol=1e-7)


def test_a_path_can_be_continued():
    risk, u = problem(200, 250)
    H, b = quadratic(risk)
    lambdas = np.geomspace(0.5, 1e-2, 20)
    whole = quadratic_path(H, b, u, 0 * u, lambdas)
    first = quadratic_path(H, b, u, 0 * u, lambdas[:11])
    second = quadratic_path(H, b, u, 0 * u, lambdas[11:], start=first.w[-1])
    np.testing.assert_allclose(np.vstack([first.w, second.w]), whole.w, atol=1e-9)


def test_degenerate_problems():
    one = np.ones(3)
    nothing = quadratic_path(np.zeros((3, 3)), np.zeros(3), one, one, np.array([1.0, 0.1]))
    assert not nothing.w.any()
    assert nothing.violation.max() == 0
    empty = quadratic_path(np.zeros((0, 0)), np.zeros(0), np.zeros(0), np.zeros(0), np.array([1.0]))
    assert empty.w.shape == (1, 0)
    # two equal columns: the lasso may share the weight as it likes, the fit and the conditions are unique
    H, b = np.array([[2.0, 2.0], [2.0, 2.0]]), np.array([2.0, 2.0])
    twins = quadratic_path(H, b, np.ones(2), np.zeros(2), np.array([1.0, 0.5, 0.1]))
    assert twins.violation.max() < 1e-9
    np.testing.assert_allclose(twins.w.sum(axis=1), [0.5, 0.75, 0.95])
    # a column without penalty beside penalised ones
    risk, u = problem(100, 10)
    H, b = quadratic(risk)
    u[3] = 0.0
    assert quadratic_path(H, b, u, 0 * u, np.array([1.0, 0.1])).violation.max() < 1e-9
