"""A dual bound on a penalised empirical risk that holds in exact arithmetic, independent of the solver.

    P(w) = F(A w) + sum_k l1_k |w_k| + l2_k w_k^2 / 2,        F(z) = sum_i q_i l(y_i, z_i) + offset

*Bound.* By Fenchel duality every theta gives  D(theta) <= min P,

    D(theta) = offset - sum_i q_i l*(y_i, theta_i / q_i) - sum_k (|a_k' theta| - l1_k)_+^2 / (2 l2_k),

where a term with l2_k = 0 requires |a_k' theta| <= l1_k, and a free column (l1_k = l2_k = 0) a_k' theta = 0. At the
optimum theta_i = q_i l'(y_i, z_i). From a nearly optimal w, theta is clipped to the domain of the conjugate, projected
off the free columns (for the logistic loss, whose domain ends at 0, by balancing the signs), and scaled towards 0. That
makes it feasible up to rounding; :mod:`formulations.erm.dual_value` bounds D at the feasible point next to it.

*If the gap stays open*, further bounds are tried: with products that are rounded once; without weak penalties, which
are below the rounding error of their column; and without rows of negligible loss, since losses are not negative. The
last one settles columns that are dependent only because some cells have fewer rows than columns.
"""

from collections.abc import Iterator

import numpy as np

from formulations.arrays import BoolArray, FloatArray, IntArray
from formulations.erm.dual_value import ONCE, Proof, bound_at, dual_norm, norm
from formulations.erm.risk import EmpiricalRisk
from formulations.erm.rounding import Factor, exact_residuals, factor_of, gamma
from formulations.erm.rows import Rows
from formulations.losses import Squared

__all__ = ["GAP_TOLERANCE", "Proof", "Rows", "attained", "dual_bound", "gap_tolerance", "prove"]

# A fit is optimal if its gap is below this share of its objective, or of the risk of the null model.
GAP_TOLERANCE = 1e-6
# A penalty below this multiple of the rounding error of its column is weak.
WEAK = 1e7
# Entries of a design up to which further bounds are tried if the first one leaves a gap.
MAX_ENTRIES = 2**21
# Dual variables of the logistic loss keep this distance from the ends of their domain before they are projected.
INSIDE = 1e-11


def gap_tolerance(objective: float, null_risk: float) -> float:
    """Largest gap of an optimal fit: 1e-6 of its objective, or of the risk of the null model if that is larger.

    The risk of the null model is that of :func:`formulations.erm.risk.null_risk`, in the loss of the fit.
    """
    return GAP_TOLERANCE * max(abs(objective), null_risk)


def prove(
    rows: Rows, l1: FloatArray, l2: FloatArray, w: FloatArray, theta: FloatArray | None = None, drift: float = 0.0
) -> Proof:
    """The objective of the coefficients ``w``, and a bound on the minimum.

    Parameters
    ----------
    rows : Rows
    l1, l2 : arrays of shape (p,)
        Penalties.
    w : array of shape (p,)
    theta : array of shape (n,), optional
        A nearly optimal dual point, needed if the loss is not smooth.
    drift : float
        Largest root mean square by which predictions of the reported coefficients differ from those of w.
    """
    free, own, squared = (l1 == 0) & (l2 == 0), theta is None, isinstance(rows.loss, Squared)
    used, u, value, slope = np.flatnonzero(free & (w != 0)), np.zeros(len(w)), 0.0, 0.0
    theta, r = np.zeros(len(rows.y)) if theta is None else theta, rows.y.copy()
    for part, A in rows.blocks:
        q, y, z = rows.q[part], rows.y[part], A @ w
        value += float(q @ rows.loss.value(y, z))
        if rows.loss.smooth:
            derivative = rows.loss.derivative(y, z)
            slope += float(q @ derivative**2)
        if own:
            theta[part] = q * derivative
        if own and squared:
            u += A.T @ theta[part]
        if len(used):
            r[part] -= z if len(used) == len(w) else A[:, used] @ w[used]
    # a change of z by e in root mean square changes the risk by at most |l'| e + max l'' e^2 / 2, or by e
    error = drift + norm(rows.q, rows.y) * gamma(4) + gamma(len(w) + 20) * float(rows.sizes @ np.abs(w))
    rise = np.sqrt(slope) * error + rows.loss.largest_curvature * error**2 / 2.0
    if not rows.loss.smooth:
        rise = np.sqrt(rows.weight) * error  # slopes are at most 1
    penalised = value + rise + rows.offset + float(l1 @ np.abs(w) + l2 @ w**2 / 2)
    objective = float(penalised * (1.0 + 2.0 * rows.rounding))

    if squared and own:  # theta is feasible up to rounding
        first = bound_at(rows, l1, l2, w, theta, u, _factor(rows, free), r)
    else:
        first = _bound_from(rows, l1, l2, w, theta)
    proofs, further = [first], _further_bounds(rows, l1, l2, w, theta, objective)
    while objective - proofs[-1].bound > GAP_TOLERANCE / 10.0 * objective and (proof := next(further, None)):
        proofs.append(proof)
    best = max(proofs, key=lambda found: found.bound)
    return best._replace(objective=objective, estimate=max(found.estimate for found in proofs))


def attained(risk: EmpiricalRisk, l1: FloatArray, l2: FloatArray, w: FloatArray) -> float:
    """P(w) of coefficients as they are, rounded up, whatever the offset of y; infinite if the design is too large.

    Residuals y - A w are rounded once, so that every loss has a relative error of a few roundings.
    """
    if risk.loss.task != "regression" or risk.A.shape[0] * risk.A.shape[1] > MAX_ENTRIES:
        return np.inf
    losses = risk.loss.value(exact_residuals(risk.A, risk.y, w), np.zeros(len(risk.y)))
    value = float(risk.q @ losses) + risk.offset + float(l1 @ np.abs(w) + l2 @ w**2 / 2)
    return value * (1.0 + 2.0 * gamma(len(risk.y) + len(w) + 40))


def _further_bounds(
    rows: Rows, l1: FloatArray, l2: FloatArray, w: FloatArray, theta: FloatArray, objective: float
) -> Iterator[Proof]:
    """Bounds that take longer: with products that are rounded once, weak penalties left out, and fewer rows."""
    if len(rows.y) * len(w) > MAX_ENTRIES:
        return
    free = (l1 == 0) & (l2 == 0)
    choices = [free]
    for rounding in (ONCE, rows.rounding):
        error = rounding * rows.sizes * dual_norm(rows, theta)
        weak = np.where(l2 == 0, l1 < WEAK * error, error**2 > 2.0 * l2 * GAP_TOLERANCE / 100.0 * objective)
        if np.any(weak & ~choices[-1]):
            choices.append(weak | choices[-1])
    losses = rows.q * rows.loss.value(rows.y, rows.predictions(w))
    order = np.argsort(losses)
    kept = np.sort(order[np.cumsum(losses[order]) > GAP_TOLERANCE / 100.0 * objective])
    for part in [rows, rows.selected(kept)] if 0 < len(kept) < len(losses) else [rows]:
        own = theta if part is rows else theta[kept]
        for F in choices:
            proof = _bound_from(part, np.where(F, 0.0, l1), np.where(F, 0.0, l2), w, own, exact=True)
            if part is not rows:
                full = np.zeros(len(theta))
                full[kept] = proof.theta
                proof = proof._replace(theta=full)
            yield proof


def dual_bound(risk: EmpiricalRisk, l1: FloatArray, l2: FloatArray, theta: FloatArray) -> float:
    """A proven lower bound on min P from any ``theta``."""
    return _bound_from(Rows.of(risk), l1, l2, np.zeros(len(l1)), theta).bound


def _bound_from(
    rows: Rows, l1: FloatArray, l2: FloatArray, w: FloatArray, theta: FloatArray, exact: bool = False
) -> Proof:
    """The bound from ``theta``, which is first made feasible up to rounding."""
    free, q = (l1 == 0) & (l2 == 0), rows.q
    low, high = rows.loss.domain(rows.y)
    columns = np.flatnonzero(free)
    logistic = rows.loss.task == "classification"
    if logistic and len(columns) and _are_cells(rows, columns):
        theta, rho = _balance(rows, columns, q * np.clip(theta / q, low, high))
        return bound_at(rows, l1, l2, w, theta, rows.correlations(theta), _factor(rows, free & False), rows.y, rho=rho)
    inside = INSIDE if logistic else 0.0
    theta = q * np.clip(theta / q, low + inside, high - inside)
    factor = _factor(rows, free)
    if factor is not None:
        for _ in range(2):
            c = np.zeros(len(w))
            c[factor.columns] = factor.coefficients(rows.correlations(theta, factor.columns))
            theta = theta - q * rows.predictions(c, factor.columns)
    if exact:
        u, z = rows.exact_correlations(theta), rows.exact_predictions(w, columns)
    else:
        u, z = rows.correlations(theta), rows.predictions(w, columns)
    r = rows.y if logistic else rows.y - z
    return bound_at(rows, l1, l2, w, theta, u, factor, r, exact=exact)


def _factor(rows: Rows, free: BoolArray) -> Factor | None:
    F = np.flatnonzero(free)
    return factor_of(rows.blocks, rows.q, F, rows.sizes, rows.stated, rows.constants, rows.triangle)


def _are_cells(rows: Rows, columns: IntArray) -> bool:
    """Whether no row is in two columns and no entry is negative."""
    parts = [A[:, columns] for _, A in rows.blocks]
    return all(A.min() >= 0 and int(np.max((A != 0).sum(axis=1))) <= 1 for A in parts)


def _balance(rows: Rows, columns: IntArray, theta: FloatArray) -> tuple[FloatArray, float]:
    """Shrink the positive or the negative entries of theta to A'theta = 0, up to rounding; and a bound on the rest.

    The exactly balanced point has further factors 1 - rho_i <= 1.
    """

    def sums(theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        return rows.correlations(np.maximum(theta, 0.0), columns), rows.correlations(np.maximum(-theta, 0.0), columns)

    positive, negative = sums(theta)
    factors = [
        np.minimum(np.divide(other, own, out=np.zeros_like(own), where=own > 0), 1.0)
        for own, other in ((positive, negative), (negative, positive))
    ]
    balanced = theta.copy()
    for part, A in rows.blocks:
        share = (A[:, columns] != 0).astype(float)
        outside = 1.0 - np.asarray(share.sum(axis=1)).ravel()
        up, down = (share @ factor + outside for factor in factors)
        balanced[part] *= np.where(theta[part] > 0, up, down)
    positive, negative = sums(balanced)
    larger = np.maximum(positive, negative)
    left = np.abs(positive - negative) + 3.0 * rows.rounding * (positive + negative)
    return balanced, float(np.max(np.divide(left, larger, out=np.zeros_like(left), where=larger > 0), initial=0.0))
