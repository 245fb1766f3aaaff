"""One way to solve convex programs: every end of a solver is a status."""

import itertools
from types import SimpleNamespace

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp

from formulations.cone_solver import ATTEMPTS, WITH_VALUES, _ConeProgram, run


class PanicException(BaseException):
    """As Rust's: not an Exception."""


def program():
    x = cp.Variable(2)
    return cp.Problem(cp.Minimize(cp.sum_squares(x - 1.0)), [cp.sum(x) == 1.0]), x


def test_a_solution_has_values_and_a_gap():
    problem, x = program()
    status, gap = run(problem, "CLARABEL", {"tol_gap_abs": 1e-10})
    assert status in WITH_VALUES
    assert gap < 1e-6
    assert x.value == pytest.approx([0.5, 0.5])


@pytest.mark.parametrize(("error", "status"), [(PanicException, "a panic"), (cp.error.SolverError, "an error")])
def test_panics_and_errors_are_statuses(error, status, monkeypatch):
    def fail(*_, **__):
        raise error("Eigval error: Eigen(1)")

    problem, _ = program()
    monkeypatch.setattr(cp.Problem, "unpack_results", fail)
    assert run(problem, "CLARABEL", {}) == (f"{status} (Eigval error: Eigen(1))", np.inf)


def test_an_interrupt_is_passed_on(monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    problem, _ = program()
    monkeypatch.setattr(cp.Problem, "unpack_results", interrupt)
    with pytest.raises(KeyboardInterrupt):
        run(problem, "CLARABEL", {})


def test_a_residual_of_the_dual_constraints_lowers_the_bound():
    dims = SimpleNamespace(zero=0, nonneg=1)
    data = {"P": sp.csc_array([[2.0]]), "c": np.array([1.0]), "A": sp.csc_array([[-4.0]]), "b": np.array([-2.0])}
    cone = _ConeProgram.of(data | {"dims": dims})
    x = np.array([3.0])
    assert cone.value(x) == 12.0
    assert cone.bound(x, np.array([1.75])) == -9.0 + 3.5  # no residual
    assert cone.bound(x, np.array([1.75 - 1e-8])) == pytest.approx(-5.5 - 2e-8 - 3.0 * 4e-8, abs=1e-12)
    assert cone.bound(x, np.array([1.5])) == -np.inf  # a residual of 1 is not negligible
    assert cone.bound(x, np.array([-1.0])) == cone.bound(x, np.array([0.0]))  # outside of the dual cone


@pytest.mark.parametrize("kind", ["squared", "absolute", "limited"])
@pytest.mark.parametrize("solver", ["CLARABEL", "OSQP", "SCS", "HIGHS"])
def test_bounds_of_every_solver(solver, kind):
    """No bound is above the optimum of another solver, and bounds are close unless the solver has given up."""
    rng = np.random.default_rng(0)
    A, y = rng.normal(size=(30, 5)), rng.normal(size=30)
    x = cp.Variable(5, nonneg=kind == "limited")
    loss = cp.norm1 if kind == "absolute" else cp.sum_squares
    problem = cp.Problem(cp.Minimize(loss(A @ x - y) + 0.1 * cp.norm1(x)), [x[0] + x[1] <= 0.1])
    optimum = problem.solve(solver="CLARABEL", tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12)
    status, unproven = run(problem, solver, ATTEMPTS[solver][0])
    if status in WITH_VALUES:
        assert problem.value - unproven <= optimum + 1e-8
        assert unproven < 1e-6
    else:
        assert (solver, kind) == ("OSQP", "absolute")


def test_what_highs_adds_to_a_quadratic_objective_is_in_no_bound():
    """It is large for the auxiliary variable of a limit in large units, which is far from its optimal value."""
    rng = np.random.default_rng(0)
    A, y = rng.normal(size=(30, 3)), rng.normal(size=30)
    x = cp.Variable(3)
    objective = cp.Minimize(cp.sum_squares(A @ x - y) / 30)
    problem = cp.Problem(objective, [cp.max(5e3 * cp.hstack([x[0] + 1.0, x[1] - 1.0])) <= 1e4])
    optimum = problem.solve(solver="CLARABEL", tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12)
    assert run(problem, "HIGHS", {"qp_regularization_value": 1e-7}) == ("optimal", np.inf)
    assert problem.value > optimum + 1e-3
    run(problem, "HIGHS", ATTEMPTS["HIGHS"][0])
    assert problem.value == pytest.approx(optimum, abs=1e-6)


def test_the_bound_of_a_mixed_integer_program_is_that_of_its_search():
    rng = np.random.default_rng(1)
    A, y = rng.normal(size=(30, 4)), rng.normal(size=30)
    x, taken = cp.Variable(4), cp.Variable(4, boolean=True)
    objective = cp.Minimize(cp.norm1(A @ x - y))
    problem = cp.Problem(objective, [cp.abs(x) <= 10 * taken, cp.sum(taken) <= 2])
    status, unproven = run(problem, "HIGHS", ATTEMPTS["HIGHS"][0])
    pairs = itertools.combinations(range(4), 2)
    values = [cp.Problem(objective, [x[i] == 0, x[j] == 0]).solve(solver="CLARABEL") for i, j in pairs]
    assert status == cp.OPTIMAL
    assert problem.value - unproven == pytest.approx(min(values), rel=1e-6)


@pytest.mark.parametrize("solver", ["HIGHS", "SCIPY"])
def test_no_solver_gets_limits_that_cvxpy_derives(solver):
    """Those of a multiple of a dense matrix times a variable are 0 in cvxpy 1.9.3, and the solution would be 0."""
    v, limited = cp.Variable(2), cp.Variable(bounds=[0.0, 0.25])
    constraints = [cp.abs(10 * (np.eye(2) @ v)[0]) <= 15, v[1] <= 1]
    problem = cp.Problem(cp.Minimize(-cp.sum(v) - limited), constraints)
    status, unproven = run(problem, solver, {})
    assert status == cp.OPTIMAL
    assert problem.value == pytest.approx(-2.75)
    assert unproven < 1e-9 if solver == "HIGHS" else unproven == np.inf


def test_a_program_of_another_kind_is_named():
    x = cp.Variable()
    assert run(cp.Problem(cp.Minimize(cp.logistic(x) - x / 2)), "OSQP", {}) == ("cannot solve this problem", np.inf)


def test_an_unfinished_solve_has_no_bound():
    rng = np.random.default_rng(0)
    A, x = rng.normal(size=(60, 20)), cp.Variable(20)
    problem = cp.Problem(cp.Minimize(cp.norm1(A @ x - rng.normal(size=60))))
    assert run(problem, "HIGHS", {"simplex_iteration_limit": 1, "presolve": "off"}) == (cp.USER_LIMIT, np.inf)
