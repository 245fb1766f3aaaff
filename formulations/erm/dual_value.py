"""The value of the dual of a penalised empirical risk next to a point that is feasible only up to rounding.

    D(theta) = offset - sum_i q_i l*(y_i, theta_i / q_i) - sum_k (|a_k' theta| - l1_k)_+^2 / (2 l2_k)

as in :mod:`formulations.erm.dual_bound`, rounded down.

*Rounding.* Then theta is feasible only up to rounding. The exactly feasible point theta - Delta next to it is never
computed, only the loss of D on the way to it is bounded, with delta from :mod:`formulations.erm.rounding`:

* a_k'(theta - Delta) differs from the computed a_k'theta by at most gamma |a_k| |theta| + delta |a_k|, with the norms
  |a_k|^2 = sum_i q_i A_ik^2 and |theta|^2 = sum_i theta_i^2 / q_i;
* for regression l*(y, t) = t y + c t^2 / 2, and y can be replaced by r = y - A_F w_F, since theta - Delta is orthogonal
  to A_F: the loss is at most  delta |r + c theta / q| + c delta^2 / 2,  of second order if all columns are free;
* for the logistic loss, signs are balanced in disjoint cells by a factor 1 - rho per cell and sign, which loses at most
  .4 rho / (1 - rho) of sum_i q_i; otherwise Delta must leave every row inside the domain, and loses at most
  delta |logit(theta / q)|.

Every sum is corrected by gamma(n) times the sum of its absolute values. A relative gamma(2 n) of the bound covers the
rounding of the shares q and of the penalties, since risk and penalties are not negative. For the same reason 0 is a
bound.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import logit

from formulations.arrays import FloatArray
from formulations.erm.rounding import UNIT, Factor, gamma
from formulations.erm.rows import Rows
from formulations.losses import Squared

# Relative error of products that are rounded once: of their factors, and of the sum over a few blocks.
ONCE = 16.0 * UNIT
# Below this, numbers may have lost digits by underflow.
UNDERFLOW = 1e-290


class Proof(NamedTuple):
    """Objective, rounded up; bound, rounded down; the bound up to rounding errors (not proven); and its dual point."""

    objective: float
    bound: float
    estimate: float
    theta: FloatArray


def bound_at(
    rows: Rows,
    l1: FloatArray,
    l2: FloatArray,
    w: FloatArray,
    theta: FloatArray,
    u: FloatArray,
    factor: Factor | None,
    r: FloatArray,
    *,
    rho: float = 0.0,
    exact: bool = False,
) -> Proof:
    """The bound of the module from theta and u = A'theta, feasible up to rounding, with r = y - A_F w_F.

    ``rho`` is left by balancing; with ``exact``, the products in u and r were rounded once.
    """
    g, free = rows.rounding, (l1 == 0) & (l2 == 0)
    used = np.flatnonzero(free & (w != 0))
    relative = ONCE if exact else 2.0 * gamma(len(used) + 20)
    error_r = relative * (norm(rows.q, rows.y) + float(rows.sizes[used] @ np.abs(w[used])))
    error = (ONCE if exact else 2.0 * g) * rows.sizes * dual_norm(rows, theta)
    delta, move = 0.0, rho * dual_norm(rows, theta)
    if factor is not None and len(factor.columns):
        delta = move = factor.distance(u[factor.columns], error[factor.columns])
    proven = -np.inf
    nearly = np.where(free, 0.0, np.abs(u))
    scale = _feasible_scale(rows, l1, l2, theta, nearly, np.zeros(1))
    estimate = _conjugate_part(rows, r, theta * scale) - _penalty_part(l1, l2, nearly * scale)
    if factor is not None and rho < 0.1:
        distance = _row_distances(rows, factor, delta)
        largest = np.where(free, 0.0, (np.abs(u) + error + rows.sizes * move) * (1.0 + 8.0 * g))
        scale = _feasible_scale(rows, l1, l2, theta, largest, distance) * (1.0 - 2.0**-40)
        theta = theta * scale
        lost = _loss_by_rounding(rows, r, error_r, theta, scale * delta, scale * distance)
        lost += 0.5 * rho * rows.weight + UNDERFLOW
        proven = _conjugate_part(rows, r, theta) - _penalty_part(l1, l2, largest * scale) * (1.0 + 4.0 * g) - lost
    bound = rows.offset + max(0.0, float(proven)) * (1.0 - gamma(2 * len(rows.y) + 100))
    return Proof(np.inf, bound, rows.offset + max(0.0, estimate), theta)


def _row_distances(rows: Rows, factor: Factor | None, delta: float) -> FloatArray:
    """Upper bounds on |Delta_i| / q_i; 0 if the conjugate is finite everywhere, where they do not matter."""
    if factor is None or delta == 0 or isinstance(rows.loss, Squared):
        return np.zeros(1)
    distance = np.zeros(len(rows.y))
    change = factor.change(delta)
    for part, A in rows.blocks:
        distance[part] = np.abs(A[:, factor.columns]) @ change
    return np.minimum(distance, delta / np.sqrt(rows.q)) * (1.0 + 4.0 * rows.rounding)


def _feasible_scale(
    rows: Rows, l1: FloatArray, l2: FloatArray, theta: FloatArray, u: FloatArray, distance: FloatArray
) -> float:
    """The largest s <= 1 at which s theta, with an uncertainty of ``distance``, is within its domain and s u <= l1."""
    hard = (l2 == 0) & (u > l1)
    scale = float(np.min(l1[hard] / u[hard], initial=1.0))
    if isinstance(rows.loss, Squared):
        return scale
    low, high = rows.loss.domain(rows.y)
    t = theta / rows.q
    for end, limit in ((t + distance, high), (distance - t, -low)):
        over = (end > limit) & (limit > 0)
        scale = min(scale, float(np.min(limit[over] / end[over], initial=1.0)))
    return scale


def _conjugate_part(rows: Rows, r: FloatArray, theta: FloatArray) -> float:
    """- sum_i q_i l*(r_i, theta_i / q_i), within the domain; r is y in classification."""
    target = rows.y if rows.loss.task == "classification" else r
    t = theta / rows.q
    if not isinstance(rows.loss, Squared):  # which has no limits
        t = np.clip(t, *rows.loss.domain(rows.y))
    return -float(rows.q @ rows.loss.conjugate_inside(target, t))


def _penalty_part(l1: FloatArray, l2: FloatArray, u: FloatArray) -> float:
    """sum_k (u_k - l1_k)_+^2 / (2 l2_k); infinite if it is beyond the range of floating-point numbers."""
    soft = l2 > 0
    with np.errstate(over="ignore"):
        return float(0.5 * np.sum((np.maximum(u - l1, 0.0)[soft] / np.sqrt(l2[soft])) ** 2))


def _loss_by_rounding(
    rows: Rows, r: FloatArray, error_r: float, theta: FloatArray, delta: float, distance: FloatArray
) -> float:
    """An upper bound on what the conjugate part at the exactly feasible point is below the computed one."""
    q, g, c = rows.q, rows.rounding, rows.loss.conjugate_curvature
    t = theta / q
    if rows.loss.task == "classification":
        if delta == 0:
            return 2.0 * g * rows.weight
        share = -rows.y * t
        low, high = share * (1.0 - 2.0**-40) - distance, share + distance
        if not (low.min() > 0 and high.max() < 1):
            return np.inf
        return (
            delta * norm(q, np.maximum(np.abs(logit(low)), np.abs(logit(high)))) * (1.0 + 4.0 * g)
            + 2.0 * g * rows.weight
        )
    size, dual = norm(q, r), dual_norm(rows, theta)
    step = delta * (norm(q, r + c * t) + 4.0 * g * (size + dual) + error_r) + c * delta**2 / 2.0
    return (step + dual * error_r + 4.0 * g * (dual * size + dual**2)) * (1.0 + 4.0 * g)


def norm(q: FloatArray, values: FloatArray) -> float:
    """sqrt(sum_i q_i v_i^2)."""
    return float(np.sqrt(q @ values**2))


def dual_norm(rows: Rows, theta: FloatArray) -> float:
    """sqrt(sum_i theta_i^2 / q_i)."""
    return float(np.linalg.norm(theta / np.sqrt(rows.q)))
