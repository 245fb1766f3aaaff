"""Checks of a changed program: before it is solved, and of the constraints at its solution."""

import textwrap

import cvxpy as cp
import numpy as np

# Characters of a constraint that a message shows.
SHOWN = 120
# Solvers of cvxpy that take integers next to a quadratic objective; HiGHS takes them next to a linear one.
MIXED_INTEGER_QUADRATIC = ("GUROBI", "CPLEX", "MOSEK", "XPRESS", "COPT", "SCIP")


def check_changed(problem: cp.Problem, solver: str, coefficients: cp.Variable) -> None:
    """Refuse problems that are not convex, of other expressions, or beyond the solver."""
    if not isinstance(problem, cp.Problem):
        raise ValueError(
            "problem must be a cvxpy.Problem, such as program.problem + cp.Problem(cp.Minimize(0), constraints)."
        )
    if not isinstance(problem.objective, cp.Minimize):
        raise ValueError("The objective of a changed program must be a cp.Minimize.")
    if not any(variable is coefficients for variable in problem.variables()):
        raise ValueError("The problem has no expression of this program: add to program.problem, or use its risk.")
    if not problem.is_dcp():
        wrong = [_named(i, problem) for i, constraint in enumerate(problem.constraints) if not constraint.is_dcp()]
        raise ValueError(
            f"The changed program is not convex by the rules of cvxpy (DCP), because of "
            f"{wrong[0] if wrong else 'its objective'}: lowest(..) is concave, and takes "
            "a lower limit; highest(..) and largest_step(..) are convex, and take an upper limit."
        )
    for i in _apart(problem, coefficients):
        raise ValueError(
            f"The program does not depend on {_named(i, problem)}: its variables are linked neither to the "
            "coefficients of this program nor to its objective. Is it one of another program?"
        )
    for parameter in problem.parameters():
        if parameter.value is None:  # a parameter that is computed says here what is wrong with it
            raise ValueError(f"The parameter {parameter.name()} has no value: set it before the program is solved.")
    if not problem.is_mixed_integer() or solver in MIXED_INTEGER_QUADRATIC:
        return
    if not problem.objective.expr.is_pwl():
        raise ValueError(
            "HiGHS takes integer variables in linear programs only: use loss='absolute' or a Quantile with "
            "l1_ratio=1 or lam=0, or a solver of mixed-integer quadratic programs such as GUROBI or SCIP."
        )
    if solver != "HIGHS":
        raise ValueError(f"{solver} takes no integer variables: use solver='HIGHS'.")


def _named(i: int, problem: cp.Problem) -> str:
    """A constraint in a message."""
    text = textwrap.shorten(str(problem.constraints[i]), SHOWN, placeholder=" ..")
    return f"constraint {i + 1} of {len(problem.constraints)}, {text}"


def _apart(problem: cp.Problem, coefficients: cp.Variable) -> list[int]:
    """Constraints that no chain of constraints links to the coefficients or to a variable of the objective."""
    linked = {coefficients.id} | {variable.id for variable in problem.objective.variables()}
    apart = {i: {v.id for v in c.variables()} for i, c in enumerate(problem.constraints) if c.variables()}
    while reached := [i for i, variables in apart.items() if variables & linked]:
        for i in reached:
            linked |= apart.pop(i)
    return list(apart)


def violation(constraint: cp.Constraint, coefficients: cp.Variable) -> float:
    """The violation of a constraint as a share of the size of its terms, in which coefficients count as 1 at least.

    They are in units of y and of their columns: a limit on one that is 0 has terms of their natural size.
    """
    size = float(np.max(constraint.violation(), initial=0.0))
    if size == 0.0:
        return 0.0
    sizes = [float(np.max(np.abs(arg.value), initial=0.0)) for arg in constraint.args]
    try:
        gradients = getattr(constraint, "expr", cp.Constant(0.0)).grad
    except NotImplementedError:  # by cvxpy for some atoms: without their terms the violation counts for more
        gradients = {}
    for variable, gradient in gradients.items():
        value = np.abs(np.ravel(variable.value, order="F"))
        value = np.maximum(value, 1.0) if variable is coefficients else value
        if gradient is not None:
            terms = np.abs(gradient) * value if np.isscalar(gradient) else np.abs(gradient).T @ value
            sizes.append(float(np.max(terms, initial=0.0)))
    return size / max(sizes) if max(sizes) > 0 else size
