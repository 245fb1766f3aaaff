"""A dual bound on a penalised empirical risk that holds in exact arithmetic, independent of the solver.

    P(w) = sum_i q_i l(y_i, a_i'w) + offset + sum_k l1_k |w_k| + l2_k w_k^2 / 2

*Bound.* By Fenchel duality every theta gives  D(theta) <= min P,

    D(theta) = offset - sum_i q_i l*(y_i, theta_i / q_i) - sum_k (|a_k'theta| - l1_k)_+^2 / (2 l2_k),

where a term with l2_k = 0 requires |a_k'theta| <= l1_k, and a free column (l1_k = l2_k = 0) a_k'theta = 0. At the
optimum theta_i = q_i l'(y_i, z_i) with z = A w.

*Feasible point.* From a nearly optimal w, these conditions hold up to rounding. Let J be the columns whose conditions
have no room for it: the free ones. The bound is the value of D at  s (theta - Delta),  where theta - Delta has exactly
a_k'theta = v_k for k in J, with v_k = 0, and s <= 1 is as large as the other conditions allow. Delta is not computed:
:mod:`formulations.erm.dual_rows` bounds its norm delta, with the weights m_i = q_i of the rows, or
m_i = q_i l''(y_i, z_i) for the logistic loss and those with a log link, whose t_i = theta_i / q_i = l'(y_i, z_i) must
stay in their domain.

*If the gap stays open*, J also has the columns whose penalty is too weak for the rounding of a_k'theta: those with
l2_k = 0 and |a_k'theta| next to l1_k, and those with a small l2_k. Their v_k is a_k'theta, clipped to what it is at the
optimum, l1_k + l2_k |w_k|. Then theta itself is moved by Delta, up to rounding, in case the solver was not precise. If
the columns J are dependent up to rounding, that may be due to rows that are fitted perfectly: theta is set to 0 there,
and rows with theta_i = 0 have m_i = 0, so that they are not moved.

*Rounding.* With the norms |a_k|^2 = sum_i q_i A_ik^2 and |theta|^2 = sum_i theta_i^2 / q_i, a computed a_k'theta is off
by at most 2 gamma |a_k| |theta|, and moved by at most |a_k| delta, where the norm is that of m if m_i can be above q_i.
For losses of y - z, l*(y, t) = t y + c t^2 / 2, and y can be replaced by r = y - A_J w_J if v'w_J is added, since
A_J'(theta - Delta) = v. So Delta lowers the value by at most

    delta |r + c theta / q| + c delta^2 / 2,

which is of second order if all columns are in J. A loss of y - z that does not say that its conjugate is quadratic has
a convex one, which rises most at an end of the distance that each t_i is moved at most; likewise its values, in which
predictions have rounding errors. For the losses that are not of y - z it is at most delta |z| in the norm of m, with
z = l*'(t) after a move of t by at most l'' / 2. As |l'''| <= l'', this changes z by at most log 2 (log 3 with the
rounding of l''), and keeps t in its domain. A smaller s does not make the moves longer: s l''(z(t)) <= l''(z(s t)),
since t l''' <= (l'')^2. Every sum is corrected by gamma(n) times the sum of its absolute values. A relative
gamma(2 n) of the bound covers the rounding of the shares q and of the penalties, since risk and penalties are not
negative. For the same reason the offset is a bound.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from formulations.arrays import BoolArray, FloatArray, IntArray, Matrix
from formulations.certificate import GAP_TOLERANCE
from formulations.erm.dual_rows import Factor, Rows
from formulations.erm.risk import CentredRisk, EmpiricalRisk
from formulations.log_link import LogLink
from formulations.losses import Loss, Squared
from formulations.rounding import gamma

__all__ = ["Proof", "Rows", "dual_bound", "lacks_room", "prove", "prove_centred"]

# Share of the objective that may be lost without notice: a hundredth of the tolerance.
NEGLIGIBLE = GAP_TOLERANCE / 100.0
# Bounds that are tried: two more if the first one leaves a gap.
ATTEMPTS = 3
# Share by which points stay inside their limits, for the rounding of quotients: far above that, below the tolerance.
MARGIN = 2.0**-40
# Below this, the rounding error of a product may have been lost by underflow.
UNDERFLOW = float(np.finfo(float).tiny / np.finfo(float).eps)


class Proof(NamedTuple):
    """Objective, rounded up; bound, rounded down; the bound up to rounding errors (not proven); and its dual point."""

    objective: float
    bound: float
    estimate: float
    theta: FloatArray


def prove(rows: Rows, l1: FloatArray, l2: FloatArray, w: FloatArray, theta: FloatArray | None = None) -> Proof:
    """The objective of the coefficients ``w``, and a bound on the minimum.

    Parameters
    ----------
    rows : Rows
    l1, l2 : arrays of shape (p,)
        Penalties.
    w : array of shape (p,)
    theta : array of shape (n,), optional
        A nearly optimal dual point, needed if the loss is not smooth.
    """
    program, is_found = _Program(rows, l1, l2, w), theta is not None
    if theta is not None:  # by a solver, and not very precise
        theta = rows.q * np.clip(theta / rows.q, *rows.loss.domain(rows.y))
    J, proofs = np.flatnonzero((l1 == 0) & (l2 == 0)), []
    for attempt in range(ATTEMPTS):
        point = _Point.of(program, theta, J)
        proofs.append(point.proof())
        objective, bound = proofs[-1].objective, proofs[-1].bound
        if objective - bound <= GAP_TOLERANCE / 10.0 * objective and not (is_found and attempt == 0):
            break
        theta = point.moved(NEGLIGIBLE * objective)
        J = np.flatnonzero(lacks_room(point.u, point.error, l1, l2, objective))
    best = max(proofs, key=lambda proof: proof.bound)
    objective, estimate = min(proof.objective for proof in proofs), max(proof.estimate for proof in proofs)
    return best._replace(objective=objective, estimate=estimate)


def prove_centred(
    risk: EmpiricalRisk,
    projected: CentredRisk,
    l1: FloatArray,
    l2: FloatArray,
    w: FloatArray,
    theta: FloatArray | None = None,
) -> Proof:
    """:func:`prove` in columns with the free ones projected out, where offsets do not matter, if these are accurate."""
    rows = Rows.centred(risk, projected)
    if rows is None:
        return prove(Rows.of(risk), l1, l2, w, theta)
    return prove(rows, l1, l2, projected.reduce(w), theta)


def dual_bound(risk: EmpiricalRisk, l1: FloatArray, l2: FloatArray, theta: FloatArray) -> float:
    """A proven lower bound on min P from any ``theta``."""
    return prove(Rows.of(risk), l1, l2, np.zeros(len(l1)), theta).bound


def lacks_room(u: FloatArray, error: FloatArray, l1: FloatArray, l2: FloatArray, objective: float) -> BoolArray:
    """Columns whose condition or penalty has no room for the error of u = A'theta, up to a negligible loss."""
    at_limit = np.abs(u) + error / GAP_TOLERANCE > l1
    return np.where(l2 == 0, at_limit | (l1 == 0), error**2 > 2.0 * l2 * (NEGLIGIBLE * objective))


@dataclass(frozen=True)
class _Program:
    """Rows, penalties, and a nearly optimal w."""

    rows: Rows
    l1: FloatArray
    l2: FloatArray
    w: FloatArray

    @property
    def limits(self) -> FloatArray:
        """|a_k'theta| at the optimum, if w_k is not 0."""
        return self.l1 + self.l2 * np.abs(self.w)

    @property
    def weight(self) -> float:
        """sum_i q_i, rounded up."""
        return float(self.rows.q.sum()) * (1.0 + self.rows.rounding)


@dataclass(frozen=True)
class _Point:
    """A dual point within its domain, and the columns J whose equations it is to meet exactly.

    Attributes
    ----------
    program : _Program
    J : int array
    y, z : arrays of shape (n,)
        Target and prediction A w; y - A w and 0 if the loss is one of y - z.
    theta : array of shape (n,)
    u : array of shape (p,)
        A'theta.
    r : array of shape (n,)
        y - A_J w_J, or y if the loss is not one of y - z.
    v : array of shape (p,)
        The values of a_k'theta that are to be met if k is in J.
    weights : array of shape (n,)
        The m of the rows.
    error : array of shape (p,)
        Largest errors of u.
    sizes : array of shape (p,)
        sqrt(sum_i m_i A_ik^2), or more.
    factor : Factor, optional
        The factor of the columns J, if they are independent.
    """

    program: _Program
    J: IntArray
    y: FloatArray
    z: FloatArray
    theta: FloatArray
    u: FloatArray
    r: FloatArray
    v: FloatArray
    weights: FloatArray
    error: FloatArray
    sizes: FloatArray
    factor: Factor | None

    @classmethod
    def of(cls, program: _Program, theta: FloatArray | None, J: IntArray) -> "_Point":
        """The point from theta, or from the derivatives of the losses, in one pass over the rows."""
        rows, w, of_residual = program.rows, program.w, program.rows.loss.of_residual
        in_J = np.zeros_like(w)
        in_J[J] = w[J]
        n = len(rows.y)
        y, z, r, point, u = rows.y.copy(), np.zeros(n), rows.y.copy(), np.empty(n), np.zeros(len(w))
        for part, A in rows.blocks:
            if of_residual:
                y[part] = _residuals(A, rows.y[part], w)
                r[part] = y[part] if np.array_equal(in_J, w) else _residuals(A, rows.y[part], in_J)
            else:
                z[part] = A @ w
            own = rows.q[part] * rows.loss.derivative(y[part], z[part]) if theta is None else theta[part]
            point[part] = np.where(np.abs(own) < UNDERFLOW, 0.0, own)
            u += A.T @ point[part]
        weights = _row_weights(rows, point)
        error, factor = rows.product_error(point), rows.factor(J, weights)
        v = np.clip(u, -program.limits, program.limits)
        # the weights of other losses are at most q
        sizes = rows.sizes_of(weights) if isinstance(rows.loss, LogLink) else rows.sizes
        return cls(program, J, y, z, point, u, r, v, weights, error, sizes, factor)

    def objective(self) -> float:
        """P(w), rounded up: an error of z of e in root mean square raises the risk by |l'| e + max l'' e^2 / 2."""
        rows, w, loss = self.program.rows, self.program.w, self.program.rows.loss
        error = self._error_of(w)
        if isinstance(loss, LogLink):
            rise = self._rise(loss)
        elif _is_any_convex(loss):
            rise = self._rise_by_convexity()
        elif loss.smooth:
            rise = _norm(rows, loss.derivative(self.y, self.z)) * error + loss.largest_curvature * error**2 / 2.0
        else:  # slopes are within the domain of the conjugate
            low, high = loss.domain(rows.y)
            slope = float(np.maximum(-low, high).max(initial=0.0))
            rise = slope * np.sqrt(self.program.weight) * error
        penalty = float(self.program.l1 @ np.abs(w) + self.program.l2 @ w**2 / 2)
        value = float(rows.q @ loss.value(self.y, self.z)) + rows.offset
        return float((value + rise + penalty) * (1.0 + 2.0 * rows.rounding))

    def _rise(self, loss: LogLink) -> float:
        """What rounding takes from the risk at most: an error e_i of z_i makes |l'| e_i + l'' exp(e_i) e_i^2 / 2."""
        rows, w = self.program.rows, self.program.w
        error = gamma(int(np.count_nonzero(w)) + 40) * (1.0 + self._sizes_of_terms())
        of_value = rows.rounding * loss.value_size(self.y, self.z)
        slope, curvature = np.abs(loss.derivative(self.y, self.z)), loss.curvature(self.y, self.z)
        return float(rows.q @ (slope * error + curvature * np.exp(error) * error**2 / 2.0 + of_value))

    def _rise_by_convexity(self) -> float:
        """What rounding takes from the risk at most: a convex loss rises most at an end of the error of y - z."""
        rows, w, loss = self.program.rows, self.program.w, self.program.rows.loss
        error = gamma(int(np.count_nonzero(w)) + 40) * (np.abs(rows.y) + self._sizes_of_terms())
        top = np.maximum(loss.value(self.y, error), loss.value(self.y, -error))
        rise = np.maximum(top - loss.value(self.y, self.z), 0.0)
        return float(rows.q @ (rise + 4.0 * rows.rounding * top))

    def _sizes_of_terms(self) -> FloatArray:
        """sum_k |A_ik w_k| of each row."""
        w = np.abs(self.program.w)
        return np.concatenate([np.zeros(0), *(np.abs(A) @ w for _, A in self.program.rows.blocks)])

    def _error_of(self, w: FloatArray) -> float:
        """Root mean square error of y - A w as computed, or of A w if the loss is not one of y - z, at most."""
        rows, m = self.program.rows, int(np.count_nonzero(w)) + 20
        return gamma(m) * (_norm(rows, rows.y) + float(rows.sizes @ np.abs(w)))

    def moved(self, negligible: float) -> FloatArray:
        """theta - Delta up to rounding, or, if J has no factor, theta with 0 for rows of negligible loss.

        Such rows may be the reason why columns are dependent; without them, the risk is lower.
        """
        rows, theta, m, factor = self.program.rows, self.theta.copy(), self.weights, self.factor
        if factor is None:
            losses = rows.q * rows.loss.value(self.y, self.z)
            order = np.argsort(losses)
            theta[order[np.cumsum(losses[order]) <= negligible]] = 0.0
            return theta
        low, high = rows.loss.domain(rows.y)
        inside = (theta > rows.q * low) & (theta < rows.q * high)
        if rows.loss.of_residual and not inside.all():  # rows at the ends of their domain stay there
            part_of = np.where(inside, m, 0.0)
            found = rows.factor(self.J, part_of)
            if found is not None and len(found.columns) + len(found.others) == len(self.J):
                m, factor = part_of, found
        c = factor.coefficients((self.u - self.v)[factor.columns])
        for part, A in rows.blocks:
            step = A[:, factor.columns] @ c
            if not rows.loss.of_residual:  # no row leaves its domain
                step = np.clip(step, -0.5, 0.5)
            theta[part] -= m[part] * step
        return theta

    def proof(self) -> Proof:
        """The objective, and the bound of the module."""
        rows, factor, objective = self.program.rows, self.factor, self.objective()
        (nearly, _), (proven, theta) = (self._value(error) for error in (np.zeros_like(self.error), self.error))
        if factor is None:  # penalties of J that are negligible count as 0, up to rounding
            in_J = float(self.program.limits[self.J] @ np.abs(self.program.w[self.J]))
            proven, nearly = 0.0, nearly if in_J <= NEGLIGIBLE * objective else 0.0
        bound = max(0.0, proven) * (1.0 - gamma(2 * len(rows.y) + 100))
        return Proof(objective, rows.offset + bound, rows.offset + max(0.0, nearly), theta)

    def _value(self, error: FloatArray) -> tuple[float, FloatArray]:
        """D at s (theta - Delta) without the offset, rounded down, for u up to an error; and s theta."""
        rows, factor, g = self.program.rows, self.factor, self.program.rows.rounding
        l1, l2, w = self.program.l1, self.program.l2, self.program.w
        delta, distance = 0.0, np.zeros(1)
        if factor is not None and len(factor.columns):
            # where the conjugate is finite everywhere, the distances of rows do not matter
            blocks = () if isinstance(rows.loss, Squared) else rows.blocks
            eps = (self.u - self.v)[factor.columns]
            delta, distance = factor.distances(eps, error[factor.columns], blocks)
        largest = (np.abs(self.u) + error + self.sizes * delta) * (1.0 + 8.0 * g)
        largest[self.J] = np.abs(self.v[self.J])
        if factor is not None:
            largest[factor.others] = np.abs(factor.combination.T @ self.v[factor.columns]) * (1.0 + 8.0 * g)
        scale = self._feasible_scale(largest, distance) * (1.0 - MARGIN)
        theta = self.theta * scale
        value = -float(rows.q @ rows.loss.conjugate_inside(self.r, theta / rows.q))
        value -= _penalty_part(l1, l2, largest * scale) * (1.0 + 4.0 * g) + UNDERFLOW
        if rows.loss.of_residual:
            products = self.v[self.J] * w[self.J]
            value -= scale * float(products.sum()) + 4.0 * g * float(np.abs(products).sum())
        if _is_any_convex(rows.loss):
            return value - self._lost_by_convexity(theta, scale * distance), theta
        return value - self._lost(theta, scale * delta, distance), theta

    def _feasible_scale(self, largest: FloatArray, distance: FloatArray) -> float:
        """The largest s <= 1 with s |a_k'theta| <= l1_k where l2_k = 0, and within the domain of a loss of y - z."""
        rows, l1 = self.program.rows, self.program.l1
        over = (self.program.l2 == 0) & (largest > l1)
        scale = float(np.min(l1[over] / largest[over], initial=1.0))
        if not rows.loss.of_residual or isinstance(rows.loss, Squared):
            return scale
        low, high = rows.loss.domain(rows.y)
        t = self.theta / rows.q
        for end, limit in ((t + distance, high), (distance - t, -low)):
            over = end > limit
            scale = min(scale, float(np.min(limit[over] / end[over], initial=1.0)))
        return scale

    def _lost(self, theta: FloatArray, delta: float, distance: FloatArray) -> float:
        """What the sum of the conjugates at the exactly feasible point is above the computed one, at most."""
        rows, g = self.program.rows, self.program.rows.rounding
        if not rows.loss.of_residual:
            if not distance.max(initial=0.0) <= 0.5:
                return np.inf
            t, moved = theta / rows.q, self.weights > 0
            slope = np.zeros(len(t))
            slope[moved] = np.abs(rows.loss.dual_slope(rows.y[moved], t[moved])) + np.log(3.0)
            lost = delta * float(np.sqrt(self.weights @ slope**2)) * (1.0 + 4.0 * g)
            return lost + 2.0 * g * float(rows.q @ rows.loss.conjugate_size(rows.y, t)) * (1.0 + g)
        c, error_r = rows.loss.conjugate_curvature or 0.0, self._error_of(self._w_in_J())
        size, dual = _norm(rows, self.r), rows.dual_norm(theta)
        step = (
            delta * (_norm(rows, self.r + c * theta / rows.q) + 4.0 * g * (size + c * dual) + error_r)
            + c * delta**2 / 2.0
        )
        return float((step + dual * error_r + 4.0 * g * (dual * size + c * dual**2)) * (1.0 + 4.0 * g))

    def _lost_by_convexity(self, theta: FloatArray, distance: FloatArray) -> float:
        """The same for a conjugate t y + g(t) with any convex g, which rises most at an end of the distance of t."""
        rows, loss, g = self.program.rows, self.program.rows.loss, self.program.rows.rounding
        t, zero = theta / rows.q, np.zeros(len(theta))
        distance = distance + 4.0 * g * np.abs(t)
        here, low, high = (loss.conjugate(self.r, end) for end in (t, t - distance, t + distance))
        of_g = [np.abs(loss.conjugate(zero, end)) for end in (t, t - distance, t + distance)]
        size = np.abs(self.r) * (np.abs(t) + distance) + np.max(of_g, axis=0)
        lost = rows.q @ (np.maximum(np.maximum(low, high) - here, 0.0) + 8.0 * g * size)
        of_r = (_norm(rows, t) + _norm(rows, distance)) * self._error_of(self._w_in_J())
        return float((lost + of_r) * (1.0 + 4.0 * g))

    def _w_in_J(self) -> FloatArray:
        """w, with 0 outside of J."""
        in_J = np.zeros_like(self.program.w)
        in_J[self.J] = self.program.w[self.J]
        return in_J


def _is_any_convex(loss: Loss) -> bool:
    """Whether all that is known of a loss is that it is convex in y - z."""
    return loss.of_residual and loss.conjugate_curvature is None


def _row_weights(rows: Rows, theta: FloatArray) -> FloatArray:
    """The m of the rows; 0 where theta is 0."""
    if not rows.loss.of_residual:
        own = rows.q * rows.loss.dual_curvature(rows.y, (1.0 - MARGIN) * (theta / rows.q))
        return np.where(theta == 0, 0.0, own)
    return rows.q if np.all(theta) else np.where(theta == 0, 0.0, rows.q)


def _norm(rows: Rows, values: FloatArray) -> float:
    """sqrt(sum_i q_i v_i^2)."""
    return float(np.sqrt(rows.q @ values**2))


def _residuals(A: Matrix, y: FloatArray, w: FloatArray) -> FloatArray:
    used = np.flatnonzero(w)
    return np.asarray(y - (A @ w if 2 * len(used) > len(w) else A[:, used] @ w[used]))


def _penalty_part(l1: FloatArray, l2: FloatArray, u: FloatArray) -> float:
    """sum_k (u_k - l1_k)_+^2 / (2 l2_k); infinite if it is beyond the range of floating-point numbers."""
    soft = l2 > 0
    with np.errstate(over="ignore"):
        return float(0.5 * np.sum((np.maximum(u - l1, 0.0)[soft] / np.sqrt(l2[soft])) ** 2))
