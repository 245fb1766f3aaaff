"""Fits of the squared loss: by the quadratic in the penalised columns, or by least squares of minimum norm."""

import numpy as np

from admiss._version import __version__
from admiss.linear.design import Design
from admiss.linear.moments import Moments, Quadratic, eliminate, moments_of
from admiss.linear.penalty import Penalty, lambdas_to_one
from admiss.linear.stated_program import ACCEPTED, Fit, risk_of, solve_stated
from admiss.linear.weighted_rows import Shift, WeightedRows, shift_of
from formulations.arrays import BoolArray, FloatArray
from formulations.certificate import ROUNDING, certify, clock
from formulations.erm.dual_bound import GAP_TOLERANCE, gap_tolerance, prove
from formulations.erm.quadratic_path import Path, quadratic_path
from formulations.erm.ridge_path import RidgeProblem
from formulations.erm.risk import centred, compressed_squared_risk, risk_of_rounding
from formulations.losses import Squared

# Lambdas of the path to a single fit, per factor of 10 below the lambda at which all coefficients are 0.
STEPS = 6


def squared_quadratic(rows: WeightedRows) -> Quadratic:
    """The squared loss on the rows as a quadratic in the penalised columns."""
    return eliminate(moments_of(rows), rows.design.free, rows.shift)


def squared_path(
    quadratic: Quadratic, penalty: Penalty, lambdas: FloatArray, state: RidgeProblem | FloatArray | None = None
) -> tuple[Path, RidgeProblem | FloatArray]:
    """Coefficients of the penalised columns for multiples ``lambdas`` of the penalty; a state to continue from."""
    k, H, b = ~quadratic.free, quadratic.H, quadratic.b
    l1, l2 = penalty.l1[k], penalty.l2[k]
    if not np.any(l1):
        ridge = state if isinstance(state, RidgeProblem) else RidgeProblem.of(H, b, l2)
        return ridge.path(lambdas), ridge
    path = quadratic_path(H, b, l1, l2, lambdas, state if isinstance(state, np.ndarray) else None)
    return path, path.w[-1]


def solve_squared(
    design: Design,
    X: FloatArray,
    y: FloatArray,
    s: FloatArray,
    penalty: Penalty,
    solver: str,
    fast: bool,
    change: FloatArray,
) -> Fit:
    """The fit of the squared loss, certified from its rows."""
    start = clock()
    rows = WeightedRows(design, X, y, s, shift_of(design, X, y, s), keep=True)
    if fast:
        found = _fit_squared(rows, penalty, change)
        if found is not None:
            w, null, statistics = found
            engine = ("admiss engine", __version__)
            fit, accepted = _certified_squared(rows, statistics, penalty, w, null, engine, start)
            if accepted:
                return fit
    w, certificate = solve_stated(design, risk_of(design, X, y, s / s.sum(), Squared()), penalty, solver)
    null = certificate.tolerance / GAP_TOLERANCE
    return _certified_squared(rows, {}, penalty, w, null, (certificate.solver, certificate.version), start)[0]


def _fit_squared(
    rows: WeightedRows, penalty: Penalty, change: FloatArray
) -> tuple[FloatArray, float, dict[str, FloatArray]] | None:
    """Coefficients, risk of the null model and statistics of the columns; None if the conditions are not met."""
    if not penalty.is_positive:
        return _minimum_norm(rows, change)
    moments = moments_of(rows)
    found = fit_moments(moments, rows.design.free, rows.shift, penalty)
    return None if found is None else (*found, {"squares": np.diag(moments.G)})


def fit_moments(moments: Moments, free: BoolArray, shift: Shift, penalty: Penalty) -> tuple[FloatArray, float] | None:
    """Coefficients and risk of the null model from moments; None if the conditions are not met."""
    quadratic = eliminate(moments, free, shift)
    path, _ = squared_path(quadratic, penalty, lambdas_to_one(np.abs(quadratic.b), penalty.l1[~free], STEPS))
    if not path.violation[-1] <= ACCEPTED:
        return None
    return quadratic.restore(path.w[-1]), quadratic.rho


def _certified_squared(
    rows: WeightedRows,
    statistics: dict[str, FloatArray],
    penalty: Penalty,
    w: FloatArray,
    null: float,
    solver: tuple[str, str],
    start: float,
) -> tuple[Fit, bool]:
    """The fit with its certificate, and whether its gap is closed at least up to rounding."""
    w = penalty.without_overwhelmed(w)
    proof_rows, own = rows.for_proof(**statistics)
    proof = prove(proof_rows, penalty.l1, penalty.l2, own.shifted(w))
    tolerance = gap_tolerance(proof.objective, null + risk_of_rounding(Squared(), rows.y, rows.s / rows.s.sum()))
    dual = rows.root * proof.theta
    certificate = certify(proof.objective, proof.bound, tolerance, ROUNDING, *solver, start, dual=dual)
    return (w, certificate), proof.objective - proof.estimate <= tolerance


def _minimum_norm(rows: WeightedRows, change: FloatArray) -> tuple[FloatArray, float, dict[str, FloatArray]]:
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
