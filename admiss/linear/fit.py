"""Fits on a design: the one way from an estimator to a solver.

    minimise over w   risk(A w) + sum_k [ l1_k |w_k| + l2_k w_k^2 / 2 ]

The squared and the logistic loss have fast paths if W has no structure. The squared loss becomes a quadratic in the
penalised columns (:mod:`admiss.linear.squared`), the logistic loss a risk of centred columns; either path
(:mod:`formulations.erm`) leads back to coefficients of all columns. Cross-validation follows the path of every fold
(:mod:`admiss.linear.folds`); a single fit follows a short path to its own penalty. Without penalty it is the
solution of minimum norm: of all w with the same predictions on the training rows, the one with the least sum of w_k^2
over the columns that are not free. If columns are dependent only up to rounding, the rank is decided in scaled columns.

With ``solver="auto"`` a single fit takes the fast path if cross products of the columns are accurate enough and the
optimality conditions are met. Otherwise, and for any other ``solver``, cvxpy solves the stated program. Inside, y and
the weights are of unit size, and so are the columns: they are divided by powers of two, and penalties, structure, loss
and certificate change with them. The program stays the same, and so does every digit of the data. With
y = u y', w = u w' and  l(u y', u z') = c l'(y', z'),  the penalties of w' are  l1' = l1 u / c  and  l2' = l2 u^2 / c.

A penalty above 1e40 in these units makes a coefficient 0. The solvers see 1e40, whose bound holds for the larger one.

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

from admiss.adaptivity import Adaptivity
from admiss.estimator.scaling import power_of_two
from admiss.linear.design import Design, is_applicable
from admiss.linear.logistic import solve_logistic
from admiss.linear.penalty import OVERWHELMING, Penalty
from admiss.linear.squared import TrainingRows, solve_squared
from admiss.linear.squared_by_rows import solve_by_rows
from admiss.linear.stated_program import Fit, Structure, closed_form, risk_of, solve_stated
from formulations.arrays import FloatArray
from formulations.certificate import ROUNDING, SOLVERS_BOUND, Certificate, SolverError, certify, clock, gap_tolerance
from formulations.erm.risk import EmpiricalRisk
from formulations.losses import Logistic, Loss, Squared

# Penalties, in units of columns and y of size 1, that an interior-point method may not take.
TOO_LARGE = 1e8


def solve_program(
    design: Design, X: FloatArray, y: FloatArray, s: FloatArray, loss: Loss, penalty: Penalty, solver: str
) -> Fit:
    """Coefficients of the columns before they are divided by the scales, for rows of weights ``s``; their certificate.

    Changes of units are by powers of two: these coefficients are the ones that are proven, digit by digit.
    """
    structured = design.adaptivity.has_structure()
    fast = solver == "auto" and not structured and is_applicable(design)
    if fast and isinstance(loss, Squared) and penalty.is_positive:
        fit = solve_squared(TrainingRows(X, y, s), design, penalty)
        if fit is not None and fit[1].status == "optimal":
            return with_dual(fit, design, X, y, s)
    unit = float(power_of_two(np.abs(y).max())) if loss.task == "regression" else 1.0
    own_loss, factor = loss.in_units(unit)
    s = s / power_of_two(s.max())
    if len(design.pairs) == 0:
        return np.zeros(0), _nothing(y / unit, s, own_loss).in_units(factor, unit)
    rows, (scaled, change) = (X, y / unit, s), design.in_powers_of_two()
    stated, structure = penalty.for_target(unit, factor).in_units(change), None
    if not structured:
        stated = stated.at_most(OVERWHELMING)
    else:
        of_rows = unit * np.concatenate([[1.0], design.scale / scaled.scale])
        structure = partial(_structure_in_units, design.adaptivity, of_rows, factor)
    try:
        w, certificate = _solve(scaled, rows, own_loss, stated, solver, change, structure)
    except SolverError:
        if structure is not None or np.maximum(stated.l1, stated.l2).max() <= TOO_LARGE:
            raise
        w, certificate = _solve_without_large_penalties(scaled, rows, own_loss, stated, solver, change)
    return w / scaled.column_scale * unit, certificate.in_units(factor, unit)


def with_dual(fit: Fit, design: Design, X: FloatArray, y: FloatArray, s: FloatArray) -> Fit:
    """A fit of the squared loss from moments, with the dual point that its proof is about."""
    w, certificate = fit
    theta = 2.0 * (s / s.sum()) * (design.predictor(X, w * design.column_scale) - y)
    return w, replace(certificate, dual=theta)


def _nothing(y: FloatArray, s: FloatArray, loss: Loss) -> Certificate:
    """The certificate of a model without columns."""
    start, q = clock(), s / s.sum()
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


def _solve_without_large_penalties(
    design: Design,
    rows: tuple[FloatArray, FloatArray, FloatArray],
    loss: Loss,
    penalty: Penalty,
    solver: str,
    change: FloatArray,
) -> Fit:
    """The fit with penalties that an interior-point method can take; coefficients with larger ones are set to 0.

    Its bound is that of smaller penalties, and so holds; its objective is the stated one.
    """
    start, (X, y, s) = clock(), rows
    large = np.maximum(penalty.l1, penalty.l2) > TOO_LARGE
    w, found = _solve(design, rows, loss, penalty.at_most(TOO_LARGE), solver, change)
    w[large] = 0.0
    value = EmpiricalRisk(design.whole(X), y, s / s.sum(), loss).value(w)
    objective = float(value + penalty.l1 @ np.abs(w) + penalty.l2 @ w**2 / 2.0)
    end = (found.solver, found.version, start)
    tolerance = max(found.tolerance, gap_tolerance(objective, 0.0))
    rigorous = found.status != SOLVERS_BOUND
    return w, certify(objective, found.bound, tolerance, ROUNDING, *end, rigorous=rigorous, dual=found.dual)


def _solve(
    design: Design,
    rows: tuple[FloatArray, FloatArray, FloatArray],
    loss: Loss,
    penalty: Penalty,
    solver: str,
    change: FloatArray,
    structure: Structure | None = None,
) -> Fit:
    """The fit in the columns of this design, which are those of the stated one divided by ``change``."""
    X, y, s = rows
    q, structured = s / s.sum(), structure is not None
    fast = solver == "auto" and not structured and is_applicable(design)
    if isinstance(loss, Logistic):
        return solve_logistic(design, EmpiricalRisk(design.whole(X), y, q, loss), penalty, solver, fast, structure)
    if isinstance(loss, Squared) and not structured:
        return solve_by_rows(design, X, y, s, penalty, solver, fast, change)
    w, certificate = solve_stated(design, risk_of(design, X, y, q, loss), penalty, solver, structure)
    if isinstance(loss, Squared):  # its rows may have been compressed
        certificate = replace(certificate, dual=2.0 * q * (design.predictor(X, w) - y))
    return w, certificate
