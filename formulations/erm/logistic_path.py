"""Penalised logistic paths by proximal Newton steps on a working set of columns.

    minimise over w   sum_i q_i l(y_i, z_i) + sum_j lambda [ v1_j |w_j| + v2_j w_j^2 / 2 ],     z = A w

with l(y, z) = log(1 + exp(-y z)) or a loss with a log link. The first columns have no penalty, and are always in the
working set. At a point with gradient g, the quadratic model on the working set, with their coefficients f eliminated
(:mod:`formulations.erm.logistic_model`), is the problem of :mod:`formulations.erm.active_set` with
b = H w - g_w + K'g_f. Its minimiser is the next point.

* Along the path, the model at the last point is the first model for the next lambda: it predicts as well as it
  corrects. The errors of such predictions in the gradient are extrapolated to the next one, and added to it.
* The Hessian is reused as long as steps with it converge fast. A step that does not clearly reduce the violation of the
  conditions must decrease the objective; otherwise it is repeated with a new Hessian, then halved. A long step to where
  all slopes vanish, or are those of wrong predictions, can reduce the violation alone.
* A column joins the working set when its condition |g_j| <= lambda v1_j is violated. Most conditions are checked
  without computing g_j: with slopes q_i t_i, known at t0, |g_j - g0_j| is at most the root of
  sum_i q_i A_ij^2 times that of sum_i q_i (t_i - t0_i)^2.
"""

from typing import NamedTuple

import numpy as np

from formulations.arrays import BoolArray, FloatArray, IntArray
from formulations.erm.active_set import CONDITION_TOLERANCE, copy, set_product, solve_quadratic
from formulations.erm.logistic_model import build_model, empty_model, extend_model, linear_term, set_error, set_free
from formulations.erm.logistic_rows import (
    Rows,
    column_norms,
    empty_point,
    evaluate,
    inverse_of,
    risk_of,
    set_predictions,
)
from formulations.erm.quadratic_path import Path, scale_penalty
from formulations.jit import compiled

# The conditions hold to this share of the root mean square of their column times sum_i q_i: no gradient of the logistic
# loss is larger.
GRADIENT_TOLERANCE = 1e-9
# A step must shrink the violation to this share, or the Hessian is recomputed.
SLOW = 0.3
# Violations above which the objective, whose changes are about their squares, tells whether a slow step is a good one.
TELLING = 1e-6
# Steps at one lambda, and the least share of a step.
MAX_STEPS = 100
LEAST_SHARE = 1e-10


class Columns(NamedTuple):
    """The working set: m columns in the order in which they joined, entries of ``work``, l1 and l2 beyond are not used.

    ``norm`` is the root of sum_i q_i A_ji^2, ``size`` the unit of the conditions; ``g_known`` is the gradient in all
    columns at the slopes ``slope_known``; ``inverse`` is 1 / q_i, 0 for rows of weight 0, whose slope is 0.
    """

    work: IntArray
    is_work: BoolArray
    v1: FloatArray
    v2: FloatArray
    l1: FloatArray
    l2: FloatArray
    norm: FloatArray
    size: FloatArray
    g_known: FloatArray
    slope_known: FloatArray
    inverse: FloatArray


class Memory(NamedTuple):
    """Workspace of steps: vectors, the factor of a support, and the support."""

    vectors: FloatArray
    factor: FloatArray
    support: IntArray


def logistic_path(
    A: FloatArray,
    n_free: int,
    y: FloatArray,
    q: FloatArray,
    v1: FloatArray,
    v2: FloatArray,
    lambdas: FloatArray,
    tolerance: float = GRADIENT_TOLERANCE,
    start: FloatArray | None = None,
    power: float = 0.0,
) -> Path:
    """Solve the path of the module; v1 and v2 are 0 for the first ``n_free`` columns.

    y is -1 or 1, or the target of a log link with this power of the variance. A is not copied if its columns are
    contiguous. The violation is the largest one of the optimality conditions, as a share of the root mean square of
    their column.

    Examples
    --------
    >>> A, y = np.array([[1.0, -1.0], [1.0, 1.0], [1.0, 2.0], [1.0, 0.5]]), np.array([-1.0, 1.0, -1.0, 1.0])
    >>> path = logistic_path(A, 1, y, np.full(4, 0.25), np.array([0.0, 1.0]), np.zeros(2), np.array([1.0, 0.01]))
    >>> path.w.shape, bool(path.violation.max() < 1e-9)
    ((2, 2), True)
    """
    (n, p), w = A.shape, np.zeros(A.shape[1]) if start is None else start
    rows = Rows(np.ascontiguousarray(A.T), y, q, power)
    norm, size = column_norms(rows.A, q)
    columns = Columns(
        np.zeros(p, dtype=np.int64), np.zeros(p, dtype=np.bool_), v1, v2, np.zeros(p), np.zeros(p),
        norm, size, np.zeros(p), np.zeros(n), inverse_of(q),
    )  # fmt: skip
    point, trial, model = empty_point(n, p), empty_point(n, p), empty_model(n, p, n_free)
    active = np.concatenate([np.arange(n_free), n_free + np.flatnonzero(w[n_free:])])
    m = len(active)
    columns.work[:m], columns.is_work[active], point.w[:m] = active, True, w[active]
    solutions, violations = np.zeros((len(lambdas), p)), np.zeros(len(lambdas))
    memory = Memory(np.zeros((7, p)), np.empty((p, p)), np.zeros(p, dtype=np.int64))
    _solve(rows, columns, m, lambdas, tolerance, model, point, trial, memory, solutions, violations)
    return Path(solutions, violations)


@compiled
def _solve(rows, columns, m, lambdas, tolerance, model, point, trial, memory, solutions, violations):  # type: ignore[no-untyped-def]
    """Write the solutions and their violations: Newton steps from each solution, the first from the point, to the next.

    The start has m columns in its working set, and their coefficients in the point.
    """
    vectors, zero, f = memory.vectors, np.int64(0), len(model.K)
    b, product, before_step, x, before, q_before, gradient = (
        vectors[0], vectors[1], vectors[2], vectors[3], vectors[4], vectors[5], vectors[6],
    )  # fmt: skip
    work, l1, l2, w = columns.work, columns.l1[f:], columns.l2[f:], trial.w[f:]
    has_ridge = False
    for j in range(len(columns.v2)):
        has_ridge |= columns.v2[j] != 0.0
    evaluate(rows, work, m, point)
    _refresh(rows, point.slope, columns)
    build_model(rows, work, m, point.z, model)
    stale, known = False, zero  # whether the model is that of another point, and known rows of its factor
    for number in range(len(lambdas)):
        lam = lambdas[number]
        if has_ridge:
            known = zero
        m, outside = _join(rows, lam, 0.0, columns, m, point, model)
        scale_penalty(m, work, columns.v1, columns.v2, lam, columns.l1, columns.l2)
        violation = _violation(m, columns, point)
        first, sweep = True, True
        for _ in range(MAX_STEPS):
            if violation <= tolerance:
                joined, outside = _join(rows, lam, tolerance, columns, m, point, model)
                if joined == m:
                    break
                m, sweep = joined, True
                scale_penalty(m, work, columns.v1, columns.v2, lam, columns.l1, columns.l2)
                violation = _violation(m, columns, point)
            # the minimiser of the quadratic model
            copy(m, point.w, trial.w)
            set_product(model.H, m - f, w, before_step)
            copy(m - f, before_step, product)
            accuracy = CONDITION_TOLERANCE * linear_term(m, point, model, product, 1.0 if first else 0.0, gradient, b)
            _, known = solve_quadratic(
                model.H, m - f, b, l1, l2, w, product, memory.factor, memory.support, x, before, q_before, accuracy,
                known, sweep,
            )  # fmt: skip
            sweep = False
            set_free(m, point, model, gradient, x, trial)
            evaluate(rows, work, m, trial)
            new_violation = _violation(m, columns, trial)
            share = 1.0
            if new_violation > (SLOW * violation if new_violation > TELLING else violation):  # the objective decides
                share = _decreasing_share(rows, columns, m, point, trial, 1.0 if stale or first else LEAST_SHARE)
                if share == 0.0:
                    if not stale and not first:
                        break
                    build_model(rows, work, m, point.z, model)
                    stale, first, known = False, False, zero
                    continue
                if share < 1.0:
                    evaluate(rows, work, m, trial)
                    new_violation = _violation(m, columns, trial)
            if first and share == 1.0:
                set_error(m, point, trial, product, before_step, gradient, model)
            stale = new_violation <= max(SLOW * violation, tolerance)
            if not stale:
                build_model(rows, work, m, trial.z, model)
                known = zero
            _move(m, trial, point)
            violation, first = new_violation, False
        violations[number] = max(violation, outside)
        for k in range(m):
            solutions[number, work[k]] = point.w[k]


@compiled
def _move(m, trial, point):  # type: ignore[no-untyped-def]
    """The trial point becomes the point."""
    copy(m, trial.w, point.w)
    copy(m, trial.g, point.g)
    copy(len(point.z), trial.z, point.z)
    copy(len(point.z), trial.slope, point.slope)


@compiled
def _decreasing_share(rows, columns, m, point, trial, least):  # type: ignore[no-untyped-def]
    """Halve the step to the trial point until the objective decreases; its share, 0 if it would be below ``least``."""
    objective = risk_of(rows.power, rows.y, rows.q, point.z) + _penalty(m, columns, point.w)
    share = 1.0
    while share >= least:
        set_predictions(rows.A, columns.work, m, trial.w, np.int64(0), len(rows.y), trial.z)
        if risk_of(rows.power, rows.y, rows.q, trial.z) + _penalty(m, columns, trial.w) < objective:
            return share
        share *= 0.5
        for k in range(m):
            trial.w[k] = 0.5 * (trial.w[k] + point.w[k])
    return 0.0


@compiled
def _join(rows, lam, tolerance, columns, m, point, model):  # type: ignore[no-untyped-def]
    """Add the columns whose condition is violated to the working set; its size, and the largest violation of others.

    If the bound does not settle all conditions, the gradient is computed.
    """
    slope, g_known, slope_known = point.slope, columns.g_known, columns.slope_known
    work, is_work, v1 = columns.work, columns.is_work, columns.v1
    p, start, largest = len(g_known), m, 0.0
    if m == p:
        return m, 0.0
    drift = 0.0
    for i in range(len(slope)):
        change = slope[i] - slope_known[i]
        drift += change * change * columns.inverse[i]
    drift = np.sqrt(drift)
    settled = True
    for j in range(p):
        if abs(g_known[j]) + columns.norm[j] * drift > lam * v1[j] and not is_work[j]:
            settled = False
    if settled:
        return m, 0.0
    if drift > 0.0:
        _refresh(rows, slope, columns)
    for j in range(p):
        if abs(g_known[j]) > lam * v1[j] and not is_work[j]:
            over = (abs(g_known[j]) - lam * v1[j]) / columns.size[j]
            if over > tolerance:
                work[m], is_work[j], point.w[m], point.g[m] = j, True, 0.0, g_known[j]
                m += 1
            else:
                largest = max(largest, over)
    if m > start:
        extend_model(rows, work, start, m, model)
    return m, largest


@compiled
def _refresh(rows, slope, columns):  # type: ignore[no-untyped-def]
    """Compute the gradient in the columns outside the working set."""
    for j in range(len(columns.g_known)):
        if not columns.is_work[j]:
            total = 0.0
            for i in range(len(slope)):
                total += rows.A[j, i] * slope[i]
            columns.g_known[j] = total
    copy(len(slope), slope, columns.slope_known)


@compiled
def _penalty(m, columns, w):  # type: ignore[no-untyped-def]
    total = 0.0
    for k in range(m):
        total += columns.l1[k] * abs(w[k]) + 0.5 * columns.l2[k] * w[k] * w[k]
    return total


@compiled
def _violation(m, columns, point):  # type: ignore[no-untyped-def]
    """Largest violation of the optimality conditions in the working set."""
    largest, w, l1 = 0.0, point.w, columns.l1
    for k in range(m):
        value = point.g[k] + columns.l2[k] * w[k]
        if w[k] > 0.0:
            value = abs(value + l1[k])
        elif w[k] < 0.0:
            value = abs(value - l1[k])
        else:
            value = abs(value) - l1[k]
        largest = max(largest, value / columns.size[columns.work[k]])
    return largest
