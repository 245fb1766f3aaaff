"""A dual bound on a penalised empirical risk that holds in exact arithmetic, independent of the solver.

    P(w) = F(A w) + sum_k l1_k |w_k| + l2_k w_k^2 / 2,        F(z) = sum_i q_i l(y_i, z_i) + offset

*Bound.* By Fenchel duality every theta gives  D(theta) <= min P,

    D(theta) = offset - sum_i q_i l*(y_i, theta_i / q_i) - sum_k (|a_k' theta| - l1_k)_+^2 / (2 l2_k),

where a term with l2_k = 0 requires |a_k' theta| <= l1_k, and a free column (l1_k = l2_k = 0) a_k' theta = 0. At the
optimum theta_i = q_i l'(y_i, z_i). From a nearly optimal w, theta is clipped to the domain of the conjugate, projected
off the free columns (for the logistic loss, whose domain ends at 0, by balancing the signs), and scaled towards 0.

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

*If the gap stays open*, further bounds are tried: with products that are rounded once; without weak penalties, which
are below the rounding error of their column; and without rows of negligible loss, since losses are not negative. The
last one settles columns that are dependent only because some cells have fewer rows than columns.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.special import logit

from formulations.arrays import BoolArray, FloatArray, IntArray, Matrix
from formulations.erm.risk import CentredRisk, EmpiricalRisk
from formulations.erm.rounding import UNIT, Blocks, Factor, exact_products, exact_sum, factor_of, gamma
from formulations.losses import Loss, Squared

# A fit is optimal if its gap is below this share of its objective, or of the risk of the null model.
GAP_TOLERANCE = 1e-6
# A penalty below this multiple of the rounding error of its column is weak.
WEAK = 1e7
# Relative error of products that are rounded once: of their factors, and of the sum over a few blocks.
ONCE = 16.0 * UNIT
# Entries of a design up to which further bounds are tried if the first one leaves a gap.
MAX_ENTRIES = 2**21
# Below this, numbers may have lost digits by underflow.
UNDERFLOW = 1e-290
# Dual variables of the logistic loss keep this distance from the ends of their domain before they are projected.
INSIDE = 1e-11


def gap_tolerance(objective: float, null_risk: float) -> float:
    """Largest gap of an optimal fit: 1e-6 of its objective, or of the risk of the null model if that is larger.

    The null model predicts by least squares on the free columns alone, 0 in classification. If even that is perfect,
    its risk counts as that of errors of 1e-15 of y, which is the accuracy of y.
    """
    return GAP_TOLERANCE * max(abs(objective), null_risk)


def risk_of_rounding(loss: Loss, y: FloatArray, q: FloatArray) -> float:
    """The risk of errors of 1e-15 of y; 0 in classification."""
    return float(q @ loss.value(y, y * (1.0 + 2.0**-50))) if loss.task == "regression" else 0.0


@dataclass(frozen=True)
class Rows:
    """The rows of a risk, with columns that may have been shifted by multiples of free ones.

    Attributes
    ----------
    blocks : iterable of (slice, matrix)
        The columns, block by block; every entry has a relative error of a few roundings.
    y, q : arrays of shape (n,)
        Target (shifted by multiples of free columns, to a few roundings) and share of each row.
    loss : Loss
    sizes : array of shape (p,)
        sqrt(sum_i q_i A_ik^2), up to the rounding of a sum.
    offset : float
    stated : iterable of (slice, matrix), optional
        The columns before the shift.
    constants : int array, optional
        The columns of which multiples were subtracted: 1 on disjoint sets of rows, else 0.
    triangle : array of shape (m, p), optional
        A triangular factor of the weighted columns, up to rounding.
    """

    blocks: Blocks
    y: FloatArray
    q: FloatArray
    loss: Loss
    sizes: FloatArray
    offset: float = 0.0
    stated: Blocks | None = None
    constants: IntArray | None = None
    triangle: FloatArray | None = None

    @classmethod
    def of(cls, risk: EmpiricalRisk) -> "Rows":
        """The rows of a risk as they are."""
        sizes = np.sqrt(risk.column_squares())
        return cls([(slice(0, len(risk.y)), risk.A)], risk.y, risk.q, risk.loss, sizes, risk.offset)

    @classmethod
    def centred(cls, risk: EmpiricalRisk, projected: CentredRisk) -> "Rows | None":
        """The rows with the free columns projected out, if that is accurate in every entry, else None.

        It is if the free columns are 1 on disjoint sets of rows: then all that is rounded is one difference.
        """
        free = np.flatnonzero(projected.free)
        A = risk.A[:, free]
        values = A.data if sp.issparse(A) else A[A != 0]
        if not (np.all(values == 1.0) and int(np.max((A != 0).sum(axis=1), initial=0)) <= 1):
            return None
        return replace(cls.of(projected.risk), stated=[(slice(0, len(risk.y)), risk.A)], constants=free)

    def predictions(self, w: FloatArray, columns: IntArray | None = None) -> FloatArray:
        """A w, or the part of some columns."""
        z = np.zeros(len(self.y))
        for rows, A in self.blocks:
            z[rows] = A @ w if columns is None else A[:, columns] @ w[columns]
        return z

    def correlations(self, theta: FloatArray, columns: IntArray | None = None) -> FloatArray:
        """A'theta, or the part of some columns."""
        parts = ((A if columns is None else A[:, columns]).T @ theta[rows] for rows, A in self.blocks)
        return np.asarray(sum(parts))

    def exact_correlations(self, theta: FloatArray) -> FloatArray:
        """A'theta, with one rounding per block."""
        return np.asarray(sum(exact_products(A, theta[rows]) for rows, A in self.blocks))

    def selected(self, kept: IntArray) -> "Rows":
        """Some of the rows, in the same order."""
        blocks = _selected(self.blocks, kept)
        squares = sum(_column_squares(A, self.q[kept][part]) for part, A in blocks)
        stated = None if self.stated is None else _selected(self.stated, kept)
        sizes = np.sqrt(np.asarray(squares))
        parts = {"y": self.y[kept], "q": self.q[kept], "sizes": sizes, "stated": stated, "triangle": None}
        return replace(self, blocks=blocks, **parts)

    def drift(self, C: Matrix, w0: FloatArray, v: FloatArray, w: FloatArray) -> float:
        """Root mean square between the predictions of v and those of w, with w_f = v_f + w0 - C v up to rounding."""
        assert self.constants is not None
        moved = np.zeros(len(self.constants))
        for i, f in enumerate(self.constants):
            row = C[[i]].toarray()[0] if sp.issparse(C) else C[i]
            k = np.flatnonzero(row)
            moved[i] = abs(exact_sum(np.array([v[f], w0[i], -w[f]]), -row[k], v[k]))
        return float(self.sizes[self.constants] @ moved) * (1.0 + 2.0 * self.rounding)

    @property
    def weight(self) -> float:
        """sum_i q_i, rounded up."""
        return float(self.q.sum()) * (1.0 + self.rounding)

    @property
    def rounding(self) -> float:
        """Relative error of sums over rows and columns."""
        return gamma(len(self.y) + len(self.sizes) + 40)


def _selected(blocks: Blocks, kept: IntArray) -> Blocks:
    found, start = [], 0
    for part, A in blocks:
        own = kept[(kept >= part.start) & (kept < part.stop)] - part.start
        found.append((slice(start, start + len(own)), A[own]))
        start += len(own)
    return found


def _column_squares(A: Matrix, q: FloatArray) -> FloatArray:
    return np.asarray((A.multiply(A) if sp.issparse(A) else A**2).T @ q)


class Proof(NamedTuple):
    """Objective, rounded up; bound, rounded down; the bound up to rounding errors (not proven); and its dual point."""

    objective: float
    bound: float
    estimate: float
    theta: FloatArray


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
        r[part] -= z if len(used) == len(w) else A[:, used] @ w[used]
    # a change of z by e in root mean square changes the risk by at most |l'| e + max l'' e^2 / 2, or by e
    error = drift + _norm(rows.q, rows.y) * gamma(4) + gamma(len(w) + 20) * float(rows.sizes @ np.abs(w))
    rise = np.sqrt(slope) * error + rows.loss.largest_curvature * error**2 / 2.0
    if not rows.loss.smooth:
        rise = np.sqrt(rows.weight) * error  # slopes are at most 1
    penalised = value + rise + rows.offset + float(l1 @ np.abs(w) + l2 @ w**2 / 2)
    objective = float(penalised * (1.0 + 2.0 * rows.rounding))

    if squared and own:  # theta is feasible up to rounding
        first = _bound(rows, l1, l2, w, theta, u, _factor(rows, free), r)
    else:
        first = _bound_from(rows, l1, l2, w, theta)
    proofs, further = [first], _further_bounds(rows, l1, l2, w, theta, objective)
    while objective - proofs[-1].bound > GAP_TOLERANCE / 10.0 * objective and (proof := next(further, None)):
        proofs.append(proof)
    best = max(proofs, key=lambda found: found.bound)
    return best._replace(objective=objective, estimate=max(found.estimate for found in proofs))


def _further_bounds(
    rows: Rows, l1: FloatArray, l2: FloatArray, w: FloatArray, theta: FloatArray, objective: float
) -> Iterator[Proof]:
    """Bounds that take longer: with products that are rounded once, weak penalties left out, and fewer rows."""
    if len(rows.y) * len(w) > MAX_ENTRIES:
        return
    free = (l1 == 0) & (l2 == 0)
    choices = [free]
    for rounding in (ONCE, rows.rounding):
        error = rounding * rows.sizes * _dual_norm(rows, theta)
        weak = np.where(l2 == 0, l1 < WEAK * error, error**2 > 2.0 * l2 * GAP_TOLERANCE / 100.0 * objective)
        if np.any(weak & ~choices[-1]):
            choices.append(weak | choices[-1])
    losses = rows.q * rows.loss.value(rows.y, rows.predictions(w))
    order = np.argsort(losses)
    kept = np.sort(order[np.cumsum(losses[order]) > GAP_TOLERANCE / 100.0 * objective])
    for part in [rows] if len(kept) == len(losses) else [rows, rows.selected(kept)]:
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
        return _bound(rows, l1, l2, w, theta, rows.correlations(theta), _factor(rows, free & False), rows.y, rho=rho)
    inside = INSIDE if logistic else 0.0
    theta = q * np.clip(theta / q, low + inside, high - inside)
    factor = _factor(rows, free)
    if factor is not None:
        for _ in range(2):
            c = np.zeros(len(w))
            c[factor.columns] = factor.coefficients(rows.correlations(theta, factor.columns))
            theta = theta - q * rows.predictions(c, factor.columns)
    r = rows.y if logistic else rows.y - rows.predictions(w, columns)
    u = rows.exact_correlations(theta) if exact else rows.correlations(theta)
    return _bound(rows, l1, l2, w, theta, u, factor, r, exact=exact)


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


def _bound(
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

    ``rho`` is left by balancing; with ``exact``, the entries of u were rounded once.
    """
    g, free = rows.rounding, (l1 == 0) & (l2 == 0)
    used = np.flatnonzero(free & (w != 0))
    error_r = 2.0 * gamma(len(used) + 20) * (_norm(rows.q, rows.y) + float(rows.sizes[used] @ np.abs(w[used])))
    error = (ONCE if exact else 2.0 * g) * rows.sizes * _dual_norm(rows, theta)
    delta, move = 0.0, rho * _dual_norm(rows, theta)
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
    bound = rows.offset + max(0.0, proven) * (1.0 - gamma(2 * len(rows.y) + 100))
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
    """sum_k (u_k - l1_k)_+^2 / (2 l2_k)."""
    soft = l2 > 0
    return float(np.sum(np.maximum(u - l1, 0.0)[soft] ** 2 / (2.0 * l2[soft])))


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
            delta * _norm(q, np.maximum(np.abs(logit(low)), np.abs(logit(high)))) * (1.0 + 4.0 * g)
            + 2.0 * g * rows.weight
        )
    size, dual = _norm(q, r), _dual_norm(rows, theta)
    step = delta * (_norm(q, r + c * t) + 4.0 * g * (size + dual) + error_r) + c * delta**2 / 2.0
    return (step + dual * error_r + 4.0 * g * (dual * size + dual**2)) * (1.0 + 4.0 * g)


def _norm(q: FloatArray, values: FloatArray) -> float:
    return float(np.sqrt(q @ values**2))


def _dual_norm(rows: Rows, theta: FloatArray) -> float:
    return float(np.linalg.norm(theta / np.sqrt(rows.q)))
