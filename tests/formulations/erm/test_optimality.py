"""Newton steps on the optimality conditions, from points of an interior-point method that are not accurate."""

import numpy as np
import pytest

from formulations.erm.optimality import optimality_residual, polish
from formulations.erm.risk import EmpiricalRisk, centred
from formulations.losses import Logistic, Squared


@pytest.mark.parametrize("seed", range(10))
def test_polish_of_nearly_collinear_columns(seed):
    """Indicators next to their products with a feature that is far from 0, and predictions that are somewhat off."""
    rng = np.random.default_rng(seed)
    m, x = (rng.uniform(size=(2, 40)) < 0.5).astype(float), 50.0 + rng.normal(size=(2, 40))
    A = np.column_stack([np.ones(40), *m, *(x * (1 - m)), x[0] * (1 - m[0]) * m[1]])
    y = np.where(x[0] + rng.normal(size=40) > 50.0, 1.0, -1.0)
    free = np.arange(6) == 0
    risk = centred(EmpiricalRisk(A, y, np.full(40, 1 / 40), Logistic()), free).risk
    l1, l2 = np.where(free, 0.0, 1e-3 * np.sqrt(risk.column_squares())), np.zeros(6)
    optimum = polish(risk, l1, l2, np.zeros(6))
    assert optimality_residual(risk, l1, l2, optimum) < 1e-8
    step = np.linalg.lstsq(risk.A, 0.1 * rng.normal(size=40), rcond=None)[0]
    found = polish(risk, l1, l2, optimum + step)
    assert optimality_residual(risk, l1, l2, found) < 1e-8
    np.testing.assert_allclose(risk.A @ found, risk.A @ optimum, atol=1e-4)


@pytest.mark.parametrize("seed", range(10))
def test_polish_of_more_columns_than_rows(seed):
    """Columns of very different sizes, hardly any penalty, and a point that is somewhat off: the fit is unique."""
    rng = np.random.default_rng(seed)
    sizes = 10.0 ** rng.integers(-1, 3, 40)
    risk = EmpiricalRisk(sizes * rng.normal(size=(6, 40)), 1e4 * rng.normal(size=6), np.full(6, 1 / 6), Squared())
    l1, l2 = np.full(40, 0.01), np.full(40, 0.01)
    found = [polish(risk, l1, l2, rng.normal(size=40) * 1e4 / sizes) for _ in range(2)]
    for w in found:
        assert optimality_residual(risk, l1, l2, w) < 1e-12
    np.testing.assert_allclose(found[0], found[1], rtol=1e-6, atol=1e-9 * np.abs(found[0]).max())
