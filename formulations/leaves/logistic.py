"""The cost of a leaf under the logistic loss.

The cost of :mod:`formulations.leaves.cost` is computed by Newton's method with step halving, on the rows of the leaf. A
leaf with a single class has no minimiser: w = 0, and b is a log-odds at which the loss is below rounding.

By duality, with C the columns and H(p) = - p log p - (1 - p) log(1 - p), the cost is at least

    sum_i s_i H(p_i)  -  sum_j (sum_i s_i y_i p_i C_ij)^2 / (4 r)         for p in [0, 1]^n with sum_i s_i y_i p_i = 0.

At the optimum p_i = 1 / (1 + exp(y_i c_i'v)). For the lower end, p is computed from the model, and scaled down in the
class where it is too large. Sums over n rows are known to a relative g = (n + 20) 2^-52. The last scaling that would
make the sum exactly 0 is by at least 1 - 4g, which loses at most 4g H(p), as H is concave and H(0) = 0, and moves the
sums of the penalty by at most 4g of their absolute values.
"""

import numpy as np
import scipy.linalg
from scipy.special import entr, expit

from formulations.arrays import FloatArray, IntArray
from formulations.certificate import SolverError
from formulations.leaves.cost import LeafCost, LeafModel, PatternRows
from formulations.losses import Logistic

# Log-odds of a leaf with a single class: its loss, log(1 + exp(-30)), is 1e-13.
CERTAIN = 30.0
NEWTON_STEPS = 100
# Newton's method stops if a step promises less than this share of the cost.
DECREMENT = 1e-15
# A full step that promises less than this share is the last one: the next would promise about its square.
LAST = 1e-9
# If a step promises more than this share without lowering the cost, the leaf cannot be solved accurately.
STALLED = 1e-9

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
        r = self.penalty(float(s.sum()))
        fits = [_newton(C, target, s, r) for target in targets]
        v = np.array([fit[0] for fit in fits])
        intercepts = v[:, 0] - v[:, 1:] @ self.centre
        # predictions are rounded, and losses grow by at most as much; then their sum is rounded
        error = (len(v[0]) + 4) * float(s.sum() * (np.abs(v) @ self.largest).sum())
        cost = float(sum(fit[1] for fit in fits))
        return LeafModel(intercepts, v[:, 1:], cost + 2.0**-52 * (error + (len(s) + 20) * cost))

    def _lower_end(self, members: IntArray) -> float:
        C, targets, s = self._leaf(members)
        r, w = self.penalty(float(s.sum())), self.fit(members).weights
        v = np.column_stack([self.fit(members).intercept + w @ self.centre, w])
        return sum(_dual_value(C, y, s, r, each, self.largest) for y, each in zip(targets, v, strict=True))

    def _leaf(self, members: IntArray) -> Leaf:
        """Columns with the intercept first, targets and weights of a leaf; the last one is held."""
        key = np.asarray(members).tobytes()
        if key not in self._held:
            indices = self.rows.of_patterns(members)
            C = np.column_stack([np.ones(len(indices)), self.rows.A[indices] - self.centre])
            self._held = {key: (C, self.rows.y[indices].T, self.rows.s[indices])}
        return self._held[key]


def _newton(C: FloatArray, y: FloatArray, s: FloatArray, r: float) -> tuple[FloatArray, float]:
    """Minimiser of sum_i s_i log(1 + exp(-y_i c_i'v)) + r |v without v_0|^2, and its value."""
    loss, v = Logistic(), np.zeros(C.shape[1])
    if np.ptp(y) == 0:
        v[0] = CERTAIN * y[0]
        return v, float(s @ loss.value(y, C @ v))
    penalty = np.append(0.0, np.full(C.shape[1] - 1, 2.0 * r))
    diagonal, label = np.diag_indices(len(v)), (y > 0).astype(float)
    positive = s @ label / s.sum()
    v[0] = np.log(positive / (1.0 - positive))

    def value(v: FloatArray) -> float:
        return float(s @ loss.value(y, C @ v) + 0.5 * penalty @ v**2)

    best = value(v)
    for _ in range(NEWTON_STEPS):
        p = expit(C @ v)
        gradient = C.T @ (s * (p - label)) + penalty * v
        hessian = (C.T * (s * p * (1.0 - p))) @ C
        hessian[diagonal] += penalty
        _, step, failed = scipy.linalg.lapack.dposv(hessian, gradient)
        if failed:
            break
        decrement = float(gradient @ step)
        if not decrement > DECREMENT * best:
            return v, best
        share = 1.0
        while (new := value(v - share * step)) > best - 1e-4 * share * decrement and share > 1e-6:
            share /= 2
        if new >= best:
            if decrement > STALLED * best:
                break
            return v, best  # what is left is rounding
        v, best = v - share * step, new
        if share == 1.0 and decrement < LAST * best:
            return v, best
    raise SolverError("Newton's method did not converge on a leaf: use a larger ridge, or scale=True.")


def _dual_value(C: FloatArray, y: FloatArray, s: FloatArray, r: float, v: FloatArray, largest: FloatArray) -> float:
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
    penalty = float(slopes @ slopes) / (4.0 * r)
    return max(0.0, entropy * (1.0 - 8.0 * g) - 16 * 2.0**-53 * float(s.sum()) - penalty * (1.0 + 8.0 * g))
