"""The cvxpy program against its optimality conditions, its dual, closed forms and other software."""

import tracemalloc

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import linprog
from sklearn.linear_model import ElasticNet, LogisticRegression

from formulations.certificate import SOLVERS_BOUND
from formulations.erm.dual_bound import dual_bound
from formulations.erm.optimality import optimality_residual, polish
from formulations.erm.program import AdaptiveERM, SolverError, compile_erm, solve_erm
from formulations.erm.risk import EmpiricalRisk, compressed_squared_risk
from formulations.losses import Absolute, Huber, Logistic, Quantile, Squared

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
    return solve_erm(compile_erm(AdaptiveERM(risk, l1, l2, **structure)), 1.0, 1.0, solver)


def structured_by(structure):
    """Arguments of a program with a structure on W, one column of the 13 coefficients."""
    return {"structure": structure, "scatter": sp.csr_array(np.eye(13)), "shape": (13, 1)}


def offset_risk(loss, offset, **kwargs):
    """A risk with every column but the intercept, and y in regression, far from 0."""
    risk = random_risk(loss, **kwargs)
    y = risk.y + offset if loss.task == "regression" else risk.y
    return EmpiricalRisk(risk.A + offset * (np.arange(risk.A.shape[1]) > 0), y, risk.q, loss)


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
    assert (w == 0).sum() >= 20


@pytest.mark.parametrize("alpha", [0.4, 1.0])
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_the_dual_value_is_the_minimum_of_the_lagrangian(loss, alpha):
    """D(theta) = min over z of F(z) - theta'z, plus min over w of the penalty + theta'A w, each solved by cvxpy."""
    risk = random_risk(loss, n=30, p=4)
    l1, l2 = penalties(4, 0.3, alpha)
    if isinstance(loss, Logistic):
        share = risk.q[risk.y > 0].sum()
        t = -0.6 * risk.y * np.where(risk.y > 0, 1 - share, share)
    else:
        t = np.random.default_rng(1).uniform(-0.1, 0.1, size=30)
    theta = risk.q * (t - risk.q @ t)  # feasible for the free intercept
    l1 = np.where(np.arange(5) > 0, np.maximum(l1, np.abs(risk.A.T @ theta) * (1.0 if alpha == 1.0 else 0.5)), 0.0)
    z, w = cp.Variable(30), cp.Variable(5)
    over_z = cp.Problem(cp.Minimize(loss.total(risk.y, z, risk.q) - theta @ z)).solve(solver="CLARABEL")
    penalty = l1 @ cp.abs(w) + cp.sum(cp.multiply(l2, cp.square(w))) / 2
    over_w = cp.Problem(cp.Minimize(penalty + (risk.A[:, 1:].T @ theta) @ w[1:])).solve(solver="CLARABEL")
    assert dual_bound(risk, l1, l2, theta) == pytest.approx(over_z + over_w, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("alpha", [0.4, 1.0])
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_the_bound_is_below_the_optimum_and_tight(loss, alpha):
    """At the optimum and near it; the reference is solved separately, without centring, at another tolerance."""
    for offset in (0.0, 1e4):
        risk = offset_risk(loss, offset)
        l1, l2 = penalties(12, 0.05, alpha)
        w, certificate = solve(risk, l1, l2)
        plain = random_risk(loss)
        v = cp.Variable(13)
        objective = (
            loss.total(plain.y, plain.A @ v, plain.q) + l1 @ cp.abs(v) + cp.sum(cp.multiply(l2, cp.square(v))) / 2
        )
        reference = cp.Problem(cp.Minimize(objective)).solve(solver="CLARABEL", tol_gap_abs=1e-10, tol_gap_rel=1e-10)
        assert certificate.bound <= certificate.objective * (1 + 1e-12)
        assert certificate.objective == pytest.approx(reference, rel=1e-8)
        assert certificate.bound == pytest.approx(reference, rel=1e-6)
    if loss.smooth:
        gaps, (w, _) = [], solve(plain, l1, l2)
        for step in (1e-3, 1e-2, 1e-1):
            moved = w + step * np.random.default_rng(0).normal(size=13) * (np.arange(13) > 0) * (w != 0)
            bound = dual_bound(plain, l1, l2, plain.q * loss.derivative(plain.y, plain.A @ moved))
            gaps.append(reference - bound)
        assert gaps[0] > 1e-12
        assert np.all(np.diff(gaps) > 0)


@pytest.mark.parametrize("loss", [Squared(), Logistic(), Absolute()], ids=str)
@pytest.mark.parametrize("structured", [False, True])
def test_a_solve_that_is_cut_short_is_not_certified(loss, structured, monkeypatch):
    """A solver that calls a rough point optimal: it is refused, or returned with a gap that is not closed."""
    rough = {"tol_gap_abs": 0.1, "tol_gap_rel": 0.1, "tol_feas": 0.1}
    monkeypatch.setattr("formulations.erm.program.ATTEMPTS", {"CLARABEL": [rough]})
    monkeypatch.setattr("formulations.erm.program.polish", lambda risk, l1, l2, w: w)
    structure = structured_by(lambda W: (0, [])) if structured else {}
    program = random_risk(loss), *penalties(12, 0.05, 1.0)
    if isinstance(loss, Logistic) and not structured:  # the dual bound shows three digits of its objective
        _, certificate = solve(*program)
        assert certificate.status == "not proven to the tolerance"
        assert certificate.gap > 100.0 * certificate.tolerance
        return
    with pytest.raises(SolverError, match="ended with"):
        solve(*program, **structure)


@pytest.mark.parametrize("loss", [Squared(), Logistic(), Huber(0.7)], ids=str)
def test_offsets_do_not_matter(loss):
    """The free intercept takes a shift of the columns, to 1e8 standard deviations."""
    l1, l2 = penalties(12, 0.05, 0.5)
    w, certificate = solve(random_risk(loss), l1, l2)
    for offset in (1e4, 1e8):
        moved, again = solve(offset_risk(loss, offset), l1, l2)
        assert again.status == "optimal"
        assert again.objective == pytest.approx(certificate.objective, rel=1e-5)
        np.testing.assert_allclose(moved[1:], w[1:], atol=1e-5)


def test_unequal_weights_are_certified():
    for loss in (Squared(), Huber(0.7), Logistic()):
        risk = random_risk(loss)
        s = np.exp(4 * np.random.default_rng(0).normal(size=80))
        _, certificate = solve(EmpiricalRisk(risk.A, risk.y, s / s.sum(), loss), *penalties(12, 0.05, 0.5))
        assert certificate.status == "optimal"
        assert certificate.relative_gap < 1e-6


def test_a_suboptimal_point_is_distinguished_from_the_optimum():
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
    peer = LogisticRegression(C=C, l1_ratio=alpha, solver="saga", tol=1e-12, max_iter=200_000)
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
    erm = AdaptiveERM(random_risk(Squared()), *penalties(12, 1.0, 0.5))
    compiled = compile_erm(erm)
    objectives = [solve_erm(compiled, lam, lam)[1].objective for lam in np.geomspace(0.2, 1e-3, 50)]
    assert np.all(np.diff(objectives) < 0)
    assert len(compilations) == 1
    solve_erm(compile_erm(erm), 0.1, 0.1)
    assert len(compilations) == 2


def test_compiling_does_not_grow_with_the_square_of_the_columns():
    """4,000 columns; an array of that size squared would take 128 MB."""
    A = sp.csr_array(np.where(np.random.default_rng(0).uniform(size=(300, 4000)) < 0.01, 1.0, 0.0))
    risk = EmpiricalRisk(A, np.arange(300.0), np.full(300, 1 / 300), Squared())
    tracemalloc.start()
    compile_erm(AdaptiveERM(risk, np.ones(4000), np.ones(4000))).problem.get_problem_data("CLARABEL")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 64e6


def test_units_of_the_target_do_not_matter():
    """From 1e-6 to 1e6, w scales with y if the penalty does."""
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
    tied, certificate = solve(risk, l1, l2, **structured_by(lambda W: (0, [W[1] == W[2]])))
    assert tied[1] == pytest.approx(tied[2], abs=1e-9)
    assert certificate.relative_gap < 1e-6
    merged = EmpiricalRisk(np.delete(risk.A, 2, axis=1) + np.eye(12)[1] * risk.A[:, [2]], risk.y, risk.q, risk.loss)
    l1_merged, l2_merged = np.delete(l1, 2) + np.eye(12)[1] * l1[2], np.delete(l2, 2) + np.eye(12)[1] * l2[2]
    np.testing.assert_allclose(np.delete(tied, 2), solve(merged, l1_merged, l2_merged)[0], atol=1e-6)
    ridge = np.where(np.arange(13) == 3, 0.7, 0.0)
    as_structure, _ = solve(risk, l1, l2, **structured_by(lambda W: (0.35 * W[3, 0] ** 2, [])))
    np.testing.assert_allclose(as_structure, solve(risk, l1, l2 + ridge)[0], atol=1e-6)


def test_a_structure_that_is_not_convex_is_refused():
    with pytest.raises(ValueError, match="not convex"):
        solve(random_risk(Squared()), *penalties(12, 1, 0.5), **structured_by(lambda W: (-cp.norm(W), [])))


def test_a_solver_that_is_not_installed_is_named():
    with pytest.raises(SolverError, match="NOSUCH is not installed; cvxpy has .*CLARABEL"):
        solve(random_risk(Squared()), *penalties(12, 1, 0.5), solver="NOSUCH")


def test_a_solver_that_fails_is_named_with_what_was_tried():
    """An unbounded structure has no solution, whatever the solver."""
    with pytest.raises(SolverError, match="CLARABEL ended with unbounded; try a more moderate lam or strength"):
        solve(random_risk(Absolute()), np.zeros(13), np.zeros(13), **structured_by(lambda W: (-100 * W[0, 0], [])))


def test_a_solver_that_cannot_take_the_program_is_named():
    with pytest.raises(SolverError, match="OSQP takes no programs of this kind"):
        solve(random_risk(Logistic()), *penalties(12, 0.1, 0.5), solver="OSQP")


def test_a_structure_is_certified_by_the_dual_point_of_any_solver():
    program = random_risk(Squared()), *penalties(12, 0.1, 0.5)
    expected = solve(*program, **structured_by(lambda W: (0, [])))[1]
    _, certificate = solve(*program, solver="SCS", **structured_by(lambda W: (0, [])))
    assert certificate.status == SOLVERS_BOUND
    assert certificate.bound <= expected.objective <= certificate.objective * (1 + 1e-9)
