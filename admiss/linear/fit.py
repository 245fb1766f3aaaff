"""Fits on a design: the one way from an estimator to a solver.

    minimise over w   risk(A w) + sum_k [ l1_k |w_k| + l2_k w_k^2 / 2 ]

All losses of the package have fast paths if W has no structure. The squared loss becomes a quadratic in the penalised
columns (:mod:`admiss.linear.squared`), the others a risk of centred columns: the logistic loss and those with a log
link (:mod:`admiss.linear.logistic`), and the absolute, quantile and Huber losses (:mod:`admiss.linear.piecewise`).
Each path (:mod:`formulations.erm`) leads back to coefficients of all columns. Cross-validation follows the path of
every fold (:mod:`admiss.linear.folds`); a single fit follows a short path to its own penalty. Without penalty it is the
solution of minimum norm: of all w with the same predictions on the training rows, the one with the least sum of w_k^2
over the columns that are not free. If columns are dependent only up to rounding, the rank is decided in scaled columns.

With ``solver="auto"`` a single fit takes the fast path if cross products of the columns are accurate enough and the
optimality conditions are met. Otherwise, and for any other ``solver``, cvxpy solves the stated program. Inside, y,
weights and columns are of unit size (:class:`admiss.linear.penalty.UnitProgram`).

Fits of the squared loss are certified from the moments of their columns (:mod:`formulations.erm.moment_bound`) where
these suffice, all others from the rows (:mod:`formulations.erm.dual_bound`).

The certificate's ``dual`` is the theta of its bound, one number per row of positive weight in the order of the rows:
q_i l'(y_i, z_i) at the solution. A proof from rows has it clipped to the domain of the conjugate, orthogonal to the
columns without penalty up to rounding, and scaled towards 0 as far as l1 penalties require; one from moments and that
of a structure on W, whose bound is the solver's, have it as it is.
"""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from admiss._version import __version__
from admiss.adaptivity import Adaptivity
from admiss.estimator.scaling import power_of_two
from admiss.linear.design import Design, against_cross_products
from admiss.linear.logistic import solve_logistic
from admiss.linear.penalty import Penalty, UnitProgram
from admiss.linear.piecewise import PIECEWISE, solve_piecewise
from admiss.linear.squared import Training, TrainingRows, eliminate, fit_quadratic
from admiss.linear.squared_by_rows import solve_by_rows
from admiss.linear.stated_program import Fit, Structure, closed_form, risk_of, solve_stated
from formulations.arrays import FloatArray
from formulations.certificate import ROUNDING, SOLVERS_BOUND, Certificate, SolverError, certify, clock, gap_tolerance
from formulations.erm.moment_bound import moment_bound
from formulations.erm.risk import EmpiricalRisk
from formulations.log_link import LogLink
from formulations.losses import Logistic, Loss, Squared

# Status of a fit whose moments are too inaccurate for a proof.
NOT_FROM_MOMENTS = "not proven: the moments of the columns are too close to dependent"
# Least eigenvalue of the correlations of the columns for a fit without penalty.
DEPENDENT = 1e-10
# Penalties, in units of columns and y of size 1, that an interior-point method may not take.
TOO_LARGE = 1e8


def solve_on_design(
    design: Design,
    X: FloatArray,
    y: FloatArray,
    s: FloatArray,
    loss: Loss,
    penalty: Penalty,
    solver: str,
    exposure: FloatArray | None = None,
) -> Fit:
    """Coefficients of the columns before they are divided by the scales, for rows of weights ``s``; their certificate.

    Changes of units are by powers of two: these coefficients are the ones that are proven, digit by digit. With an
    exposure, rows have weights v_i in the risk, (1/S) sum_i v_i l(y_i, z_i): it is the mean for these weights times
    (1/S) sum_i v_i.
    """
    if exposure is not None:
        weights = s * loss.weight_of(exposure)
        share = float(weights.sum() / s.sum())
        of_mean = penalty.for_target(1.0, share)
        w, certificate = solve_on_design(design, X, y, weights, loss, of_mean, solver)
        return w, certificate.in_units(share, 1.0)
    has_structure = design.adaptivity.has_structure()
    fast = solver == "auto" and not has_structure and against_cross_products(design) is None
    by_moments = fast and isinstance(loss, Squared) and penalty.is_positive
    program = UnitProgram.of(design, penalty, loss, float(np.abs(y).max()))
    rows = TrainingRows(X, y / program.unit, s / power_of_two(s.max()))
    fit = solve_squared(rows, program, 1.0) if by_moments else None
    if fit is None or fit[1].status != "optimal":
        fit = _solve_by_rows(program, rows, solver, fast, structure_of(design, program))
    w, certificate = fit
    return program.restored(w), certificate.in_units(program.factor, program.unit)


def _solve_by_rows(
    program: UnitProgram, rows: TrainingRows, solver: str, fast: bool, structure: Structure | None
) -> Fit:
    """The fit in the units of the program, certified from the rows."""
    if not len(program.design.pairs):
        return np.zeros(0), _nothing(rows, program.loss)
    try:
        return _solve(program, rows, solver, fast, structure)
    except SolverError:
        if structure or np.maximum(program.penalty.l1, program.penalty.l2).max() <= TOO_LARGE:
            raise
        return _solve_without_large_penalties(program, rows, solver, fast)


def solve_moments(rows: Training, design: Design, penalty: Penalty) -> Fit | None:
    """The fit of the squared loss from moments alone, see :func:`solve_squared`."""
    program = UnitProgram.of(design, penalty, Squared(), max(map(abs, rows.target_range)))
    fit = solve_squared(rows, program, program.unit)
    if fit is None:
        return None
    w, certificate = fit
    return program.restored(w), certificate.in_units(program.factor, program.unit)


def solve_squared(rows: Training, program: UnitProgram, unit: float) -> Fit | None:
    """The fit of the squared loss from moments of the columns, in the units of the program.

    ``unit`` is that of the program in the units of y of the rows. The fit is certified from the moments; it has a dual
    point if the rows are known. None if the optimality conditions are not met, or if columns without penalty are
    dependent up to the accuracy of the moments.
    """
    design, penalty = program.design, program.penalty
    columns = rows.columns(design, unit)
    moments = rows.moments(columns)
    quadratic = eliminate(moments, design.free, columns.shift)
    if not penalty.is_positive and _are_dependent(quadratic.H):
        return None
    w = fit_quadratic(quadratic, penalty)
    if w is None:
        return None
    w[program.overwhelmed] = 0.0
    second, known = moments.matrix, (moments.sizes, moments.accuracy, moments.S)
    v = columns.shift.applied(w, design.free)
    objective, bound = moment_bound(second, *known, penalty.l1, penalty.l2, v)
    dual = rows.dual(design, w)
    tolerance = gap_tolerance(objective, quadratic.rho)
    engine = ("admiss engine", __version__, program.start)
    return w, certify(objective, bound, tolerance, NOT_FROM_MOMENTS, *engine, dual=dual)


def _are_dependent(H: FloatArray) -> bool:
    """Whether columns of these second moments are dependent up to rounding."""
    size = np.sqrt(np.diag(H))
    used = size > 0
    R = H[np.ix_(used, used)] / size[used][:, None] / size[used]
    return len(R) > 0 and bool(np.linalg.eigvalsh(R)[0] < DEPENDENT)


def structure_of(design: Design, program: UnitProgram) -> Structure | None:
    """The structure of the class in the units of the program."""
    if not design.adaptivity.has_structure():
        return None
    of_rows = program.unit * np.concatenate([[1.0], design.scale / program.design.scale])
    return partial(_structure_in_units, design.adaptivity, of_rows, program.factor)


def _nothing(rows: TrainingRows, loss: Loss) -> Certificate:
    """The certificate of a model without columns."""
    start = clock()
    y = rows.y
    q = rows.s / rows.s.sum()
    value = float(q @ loss.value(y, np.zeros_like(y)))
    theta = q * loss.derivative(y, np.zeros_like(y)) if loss.smooth else None
    return closed_form(value, len(y), theta, start)


def _structure_in_units(adaptivity: Adaptivity, units: FloatArray, factor: float, W: Any) -> Any:
    """The structure of a class for rows of W divided by ``units``, next to a risk divided by ``factor``.

    If Omega(c W) = c Omega(W), numbers inside and outside of Omega are made of similar size.
    """
    c = float(np.sqrt(units.max()) * np.sqrt(factor)) if adaptivity.has_homogeneous_structure() else 1.0
    returned = adaptivity.structure(np.diag(units / c) @ W)
    if not (isinstance(returned, tuple) and len(returned) == 2 and isinstance(returned[1], list)):
        raise ValueError(
            f"structure(W) of {type(adaptivity).__name__} must return a penalty and a list of constraints, as in "
            "'return 0.0, [W >= 0]' or 'return cp.norm1(W), []'."
        )
    omega, constraints = returned
    return omega * (c / factor), constraints


def _solve_without_large_penalties(program: UnitProgram, rows: TrainingRows, solver: str, fast: bool) -> Fit:
    """The fit with penalties that an interior-point method can take; coefficients with larger ones are set to 0.

    Its bound is that of smaller penalties, and so holds; its objective is the stated one.
    """
    start, penalty = clock(), program.penalty
    large = np.maximum(penalty.l1, penalty.l2) > TOO_LARGE
    smaller = replace(program, penalty=penalty.at_most(TOO_LARGE), overwhelmed=np.zeros_like(large))
    w, certificate = _solve(smaller, rows, solver, fast)
    w[large] = 0.0
    value = EmpiricalRisk(program.design.whole(rows.X), rows.y, rows.s / rows.s.sum(), program.loss).value(w)
    objective = float(value + penalty.l1 @ np.abs(w) + penalty.l2 @ w**2 / 2.0)
    end = (certificate.solver, certificate.version, start)
    tolerance = max(certificate.tolerance, gap_tolerance(objective, 0.0))
    rigorous = certificate.status != SOLVERS_BOUND
    return w, certify(objective, certificate.bound, tolerance, ROUNDING, *end, rigorous=rigorous, dual=certificate.dual)


def _solve(
    program: UnitProgram, rows: TrainingRows, solver: str, fast: bool, structure: Structure | None = None
) -> Fit:
    """The fit in the units of the program, certified from the rows."""
    design = program.design
    loss = program.loss
    q = rows.s / rows.s.sum()
    if isinstance(loss, Logistic | LogLink):
        whole = EmpiricalRisk(design.whole(rows.X), rows.y, q, loss)
        return solve_logistic(program, whole, solver, fast, structure)
    if isinstance(loss, Squared) and structure is None:
        return solve_by_rows(program, rows, solver, fast)
    risk = risk_of(design, rows.X, rows.y, q, loss)
    if isinstance(loss, PIECEWISE) and fast:
        fit = solve_piecewise(program, risk)
        if fit is not None:
            return fit
    w, certificate = solve_stated(design, risk, program.penalty, solver, structure)
    if isinstance(loss, Squared):  # its rows may have been compressed
        certificate = replace(certificate, dual=rows.dual(design, w))
    return w, certificate
