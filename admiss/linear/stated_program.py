"""The stated program of a fit, solved by cvxpy, and what all fits share."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from admiss.linear.design import Design
from admiss.linear.penalty import Penalty
from formulations.arrays import FloatArray
from formulations.certificate import Certificate, certify, gap_tolerance
from formulations.erm.risk import EmpiricalRisk, compressed_squared_risk
from formulations.losses import Loss, Squared
from formulations.rounding import gamma

if TYPE_CHECKING:
    from formulations.erm.program import AdaptiveERM

# The conditions must hold to this share of the largest gradient for a fit to be returned.
ACCEPTED = 1e-8

Fit = tuple[FloatArray, Certificate]
# From an expression for W to a penalty and constraints.
Structure = Callable[[Any], Any]


def risk_of(design: Design, X: FloatArray, y: FloatArray, q: FloatArray, loss: Loss) -> EmpiricalRisk:
    """The empirical risk on the rows; for the squared loss on compressed rows if these have fewer entries."""
    p = len(design.pairs)
    entries = design.counts.sum() / design.patterns.weights.sum() * len(y)
    if isinstance(loss, Squared) and len(y) > p and entries > p**2 / 2:
        return compressed_squared_risk((A, y[rows], q[rows]) for rows, A in design.blocks(X))
    return EmpiricalRisk(design.whole(X), y, q, loss)


def stated_erm(
    design: Design, risk: EmpiricalRisk, penalty: Penalty, structure: Structure | None = None
) -> "AdaptiveERM":
    """The data of the program."""
    from formulations.erm.program import AdaptiveERM

    erm = AdaptiveERM(risk, penalty.u1, penalty.u2, intercepts=design.free)
    if structure is None:
        return erm
    shape = (len(design.features) + 1, design.n_basis)
    homogeneous = design.adaptivity.has_homogeneous_structure()
    return replace(erm, structure=structure, homogeneous=homogeneous, scatter=design.scatter(), shape=shape)


def solve_stated(
    design: Design, risk: EmpiricalRisk, penalty: Penalty, solver: str, structure: Structure | None = None
) -> Fit:
    """The fit by a solver of cvxpy."""
    import cvxpy as cp

    from formulations.erm.program import compile_erm, solve_erm

    a2 = cp.Parameter(nonneg=True, name="a2", value=penalty.a2)
    compiled = compile_erm(stated_erm(design, risk, penalty, structure), a2=a2)
    return solve_erm(compiled, penalty.a1, penalty.a2, solver_name(solver))


def solver_name(solver: str) -> str:
    """The name of a solver for cvxpy."""
    return "CLARABEL" if solver in ("auto", "cvxpy") else solver.upper()


def closed_form(objective: float, n: int, theta: FloatArray | None, start: float) -> Certificate:
    """The certificate of a sum of n terms."""
    bound = objective * (1.0 - gamma(4 * n + 20))
    return certify(objective, bound, gap_tolerance(objective, 0.0), "", "closed form", "", start, dual=theta)
