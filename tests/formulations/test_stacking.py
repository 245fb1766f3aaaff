"""Weights of a stack: the program against another solver, and its limits."""

import numpy as np
import pytest
from scipy.optimize import minimize

from formulations.certificate import SolverError
from formulations.stacking import StackingProblem, stacking_weights


def predictions(n=60, K=5, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.standard_normal(n)
    return y[:, None] * rng.uniform(0.2, 1.2, K) + rng.standard_normal((n, K)), y, rng.uniform(0.5, 2.0, n)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("rho", [0.0, 0.05, 1.0])
def test_agrees_with_another_solver(seed, rho):
    Z, y, s = predictions(seed=seed)
    w, certificate = stacking_weights(StackingProblem.of(Z, y, s, rho))

    def risk(w):
        return np.sum(s * (y - Z @ w) ** 2) / s.sum() + rho * np.sum((w - 1 / len(w)) ** 2)

    other = minimize(
        risk, np.full(5, 0.2), bounds=[(0, 1)] * 5, constraints={"type": "eq", "fun": lambda w: w.sum() - 1},
        method="SLSQP", options={"ftol": 1e-14, "maxiter": 1000},
    )  # fmt: skip
    np.testing.assert_allclose(w, other.x, atol=1e-5)
    assert certificate.objective == pytest.approx(risk(w), rel=1e-9)
    assert certificate.bound <= risk(other.x) + 1e-9
    assert certificate.gap <= 1e-6
    assert w.min() >= 0
    assert w.sum() == pytest.approx(1)


def test_strong_shrinkage_is_the_average():
    Z, y, s = predictions()
    for rho in (1e4, 1e6, 1e12, 1e100):
        w, certificate = stacking_weights(StackingProblem.of(Z, y, s, rho))
        np.testing.assert_allclose(w, 0.2, atol=1e-4)
        assert certificate.relative_gap < 1e-6


def test_invalid_errors_are_refused():
    Z, y, s = predictions()
    Z[0, 0] = np.nan
    with pytest.raises(SolverError, match="too large, NaN or infinite"):
        stacking_weights(StackingProblem.of(Z, y, s, 0.0))


def test_a_perfect_model_takes_all():
    Z, y, s = predictions()
    Z[:, 3] = y
    w, _ = stacking_weights(StackingProblem.of(Z, y, s, 0.0))
    np.testing.assert_allclose(w, np.eye(5)[3], atol=1e-4)


def test_models_that_agree_share():
    Z, y, s = predictions(K=1)
    w, _ = stacking_weights(StackingProblem.of(np.repeat(Z, 3, axis=1), y, s, 1e-3))
    np.testing.assert_allclose(w, 1 / 3, atol=1e-5)


def test_nothing_to_explain():
    w, certificate = stacking_weights(StackingProblem.of(np.ones((10, 3)), np.ones(10), np.ones(10), 0.0))
    assert w.sum() == pytest.approx(1)
    assert certificate.objective == 0


def test_units_do_not_matter():
    Z, y, s = predictions()
    first, _ = stacking_weights(StackingProblem.of(Z, y, s, 0.1))
    second, _ = stacking_weights(StackingProblem.of(1e6 * Z, 1e6 * y, s, 0.1e12))
    np.testing.assert_allclose(first, second, atol=1e-6)


def test_solver_and_linear_system_agree_at_the_switch():
    Z, y, s = predictions()
    unit = StackingProblem.of(Z, y, s, 0.0).objective(np.full(5, 0.2))
    below, above = (stacking_weights(StackingProblem.of(Z, y, s, c * unit)) for c in (999.0, 1001.0))
    assert (below[1].solver, above[1].solver) == ("CLARABEL", "linear system")
    np.testing.assert_allclose(below[0] - 0.2, (above[0] - 0.2) * 1001 / 999, atol=1e-6)
