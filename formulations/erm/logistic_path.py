"""Penalised logistic paths by proximal Newton steps on a working set of columns.

    minimise over (w, f)   sum_i q_i log(1 + exp(-y_i z_i)) + sum_j lambda [ v1_j |w_j| + v2_j w_j^2 / 2 ]

with z = A w + E f, E the columns without penalty. At a point with gradient g, the quadratic model on the working set,
with f eliminated (:mod:`formulations.erm.logistic_model`), is the problem of :mod:`formulations.erm.active_set` with
b = H w - g_w + K'g_f. Its minimiser is the next point.

* Along the path, the model at the last point is the first model for the next lambda: it predicts as well as it
  corrects. What it got wrong in the gradient, from one lambda to the next, it will nearly get wrong again: that is added
  to the next prediction.
* The Hessian is reused, rescaled to the curvature observed along the last step, as long as steps with it converge fast.
  A step that does not reduce the violation of the conditions must decrease the objective; otherwise it is repeated with
  a new Hessian, then halved.
* A column joins the working set when its condition |g_j| <= lambda v1_j is violated. Most conditions are checked without
  computing g_j: with r_i = q_i r~_i the slopes, known at r0, |g_j - g0_j| is at most |A_j|_q |r~ - r~0|_q.
"""

from typing import NamedTuple

import numpy as np

from formulations.arrays import FloatArray
from formulations.erm.active_set import CONDITION_TOLERANCE, cholesky_solve, set_product, solve_quadratic
from formulations.erm.logistic_model import build_model, extend_model, scale_model
from formulations.erm.logistic_rows import add_products, evaluate, risk_of, set_curvatures, set_predictions
from formulations.erm.quadratic_path import scale_penalty
from formulations.jit import compiled

# The conditions hold to this share of the root mean square of their column, the largest that the gradient can be.
GRADIENT_TOLERANCE = 1e-9
# A step must shrink the violation to this share, or the Hessian is recomputed.
SLOW = 0.3
# Share of the conditions not settled by their bound above which all are computed.
REFRESH_SHARE = 0.1
MAX_STEPS = 100


class LogisticPath(NamedTuple):
    """Solutions along a path.

    Attributes
    ----------
    w : array of shape (n_lambdas, p)
    free : array of shape (n_lambdas, f)
    violation : array of shape (n_lambdas,)
        Largest violation of the optimality conditions, as a share of the root mean square of their column.
    """

    w: FloatArray
    free: FloatArray
    violation: FloatArray


def logistic_path(
    A: FloatArray,
    E: FloatArray,
    y: FloatArray,
    q: FloatArray,
    v1: FloatArray,
    v2: FloatArray,
    lambdas: FloatArray,
    tolerance: float = GRADIENT_TOLERANCE,
    start: tuple[FloatArray, FloatArray] | None = None,
) -> LogisticPath:
    """Solve the path of the module; y is -1 or 1. A is not copied if its columns are contiguous.

    Examples
    --------
    >>> A, E, y = np.array([[-1.0], [1.0], [2.0], [0.5]]), np.ones((4, 1)), np.array([-1.0, 1.0, -1.0, 1.0])
    >>> path = logistic_path(A, E, y, np.full(4, 0.25), np.ones(1), np.zeros(1), np.array([1.0, 0.01]))
    >>> path.w.shape, bool(path.violation.max() < 1e-9)
    ((2, 1), True)
    """
    w, f = (np.zeros(A.shape[1]), np.zeros(E.shape[1])) if start is None else start
    A, E = np.ascontiguousarray(A.T), np.ascontiguousarray(E.T)
    return LogisticPath(*_logistic_path(A, E, y, q, v1, v2, lambdas, w, f, tolerance)[:3])


@compiled
def _logistic_path(A, E, y, q, v1, v2, lambdas, w_start, f_start, tolerance):  # type: ignore[no-untyped-def]
    (p, n), n_free = A.shape, len(E)
    solutions, free, violations = np.zeros((len(lambdas), p)), np.zeros((len(lambdas), n_free)), np.zeros(len(lambdas))
    counts = np.zeros(8, dtype=np.int64)
    norm, norm_free, total = _norms(A, q), _norms(E, q), np.sqrt(q.sum())
    # rows: at the point, at the trial, and where the gradient of all columns was computed last
    z, slope, new_z, new_slope, d = np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n)
    # columns of the working set in the order in which they joined; memory beyond the first m entries is never touched
    work, is_work, every, everything = np.zeros(p, dtype=np.int64), np.zeros(p, dtype=np.bool_), np.arange(n_free), np.arange(p)
    H, L, F = np.empty((p, p)), np.empty((p, p)), np.zeros(p, dtype=np.int64)
    Bf, K, Lf = np.zeros((n_free, p)), np.zeros((n_free, p)), np.zeros((n_free, n_free))
    l1, l2, w, g, target, new_g = np.zeros(p), np.zeros(p), np.zeros(p), np.zeros(p), np.zeros(p), np.zeros(p)
    b, product, x, before, q_before, size = np.zeros(p), np.zeros(p), np.zeros(p), np.zeros(p), np.zeros(p), np.zeros(p)
    expected, defect, defect_free = np.zeros(p), np.zeros(p), np.zeros(n_free)
    f, g_free, new_f, new_g_free, step_free = f_start.copy(), np.zeros(n_free), np.zeros(n_free), np.zeros(n_free), np.zeros(n_free)
    m = 0
    for j in range(p):
        if w_start[j] != 0.0:
            work[m], is_work[j], w[m], size[m] = j, True, w_start[j], norm[j] * total
            m += 1
    evaluate(A, work, m, w, E, every, f, y, q, z, slope, g, g_free)
    g_known, slope_known = np.zeros(p), slope.copy()
    add_products(A, everything, 0, p, slope, 0, n, g_known)
    set_curvatures(q, z, d)
    build_model(A, E, d, work, m, H, Bf, K, Lf)
    stale = False
    for step in range(len(lambdas)):
        lam = lambdas[step]
        first, outside = True, 0.0
        joined, outside = _join(A, q, v1, lam, 0.0, norm, total, slope, slope_known, g_known, work, is_work, m, w, g, size, defect)
        if joined > m:
            counts[2] += 1
            extend_model(A, E, every, d, work, m, joined, H, Bf, K, Lf)
            m = joined
        scale_penalty(m, work, v1, v2, lam, l1, l2)
        violation = _conditions(m, l1, l2, w, g, size, g_free, norm_free, total)
        for _ in range(MAX_STEPS):
            if violation <= tolerance:
                joined, outside = _join(A, q, v1, lam, tolerance, norm, total, slope, slope_known, g_known, work, is_work, m, w, g, size, defect)
                if joined == m:
                    break
                counts[2] += 1
                extend_model(A, E, every, d, work, m, joined, H, Bf, K, Lf)
                m = joined
                scale_penalty(m, work, v1, v2, lam, l1, l2)
                violation = _conditions(m, l1, l2, w, g, size, g_free, norm_free, total)
            # the minimiser of the quadratic model
            counts[0] += 1
            _copy(m, w, target)
            set_product(H, m, target, product)
            _copy(m, product, expected)
            for c in range(n_free):
                step_free[c] = g_free[c] + (defect_free[c] if first else 0.0)
            largest = 0.0
            for k in range(m):
                b[k] = product[k] - g[k] - (defect[k] if first else 0.0)
                for c in range(n_free):
                    b[k] += K[c, k] * step_free[c]
                largest = max(largest, abs(b[k]))
            solve_quadratic(H, m, b, l1, l2, target, product, L, F, x, before, q_before, CONDITION_TOLERANCE * largest)
            cholesky_solve(Lf, n_free, step_free)
            _shift_free(m, K, w, target, f, step_free, new_f)
            evaluate(A, work, m, target, E, every, new_f, y, q, new_z, new_slope, new_g, new_g_free)
            new_violation = _conditions(m, l1, l2, target, new_g, size, new_g_free, norm_free, total)
            whole = True
            if new_violation > violation:  # not clearly better: the objective decides
                counts[3] += 1
                objective = risk_of(y, q, z) + _penalty(m, l1, l2, w)
                share = 1.0
                while share > 1e-10:
                    for k in range(m):
                        target[k] = w[k] + (target[k] - w[k]) * (1.0 if whole else 0.5)
                    for c in range(n_free):
                        new_f[c] = f[c] + (new_f[c] - f[c]) * (1.0 if whole else 0.5)
                    set_predictions(A, work, m, target, E, every, new_f, 0, n, new_z)
                    if risk_of(y, q, new_z) + _penalty(m, l1, l2, target) < objective:
                        break
                    if stale or first:
                        share = 0.0
                        break
                    share *= 0.5
                    whole = False
                if share <= 1e-10:
                    if not stale and not first:
                        break
                    counts[1] += 1
                    set_curvatures(q, z, d)
                    build_model(A, E, d, work, m, H, Bf, K, Lf)
                    stale, first = False, False
                    defect[:] = 0.0
                    defect_free[:] = 0.0
                    continue
                if not whole:
                    evaluate(A, work, m, target, E, every, new_f, y, q, new_z, new_slope, new_g, new_g_free)
                    new_violation = _conditions(m, l1, l2, target, new_g, size, new_g_free, norm_free, total)
            if first and whole:
                # what the model without the last defect got wrong
                for k in range(m):
                    defect[k] = new_g[k] - g[k] - (product[k] - expected[k])
                    for c in range(n_free):
                        defect[k] += K[c, k] * (g_free[c] + defect_free[c])
                for c in range(n_free):
                    defect_free[c] += new_g_free[c]
            if new_violation > max(SLOW * violation, tolerance):
                counts[1] += 1
                set_curvatures(q, new_z, d)
                build_model(A, E, d, work, m, H, Bf, K, Lf)
                defect[:] = 0.0
                defect_free[:] = 0.0
                stale = False
            else:
                stale = True
            first = False
            z, new_z, slope, new_slope, w, target = new_z, z, new_slope, slope, target, w
            f, new_f, g, new_g, g_free, new_g_free = new_f, f, new_g, g, new_g_free, g_free
            violation = new_violation
        for k in range(m):
            solutions[step, work[k]] = w[k]
        free[step] = f
        violations[step] = max(violation, outside)
    counts[4] = m
    return solutions, free, violations, counts


@compiled
def _join(A, q, v1, lam, tolerance, norm, total, slope, slope_known, g_known, work, is_work, m, w, g, size, defect):  # type: ignore[no-untyped-def]
    """Add the columns whose condition is violated to the working set; its size, and the largest violation of others.

    ``g_known`` is the gradient at ``slope_known``. If the bound does not settle a condition, g_j is computed.
    """
    p, n = A.shape
    drift = 0.0
    for i in range(n):
        if q[i] > 0.0:
            drift += (slope[i] - slope_known[i]) * (slope[i] - slope_known[i]) / q[i]
    drift = np.sqrt(drift)
    unsettled = 0
    for j in range(p):
        if not is_work[j] and abs(g_known[j]) + norm[j] * drift > lam * v1[j]:
            unsettled += 1
    largest = 0.0
    if unsettled == 0:
        return m, largest
    if unsettled > REFRESH_SHARE * p and drift > 0.0:
        for j in range(p):
            if not is_work[j]:
                g_known[j] = _product(A, j, slope)
        slope_known[:] = slope
        drift = 0.0
    for j in range(p):
        if not is_work[j] and abs(g_known[j]) + norm[j] * drift > lam * v1[j]:
            gradient = g_known[j] if drift == 0.0 else _product(A, j, slope)
            unit = norm[j] * total if norm[j] > 0.0 else 1.0
            over = (abs(gradient) - lam * v1[j]) / unit
            if over > tolerance:
                work[m], is_work[j], w[m], g[m], size[m], defect[m] = j, True, 0.0, gradient, unit, 0.0
                m += 1
            else:
                largest = max(largest, over)
    return m, largest


@compiled
def _product(A, j, slope):  # type: ignore[no-untyped-def]
    total = 0.0
    for i in range(len(slope)):
        total += A[j, i] * slope[i]
    return total


@compiled
def _copy(m, source, target):  # type: ignore[no-untyped-def]
    for k in range(m):
        target[k] = source[k]


@compiled
def _shift_free(m, K, w, target, f, step, new_f):  # type: ignore[no-untyped-def]
    """The free coefficients that minimise the model at ``target``."""
    for c in range(len(f)):
        new_f[c] = f[c] - step[c]
        for k in range(m):
            new_f[c] -= K[c, k] * (target[k] - w[k])


@compiled
def _penalty(m, l1, l2, w):  # type: ignore[no-untyped-def]
    total = 0.0
    for k in range(m):
        total += l1[k] * abs(w[k]) + 0.5 * l2[k] * w[k] * w[k]
    return total


@compiled
def _conditions(m, l1, l2, w, g, size, g_free, norm_free, total):  # type: ignore[no-untyped-def]
    """Largest violation of the optimality conditions in the working set and the free columns."""
    largest = 0.0
    for k in range(m):
        value = g[k] + l2[k] * w[k]
        if w[k] > 0.0:
            value = abs(value + l1[k])
        elif w[k] < 0.0:
            value = abs(value - l1[k])
        else:
            value = abs(value) - l1[k]
        largest = max(largest, value / size[k])
    for c in range(len(g_free)):
        if norm_free[c] > 0.0:
            largest = max(largest, abs(g_free[c]) / (norm_free[c] * total))
    return largest


@compiled
def _norms(A, q):  # type: ignore[no-untyped-def]
    """sqrt(sum_i q_i A_ji^2) for each column j."""
    norm = np.zeros(len(A))
    for j in range(len(A)):
        for i in range(len(q)):
            norm[j] += q[i] * A[j, i] * A[j, i]
        norm[j] = np.sqrt(norm[j])
    return norm
