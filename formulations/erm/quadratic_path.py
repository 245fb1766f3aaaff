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

*Ridge paths* (v1 = 0, v = v2) take one decomposition for all lambdas. Coefficients f without penalty (v_j = 0) are
eliminated: w_f = H_ff^+ (b_f - H_fk w_k), which leaves the others with the Schur complement of H and with
b_k - H_kf H_ff^+ b_f. With w_k = u / sqrt(v_k) every penalty is lambda u_j^2 / 2, and u solves (G + lambda) u = g, with
G and g the quadratic in these units.

With G = V diag(s) V', V of shape (p, r) with orthonormal columns,

    u = V (s + lambda)^-1 V'g + (g - V V'g) / lambda.

If the rank r is small, as where columns outnumber rows, a Cholesky factorisation with pivots ends after r columns,
G = L L'. With L = Q R, V is Q times the eigenvectors of R R': all that is decomposed is of size r x r.

Residuals are those of the stated problem, and are solved for in the same way until they are rounding. Where the
conditions are not met, the solutions are those of the other path.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dpstrf

from formulations.arrays import FloatArray, IntArray
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
from formulations.rounding import UNIT

# A rank below this share of the columns is exploited: measured on 400 and 800 columns, where the time is equal between
# .6 and .7.
LOW_RANK = 0.65
# Residuals, as a share of the largest |b|, that are rounding.
ROUNDING = 128.0 * UNIT


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
        violations[step] = violation_of(m, bW, l1, l2, w, q) / (scale if scale > 0.0 else 1.0)
    return solutions, violations


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
    drift = _drift(HW, m, work, w, w_known)
    if not _is_over(b, q_all, root, drift, v1, lam, 0.0, is_work):
        return False
    _refresh(H, m, work, w, w_known, q_all)
    return _is_over(b, q_all, root, 0.0, v1, lam, tolerance, is_work)


@compiled
def _is_over(b, q_all, root, drift, v1, lam, tolerance, is_work):  # type: ignore[no-untyped-def]
    """Whether a condition outside the working set may be violated, with q known up to the drift."""
    for j in range(len(b)):
        if not is_work[j] and abs(b[j] - q_all[j]) + root[j] * drift > lam * v1[j] + tolerance:
            return True
    return False


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


@dataclass(frozen=True)
class RidgeProblem:
    """The ridge problem of the module, decomposed.

    Attributes
    ----------
    H, b, v : arrays of shape (p, p), (p,) and (p,)
    k, f : int arrays
        Coefficients with and without penalty.
    unit : array of shape (len(k),)
        1 / sqrt(v_k).
    inverse, response : arrays of shape (len(f), len(f)) and (len(f), len(k))
        H_ff^+ and H_ff^+ H_fk.
    s, V : arrays of shape (r,) and (len(k), r)
        Eigenvalues and eigenvectors of G.
    """

    H: FloatArray
    b: FloatArray
    v: FloatArray
    k: IntArray
    f: IntArray
    unit: FloatArray
    inverse: FloatArray
    response: FloatArray
    s: FloatArray
    V: FloatArray

    @classmethod
    def of(cls, H: FloatArray, b: FloatArray, v: FloatArray) -> "RidgeProblem":
        """Eliminate and decompose."""
        k, f = np.flatnonzero(v > 0), np.flatnonzero(v <= 0)
        unit = 1.0 / np.sqrt(v[k])
        inverse = np.asarray(np.linalg.pinv(H[np.ix_(f, f)], hermitian=True))
        response = inverse @ H[np.ix_(f, k)]
        G = H[np.ix_(k, k)] - H[np.ix_(k, f)] @ response if len(f) else H[np.ix_(k, k)]
        G *= unit[:, None]
        G *= unit
        return cls(H, b, v, k, f, unit, inverse, response, *_decompose(G))

    def path(self, lambdas: FloatArray) -> Path:
        """Solutions for each lambda, with their violations as in :func:`quadratic_path`."""
        scale = float(np.abs(self.b).max(initial=0.0)) or 1.0
        W = self._solve(self.b[None], lambdas)
        residuals, violation = self._residuals(W, lambdas, scale)
        gained = True
        while gained and np.any(violation > ROUNDING):
            corrected = W + self._solve(residuals, lambdas)
            new_residuals, new_violation = self._residuals(corrected, lambdas, scale)
            better = new_violation < violation
            W[better], residuals[better] = corrected[better], new_residuals[better]
            gained = bool(np.any(new_violation < 0.5 * violation))
            violation = np.where(better, new_violation, violation)
        left = np.flatnonzero(~(violation <= 10.0 * CONDITION_TOLERANCE))
        if len(left):
            by_supports = quadratic_path(self.H, self.b, np.zeros(len(self.b)), self.v, lambdas[left])
            better = ~(violation[left] <= by_supports.violation)
            W[left[better]], violation[left[better]] = by_supports.w[better], by_supports.violation[better]
        return Path(W, violation)

    def _solve(self, B: FloatArray, lambdas: FloatArray) -> FloatArray:
        """Solutions with b a row of B, one row for each lambda or one for all."""
        g = (B[:, self.k] - B[:, self.f] @ self.response) * self.unit
        c = g @ self.V
        u = (c / (self.s + lambdas[:, None])) @ self.V.T
        if len(self.s) < len(self.k):
            u += (g - c @ self.V.T) / lambdas[:, None]
        W = np.empty((len(lambdas), len(self.b)))
        W[:, self.k] = u * self.unit
        W[:, self.f] = B[:, self.f] @ self.inverse - W[:, self.k] @ self.response.T
        return W

    def _residuals(self, W: FloatArray, lambdas: FloatArray, scale: float) -> tuple[FloatArray, FloatArray]:
        """b - H w - lambda v w for each lambda, and its largest entry as a share of ``scale``."""
        residuals = self.b - W @ self.H - lambdas[:, None] * (self.v * W)
        return residuals, np.abs(residuals).max(axis=1, initial=0.0) / scale


def ridge_path(H: FloatArray, b: FloatArray, v: FloatArray, lambdas: FloatArray) -> Path:
    """Solve the path of the module.

    Examples
    --------
    >>> H, b = np.array([[2.0, 0.0], [0.0, 2.0]]), np.array([4.0, -1.0])
    >>> ridge_path(H, b, np.array([1.0, 0.0]), np.array([2.0, 0.5])).w
    array([[ 1. , -0.5],
           [ 1.6, -0.5]])
    """
    return RidgeProblem.of(H, b, v).path(lambdas)


def _decompose(G: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Eigenvalues and eigenvectors."""
    if len(G):
        factor, order, rank, _ = dpstrf(G, lower=1)
        if rank < LOW_RANK * len(G):
            L = np.empty((len(G), rank))
            L[order - 1] = np.tril(factor[:, :rank])
            Q, R = np.linalg.qr(L)
            s, V = np.linalg.eigh(R @ R.T)
            return np.maximum(s, 0.0), Q @ V
    s, V = np.linalg.eigh(G)
    return np.maximum(s, 0.0), V
