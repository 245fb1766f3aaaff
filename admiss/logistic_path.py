"""Penalised logistic paths by proximal Newton steps on the quadratic engine.

    minimise over (w, f)   sum_i q_i log(1 + exp(-y_i z_i)) + sum_j lambda [ v1_j |w_j| + v2_j w_j^2 / 2 ]

with z = A w + E f, E the columns without penalty. At a point with gradient g and Hessian B = (A E)' D (A E),
D = diag(q_i s_i (1 - s_i)), the quadratic model, with f eliminated, is that of :mod:`admiss.elastic_net` with H the
Schur complement of B and b = H w - g_w + B_wf B_ff^-1 g_f. Its minimiser is the next point.

Along the path the model of the last point is the first model of the next lambda, which predicts as well as it corrects.
The Hessian is kept as long as steps with it converge fast; a step that does not decrease the objective is taken again
with a new Hessian, then halved.
"""

from typing import NamedTuple

import numpy as np

from admiss.compiled import compiled
from admiss.elastic_net import (
    CONDITION_TOLERANCE,
    SMALL,
    _largest,
    _path,
    _product,
    _scale_penalty,
    _solve,
)
from admiss.patterns import FloatArray

# The conditions hold to this share of the largest gradient of the null model.
GRADIENT_TOLERANCE = 1e-9
# A step must shrink the violation by this factor, or the Hessian is computed anew.
SLOW = 0.2
MAX_STEPS = 100


class LogisticPath(NamedTuple):
    """Solutions along a path.

    Attributes
    ----------
    w : array of shape (n_lambdas, p)
    free : array of shape (n_lambdas, f)
    violation : array of shape (n_lambdas,)
        Largest violation of the optimality conditions, as a share of the largest gradient of the null model.
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
    """The path of the module; y is -1 or 1.

    Examples
    --------
    >>> A, E, y = np.array([[-1.0], [1.0], [2.0], [0.5]]), np.ones((4, 1)), np.array([-1.0, 1.0, -1.0, 1.0])
    >>> path = logistic_path(A, E, y, np.full(4, 0.25), np.ones(1), np.zeros(1), np.array([1.0, 0.01]))
    >>> path.w.shape, bool(path.violation.max() < 1e-9)
    ((2, 1), True)
    """
    w, f = (np.zeros(A.shape[1]), np.zeros(E.shape[1])) if start is None else start
    columns = np.ascontiguousarray(np.hstack([A, E]))
    return LogisticPath(*_logistic_path(columns, A.shape[1], y, q, v1, v2, lambdas, w, f, tolerance))


@compiled
def _logistic_path(A, p, y, q, v1, v2, lambdas, w_start, f_start, tolerance):  # type: ignore[no-untyped-def]
    n, width = A.shape
    solutions, free = np.zeros((len(lambdas), p)), np.zeros((len(lambdas), width - p))
    violations = np.zeros(len(lambdas))
    B, H, K = np.zeros((width, width)), np.zeros((p, p)), np.zeros((width - p, p))
    w = np.concatenate((w_start, f_start))
    z, slope = np.dot(A, w), np.zeros(n)
    scale = _null_scale(A, p, y, q)
    risk = _derivatives(y, q, z, slope)
    g = np.dot(A.T, slope)
    _hessian(A, p, q, z, B, H, K)
    stale = False
    one, everyone, F = np.zeros(1), np.arange(p), np.zeros(p, dtype=np.int64)
    L, l1, l2, x = np.empty((p, p)), np.zeros(p), np.zeros(p), np.zeros(p)
    before, q_before = np.zeros(p), np.zeros(p)
    for step in range(len(lambdas)):
        lam = lambdas[step]
        one[0] = lam
        objective = risk + _penalty(p, v1, v2, lam, w)
        violation = _conditions(p, v1, v2, lam, w, g)
        for _ in range(MAX_STEPS):
            if violation <= tolerance * scale:
                break
            # the quadratic model, with the free columns eliminated
            target = w.copy()
            product = _product(H, target[:p])
            b = product - g[:p] + np.dot(K.T, g[p:])
            if p <= SMALL:
                _scale_penalty(p, everyone, v1, v2, lam, l1, l2)
                _solve(H, p, b, l1, l2, target, product, L, F, x, before, q_before, CONDITION_TOLERANCE * _largest(b))
            else:
                target[:p] = _path(H, b, v1, v2, one, w[:p].copy())[0][0]
            change = target[:p] - w[:p]
            target[p:] = w[p:] - np.dot(K, change)
            if width > p:
                target[p:] -= np.linalg.solve(B[p:, p:].copy(), g[p:])
            direction = target - w
            z_step = np.dot(A, direction)
            share, accepted = 1.0, False
            new_slope = np.zeros(n)
            while share > 1e-10:
                new_risk = _derivatives(y, q, z + share * z_step, new_slope)
                new_objective = new_risk + _penalty(p, v1, v2, lam, w + share * direction)
                if new_objective <= objective + 1e-15 * abs(objective):
                    accepted = True
                    break
                if stale:
                    break
                share *= 0.5
            if not accepted:
                if not stale:
                    break
                _hessian(A, p, q, z, B, H, K)
                stale = False
                continue
            w = w + share * direction
            if share == 1.0:
                w = target
            z = z + share * z_step
            slope, risk, objective = new_slope, new_risk, new_objective
            g = np.dot(A.T, slope)
            stale = True
            new_violation = _conditions(p, v1, v2, lam, w, g)
            if new_violation > max(SLOW * violation, tolerance * scale):
                _hessian(A, p, q, z, B, H, K)
                stale = False
            violation = new_violation
        solutions[step], free[step] = w[:p], w[p:]
        violations[step] = violation / scale
        z = np.dot(A, w)  # the sum of many steps, fresh
    return solutions, free, violations


@compiled
def _derivatives(y, q, z, slope):  # type: ignore[no-untyped-def]
    """The risk, and its derivative in each z_i."""
    risk = 0.0
    for i in range(len(y)):
        margin = y[i] * z[i]
        e = np.exp(-abs(margin))
        risk += q[i] * (np.log1p(e) + max(-margin, 0.0))
        slope[i] = -q[i] * y[i] * (e if margin > 0.0 else 1.0) / (1.0 + e)
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
        K[:, :] = np.linalg.solve(B[p:, p:].copy(), B[p:, :p].copy())
        H[:, :] -= np.dot(B[:p, p:].copy(), K)


@compiled
def _penalty(p, v1, v2, lam, w):  # type: ignore[no-untyped-def]
    total = 0.0
    for j in range(p):
        total += v1[j] * abs(w[j]) + 0.5 * v2[j] * w[j] * w[j]
    return lam * total


@compiled
def _conditions(p, v1, v2, lam, w, g):  # type: ignore[no-untyped-def]
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
        largest = max(largest, value)
    for j in range(p, len(g)):
        largest = max(largest, abs(g[j]))
    return largest


@compiled
def _null_scale(A, p, y, q):  # type: ignore[no-untyped-def]
    """The largest gradient at w = 0."""
    slope = np.zeros(len(y))
    _derivatives(y, q, np.zeros(len(y)), slope)
    return max(_largest(np.dot(A.T, slope)), 1e-300)
