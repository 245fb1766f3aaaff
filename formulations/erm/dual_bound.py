"""Dual bound and optimality conditions of a penalised empirical risk, checked independently of the solver.

    P(w) = F(A w) + sum_k l1_k |w_k| + l2_k w_k^2 / 2

*Conditions.* With g the gradient of F(A w) + sum_k l2_k w_k^2 / 2, w is optimal if and only if

    g_k + l1_k sign(w_k) = 0   where w_k != 0,          |g_k| <= l1_k   where w_k = 0.

*Bound.* By Fenchel duality every theta gives  D(theta) <= min P,

    D(theta) = offset - sum_i q_i l*(y_i, theta_i / q_i) - sum_k (|a_k' theta| - l1_k)_+^2 / (2 l2_k),

where a term with l2_k = 0 requires |a_k' theta| <= l1_k. At the optimum theta_i = q_i l'(y_i, z_i). From a nearly
optimal w, a feasible theta is obtained by clipping to the domain of the conjugate, projecting away the free columns
(l1_k = l2_k = 0; for the logistic loss, whose domain ends at 0, by balancing the signs), and scaling towards 0.

*Polish.* The conditions are piecewise smooth: Newton's method on the sign pattern that they suggest (semi-smooth
Newton) brings an interior-point solution to rounding error.
"""

import warnings

import numpy as np
import scipy.linalg
import scipy.sparse as sp
import scipy.sparse.linalg

from formulations.arrays import BoolArray, FloatArray, Matrix
from formulations.erm.risk import EmpiricalRisk

# Newton steps without halving the violation after which the polish ends.
STALLED_STEPS = 4


def optimality_residual(risk: EmpiricalRisk, l1: FloatArray, l2: FloatArray, w: FloatArray) -> float:
    """Largest violation of the optimality conditions, relative to the largest gradient at w = 0."""
    scale = np.abs(risk.gradient(np.zeros_like(w))).max(initial=0.0)
    return _violation(risk.gradient(w) + l2 * w, l1, w) / (scale if scale > 0 else 1.0)


def _violation(g: FloatArray, l1: FloatArray, w: FloatArray) -> float:
    at_zero = np.maximum(np.abs(g) - l1, 0.0)
    elsewhere = np.abs(g + l1 * np.sign(w))
    return float(np.where(w == 0, at_zero, elsewhere).max(initial=0.0))


def dual_bound(risk: EmpiricalRisk, l1: FloatArray, l2: FloatArray, theta: FloatArray) -> float:
    """The best lower bound on min P from ``theta``, made feasible."""
    free = (l1 == 0) & (l2 == 0)
    low, high = risk.loss.domain(risk.y)
    theta = risk.q * np.clip(theta / risk.q, low, high)
    if risk.loss.domain_tolerance > 0 and _are_cells(risk.A[:, free]):
        theta = _balance(risk.A[:, free], theta)
    else:
        theta = _project_away(risk.A[:, free], risk.q, theta)
    u, t = np.abs(risk.A.T @ theta), theta / risk.q
    hard = (l2 == 0) & ~free
    tolerance = risk.loss.domain_tolerance
    inside = min(_largest_scale(t, high, tolerance), _largest_scale(-t, -low, tolerance))
    shrink = min(inside, _largest_scale(u[hard], l1[hard], 0.0)) * (1.0 - 1e-14)
    return max(_dual_value(risk, l1, l2, theta * scale, u * scale, free) for scale in (1.0, shrink))


def _are_cells(A: Matrix) -> bool:
    """Whether no row is in two columns and no entry is negative."""
    return A.shape[1] > 0 and A.min() >= 0 and int(np.max((A != 0).sum(axis=1))) <= 1


def _balance(A: Matrix, theta: FloatArray) -> FloatArray:
    """Shrink the positive or the negative entries of theta to A'theta = 0, which stays within any domain."""
    positive, negative = A.T @ np.maximum(theta, 0.0), A.T @ np.maximum(-theta, 0.0)
    shrink = [
        np.divide(other, own, out=np.zeros_like(own), where=own > 0)
        for own, other in ((positive, negative), (negative, positive))
    ]
    share = (A != 0).astype(float)
    up, down = (share @ np.minimum(factor, 1.0) + (1.0 - np.asarray(share.sum(axis=1)).ravel()) for factor in shrink)
    return np.where(theta > 0, theta * up, theta * down)


def _project_away(A: Matrix, q: FloatArray, theta: FloatArray) -> FloatArray:
    """``theta - Q A c`` with A'(theta - Q A c) = 0."""
    if A.shape[1] == 0:
        return theta
    root = np.sqrt(q)
    if sp.issparse(A):
        c = sp.linalg.lsqr(sp.diags_array(root) @ A, theta / root, atol=1e-15, btol=1e-15)[0]
    else:
        c = np.linalg.lstsq(root[:, None] * A, theta / root, rcond=None)[0]
    return theta - q * (A @ c)


def _largest_scale(u: FloatArray, limit: FloatArray, tolerance: float) -> float:
    """The largest s <= 1 with s u <= limit for the entries above their limit by more than the tolerance."""
    over = u > limit + tolerance
    return float((limit[over] / u[over]).min(initial=1.0))


def _dual_value(
    risk: EmpiricalRisk, l1: FloatArray, l2: FloatArray, theta: FloatArray, u: FloatArray, free: BoolArray
) -> float:
    excess = np.maximum(u - l1, 0.0)[~free]
    curvature = l2[~free]
    if np.any(excess[curvature == 0] > 0):
        return -np.inf
    conjugate = float(risk.q @ risk.loss.conjugate(risk.y, theta / risk.q))
    penalty = float(np.sum(excess[curvature > 0] ** 2 / (2.0 * curvature[curvature > 0])))
    return risk.offset - conjugate - penalty


def polish(risk: EmpiricalRisk, l1: FloatArray, l2: FloatArray, w: FloatArray, tolerance: float = 1e-12) -> FloatArray:
    """A point at least as close to optimality as ``w``, by semi-smooth Newton steps; smooth losses only."""
    h = risk.column_curvature()
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
        stalled = 0 if violation < 0.5 * least else stalled + 1
        if violation < least:
            best, least = w, violation
    return best


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
