"""The absolute, quantile and Huber losses on a design: single fits and folds by :mod:`formulations.erm.interior_point`.

A fit is proven from the rows with the multipliers of the method.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp

from admiss._version import __version__
from admiss.linear.design import Design
from admiss.linear.penalty import UnitPenalties, UnitProgram
from admiss.linear.stated_program import Fit
from formulations.arrays import FloatArray
from formulations.certificate import ROUNDING, certify, gap_tolerance
from formulations.erm.dual_bound import prove_centred
from formulations.erm.interior_point import interior_path
from formulations.erm.optimality import polish
from formulations.erm.risk import ZERO_TOLERANCE, EmpiricalRisk, centred, null_risk
from formulations.losses import Absolute, Huber, Loss, Quantile

PIECEWISE = Absolute | Quantile | Huber
# The violation to which a single fit is solved.
ACCURATE = 1e-12
# Columns beyond which a sparse cone solver is faster: the method inverts dense matrices of this size.
MOST_COLUMNS = 500


def solve_piecewise(program: UnitProgram, risk: EmpiricalRisk) -> Fit | None:
    """The fit and its certificate, or None if its gap is not closed or the columns are too many."""
    free, penalty = program.design.free, program.penalty
    if sp.issparse(risk.A) or risk.A.shape[1] > MOST_COLUMNS:
        return None
    projected = centred(risk, free)
    path = interior_path(projected.risk, penalty.l1, penalty.l2, np.ones(1), ACCURATE)
    size = np.sqrt(projected.risk.column_squares())
    v = path.w[0]
    v[(np.abs(v) * size <= ZERO_TOLERANCE * np.abs(projected.risk.y).max()) & ~free | program.overwhelmed] = 0.0
    if risk.loss.smooth:
        v = polish(projected.risk, penalty.l1, penalty.l2, v)
    w = projected.restore(v)
    proof = prove_centred(risk, projected, penalty.l1, penalty.l2, w, path.theta[0])
    tolerance = gap_tolerance(proof.objective, null_risk(risk, free))
    if not proof.objective - proof.estimate <= tolerance:
        return None
    ends = (ROUNDING, "admiss engine", __version__, program.start)
    return w, certify(proof.objective, proof.bound, tolerance, *ends, dual=proof.theta)


class PiecewiseFold:
    """The paths of a fold, with penalties for lambda = 1 by index."""

    def __init__(
        self,
        design: Design,
        penalties: UnitPenalties,
        train: tuple[FloatArray, FloatArray, FloatArray],
        held: tuple[FloatArray, FloatArray, FloatArray],
        loss: Loss,
        unit: float,
    ) -> None:
        A, y, s = train
        in_units, factor = loss.in_units(unit)
        self.projected = centred(EmpiricalRisk(A, y / unit, s / s.sum(), in_units), design.free)
        self.penalties = [(u1 * (unit / factor), u2 * (unit**2 / factor)) for u1, u2 in penalties]
        self.held, self.loss, self.unit = held, loss, unit

    def __call__(
        self, penalty: int, alpha: float, lambdas: FloatArray, state: Any, tolerance: float
    ) -> tuple[FloatArray, FloatArray, Any]:
        """Held-out loss and violation for each lambda; every lambda is solved by itself."""
        u1, u2 = self.penalties[penalty]
        path = interior_path(self.projected.risk, alpha * u1, (1.0 - alpha) * u2, lambdas, tolerance)
        A, y, s = self.held
        predictions = self.unit * (A @ self.projected.restore(path.w).T)
        return s @ self.loss.value(y[:, None], predictions), path.violation, None
