"""Quadratics side by side: coordinates and least values agree with numpy, also where curvature is missing."""

import numpy as np
import pytest

from formulations.groups.pricing.block_bound import new_workspace
from formulations.groups.pricing.quadratics import minimise
from formulations.groups.pricing.side_by_side import least_values, minimiser, whiten
from formulations.leaves.tiles import LANES

KINDS = ("plain", "missing", "collinear", "large")


def draw(seed, K, kind):
    """Quadratics of LANES + 1 patterns, the last one with curvature in every direction, and workspace."""
    rng = np.random.default_rng(seed)
    quadratics, scales = [], 10.0 ** rng.integers(-3, 4, size=K + 1)
    for p in range(LANES + 1):
        rows = rng.normal(size=(3 * K if p == LANES else int(rng.integers(1, 2 * K)), K + 1))
        if kind == "missing" and p < LANES:
            rows[:, :K] *= rng.uniform(size=K) < 0.5
        if kind == "collinear" and K > 1:
            rows[:, 1] = rows[:, 0] * (1.0 + 1e-4 * rng.normal(size=len(rows)))
        if kind == "large":
            rows *= scales
        quadratics.append(rows.T @ rows)
    return np.array(quadratics), new_workspace(LANES + 1, K)


def unpacked(row, K):
    A = np.zeros((K, K))
    A[np.tril_indices(K)] = row[: K * (K + 1) // 2]
    return A + np.tril(A, -1).T, row[K * (K + 1) // 2 : -1], row[-1]


@pytest.mark.parametrize("K", [1, 4, 11, 21])
@pytest.mark.parametrize("kind", KINDS)
def test_coordinates_and_least_values(kind, K):
    quadratics, work = draw(K, K, kind)
    least = minimise(quadratics[-1], work.L, work.curved, work.center, K)
    assert work.curved.all()
    lanes = np.arange(LANES)
    whiten(quadratics, lanes, work.L, work.center, K, work.X, work.Y, work.packed)
    rng = np.random.default_rng(0)
    theta, s = rng.uniform(0.1, 1.0, size=K), rng.normal(size=K)
    work.sub[:LANES] = work.packed[:LANES]
    least_values(work.sub, lanes, theta, s, work.curved, K, work.T, work.factor, work.values, work.trial)
    L = np.tril(work.L, -1) + np.diag(1.0 / np.diag(work.L))
    for p in range(LANES):
        A, b, value = unpacked(work.packed[p], K)
        for _ in range(3):  # the same function of u
            v = rng.normal(size=K)
            z = np.append(-(work.center + np.linalg.solve(L.T, v)), 1.0)
            direct = z @ quadratics[p] @ z
            assert v @ A @ v - 2 * b @ v + value == pytest.approx(direct, rel=1e-7, abs=1e-8 * z @ quadratics[-1] @ z)
        H, g = A + np.diag(theta), b + s
        expected = value - g @ np.linalg.solve(H, g)
        assert work.values[p] == pytest.approx(expected, rel=1e-8, abs=1e-8 * (least + g @ g))
        minimiser(p, K, work.T, work.trial)
        np.testing.assert_allclose(H @ work.trial, g, atol=1e-8 * (1 + np.abs(g).max()))


def test_directions_without_curvature():
    """A slope without curvature has no minimum; without a slope, or where nothing depends on it, it is left out."""
    K, work = 3, new_workspace(1, 3)
    theta, s, curved = np.array([1.0, 0.0, 0.0]), np.zeros(3), np.array([1.0, 1.0, 0.0])
    lanes = np.arange(LANES) % 2
    for slope, expected in ((0.0, 7.0 - 2.0), (1e-3, -np.inf)):
        work.sub[:2] = 0.0
        work.sub[0] = [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 2.0, slope, 0.0, 7.0]  # A, b, value
        work.sub[1] = [1.0, 0.0, 2.0, 0.0, 0.0, 3.0, 2.0, 4.0, 3.0, 7.0]
        least_values(work.sub, lanes, theta, s, curved, K, work.T, work.factor, work.values, work.trial)
        assert work.values[0] == pytest.approx(expected)
        assert work.values[1] == pytest.approx(7.0 - 2.0 - 8.0 - 3.0)
