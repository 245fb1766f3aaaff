"""Convex weights for the predictions of several models, shrunk towards equal ones.

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
average. ``stacking_program`` states the program in cvxpy. ``stacking_weights`` solves it by an active-set method that
starts at equal weights: with C = sum_i q_i (y_i - z_i)(y_i - z_i)', it solves, for the weights w_k = 1/K + v_k that are
not 0,

    (C + rho I) w  =  nu 1,    sum_k w_k = 1,    or    (C + rho I) v  =  nu 1 - C 1/K,    sum_k v_k = 0,

leaves out those that become 0 on the way, and lets in the model along whose weight the objective falls most. The first
form keeps the digits of small weights; the second those of small v, which matter if rho is above the objective of the
plain average. The matrix, which may be singular, is scaled to a unit diagonal, to which gamma(n), its rounding error,
is added.

The bound of the certificate is that of Frank and Wolfe (1956): for a convex f over the simplex,
min f >= f(w) - (g'w - min_k g_k) with the gradient g of f at any w. It is corrected for rounding: the product of the
errors of models k and l is off by at most gamma(n) e_k e_l, where e_k is the root mean square error of model k
(:func:`formulations.rounding.gamma`). The weights are optimal if the gap is below 1e-6 of the objective of the plain
average, or of the best single model if that is smaller.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from formulations.arrays import FloatArray
from formulations.certificate import GAP_TOLERANCE, ROUNDING, Certificate, SolverError, certify, clock
from formulations.rounding import UNIT, gamma

# Diagonal entries of the matrix, in units of the objective of the plain average, count as at least this: models without
# error have 0, and the weights of all others then vanish when they are squared.
SMALLEST = 1e-200


@dataclass(frozen=True)
class StackingProblem:
    """The program of the module in sufficient statistics."""

    # C: on the simplex the risk of w is w'C w.
    errors: FloatArray
    rho: float
    # For the rounding of the sums.
    n_rows: int

    @classmethod
    def of(cls, Z: FloatArray, y: FloatArray, weights: FloatArray, rho: float) -> "StackingProblem":
        """The problem for given predictions, targets and row weights."""
        E = (y[:, None] - Z) * np.sqrt(weights / weights.sum())[:, None]
        return cls(E.T @ E, rho, len(y))

    @property
    def equal(self) -> FloatArray:
        """The weights of the plain average."""
        K = len(self.errors)
        return np.full(K, 1 / K)

    def objective(self, w: FloatArray) -> float:
        """The objective at weights that sum to 1."""
        return float(w @ self.errors @ w + self.rho * np.sum((w - self.equal) ** 2))


def stacking_program(problem: StackingProblem) -> Any:
    """The program in cvxpy, with the variable w."""
    import cvxpy as cp

    K = len(problem.errors)
    w = cp.Variable(K, name="w", nonneg=True)
    risk = cp.quad_form(w, cp.psd_wrap(problem.errors))
    return cp.Problem(cp.Minimize(risk + problem.rho * cp.sum_squares(w - 1 / K)), [cp.sum(w) == 1])


def stacking_weights(problem: StackingProblem) -> tuple[FloatArray, Certificate]:
    """The optimal weights and their certificate.

    Raises
    ------
    SolverError
        If the errors of the models are not finite, or the gap stays open.
    """
    start = clock()
    unit = problem.objective(problem.equal)
    if not np.isfinite(unit):
        raise SolverError("The errors of the models are too large, NaN or infinite: check their predictions.")
    w, v = _active_set(problem, unit or 1.0)
    return w, _certified(problem, w, v, unit, start)


def _active_set(problem: StackingProblem, unit: float) -> tuple[FloatArray, FloatArray]:
    """w and v = w - 1/K of the last support whose weights are all positive."""
    K = len(problem.errors)
    C = problem.errors / unit
    rho = problem.rho / unit
    size = np.sqrt(np.maximum(np.diag(C) + rho, SMALLEST))
    H = (C + rho * np.eye(K)) / np.outer(size, size) + gamma(problem.n_rows) * np.eye(K)
    w, v = problem.equal, np.zeros(K)
    at = problem.equal
    support = np.ones(K, dtype=bool)
    for _ in range(4 * K):
        k = np.flatnonzero(support)
        sides = np.column_stack([C[np.ix_(k, k)].sum(axis=1) / K, np.ones(len(k))]) / size[k, None]
        of_average, of_ones = (np.linalg.solve(H[np.ix_(k, k)], sides) / size[k, None]).T
        target = np.zeros(K)
        target[k] = of_ones / of_ones.sum()
        negative = np.flatnonzero(target < 0)
        if len(negative):
            shares = at[negative] / (at[negative] - target[negative])
            at = np.maximum(at + shares.min() * (target - at), 0.0)
            support[negative[shares.argmin()]] = False
            at[~support] = 0.0
            continue
        w, v = target, target - 1 / K
        if rho > 1.0:
            is_small = w < 0.5 / K
            v[k] = np.where(is_small[k], v[k], w[k] * (of_average.sum() + (K - len(k)) / K) - of_average)
            w = np.where(is_small, w, 1 / K + v)
        at = w
        slope = C @ w + rho * v
        entering = int(np.argmin(np.where(support, np.inf, slope)))
        if support.all() or slope[entering] >= slope @ w:
            break
        support[entering] = True
    return w, v


def _certified(problem: StackingProblem, w: FloatArray, v: FloatArray, unit: float, start: float) -> Certificate:
    """The certificate of w = 1/K + v; an error if the gap, in units of the plain average, is open.

    The bound holds whether or not the weights sum to 1.
    """
    K = len(w)
    g = gamma(problem.n_rows + 4 * K + 40)
    rho = problem.rho
    size = np.sqrt(np.diag(problem.errors))
    objective = float(w @ problem.errors @ w + rho * (v @ v))
    slope = 2.0 * (problem.errors @ w + rho * v)
    gap = float(slope @ w - slope.min())
    tolerance = GAP_TOLERANCE * min(unit, float(np.diag(problem.errors).min()) + rho * (1.0 - 1.0 / K))
    if not gap <= GAP_TOLERANCE * max(unit, np.finfo(float).tiny):
        raise SolverError(f"The weights of the stack were not proven: objective {objective:.6g}, gap {gap:.6g}.")
    v_error = min(rho, unit) * UNIT
    slope_error = 4.0 * (g * (size * float(size @ w) + rho * np.abs(v)) + v_error)
    error = 2.0 * (g * (float(size @ w) ** 2 + rho * float(v @ v)) + v_error * (float(np.abs(v).sum()) + 1.0))
    gap = float(slope @ w - np.min(slope - slope_error)) + float(slope_error @ w) + 2.0 * g * float(np.abs(slope) @ w)
    bound = max(0.0, objective - gap - error) * (1.0 - 2.0 * g)
    return certify(objective + error, bound, tolerance, ROUNDING, "active set", "", start)
