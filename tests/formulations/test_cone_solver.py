"""One way to solve convex programs: every end of a solver is a status."""

from types import SimpleNamespace

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp

from formulations.cone_solver import WITH_VALUES, _infeasibility, run


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
    assert run(problem, "CLARABEL", {}) == (status, np.inf)


def test_an_interrupt_is_passed_on(monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    problem, _ = program()
    monkeypatch.setattr(cp.Problem, "unpack_results", interrupt)
    with pytest.raises(KeyboardInterrupt):
        run(problem, "CLARABEL", {})


def test_a_residual_of_the_dual_constraints_widens_the_gap():
    data = {"P": sp.csc_array([[2.0]]), "c": np.array([1.0]), "A": sp.csc_array([[-4.0]])}
    assert _infeasibility(data, SimpleNamespace(x=[3.0], z=[1.5])) == pytest.approx(3.0)
    assert _infeasibility(data | {"P": None}, SimpleNamespace(x=[3.0], z=[0.25])) == 0.0
    assert _infeasibility(data, SimpleNamespace(obj_val=1.0)) == 0.0
