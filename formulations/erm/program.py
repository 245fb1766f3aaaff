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
Omega and C are the structure of an adaptivity class; the classes of the paper have none. :func:`compile_erm` returns
the program as a ``cvxpy.Problem`` that can be read, changed and given to any solver. It is DPP in a1 and a2: compiled
once, it is solved again for new penalties. Its variable is v / sigma, with v the coefficients of the columns from which
the free ones are projected out (see ``risk``) and sigma the unit of the residual that these leave of y. Offsets and
units of the data then do not matter to a solver, and w is an affine expression of the variable.

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
from formulations.cone_solver import ATTEMPTS, CANNOT_SOLVE, WITH_VALUES, run, solver_version
from formulations.erm.dual_bound import prove_centred
from formulations.erm.optimality import optimality_residual, polish
from formulations.erm.risk import ZERO_TOLERANCE, CentredRisk, EmpiricalRisk, centred, null_risk, residual_spread
from formulations.log_link import LogLink

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
    """The program of the module in cvxpy.

    Attributes
    ----------
    erm : AdaptiveERM
    problem : cvxpy.Problem
        The program as it is stated: minimise risk + penalty + Omega over W in C.
    risk, penalty : cvxpy.Expression
    w : cvxpy.Expression of shape (p,)
        The coefficients, affine in ``variable``.
    variable : cvxpy.Variable of shape (p,)
        v / sigma, with w = restore(v).
    a1, a2 : cvxpy.Parameter
    solved : cvxpy.Problem
        The same program without constants, divided by ``factor``. A loss that is not smooth has the predictions z as
        variables there, since the multiplier of ``link``, z = A v, is the theta of the dual bound.
    link : cvxpy.Constraint, optional
    centred : CentredRisk
    sigma, factor : float
        Units: l(sigma y, sigma z) = factor l'(y, z).
    nonneg : bool
        Whether Omega is known to be non-negative.
    explained : bool
        Whether the free columns explain y.
    null : float
        Risk of the null model.
    """

    erm: AdaptiveERM
    problem: cp.Problem
    risk: cp.Expression
    penalty: cp.Expression
    w: cp.Expression
    variable: cp.Variable
    a1: cp.Parameter
    a2: cp.Parameter
    solved: cp.Problem
    link: cp.Constraint | None
    centred: CentredRisk
    sigma: float
    factor: float
    nonneg: bool
    explained: bool
    null: float


def compile_erm(erm: AdaptiveERM, a1: cp.Parameter | None = None, a2: cp.Parameter | None = None) -> CompiledERM:
    """The program of the module, to be solved for any penalties.

    Parameters
    ----------
    erm : AdaptiveERM
    a1, a2 : cvxpy.Parameter, optional
        If the loss is piecewise linear and ``a2`` is given with the value 0, or u2 = 0, the quadratic part of the
        penalty is left out: the program is linear then.

    Examples
    --------
    >>> from formulations.losses import Squared
    >>> A, y = np.array([[1.0, 0.0], [1.0, 2.0]]), np.array([1.0, 2.0])
    >>> u = np.array([0.0, 1.0])  # the first column is an intercept
    >>> compiled = compile_erm(AdaptiveERM(EmpiricalRisk(A, y, np.array([0.5, 0.5]), Squared()), u, u))
    >>> compiled.a1.value, compiled.a2.value = 0.0, 0.5
    >>> less_than = cp.Problem(cp.Minimize(0), [compiled.w[1] <= 0.1])  # a constraint of one's own
    >>> _ = (compiled.problem + less_than).solve(solver="CLARABEL")
    >>> compiled.w.value.round(6).tolist()
    [1.4, 0.1]
    """
    projected = centred(erm.risk, erm.free)
    risk = projected.risk
    spread = residual_spread(erm.risk, risk)
    sigma = spread or 1.0
    loss, factor = risk.loss.in_units(sigma)
    y = risk.y / sigma
    # far below 1 if most errors are in the linear part of Huber; all of it may be the constant part of compressed rows
    null = float(risk.q @ loss.value(y, np.zeros_like(y))) + risk.offset / factor
    is_small = 0.0 < null < (np.inf if isinstance(loss, LogLink) else 1e-3)
    small = np.exp2(np.round(np.log2(null))) if spread and is_small else 1.0
    factor *= small

    v = cp.Variable(risk.A.shape[1], name="v")
    a1 = cp.Parameter(nonneg=True, name="a1") if a1 is None else a1
    a2 = cp.Parameter(nonneg=True, name="a2") if a2 is None else a2
    w_0 = np.zeros(len(erm.u1))
    w_0[erm.free] = projected.w0
    w = sigma * (projected.restoring_matrix() @ v) + w_0

    # cvxpy derives wrong limits of expressions from entries of 0 in dense matrices, and hands them to some solvers.
    A = sp.csr_array(risk.A)
    l1, l2 = np.flatnonzero(erm.u1), np.flatnonzero(erm.u2)
    in_units = loss.total(y, A @ v, risk.q / small)
    penalty = a1 * (sigma / factor * erm.u1[l1] @ cp.abs(v[l1]))
    if loss.smooth or (a2.value != 0.0 and np.any(erm.u2)):
        penalty = penalty + a2 * (sigma**2 / factor * erm.u2[l2] @ cp.square(v[l2])) / 2
    omega = cp.Constant(0.0)
    constraints: list[cp.Constraint] = []
    unit = 1.0
    if erm.structure is not None:
        assert erm.scatter is not None
        assert erm.shape is not None
        unit = float(np.sqrt(sigma) * np.sqrt(factor)) if erm.homogeneous else 1.0
        omega, constraints = erm.structure(cp.reshape(erm.scatter @ w / unit, erm.shape, order="C"))
        omega = cp.Expression.cast_to_const(omega)
    structure = [] if erm.structure is None else [omega]
    total = factor * in_units + risk.offset
    stated = sum((unit * term for term in structure), total + factor * penalty)
    problem = cp.Problem(cp.Minimize(stated), constraints)
    if not problem.is_dcp(dpp=True):
        raise ValueError("The structure of the adaptivity class is not convex by the rules of cvxpy (DCP, DPP).")

    link, linked = None, constraints
    if not loss.smooth:
        z = cp.Variable(len(y), name="z")
        link = A @ v == z
        linked = [link, *constraints]
    of_solver = in_units if link is None else loss.total(y, z, risk.q / small)
    solved = cp.Problem(cp.Minimize(sum((unit / factor * term for term in structure), of_solver + penalty)), linked)
    return CompiledERM(
        erm=erm,
        problem=problem,
        risk=total,
        penalty=factor * penalty,
        w=w,
        variable=v,
        a1=a1,
        a2=a2,
        solved=solved,
        link=link,
        centred=projected,
        sigma=sigma,
        factor=factor,
        nonneg=omega.is_nonneg(),
        explained=spread == 0.0,
        null=null_risk(erm.risk, erm.free if erm.intercepts is None else erm.intercepts),
    )


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
    compiled.a1.value, compiled.a2.value = a1, a2
    tried: dict[str, str] = {}
    nearly: list[tuple[float, FloatArray, Certificate]] = []
    for options in ATTEMPTS.get(solver, [{}]):
        status, unproven = run(compiled.solved, solver, options)
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
    if cp.INFEASIBLE in tried and _contradictory(compiled.solved.constraints, solver):
        raise SolverError(
            "The constraints of the structure contradict each other, or the mask, outside of which W is 0: no "
            "coefficients satisfy them all."
        )
    if CANNOT_SOLVE in tried:
        raise SolverError(f"{solver} takes no programs of this kind (cones or integers): use CLARABEL.")
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
    bound = compiled.factor * (compiled.solved.value - unproven) + risk.offset
    compiled.variable.value = found / compiled.sigma
    as_found, allowed = _value(compiled)
    compiled.variable.value = v / compiled.sigma
    objective, feasible = _value(compiled)
    if allowed and not (feasible and objective <= as_found + gap_tolerance(as_found, compiled.null)):
        v, objective, feasible = found, as_found, True
    for variable in compiled.solved.variables():
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
    value = compiled.factor * float(compiled.solved.objective.value) + compiled.centred.risk.offset
    constraints = compiled.solved.constraints
    return value, all(np.max(c.violation(), initial=0.0) <= GAP_TOLERANCE for c in constraints)


def _is_perfect(compiled: CompiledERM, objective: float) -> bool:
    """Whether free columns explain y up to rounding, and an objective is at most that of errors of ACCURACY of y."""
    risk = compiled.erm.risk
    error = ACCURACY * (np.abs(risk.y).max() or 1.0)
    return compiled.explained and objective <= float(risk.q @ risk.loss.value(risk.y, risk.y + error))
