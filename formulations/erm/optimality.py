"""Optimality conditions of a penalised empirical risk, and Newton steps on them.

    P(w) = F(A w) + sum_k l1_k |w_k| + l2_k w_k^2 / 2

*Conditions.* With g the gradient of F(A w) + sum_k l2_k w_k^2 / 2, w is optimal if and only if

    g_k + l1_k sign(w_k) = 0   where w_k != 0,          |g_k| <= l1_k   where w_k = 0.

*Polish.* The conditions are piecewise smooth: Newton's method on the sign pattern that they suggest (semi-smooth
Newton) brings an interior-point solution to rounding error. If the signs do not settle, because the columns are nearly
collinear, the squared loss is left to the active set of :mod:`formulations.erm.quadratic_path`, and the logistic loss
and those with a log link to the proximal Newton steps of :mod:`formulations.erm.logistic_path`, from the point before.
"""

import warnings
from dataclasses import replace

import numpy as np
import scipy.linalg
import scipy.sparse as sp
import scipy.sparse.linalg

from formulations.arrays import FloatArray, Matrix
from formulations.erm.logistic_path import logistic_path
from formulations.erm.quadratic_path import quadratic_path
from formulations.erm.risk import EmpiricalRisk
from formulations.log_link import LogLink
from formulations.losses import Logistic, Squared

# Violation, as a share of the largest gradient at w = 0, above which signs of these two have not settled.
UNSETTLED = 1e-8
# Newton steps without halving the violation after which the polish ends.
STALLED_STEPS = 4


def optimality_residual(risk: EmpiricalRisk, l1: FloatArray, l2: FloatArray, w: FloatArray) -> float:
    """Largest violation of the optimality conditions, relative to the largest gradient at w = 0."""
    scale = np.abs(risk.gradient(np.zeros_like(w))).max(initial=0.0)
    return _violation(risk.gradient(w) + l2 * w, l1, w) / (scale if scale > 0 else 1.0)


def _curvature_at(risk: EmpiricalRisk, w: FloatArray) -> FloatArray:
    """The second derivative of the risk in each coefficient alone, or a bound on it."""
    if np.isfinite(risk.loss.largest_curvature):
        return risk.column_curvature()
    curvature = risk.loss.curvature(risk.y, risk.A @ w)
    return replace(risk, q=risk.q * curvature).column_squares()


def _violation(g: FloatArray, l1: FloatArray, w: FloatArray) -> float:
    at_zero = np.maximum(np.abs(g) - l1, 0.0)
    elsewhere = np.abs(g + l1 * np.sign(w))
    return float(np.where(w == 0, at_zero, elsewhere).max(initial=0.0))


def polish(risk: EmpiricalRisk, l1: FloatArray, l2: FloatArray, w: FloatArray, tolerance: float = 1e-12) -> FloatArray:
    """A point at least as close to optimality as ``w``, by semi-smooth Newton steps; smooth losses only."""
    start, h = w, _curvature_at(risk, w)
    scale = np.abs(risk.gradient(np.zeros_like(w))).max(initial=0.0)
    best, least = w, _violation(risk.gradient(w) + l2 * w, l1, w)
    stalled = 0
    while least > tolerance * scale and stalled < STALLED_STEPS:
        forward = h * w - risk.gradient(w)
        active = (np.abs(forward) > l1) | (l1 == 0)
        w = np.where(active, w, 0.0)
        if active.any():
            g = risk.gradient(w) + l2 * w + l1 * np.sign(forward)
            w[active] -= _solve_symmetric(risk.hessian(w, active), l2[active], g[active])
        violation = _violation(risk.gradient(w) + l2 * w, l1, w)
        if not np.isfinite(violation):
            break
        stalled = 0 if violation < 0.5 * least else stalled + 1
        if violation < least:
            best, least = w, violation
    if sp.issparse(risk.A):
        return best
    w = best
    if isinstance(risk.loss, Squared) and least > tolerance * scale:
        w = _active_set(risk, l1, l2, best)
    elif isinstance(risk.loss, Logistic | LogLink) and least > UNSETTLED * scale:
        w = _proximal_newton(risk, l1, l2, start, tolerance)
    return w if _violation(risk.gradient(w) + l2 * w, l1, w) < least else best


def _active_set(risk: EmpiricalRisk, l1: FloatArray, l2: FloatArray, start: FloatArray) -> FloatArray:
    """The fit of the squared loss from a point near it."""
    zero = np.zeros_like(start)
    H = np.asarray(risk.hessian(zero, np.ones(len(start), dtype=bool)))
    return quadratic_path(H, -risk.gradient(zero), l1, l2, np.ones(1), start).w[0]


def _proximal_newton(
    risk: EmpiricalRisk, l1: FloatArray, l2: FloatArray, start: FloatArray, tolerance: float
) -> FloatArray:
    """The fit of the logistic loss, or one with a log link, from a point near it."""
    free = (l1 == 0) & (l2 == 0)
    order = np.argsort(~free, kind="stable")
    penalties = (l1[order], l2[order])
    power = risk.loss.variance_power if isinstance(risk.loss, LogLink) else 0.0
    rows = (risk.A[:, order], int(free.sum()), risk.y, risk.q)
    path = logistic_path(*rows, *penalties, np.ones(1), tolerance, start[order], power)
    w = np.empty_like(start)
    w[order] = path.w[0]
    return w


def _solve_symmetric(H: Matrix, diagonal: FloatArray, b: FloatArray) -> FloatArray:
    """(H + diag)^-1 b, or a least-squares solution if that is singular."""
    if sp.issparse(H):
        K = sp.csc_array(H + sp.diags_array(diagonal))
        with warnings.catch_warnings():
            warnings.simplefilter("error", sp.linalg.MatrixRankWarning)
            try:
                return np.asarray(sp.linalg.spsolve(K, b))
            except (sp.linalg.MatrixRankWarning, RuntimeError):
                return np.asarray(sp.linalg.lsqr(K, b, atol=1e-15, btol=1e-15)[0])
    H[np.diag_indices_from(H)] += diagonal
    try:
        factor = scipy.linalg.cho_factor(H)
        if factor[0].diagonal().min() > 1e-6 * factor[0].diagonal().max():
            return np.asarray(scipy.linalg.cho_solve(factor, b))
    except scipy.linalg.LinAlgError:
        pass
    return np.asarray(scipy.linalg.lstsq(H, b)[0])
