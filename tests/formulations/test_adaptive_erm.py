"""The cvxpy program against its optimality conditions, its dual, closed forms and other software."""

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from scipy.optimize import linprog
from sklearn.linear_model import ElasticNet, LogisticRegression
from sklearn.utils.fixes import parse_version

from formulations.adaptive_erm import AdaptiveERM, SolverError, compile_erm, solve_erm
from formulations.losses import Absolute, Huber, Logistic, Quantile, Squared
from formulations.optimality import dual_bound, optimality_residual, polish
from formulations.risk import EmpiricalRisk, compressed_squared_risk

LOSSES = [Squared(), Huber(0.7), Logistic(), Absolute(), Quantile(0.8)]


def random_risk(loss, n=80, p=12, seed=0, sparse=False, weighted=True):
    rng = np.random.default_rng(seed)
    A = np.column_stack([np.ones(n), rng.normal(size=(n, p)) * (rng.uniform(size=(n, p)) < 0.6)])
    y = 50.0 + A[:, 1:4].sum(axis=1) + rng.normal(size=n)
    if isinstance(loss, Logistic):
        y = np.where(y > 50.0, 1.0, -1.0)
    s = rng.uniform(0.5, 2, size=n) if weighted else np.ones(n)
    return EmpiricalRisk(sp.csr_array(A) if sparse else A, y, s / s.sum(), loss)


def penalties(p, lam, alpha, seed=0):
    weights = np.random.default_rng(seed).uniform(1, 4, size=p + 1)
    weights[0] = 0.0
    return alpha * lam * weights, (1 - alpha) * lam * weights


def solve(risk, l1, l2, solver="CLARABEL", **structure):
    free = np.arange(len(l1)) == 0
    return solve_erm(compile_erm(AdaptiveERM(risk, free, **structure)), l1, l2, solver)


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("lam", [0.0, 1e-3, 0.05, 10.0])
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_optimality_conditions_and_bound(loss, lam, alpha):
    for seed, sparse in ((1, False), (2, True)):
        risk = random_risk(loss, seed=seed, sparse=sparse)
        l1, l2 = penalties(12, lam, alpha)
        w, certificate = solve(risk, l1, l2)
        assert certificate.status == "optimal"
        assert certificate.relative_gap < 1e-7
        if loss.smooth:
            assert optimality_residual(risk, l1, l2, w) < 1e-7


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_more_columns_than_rows(loss):
    risk = random_risk(loss, n=30, p=60)
    l1, l2 = penalties(60, 0.01, 0.7)
    w, certificate = solve(risk, l1, l2)
    assert certificate.relative_gap < 1e-6
    assert (w == 0).any() or not loss.smooth


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_the_bound_is_below_every_point(loss):
    """Weak duality, at dual points that are far from the best."""
    risk = random_risk(loss)
    l1, l2 = penalties(12, 0.05, 0.5)
    _, certificate = solve(risk, l1, l2)
    rng = np.random.default_rng(0)
    low, high = risk.loss.domain(risk.y)
    for size in (1e-3, 0.1, 1.0):
        theta = risk.q * np.clip(size * rng.normal(size=80), low, high)
        assert dual_bound(risk, l1, l2, theta) <= certificate.objective * (1 + 1e-9)


def test_a_suboptimal_point_is_not_certified():
    risk = random_risk(Squared())
    l1, l2 = penalties(12, 0.05, 0.5)
    w, _ = solve(risk, l1, l2)
    assert optimality_residual(risk, l1, l2, w) < 1e-10
    assert optimality_residual(risk, l1, l2, w + 1e-3) > 1e-6
    assert optimality_residual(risk, l1, l2, polish(risk, l1, l2, w + 1e-3)) < 1e-10


def test_ridge_closed_form():
    risk = random_risk(Squared())
    l1, l2 = penalties(12, 0.05, 0.0)
    A, Q = risk.A, np.diag(risk.q)
    expected = np.linalg.solve(2 * A.T @ Q @ A + np.diag(l2), 2 * A.T @ Q @ risk.y)
    np.testing.assert_allclose(solve(risk, l1, l2)[0], expected, rtol=1e-6)


@pytest.mark.parametrize("alpha", [0.3, 1.0])
def test_scikit_learn_elastic_net(alpha):
    """1/(2n) |y - Aw|^2 + a [..] is half of this program with lambda_k = 2 a."""
    risk = random_risk(Squared(), weighted=False)
    l1 = alpha * 0.1 * (np.arange(13) > 0)
    l2 = (1 - alpha) * 0.1 * (np.arange(13) > 0)
    peer = ElasticNet(alpha=0.05, l1_ratio=alpha, tol=1e-12, max_iter=100_000).fit(risk.A[:, 1:], risk.y)
    np.testing.assert_allclose(solve(risk, l1, l2)[0], [peer.intercept_, *peer.coef_], rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
def test_scikit_learn_logistic_regression(alpha):
    """C sum_i l_i + [..] is this program times C n with lambda_k = 1 / (C n)."""
    risk = random_risk(Logistic(), weighted=False)
    penalised = np.arange(13) > 0
    C, n = 0.5, len(risk.y)
    kind = {} if parse_version(sklearn.__version__) >= parse_version("1.8") else {"penalty": "elasticnet"}
    peer = LogisticRegression(C=C, l1_ratio=alpha, solver="saga", tol=1e-12, max_iter=200_000, **kind)
    peer.fit(risk.A[:, 1:], risk.y)
    w, _ = solve(risk, alpha / (C * n) * penalised, (1 - alpha) / (C * n) * penalised)
    np.testing.assert_allclose(w, [*peer.intercept_, *peer.coef_[0]], atol=1e-6)


def test_absolute_loss_is_a_linear_program():
    risk = random_risk(Absolute())
    zero = np.zeros(13)
    n, p = risk.A.shape
    cost = np.concatenate([np.zeros(p), risk.q, risk.q])
    A_eq = np.hstack([risk.A, np.eye(n), -np.eye(n)])
    peer = linprog(cost, A_eq=A_eq, b_eq=risk.y, bounds=[(None, None)] * p + [(0, None)] * 2 * n)
    assert solve(risk, zero, zero)[1].objective == pytest.approx(peer.fun, rel=1e-7)


def test_second_opinion_of_another_solver():
    risk = random_risk(Squared())
    l1, l2 = penalties(12, 0.05, 0.5)
    first, _ = solve(risk, l1, l2)
    second, certificate = solve(risk, l1, l2, solver="OSQP")
    assert certificate.solver == "OSQP"
    np.testing.assert_allclose(first, second, atol=1e-6)


@pytest.mark.parametrize("n", [8, 13, 14, 200])
def test_compression_changes_nothing(n):
    risk = random_risk(Squared(), n=n)
    blocks = [(risk.A[i : i + 37], risk.y[i : i + 37], risk.q[i : i + 37]) for i in range(0, n, 37)]
    compressed = compressed_squared_risk(blocks)
    assert len(compressed.y) <= 13
    w = np.random.default_rng(3).normal(size=13)
    assert compressed.value(w) == pytest.approx(risk.value(w), rel=1e-12)
    np.testing.assert_allclose(compressed.gradient(w), risk.gradient(w), rtol=1e-8, atol=1e-10)


def test_a_path_compiles_once(monkeypatch):
    compilations = []
    canonicalise = cp.reductions.Dcp2Cone.apply
    monkeypatch.setattr(
        cp.reductions.Dcp2Cone, "apply", lambda self, problem: compilations.append(1) or canonicalise(self, problem)
    )
    erm = AdaptiveERM(random_risk(Squared()), np.arange(13) == 0)
    compiled = compile_erm(erm)
    objectives = [solve_erm(compiled, *penalties(12, lam, 0.5))[1].objective for lam in np.geomspace(0.2, 1e-3, 50)]
    assert np.all(np.diff(objectives) < 0)
    assert len(compilations) == 1
    solve_erm(compile_erm(erm), *penalties(12, 0.1, 0.5))
    assert len(compilations) == 2


def test_units_of_the_target_do_not_matter():
    """From 1e-6 to 1e6, w scales with y where the penalty does."""
    risk = random_risk(Squared())
    l1, l2 = penalties(12, 0.05, 0.5)
    w, _ = solve(risk, l1, l2)
    for unit in (1e-6, 1e6):
        scaled = EmpiricalRisk(risk.A, unit * risk.y, risk.q, risk.loss)
        np.testing.assert_allclose(solve(scaled, unit * l1, l2)[0], unit * w, rtol=1e-7, atol=1e-9 * unit)


def test_structure_is_part_of_the_program():
    """Columns forced to be equal are one column; a penalty on W is a penalty on w."""
    risk = random_risk(Squared())
    l1, l2 = penalties(12, 0.05, 0.5)
    scatter, shape = sp.csr_array(np.eye(13)), (13, 1)
    tied, certificate = solve(risk, l1, l2, structure=lambda W: (0, [W[1] == W[2]]), scatter=scatter, shape=shape)
    assert tied[1] == pytest.approx(tied[2], abs=1e-9)
    assert certificate.relative_gap < 1e-6
    merged = EmpiricalRisk(np.delete(risk.A, 2, axis=1) + np.eye(12)[1] * risk.A[:, [2]], risk.y, risk.q, risk.loss)
    l1_merged, l2_merged = np.delete(l1, 2) + np.eye(12)[1] * l1[2], np.delete(l2, 2) + np.eye(12)[1] * l2[2]
    np.testing.assert_allclose(np.delete(tied, 2), solve(merged, l1_merged, l2_merged)[0], atol=1e-6)
    ridge = np.where(np.arange(13) == 3, 0.7, 0.0)
    as_structure, _ = solve(risk, l1, l2, structure=lambda W: (0.35 * W[3, 0] ** 2, []), scatter=scatter, shape=shape)
    np.testing.assert_allclose(as_structure, solve(risk, l1, l2 + ridge)[0], atol=1e-6)


def test_a_structure_that_is_not_convex_is_refused():
    scatter = sp.csr_array(np.eye(13))
    with pytest.raises(ValueError, match="not convex"):
        solve(
            random_risk(Squared()),
            *penalties(12, 1, 0.5),
            structure=lambda W: (-cp.norm(W), []),
            scatter=scatter,
            shape=(13, 1),
        )


def test_a_solver_that_is_not_there_is_named():
    with pytest.raises(SolverError, match="NOSUCH is not installed; cvxpy has .*CLARABEL"):
        solve(random_risk(Squared()), *penalties(12, 1, 0.5), solver="NOSUCH")


def test_a_solver_that_fails_is_named_with_what_was_tried():
    """An unbounded structure has no solution, whatever the solver."""
    scatter = sp.csr_array(np.eye(13))
    with pytest.raises(SolverError, match=r"CLARABEL .*ended with .*; CLARABEL .*ended with"):
        solve(
            random_risk(Absolute()), np.zeros(13), np.zeros(13),
            structure=lambda W: (-100 * W[0, 0], []), scatter=scatter, shape=(13, 1),
        )  # fmt: skip
