"""The cost of a leaf under the logistic loss.

The cost of :mod:`formulations.leaves.cost` is computed by Newton's method with step halving, on the rows of the leaf. A
leaf with a single class has no minimiser: w = 0, and b is a log-odds at which the loss is below rounding. The lower end
of its interval is the dual value at the derivatives of the losses (:mod:`formulations.erm.dual_bound`).
"""

import numpy as np
from scipy.special import expit

from formulations.arrays import FloatArray, IntArray
from formulations.certificate import SolverError
from formulations.erm.dual_bound import Rows, prove
from formulations.erm.risk import EmpiricalRisk
from formulations.leaves.cost import LeafCost, LeafModel, PatternRows
from formulations.losses import Logistic

# Log-odds of a leaf with a single class: its loss, log(1 + exp(-30)), is 1e-13.
CERTAIN = 30.0
NEWTON_STEPS = 100
# Newton's method stops if a step promises less than this share of the cost.
DECREMENT = 1e-15
# If a step promises more than this share without lowering the cost, the leaf cannot be solved accurately.
STALLED = 1e-9
# Relative rounding error of the value at a model.
ROUNDING = 1e-14


class LogisticLeafCost(LeafCost):
    """Logistic loss, by Newton's method; the targets are -1 and 1."""

    def __init__(self, rows: PatternRows, ridge: float, ridge_scale: str = "leaf") -> None:
        if not ridge > 0:
            raise ValueError("The logistic loss needs ridge > 0: without it, a leaf with separable classes has no fit.")
        super().__init__(rows, Logistic(), ridge, ridge_scale)
        self.centre = rows.s @ rows.A / rows.s.sum()

    def _fit(self, members: IntArray) -> LeafModel:
        C, targets, s, r = self._leaf(members)
        fits = [_newton(C, target, s, r) for target in targets]
        v = np.array([fit[0] for fit in fits])
        intercepts = v[:, 0] - v[:, 1:] @ self.centre
        return LeafModel(intercepts, v[:, 1:], float(sum(fit[1] for fit in fits)) * (1.0 + ROUNDING))

    def _lower_end(self, members: IntArray) -> float:
        C, targets, s, r = self._leaf(members)
        w = self.fit(members).weights
        v = np.column_stack([self.fit(members).intercept + w @ self.centre, w])
        l1, l2 = np.zeros(C.shape[1]), np.append(0.0, np.full(C.shape[1] - 1, 2.0 * r))
        total = 0.0
        for y, coefficients in zip(targets, v, strict=True):
            total += prove(Rows.of(EmpiricalRisk(C, y, s, self.loss)), l1, l2, coefficients).bound
        return total

    def _leaf(self, members: IntArray) -> tuple[FloatArray, FloatArray, FloatArray, float]:
        """Columns with the intercept first, targets, weights and ridge of a leaf."""
        indices = self.rows.of_patterns(members)
        s = self.rows.s[indices]
        C = np.column_stack([np.ones(len(s)), self.rows.A[indices] - self.centre])
        return C, self.rows.y[indices].T, s, self.penalty(float(s.sum()))


def _newton(C: FloatArray, y: FloatArray, s: FloatArray, r: float) -> tuple[FloatArray, float]:
    """Minimiser of sum_i s_i log(1 + exp(-y_i c_i'v)) + r |v without v_0|^2, and its value."""
    loss, v = Logistic(), np.zeros(C.shape[1])
    if np.ptp(y) == 0:
        v[0] = CERTAIN * y[0]
        return v, float(s @ loss.value(y, C @ v))
    penalty = np.append(0.0, np.full(C.shape[1] - 1, 2.0 * r))
    positive = s[y > 0].sum() / s.sum()
    v[0] = np.log(positive / (1.0 - positive))

    def value(v: FloatArray) -> float:
        return float(s @ loss.value(y, C @ v) + 0.5 * penalty @ v**2)

    best = value(v)
    for _ in range(NEWTON_STEPS):
        p = expit(C @ v)
        gradient = C.T @ (s * (p - (y > 0))) + penalty * v
        hessian = (C.T * (s * p * (1.0 - p))) @ C + np.diag(penalty)
        step = np.linalg.solve(hessian, gradient)
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
    raise SolverError("Newton's method did not converge on a leaf: use a larger ridge, or scale=True.")
