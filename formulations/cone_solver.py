"""Convex programs in cvxpy: one way to solve them, which never raises and never warns.

A solver may end with a status, an error of cvxpy, or a panic of its own (which Rust passes to Python as an exception
that is not an ``Exception``). All of them come back as a status; whether a solution is good enough is judged by its
certificate, not by its status.

A solver that reports its dual point leaves a residual  r = P x + c + A'z  in the dual constraints of
min x'Px / 2 + c'x  subject to  b - A x in K. Its dual objective then is a bound on the minimum less r'x at the optimal
x: a residual that is small next to c may be large next to the objective.
"""

import warnings
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import cvxpy as cp
import numpy as np

# Statuses with which a program has values.
WITH_VALUES = (cp.OPTIMAL, cp.OPTIMAL_INACCURATE)

# Options tried in turn: an interior-point method may stall at the tightest tolerance, meet nearly singular equations,
# or give up after short steps.
SHORT_STEPS = {"min_switch_step_length": 1e-2, "min_terminate_step_length": 1e-6}
REGULAR = {"static_regularization_constant": 1e-7}
ATTEMPTS: dict[str, list[dict[str, float]]] = {
    "CLARABEL": [
        {"tol_gap_abs": t, "tol_gap_rel": t, "tol_feas": t, **steps}
        for t, steps in ((1e-12, {}), (1e-9, {}), (1e-12, REGULAR), (1e-9, SHORT_STEPS))
    ],
    "OSQP": [{"eps_abs": 1e-10, "eps_rel": 1e-10, "max_iter": 200_000}],
    "SCS": [{"eps_abs": 1e-9, "eps_rel": 1e-9, "max_iters": 200_000}],
    "HIGHS": [{"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}],
}


def run(problem: cp.Problem, solver: str, options: dict[str, float]) -> tuple[str, float]:
    """Status of a solve, and the distance of its value from a bound (infinite if the solver reports none).

    The value is that of the variables in the objective as it is stated; the solver's own belongs to its cone program.
    """
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # inaccuracy is judged by the certificate
            data, chain, inverse = problem.get_problem_data(solver, solver_opts=options)
            raw = chain.solve_via_data(problem, data, warm_start=False, verbose=False, solver_opts=options)
            problem.unpack_results(raw, chain, inverse)
    except (cp.error.SolverError, ArithmeticError, ValueError):
        return "an error", np.inf
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        return "a panic", np.inf
    if problem.status not in WITH_VALUES:
        return problem.status, np.inf
    primal, dual = getattr(raw, "obj_val", np.inf), getattr(raw, "obj_val_dual", -np.inf)
    gap = abs(primal - dual) + _infeasibility(data, raw)
    return problem.status, float(problem.value - problem.solution.opt_val + gap)


def _infeasibility(data: dict[str, Any], raw: Any) -> float:
    """|r|'|x| at the end of a solve, 0 if the solver does not report its dual point."""
    if not (hasattr(raw, "x") and hasattr(raw, "z")):
        return 0.0
    x, z = np.array(raw.x), np.array(raw.z)
    curvature = data["P"] @ x if data.get("P") is not None else 0.0
    return float(np.abs(curvature + data["c"] + data["A"].T @ z) @ np.abs(x))


def solver_version(solver: str) -> str:
    """Version of a solver, or that of cvxpy if the solver comes with it."""
    try:
        return version({"HIGHS": "highspy"}.get(solver, solver.lower()))
    except PackageNotFoundError:
        return f"of cvxpy {version('cvxpy')}"
