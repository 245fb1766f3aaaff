"""Fits on a design: the one way from an estimator to a solver.

    minimise over w   risk(A w) + sum_k [ l1_k |w_k| + l2_k w_k^2 / 2 ]

The squared and the logistic loss have fast paths if W has no structure. The squared loss becomes a quadratic in the
penalised columns (:mod:`admiss.linear.moments`), the logistic loss a risk of centred columns; either path
(:mod:`formulations.erm`) leads back to coefficients of all columns. Cross-validation follows the path of every fold
(:mod:`admiss.linear.fold_paths`); a single fit follows a short path to its own penalty and adds the dual bound of
:mod:`formulations.erm.dual_bound`. Without penalty it is the solution of minimum norm: of all w with the same
predictions on the training rows, the one with the least sum of w_k^2 over the columns that are not free.

With ``solver="auto"`` a single fit takes the fast path if cross products of the columns are accurate enough and the
optimality conditions are met. Otherwise, and for any other ``solver``, cvxpy solves the stated program.

In classification the risk may have no minimiser.

* If all rows of a cell with a free intercept b are of one class, the risk falls to its infimum as |b| grows. These rows
  are taken out of the program, and b is set to the log-odds at which their loss is below rounding; without a structure
  on W the other coefficients do not depend on these rows.
* If some combination of columns without penalty separates the classes (no row on the wrong side, some on the right
  one), larger coefficients are always better: that is an error.
"""

import time
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

from admiss._version import __version__
from admiss.linear.design import Design
from admiss.linear.moments import Quadratic, eliminate, moments_of, shift_of
from admiss.linear.penalty import Penalty
from formulations.arrays import BoolArray, FloatArray
from formulations.certificate import Certificate
from formulations.erm.dual_bound import dual_bound, polish
from formulations.erm.logistic_path import GRADIENT_TOLERANCE, logistic_path
from formulations.erm.quadratic_path import Path, quadratic_path
from formulations.erm.risk import CentredRisk, EmpiricalRisk, centred, compressed_squared_risk
from formulations.losses import Logistic, Loss, Squared

# Log-odds of a cell with a single class: its loss, log(1 + exp(-30)), is 1e-13.
CERTAIN = 30.0
# Columns beyond which the matrix of cross products is not formed.
MAX_COLUMNS = 5000
# Standard deviations between 0 and the mean of a feature beyond which cross products lose it, and up to which the bound
# computed from them is accurate.
MAX_OFFSET = 1e4
WELL_CONDITIONED = 100.0
# The conditions must hold to this share of the largest gradient for a fit to be returned.
ACCEPTED = 1e-8
# Largest gap, as a share of the objective or of the risk of the null model.
GAP_TOLERANCE = 1e-6
# Lambdas of the path to a single fit, per factor of 10 below the lambda at which all coefficients are 0.
SQUARED_STEPS, LOGISTIC_STEPS = 6, 2

Fit = tuple[FloatArray, Certificate]


def solve_program(
    design: Design, X: FloatArray, y: FloatArray, s: FloatArray, loss: Loss, penalty: Penalty, solver: str
) -> Fit:
    """Coefficients of the columns of the design for rows of weights ``s``, and their certificate."""
    q = s / s.sum()
    if len(design.pairs) == 0:
        return np.zeros(0), _closed_form(float(q @ loss.value(y, np.zeros_like(y))))
    fast = solver == "auto" and not design.adaptivity.has_structure() and is_applicable(design)
    if isinstance(loss, Logistic):
        certain, risk = outside_one_class_cells(design, EmpiricalRisk(design.whole(X), y, q, loss))
        w, certificate = np.zeros(len(certain)), _closed_form(0.0)
        if len(risk.y):
            if not design.adaptivity.has_structure() and is_separable(risk, design.free, penalty):
                raise ValueError(
                    "The classes are linearly separable by columns without penalty, so there is no best fit: "
                    "use lam > 0 and adaptive_penalty > 0."
                )
            fit = _fit_logistic(LogisticProblem.of(risk, design.free, certain), penalty) if fast else None
            w, certificate = fit or _solve_with_cvxpy(design, risk, penalty, solver)
        return np.where(certain != 0, certain, w), certificate
    fit = _fit_squared(design, X, y, s, penalty) if fast and isinstance(loss, Squared) else None
    return fit or _solve_with_cvxpy(design, _risk(design, X, y, q, loss), penalty, solver)


def _closed_form(objective: float) -> Certificate:
    return Certificate(objective, objective, "optimal", "closed form", "", 0.0)


def is_applicable(design: Design) -> bool:
    """Whether cross products of the columns are small enough and accurate enough."""
    return len(design.pairs) <= MAX_COLUMNS and _near_zero(design, MAX_OFFSET)


def _near_zero(design: Design, limit: float) -> bool:
    """Whether the mean of every feature is within ``limit`` standard deviations of 0."""
    return bool(np.all(np.abs(design.mean) <= limit * design.spread))


def squared_quadratic(design: Design, X: FloatArray, y: FloatArray, s: FloatArray) -> Quadratic:
    """The squared loss on the rows as a quadratic in the penalised columns."""
    shift = shift_of(design, X, y, s)
    return eliminate(moments_of(design, X, y, s, shift), design.free, shift)


def squared_path(quadratic: Quadratic, penalty: Penalty, lambdas: FloatArray, start: FloatArray | None = None) -> Path:
    """Coefficients of the penalised columns for multiples ``lambdas`` of the penalty."""
    k = ~quadratic.free
    return quadratic_path(quadratic.H, quadratic.b, penalty.l1[k], penalty.l2[k], lambdas, start)


@dataclass(frozen=True)
class LogisticProblem:
    """The logistic loss of one target in centred columns, and the log-odds of the cells with a single class."""

    projected: CentredRisk
    certain: FloatArray

    @classmethod
    def of(cls, risk: EmpiricalRisk, free: BoolArray, certain: FloatArray) -> "LogisticProblem":
        """The problem of a risk without the rows of one-class cells, see :func:`outside_one_class_cells`."""
        dense = replace(risk, A=risk.A.toarray()) if sp.issparse(risk.A) else risk
        return cls(centred(dense, free), certain)

    @cached_property
    def _columns(self) -> tuple[BoolArray, BoolArray, FloatArray, FloatArray]:
        """Which columns have a penalty, which are free and have rows left; and both."""
        A, k = self.projected.risk.A, ~self.projected.free
        f = ~k & (A != 0).any(axis=0)
        return k, f, A[:, k], A[:, f]

    def path(
        self,
        penalty: Penalty,
        lambdas: FloatArray,
        start: FloatArray | None = None,
        tolerance: float = GRADIENT_TOLERANCE,
    ) -> Path:
        """Coefficients of all centred columns for multiples ``lambdas`` of the penalty."""
        risk, (k, f, A, free) = self.projected.risk, self._columns
        V = np.zeros((len(lambdas), len(k)))
        if not len(risk.y):
            return Path(V, np.zeros(len(lambdas)))
        state = None if start is None else (start[k], start[f])
        l1, l2 = penalty.l1[k], penalty.l2[k]
        path = logistic_path(A, free, risk.y, risk.q, l1, l2, lambdas, tolerance, state)
        V[:, k], V[:, f] = path.w, path.free
        return Path(V, path.violation)

    def restore(self, v: FloatArray) -> FloatArray:
        """The coefficients of the columns that are not centred, those of one-class cells included."""
        return np.where(self.certain != 0, self.certain, self.projected.restore(v))


def outside_one_class_cells(design: Design, risk: EmpiricalRisk) -> tuple[FloatArray, EmpiricalRisk]:
    """The log-odds of each intercept whose cell has a single class, 0 for other columns; and the remaining rows."""
    certain = np.zeros(len(design.pairs))
    if design.adaptivity.has_structure():
        return certain, risk
    cells = risk.A[:, design.free] != 0
    both = np.asarray(cells.sum(axis=0)).ravel()
    positive = np.asarray((cells[risk.y > 0]).sum(axis=0)).ravel()
    one_class = (positive == both) | (positive == 0)
    certain[design.free] = np.where(one_class, np.where(positive == both, CERTAIN, -CERTAIN), 0.0)
    rest = ~np.asarray(cells @ one_class, dtype=bool)
    return certain, risk if rest.all() else replace(risk, A=risk.A[rest], y=risk.y[rest], q=risk.q[rest])


def is_separable(risk: EmpiricalRisk, free: BoolArray, penalty: Penalty) -> bool:
    """Whether columns without penalty, free intercepts included, separate the classes.

    That is whether some v != 0 has y_i (A v)_i >= 0 for all rows and > 0 for some. Intercepts alone are not checked.
    """
    unpenalised = (penalty.l1 == 0) & (penalty.l2 == 0)
    if not np.any(unpenalised & ~free) or not len(risk.y):
        return False
    parts = [sp.csr_array(risk.A[:, columns]) for columns in (unpenalised & ~free, free)]
    margins = sp.diags_array(risk.y) @ sp.hstack(parts, format="csr")
    gain = -np.asarray(margins.sum(axis=0)).ravel()
    direction = linprog(gain, A_ub=-margins, b_ub=np.zeros(len(risk.y)), bounds=(-1, 1))
    return direction.status == 0 and -direction.fun > 1e-6 * len(risk.y)


def _fit_squared(design: Design, X: FloatArray, y: FloatArray, s: FloatArray, penalty: Penalty) -> Fit | None:
    """The fit, or None if the optimality conditions could not be met."""
    start = time.perf_counter()
    k, l1, l2 = ~design.free, penalty.l1, penalty.l2
    quadratic = squared_quadratic(design, X, y, s)
    if not np.any(l1) and not np.any(l2):
        w = _minimum_norm(_centred_rows(design, X, y, s))
        g = quadratic.H @ w[k] - quadratic.b
        violation = np.abs(g).max(initial=0.0) / max(np.abs(quadratic.b).max(initial=0.0), 1e-300)
    else:
        path = squared_path(quadratic, penalty, _lambdas_to_one(np.abs(quadratic.b), l1[k], SQUARED_STEPS))
        w, violation = quadratic.restore(path.w[-1]), path.violation[-1]
    if not violation <= ACCEPTED:
        return None
    if np.all((l1 > 0) | (l2 > 0) | design.free) and _near_zero(design, WELL_CONDITIONED):
        objective, bound = quadratic.objective_and_bound(l1[k], l2[k], w[k])
    else:  # cross products may not be accurate enough
        rows = _centred_rows(design, X, y, s)
        objective, bound = _objective_and_bound(rows.risk, l1, l2, rows.reduce(w))
    return _certified(w, objective, bound, quadratic.rho, start)


def _centred_rows(design: Design, X: FloatArray, y: FloatArray, s: FloatArray) -> CentredRisk:
    q = s / s.sum()
    return centred(compressed_squared_risk((A, y[rows], q[rows]) for rows, A in design.blocks(X)), design.free)


def _minimum_norm(rows: CentredRisk) -> FloatArray:
    """Least squares with the least |w_k|, from the rows and not from their squares."""
    v = np.zeros(len(rows.free))
    v[~rows.free] = np.linalg.lstsq(rows.risk.A[:, ~rows.free], rows.risk.y, rcond=None)[0]
    return rows.restore(v)


def _fit_logistic(problem: LogisticProblem, penalty: Penalty) -> Fit | None:
    """The fit, or None if the optimality conditions could not be met."""
    start = time.perf_counter()
    risk, k, l1, l2 = problem.projected.risk, ~problem.projected.free, penalty.l1, penalty.l2
    gradient = np.abs(risk.gradient(np.zeros(len(k))))
    path = problem.path(penalty, _lambdas_to_one(gradient[k], l1[k], LOGISTIC_STEPS))
    if not path.violation[-1] <= ACCEPTED:
        return None
    v = path.w[-1]
    if not np.any(l1) and not np.any(l2):
        v[k] = np.linalg.lstsq(risk.A[:, k], risk.A[:, k] @ v[k], rcond=None)[0]

    def proven(v: FloatArray) -> Fit | None:
        objective, bound = _objective_and_bound(risk, l1, l2, v)
        return _certified(problem.projected.restore(v), objective, bound, float(np.log(2.0)), start)

    return proven(v) or proven(polish(risk, l1, l2, v))


def _lambdas_to_one(gradient: FloatArray, l1: FloatArray, steps_per_decade: int) -> FloatArray:
    """Multiples of the penalty that lead to 1 from the one at which all coefficients are 0."""
    largest = float(np.max(gradient / l1)) if len(l1) and np.all(l1 > 0) else 1.0
    steps = int(np.ceil(steps_per_decade * np.log10(largest))) if largest > 1.0 else 0
    return np.geomspace(largest, 1.0, steps + 1) if steps else np.ones(1)


def _objective_and_bound(risk: EmpiricalRisk, l1: FloatArray, l2: FloatArray, v: FloatArray) -> tuple[float, float]:
    objective = risk.value(v) + float(l1 @ np.abs(v) + l2 @ v**2 / 2)
    return objective, dual_bound(risk, l1, l2, risk.q * risk.loss.derivative(risk.y, risk.A @ v))


def _certified(w: FloatArray, objective: float, bound: float, null_risk: float, start: float) -> Fit | None:
    """The fit with its certificate, or None if objective and bound do not meet."""
    if not abs(objective - bound) <= GAP_TOLERANCE * max(objective, null_risk):
        return None
    return w, Certificate(objective, bound, "optimal", "admiss engine", __version__, time.perf_counter() - start)


def _risk(design: Design, X: FloatArray, y: FloatArray, q: FloatArray, loss: Loss) -> EmpiricalRisk:
    """The empirical risk on the rows; for the squared loss on compressed rows if these have fewer entries."""
    p = len(design.pairs)
    entries = design.counts.sum() / design.patterns.weights.sum() * len(y)
    if isinstance(loss, Squared) and len(y) > p and entries > p**2 / 2:
        return compressed_squared_risk((A, y[rows], q[rows]) for rows, A in design.blocks(X))
    return EmpiricalRisk(design.whole(X), y, q, loss)


def _solve_with_cvxpy(design: Design, risk: EmpiricalRisk, penalty: Penalty, solver: str) -> Fit:
    from formulations.erm.program import AdaptiveERM, compile_erm, solve_erm

    erm = AdaptiveERM(risk, penalty.u1, penalty.u2)
    if design.adaptivity.has_structure():
        shape = (len(design.features) + 1, design.n_basis)
        erm = AdaptiveERM(risk, penalty.u1, penalty.u2, design.adaptivity.structure, design.scatter(), shape)
    name = "CLARABEL" if solver in ("auto", "cvxpy") else solver.upper()
    return solve_erm(compile_erm(erm), penalty.a1, penalty.a2, name)
