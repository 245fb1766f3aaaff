import numpy as np
import pytest

from formulations.erm.dual_bound import prove_centred
from formulations.erm.interior_point import interior_path
from formulations.erm.program import AdaptiveERM, compile_erm, solve_erm
from formulations.erm.risk import EmpiricalRisk, centred
from formulations.losses import Absolute, Huber, Quantile

LOSSES = [Absolute(), Quantile(0.9), Quantile(0.05), Huber(0.5), Huber(20.0)]
PENALTIES = [(0.05, 0.0), (0.0, 0.05), (0.02, 0.02), (0.0, 0.0)]


def problem(loss, seed=0, n=120, p=5):
    rng = np.random.default_rng(seed)
    A = np.column_stack([np.ones(n), rng.normal(size=(n, p))])
    y = A[:, 1:] @ rng.normal(size=p) + rng.standard_t(2, size=n)
    q = rng.uniform(0.1, 3, size=n)
    return EmpiricalRisk(A, y, q / q.sum(), loss), np.append(0.0, np.ones(p))


@pytest.mark.parametrize("loss", LOSSES, ids=str)
@pytest.mark.parametrize("penalty", PENALTIES, ids=str)
def test_the_solution_is_that_of_a_cone_solver_and_its_multipliers_prove_it(loss, penalty):
    risk, u = problem(loss)
    _, certificate = solve_erm(compile_erm(AdaptiveERM(risk, u, u)), *penalty)
    projected = centred(risk, u == 0)
    path = interior_path(projected.risk, penalty[0] * u, penalty[1] * u, np.array([3.0, 1.0]), 1e-9)
    proof = prove_centred(risk, projected, penalty[0] * u, penalty[1] * u, projected.restore(path.w[1]), path.theta[1])
    assert proof.objective == pytest.approx(certificate.objective, rel=1e-7)
    assert proof.bound <= certificate.objective * (1 + 1e-12)
    assert proof.objective - proof.bound <= 1e-7 * proof.objective


def test_a_path_is_that_of_its_lambdas_one_by_one():
    risk, u = problem(Quantile(0.3), seed=1)
    lambdas = np.geomspace(10, 1e-3, 12)
    path = interior_path(risk, 0.1 * u, 0.1 * u, lambdas, 1e-9)
    assert path.violation.max() <= 1e-8
    for i, lam in enumerate(lambdas):
        alone = interior_path(risk, 0.1 * u, 0.1 * u, np.array([lam]), 1e-9)
        np.testing.assert_allclose(path.w[i], alone.w[0], atol=1e-6)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_dependent_columns_and_perfect_fits(loss):
    risk, _ = problem(loss, seed=2, n=40)
    twice = EmpiricalRisk(np.hstack([risk.A, risk.A[:, 1:]]), risk.A @ np.ones(6), risk.q, loss)
    path = interior_path(twice, np.zeros(11), np.zeros(11), np.ones(1), 1e-9)
    np.testing.assert_allclose(twice.A @ path.w[0], twice.y, atol=1e-6)
