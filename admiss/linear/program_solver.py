"""Solves of a stated or changed program: by any solver of cvxpy, in its units, with a certificate.

The bound is that of the dual point that the solver reports (:mod:`formulations.cone_solver`), less its accuracy. The
values of integer variables are rounded before the objective and the constraints are evaluated; the distance of the
bound is that from the solver's own value, before.
"""

import warnings
from typing import Any

import cvxpy as cp
import numpy as np
from sklearn.exceptions import ConvergenceWarning

from admiss.linear.program_checks import check_changed, violation
from formulations.certificate import (
    FEASIBLE,
    NOT_CLOSED,
    SOLVERS_BOUND,
    Certificate,
    SolverError,
    certify,
    clock,
    gap_tolerance,
)
from formulations.cone_solver import ATTEMPTS, CANNOT_SOLVE, WITH_VALUES, run, solver_version
from formulations.erm.program import ACCURACY


class ProgramSolver:
    """Solves problems that are made of the expressions of a program.

    Parameters
    ----------
    coefficients : cvxpy.Variable
        The variable of which its expressions are made.
    unit : float
        What solvers divide objectives by.
    null : float
        The risk of the null model.
    """

    def __init__(self, coefficients: cp.Variable, unit: float, null: float) -> None:
        self.coefficients = coefficients
        self.unit = unit
        self.null = null
        self._last: tuple[cp.Problem, cp.Problem] | None = None

    def run(self, problem: cp.Problem, solver: str, options: dict[str, Any]) -> Certificate:
        """Solve in the solver's units, and certify the values of the variables."""
        check_changed(problem, solver, self.coefficients)
        start, tried = clock(), []
        scaled, best = self._in_units_of_solver(problem), None
        for attempt in [options] if options else ATTEMPTS.get(solver, [{}]):
            status, unproven = run(scaled, solver, attempt)
            tried.append(status)
            if status not in (*WITH_VALUES, cp.USER_LIMIT) or problem.objective.value is None:
                continue
            of_solver = float(problem.objective.value)
            for variable in problem.variables():  # so that a large factor of an integer cannot hide its error
                if variable.attributes["boolean"] is True or variable.attributes["integer"] is True:
                    variable.save_value(np.round(variable.value))
            objective, values = float(problem.objective.value), [v.value for v in problem.variables()]
            tolerance = gap_tolerance(objective, self.null)
            worst = max((violation(c, self.coefficients) for c in problem.constraints), default=0.0)
            bound = of_solver - self.unit * unproven - ACCURACY * max(abs(objective), self.null)
            certificate = certify(
                objective, bound if worst <= FEASIBLE else -np.inf, tolerance,
                NOT_CLOSED if worst <= FEASIBLE else f"constraints are violated by {worst:.1g} of their terms",
                solver, solver_version(solver), start, rigorous=False,
            )  # fmt: skip
            if best is None or certificate.gap < best[0].gap:
                best = certificate, values, self._multipliers(problem)
            if certificate.gap <= tolerance:
                break
        if best is None:
            raise SolverError(self._failure(problem, solver, tried))
        for variable, value in zip(problem.variables(), best[1], strict=True):
            variable.save_value(value)
        for dual, value in best[2]:
            dual.save_value(value)
        if best[0].status not in ("optimal", SOLVERS_BOUND):
            warnings.warn(
                f"{solver} has not solved the changed program, its certificate says {best[0].status!r}: use other "
                "options or another solver.",
                ConvergenceWarning,
                stacklevel=4,
            )
        return best[0]

    def _multipliers(self, problem: cp.Problem) -> list[tuple[cp.Variable, Any]]:
        """The multipliers of the constraints, in the units of the problem instead of those of the solver."""
        duals = [dual for constraint in problem.constraints for dual in constraint.dual_variables]
        return [(dual, self.unit * dual.value) for dual in duals if dual.value is not None]

    def _in_units_of_solver(self, problem: cp.Problem) -> cp.Problem:
        """The problem divided by its unit; the last one is kept, so that cvxpy compiles it once."""
        if self._last is None or self._last[0] is not problem:
            self._last = problem, cp.Problem(cp.Minimize(problem.objective.expr / self.unit), problem.constraints)
        return self._last[1]

    def _failure(self, problem: cp.Problem, solver: str, tried: list[str]) -> str:
        if any("infeasible" in status for status in tried):
            status, _ = run(cp.Problem(cp.Minimize(0.0), problem.constraints), solver, {})
            if status in (cp.INFEASIBLE, cp.INFEASIBLE_INACCURATE):
                return "The constraints contradict each other: no coefficients satisfy them all."
        if cp.UNBOUNDED in tried:
            return "The program is unbounded: what was added to the objective has no least value."
        if CANNOT_SOLVE in tried:
            return f"{solver} takes no programs of this kind (cones or integers): use CLARABEL, or HIGHS for integers."
        return f"The program was not solved: {solver} ended with {', then '.join(dict.fromkeys(tried))}."
