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

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import NamedTuple

import cvxpy as cp
import numpy as np
import scipy.sparse as sp

from formulations.arrays import BoolArray, FloatArray
from formulations.certificate import Certificate, SolverError, certify
from formulations.erm.dual_bound import Rows, gap_tolerance, prove, risk_of_rounding
from formulations.erm.optimality import optimality_residual, polish
from formulations.erm.risk import CentredRisk, EmpiricalRisk, centred

Structure = Callable[[cp.Expression], tuple[cp.Expression, list[cp.Constraint]]]

# Options tried in turn: an interior-point method may stall at the tightest tolerance, or give up after short steps.
SHORT_STEPS = {"min_switch_step_length": 1e-2, "min_terminate_step_length": 1e-6}
SOLVER_OPTIONS: dict[str, list[dict[str, float]]] = {
    "CLARABEL": [
        {"tol_gap_abs": t, "tol_gap_rel": t, "tol_feas": t, **steps}
        for t, steps in ((1e-12, {}), (1e-9, {}), (1e-9, SHORT_STEPS))
    ],
    "OSQP": [{"eps_abs": 1e-10, "eps_rel": 1e-10, "max_iter": 200_000}],
    "SCS": [{"eps_abs": 1e-9, "eps_rel": 1e-9, "max_iters": 200_000}],
    "HIGHS": [{"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}],
}
# The bound of a solver counts as accurate to this share of the objective or of the risk of the null model.
SOLVER_ACCURACY = 1e-7
# Residual of the optimality conditions below which a smooth fit is returned even if its gap is not closed.
RESIDUAL_TOLERANCE = 1e-7
# A coefficient that moves predictions by less than this share of the spread of y is set to 0.
ZERO_TOLERANCE = 1e-9
# Largest violation allowed in the constraints of a structure.
FEASIBILITY_TOLERANCE = 1e-6


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
    scatter : csr_array of shape ((d + 1) K, p), optional
        Takes w to the entries of W, row by row; needed with a structure.
    shape : (d + 1, K), optional
    """

    risk: EmpiricalRisk
    u1: FloatArray
    u2: FloatArray
    structure: Structure | None = None
    scatter: sp.csr_array | None = None
    shape: tuple[int, int] | None = None

    @property
    def free(self) -> BoolArray:
        """Columns without penalty."""
        return np.asarray((self.u1 == 0) & (self.u2 == 0))


@dataclass(frozen=True)
class CompiledERM:
    """The cvxpy program in centred columns and in units of y: the variable is v / sigma, with w = restore(v).

    The objective is divided by ``factor``, with l(sigma y, sigma z) = factor l'(y, z).
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


def compile_erm(erm: AdaptiveERM) -> CompiledERM:
    """Compile the program of the module, to be solved for any penalties."""
    projected = centred(erm.risk, erm.free)
    risk = projected.risk
    sigma = _spread(erm.risk, risk)
    loss, factor = risk.loss.in_units(sigma)
    y = risk.y / sigma

    v = cp.Variable(risk.A.shape[1], name="v")
    a1 = cp.Parameter(nonneg=True, name="a1")
    a2 = cp.Parameter(nonneg=True, name="a2")

    z: cp.Expression = risk.A @ v
    link = None
    if not loss.smooth:  # the dual variable of z = A v is the theta of the dual bound
        predictions = cp.Variable(len(y), name="z")
        link = z == predictions
        z = predictions
    objective = loss.total(y, z, risk.q) + a1 * (erm.u1 @ cp.abs(v)) + a2 * (erm.u2 @ cp.square(v)) / 2
    constraints = [] if link is None else [link]
    if erm.structure is not None:
        assert erm.scatter is not None
        assert erm.shape is not None
        w_0 = np.zeros(len(erm.u1))
        w_0[erm.free] = projected.w0
        w = sigma * (projected.restoring_matrix() @ v) + w_0
        W = cp.reshape(erm.scatter @ w, erm.shape, order="C")
        omega, in_class = erm.structure(W)
        objective = objective + omega / factor
        constraints += in_class
    problem = cp.Problem(cp.Minimize(objective), constraints)
    if not problem.is_dcp(dpp=True):
        raise ValueError("The structure of the adaptivity class is not convex by the rules of cvxpy (DCP, DPP).")
    return CompiledERM(erm, projected, problem, v, a1, a2, link, sigma, factor)


def _spread(original: EmpiricalRisk, centred: EmpiricalRisk) -> float:
    """Root mean square of the residual of y on the free columns; 1 in classification, or if that is rounding."""
    if original.loss.task != "regression":
        return 1.0
    size, left = (float(np.sqrt(risk.q @ risk.y**2 + risk.offset)) for risk in (original, centred))
    return left if left > 1e-13 * size else 1.0


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
    start = time.perf_counter()
    compiled.a1.value = a1 * compiled.sigma / compiled.factor
    compiled.a2.value = a2 * compiled.sigma**2 / compiled.factor
    tried = []
    for options in SOLVER_OPTIONS.get(solver, [{}]):
        status, unproven = _run(compiled.problem, solver, options)
        if status in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE):
            found = _read_solution(compiled, a1, a2, unproven)
            certificate = certify(
                found.objective, found.bound, found.tolerance, found.reason, solver, _solver_version(solver), start,
                rigorous=compiled.erm.structure is None, dual=found.theta,
            )  # fmt: skip
            if found.accepted:
                return found.w, certificate
            bound = found.estimate
            status = "an unknown gap" if np.isinf(bound) else f"objective {found.objective:.6g} and bound {bound:.6g}"
        tried.append(f"{solver} {options or ''}".strip() + f" ended with {status}")
    raise SolverError(f"The program was not solved: {'; '.join(tried)}. Try another solver or a more moderate lam.")


def _solver_version(solver: str) -> str:
    try:
        return version({"HIGHS": "highspy"}.get(solver, solver.lower()))
    except PackageNotFoundError:
        return f"of cvxpy {version('cvxpy')}"


def _run(problem: cp.Problem, solver: str, options: dict[str, float]) -> tuple[str, float]:
    """Status of a solve, and the solver's own gap between primal and dual (infinite if it reports none)."""
    try:
        data, chain, inverse = problem.get_problem_data(solver, solver_opts=options)
        raw = chain.solve_via_data(problem, data, warm_start=False, verbose=False, solver_opts=options)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # inaccuracy is judged by the certificate
            problem.unpack_results(raw, chain, inverse)
    except cp.error.SolverError as error:
        return f"an error ({error})", np.inf
    primal, dual = getattr(raw, "obj_val", np.inf), getattr(raw, "obj_val_dual", -np.inf)
    return problem.status, abs(primal - dual)


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


def _read_solution(compiled: CompiledERM, a1: float, a2: float, unproven: float) -> _Solution:
    """The solution of the last solve, proven independently of the solver if there is no structure."""
    erm, projected = compiled.erm, compiled.centred
    risk = projected.risk
    l1, l2 = a1 * erm.u1, a2 * erm.u2
    v = compiled.sigma * compiled.variable.value
    stationary = False
    if risk.loss.smooth and erm.structure is None:
        v = polish(risk, l1, l2, v)
        stationary = optimality_residual(risk, l1, l2, v) <= RESIDUAL_TOLERANCE
    else:
        size = np.sqrt(risk.column_squares())
        if erm.structure is not None:  # it may need the coefficient of a column that is nearly 0 on these rows
            size = np.full_like(size, size.max(initial=0.0))
        v = np.where((np.abs(v) * size <= ZERO_TOLERANCE * compiled.sigma) & ~erm.free, 0.0, v)
    theta = None if compiled.link is None else compiled.link.dual_value * (compiled.factor / compiled.sigma)
    null = risk.value(np.zeros_like(v)) + risk_of_rounding(risk.loss, erm.risk.y, erm.risk.q)
    w = projected.restore(v)
    if erm.structure is not None:
        return _structured_solution(compiled, v, theta, unproven, null)
    rows = Rows.centred(erm.risk, projected)
    if rows is None:
        proof = prove(Rows.of(erm.risk), l1, l2, w, theta)
    else:
        proof = prove(rows, l1, l2, v, theta, rows.drift(projected.C, projected.w0, v, w))
    tolerance = gap_tolerance(proof.objective, null)
    closed = abs(proof.objective - proof.estimate) <= tolerance
    accepted = closed or (stationary and proof.estimate <= proof.objective + tolerance)
    reason = "rounding errors exceed the tolerance" if closed else "optimality conditions met, gap not closed"
    return _Solution(w, proof.objective, proof.bound, proof.estimate, proof.theta, tolerance, accepted, reason)


def _structured_solution(
    compiled: CompiledERM, v: FloatArray, theta: FloatArray | None, unproven: float, null: float
) -> _Solution:
    """The solution with a structure on W: its bound is the dual objective of the solver, less its accuracy."""
    risk = compiled.centred.risk
    bound = compiled.factor * (compiled.problem.value - unproven) + risk.offset
    compiled.variable.value = v / compiled.sigma
    objective = compiled.factor * float(compiled.problem.objective.value) + risk.offset
    feasible = all(np.max(c.violation(), initial=0.0) <= FEASIBILITY_TOLERANCE for c in compiled.problem.constraints)
    bound = bound - SOLVER_ACCURACY * max(abs(objective), null) if feasible else -np.inf
    if theta is None:
        theta = risk.q * risk.loss.derivative(risk.y, risk.A @ v)
    tolerance = gap_tolerance(objective, null)
    accepted = abs(objective - bound) <= tolerance
    w = compiled.centred.restore(v)
    return _Solution(w, objective, bound, bound, theta, tolerance, accepted, "gap not closed")
