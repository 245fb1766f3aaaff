"""The logistic path against its optimality conditions and cvxpy."""

import numpy as np
import pytest

from formulations.erm.dual_bound import dual_bound
from formulations.erm.logistic_path import logistic_path
from formulations.erm.optimality import optimality_residual
from formulations.erm.program import AdaptiveERM, compile_erm, solve_erm
from formulations.erm.risk import EmpiricalRisk
from formulations.losses import Logistic


def problem(n, p, rank=None, seed=0):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, p)) if rank is None else rng.normal(size=(n, rank)) @ rng.normal(size=(rank, p))
    y = np.where(A[:, :3].sum(axis=1) + 2 * rng.normal(size=n) > 0.5, 1.0, -1.0)
    s = rng.uniform(0.5, 2.0, size=n)
    A -= (s / s.sum()) @ A
    risk = EmpiricalRisk(np.column_stack([np.ones(n), A]), y, s / s.sum(), Logistic())
    return risk, np.concatenate([[0.0], rng.uniform(0.5, 3.0, size=p)])


def lambdas_of(risk, u, alpha, count=25, eps=1e-3):
    q, y = risk.q, risk.y
    g = np.abs(risk.A[:, 1:].T @ (q * (q @ y - y))) / 2
    largest = np.max(g / u[1:]) / max(alpha, 1e-3)
    return np.geomspace(largest, eps * largest, count)


@pytest.mark.parametrize("alpha", [0.0, 0.4, 1.0])
@pytest.mark.parametrize(("n", "p", "rank"), [(200, 20, None), (200, 30, 5), (40, 60, None), (120, 200, None)])
def test_paths_satisfy_the_optimality_conditions(n, p, rank, alpha):
    risk, u = problem(n, p, rank)
    lambdas = lambdas_of(risk, u, alpha)
    path = logistic_path(risk.A[:, 1:], risk.A[:, :1], risk.y, risk.q, alpha * u[1:], (1 - alpha) * u[1:], lambdas)
    assert path.violation.max() <= 1e-9
    for lam, w, f in zip(lambdas, path.w, path.free, strict=True):
        full, l1, l2 = np.concatenate([f, w]), alpha * lam * u, (1 - alpha) * lam * u
        assert optimality_residual(risk, l1, l2, full) < 1e-7
        objective = risk.value(full) + l1 @ np.abs(full) + l2 @ full**2 / 2
        theta = risk.q * risk.loss.derivative(risk.y, risk.A @ full)
        assert objective - dual_bound(risk, l1, l2, theta) < 1e-6 * np.log(2)
    if alpha > 0:
        np.testing.assert_allclose(path.w[0], 0.0, atol=1e-8)


def test_paths_agree_with_cvxpy():
    risk, u = problem(150, 12)
    compiled = compile_erm(AdaptiveERM(risk, u, u))
    for alpha in (0.3, 1.0):
        lambdas = lambdas_of(risk, u, alpha, 6)
        path = logistic_path(risk.A[:, 1:], risk.A[:, :1], risk.y, risk.q, alpha * u[1:], (1 - alpha) * u[1:], lambdas)
        for lam, w, f in zip(lambdas, path.w, path.free, strict=True):
            reference, _ = solve_erm(compiled, alpha * lam, (1 - alpha) * lam)
            np.testing.assert_allclose(np.concatenate([f, w]), reference, atol=1e-6)


def test_separable_classes_along_a_path():
    A = np.linspace(-1, 1, 20)[:, None]
    y, q = np.sign(A[:, 0]), np.full(20, 0.05)
    path = logistic_path(A, np.ones((20, 1)), y, q, np.ones(1), np.zeros(1), np.geomspace(0.3, 1e-6, 30))
    assert path.violation.max() < 1e-8
    assert np.isfinite(path.w).all()
    assert np.all(np.diff(path.w[:, 0]) >= 0)
