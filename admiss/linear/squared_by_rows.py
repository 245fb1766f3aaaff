"""Fits of the squared loss that are certified from their rows.

They are those without penalty, of columns whose moments are too inaccurate for a proof, and of a solver of cvxpy. The
rows are those of :mod:`admiss.linear.squared`.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from admiss._version import __version__
from admiss.linear.design import Design
from admiss.linear.penalty import UnitProgram
from admiss.linear.squared import Shift, TrainingRows, WeightedRows, eliminate, fit_quadratic, moments_of, shift_of
from admiss.linear.stated_program import Fit, risk_of, solve_stated
from formulations.arrays import FloatArray, Matrix
from formulations.certificate import GAP_TOLERANCE, ROUNDING, certify, gap_tolerance
from formulations.erm.dual_bound import Rows, prove
from formulations.erm.risk import centred, compressed_squared_risk, risk_of_rounding
from formulations.losses import Squared


@dataclass
class ProofRows(WeightedRows):
    """The weighted rows, and what a dual bound needs of them."""

    def __post_init__(self) -> None:
        super().__post_init__()
        # whether the free columns, if there are any, are 1 on disjoint sets of the rows that were seen, and cover them
        self.is_exact = True

    def __iter__(self) -> Iterator[tuple[slice, Matrix]]:
        for rows, A in super().__iter__():
            self.is_exact &= self._has_unit_constants(A[:, self.design.free], self.root[rows])
            yield rows, A

    def restore(self, v: FloatArray) -> FloatArray:
        """The coefficients w of the columns as they are."""
        w = v.copy()
        w[self.design.free] += self.shift.y - self.shift.C @ v
        return w

    def shifted(self, w: FloatArray) -> FloatArray:
        """The coefficients v of the shifted columns, each rounded once."""
        return self.shift.applied(w, self.design.free)

    def for_proof(
        self, squares: FloatArray | None = None, triangle: FloatArray | None = None
    ) -> "tuple[Rows, ProofRows]":
        """The rows as a dual bound needs them, and with the shift that they have.

        A shift by free columns that are not 1 on disjoint sets of rows is not accurate in every entry, and left out.
        After a pass over the rows, the sums of squares of the columns or a triangular factor of them may be given.
        """
        own = self
        if squares is None:
            squares = self._squares()
        if not self.is_exact:
            triangle = None
            own = ProofRows(self.design, self.X, self.y, self.s, Shift(sp.csr_array(self.shift.C.shape), 0.0))
            squares = own._squares()
        S = float(self.s.sum())
        rows = Rows(
            blocks=own,
            y=own.t,
            q=np.broadcast_to(1.0 / S, len(own.t)),
            loss=Squared(),
            sizes=np.sqrt(squares / S),
            stated=_Columns(self.design, self.X),
            constants=np.flatnonzero(self.design.free) if own is self else None,
            triangle=triangle,
        )
        return rows, own

    def _squares(self) -> FloatArray:
        squares = np.zeros(len(self.design.pairs))
        for _, A in self:
            squares += np.asarray((A.multiply(A) if sp.issparse(A) else A**2).sum(axis=0)).ravel()
        return squares

    @staticmethod
    def _has_unit_constants(constants: Matrix, root: FloatArray) -> bool:
        if not constants.shape[1]:
            return True
        total, count = (np.asarray(part.sum(axis=1)).ravel() for part in (constants, constants != 0))
        return bool(np.all(count == 1) and np.array_equal(total, root))


@dataclass(frozen=True)
class _Columns:
    """The columns of the design, block by block, again and again."""

    design: Design
    X: FloatArray

    def __iter__(self) -> Iterator[tuple[slice, Matrix]]:
        return self.design.blocks(self.X)


def solve_by_rows(program: UnitProgram, training: TrainingRows, solver: str, fast: bool) -> Fit:
    """The fit of the squared loss in the units of the program, certified from its rows."""
    design = program.design
    X = training.X
    y = training.y
    s = training.s
    rows = ProofRows(design, X, y, s, shift_of(design, X, y, s))
    if fast:
        solution = _fit_squared(rows, program)
        if solution is not None:
            w, null, statistics = solution
            engine = ("admiss engine", __version__)
            fit, accepted = _certified_squared(rows, statistics, program, w, null, engine)
            if accepted:
                return fit
    w, certificate = solve_stated(design, risk_of(design, X, y, s / s.sum(), Squared()), program.penalty, solver)
    null = certificate.tolerance / GAP_TOLERANCE
    return _certified_squared(rows, {}, program, w, null, (certificate.solver, certificate.version))[0]


def _fit_squared(rows: ProofRows, program: UnitProgram) -> tuple[FloatArray, float, dict[str, FloatArray]] | None:
    """Coefficients, risk of the null model and statistics of the columns; None if the conditions are not met."""
    if not program.penalty.is_positive:
        return _minimum_norm(rows, program.change)
    moments = moments_of(rows)
    quadratic = eliminate(moments, rows.design.free, rows.shift)
    w = fit_quadratic(quadratic, program.penalty)
    return None if w is None else (w, quadratic.rho, {"squares": np.diag(moments.G)})


def _certified_squared(
    rows: ProofRows,
    statistics: dict[str, FloatArray],
    program: UnitProgram,
    w: FloatArray,
    null: float,
    solver: tuple[str, str],
) -> tuple[Fit, bool]:
    """The fit with its certificate, and whether its gap is closed at least up to rounding."""
    w = np.where(program.overwhelmed, 0.0, w)
    proof_rows, own = rows.for_proof(**statistics)
    proof = prove(proof_rows, program.penalty.l1, program.penalty.l2, own.shifted(w))
    tolerance = gap_tolerance(proof.objective, null + risk_of_rounding(Squared(), rows.y, rows.s / rows.s.sum()))
    dual = rows.root * proof.theta
    certificate = certify(proof.objective, proof.bound, tolerance, ROUNDING, *solver, program.start, dual=dual)
    return (w, certificate), proof.objective - proof.estimate <= tolerance


def _minimum_norm(rows: ProofRows, change: FloatArray) -> tuple[FloatArray, float, dict[str, FloatArray]]:
    """Least squares with the least |w_k / change_k|, from the rows and not from their squares; otherwise as above."""
    q = np.full(len(rows.t), 1.0 / rows.s.sum())
    compressed = compressed_squared_risk((A, rows.t[part], q[part]) for part, A in rows)
    projected = centred(compressed, rows.design.free)
    k, risk = ~rows.design.free, projected.risk
    v = np.zeros(len(k))
    U, singular, V = np.linalg.svd(risk.A[:, k], full_matrices=True)
    rank = int(np.sum(singular > np.finfo(float).eps * max(U.shape[0], V.shape[0]) * singular.max(initial=0.0)))
    v[k] = V[:rank].T @ ((U[:, :rank].T @ risk.y) / singular[:rank])
    if rank < len(V):
        v[k] += V[rank:].T @ np.linalg.lstsq(V[rank:].T / change[k][:, None], -v[k] / change[k], rcond=None)[0]
    return rows.restore(projected.restore(v)), risk.value(np.zeros(len(k))), {"triangle": compressed.A}
