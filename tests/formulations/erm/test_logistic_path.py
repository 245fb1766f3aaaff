"""The logistic path against its optimality conditions and cvxpy."""

from types import SimpleNamespace

import numpy as np
import pytest

from formulations.erm.dual_bound import dual_bound
from formulations.erm.logistic_path import logistic_path
from formulations.erm.logistic_rows import exp_of_negative, risk_of
from formulations.erm.optimality import optimality_residual
from formulations.erm.program import AdaptiveERM, compile_erm, solve_erm
from formulations.erm.risk import EmpiricalRisk
from formulations.losses import Logistic


def solved(A, E, y, q, v1, v2, lambdas, tolerance=1e-9, start=None):
    """Coefficients of the columns A, with penalties, and E, without, and violations."""
    n_free = E.shape[1]
    zeros = np.zeros(n_free)
    penalties = (np.concatenate([zeros, v]) for v in (v1, v2))
    path = logistic_path(np.hstack([E, A]), n_free, y, q, *penalties, lambdas, tolerance, start)
    return SimpleNamespace(w=path.w[:, n_free:], free=path.w[:, :n_free], violation=path.violation)


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
    path = solved(risk.A[:, 1:], risk.A[:, :1], risk.y, risk.q, alpha * u[1:], (1 - alpha) * u[1:], lambdas)
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
        path = solved(risk.A[:, 1:], risk.A[:, :1], risk.y, risk.q, alpha * u[1:], (1 - alpha) * u[1:], lambdas)
        for lam, w, f in zip(lambdas, path.w, path.free, strict=True):
            reference, _ = solve_erm(compiled, alpha * lam, (1 - alpha) * lam)
            np.testing.assert_allclose(np.concatenate([f, w]), reference, atol=1e-6)


def test_separable_classes_along_a_path():
    A = np.linspace(-1, 1, 20)[:, None]
    y, q = np.sign(A[:, 0]), np.full(20, 0.05)
    path = solved(A, np.ones((20, 1)), y, q, np.ones(1), np.zeros(1), np.geomspace(0.3, 1e-6, 30))
    assert path.violation.max() < 1e-8
    assert np.isfinite(path.w).all()
    assert np.all(np.diff(path.w[:, 0]) >= 0)


def nasty(kind, seed):
    """Columns, target and weights of a hard problem."""
    rng = np.random.default_rng(seed)
    n, p = (30, 80) if kind == "wide" else (90, 12)
    A = rng.normal(size=(n, p))
    y = np.where(A[:, :2].sum(axis=1) + rng.normal(size=n) > 0, 1.0, -1.0)
    s = np.ones(n)
    if kind == "duplicated":
        A[:, 6:] = A[:, :6]
    elif kind == "collinear":
        A[:, 6:] = A[:, :6] + 1e-6 * rng.normal(size=(n, 6))
    elif kind == "weights":
        s = 10.0 ** rng.uniform(-9, 3, size=n)
        s[:3] = 0.0
    elif kind == "separable":
        y = np.sign(A[:, 0])
    elif kind == "constant":
        A[:, 3], A[:, 4] = 0.0, 1.0
    elif kind == "rare":
        y = np.where(np.arange(n) < 2, 1.0, -1.0)
    elif kind == "units":
        A *= 10.0 ** rng.uniform(-4, 4, size=p)
    q = s / s.sum()
    A -= q @ A
    A[:, q @ A**2 < 1e-20] = 0.0
    return A, y, q, np.sqrt(q @ A**2) * 10.0 ** rng.uniform(-1, 1, size=p)


NASTY = ["wide", "duplicated", "collinear", "weights", "separable", "constant", "rare", "units"]


@pytest.mark.parametrize("alpha", [0.05, 0.5, 1.0])
@pytest.mark.parametrize("kind", NASTY)
def test_nasty_data(kind, alpha):
    """The conditions of all columns, those outside the working set included, computed from the solutions alone."""
    A, y, q, u = nasty(kind, NASTY.index(kind))
    n = len(y)
    v1, v2 = alpha * np.where(u > 0, u, 1.0), (1 - alpha) * np.where(u > 0, u, 1.0)
    gradient = A.T @ (q * (q @ y - y)) / 2
    lambdas = np.max(np.abs(gradient) / v1) * np.geomspace(1.0, 1e-3, 40)
    size = np.sqrt(q @ A**2)
    unit = np.where(size > 0, size, 1.0)
    previous = None
    for tolerance in (5e-6, 1e-9):
        path = solved(A, np.ones((n, 1)), y, q, v1, v2, lambdas, tolerance)
        z = path.w @ A.T + path.free
        slope = -q * y / (1 + np.exp(y * z))
        g = slope @ A + lambdas[:, None] * v2 * path.w
        level = lambdas[:, None] * v1
        wrong = np.where(path.w != 0, np.abs(g + level * np.sign(path.w)), np.maximum(np.abs(g) - level, 0.0)) / unit
        violation = np.maximum(wrong.max(axis=1), np.abs(slope.sum(axis=1)))
        assert violation.max() <= tolerance + 1e-12
        np.testing.assert_allclose(path.violation, violation, atol=1e-12)
        value = np.logaddexp(0, -y * z) @ q + lambdas * (np.abs(path.w) @ v1 + path.w**2 @ v2 / 2)
        if previous is not None:
            assert np.all(value <= previous + 1e-9)
            np.testing.assert_allclose(value, previous, rtol=1e-3)
        previous = value


@pytest.mark.parametrize("kind", NASTY)
def test_nasty_data_agree_with_cvxpy(kind):
    A, y, q, u = nasty(kind, NASTY.index(kind))
    u = np.where(u > 0, u, 1.0)
    keep = q > 0
    risk = EmpiricalRisk(np.column_stack([np.ones(keep.sum()), A[keep]]), y[keep], q[keep], Logistic())
    lambdas = np.max(np.abs(A.T @ (q * (q @ y - y)) / 2) / u) / 0.5 * np.array([0.3, 0.03])
    path = solved(A, np.ones((len(y), 1)), y, q, 0.5 * u, 0.5 * u, lambdas)
    with_free = np.concatenate([[0.0], u])
    for lam, w, f in zip(lambdas, path.w, path.free, strict=True):
        _, certificate = solve_erm(compile_erm(AdaptiveERM(risk, with_free, with_free)), 0.5 * lam, 0.5 * lam)
        own = np.concatenate([f, w])
        objective = risk.value(own) + 0.5 * lam * (u @ np.abs(w) + u @ w**2 / 2)
        assert objective == pytest.approx(certificate.objective, rel=1e-6)


@pytest.mark.parametrize("n_free", [0, 1, 4])
def test_free_columns_and_a_start_in_the_middle(n_free):
    """Any number of columns without penalty; a path continued from a solution is the same path."""
    rng = np.random.default_rng(n_free)
    A, E = rng.normal(size=(70, 9)), rng.normal(size=(70, n_free))
    y, q = np.where(A[:, 0] + rng.normal(size=70) > 0, 1.0, -1.0), rng.dirichlet(np.ones(70))
    lambdas, ones = np.geomspace(0.3, 1e-3, 20), np.ones(9)
    whole = solved(A, E, y, q, ones, ones, lambdas, 1e-11)
    rest = solved(A, E, y, q, ones, ones, lambdas[10:], 1e-11, np.concatenate([whole.free[9], whole.w[9]]))
    assert max(whole.violation.max(), rest.violation.max()) <= 1e-11
    np.testing.assert_allclose(rest.w, whole.w[10:], atol=1e-8)
    np.testing.assert_allclose(rest.free, whole.free[10:], atol=1e-8)


def test_collinear_free_columns():
    rng = np.random.default_rng(0)
    A, E = rng.normal(size=(50, 4)), np.ones((50, 2))
    y, q = np.sign(rng.normal(size=50)), np.full(50, 0.02)
    path = solved(A, E, y, q, np.ones(4), np.ones(4), np.array([0.01]))
    one = solved(A, E[:, :1], y, q, np.ones(4), np.ones(4), np.array([0.01]))
    assert path.violation[0] <= 1e-9
    np.testing.assert_allclose(path.w, one.w, atol=1e-7)
    assert path.free.sum() == pytest.approx(one.free.sum(), abs=1e-7)


def test_exponential_function():
    t = -np.concatenate([np.linspace(0.0, 2.0, 4001), np.geomspace(2.0, 700.0, 4001)])
    values = np.array([exp_of_negative(x) for x in t])
    np.testing.assert_allclose(values, np.exp(t), rtol=4e-16)
    assert exp_of_negative(0.0) == 1.0
    assert 0.0 < exp_of_negative(-1e4) < 1e-300
    assert np.isnan(exp_of_negative(np.nan))


def test_the_risk_is_accurate_at_every_margin():
    rng = np.random.default_rng(0)
    z = np.concatenate([np.zeros(1), *(size * rng.normal(size=301) for size in (1e-12, 1e-3, 1.0, 10.0, 700.0))])
    y = np.where(rng.uniform(size=len(z)) < 0.5, 1.0, -1.0)
    q = rng.uniform(size=len(z))
    for part in (slice(None), *(slice(k, k + 1) for k in range(0, len(z), 50))):
        expected = np.sum(q[part] * np.logaddexp(0.0, -y[part] * z[part]))
        assert risk_of(0.0, y[part], q[part], z[part]) == pytest.approx(expected, rel=1e-14)
