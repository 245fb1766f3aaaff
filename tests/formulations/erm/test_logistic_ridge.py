"""Ridge paths of the logistic loss against their conditions, the general engine, cvxpy, and nasty data."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import expit

from formulations.erm.logistic_path import logistic_path
from formulations.erm.logistic_ridge import ColumnSpace, LogisticRidge, RowSpace, Target, newton
from formulations.losses import Logistic

KINDS = ("plain", "duplicated", "collinear", "constant", "weights", "free", "cells", "shares", "rare", "separable")


def problem(kind, n, p, seed=0):
    """A, E, y, q and v."""
    rng = np.random.default_rng(seed)
    A, E, v, q = rng.normal(size=(n, p)), np.ones((n, 1)), rng.uniform(0.5, 2.0, size=p) / n, np.full(n, 1.0 / n)
    score = A @ rng.normal(size=p) / np.sqrt(p) + (0.0 if kind == "separable" else rng.normal(size=n))
    if kind == "duplicated":
        A[:, p // 2 :] = A[:, : p - p // 2]
    elif kind == "collinear":
        A[:, 1] = A[:, 0] + 1e-8 * A[:, 1]
    elif kind == "constant":
        A[:, ::3] = 0.0
    elif kind == "weights":
        v = 10.0 ** rng.uniform(-8, 8, size=p)
    elif kind == "free":
        v[:3] = 0.0
        score = rng.normal(size=n)
    elif kind == "cells":
        E = np.eye(3)[np.arange(n) % 3]
    elif kind == "shares":
        q = 10.0 ** rng.uniform(-9, 0, size=n)
        q[:2] = 0.0
        q /= q.sum()
    y = np.where(score > (np.quantile(score, 0.95) if kind == "rare" else np.median(score)), 1.0, -1.0)
    return A, E, y, q, v


def lambdas_of(A, q, v, steps=20):
    """From a penalty far above the curvature to one far below."""
    used = v > 0
    return float(np.max((q @ A**2)[used] / v[used])) * np.geomspace(10.0, 1e-5, steps)


def ridge_of(A, E, y, q, v):
    """The problem with the columns A and, without penalty, E."""
    return LogisticRidge(np.hstack([E, A]), y, q, np.concatenate([np.zeros(E.shape[1]), v]))


def of(path, E):
    """Coefficients of A and E, and violations."""
    n_free = E.shape[1]
    return SimpleNamespace(w=path.w[:, n_free:], free=path.w[:, :n_free], violation=path.violation)


def violations(A, E, y, q, v, lambdas, path):
    """Largest violation of the conditions, in the units of ``logistic_path``."""
    g = -(q * y)[:, None] * expit(-y[:, None] * (A @ path.w.T + E @ path.free.T))
    conditions = np.vstack([A.T @ g + lambdas * (v[:, None] * path.w.T), E.T @ g])
    size = np.sqrt(q @ np.hstack([A, E]) ** 2 * q.sum())
    return np.max(np.abs(conditions) / np.where(size > 0, size, 1.0)[:, None], axis=0)


@pytest.mark.parametrize("shape", [(60, 20), (30, 90), (40, 40)])
@pytest.mark.parametrize("kind", KINDS)
def test_conditions_and_general_engine(kind, shape):
    A, E, y, q, v = problem(kind, *shape)
    lambdas = lambdas_of(A, q, v)
    path = of(ridge_of(A, E, y, q, v).path(lambdas, 1e-11), E)
    assert path.violation.max() <= 1e-11
    assert violations(A, E, y, q, v, lambdas, path).max() <= 2e-11
    columns, w = np.hstack([E, A]), np.concatenate([np.zeros(E.shape[1]), v])
    general = of(logistic_path(columns, E.shape[1], y, q, np.zeros(len(w)), w, lambdas, 1e-11), E)
    z, other = (A @ found.w.T + E @ found.free.T for found in (path, general))
    seen = q > 1e-6  # rows of smaller shares hardly matter to either
    assert np.abs(z - other)[seen].max() <= 1e-3 * np.abs(other).max()
    strong = lambdas >= 1e-3 * lambdas[0]
    assert np.abs((path.w - general.w)[strong]).max() <= 1e-6 * np.abs(general.w).max()


@pytest.mark.parametrize("kind", ["plain", "weights", "cells", "free"])
def test_both_spaces_agree(kind):
    A, E, y, q, v = problem(kind, 30, 35, seed=1)
    k, lam = v > 0, float(lambdas_of(A, q, v)[10])
    E = np.hstack([A[:, ~k], E])
    A, v = A[:, k], v[k]
    columns, rows = ColumnSpace(A, E, q, v), RowSpace((A / v) @ A.T, E, q)
    x, _ = newton(columns, Target(Logistic(), y, q), lam, np.zeros(columns.n_unknowns), 1e-12)
    c, _ = newton(rows, Target(Logistic(), y, q), lam, np.zeros(rows.n_unknowns), 1e-12)
    assert np.allclose(x[: len(v)] / np.sqrt(v), (c[: len(y)] @ A) / v, atol=1e-8 * np.abs(x).max())
    assert np.allclose(x[len(v) :], c[len(y) :], atol=1e-8)


def test_stated_program():
    import cvxpy as cp

    for shape in ((40, 15), (20, 30)):
        A, E, y, q, v = problem("plain", *shape, seed=2)
        lam = lambdas_of(A, q, v)[8]
        w, f = cp.Variable(len(v)), cp.Variable(1)
        risk = q @ cp.logistic(-cp.multiply(y, A @ w + E @ f))
        optimum = cp.Problem(cp.Minimize(risk + lam * v @ cp.square(w) / 2)).solve(solver="CLARABEL")
        path = of(ridge_of(A, E, y, q, v).path(np.array([lam])), E)
        z = A @ path.w[0] + E @ path.free[0]
        value = q @ np.logaddexp(0.0, -y * z) + lam * v @ path.w[0] ** 2 / 2
        assert abs(value - optimum) <= 1e-7 * abs(optimum)


@pytest.mark.parametrize("shape", [(30, 12), (20, 50)])
@pytest.mark.parametrize("multiple", [1e12, 1e-10])
def test_a_single_extreme_lambda(shape, multiple):
    A, E, y, q, v = problem("plain", *shape, seed=3)
    lambdas = multiple * lambdas_of(A, q, v)[:1]
    path = of(ridge_of(A, E, y, q, v).path(lambdas), E)
    assert violations(A, E, y, q, v, lambdas, path).max() <= 1e-9


def test_a_path_in_parts_is_the_same_path():
    A, E, y, q, v = problem("plain", 20, 50, seed=4)
    lambdas = lambdas_of(A, q, v)
    ridge = ridge_of(A, E, y, q, v)
    parts = [ridge.path(lambdas[:7]).w, ridge.path(lambdas[7:]).w]
    assert np.allclose(np.vstack(parts), ridge_of(A, E, y, q, v).path(lambdas).w, rtol=1e-8, atol=1e-8)


def test_repeated_lambda():
    A, E, y, q, v = problem("plain", 30, 10, seed=5)
    w = ridge_of(A, E, y, q, v).path(np.array([0.1, 0.1, 0.05, 0.05]), 1e-12).w
    assert np.allclose(w[[0, 2]], w[[1, 3]], rtol=1e-8)
