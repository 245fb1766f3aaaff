"""Penalised paths on sufficient statistics, to rounding error.

For a penalty that decreases along a path, lambda_1 > lambda_2 > .., solve

    minimise over w   w'H w / 2 - b'w + sum_j lambda [ v1_j |w_j| + v2_j w_j^2 / 2 ]

with H positive semidefinite (for the squared loss H = 2 A'QA and b = 2 A'Qy, the free columns eliminated; for others a
quadratic model). Each step along the path

1. predicts: on the support F with signs s the path solves  K dw/dlambda = -(v1 s + v2 w),  K = H_FF + lambda diag(v2);
2. sweeps by coordinate descent, which finds who enters and who leaves;
3. solves K w = b - lambda v1 s directly. If no sign flips and no other coordinate violates its condition, w is
   optimal to rounding error. If a sign flips, the step is clipped at 0, or cut where that would not decrease the
   objective, and 3 follows again on the smaller support; if a coordinate wants to enter, 2 follows.

Coordinates that cannot be active are left out of the work: with q = H w known at w0, |q_j - q0_j| is at most
sqrt(H_jj (w - w0)'H (w - w0)), so that most conditions are checked without computing q_j.
"""

from typing import NamedTuple

import numpy as np

from formulations.arrays import FloatArray
from formulations.erm.cholesky import cholesky, cholesky_solve
from formulations.jit import compiled

# A condition |b_j - q_j| <= l1_j counts as violated beyond this share of the largest |b|.
CONDITION_TOLERANCE = 1e-10
# Sweeps between two direct solves, and rounds of both before a point of the path is given up.
SWEEPS = 2
MAX_ROUNDS = 2000
# Proximal steps on a singular support before others may enter.
PROXIMAL_STEPS = 3
# Problems up to this size work on all coordinates; above, on those that may be active.
SMALL = 160
# Guards a division where b is 0.
TINY = 1e-300
# Share of the conditions not settled by their bound from which all of q is computed anew.
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
    """The path of the module.

    Examples
    --------
    >>> H, b = np.array([[2.0, 0.0], [0.0, 2.0]]), np.array([4.0, -1.0])
    >>> path = quadratic_path(H, b, np.ones(2), np.zeros(2), np.array([2.0, 0.5]))
    >>> np.allclose(path.w, [[1.0, 0.0], [1.75, -0.25]])
    True
    """
    w0 = np.zeros(len(b)) if start is None else start
    return Path(*_path(np.ascontiguousarray(H), b, v1, v2, lambdas, w0))


@compiled
def _path(H, b, v1, v2, lambdas, start):  # type: ignore[no-untyped-def]
    # The loops are in functions of their own: numba counts references in the loops of a function that calls many.
    p = len(b)
    solutions, violations = np.zeros((len(lambdas), p)), np.zeros(len(lambdas))
    scale = _largest(b)
    tolerance = CONDITION_TOLERANCE * scale
    root = np.sqrt(np.diag(H).copy())  # its entries lie far apart in H
    w_all, w_known, q_all = start.copy(), start.copy(), _product(H, start)
    # the work: the coordinates that may be active, m of them; memory beyond is never touched
    work, is_work = np.zeros(p, dtype=np.int64), np.zeros(p, dtype=np.bool_)
    HW, L, F = np.empty((p, p)), np.empty((p, p)), np.zeros(p, dtype=np.int64)
    w, q, bW, x, l1, l2 = np.zeros(p), np.zeros(p), np.zeros(p), np.zeros(p), np.zeros(p), np.zeros(p)
    before, q_before = np.zeros(p), np.zeros(p)
    m, support = 0, 0
    for step in range(len(lambdas)):
        lam = lambdas[step]
        if step > 0 and support > 0:
            _predict(HW, m, L, F, support, v1, v2, work, lam - lambdas[step - 1], w, q, x)
        while True:
            m = _join(H, b, v1, lam, w_all, q_all, work, is_work, m, HW, w, q, bW)
            _scale_penalty(m, work, v1, v2, lam, l1, l2)
            support = _solve(HW, m, bW, l1, l2, w, q, L, F, x, before, q_before, tolerance)
            _scatter(m, work, w, w_all)
            if m == p or not _outside(H, root, b, v1, lam, w_all, w_known, q_all, is_work, work, HW, m, w, tolerance):
                break
        _scatter(m, work, w, solutions[step])
        violations[step] = _violation(m, bW, l1, l2, w, q) / max(scale, TINY)
    return solutions, violations


@compiled
def _join(H, b, v1, lam, w_all, q_all, work, is_work, m, HW, w, q, bW):  # type: ignore[no-untyped-def]
    """Take into the work who is active or violates its condition; everyone in a small problem."""
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
def _scale_penalty(m, work, v1, v2, lam, l1, l2):  # type: ignore[no-untyped-def]
    for i in range(m):
        l1[i] = lam * v1[work[i]]
        l2[i] = lam * v2[work[i]]


@compiled
def _scatter(m, work, values, target):  # type: ignore[no-untyped-def]
    for i in range(m):
        target[work[i]] = values[i]


@compiled
def _largest(v):  # type: ignore[no-untyped-def]
    largest = 0.0
    for j in range(len(v)):
        largest = max(largest, abs(v[j]))
    return largest


@compiled
def _predict(HW, m, L, F, support, v1, v2, work, change, w, q, x):  # type: ignore[no-untyped-def]
    """Step 1: w at the next lambda to first order; a coordinate that would change its sign is set to 0."""
    for i in range(support):
        j = work[F[i]]
        x[i] = -(v1[j] if w[F[i]] > 0 else -v1[j]) - v2[j] * w[F[i]]
    cholesky_solve(L, support, x)
    for i in range(support):
        x[i] = w[F[i]] + change * x[i]
    _step(HW, m, F, support, x, 1.0, w, q)


@compiled
def _solve(H, m, b, l1, l2, w, q, L, F, x, before, q_before, tolerance):  # type: ignore[no-untyped-def]
    """Steps 2 and 3 until w is optimal on the first m coordinates; returns the size of its support."""
    support, sweep, proximal = 0, True, 0
    for _ in range(MAX_ROUNDS):
        if sweep:
            for _ in range(SWEEPS):
                _sweep(H, m, b, l1, l2, w, q)
        support = _support(m, w, F)
        if support == 0 and sweep:
            return 0
        singular = _direct_solution(H, b, l1, l2, w, q, L, F, support, x)
        cut = _first_flip(w, F, support, x)
        # first to the minimum on this support, whose coordinates only leave; then see who wants to enter
        proximal = proximal + 1 if singular and cut == 1.0 else 0
        sweep = cut == 1.0 and proximal % PROXIMAL_STEPS == 0
        if cut == 1.0:
            _step(H, m, F, support, x, 1.0, w, q)
            if _violation(m, b, l1, l2, w, q) <= tolerance:
                # q is a sum of many updates: fresh, it must say the same
                _fresh_product(H, m, F, support, w, q)
                if _violation(m, b, l1, l2, w, q) <= 10.0 * tolerance:
                    return support
            continue
        old = _objective(m, b, l1, l2, w, q)
        _copy(m, w, before)
        _copy(m, q, q_before)
        _step(H, m, F, support, x, 1.0, w, q)
        if _objective(m, b, l1, l2, w, q) > old:
            _copy(m, before, w)
            _copy(m, q_before, q)
            _step(H, m, F, support, x, cut, w, q)
    return support


@compiled
def _support(m, w, F):  # type: ignore[no-untyped-def]
    support = 0
    for j in range(m):
        if w[j] != 0.0:
            F[support] = j
            support += 1
    return support


@compiled
def _first_flip(w, F, support, x):  # type: ignore[no-untyped-def]
    """The share of the step from w to x at which the first coordinate reaches 0; 1 where none does."""
    cut = 1.0
    for i in range(support):
        f = F[i]
        if x[i] * w[f] <= 0.0:
            cut = min(cut, w[f] / (w[f] - x[i]))
    return cut


@compiled
def _step(H, m, F, support, x, share, w, q):  # type: ignore[no-untyped-def]
    """A share of the step from w to x; a coordinate that reaches 0 or beyond stays there."""
    for i in range(support):
        f = F[i]
        new = w[f] + share * (x[i] - w[f]) if share < 1.0 else x[i]
        if not new * w[f] > 1e-14 * w[f] * w[f]:
            new = 0.0
        change = new - w[f]
        w[f] = new
        for k in range(m):
            q[k] += change * H[f, k]


@compiled
def _fresh_product(H, m, F, support, w, q):  # type: ignore[no-untyped-def]
    for k in range(m):
        q[k] = 0.0
    for i in range(support):
        value = w[F[i]]
        for k in range(m):
            q[k] += value * H[F[i], k]


@compiled
def _copy(m, source, target):  # type: ignore[no-untyped-def]
    for k in range(m):
        target[k] = source[k]


@compiled
def _sweep(H, m, b, l1, l2, w, q):  # type: ignore[no-untyped-def]
    """One round of coordinate descent; q = H w is kept."""
    for j in range(m):
        old = w[j]
        z = b[j] - q[j] + H[j, j] * old
        curvature = H[j, j] + l2[j]
        new = 0.0
        if abs(z) > l1[j]:
            # without curvature a slope comes from rounding
            new = (z - l1[j] if z > 0.0 else z + l1[j]) / curvature if curvature > 0.0 else old
        change = new - old
        if change != 0.0:
            w[j] = new
            for k in range(m):
                q[k] += change * H[j, k]


@compiled
def _direct_solution(H, b, l1, l2, w, q, L, F, support, x):  # type: ignore[no-untyped-def]
    """Step 3: x with K x = b - l1 s on the support; where K is singular, the proximal step from w (and True)."""
    damping, factored = 0.0, False
    for _ in range(30):
        for i in range(support):
            f = F[i]
            for k in range(i + 1):
                L[i, k] = H[f, F[k]]
            L[i, i] += l2[f] + damping
            x[i] = b[f] - (l1[f] if w[f] > 0.0 else -l1[f])
            if damping > 0.0:
                x[i] -= q[f] + l2[f] * w[f]
        factored = cholesky(L, support)
        if factored:
            break
        largest = 0.0
        for i in range(support):
            largest = max(largest, H[F[i], F[i]] + l2[F[i]])
        damping = max(1e-9 * largest, 10.0 * damping)
    if factored:
        cholesky_solve(L, support, x)
    if damping > 0.0:
        for i in range(support):
            x[i] = w[F[i]] + (x[i] if factored else 0.0)
    return damping > 0.0


@compiled
def _outside(H, root, b, v1, lam, w_all, w_known, q_all, is_work, work, HW, m, w, tolerance):  # type: ignore[no-untyped-def]
    """Whether a coordinate outside of the work violates its condition; then its q is exact in ``q_all``.

    ``q_all`` holds H w_known. Where the bound does not settle a condition, q_j is computed.
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
    """sqrt((w - w_known)' H (w - w_known)); w_known is 0 outside of the work."""
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


@compiled
def _product(H, w):  # type: ignore[no-untyped-def]
    q = np.zeros(len(w))
    for j in range(len(w)):
        if w[j] != 0.0:
            for k in range(len(w)):
                q[k] += w[j] * H[j, k]
    return q


@compiled
def _violation(m, b, l1, l2, w, q):  # type: ignore[no-untyped-def]
    """Largest violation of the optimality conditions on the first m coordinates."""
    largest = 0.0
    for j in range(m):
        g = q[j] - b[j] + l2[j] * w[j]
        if w[j] > 0.0:
            value = abs(g + l1[j])
        elif w[j] < 0.0:
            value = abs(g - l1[j])
        else:
            value = abs(g) - l1[j]
        largest = max(largest, value)
    return largest


@compiled
def _objective(m, b, l1, l2, w, q):  # type: ignore[no-untyped-def]
    total = 0.0
    for j in range(m):
        total += w[j] * (0.5 * q[j] - b[j] + 0.5 * l2[j] * w[j]) + l1[j] * abs(w[j])
    return total
