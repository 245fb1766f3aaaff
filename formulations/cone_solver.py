"""Convex programs in cvxpy: one way to solve them, which never raises and never warns.

A solver may end with a status, an error of cvxpy, or a panic of its own (which Rust passes to Python as an exception
that is not an ``Exception``). All of them come back as a status; whether a solution is good enough is judged by its
certificate, not by its status.

Cone solvers state a program as

    minimise  x'P x / 2 + c'x     subject to  b - A x in K,

and Clarabel, OSQP, SCS and HiGHS report a dual point z in the dual cone. With the residual  r = P x + c + A'z  the
value of any feasible x* is at least

    -x'P x / 2 - b'z + r'x*,

in which x* is not known, and may be far from x: it may reach a limit that is slack at x. |x*_i| is taken to be at most
|x_i|, or the smaller of two sizes if that is larger: that of the terms of its rows, or of the inequality that limits
it; and that at which the terms of r_i, times x_i, are the dual objective. If the terms |r_i| |x*_i| are not negligible,
z is not feasible, and there is no bound. Of a mixed-integer program HiGHS reports the bound of its search.

**Limits of variables are constraints.** For solvers that take limits l <= x <= u, cvxpy derives such limits for its
auxiliary variables by interval arithmetic, in which the product of a dense matrix and a variable has the limits
0 * inf = nan, and a multiple of those is [0, 0] (1.9.3): the solver then solves another program, whose bound is false.
All solvers therefore get all limits as constraints, and none are derived.
"""

import warnings
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from cvxpy.reductions.solvers.defines import SOLVER_MAP_CONIC, SOLVER_MAP_QP
from cvxpy.reductions.solvers.solving_chain import resolve_and_build_chain

from formulations.arrays import FloatArray
from formulations.linear_solver import EXACT_SEARCH, HIGHS_TOLERANCE

# What cvxpy says, and the status, if a solver does not take programs of this kind.
CANNOT_SOLVE = "cannot solve this problem"
# Largest share of the dual objective, or of 1, its unit, that a residual of the dual point may have.
NEGLIGIBLE = 1e-6
# Rows in which a variable has at least this share of its largest coefficient say how large it may be.
IMPORTANT = 0.1
# Statuses with which a program has values.
WITH_VALUES = (cp.OPTIMAL, cp.OPTIMAL_INACCURATE)

# Options tried in turn: an interior-point method may stall at the tightest tolerance, meet nearly singular equations,
# or give up after short steps. HiGHS adds a multiple of x'x / 2 to a quadratic objective: its own, 1e-7, moves the
# optimum by a share of 1e-2 if a limit is in units of 1,000, and with 0 it may fail.
SHORT_STEPS = {"min_switch_step_length": 1e-2, "min_terminate_step_length": 1e-6}
REGULAR = {"static_regularization_constant": 1e-7}
ATTEMPTS: dict[str, list[dict[str, float]]] = {
    "CLARABEL": [
        {"tol_gap_abs": t, "tol_gap_rel": t, "tol_feas": t, **steps}
        for t, steps in ((1e-12, {}), (1e-9, {}), (1e-12, REGULAR), (1e-9, SHORT_STEPS))
    ],
    "OSQP": [{"eps_abs": 1e-10, "eps_rel": 1e-10, "max_iter": 200_000}],
    "SCS": [{"eps_abs": 1e-9, "eps_rel": 1e-9, "max_iters": 200_000}],
    "HIGHS": [
        {
            "primal_feasibility_tolerance": HIGHS_TOLERANCE,
            "dual_feasibility_tolerance": HIGHS_TOLERANCE,
            "mip_rel_gap": 0.0,
            "qp_regularization_value": added,
        }
        for added in (1e-12, 1e-10, 0.0, 1e-7)
    ],
}


def run(problem: cp.Problem, solver: str, options: dict[str, Any]) -> tuple[str, float]:
    """Status of a solve, and the distance of its value from a bound (infinite if the solver reports none).

    The value is that of the variables in the objective as it is stated; the solver's own belongs to its cone program.
    """
    if solver == "HIGHS" and problem.is_mixed_integer():
        options = EXACT_SEARCH | options
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # inaccuracy is judged by the certificate
            own = _without_derived_limits(problem, solver)
            data, chain, inverse = problem.get_problem_data(own, solver_opts=options)
            raw = chain.solve_via_data(problem, data, warm_start=False, verbose=False, solver_opts=dict(options))
            problem.unpack_results(raw, chain, inverse)
    except (cp.error.SolverError, ArithmeticError, ValueError) as error:
        if CANNOT_SOLVE in str(error):
            return CANNOT_SOLVE, np.inf
        return f"an error ({str(error).strip().rstrip('.') or type(error).__name__})", np.inf
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        return f"a panic ({error})", np.inf
    if problem.status not in (*WITH_VALUES, cp.USER_LIMIT) or problem.value is None:
        return problem.status, np.inf
    if not isinstance(data, dict):  # cvxpy finds the program constant, and asks no solver
        return problem.status, np.inf
    if problem.status == cp.USER_LIMIT and not problem.is_mixed_integer():
        return problem.status, np.inf  # the residual of an unfinished dual point is large, and x no measure of x*
    unproven = _distance_from_bound(data, raw)
    shift = problem.value - problem.solution.opt_val
    return problem.status, float(shift + unproven) if np.isfinite(shift) else np.inf


def _without_derived_limits(problem: cp.Problem, solver: str) -> Any:
    """The solver, or one of the same kind that takes limits of variables as constraints."""
    kinds = (kind[solver] for kind in (SOLVER_MAP_CONIC, SOLVER_MAP_QP) if solver in kind)
    if not any(kind.BOUNDED_VARIABLES for kind in kinds):
        return solver
    chosen = resolve_and_build_chain(problem, solver).solver
    kind: Any = type(chosen)
    return _with_limits_as_constraints(kind) if chosen.BOUNDED_VARIABLES else solver


@cache
def _with_limits_as_constraints(kind: Any) -> Any:
    """One object for each kind, so that cvxpy compiles a problem once."""
    name = f"{kind().name()} with limits as constraints"  # cvxpy wants another name
    return type(kind.__name__, (kind,), {"BOUNDED_VARIABLES": False, "name": lambda _: name})()


@dataclass(frozen=True)
class _ConeProgram:
    """The data of a cone program as in the module docstring; ``n_zero`` and ``n_nonneg`` rows come first in K."""

    P: Any
    c: FloatArray
    A: Any
    b: FloatArray
    n_zero: int
    n_nonneg: int
    is_integer: bool

    @classmethod
    def of(cls, data: dict[str, Any]) -> "_ConeProgram":
        """The program in the data that cvxpy makes for a solver: of a cone program, or of a quadratic one."""
        is_cone = "c" in data
        c = np.asarray(data["c"] if is_cone else data["q"])
        return cls(
            P=data.get("P"),
            c=c,
            A=data["A"] if is_cone else sp.vstack([data["A"], data["F"]]),
            b=data["b"] if is_cone else np.concatenate([data["b"], data["G"]]),
            n_zero=int(data["dims"].zero),
            n_nonneg=int(data["dims"].nonneg),
            is_integer=bool(data.get("bool_vars_idx") or data.get("int_vars_idx")),
        )

    def value(self, x: FloatArray) -> float:
        """The objective at x."""
        return float(self.c @ x + self._curved(x) @ x / 2.0)

    def bound(self, x: FloatArray, z: FloatArray) -> float:
        """The bound of a dual point z, with the objective's curvature from x; -inf if z is not feasible."""
        z = z.copy()
        inequalities = slice(self.n_zero, self.n_zero + self.n_nonneg)
        z[inequalities] = np.maximum(z[inequalities], 0.0)
        r = self._curved(x) + self.c + self.A.T @ z
        half = self._curved(x) @ x / 2.0
        size = float(abs(half) + np.abs(self.b) @ np.abs(z))
        terms = np.abs(self._curved(x)) + np.abs(self.c) + abs(self.A).T @ np.abs(z)
        by_terms = size / np.where(terms > 0, terms, np.inf)
        largest = np.maximum(np.abs(x), np.minimum(by_terms, self._largest(x, r)))
        residual = float(np.abs(r) @ largest)
        return float(-half - self.b @ z - residual) if residual <= NEGLIGIBLE * max(size, 1.0) else -np.inf

    def _largest(self, x: FloatArray, r: FloatArray) -> FloatArray:
        """How large each variable may be by its rows, from the sizes of their terms at x.

        Of the inequalities that limit it towards smaller r'x the smallest counts, without any the largest row.
        """
        A = sp.coo_array(self.A)
        rows, columns = A.coords
        terms = np.abs(A.data)
        sizes = (np.abs(self.b) + abs(A) @ np.abs(x))[rows] / np.where(terms > 0, terms, np.inf)
        most, largest, limit = np.zeros(len(x)), np.zeros(len(x)), np.full(len(x), np.inf)
        np.maximum.at(most, columns, terms)
        counts = terms >= IMPORTANT * most[columns]
        np.maximum.at(largest, columns[counts], sizes[counts])
        limits = (rows >= self.n_zero) & (rows < self.n_zero + self.n_nonneg) & (A.data * r[columns] < 0)
        np.minimum.at(limit, columns[limits], sizes[limits])
        return np.minimum(largest, limit)

    def _curved(self, x: FloatArray) -> FloatArray:
        return np.zeros(len(x)) if self.P is None else np.asarray(self.P @ x)


def _distance_from_bound(data: dict[str, Any], raw: Any) -> float:
    """How far the solution of a solver is from its bound, infinite if it reports none."""
    if hasattr(raw, "x") and (hasattr(raw, "z") or hasattr(raw, "y")):  # Clarabel, OSQP
        x, z = np.array(raw.x), np.array(raw.z if hasattr(raw, "z") else raw.y)
    elif type(raw) is dict and "x" in raw and "y" in raw:  # SCS
        x, z = np.array(raw["x"]), np.array(raw["y"])
    elif type(raw) is dict and "solution" in raw:  # HiGHS
        x, z = np.array(raw["solution"].col_value), -np.array(raw["solution"].row_dual)
    else:
        return np.inf
    cone = _ConeProgram.of(data)
    if cone.is_integer:
        bound = float(raw["info"].mip_dual_bound) if isinstance(raw, dict) and "info" in raw else -np.inf
    elif z.shape != cone.b.shape:
        bound = -np.inf
    else:
        bound = cone.bound(x, z)
    distance = abs(cone.value(x) - bound)
    return distance if np.isfinite(distance) else np.inf


def solver_version(solver: str) -> str:
    """Version of a solver, or that of cvxpy if the solver comes with it."""
    try:
        return version({"HIGHS": "highspy"}.get(solver, solver.lower()))
    except PackageNotFoundError:
        return f"of cvxpy {version('cvxpy')}"
