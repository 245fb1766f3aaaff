"""The program of a design, handed to its solver."""

import numpy as np

from admiss.adaptivity import Adaptivity
from admiss.design import Design
from admiss.patterns import FloatArray
from formulations.certificate import Certificate
from formulations.losses import Loss, Squared
from formulations.risk import EmpiricalRisk, compressed_squared_risk


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
        objective = float(q @ loss.value(y, np.zeros_like(y)))
        return np.zeros(0), Certificate(objective, objective, "optimal", "no coefficients", "", 0.0)
    return _solve_with_cvxpy(design, _risk(design, X, y, q, loss), l1, l2, solver)


def _risk(design: Design, X: FloatArray, y: FloatArray, q: FloatArray, loss: Loss) -> EmpiricalRisk:
    """The empirical risk on the rows, or for the squared loss on fewer rows where these have fewer entries."""
    p = len(design.pairs)
    entries = design.counts.sum() / design.patterns.weights.sum() * len(y)
    if isinstance(loss, Squared) and len(y) > p and entries > p**2 / 2:
        return compressed_squared_risk((A, y[rows], q[rows]) for rows, A in design.blocks(X))
    return EmpiricalRisk(design.whole(X), y, q, loss)


def _solve_with_cvxpy(
    design: Design, risk: EmpiricalRisk, l1: FloatArray, l2: FloatArray, solver: str
) -> tuple[FloatArray, Certificate]:
    from formulations.adaptive_erm import AdaptiveERM, compile_erm, solve_erm

    erm = AdaptiveERM(risk, design.free)
    if type(design.adaptivity).structure is not Adaptivity.structure:
        shape = (len(design.features) + 1, design.n_basis)
        erm = AdaptiveERM(risk, design.free, design.adaptivity.structure, design.scatter(), shape)
    return solve_erm(compile_erm(erm), l1, l2, "CLARABEL" if solver in ("auto", "cvxpy") else solver.upper())
