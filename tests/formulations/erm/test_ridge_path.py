"""Ridge paths of the squared loss against direct solves, the general engine, cvxpy, and nasty data."""

import numpy as np
import pytest
import scipy.linalg

from formulations.erm.quadratic_path import quadratic_path
from formulations.erm.ridge_path import FewRows, RidgeProblem

KINDS = ("plain", "duplicated", "collinear", "constant", "units", "weights", "free", "dependent free", "heavy row")


def problem(kind, n, p, seed=0):
    """H, b and v of centred columns, and the columns."""
    rng = np.random.default_rng(seed)
    A, v = rng.normal(size=(n, p)), rng.uniform(0.5, 2.0, size=p) / n
    if kind == "duplicated":
        A[:, p // 2 :] = A[:, : p - p // 2]
    elif kind == "collinear":
        A[:, 1] = A[:, 0] + 1e-8 * A[:, 1]
    elif kind == "constant":
        A[:, ::3] = 1.0
    elif kind == "units":
        A *= 10.0 ** rng.uniform(-4, 4, size=p)
        v *= np.mean(A**2, axis=0)
    elif kind == "weights":
        v = 10.0 ** rng.uniform(-12, 12, size=p)
    elif kind == "free":
        v[: min(n, p) // 3] = 0.0
    elif kind == "dependent free":
        v[:3] = 0.0
        A[:, 2] = A[:, 0] - A[:, 1]
    elif kind == "heavy row":
        A[0] *= 1e6
    A -= A.mean(axis=0)
    A[:, np.abs(A).max(axis=0) < 1e-12] = 0.0
    y = A @ (rng.normal(size=p) / (1.0 + A.std(axis=0))) + rng.normal(size=n)
    return 2.0 * A.T @ A / n, 2.0 * A.T @ y / n, v, A


def balanced(H, v):
    """The lambda at which the penalty equals the curvature."""
    used = v > 0
    return float(np.max(np.diag(H)[used] / v[used]))


@pytest.mark.parametrize("shape", [(60, 20), (25, 80), (40, 40)])
@pytest.mark.parametrize("kind", KINDS)
def test_conditions_and_general_engine(kind, shape):
    H, b, v, A = problem(kind, *shape)
    lambdas = balanced(H, v) * np.geomspace(1e2, 1e-6, 30)
    path = RidgeProblem.of(H, b, v).path(lambdas)
    residuals = b - path.w @ H - lambdas[:, None] * v * path.w
    assert np.abs(residuals).max() <= 1e-12 * np.abs(b).max()
    assert np.allclose(path.violation, np.abs(residuals).max(axis=1) / np.abs(b).max(), atol=1e-14)
    unit = np.where(
        np.diag(H) > 0, np.sqrt(np.diag(H)), 1.0
    )  # the tolerance of the general engine is one for all columns
    general = quadratic_path(H / np.outer(unit, unit), b / unit, np.zeros(len(b)), v / unit**2, lambdas).w / unit
    assert np.abs(A @ (path.w - general).T).max() <= 1e-8 * np.abs(A @ general.T).max()


@pytest.mark.parametrize("lam", [1e-9, 1e-4, 1.0, 1e6, 1e30])
@pytest.mark.parametrize("shape", [(60, 20), (25, 80)])
def test_direct_solution(lam, shape):
    H, b, v, _ = problem("plain", *shape, seed=1)
    w = RidgeProblem.of(H, b, v).path(np.array([lam])).w[0]
    direct = scipy.linalg.solve(H + lam * np.diag(v), b, assume_a="pos") if lam > 1e-6 else None
    if direct is not None:
        assert np.allclose(w, direct, rtol=1e-8, atol=1e-8 * np.abs(direct).max())
    assert np.abs(b - H @ w - lam * v * w).max() <= 1e-12 * np.abs(b).max()


def test_stated_program():
    import cvxpy as cp

    H, b, v, A = problem("free", 30, 45, seed=2)
    lam = 1e-2 * balanced(H, v)
    R = A * np.sqrt(2.0 / len(A))
    w = cp.Variable(len(b))
    objective = cp.sum_squares(R @ w) / 2 - b @ w + lam * cp.sum(cp.multiply(v, cp.square(w))) / 2
    optimum = cp.Problem(cp.Minimize(objective)).solve(solver="CLARABEL")
    found = RidgeProblem.of(H, b, v).path(np.array([lam])).w[0]
    value = found @ H @ found / 2 - b @ found + lam * v @ found**2 / 2
    assert value <= optimum + 1e-8 * abs(optimum)


def test_a_path_in_parts_is_the_same_path():
    H, b, v, _ = problem("plain", 20, 50, seed=3)
    lambdas, ridge = np.geomspace(10.0, 1e-5, 20), RidgeProblem.of(H, b, v)
    parts = np.vstack([ridge.path(lambdas[:7]).w, ridge.path(lambdas[7:]).w])
    whole = ridge.path(lambdas).w
    # The smallest eigenvalue of H + lambda diag(v) is at least lambda min(v), and residuals are rounding.
    residual = np.finfo(float).eps * len(b) * (np.abs(whole) @ np.abs(H) + np.abs(b)).max(axis=1)
    allowed = np.sqrt(len(b)) * residual / (lambdas * v.min())
    assert np.all(np.abs(parts - whole).max(axis=1) <= allowed)
    assert np.all(allowed <= 1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_instead_of_second_moments(kind):
    H, _, v, A = problem(kind, 25, 80)
    t = np.random.default_rng(1).normal(size=25)
    b = np.sqrt(2.0 / len(A)) * A.T @ t
    lambdas = balanced(H, v) * np.geomspace(1e2, 1e-6, 30)
    several = [v * np.where(np.arange(80) < 3, 1.0, factor) for factor in (1.0, 4.0, 0.1, 1e3)] + [7.0 * v]
    every = [v, v * np.random.default_rng(0).uniform(0.5, 2.0, 80)]
    for penalties, is_shared in ((several[:1], False), (several[:2], True), (several, True), (every, False)):
        rows = FewRows.of(A * np.sqrt(2.0 / len(A)), t, penalties)
        assert (rows.shared is not None) == (is_shared and bool(np.all(v > 0)))
        for own in penalties:
            path = RidgeProblem.of(H, b, own, rows).path(lambdas)
            residuals = b - path.w @ H - lambdas[:, None] * own * path.w
            assert np.abs(residuals).max() <= 2e-12 * np.abs(b).max()
            general = RidgeProblem.of(H, b, own).path(lambdas).w
            assert np.abs(A @ (path.w - general).T).max() <= 1e-8 * np.abs(A @ general.T).max()


def test_degenerate_problems():
    lambdas = np.array([1.0, 0.1])
    one = RidgeProblem.of(np.full((1, 1), 2.0), np.ones(1), np.ones(1))
    assert one.path(np.ones(1)).w[0] == 1.0 / 3.0
    assert not RidgeProblem.of(np.zeros((3, 3)), np.zeros(3), np.ones(3)).path(lambdas).w.any()
    assert RidgeProblem.of(np.zeros((0, 0)), np.zeros(0), np.zeros(0)).path(lambdas).w.shape == (2, 0)
    H, b, _, _ = problem("plain", 30, 4)
    unpenalised = RidgeProblem.of(H, b, np.zeros(4)).path(lambdas)
    assert np.allclose(unpenalised.w, np.linalg.solve(H, b), rtol=1e-10)


def test_singular_direction_with_noise_is_left_to_the_general_engine():
    H, v = np.diag([1.0, 0.0]), np.array([0.0, 0.0])
    path = RidgeProblem.of(H, np.array([1.0, 1e-3]), v).path(np.ones(1))  # no minimiser: reported, not hidden
    assert path.violation[0] > 1e-4
