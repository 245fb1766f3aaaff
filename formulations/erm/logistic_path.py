"""Penalised logistic paths by proximal Newton steps on the quadratic engine.

    minimise over (w, f)   sum_i q_i log(1 + exp(-y_i z_i)) + sum_j lambda [ v1_j |w_j| + v2_j w_j^2 / 2 ]

with z = A w + E f, E the columns without penalty. At a point with gradient g and Hessian B = (A E)' D (A E),
D = diag(q_i s_i (1 - s_i)), s_i = 1 / (1 + exp(-z_i)), the quadratic model, with f eliminated, is the problem of
:mod:`formulations.erm.quadratic_path` with H the Schur complement of B and b = H w - g_w + B_wf B_ff^-1 g_f. Its
minimiser is the next point.

Along the path, the model at the last point is the first model for the next lambda: it predicts as well as it corrects.
The Hessian is reused, rescaled to the curvature observed along the last step, as long as steps with it converge fast. A
step that does not reduce the violation of the conditions must decrease the objective; otherwise it is repeated with a
new Hessian, then halved. If there are many columns, they are screened first: the path is solved on those that may be
active, and the conditions of the others are checked.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import expit

from formulations.arrays import FloatArray
from formulations.erm.active_set import CONDITION_TOLERANCE, largest_entry, set_product, solve_quadratic
from formulations.erm.quadratic_path import SMALL, penalised_path, scale_penalty
from formulations.jit import compiled

# The conditions hold to this share of the root mean square of their column, the largest that the gradient can be.
GRADIENT_TOLERANCE = 1e-9
# A step must shrink the violation to this share, or the Hessian is recomputed.
SLOW = 0.3
# Lambdas solved on one selection of columns.
SCREENED_STEPS = 5
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
    """Solve the path of the module; y is -1 or 1.

    Examples
    --------
    >>> A, E, y = np.array([[-1.0], [1.0], [2.0], [0.5]]), np.ones((4, 1)), np.array([-1.0, 1.0, -1.0, 1.0])
    >>> path = logistic_path(A, E, y, np.full(4, 0.25), np.ones(1), np.zeros(1), np.array([1.0, 0.01]))
    >>> path.w.shape, bool(path.violation.max() < 1e-9)
    ((2, 1), True)
    """
    p = A.shape[1]
    w, f = (np.zeros(p), np.zeros(E.shape[1])) if start is None else start
    if p <= SMALL:
        columns = np.ascontiguousarray(np.hstack([A, E]))
        return LogisticPath(*_logistic_path(columns, p, y, q, v1, v2, lambdas, w, f, tolerance))
    # on the columns that may be active, a few lambdas at a time, until no other violates its condition
    found = LogisticPath(np.zeros((len(lambdas), p)), np.zeros((len(lambdas), len(f))), np.zeros(len(lambdas)))
    size = np.sqrt(q @ A**2 / q.sum()) * q.sum()
    gradient = _gradients(A, y, q, A @ w + E @ f)
    done, last = 0, lambdas[0]
    joined = np.zeros(p, dtype=bool)
    while done < len(lambdas):
        part = slice(done, done + SCREENED_STEPS)
        end = lambdas[part][-1]
        # the gradient of a column rarely moves by more than its penalty does
        active = joined | (w != 0) | (np.abs(gradient) >= (2.0 * end - last) * v1)
        columns = np.ascontiguousarray(np.hstack([A[:, active], E]))
        path = LogisticPath(
            *_logistic_path(
                columns, int(active.sum()), y, q, v1[active], v2[active], lambdas[part], w[active], f, tolerance
            )
        )
        gradients = _gradients(A, y, q, columns @ np.hstack([path.w, path.free]).T)
        over = np.abs(gradients) - lambdas[part] * v1[:, None]
        wrong = (over > tolerance * np.where(size > 0, size, 1.0)[:, None]) & ~active[:, None]
        good = int(np.argmax(wrong.any(axis=0))) if wrong.any() else len(lambdas[part])
        joined = wrong[:, good] if good < len(lambdas[part]) else np.zeros(p, dtype=bool)
        if good:
            rows = slice(done, done + good)
            found.w[rows, active], found.free[rows] = path.w[:good], path.free[:good]
            found.violation[rows] = path.violation[:good]
            w, f, gradient, last = found.w[rows][-1], path.free[good - 1], gradients[:, good - 1], lambdas[rows][-1]
            done += good
        else:
            joined |= active
    return found


def _gradients(A: FloatArray, y: FloatArray, q: FloatArray, z: FloatArray) -> FloatArray:
    """Gradient of the risk in each column, for one vector of predictions or several side by side."""
    shape = (len(y), 1) if z.ndim == 2 else (len(y),)
    return np.asarray(A.T @ (-(q * y).reshape(shape) * expit(-y.reshape(shape) * z)))


@compiled
def _logistic_path(A, p, y, q, v1, v2, lambdas, w_start, f_start, tolerance):  # type: ignore[no-untyped-def]
    n, width = A.shape
    solutions, free = np.zeros((len(lambdas), p)), np.zeros((len(lambdas), width - p))
    violations = np.zeros(len(lambdas))
    B, H, K = np.zeros((width, width)), np.zeros((p, p)), np.zeros((width - p, p))
    w = np.concatenate((w_start, f_start))
    z, slope, new_slope = np.dot(A, w), np.zeros(n), np.zeros(n)
    size = _column_sizes(A, q)
    _slopes(y, q, z, slope)
    g = np.dot(A.T, slope)
    _hessian(A, p, q, z, B, H, K)
    stale = False
    one, all_columns, F = np.zeros(1), np.arange(p), np.zeros(p, dtype=np.int64)
    L, l1, l2, x = np.empty((p, p)), np.zeros(p), np.zeros(p), np.zeros(p)
    product, before, q_before = np.zeros(p), np.zeros(p), np.zeros(p)
    for step in range(len(lambdas)):
        lam = lambdas[step]
        one[0] = lam
        violation = _conditions(p, v1, v2, lam, w, g, size)
        for _ in range(MAX_STEPS):
            if violation <= tolerance:
                break
            # the minimiser of the quadratic model, with the free columns eliminated
            target = w.copy()
            set_product(H, p, target, product)
            b = product - g[:p] + np.dot(K.T, g[p:])
            if p <= SMALL:
                scale_penalty(p, all_columns, v1, v2, lam, l1, l2)
                accuracy = CONDITION_TOLERANCE * largest_entry(b)
                solve_quadratic(H, p, b, l1, l2, target, product, L, F, x, before, q_before, accuracy)
            else:
                target[:p] = penalised_path(H, b, v1, v2, one, w[:p].copy())[0][0]
            target[p:] -= np.dot(K, target[:p] - w[:p])
            if width > p:
                target[p:] -= np.linalg.solve(_free_block(B, p), g[p:])
            new_z = np.dot(A, target)
            _slopes(y, q, new_z, new_slope)
            new_g = np.dot(A.T, new_slope)
            new_violation = _conditions(p, v1, v2, lam, target, new_g, size)
            if new_violation > violation:  # not clearly better: the objective decides
                objective = _risk(y, q, z) + _penalty(p, v1, v2, lam, w)
                share = 1.0
                while share > 1e-10:
                    trial = w + share * (target - w)
                    new_z = np.dot(A, trial)
                    if _risk(y, q, new_z) + _penalty(p, v1, v2, lam, trial) < objective:
                        break
                    if stale:
                        share = 0.0
                        break
                    share *= 0.5
                if share <= 1e-10:
                    if not stale:
                        break
                    _hessian(A, p, q, z, B, H, K)
                    stale = False
                    continue
                target = trial
                _slopes(y, q, new_z, new_slope)
                new_g = np.dot(A.T, new_slope)
                new_violation = _conditions(p, v1, v2, lam, target, new_g, size)
            if new_violation > max(SLOW * violation, tolerance):
                _hessian(A, p, q, new_z, B, H, K)
                stale = False
            else:
                _rescale(B, H, target - w, new_g - g)
                stale = True
            w, z, g, violation = target, new_z, new_g, new_violation
        solutions[step], free[step] = w[:p], w[p:]
        violations[step] = violation
    return solutions, free, violations


@compiled
def _slopes(y, q, z, slope):  # type: ignore[no-untyped-def]
    """The derivative of the risk in each z_i."""
    for i in range(len(y)):
        margin = y[i] * z[i]
        e = np.exp(-abs(margin))
        slope[i] = -q[i] * y[i] * (e if margin > 0.0 else 1.0) / (1.0 + e)


@compiled
def _risk(y, q, z):  # type: ignore[no-untyped-def]
    risk = 0.0
    for i in range(len(y)):
        margin = y[i] * z[i]
        risk += q[i] * (np.log1p(np.exp(-abs(margin))) + max(-margin, 0.0))
    return risk


@compiled
def _hessian(A, p, q, z, B, H, K):  # type: ignore[no-untyped-def]
    """B, its Schur complement H on the first p columns, and K = B_ff^-1 B_fw."""
    n, width = A.shape
    scaled = np.empty((n, width))
    for i in range(n):
        e = np.exp(-abs(z[i]))
        root = np.sqrt(q[i] * e) / (1.0 + e)
        for k in range(width):
            scaled[i, k] = root * A[i, k]
    B[:, :] = np.dot(scaled.T, scaled)
    H[:, :] = B[:p, :p]
    if width > p:
        K[:, :] = np.linalg.solve(_free_block(B, p), B[p:, :p].copy())
        H[:, :] -= np.dot(B[:p, p:].copy(), K)


@compiled
def _free_block(B, p):  # type: ignore[no-untyped-def]
    """B_ff, regularised against being singular if all rows of a column are certain."""
    block = B[p:, p:].copy()
    for i in range(len(block)):
        block[i, i] = block[i, i] * (1.0 + 1e-12) + 1e-100
    return block


@compiled
def _rescale(B, H, change, response):  # type: ignore[no-untyped-def]
    """Scale the Hessian to the curvature observed along the last step."""
    expected = np.dot(change, np.dot(B, change))
    if expected > 0.0:
        factor = min(max(np.dot(change, response) / expected, 0.2), 5.0)
        B *= factor
        H *= factor


@compiled
def _penalty(p, v1, v2, lam, w):  # type: ignore[no-untyped-def]
    total = 0.0
    for j in range(p):
        total += v1[j] * abs(w[j]) + 0.5 * v2[j] * w[j] * w[j]
    return lam * total


@compiled
def _conditions(p, v1, v2, lam, w, g, size):  # type: ignore[no-untyped-def]
    """Largest violation of the optimality conditions."""
    largest = 0.0
    for j in range(p):
        value = g[j] + lam * v2[j] * w[j]
        if w[j] > 0.0:
            value = abs(value + lam * v1[j])
        elif w[j] < 0.0:
            value = abs(value - lam * v1[j])
        else:
            value = abs(value) - lam * v1[j]
        largest = max(largest, value / size[j])
    for j in range(p, len(g)):
        largest = max(largest, abs(g[j]) / size[j])
    return largest


@compiled
def _column_sizes(A, q):  # type: ignore[no-untyped-def]
    """Root mean square of each column, or 1 if it is 0."""
    n, width = A.shape
    size = np.zeros(width)
    for i in range(n):
        for k in range(width):
            size[k] += q[i] * A[i, k] * A[i, k]
    total = q.sum()
    for k in range(width):
        size[k] = np.sqrt(size[k] / total) * total if size[k] > 0.0 else 1.0
    return size
