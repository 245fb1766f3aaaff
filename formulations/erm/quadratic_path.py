"""Penalised paths on sufficient statistics, to rounding error.

For a penalty that decreases along a path, lambda_1 > lambda_2 > .., solve

    minimise over w   w'H w / 2 - b'w + sum_j lambda [ v1_j |w_j| + v2_j w_j^2 / 2 ]

with H positive semidefinite (for the squared loss H = 2 A'QA and b = 2 A'Qy, the free columns eliminated; for others a
quadratic model). Each step along the path

1. predicts: on the support F with signs s the path solves  K dw/dlambda = -(v1 s + v2 w),  K = H_FF + lambda diag(v2);
2. solves the problem on the working set, the coordinates that may be active (:mod:`formulations.erm.active_set`);
3. checks the conditions of the others, and repeats 2 with those that are violated added to the working set.

Most conditions are checked without computing q_j: with q = H w known at w0, |q_j - q0_j| is at most
sqrt(H_jj (w - w0)'H (w - w0)).
"""

from typing import NamedTuple

import numpy as np

from formulations.arrays import FloatArray
from formulations.erm.active_set import (
    CONDITION_TOLERANCE,
    largest_entry,
    set_product,
    solve_quadratic,
    step_towards,
    violation_of,
)
from formulations.erm.cholesky import cholesky_solve
from formulations.jit import compiled

# Problems up to this size work on all coordinates; above, on those that may be active.
SMALL = 160
# Guards against division by zero if b is 0.
TINY = 1e-300
# Share of the conditions not settled by their bound above which all of q is recomputed.
REFRESH_SHARE = 0.06


class Path(NamedTuple):
    """Solutions along a path.

    Attributes
    ----------
    w : array of shape (n_lambdas, p)
    violation : array of shape (n_lambdas,)
        Largest violation of the optimality conditions, as a share of the largest |b|.
    """

    w: FloatArray
    violation: FloatArray


def quadratic_path(
    H: FloatArray, b: FloatArray, v1: FloatArray, v2: FloatArray, lambdas: FloatArray, start: FloatArray | None = None
) -> Path:
    """Solve the path of the module.

    Examples
    --------
    >>> H, b = np.array([[2.0, 0.0], [0.0, 2.0]]), np.array([4.0, -1.0])
    >>> path = quadratic_path(H, b, np.ones(2), np.zeros(2), np.array([2.0, 0.5]))
    >>> np.allclose(path.w, [[1.0, 0.0], [1.75, -0.25]])
    True
    """
    w0 = np.zeros(len(b)) if start is None else start
    # One layout: the loops are compiled once more for any other.
    return Path(*penalised_path(*map(np.ascontiguousarray, (H, b, v1, v2, lambdas, w0))))


@compiled
def penalised_path(H, b, v1, v2, lambdas, start):  # type: ignore[no-untyped-def]
    """Solutions and violations along the path."""
    # The loops are separate functions: numba counts references in the loops of a function that makes many calls.
    p = len(b)
    solutions, violations = np.zeros((len(lambdas), p)), np.zeros(len(lambdas))
    scale = largest_entry(b)
    tolerance = CONDITION_TOLERANCE * scale
    root = np.sqrt(np.diag(H).copy())  # contiguous
    w_all, w_known, q_all = start.copy(), start.copy(), np.zeros(p)
    set_product(H, p, start, q_all)
    # the working set has m coordinates; memory beyond the first m entries is never touched
    work, is_work = np.zeros(p, dtype=np.int64), np.zeros(p, dtype=np.bool_)
    HW, L, F = np.empty((p, p)), np.empty((p, p)), np.zeros(p, dtype=np.int64)
    w, q, bW, x, l1, l2 = np.zeros(p), np.zeros(p), np.zeros(p), np.zeros(p), np.zeros(p), np.zeros(p)
    before, q_before = np.zeros(p), np.zeros(p)
    m, support = 0, 0
    for step in range(len(lambdas)):
        lam = lambdas[step]
        if step > 0 and support > 0:
            _predict(HW, m, L, F, support, v1, v2, work, lam - lambdas[step - 1], w, q, x)
        known = 0
        while True:
            m = _join(H, b, v1, lam, w_all, q_all, work, is_work, m, HW, w, q, bW)
            scale_penalty(m, work, v1, v2, lam, l1, l2)
            support, known = solve_quadratic(HW, m, bW, l1, l2, w, q, L, F, x, before, q_before, tolerance, known, True)
            _scatter(m, work, w, w_all)
            if m == p or not _outside(H, root, b, v1, lam, w_all, w_known, q_all, is_work, work, HW, m, w, tolerance):
                break
        _scatter(m, work, w, solutions[step])
        violations[step] = violation_of(m, bW, l1, l2, w, q) / max(scale, TINY)
    return solutions, violations


@compiled
def _join(H, b, v1, lam, w_all, q_all, work, is_work, m, HW, w, q, bW):  # type: ignore[no-untyped-def]
    """Add to the working set the coordinates that are active or violate their condition; all in a small problem."""
    p = len(b)
    for j in range(p):
        if not is_work[j] and (p <= SMALL or w_all[j] != 0.0 or abs(b[j] - q_all[j]) > lam * v1[j]):
            work[m], is_work[j] = j, True
            w[m], bW[m] = w_all[j], b[j]
            product = 0.0
            for i in range(m + 1):
                entry = H[j, work[i]]
                HW[m, i], HW[i, m] = entry, entry
                product += entry * w[i]
                if i < m:
                    q[i] += entry * w[m]
            q[m] = product
            m += 1
    return m


@compiled
def scale_penalty(m, work, v1, v2, lam, l1, l2):  # type: ignore[no-untyped-def]
    """Penalties l1 = lambda v1 and l2 = lambda v2 of the working set."""
    for i in range(m):
        l1[i] = lam * v1[work[i]]
        l2[i] = lam * v2[work[i]]


@compiled
def _scatter(m, work, values, target):  # type: ignore[no-untyped-def]
    for i in range(m):
        target[work[i]] = values[i]


@compiled
def _predict(HW, m, L, F, support, v1, v2, work, change, w, q, x):  # type: ignore[no-untyped-def]
    """Step 1: w at the next lambda to first order; coordinates that would change sign are set to 0."""
    for i in range(support):
        j = work[F[i]]
        x[i] = -(v1[j] if w[F[i]] > 0 else -v1[j]) - v2[j] * w[F[i]]
    cholesky_solve(L, support, x)
    for i in range(support):
        x[i] = w[F[i]] + change * x[i]
    step_towards(HW, m, F, support, x, 1.0, w, q)


@compiled
def _outside(H, root, b, v1, lam, w_all, w_known, q_all, is_work, work, HW, m, w, tolerance):  # type: ignore[no-untyped-def]
    """Whether a coordinate outside the working set violates its condition; if so, its ``q_all`` is exact.

    ``q_all`` holds H w_known. If the bound does not settle a condition, q_j is computed.
    """
    p = len(b)
    drift = _drift(HW, m, work, w, w_known)
    unsettled = 0
    for j in range(p):
        if not is_work[j] and abs(b[j] - q_all[j]) + root[j] * drift > lam * v1[j]:
            unsettled += 1
    if unsettled == 0:
        return False
    if unsettled > REFRESH_SHARE * p:
        _refresh(H, m, work, w, w_known, q_all)
        drift = 0.0
    found = False
    for j in range(p):
        if not is_work[j] and abs(b[j] - q_all[j]) + root[j] * drift > lam * v1[j]:
            product = q_all[j]
            if drift > 0.0:
                product = 0.0
                for i in range(m):
                    product += H[j, work[i]] * w[i]
            if abs(b[j] - product) > lam * v1[j] + tolerance:
                q_all[j] = product
                found = True
    return found


@compiled
def _drift(HW, m, work, w, w_known):  # type: ignore[no-untyped-def]
    """sqrt((w - w_known)' H (w - w_known)); w_known is 0 outside the working set."""
    total = 0.0
    for i in range(m):
        change = w[i] - w_known[work[i]]
        if change != 0.0:
            for k in range(m):
                total += change * HW[i, k] * (w[k] - w_known[work[k]])
    return np.sqrt(max(total, 0.0))


@compiled
def _refresh(H, m, work, w, w_known, q_all):  # type: ignore[no-untyped-def]
    """Bring ``q_all`` and ``w_known`` up to w."""
    for i in range(m):
        j = work[i]
        change = w[i] - w_known[j]
        if change != 0.0:
            for k in range(len(q_all)):
                q_all[k] += change * H[j, k]
            w_known[j] = w[i]
