"""Fits on a design: the one way from an estimator to a solver.

    minimise over w   risk(A w) + sum_k [ l1_k |w_k| + l2_k w_k^2 / 2 ]

The squared and the logistic loss have fast paths if W has no structure. The squared loss becomes a quadratic in the
penalised columns (:mod:`admiss.linear.moments`), the logistic loss a risk of centred columns; either path
(:mod:`formulations.erm`) leads back to coefficients of all columns. Cross-validation follows the path of every fold
(:mod:`admiss.linear.fold_paths`); a single fit follows a short path to its own penalty. Without penalty it is the
solution of minimum norm: of all w with the same predictions on the training rows, the one with the least sum of w_k^2
over the columns that are not free. If columns are dependent only up to rounding, the rank is decided in scaled columns.

With ``solver="auto"`` a single fit takes the fast path if cross products of the columns are accurate enough and the
optimality conditions are met. Otherwise, and for any other ``solver``, cvxpy solves the stated program. If W has no
structure, the columns are always scaled by powers of two inside, and the penalties with them: the program does not
change, and neither does any digit of a column.

Every fit is certified from the rows by :mod:`formulations.erm.dual_bound`. The certificate's ``dual`` is the theta of
its bound, one number per row of positive weight in the order of the rows: q_i l'(y_i, z_i) at the solution, clipped to
the domain of the conjugate, orthogonal to the columns without penalty up to rounding, and scaled towards 0 as far as
l1 penalties require. With a structure on W the bound is that of the solver, and theta is q_i l'(y_i, z_i) as it is.
"""

import time
from dataclasses import replace

import numpy as np

from admiss._version import __version__
from admiss.linear.design import Design
from admiss.linear.logistic_problem import LogisticProblem, is_separable, outside_one_class_cells
from admiss.linear.moments import Quadratic, eliminate, moments_of
from admiss.linear.penalty import Penalty
from admiss.linear.weighted_rows import WeightedRows, shift_of
from formulations.arrays import BoolArray, FloatArray
from formulations.certificate import Certificate, SolverError, certify
from formulations.erm.dual_bound import GAP_TOLERANCE, Rows, gap_tolerance, prove, risk_of_rounding
from formulations.erm.optimality import polish
from formulations.erm.quadratic_path import Path, quadratic_path
from formulations.erm.risk import EmpiricalRisk, centred, compressed_squared_risk
from formulations.erm.rounding import gamma
from formulations.losses import Logistic, Loss, Squared

# Columns beyond which the matrix of cross products is not formed.
MAX_COLUMNS = 5000
# Standard deviations between 0 and the mean of a feature beyond which cross products lose it.
MAX_OFFSET = 1e4
# The conditions must hold to this share of the largest gradient for a fit to be returned.
ACCEPTED = 1e-8
# Status of a gap that is closed up to rounding errors, which cannot be bounded well enough.
NOT_PROVEN = "rounding errors exceed the tolerance"
# The path to a single fit starts at this multiple of its penalty at most.
LARGEST_MULTIPLE = 1e15
# Lambdas of the path to a single fit, per factor of 10 below the lambda at which all coefficients are 0.
SQUARED_STEPS, LOGISTIC_STEPS = 6, 2

Fit = tuple[FloatArray, Certificate]


def solve_program(
    design: Design, X: FloatArray, y: FloatArray, s: FloatArray, loss: Loss, penalty: Penalty, solver: str
) -> Fit:
    """Coefficients of the columns of the design for rows of weights ``s``, and their certificate."""
    start = time.perf_counter()
    q = s / s.sum()
    if len(design.pairs) == 0:
        value = float(q @ loss.value(y, np.zeros_like(y)))
        theta = q * loss.derivative(y, np.zeros_like(y)) if loss.smooth else None
        return np.zeros(0), _closed_form(value, len(y), theta, start)
    rows = (X, y, s)
    if design.adaptivity.has_structure():
        return _solve(design, rows, loss, penalty, solver, np.ones(len(design.pairs)))
    scaled, change = design.in_powers_of_two()
    try:
        w, certificate = _solve(scaled, rows, loss, penalty.in_units(change), solver, change)
        return w / change, certificate
    except SolverError:  # in scaled columns, a penalty may be too large for an interior-point method
        return _solve(design, rows, loss, penalty, solver, np.ones(len(change)))


def _solve(
    design: Design,
    rows: tuple[FloatArray, FloatArray, FloatArray],
    loss: Loss,
    penalty: Penalty,
    solver: str,
    change: FloatArray,
) -> Fit:
    """The fit in the columns of this design, which are those of the stated one divided by ``change``."""
    X, y, s = rows
    q, structured = s / s.sum(), design.adaptivity.has_structure()
    fast = solver == "auto" and not structured and is_applicable(design)
    if isinstance(loss, Logistic):
        return _solve_logistic(design, EmpiricalRisk(design.whole(X), y, q, loss), penalty, solver, fast)
    if isinstance(loss, Squared) and not structured:
        return _solve_squared(design, X, y, s, penalty, solver, fast, change)
    w, certificate = _solve_with_cvxpy(design, _risk(design, X, y, q, loss), penalty, solver)
    if isinstance(loss, Squared):  # its rows may have been compressed
        certificate = replace(certificate, dual=2.0 * q * (design.predictor(X, w) - y))
    return w, certificate


def _closed_form(objective: float, n: int, theta: FloatArray | None, start: float) -> Certificate:
    """The certificate of a sum of n terms."""
    bound = objective * (1.0 - gamma(4 * n + 20))
    return certify(objective, bound, gap_tolerance(objective, 0.0), "", "closed form", "", start, dual=theta)


def is_applicable(design: Design) -> bool:
    """Whether cross products of the columns are small enough and accurate enough."""
    return len(design.pairs) <= MAX_COLUMNS and bool(np.all(np.abs(design.mean) <= MAX_OFFSET * design.spread))


def squared_quadratic(rows: WeightedRows) -> Quadratic:
    """The squared loss on the rows as a quadratic in the penalised columns."""
    return eliminate(moments_of(rows), rows.design.free, rows.shift)


def squared_path(quadratic: Quadratic, penalty: Penalty, lambdas: FloatArray, start: FloatArray | None = None) -> Path:
    """Coefficients of the penalised columns for multiples ``lambdas`` of the penalty."""
    k = ~quadratic.free
    return quadratic_path(quadratic.H, quadratic.b, penalty.l1[k], penalty.l2[k], lambdas, start)


def _solve_squared(
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
    start = time.perf_counter()
    rows = WeightedRows(design, X, y, s, shift_of(design, X, y, s), keep=True)
    if fast:
        found = _fit_squared(rows, penalty, change)
        if found is not None:
            w, null, statistics = found
            engine = ("admiss engine", __version__)
            fit, accepted = _certified_squared(rows, statistics, penalty, w, null, engine, start)
            if accepted:
                return fit
    w, certificate = _solve_with_cvxpy(design, _risk(design, X, y, s / s.sum(), Squared()), penalty, solver)
    null = certificate.tolerance / GAP_TOLERANCE
    return _certified_squared(rows, {}, penalty, w, null, (certificate.solver, certificate.version), start)[0]


def _fit_squared(
    rows: WeightedRows, penalty: Penalty, change: FloatArray
) -> tuple[FloatArray, float, dict[str, FloatArray]] | None:
    """Coefficients, risk of the null model and statistics of the columns; None if the conditions are not met."""
    k, l1, l2 = ~rows.design.free, penalty.l1, penalty.l2
    if not np.any(l1) and not np.any(l2):
        return _minimum_norm(rows, change)
    moments = moments_of(rows)
    quadratic = eliminate(moments, rows.design.free, rows.shift)
    path = squared_path(quadratic, penalty, _lambdas_to_one(np.abs(quadratic.b), l1[k], SQUARED_STEPS))
    if not path.violation[-1] <= ACCEPTED:
        return None
    return quadratic.restore(path.w[-1]), quadratic.rho, {"squares": np.diag(moments.G)}


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
    proof_rows, own = rows.for_proof(**statistics)
    proof = prove(proof_rows, penalty.l1, penalty.l2, own.shifted(w))
    tolerance = gap_tolerance(proof.objective, null + risk_of_rounding(Squared(), rows.y, rows.s / rows.s.sum()))
    dual = rows.root * proof.theta
    certificate = certify(proof.objective, proof.bound, tolerance, NOT_PROVEN, *solver, start, dual=dual)
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


def _solve_logistic(design: Design, whole: EmpiricalRisk, penalty: Penalty, solver: str, fast: bool) -> Fit:
    """The fit of the logistic loss, without the rows of cells with a single class."""
    start = time.perf_counter()
    certain, risk = outside_one_class_cells(design, whole)
    dual = np.zeros(len(whole.y))
    if not len(risk.y):
        return certain, _closed_form(0.0, 1, dual, start)
    structured = design.adaptivity.has_structure()
    if not structured and is_separable(risk, design.free, penalty):
        raise ValueError(
            "The classes are linearly separable by columns without penalty, so there is no best fit: "
            "use lam > 0 and adaptive_penalty > 0."
        )
    fit = _fit_logistic(risk, design.free, penalty) if fast else None
    w, certificate = fit or _solve_with_cvxpy(design, risk, penalty, solver)
    if certificate.dual is not None:
        left = np.asarray((whole.A[:, certain != 0] != 0).sum(axis=1)).ravel() == 0
        dual[left] = certificate.dual
    return np.where(certain != 0, certain, w), replace(certificate, dual=dual)


def _fit_logistic(risk: EmpiricalRisk, free: BoolArray, penalty: Penalty) -> Fit | None:
    """The fit, or None if the optimality conditions could not be met."""
    start = time.perf_counter()
    problem = LogisticProblem.of(risk, free, np.zeros(len(free)))
    projected, k, l1, l2 = problem.projected, ~free, penalty.l1, penalty.l2
    gradient = np.abs(projected.risk.gradient(np.zeros(len(k))))
    path = problem.path(penalty, _lambdas_to_one(gradient[k], l1[k], LOGISTIC_STEPS))
    if not path.violation[-1] <= ACCEPTED:
        return None
    v = path.w[-1]
    if not np.any(l1) and not np.any(l2):
        v[k] = np.linalg.lstsq(projected.risk.A[:, k], projected.risk.A[:, k] @ v[k], rcond=None)[0]
    rows = Rows.centred(risk, projected)

    def proven(v: FloatArray) -> tuple[Fit, bool]:
        w = projected.restore(v)
        if rows is None:
            proof = prove(Rows.of(risk), l1, l2, w)
        else:
            proof = prove(rows, l1, l2, v, drift=rows.drift(projected.C, projected.w0, v, w))
        tolerance = gap_tolerance(proof.objective, float(np.log(2.0)))
        engine = ("admiss engine", __version__)
        certificate = certify(proof.objective, proof.bound, tolerance, NOT_PROVEN, *engine, start, dual=proof.theta)
        return (w, certificate), proof.objective - proof.estimate <= tolerance

    fit, accepted = proven(v)
    if fit[1].gap > fit[1].tolerance:
        polished, also = proven(polish(projected.risk, l1, l2, v))
        if polished[1].bound > fit[1].bound or not accepted:
            fit, accepted = polished, also
    return fit if accepted else None


def _lambdas_to_one(gradient: FloatArray, l1: FloatArray, steps_per_decade: int) -> FloatArray:
    """Multiples of the penalty that lead to 1 from the one at which all coefficients are 0."""
    largest = min(float(np.max(gradient / l1)), LARGEST_MULTIPLE) if len(l1) and np.all(l1 > 0) else 1.0
    steps = int(np.ceil(steps_per_decade * np.log10(largest))) if largest > 1.0 else 0
    return np.geomspace(largest, 1.0, steps + 1) if steps else np.ones(1)


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
