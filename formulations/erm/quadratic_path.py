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
    solve_quadratic,
    step_towards,
    violation_of,
)
from formulations.erm.cholesky import cholesky_solve
from formulations.jit import compiled


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
    H, b, v1, v2, lambdas = map(np.ascontiguousarray, (H, b, v1, v2, lambdas))
    p, scale = len(b), float(np.abs(b).max(initial=0.0))
    solutions, violations = np.zeros((len(lambdas), p)), np.zeros(len(lambdas))
    whole, local = np.zeros((4, p)), np.zeros((8, p))
    whole[0], whole[1], whole[2], whole[3] = w0, w0, H @ w0, np.sqrt(np.diag(H))
    # the working set has m coordinates; memory beyond the first m entries is never touched
    matrices, indices, is_work = np.empty((2, p, p)), np.zeros((2, p), dtype=np.int64), np.zeros(p, dtype=bool)
    tolerance = CONDITION_TOLERANCE * scale
    penalised_path(H, b, v1, v2, lambdas, tolerance, whole, local, matrices, indices, is_work, solutions, violations)
    return Path(solutions, violations / (scale or 1.0))


@compiled
def penalised_path(H, b, v1, v2, lambdas, tolerance, whole, local, matrices, indices, is_work, solutions, violations):  # type: ignore[no-untyped-def]
    """Write the solutions along the path, and their violations.

    The rows of ``whole`` are w, the w that q was computed for, q, and sqrt(H_jj); the other arrays are memory.
    """
    # The loops are separate functions: numba counts references in the loops of a function that makes many calls.
    w_all, w_known, q_all, root = whole[0], whole[1], whole[2], whole[3]
    w, q, bW, x, l1, l2, before, q_before = (
        local[0], local[1], local[2], local[3], local[4], local[5], local[6], local[7],
    )  # fmt: skip
    HW, L, work, F = matrices[0], matrices[1], indices[0], indices[1]
    p, m, support, zero, sweep = len(b), np.int64(0), np.int64(0), np.int64(0), np.bool_(True)
    for step in range(len(lambdas)):
        lam = lambdas[step]
        if step > 0 and support > 0:
            _predict(HW, m, L, F, support, v1, v2, work, lam - lambdas[step - 1], w, q, x)
        known = zero
        while True:
            m = _join(H, b, v1, lam, w_all, q_all, work, is_work, m, HW, w, q, bW)
            scale_penalty(m, work, v1, v2, lam, l1, l2)
            support, known = solve_quadratic(
                HW, m, bW, l1, l2, w, q, L, F, x, before, q_before, tolerance, known, sweep
            )
            _scatter(m, work, w, w_all)
            if m == p or not _outside(H, root, b, v1, lam, w_all, w_known, q_all, is_work, work, HW, m, w, tolerance):
                break
        _scatter(m, work, w, solutions[step])
        violations[step] = violation_of(m, bW, l1, l2, w, q)


@compiled
def _join(H, b, v1, lam, w_all, q_all, work, is_work, m, HW, w, q, bW):  # type: ignore[no-untyped-def]
    """Add to the working set the coordinates that are active or violate their condition."""
    p = len(b)
    for j in range(p):
        if not is_work[j] and (w_all[j] != 0.0 or abs(b[j] - q_all[j]) > lam * v1[j]):
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
    """Whether a coordinate outside the working set violates its condition; if so, ``q_all`` is H w.

    ``q_all`` holds H w_known, and is computed anew if the bound does not settle all conditions.
    """
    total = 0.0  # (w - w_known)' H (w - w_known), w_known is 0 outside the working set
    for i in range(m):
        change = w[i] - w_known[work[i]]
        if change != 0.0:
            for k in range(m):
                total += change * HW[i, k] * (w[k] - w_known[work[k]])
    if not _is_over(b, q_all, root, np.sqrt(max(total, 0.0)), v1, lam, 0.0, is_work):
        return False
    for i in range(m):
        j = work[i]
        change = w[i] - w_known[j]
        if change != 0.0:
            for k in range(len(q_all)):
                q_all[k] += change * H[j, k]
            w_known[j] = w[i]
    return _is_over(b, q_all, root, 0.0, v1, lam, tolerance, is_work)


@compiled
def _is_over(b, q_all, root, drift, v1, lam, tolerance, is_work):  # type: ignore[no-untyped-def]
    """Whether a condition outside the working set may be violated, with q known up to the drift."""
    for j in range(len(b)):
        if not is_work[j] and abs(b[j] - q_all[j]) + root[j] * drift > lam * v1[j] + tolerance:
            return True
    return False
