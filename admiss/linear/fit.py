"""The program of a design, handed to its solver.

``solver="auto"`` takes the fast engine for the squared and the logistic loss without a structure on W, where the design
suits it and it meets the optimality conditions; else, and for any other ``solver``, the stated cvxpy program is solved.
The certificate says which.

In classification the risk may have no minimiser.

* Where all rows of a cell with a free intercept b are of one class, it falls to its infimum as |b| grows. Such rows are
  taken out of the program, and b is set to the log-odds at which their loss is below rounding; without a structure on W
  the other coefficients do not depend on these rows.
* Where some combination of columns without penalty separates classes (no row on the wrong side, some on the right one),
  larger coefficients are always better: that is an error.
"""

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

from admiss.linear.design import Design
from admiss.linear.engine import fit_logistic, fit_squared, is_applicable
from admiss.linear.penalty import Penalty
from formulations.arrays import BoolArray, FloatArray, Matrix
from formulations.certificate import Certificate
from formulations.erm.risk import EmpiricalRisk, compressed_squared_risk
from formulations.losses import Logistic, Loss, Squared

# Log-odds of a cell with one class only: its loss, log(1 + exp(-30)), is 1e-13.
CERTAIN = 30.0


def solve_program(
    design: Design,
    X: FloatArray,
    y: FloatArray,
    sample_weight: FloatArray,
    loss: Loss,
    penalty: Penalty,
    solver: str,
) -> tuple[FloatArray, Certificate]:
    """Coefficients of the columns of the design, and their certificate."""
    q = sample_weight / sample_weight.sum()
    if len(design.pairs) == 0:
        return np.zeros(0), _evident(float(q @ loss.value(y, np.zeros_like(y))))
    fast = solver == "auto" and not design.adaptivity.has_structure() and is_applicable(design)
    if not isinstance(loss, Logistic):
        fitted = fit_squared(design, X, y, sample_weight, penalty) if fast and isinstance(loss, Squared) else None
        return fitted or _solve_with_cvxpy(design, _risk(design, X, y, q, loss), penalty, solver)
    risk = _risk(design, X, y, q, loss)
    certain, settled = np.zeros(len(penalty.u1)), np.zeros(len(y), dtype=bool)
    if not design.adaptivity.has_structure():
        certain, settled = one_class_cells(design, risk.A, y)
    w, certificate = np.zeros(len(penalty.u1)), _evident(0.0)
    if not settled.all():
        rest = EmpiricalRisk(risk.A[~settled], y[~settled], q[~settled], loss) if settled.any() else risk
        _refuse_separated(design, rest, penalty)
        fitted = fit_logistic(design, rest, penalty) if fast else None
        w, certificate = fitted or _solve_with_cvxpy(design, rest, penalty, solver)
    return np.where(certain != 0, CERTAIN * certain, w), certificate


def _evident(objective: float) -> Certificate:
    return Certificate(objective, objective, "optimal", "closed form", "", 0.0)


def _risk(design: Design, X: FloatArray, y: FloatArray, q: FloatArray, loss: Loss) -> EmpiricalRisk:
    """The empirical risk on the rows, or for the squared loss on fewer rows where these have fewer entries."""
    p = len(design.pairs)
    entries = design.counts.sum() / design.patterns.weights.sum() * len(y)
    if isinstance(loss, Squared) and len(y) > p and entries > p**2 / 2:
        return compressed_squared_risk((A, y[rows], q[rows]) for rows, A in design.blocks(X))
    return EmpiricalRisk(design.whole(X), y, q, loss)


def one_class_cells(design: Design, A: Matrix, y: FloatArray) -> tuple[FloatArray, BoolArray]:
    """For each column -1 or 1 if it is the intercept of a cell of that class only, else 0; and these cells' rows."""
    free = np.flatnonzero(design.free)
    cells = A[:, free] != 0
    both = np.asarray(cells.sum(axis=0)).ravel()
    positive = np.asarray((cells[y > 0]).sum(axis=0)).ravel()
    certain = np.zeros(len(design.pairs))
    certain[free] = np.where(positive == both, 1.0, np.where(positive == 0, -1.0, 0.0))
    return certain, np.asarray(cells @ (certain[free] != 0), dtype=bool)


def _refuse_separated(design: Design, risk: EmpiricalRisk, penalty: Penalty) -> None:
    """Columns without penalty beside the free intercepts must not separate the classes."""
    unpenalised = (penalty.a1 * penalty.u1 == 0) & (penalty.a2 * penalty.u2 == 0)
    if design.adaptivity.has_structure():
        return
    if separable(risk.A[:, unpenalised & ~design.free], risk.A[:, design.free], risk.y):
        raise ValueError(
            "The classes are linearly separable by columns without penalty, so that there is no best fit: "
            "use lam > 0 and adaptive_penalty > 0."
        )


def separable(A: Matrix, E: Matrix, y: FloatArray) -> bool:
    """Whether some v != 0 has y_i (A E)_i v >= 0 for all rows and > 0 for some; not asked where A has no columns."""
    if A.shape[1] == 0 or len(y) == 0:
        return False
    margins = sp.diags_array(y) @ sp.hstack([sp.csr_array(A), sp.csr_array(E)], format="csr")
    direction = linprog(-np.asarray(margins.sum(axis=0)).ravel(), A_ub=-margins, b_ub=np.zeros(len(y)), bounds=(-1, 1))
    return direction.status == 0 and -direction.fun > 1e-6 * len(y)


def _solve_with_cvxpy(
    design: Design, risk: EmpiricalRisk, penalty: Penalty, solver: str
) -> tuple[FloatArray, Certificate]:
    from formulations.erm.program import AdaptiveERM, compile_erm, solve_erm

    erm = AdaptiveERM(risk, penalty.u1, penalty.u2)
    if design.adaptivity.has_structure():
        shape = (len(design.features) + 1, design.n_basis)
        erm = AdaptiveERM(risk, penalty.u1, penalty.u2, design.adaptivity.structure, design.scatter(), shape)
    name = "CLARABEL" if solver in ("auto", "cvxpy") else solver.upper()
    return solve_erm(compile_erm(erm), penalty.a1, penalty.a2, name)
