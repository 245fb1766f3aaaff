"""The cost of a leaf under the logistic loss.

The cost of :mod:`formulations.leaves.cost` is computed by Newton's method with step halving, on the rows of the leaf.
Its equations are scaled to a diagonal of 1, and damped if rounding has made them singular. A leaf with a single class
has no minimiser: w = 0, and b is a log-odds at which the loss is below rounding.

By duality, with C the columns, r_j = r(G) d_j and H(p) = - p log p - (1 - p) log(1 - p), the cost is at least

    sum_i s_i H(p_i)  -  sum_j (sum_i s_i y_i p_i C_ij)^2 / (4 r_j)       for p in [0, 1]^n with sum_i s_i y_i p_i = 0.

At the optimum p_i = 1 / (1 + exp(y_i c_i'v)). For the lower end, p is computed from the model, and scaled down in the
class where it is too large; if Newton's method has stalled, the interval is wider. Sums over n rows are known to a
relative g = (n + 20) 2^-52. The last scaling that would make the sum exactly 0 is by at least 1 - 4g, which loses at
most 4g H(p), as H is concave and H(0) = 0, and moves the sums of the penalty by at most 4g of their absolute values.
"""

import numpy as np
import scipy.linalg
from scipy.special import entr, expit

from formulations.arrays import FloatArray, IntArray
from formulations.leaves.cost import LARGEST_RIDGE, LeafCost, LeafModel, PatternRows
from formulations.losses import Logistic

# Log-odds of a leaf with a single class: its loss, log(1 + exp(-30)), is 1e-13.
CERTAIN = 30.0
NEWTON_STEPS = 100
# Newton's method stops if a step promises less than this share of the cost.
DECREMENT = 1e-15
# A full step that promises less than this share is the last one: the next would promise about its square.
LAST = 1e-9
# Damping of equations that are singular up to rounding, tried in turn.
DAMPING = (0.0, 1e-14, 1e-11, 1e-8, 1e-4)
# Diagonal entries below this count as this one.
TINY = 1e-300

# Columns, targets and weights.
Leaf = tuple[FloatArray, FloatArray, FloatArray]


class LogisticLeafCost(LeafCost):
    """Logistic loss, by Newton's method; the targets are -1 and 1."""

    def __init__(self, rows: PatternRows, ridge: float, ridge_scale: str = "leaf") -> None:
        if not ridge > 0:
            raise ValueError("The logistic loss needs ridge > 0: without it, a leaf with separable classes has no fit.")
        super().__init__(rows, Logistic(), ridge, ridge_scale)
        self.centre = rows.s @ rows.A / rows.s.sum()
        self.largest = np.append(1.0, np.abs(rows.A - self.centre).max(axis=0))
        self._held: dict[bytes, Leaf] = {}

    def _fit(self, members: IntArray) -> LeafModel:
        C, targets, s = self._leaf(members)
        fits = [_newton(C, target, s, self._ridges(s)) for target in targets]
        v = np.array([fit[0] for fit in fits])
        intercepts = v[:, 0] - v[:, 1:] @ self.centre
        # predictions are rounded, and losses grow by at most as much; then their sum is rounded
        error = (len(v[0]) + 4) * float(s.sum() * (np.abs(v) @ self.largest).sum())
        cost = float(sum(fit[1] for fit in fits))
        return LeafModel(intercepts, v[:, 1:], cost + 2.0**-52 * (error + (len(s) + 20) * cost))

    def _lower_end(self, members: IntArray) -> float:
        C, targets, s = self._leaf(members)
        r, w = self._ridges(s), self.fit(members).weights
        v = np.column_stack([self.fit(members).intercept + w @ self.centre, w])
        return sum(_dual_value(C, y, s, r, each, self.largest) for y, each in zip(targets, v, strict=True))

    def _ridges(self, s: FloatArray) -> FloatArray:
        """r(G) d_j of every leaf feature."""
        with np.errstate(over="ignore"):
            return np.minimum(self.ridges * (float(s.sum()) if self.ridge_scale == "sample" else 1.0), LARGEST_RIDGE)

    def _leaf(self, members: IntArray) -> Leaf:
        """Columns with the intercept first, targets and weights of a leaf; the last one is held."""
        key = np.asarray(members).tobytes()
        if key not in self._held:
            indices = self.rows.of_patterns(members)
            C = np.column_stack([np.ones(len(indices)), self.rows.A[indices] - self.centre])
            self._held = {key: (C, self.rows.y[indices].T, self.rows.s[indices])}
        return self._held[key]


def _newton(C: FloatArray, y: FloatArray, s: FloatArray, r: FloatArray) -> tuple[FloatArray, float]:
    """Minimiser of sum_i s_i log(1 + exp(-y_i c_i'v)) + sum_j r_j v_j^2, without r_0, and its value."""
    loss, v = Logistic(), np.zeros(C.shape[1])
    if np.ptp(y) == 0:
        v[0] = CERTAIN * y[0]
        return v, float(s @ loss.value(y, C @ v))
    penalty, label = np.append(0.0, 2.0 * r), (y > 0).astype(float)
    v[0] = np.log(s @ label) - np.log(s @ (1.0 - label))

    def value(v: FloatArray) -> float:
        with np.errstate(over="ignore", invalid="ignore"):  # too long a step is shortened
            return float(s @ loss.value(y, C @ v) + 0.5 * penalty @ v**2)

    best = value(v)
    for _ in range(NEWTON_STEPS):
        p = expit(C @ v)
        gradient = C.T @ (s * (p - label)) + penalty * v
        step = _newton_step((C.T * (s * p * (1.0 - p))) @ C, penalty, gradient)
        decrement = float(gradient @ step)
        if not decrement > DECREMENT * best:
            break
        share = 1.0
        while (new := value(v - share * step)) > best - 1e-4 * share * decrement and share > 1e-6:
            share /= 2
        if not new < best:
            break  # what is left is rounding
        v, best = v - share * step, new
        if share == 1.0 and decrement < LAST * best:
            break
    return v, best


def _newton_step(hessian: FloatArray, penalty: FloatArray, gradient: FloatArray) -> FloatArray:
    """Solution of (H + diag(penalty)) x = gradient, scaled to a diagonal of 1; 0 if damping does not help."""
    diagonal = np.diag_indices(len(gradient))
    hessian[diagonal] += penalty
    unit = 1.0 / np.sqrt(np.maximum(hessian[diagonal], TINY))
    hessian *= np.outer(unit, unit)
    for damping in DAMPING:
        hessian[diagonal] = 1.0 + damping
        _, step, failed = scipy.linalg.lapack.dposv(hessian, unit * gradient)
        if not failed and np.isfinite(step).all():
            return np.asarray(unit * step)
    return np.zeros_like(gradient)


def _dual_value(
    C: FloatArray, y: FloatArray, s: FloatArray, r: FloatArray, v: FloatArray, largest: FloatArray
) -> float:
    """A lower bound on the minimum of :func:`_newton`, from a nearly optimal v; no entry of C exceeds ``largest``."""
    g = (len(y) + 20) * 2.0**-52
    p = expit(-y * (C @ v))
    theta = s * p
    whole, difference = float(theta.sum()), float(theta @ y)
    share = (whole - abs(difference)) / (whole + abs(difference))
    if not share > 0.5:  # a single class, or far from optimal
        return 0.0
    p[(y > 0) == (difference > 0)] *= share
    theta = s * p
    entropy = float(s @ (entr(p) + entr(1.0 - p)))
    slopes = np.abs((y * theta) @ C)[1:] + 8.0 * g * whole * largest[1:]
    with np.errstate(over="ignore"):
        parts = np.divide(slopes * slopes, 4.0 * r, out=np.where(slopes > 0, np.inf, 0.0), where=r > 0)
        penalty = float(np.sum(parts))
    return max(0.0, entropy * (1.0 - 8.0 * g) - 16 * 2.0**-53 * float(s.sum()) - penalty * (1.0 + 8.0 * g))
