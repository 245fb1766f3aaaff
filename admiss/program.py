"""The program of a design, handed to its solver.

In classification the risk may have no minimiser: where all rows of a cell with a free intercept b are of one class, it
falls to its infimum as |b| grows. Such rows are taken out of the program, and b is set to the log-odds at which their
loss is below rounding; the other coefficients do not depend on these rows.
"""

import numpy as np

from admiss.adaptivity import Adaptivity
from admiss.adaptivity.protocol import Matrix
from admiss.design import Design
from admiss.patterns import BoolArray, FloatArray
from formulations.certificate import Certificate
from formulations.losses import Logistic, Loss, Squared
from formulations.risk import EmpiricalRisk, compressed_squared_risk

# Log-odds of a cell with one class only: its loss, log(1 + exp(-30)), is 1e-13.
CERTAIN = 30.0


def solve_program(
    design: Design,
    X: FloatArray,
    y: FloatArray,
    sample_weight: FloatArray,
    loss: Loss,
    l1: FloatArray,
    l2: FloatArray,
    solver: str,
) -> tuple[FloatArray, Certificate]:
    """Coefficients of the columns of the design, and their certificate."""
    q = sample_weight / sample_weight.sum()
    if len(design.pairs) == 0:
        return np.zeros(0), _evident(float(q @ loss.value(y, np.zeros_like(y))))
    risk = _risk(design, X, y, q, loss)
    if not isinstance(loss, Logistic):
        return _solve_with_cvxpy(design, risk, l1, l2, solver)
    certain, settled = _one_class_cells(design, risk.A, y)
    w, certificate = np.zeros(len(l1)), _evident(0.0)
    if not settled.all():
        rest = EmpiricalRisk(risk.A[~settled], y[~settled], q[~settled], loss) if settled.any() else risk
        w, certificate = _solve_with_cvxpy(design, rest, l1, l2, solver)
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


def _one_class_cells(design: Design, A: Matrix, y: FloatArray) -> tuple[FloatArray, BoolArray]:
    """For each column -1 or 1 if it is the intercept of a cell of that class only, else 0; and these cells' rows."""
    free = np.flatnonzero(design.free)
    cells = A[:, free] != 0
    both = np.asarray(cells.sum(axis=0)).ravel()
    positive = np.asarray((cells[y > 0]).sum(axis=0)).ravel()
    certain = np.zeros(len(design.pairs))
    certain[free] = np.where(positive == both, 1.0, np.where(positive == 0, -1.0, 0.0))
    return certain, np.asarray(cells @ (certain[free] != 0), dtype=bool)


def _solve_with_cvxpy(
    design: Design, risk: EmpiricalRisk, l1: FloatArray, l2: FloatArray, solver: str
) -> tuple[FloatArray, Certificate]:
    from formulations.adaptive_erm import AdaptiveERM, compile_erm, solve_erm

    erm = AdaptiveERM(risk, design.free)
    if type(design.adaptivity).structure is not Adaptivity.structure:
        shape = (len(design.features) + 1, design.n_basis)
        erm = AdaptiveERM(risk, design.free, design.adaptivity.structure, design.scatter(), shape)
    return solve_erm(compile_erm(erm), l1, l2, "CLARABEL" if solver in ("auto", "cvxpy") else solver.upper())
