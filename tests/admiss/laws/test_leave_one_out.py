"""Leave-one-out errors of a ridge against leaving out each row in turn."""

import numpy as np
import pytest

from admiss.laws.expected_ridge import SHARES, RidgeOnBlocks, select_penalty


def plain_ridge(F, Y, s, lam):
    """Coefficients and intercept from the normal equations."""
    mean, centre = s @ F / s.sum(), s @ Y / s.sum()
    A = F - mean
    w = np.linalg.solve(A.T @ (s[:, None] * A) + lam * np.eye(F.shape[1]), A.T @ (s[:, None] * (Y - centre)))
    return w, centre - mean @ w


def brute_force(F, Y, s, lam):
    residuals = np.empty(Y.shape)
    for i in range(len(F)):
        rest = np.arange(len(F)) != i
        w, c = plain_ridge(F[rest], Y[rest], s[rest], lam)
        residuals[i] = Y[i] - c - F[i] @ w
    return residuals


def problem(n, p, q=2, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, p)), rng.standard_normal((n, q)), rng.uniform(0.5, 2.0, n)


def leave_one_out_residuals(F, Y, s, lam):
    ridge = RidgeOnBlocks([F], Y, s)
    shares = np.array([lam / ridge.spectrum([1.0]).unit])
    return ridge.left_out([1.0], shares)[0] / np.sqrt(s)[:, None]


@pytest.mark.parametrize(("n", "p"), [(30, 4), (30, 28), (30, 29), (30, 30), (30, 31), (20, 150)])
@pytest.mark.parametrize("lam", [1e-3, 1.0, 1e3])
def test_residuals(n, p, lam):
    F, Y, s = problem(n, p)
    np.testing.assert_allclose(leave_one_out_residuals(F, Y, s, lam), brute_force(F, Y, s, lam), rtol=1e-6, atol=1e-8)


def test_repeated_and_dependent_columns():
    F, Y, s = problem(25, 6)
    F = np.hstack([F, F, F[:, :3] @ np.ones((3, 10)), np.ones((25, 1))])
    np.testing.assert_allclose(leave_one_out_residuals(F, Y, s, 0.1), brute_force(F, Y, s, 0.1), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("p", [60, 400])
def test_interpolation_is_not_rewarded(p):
    """With more columns than rows and noise for a target every small penalty fits perfectly and predicts nothing."""
    F, Y, s = problem(40, p, q=1, seed=3)
    errors = RidgeOnBlocks([F], Y, s).leave_one_out([1.0])
    fit = RidgeOnBlocks([F], Y, s).fit([1.0], SHARES[0])
    assert np.abs(fit.predict([F]) - Y).max() < 1e-2
    assert errors[0] > 0.9 * np.sum(s[:, None] * (Y - s @ Y / s.sum()) ** 2)
    lam = SHARES[0] * np.sum(s[:, None] * (F - s @ F / s.sum()) ** 2) / p
    assert errors[0] == pytest.approx(np.sum(s[:, None] * brute_force(F, Y, s, lam) ** 2), rel=1e-3)


def test_fit_is_the_ridge():
    F, Y, s = problem(30, 8)
    blocks, g = [F[:, :3], F[:, 3:]], [1.0, 0.3]
    fit = RidgeOnBlocks(blocks, Y, s).fit(g, 0.01)
    weighted = np.hstack([F[:, :3], 0.3 * F[:, 3:]])
    lam = 0.01 * np.sum(s[:, None] * (weighted - s @ weighted / s.sum()) ** 2) / 8
    w, c = plain_ridge(weighted, Y, s, lam)
    np.testing.assert_allclose(fit.predict(blocks), weighted @ w + c, atol=1e-9)


def test_selection_is_the_smallest_error_tried():
    F, Y, s = problem(40, 10)
    Y = F[:, :1] + 0.1 * Y[:, :1]
    blocks = [F[:, :1], F[:, 1:]]
    errors = RidgeOnBlocks(blocks, Y, s).leave_one_out
    g, share, error = select_penalty([(1.0,), (1.0, 0.01)], errors)
    assert g == (1.0, 0.01)
    assert error == pytest.approx(min(errors([1.0, a]).min() for a in (1.0, 0.01)))
    assert errors(g)[np.flatnonzero(SHARES == share)[0]] == error


def test_held_out_errors():
    F, Y, s = problem(40, 6)
    train, test = np.arange(25), np.arange(25, 40)
    errors = RidgeOnBlocks([F[train]], Y[train], s[train]).held_out([1.0], [F[test]], Y[test], s[test])
    unit = np.sum(s[train][:, None] * (F[train] - s[train] @ F[train] / s[train].sum()) ** 2) / 6
    for k in (0, 15, 30):
        w, c = plain_ridge(F[train], Y[train], s[train], SHARES[k] * unit)
        expected = np.sum(s[test][:, None] * (Y[test] - c - F[test] @ w) ** 2)
        assert errors[k] == pytest.approx(expected, rel=1e-6)
