"""The penalised empirical risk of an adaptive linear model (Sections 2.1 and 2.4 of the paper), as one cvxpy program.

Data
    A in R^{n x p}            design: column (j, k) is x_j (1 - m_j) phi_k(m), with x_0 = 1 for the intercept
    y in R^n, s in R^n_+      target and sample weights, S = sum_i s_i, q_i = s_i / S
    l                         a convex loss
    u1, u2 in R^p_+           weights of the penalty, 0 for free columns (the intercept)
Parameters
    a1 = alpha lambda,  a2 = (1 - alpha) lambda
Variables
    w in R^p                  coefficients; as a matrix W in R^{(d + 1) x K}, W_jk is that of column (j, k), else 0
Objective
    minimise  (1/S) sum_i s_i l(y_i, a_i' w)  +  sum_k [ a1 u1_k |w_k| + a2 u2_k w_k^2 / 2 ]  +  Omega(W)
Constraints
    W in C

With lambda_k = lambda u_k and u1 = u2 = u the penalty is the paper's, lambda_k [alpha |w_k| + (1 - alpha) w_k^2 / 2].
Omega and C are the structure of an adaptivity class; the classes of the paper have none. The program is compiled once
(it is DPP in a1 and a2) and solved again for new penalties. Internally, the free columns are projected out and y is
measured in units of the residual that they leave: offsets and units do not matter.

The squared loss has no 1/2. In the terms of glmnet, which minimises 1/(2n) |y - A w|^2 + lambda_g sum_k v_k [..] for
squared loss and the mean of the logistic loss plus the same penalty, with penalty factors v_k rescaled to sum to p:

    squared   lambda_g v_k = lambda_k / 2          logistic   lambda_g v_k = lambda_k
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import cvxpy as cp
import numpy as np
import scipy.sparse as sp

from formulations.arrays import BoolArray, FloatArray
from formulations.certificate import (
    GAP_TOLERANCE,
    NOT_CLOSED,
    ROUNDING,
    Certificate,
    SolverError,
    certify,
    clock,
    gap_tolerance,
)
from formulations.cone_solver import ATTEMPTS, WITH_VALUES, run, solver_version
from formulations.erm.dual_bound import prove_centred
from formulations.erm.optimality import optimality_residual, polish
from formulations.erm.risk import CentredRisk, EmpiricalRisk, centred, null_risk, residual_spread

Structure = Callable[[cp.Expression], tuple[cp.Expression, list[cp.Constraint]]]

# Penalties of |w| and w^2 above which coefficients are 0, in units of y and of the largest column.
LARGEST_L1, LARGEST_L2 = 1e4, 1e9
# The bound of a solver counts as accurate to this share of the objective or of the risk of the null model, and a smooth
# fit with a residual of the optimality conditions below it is returned even if its gap is not closed.
ACCURACY = GAP_TOLERANCE / 10.0
# A fit is returned with its gap, and not as optimal, if that is below this multiple of the tolerance up to rounding:
# three digits of the objective are then known.
NEARLY = 1000.0
# Status of a fit that meets the optimality conditions, or is perfect up to rounding, with a gap.
STATIONARY = "optimality conditions met, gap not closed"
# A coefficient that moves predictions by less than this share of the spread of y is set to 0.
ZERO_TOLERANCE = 1e-9


@dataclass(frozen=True)
class AdaptiveERM:
    """The program of the module for one set of rows.

    Attributes
    ----------
    risk : EmpiricalRisk
    u1, u2 : arrays of shape (p,)
        Weights of the penalty.
    structure : callable, optional
        Takes W as a cvxpy expression, returns (Omega(W), constraints).
    homogeneous : bool
        Whether Omega(c W) = c Omega(W) for c > 0, and c W is in C with W.
    scatter : csr_array of shape ((d + 1) K, p), optional
        Takes w to the entries of W, row by row; needed with a structure.
    shape : (d + 1, K), optional
    intercepts : bool array of shape (p,), optional
        Columns of the null model, whose risk is the scale of the tolerance; by default those without penalty.
    """

    risk: EmpiricalRisk
    u1: FloatArray
    u2: FloatArray
    structure: Structure | None = None
    homogeneous: bool = False
    scatter: sp.csr_array | None = None
    shape: tuple[int, int] | None = None
    intercepts: BoolArray | None = None

    @property
    def free(self) -> BoolArray:
        """Columns without penalty."""
        return np.asarray((self.u1 == 0) & (self.u2 == 0))


@dataclass(frozen=True)
class CompiledERM:
    """The cvxpy program in centred columns and in units of y: the variable is v / sigma, with w = restore(v).

    The objective is divided by ``factor``, with l(sigma y, sigma z) = factor l'(y, z). ``null`` is the risk of the null
    model.
    """

    erm: AdaptiveERM
    centred: CentredRisk
    problem: cp.Problem
    variable: cp.Variable
    a1: cp.Parameter
    a2: cp.Parameter
    link: cp.Constraint | None
    sigma: float
    factor: float
    nonneg: bool
    explained: bool
    null: float


def compile_erm(erm: AdaptiveERM) -> CompiledERM:
    """Compile the program of the module, to be solved for any penalties."""
    projected = centred(erm.risk, erm.free)
    risk = projected.risk
    spread = residual_spread(erm.risk, risk)
    sigma = spread or 1.0
    loss, factor = risk.loss.in_units(sigma)
    y = risk.y / sigma
    # far below 1 if most errors are in the linear part of Huber; all of it may be the constant part of compressed rows
    null = float(risk.q @ loss.value(y, np.zeros_like(y))) + risk.offset / factor
    small = np.exp2(np.round(np.log2(null))) if spread and 0.0 < null < 1e-3 else 1.0
    factor *= small

    v = cp.Variable(risk.A.shape[1], name="v")
    a1, a2 = (cp.Parameter(nonneg=True, name=name) for name in ("a1", "a2"))

    z: cp.Expression = risk.A @ v
    link, nonneg = None, True
    if not loss.smooth:  # the dual variable of z = A v is the theta of the dual bound
        predictions = cp.Variable(len(y), name="z")
        link = z == predictions
        z = predictions
    objective = loss.total(y, z, risk.q / small) + a1 * (erm.u1 @ cp.abs(v)) + a2 * (erm.u2 @ cp.square(v)) / 2
    constraints = [] if link is None else [link]
    if erm.structure is not None:
        assert erm.scatter is not None
        assert erm.shape is not None
        w_0 = np.zeros(len(erm.u1))
        w_0[erm.free] = projected.w0
        w = sigma * (projected.restoring_matrix() @ v) + w_0
        unit = float(np.sqrt(sigma) * np.sqrt(factor)) if erm.homogeneous else 1.0
        omega, in_class = erm.structure(cp.reshape(erm.scatter @ w / unit, erm.shape, order="C"))
        nonneg = bool(cp.Expression.cast_to_const(omega).is_nonneg())
        objective = objective + omega * (unit / factor)
        constraints += in_class
    problem = cp.Problem(cp.Minimize(objective), constraints)
    if not problem.is_dcp(dpp=True):
        raise ValueError("The structure of the adaptivity class is not convex by the rules of cvxpy (DCP, DPP).")
    scale = null_risk(erm.risk, erm.free if erm.intercepts is None else erm.intercepts)
    return CompiledERM(erm, projected, problem, v, a1, a2, link, sigma, factor, nonneg, spread == 0.0, scale)


def solve_erm(compiled: CompiledERM, a1: float, a2: float, solver: str = "CLARABEL") -> tuple[FloatArray, Certificate]:
    """Coefficients w for the penalties ``a1`` and ``a2``, and their certificate.

    Parameters
    ----------
    compiled : CompiledERM
    a1, a2 : float
        alpha lambda and (1 - alpha) lambda.
    solver : str
        Any convex solver that cvxpy has installed.

    Raises
    ------
    SolverError
        If the solver is not installed, or nothing that was tried could be certified.
    """
    if solver not in cp.installed_solvers():
        raise SolverError(f"The solver {solver} is not installed; cvxpy has {', '.join(cp.installed_solvers())} here.")
    start = clock()
    compiled, a1, a2, zero = _within_reach(compiled, a1, a2)
    compiled.a1.value = a1 * compiled.sigma / compiled.factor
    compiled.a2.value = a2 * compiled.sigma**2 / compiled.factor
    tried: dict[str, str] = {}
    nearly: list[tuple[float, FloatArray, Certificate]] = []
    for options in ATTEMPTS.get(solver, [{}]):
        status, unproven = run(compiled.problem, solver, options)
        if status in WITH_VALUES:
            found = _read_solution(compiled, a1, a2, zero, unproven)
            certificate = certify(
                found.objective, found.bound, found.tolerance, found.reason, solver, solver_version(solver), start,
                rigorous=compiled.erm.structure is None, dual=found.theta,
            )  # fmt: skip
            if found.accepted:
                return found.w, certificate
            if abs(found.objective - found.estimate) <= NEARLY * found.tolerance:
                nearly.append((certificate.gap, found.w, certificate))
            gap = f"objective {found.objective:.6g} and bound {found.estimate:.6g}"
            tried["gap"] = "an unknown gap" if np.isinf(found.estimate) else gap
        else:
            tried[status] = status
    if nearly:
        return min(nearly, key=lambda each: each[0])[1:]
    if cp.INFEASIBLE in tried and _contradictory(compiled.problem.constraints, solver):
        raise SolverError(
            "The constraints of the structure contradict each other, or the mask, outside of which W is 0: no "
            "coefficients satisfy them all."
        )
    ends = ", then ".join(tried.values())
    advice = "a more moderate lam" if compiled.erm.structure is None else "a more moderate lam or strength"
    raise SolverError(f"The program was not solved: {solver} ended with {ends}; try {advice}, or another solver.")


def _contradictory(constraints: list[cp.Constraint], solver: str) -> bool:
    """Whether the constraints cannot be satisfied, whatever the objective: that may have misled the solver."""
    status, _ = run(cp.Problem(cp.Minimize(0.0), constraints), solver, {})
    return bool(status == cp.INFEASIBLE)


def _within_reach(compiled: CompiledERM, a1: float, a2: float) -> tuple[CompiledERM, float, float, BoolArray]:
    """The program with penalties that a solver can take, its a1 and a2, and the coefficients that are 0.

    Gradients of the risk are at most 2 |a_k| in its units: a penalty that is larger by the factors here makes a
    coefficient 0, and a bound for smaller penalties holds. A structure may concern the free coefficients, for which
    another column can stand in: then a_k is that before the free columns are projected out.
    """
    erm, (unit1, unit2) = compiled.erm, (compiled.sigma / compiled.factor, compiled.sigma**2 / compiled.factor)
    risk = compiled.centred.risk if erm.structure is None else erm.risk
    size = max(1.0, float(np.sqrt(risk.column_squares().max(initial=0.0))))
    with np.errstate(over="ignore"):
        l1, l2 = a1 * erm.u1, a2 * erm.u2
    u1, u2 = np.minimum(l1, LARGEST_L1 * size / unit1), np.minimum(l2, LARGEST_L2 * size**2 / unit2)
    zero = np.asarray((u1 < l1) | (u2 < l2))
    return (compile_erm(replace(erm, u1=u1, u2=u2)), 1.0, 1.0, zero) if zero.any() else (compiled, a1, a2, zero)


class _Solution(NamedTuple):
    """Coefficients with objective, bound, the bound up to rounding, dual point, and whether they are good enough."""

    w: FloatArray
    objective: float
    bound: float
    estimate: float
    theta: FloatArray | None
    tolerance: float
    accepted: bool
    reason: str


def _read_solution(compiled: CompiledERM, a1: float, a2: float, zero: BoolArray, unproven: float) -> _Solution:
    """The solution of the last solve, proven independently of the solver if there is no structure."""
    erm, projected = compiled.erm, compiled.centred
    risk = projected.risk
    l1, l2 = a1 * erm.u1, a2 * erm.u2
    v = found = compiled.sigma * compiled.variable.value
    stationary = False
    if risk.loss.smooth and erm.structure is None:
        v = polish(risk, l1, l2, v)
        stationary = optimality_residual(risk, l1, l2, v) <= ACCURACY
    else:
        size = np.sqrt(risk.column_squares())
        if erm.structure is not None:  # it may need the coefficient of a column that is nearly 0 on these rows
            size = np.full_like(size, size.max(initial=0.0))
        v = np.where((np.abs(v) * size <= ZERO_TOLERANCE * compiled.sigma) & ~erm.free, 0.0, v)
    v = np.where(zero | (compiled.explained and erm.structure is None), 0.0, v)
    theta = None if compiled.link is None else compiled.link.dual_value * (compiled.factor / compiled.sigma)
    w = projected.restore(v)
    if erm.structure is not None:
        return _structured_solution(compiled, v, np.where(zero, 0.0, found), theta, unproven)
    proof = prove_centred(erm.risk, projected, l1, l2, w, theta)
    tolerance = gap_tolerance(proof.objective, compiled.null)
    closed = abs(proof.objective - proof.estimate) <= tolerance
    stationary = stationary and proof.estimate <= proof.objective + tolerance
    accepted = closed or stationary or _is_perfect(compiled, proof.objective)
    reason = ROUNDING if closed else STATIONARY if accepted else NOT_CLOSED
    return _Solution(w, proof.objective, proof.bound, proof.estimate, proof.theta, tolerance, accepted, reason)


def _structured_solution(
    compiled: CompiledERM, v: FloatArray, found: FloatArray, theta: FloatArray | None, unproven: float
) -> _Solution:
    """The solution with a structure on W: its bound is the dual objective of the solver, less its accuracy.

    The coefficients are v, or those found without small ones set to 0 if these matter to the structure, as they do to
    the free ones of columns far from 0. If no other variable is needed, v = 0 is taken where it is better.
    """
    risk = compiled.centred.risk
    bound = compiled.factor * (compiled.problem.value - unproven) + risk.offset
    compiled.variable.value = found / compiled.sigma
    as_found, allowed = _value(compiled)
    compiled.variable.value = v / compiled.sigma
    objective, feasible = _value(compiled)
    if allowed and not (feasible and objective <= as_found + gap_tolerance(as_found, compiled.null)):
        v, objective, feasible = found, as_found, True
    for variable in compiled.problem.variables():
        variable.value = np.zeros(variable.shape)
    at_zero, allowed = _value(compiled)
    if allowed and (at_zero <= objective or not feasible):
        v, objective, feasible = np.zeros_like(v), at_zero, True
    bound = bound - ACCURACY * max(abs(objective), compiled.null) if feasible else -np.inf
    if theta is None:
        theta = risk.q * risk.loss.derivative(risk.y, risk.A @ v)
    if compiled.nonneg:
        bound = max(bound, 0.0)
    tolerance = gap_tolerance(objective, compiled.null)
    accepted = abs(objective - bound) <= tolerance or _is_perfect(compiled, objective)
    w = compiled.centred.restore(v)
    return _Solution(w, objective, bound, bound, theta, tolerance, accepted, NOT_CLOSED)


def _value(compiled: CompiledERM) -> tuple[float, bool]:
    """The objective at the values of the variables, and whether these satisfy the constraints."""
    value = compiled.factor * float(compiled.problem.objective.value) + compiled.centred.risk.offset
    constraints = compiled.problem.constraints
    return value, all(np.max(c.violation(), initial=0.0) <= GAP_TOLERANCE for c in constraints)


def _is_perfect(compiled: CompiledERM, objective: float) -> bool:
    """Whether free columns explain y up to rounding, and an objective is at most that of errors of ACCURACY of y."""
    risk = compiled.erm.risk
    error = ACCURACY * (np.abs(risk.y).max() or 1.0)
    return compiled.explained and objective <= float(risk.q @ risk.loss.value(risk.y, risk.y + error))
