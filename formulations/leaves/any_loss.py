"""The cost of a leaf under any convex loss, by a cvxpy program on the rows of the leaf.

*Program.* The columns of a leaf are shifted by their means, which b absorbs; columns that are constant there have
weight 0. With r_k = r(G) d_k and the singular value decomposition of the columns in units of their penalty,
A diag(r)^-1/2 = U S V', the cost of :mod:`formulations.leaves.cost` is, for w = diag(r)^-1/2 V S^-1 t,

    min over b, t of   sum_i s_i l(y_i, b + (U t)_i) + sum_k (t_k / S_k)^2

in orthogonal columns, whatever their units and however they depend on each other. Directions with S_k = 0 up to
rounding have no effect; columns and directions whose penalty overwhelms the loss have weight 0. Penalties that are
negligible, or 0, count as equal in the choice of directions. y is measured in units of its spread; a second program
measures it in units of the residuals of the first, and looks for the change of its solution.

*Interval.* The upper end is the value of the model found. The lower end is the dual value at the multipliers of the
predictions (:mod:`formulations.erm.dual_bound`). A leaf on which they do not meet is solved again with other options;
if they never do, it keeps the best model, at worst a constant one, with the best of the lower ends: its interval is
wider, and true.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import cvxpy as cp
import numpy as np
import scipy.linalg

from formulations.arrays import FloatArray, IntArray
from formulations.cone_solver import WITH_VALUES, run
from formulations.erm.dual_bound import Proof, Rows, prove
from formulations.erm.risk import EmpiricalRisk
from formulations.leaves.cost import LARGEST_RIDGE, LeafCost, LeafModel
from formulations.leaves.squared import COLLINEAR
from formulations.losses import Loss, best_constant
from formulations.rounding import exact_sum

# Solvers and tolerances, tried in turn.
ATTEMPTS = (("CLARABEL", 1e-10), ("CLARABEL", 1e-8), ("HIGHS", 1e-9), ("CLARABEL", 1e-6))
# A leaf is solved if its gap is below this share of its cost, or this of the cost of a constant.
CLOSED, NOTHING = 1e-7, 1e-10
# A penalty is negligible, or its direction has weight 0, if it is this multiple of the loss.
NEGLIGIBLE, OVERWHELMING = 1e-10, 1e12


class ProgramLeafCost(LeafCost):
    """Any convex loss, by a cvxpy program."""

    def _fit(self, members: IntArray) -> LeafModel:
        indices = self.rows.of_patterns(members)
        A, s = self.rows.A[indices], self.rows.s[indices]
        varies = np.ptp(A, axis=0) > 0  # the intercept makes up for constant columns
        per = float(s.sum()) if self.ridge_scale == "sample" else 1.0
        with np.errstate(over="ignore"):
            ridges = np.minimum(self.ridges[varies] * per, LARGEST_RIDGE)
        leaf = _Leaf(A[:, varies], self.rows.y[indices, 0], s, self.loss, ridges)
        v, upper, lower = leaf.solved()
        self._lower_ends[np.asarray(members).tobytes()] = lower
        w = np.zeros(len(varies))
        w[varies] = v[1:]
        intercept = float(v[0] + leaf.level - leaf.centre @ v[1:])
        return LeafModel(np.array([intercept]), w[None, :], upper, leaf.rounding(v, intercept))

    def _lower_end(self, members: IntArray) -> float:
        return self._lower_ends[np.asarray(members).tobytes()]  # from the fit


@dataclass(frozen=True)
class _Leaf:
    """The program of one leaf: columns that vary, target, weights and the ridge of each column."""

    A: FloatArray
    y: FloatArray
    s: FloatArray
    loss: Loss
    ridges: FloatArray

    @cached_property
    def centre(self) -> FloatArray:
        """Mean of each column."""
        return np.asarray(self.s @ self.A / self.s.sum())

    @cached_property
    def level(self) -> float:
        """Mean of the target; 0 in classification."""
        return float(self.s @ self.y / self.s.sum()) if self.loss.task == "regression" else 0.0

    @cached_property
    def columns(self) -> FloatArray:
        """Columns shifted by their means."""
        return self.A - self.centre

    @cached_property
    def target(self) -> FloatArray:
        """Target shifted by its mean."""
        return self.y - self.level

    @cached_property
    def rows(self) -> Rows:
        """The shifted rows as a dual bound needs them, the intercept first."""
        C = np.column_stack([np.ones(len(self.s)), self.columns])
        return Rows.of(EmpiricalRisk(C, self.target, self.s, self.loss))

    def rounding(self, v: FloatArray, intercept: float) -> float:
        """What an intercept, v_0 moved back to the rows as they are and rounded, adds to the value of v."""
        off = exact_sum(np.array([v[0], self.level, -intercept]), -self.centre, v[1:])
        z = v[0] + self.columns @ v[1:]
        losses = self.loss.value(self.target, z)
        return max(0.0, float(self.s @ (self.loss.value(self.target, z - off) - losses)))

    def solved(self) -> tuple[FloatArray, float, float]:
        """Intercept and weights of shifted rows, their value rounded up, and a proven lower bound."""
        b, theta = best_constant(self.target, self.s, self.loss)
        constant = np.append(b, np.zeros(self.A.shape[1]))
        null = float(self.s @ self.loss.value(self.target, np.full_like(self.target, b)))
        found: list[tuple[FloatArray, Proof]] = []
        for v, dual in self._duals(null):
            found.append((v, self._proof(v, dual)))
            objective = found[-1][1].objective
            if objective - found[-1][1].estimate <= max(CLOSED * objective, NOTHING * null):
                break
        else:
            found.append((constant, self._proof(constant, theta)))
        best, proof = min(found, key=lambda each: each[1].objective)
        lower = max((each.bound for _, each in found if np.isfinite(each.bound)), default=0.0)
        return best, proof.objective, lower

    def _proof(self, v: FloatArray, theta: FloatArray) -> Proof:
        with np.errstate(all="ignore"):  # a proof that overflows proves nothing
            l2 = np.append(0.0, 2.0 * self.ridges)
            proof = prove(self.rows, np.zeros_like(l2), l2, v, theta)
        return proof if np.isfinite(proof.objective) else proof._replace(objective=np.inf)

    def _duals(self, null: float) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Solutions with their multipliers as found, and corrected."""
        for v, theta in self._solutions(null):
            yield v, theta
            yield v, self._corrected(v, theta)

    def _corrected(self, v: FloatArray, theta: FloatArray) -> FloatArray:
        """Multipliers with C'theta = - 2 r v, changed in proportion to their distance from the ends of their domain."""
        ((_, C),) = self.rows.blocks
        low, high = self.loss.domain(self.target)
        theta = self.s * np.clip(theta / self.s, low, high)
        slack = np.clip(np.minimum(theta / self.s - low, high - theta / self.s), 0.0, 1.0)
        root, size = np.sqrt(self.s * slack), np.where(self.rows.sizes > 0, self.rows.sizes, 1.0)
        left = (C.T @ theta + np.append(0.0, 2.0 * self.ridges) * v) / size
        change = scipy.linalg.lstsq((root[:, None] * (C / size)).T, left, cond=COLLINEAR)[0]
        return theta - root * change

    def _solutions(self, null: float) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Coefficients of shifted rows and multipliers of their predictions, one attempt after the other."""
        if not self.A.shape[1] or null == 0.0:
            return  # nothing is better than a constant
        v = np.zeros(1 + self.A.shape[1])
        for solver, tolerance in ATTEMPTS:
            found = self._near(v, solver, tolerance)
            if found is not None:
                v = found[0]
                yield found

    def _near(self, v: FloatArray, solver: str, tolerance: float) -> tuple[FloatArray, FloatArray] | None:
        """The solution, from the program of its difference to v in units of the residuals of v, or None."""
        total = float(self.s.sum())
        target, unit = self.target, 1.0
        if self.loss.task == "regression":
            target = target - v[0] - self.columns @ v[1:]
            unit = float(self.s @ np.abs(target)) / total
        if unit == 0.0:
            return None
        scaled, factor = self.loss.in_units(unit)
        V = self._directions(unit**2 / (factor * total))
        if not V.shape[1]:
            return None
        root = np.sqrt(self.ridges * (unit**2 / (factor * total)))
        if solver == "HIGHS" and (self.loss.smooth or root.any()):
            return None  # it is for linear programs
        b, t, z = cp.Variable(), cp.Variable(V.shape[1]), cp.Variable(len(self.s))
        link = b + (self.columns @ V) @ t == z
        objective = scaled.total(target / unit, z, self.s / total)
        if root.any():
            objective = objective + cp.sum_squares((root[:, None] * V) @ t + root * v[1:] / unit)
        problem = cp.Problem(cp.Minimize(objective), [link])
        status, _ = run(problem, solver, _options(solver, tolerance))
        if status not in WITH_VALUES or link.dual_value is None:
            return None
        solution = unit * np.append(b.value, V @ t.value) + (v if self.loss.task == "regression" else 0.0)
        theta = link.dual_value * (factor * total / unit)
        return (solution, theta) if np.isfinite(solution).all() and np.isfinite(theta).all() else None

    def _directions(self, per_loss: float) -> FloatArray:
        """diag(r)^-1/2 V S^-1 for the directions that matter; ``per_loss`` is a penalty of 1 in units of the loss."""
        size = np.sqrt((self.columns**2).mean(axis=0))
        with np.errstate(all="ignore"):
            penalty = self.ridges * (per_loss / size**2)
        used = np.flatnonzero(penalty < OVERWHELMING)
        V = np.zeros((len(size), 0))
        if len(used):
            units = size[used] * np.sqrt(np.maximum(penalty[used], NEGLIGIBLE))
            _, S, Vt = scipy.linalg.svd(self.columns[:, used] / units, full_matrices=False)
            kept = (S > COLLINEAR * S[0]) & (len(self.s) < OVERWHELMING * S**2)
            V = np.zeros((len(size), int(kept.sum())))
            V[used] = Vt[kept].T * (np.sqrt(len(self.s)) / S[kept]) / units[:, None]
        return V


def _options(solver: str, tolerance: float) -> dict[str, float]:
    names = {
        "CLARABEL": ("tol_gap_abs", "tol_gap_rel", "tol_feas"),
        "HIGHS": ("primal_feasibility_tolerance", "dual_feasibility_tolerance"),
    }
    return dict.fromkeys(names[solver], tolerance)
