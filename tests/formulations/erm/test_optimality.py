"""Newton steps on the optimality conditions, from points of an interior-point method that are not accurate."""

import numpy as np
import pytest

from formulations.erm.optimality import optimality_residual, polish
from formulations.erm.risk import EmpiricalRisk, centred
from formulations.losses import Logistic


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
