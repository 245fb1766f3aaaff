"""Leaf costs for losses without a closed form; what they cost is stated in :mod:`formulations.leaf_cost`.

Logistic    Newton's method with step halving, on the rows of the leaf. A leaf with one class only has no minimiser: w = 0
            and b at the log-odds where the loss is below rounding.
Any other   one cvxpy program for all leaves of a data set,

                min over b, w of   sum_i s_i l(g_i y_i, g_i (b + w'a_i)) + r |w|^2,

            compiled once with the parameters g in {0,1}^n (which rows are in the leaf) and r. Residual losses are 0 for
            the other rows; the logistic loss is log 2, which is subtracted.
"""

import warnings

import cvxpy as cp
import numpy as np
from scipy.special import expit

from formulations.adaptive_erm import SolverError
from formulations.leaf_cost import IntArray, LeafCost, LeafModel, PatternRows, SquaredLeafCost
from formulations.losses import Array, Logistic, Loss, Squared

# Log-odds of a leaf with one class only: its loss, log(1 + exp(-30)), is 1e-13.
CERTAIN = 30.0
NEWTON_STEPS = 100
# Newton's method stops where a step promises less than this share of the cost.
DECREMENT = 1e-15
TOLERANCES = (1e-10, 1e-8)


def leaf_cost_of(rows: PatternRows, loss: Loss, ridge: float, ridge_scale: str = "leaf") -> LeafCost:
    """The leaf cost for a loss."""
    if isinstance(loss, Squared):
        return SquaredLeafCost(rows, ridge, ridge_scale)
    if isinstance(loss, Logistic):
        return LogisticLeafCost(rows, ridge, ridge_scale)
    return ProgramLeafCost(rows, loss, ridge, ridge_scale)


class LogisticLeafCost(LeafCost):
    """Logistic loss, by Newton's method; the targets are -1 and 1."""

    def __init__(self, rows: PatternRows, ridge: float, ridge_scale: str = "leaf") -> None:
        if not ridge > 0:
            raise ValueError("The logistic loss needs ridge > 0: without it a leaf whose classes separate has no fit.")
        super().__init__(rows, Logistic(), ridge, ridge_scale)

    def fit(self, members: IntArray) -> LeafModel:
        places = self.rows.of_patterns(members)
        A, s = self.rows.A[places], self.rows.s[places]
        C = np.column_stack([np.ones(len(s)), A])
        r = self.penalty(float(s.sum()))
        fits = [_newton(C, target, s, r) for target in self.rows.y[places].T]
        v = np.array([fit[0] for fit in fits])
        return LeafModel(v[:, 0], v[:, 1:], float(sum(fit[1] for fit in fits)))


def _newton(C: Array, y: Array, s: Array, r: float) -> tuple[Array, float]:
    """Minimiser of sum_i s_i log(1 + exp(-y_i c_i'v)) + r |v without v_0|^2, and its value."""
    loss, v = Logistic(), np.zeros(C.shape[1])
    if np.ptp(y) == 0:
        v[0] = CERTAIN * y[0]
        return v, float(s @ loss.value(y, C @ v))
    penalty = np.append(0.0, np.full(C.shape[1] - 1, 2.0 * r))
    positive = s[y > 0].sum() / s.sum()
    v[0] = np.log(positive / (1.0 - positive))

    def value(v: Array) -> float:
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
        if new >= best:  # what is left is rounding
            return v, best
        v, best = v - share * step, new
    raise SolverError("Newton's method did not converge on a leaf: use a larger ridge.")


class ProgramLeafCost(LeafCost):
    """Any convex loss, through one compiled cvxpy program."""

    def __init__(self, rows: PatternRows, loss: Loss, ridge: float, ridge_scale: str = "leaf") -> None:
        super().__init__(rows, loss, ridge, ridge_scale)
        n, k = rows.A.shape
        self.unit = float(np.sqrt(np.mean(rows.y**2))) if loss.task == "regression" else 1.0
        self.unit = self.unit or 1.0
        scaled, self.factor = loss.in_units(self.unit)
        self.inside = cp.Parameter(n, nonneg=True)
        self.strength = cp.Parameter(nonneg=True)
        self.b, self.w = cp.Variable(), cp.Variable(k)
        y = rows.y[:, 0] / self.unit
        target = cp.multiply(self.inside, y) if loss.task == "regression" else y
        prediction = cp.multiply(self.inside, self.b + rows.A @ self.w)
        self.problem = cp.Problem(
            cp.Minimize(scaled.total(target, prediction, rows.s) + self.strength * cp.sum_squares(self.w))
        )

    def fit(self, members: IntArray) -> LeafModel:
        places = self.rows.of_patterns(members)
        inside = np.zeros(len(self.rows.s))
        inside[places] = 1.0
        A, y, s = self.rows.A[places], self.rows.y[places, 0], self.rows.s[places]
        r = self.penalty(float(s.sum()))
        self.inside.value, self.strength.value = inside, r * self.unit**2 / self.factor
        for tolerance in TOLERANCES:
            if self._solved(tolerance):
                b, w = float(self.b.value) * self.unit, self.w.value * self.unit
                cost = s @ self.loss.value(y, b + A @ w) + r * (w @ w)
                return LeafModel(np.array([b]), w[None, :], float(cost))
        raise SolverError(f"A leaf with {len(places)} rows was not solved: {self.problem.status}; use a larger ridge.")

    def _solved(self, tolerance: float) -> bool:
        names = ("tol_gap_abs", "tol_gap_rel", "tol_feas")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # an inaccurate solve is tried again
                self.problem.solve(solver="CLARABEL", **dict.fromkeys(names, tolerance))
        except cp.error.SolverError:
            return False
        return bool(self.problem.status == cp.OPTIMAL)
