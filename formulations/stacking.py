"""Convex weights for the predictions of several models, shrunk towards equal ones, as a cvxpy program.

Data
    Z in R^{n x K}            held-out predictions of K models for n rows (in classification, one row per row and class)
    y in R^n, s in R^n_+      targets and weights of the rows, q_i = s_i / sum s
    rho >= 0                  strength of the shrinkage, in the units of y^2
Variables
    w in R^K                  weights of the models
Objective
    minimise  sum_i q_i (y_i - z_i'w)^2  +  rho sum_k (w_k - 1/K)^2
Constraints
    w >= 0,  sum_k w_k = 1

Stacking with non-negative weights that sum to 1 is due to Breiman (1996): rho = 0; rho -> infinity is the plain
average. The bound of the certificate is that of Frank and Wolfe (1956): for a convex f over the simplex,
min f >= f(w) - (g'w - min_k g_k) with the gradient g of f at any w. It is corrected for rounding: the product of the
errors of models k and l is off by at most gamma(n) e_k e_l, where e_k is the root mean square error of model k
(:func:`formulations.rounding.gamma`). The weights are optimal if the gap is below 1e-6 of the objective of the
plain average, or of the best single model if that is smaller. The solution of an interior-point method is polished by
an active-set method, since the error of a bad model may be larger than that of the others by many orders.
"""

import warnings
from dataclasses import dataclass
from importlib.metadata import version

import cvxpy as cp
import numpy as np

from formulations.arrays import FloatArray
from formulations.certificate import GAP_TOLERANCE, ROUNDING, Certificate, SolverError, certify, clock
from formulations.rounding import UNIT, gamma

# Accuracy asked of the solver; the polish starts from what it reaches.
TOLERANCE = 1e-12
# Weights below this are set to 0, where the polish starts; it may raise them again.
SMALLEST_WEIGHT = 1e-8
# With a shrinkage above this multiple of the risk at equal weights, all weights are positive.
STRONG = 1e3


@dataclass(frozen=True)
class StackingProblem:
    """The program of the module in sufficient statistics.

    Attributes
    ----------
    errors : array of shape (K, K)
        sum_i q_i e_i e_i' with e_i = y_i - z_i: on the simplex the risk of w is w' errors w.
    rho : float
    n_rows : int
        n, for the rounding of the sums.
    """

    errors: FloatArray
    rho: float
    n_rows: int

    @classmethod
    def of(cls, Z: FloatArray, y: FloatArray, weights: FloatArray, rho: float) -> "StackingProblem":
        """The problem for given predictions, targets and row weights."""
        E = (y[:, None] - Z) * np.sqrt(weights / weights.sum())[:, None]
        return cls(E.T @ E, rho, len(y))

    def objective(self, w: FloatArray) -> float:
        """The objective at weights that sum to 1."""
        return float(w @ self.errors @ w + self.rho * np.sum((w - 1 / len(w)) ** 2))

    def gradient(self, w: FloatArray) -> FloatArray:
        """Gradient of the objective."""
        return 2 * (self.errors @ w + self.rho * (w - 1 / len(w)))

    def gap(self, w: FloatArray) -> float:
        """Objective minus the bound of Frank and Wolfe, up to rounding."""
        slope = self.gradient(w)
        return float(slope @ w - slope.min())


def stacking_program(problem: StackingProblem) -> tuple[cp.Problem, cp.Variable]:
    """The program and its variable w."""
    K = len(problem.errors)
    unit = max(problem.objective(np.full(K, 1 / K)), np.finfo(float).tiny)
    w = cp.Variable(K, name="w", nonneg=True)
    risk = cp.quad_form(w, cp.psd_wrap(problem.errors / unit))
    shrinkage = (problem.rho / unit) * cp.sum_squares(w - 1 / K)
    return cp.Problem(cp.Minimize(risk + shrinkage), [cp.sum(w) == 1]), w


def stacking_weights(problem: StackingProblem) -> tuple[FloatArray, Certificate]:
    """The optimal weights and their certificate.

    Raises
    ------
    SolverError
        If the solver ends without weights whose gap is closed.
    """
    start = clock()
    K = len(problem.errors)
    equal = np.full(K, 1 / K)
    unit = problem.objective(equal)
    if not np.isfinite(unit):
        raise SolverError("The errors of the models are too large, NaN or infinite: check their predictions.")
    if problem.rho > STRONG * unit:
        return _nearly_equal(problem, start)
    program, variable = stacking_program(problem)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # inaccuracy is judged by the certificate
            program.solve(solver="CLARABEL", tol_gap_abs=TOLERANCE, tol_gap_rel=TOLERANCE, tol_feas=TOLERANCE)
    except cp.error.SolverError as error:
        raise SolverError(f"The weights of the stack were not found: {error}.") from error
    if variable.value is None:
        raise SolverError(f"The weights of the stack were not found: the solver ended with {program.status}.")
    w = np.where(variable.value > SMALLEST_WEIGHT, variable.value, 0.0)
    w = min((w / w.sum(), _polished(problem, w / w.sum())), key=problem.gap)
    return w, _certified(problem, w, w - equal, UNIT, unit, "CLARABEL", version("clarabel"), start)


def _polished(problem: StackingProblem, w: FloatArray) -> FloatArray:
    """Weights from a primal active-set method that starts at w."""
    K = len(w)
    H = problem.errors + problem.rho * np.eye(K)
    size = np.sqrt(np.maximum(np.diag(H), np.finfo(float).tiny))
    support = w > 0
    for _ in range(4 * K):
        k = np.flatnonzero(support)
        # H x = nu 1, 1'x = 1 on the support, up to a factor, in units of the errors
        x = np.linalg.lstsq(H[np.ix_(k, k)] / np.outer(size[k], size[k]), 1.0 / size[k], rcond=None)[0] / size[k]
        if not x.sum() > 0:
            return w
        target = np.zeros(K)
        target[k] = x / x.sum()
        falling = target < 0
        if falling.any():
            share = float(np.min(w[falling] / (w[falling] - target[falling])))
            w = np.maximum(w + share * (target - w), 0.0)
            support &= ~(falling & (w <= 1e-12 * w.max()))
            w = np.where(support, w, 0.0) / w[support].sum()
            continue
        w = target
        slope = problem.gradient(w)
        entering = int(np.argmin(np.where(support, np.inf, slope)))
        if support.all() or slope[entering] >= slope @ w:
            return w
        support[entering] = True
    return w


def _nearly_equal(problem: StackingProblem, start: float) -> tuple[FloatArray, Certificate]:
    """Weights 1/K + v if the shrinkage is so strong that the rest is below the tolerance of a solver.

    With all weights positive, v solves (errors + rho I) v = nu 1 - errors 1/K, 1'v = 0. The gradient is computed from
    v, since w - 1/K would lose its digits.
    """
    K = len(problem.errors)
    equal = np.full(K, 1 / K)
    system = problem.errors + problem.rho * np.eye(K)
    free, towards = np.linalg.solve(system, np.column_stack([-problem.errors @ equal, np.ones(K)])).T
    v = free - towards * (free.sum() / towards.sum())
    w = equal + v
    return w, _certified(problem, w, v, 0.0, problem.objective(equal), "linear system", "", start)


def _certified(
    problem: StackingProblem,
    w: FloatArray,
    v: FloatArray,
    v_error: float,
    unit: float,
    solver: str,
    solver_version: str,
    start: float,
) -> Certificate:
    """The certificate of w = 1/K + v, with v known up to ``v_error``; an error if the gap, in this unit, is open.

    The bound holds whether or not the weights sum to 1.
    """
    g, rho, size = gamma(problem.n_rows + 4 * len(w) + 40), problem.rho, np.sqrt(np.diag(problem.errors))
    objective = float(w @ problem.errors @ w + rho * (v @ v))
    slope = 2.0 * (problem.errors @ w + rho * v)
    gap = float(slope @ w - slope.min())
    K = len(w)
    tolerance = GAP_TOLERANCE * min(unit, float(np.diag(problem.errors).min()) + rho * (1.0 - 1.0 / K))
    if not gap <= GAP_TOLERANCE * max(unit, np.finfo(float).tiny):
        raise SolverError(f"The weights of the stack were not proven: objective {objective:.6g}, gap {gap:.6g}.")
    slope_error = 4.0 * (g * (size * float(size @ w) + rho * np.abs(v)) + rho * v_error)
    error = 2.0 * (g * (float(size @ w) ** 2 + rho * float(v @ v)) + rho * v_error * float(np.abs(v).sum() + v_error))
    gap = float(slope @ w - np.min(slope - slope_error)) + float(slope_error @ w) + 2.0 * g * float(np.abs(slope) @ w)
    bound = max(0.0, objective - gap - error) * (1.0 - 2.0 * g)
    return certify(
        objective + error, bound, tolerance, ROUNDING,
        solver, solver_version, start,
    )  # fmt: skip
