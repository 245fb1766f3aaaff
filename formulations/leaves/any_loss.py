"""The cost of a leaf under any convex loss, by one cvxpy program for all leaves of a data set.

    min over b, w of   sum_i s_i l(g_i y_i, g_i (b + w'a_i)) + r |w|^2

is compiled once, with parameters r and g in {0,1}^n, the rows of the leaf. Rows outside the leaf add a constant;
columns, and y in regression, are first shifted by their means over all rows, which b absorbs. The cost of
:mod:`formulations.leaves.cost` is then evaluated at the solution, on the rows of the leaf. The lower end of its
interval is the dual value at the multipliers of the predictions (:mod:`formulations.erm.dual_bound`).
"""

import warnings

import cvxpy as cp
import numpy as np

from formulations.arrays import IntArray
from formulations.certificate import SolverError
from formulations.erm.dual_bound import Rows, prove
from formulations.erm.risk import EmpiricalRisk
from formulations.leaves.cost import LeafCost, LeafModel, PatternRows
from formulations.losses import Loss

# Tolerances of the solver, tried in turn.
TOLERANCES = (1e-10, 1e-8)


class ProgramLeafCost(LeafCost):
    """Any convex loss, by one compiled cvxpy program."""

    def __init__(self, rows: PatternRows, loss: Loss, ridge: float, ridge_scale: str = "leaf") -> None:
        super().__init__(rows, loss, ridge, ridge_scale)
        n, k = rows.A.shape
        share = rows.s / rows.s.sum()
        regression = loss.task == "regression"
        self.centre, self.level = share @ rows.A, float(share @ rows.y[:, 0]) if regression else 0.0
        self.unit = (float(np.std(rows.y)) if regression else 1.0) or 1.0
        scaled, self.factor = loss.in_units(self.unit)
        self.inside = cp.Parameter(n, nonneg=True)
        self.strength = cp.Parameter(nonneg=True)
        self.b, self.w = cp.Variable(), cp.Variable(k)
        y = (rows.y[:, 0] - self.level) / self.unit
        target = cp.multiply(self.inside, y) if regression else y
        prediction = cp.multiply(self.inside, self.b + (rows.A - self.centre) @ self.w)
        z = cp.Variable(n)
        self.link = prediction == z
        self.problem = cp.Problem(
            cp.Minimize(scaled.total(target, z, rows.s) + self.strength * cp.sum_squares(self.w)), [self.link]
        )

    def _fit(self, members: IntArray) -> LeafModel:
        indices = self.rows.of_patterns(members)
        inside = np.zeros(len(self.rows.s))
        inside[indices] = 1.0
        r = self.penalty(float(self.rows.s[indices].sum()))
        self.inside.value, self.strength.value = inside, r * self.unit**2 / self.factor
        for tolerance in TOLERANCES:
            if self._solved(tolerance):
                return self._proven(members, indices, r)
        raise SolverError(f"A leaf with {len(indices)} rows was not solved: {self.problem.status}; use a larger ridge.")

    def _proven(self, members: IntArray, indices: IntArray, r: float) -> LeafModel:
        """The model that the program found, with the ends of its interval."""
        A, y, s = self.rows.A[indices] - self.centre, self.rows.y[indices, 0] - self.level, self.rows.s[indices]
        varies = np.ptp(A, axis=0) > 0  # the intercept makes up for constant columns
        w = np.where(varies, self.w.value * self.unit, 0.0)
        b = float(self.b.value) * self.unit + A[0] @ (self.w.value * self.unit - w)
        C, l2 = np.column_stack([np.ones(len(s)), A[:, varies]]), np.append(0.0, np.full(varies.sum(), 2.0 * r))
        theta = self.link.dual_value[indices] * (self.factor / self.unit)
        rows = Rows.of(EmpiricalRisk(C, y, s, self.loss))
        proof = prove(rows, np.zeros_like(l2), l2, np.append(b, w[varies]), theta)
        self._lower_ends[np.asarray(members).tobytes()] = proof.bound
        return LeafModel(np.array([b + self.level - self.centre @ w]), w[None, :], proof.objective)

    def _lower_end(self, members: IntArray) -> float:
        return self._lower_ends[np.asarray(members).tobytes()]  # from the fit

    def _solved(self, tolerance: float) -> bool:
        names = ("tol_gap_abs", "tol_gap_rel", "tol_feas")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # an inaccurate solve is tried again
                self.problem.solve(solver="CLARABEL", **dict.fromkeys(names, tolerance))
        except cp.error.SolverError:
            return False
        return bool(self.problem.status == cp.OPTIMAL)
