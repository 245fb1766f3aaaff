"""The penalised empirical risk of an adaptive linear model (Sections 2.1 and 2.4 of the paper), as one cvxpy program.

Data
    A in R^{n x p}            design: column (j, k) is x_j (1 - m_j) phi_k(m), with x_0 = 1 for the intercept
    y in R^n, s in R^n_+      target and sample weights, S = sum_i s_i, q_i = s_i / S
    l                         a convex loss
    free                      the columns without penalty (the intercept)
Parameters
    l1_k = alpha lambda_k,  l2_k = (1 - alpha) lambda_k       (0 for the free columns)
Variables
    w in R^p                  the coefficients, as a matrix W in R^{(d + 1) x K}: W_jk is that of column (j, k), else 0
Objective
    minimise  (1/S) sum_i s_i l(y_i, a_i' w)  +  sum_k [ l1_k |w_k| + l2_k w_k^2 / 2 ]  +  Omega(W)
Constraints
    W in C

Omega and C are the structure of an adaptivity class; the classes of the paper have none. The program is compiled once
(it is DPP in l1 and l2) and solved again for new penalties.

The squared loss has no 1/2. In the terms of glmnet, which minimises 1/(2n) |y - A w|^2 + lambda_g sum_k v_k [..] for
squared loss and the mean of the logistic loss plus the same penalty, with penalty factors v_k rescaled to sum to p:

    squared   lambda_g v_k = lambda_k / 2          logistic   lambda_g v_k = lambda_k
"""

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

import cvxpy as cp
import numpy as np
import scipy.sparse as sp

from formulations.certificate import Certificate
from formulations.losses import Array, BoolArray
from formulations.optimality import dual_bound, optimality_residual, polish
from formulations.risk import EmpiricalRisk

Structure = Callable[[cp.Expression], tuple[cp.Expression, list[cp.Constraint]]]

# Tolerances that are tried in turn: an interior-point method may stall at the tightest.
CLARABEL_TOLERANCES = (1e-12, 1e-9)
# What is accepted as solved: the relative gap, or for smooth losses the residual of the optimality conditions.
GAP_TOLERANCE = 1e-6
RESIDUAL_TOLERANCE = 1e-7


class SolverError(RuntimeError):
    """No solver returned a solution that could be certified."""


@dataclass(frozen=True)
class AdaptiveERM:
    """The program of the module for one set of rows.

    Attributes
    ----------
    risk : EmpiricalRisk
    free : bool array of shape (p,)
        Columns that are never penalised.
    structure : callable, optional
        Takes W as a cvxpy expression, returns (Omega(W), constraints).
    scatter : csr_array of shape ((d + 1) K, p), optional
        Takes w to the entries of W, row by row; needed with a structure.
    shape : (d + 1, K), optional
    """

    risk: EmpiricalRisk
    free: BoolArray
    structure: Structure | None = None
    scatter: sp.csr_array | None = None
    shape: tuple[int, int] | None = None


@dataclass(frozen=True)
class CompiledERM:
    """The cvxpy program in the units of its null model: w = start + sigma v, where v is the variable.

    ``start`` fits the free columns alone, and sigma is the size of what that leaves of y. The objective is divided by
    ``factor``, with l(sigma y, sigma z) = factor l'(y, z).
    """

    erm: AdaptiveERM
    problem: cp.Problem
    v: cp.Variable
    l1: cp.Parameter
    l2: cp.Parameter
    link: cp.Constraint | None
    start: Array
    sigma: float
    factor: float


def compile_erm(erm: AdaptiveERM) -> CompiledERM:
    """The program of the module, ready to be solved for any penalties."""
    risk = erm.risk
    p = risk.A.shape[1]
    start, sigma = _null_model(risk, erm.free)
    loss, factor = risk.loss.in_units(sigma)
    y = (risk.y - risk.A @ start) / sigma if risk.loss.task == "regression" else risk.y

    v = cp.Variable(p, name="v")
    l1 = cp.Parameter(p, nonneg=True, name="l1")
    l2 = cp.Parameter(p, nonneg=True, name="l2")

    link = None
    z: cp.Expression = risk.A @ v
    if not loss.smooth:  # the dual variable of z = A v is the theta of the dual bound
        predictions = cp.Variable(len(y), name="z")
        link = z == predictions
        z = predictions
    objective = loss.total(y, z, risk.q) + l1 @ cp.abs(v) + cp.sum(cp.multiply(l2, cp.square(v))) / 2
    constraints = [] if link is None else [link]
    if erm.structure is not None:
        assert erm.scatter is not None
        assert erm.shape is not None
        W = cp.reshape(erm.scatter @ (start + sigma * v), erm.shape, order="C")
        omega, in_class = erm.structure(W)
        objective = objective + omega / factor
        constraints += in_class
    problem = cp.Problem(cp.Minimize(objective), constraints)
    if not problem.is_dcp(dpp=True):
        raise ValueError("The structure of the adaptivity class is not convex by the rules of cvxpy (DCP, DPP).")
    return CompiledERM(erm, problem, v, l1, l2, link, start, sigma, factor)


def _null_model(risk: EmpiricalRisk, free: BoolArray) -> tuple[Array, float]:
    """The least-squares fit of the free columns, and the root mean square of what it leaves of y."""
    start = np.zeros(risk.A.shape[1])
    if risk.loss.task != "regression":
        return start, 1.0
    root = np.sqrt(risk.q)
    part = risk.A[:, free]
    if sp.issparse(part):
        start[free] = sp.linalg.lsqr(sp.diags_array(root) @ part, root * risk.y, atol=1e-14, btol=1e-14)[0]
    else:
        start[free] = np.linalg.lstsq(root[:, None] * part, root * risk.y, rcond=None)[0]
    left = float(np.linalg.norm(root * (risk.y - risk.A @ start)))
    floor = 1e-13 * float(np.linalg.norm(root * risk.y))
    return start, (left if left > floor else 1.0)


def solve_erm(compiled: CompiledERM, l1: Array, l2: Array, solver: str = "CLARABEL") -> tuple[Array, Certificate]:
    """Coefficients w for the penalties ``l1`` and ``l2``, and their certificate.

    Parameters
    ----------
    compiled : CompiledERM
    l1, l2 : arrays of shape (p,)
        Weights of |w_k| and w_k^2 / 2.
    solver : str
        Any convex solver that cvxpy has installed.

    Raises
    ------
    SolverError
        If the solver is not installed, or nothing that was tried could be certified.
    """
    if solver not in cp.installed_solvers():
        raise SolverError(f"The solver {solver} is not installed; cvxpy has {', '.join(cp.installed_solvers())} here.")
    began = time.perf_counter()
    compiled.l1.value = l1 * compiled.sigma / compiled.factor
    compiled.l2.value = l2 * compiled.sigma**2 / compiled.factor
    tried = []
    for options in _solver_options(solver):
        status, unproven = _run(compiled.problem, solver, options)
        if status in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE):
            w, objective, bound, residual = _certify(compiled, l1, l2, unproven)
            seconds = time.perf_counter() - began
            certificate = Certificate(objective, bound, "optimal", solver, _solver_version(solver), seconds)
            small_gap = certificate.gap <= GAP_TOLERANCE * max(abs(objective), compiled.factor)
            if residual <= RESIDUAL_TOLERANCE or small_gap:
                return w, certificate
            status = f"a relative gap of {certificate.relative_gap:.1e}"
        tried.append(f"{solver} {options or ''}".strip() + f" ended with {status}")
    raise SolverError(f"The program was not solved: {'; '.join(tried)}. Try a larger lam, or another solver.")


def _solver_version(solver: str) -> str:
    try:
        return version({"HIGHS": "highspy"}.get(solver, solver.lower()))
    except PackageNotFoundError:
        return f"of cvxpy {version('cvxpy')}"


def _solver_options(solver: str) -> list[dict[str, float]]:
    if solver == "CLARABEL":
        return [{"tol_gap_abs": t, "tol_gap_rel": t, "tol_feas": t} for t in CLARABEL_TOLERANCES]
    if solver == "OSQP":
        return [{"eps_abs": 1e-10, "eps_rel": 1e-10, "max_iter": 200_000}]
    return [{}]


def _run(problem: cp.Problem, solver: str, options: dict[str, float]) -> tuple[str, float]:
    """Status of a solve, and the solver's own gap between primal and dual where it tells it (else infinite)."""
    data, chain, inverse = problem.get_problem_data(solver, solver_opts=options)
    try:
        raw = chain.solve_via_data(problem, data, warm_start=False, verbose=False, solver_opts=options)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # inaccuracy is judged by the certificate
            problem.unpack_results(raw, chain, inverse)
    except cp.error.SolverError as error:
        return f"an error ({error})", np.inf
    primal, dual = getattr(raw, "obj_val", np.inf), getattr(raw, "obj_val_dual", -np.inf)
    return problem.status, abs(primal - dual)


def _certify(compiled: CompiledERM, l1: Array, l2: Array, unproven: float) -> tuple[Array, float, float, float]:
    """Coefficients in the units of y, objective, bound, and residual of the optimality conditions."""
    erm, risk = compiled.erm, compiled.erm.risk
    w = compiled.start + compiled.sigma * compiled.v.value
    if erm.structure is not None:
        objective = compiled.factor * float(compiled.problem.value) + risk.offset
        return w, objective, objective - compiled.factor * unproven, np.inf
    if risk.loss.smooth:
        w = polish(risk, l1, l2, w)
        theta = risk.q * risk.loss.derivative(risk.y, risk.A @ w)
        residual = optimality_residual(risk, l1, l2, w)
    else:
        assert compiled.link is not None
        theta = compiled.link.dual_value * (compiled.factor / compiled.sigma)
        residual = np.inf
    objective = risk.value(w) + float(l1 @ np.abs(w) + l2 @ w**2 / 2)
    return w, objective, dual_bound(risk, l1, l2, theta), residual
