"""The minimiser of a penalised quadratic, by coordinate descent and direct solves on the support.

    minimise over w in R^m   w'H w / 2 - b'w + sum_j [ l1_j |w_j| + l2_j w_j^2 / 2 ]

with H positive semidefinite. From a start w with q = H w

1. sweep by coordinate descent, which finds the coordinates that enter and leave the support F, and their signs s;
2. solve K w = b - l1 s on F directly, K = H_FF + diag(l2). If no sign flips and no other coordinate violates its
   condition, w is optimal to rounding error. If a sign flips, the step is clipped at 0, or cut short if clipping would
   not decrease the objective, and 2 follows again on the smaller support; if a coordinate wants to enter, 1 follows.

If K is singular, 2 is a proximal step. Rows of the Cholesky factor of K stay valid up to the first change of the
support. Arrays may be longer than m; entries past the first m are not touched.
"""

import numpy as np

from formulations.erm.cholesky import cholesky, cholesky_solve
from formulations.jit import compiled
from formulations.rounding import UNIT

# A condition |b_j - q_j| <= l1_j counts as violated beyond this share of the largest |b|. What is left is
# 1e-15 of it, or 1e-11 if columns are duplicates and K is singular.
CONDITION_TOLERANCE = 1e-10
# Rounds of sweeps and direct solves before giving up; the violation that is left is reported with the solution.
MAX_ROUNDS = 2000
# A coordinate that falls to this share of its size is set to 0: what is left of it is rounding.
NEGLIGIBLE = 64.0 * UNIT


@compiled
def solve_quadratic(H, m, b, l1, l2, w, q, L, F, x, before, q_before, tolerance, known, sweep):  # type: ignore[no-untyped-def]
    """Steps 1 (if ``sweep``) and 2 from w and q = H w, in place, until w is optimal.

    The first ``known`` rows of L are those of the factor on the first entries of F, for the same H and l2. Returns the
    size of the support, and of the factor that is now in L.
    """
    support, limit = 0, tolerance
    for _ in range(MAX_ROUNDS):
        if sweep:
            _sweep(H, m, b, l1, l2, w, q)
        support, known = _support(m, w, F, known)
        if support == 0 and sweep:
            return 0, 0
        singular, cut = _direct_solution(H, b, l1, l2, w, q, L, F, support, known, x)
        known = np.int64(0) if singular else support
        # first find the minimum on this support, which can only shrink; then see which coordinates want to enter
        sweep = cut == 1.0
        if cut == 1.0:
            _move(F, support, x, w)
            set_product(H, m, w, q)
            if violation_of(m, b, l1, l2, w, q) <= limit:
                return support, known
            limit = 10.0 * tolerance  # rounding errors may keep it above
            continue
        old = _objective(m, b, l1, l2, w, q)
        copy(m, w, before)
        copy(m, q, q_before)
        step_towards(H, m, F, support, x, 1.0, w, q)
        if _objective(m, b, l1, l2, w, q) > old:
            copy(m, before, w)
            copy(m, q_before, q)
            step_towards(H, m, F, support, x, cut, w, q)
    return support, known


@compiled
def _support(m, w, F, known):  # type: ignore[no-untyped-def]
    """Write the support to F; its size, and how many of its first ``known`` entries are at the start as before."""
    support = 0
    for j in range(m):
        if w[j] != 0.0:
            if support < known and F[support] != j:
                known = support
            F[support] = j
            support += 1
    return support, min(known, support)


@compiled
def _move(F, support, x, w):  # type: ignore[no-untyped-def]
    """Set w to x on the support, where no sign changes."""
    for i in range(support):
        f = F[i]
        w[f] = x[i] if x[i] * w[f] > NEGLIGIBLE * w[f] * w[f] else 0.0


@compiled
def step_towards(H, m, F, support, x, share, w, q):  # type: ignore[no-untyped-def]
    """Take a share of the step from w to x on the support; coordinates that reach or cross 0 are set to 0."""
    for i in range(support):
        f = F[i]
        new = w[f] + share * (x[i] - w[f]) if share < 1.0 else x[i]
        if not new * w[f] > NEGLIGIBLE * w[f] * w[f]:
            new = 0.0
        change = new - w[f]
        w[f] = new
        for k in range(m):
            q[k] += change * H[f, k]


@compiled
def copy(m, source, target):  # type: ignore[no-untyped-def]
    """Copy m entries; a loop, since numba's assignment of slices is slow."""
    for k in range(m):
        target[k] = source[k]


@compiled
def _sweep(H, m, b, l1, l2, w, q):  # type: ignore[no-untyped-def]
    """One round of coordinate descent, with q = H w updated."""
    for j in range(m):
        old = w[j]
        z = b[j] - q[j] + H[j, j] * old
        curvature = H[j, j] + l2[j]
        new = 0.0
        if abs(z) > l1[j]:
            # without curvature, a slope is a rounding error
            new = (z - l1[j] if z > 0.0 else z + l1[j]) / curvature if curvature > 0.0 else old
        change = new - old
        if change != 0.0:
            w[j] = new
            for k in range(m):
                q[k] += change * H[j, k]


@compiled
def _direct_solution(H, b, l1, l2, w, q, L, F, support, known, x):  # type: ignore[no-untyped-def]
    """Step 2: x with K x = b - l1 s on the support, or the proximal step from w if K is singular.

    Returns whether it is, and the share of the step from w to x at which the first coordinate reaches 0, 1 if none.
    """
    damping, factored = 0.0, False
    for _ in range(30):
        for i in range(known, support):
            f = F[i]
            for k in range(i + 1):
                L[i, k] = H[f, F[k]]
            L[i, i] += l2[f] + damping
        factored = cholesky(L, support, known)
        if factored:
            break
        largest = 0.0
        for i in range(support):
            largest = max(largest, H[F[i], F[i]] + l2[F[i]])
        damping, known = max(1e-9 * largest, 10.0 * damping), np.int64(0)
    for i in range(support):
        f = F[i]
        x[i] = b[f] - (l1[f] if w[f] > 0.0 else -l1[f])
        if damping > 0.0:
            x[i] -= q[f] + l2[f] * w[f]
    if factored:
        cholesky_solve(L, support, x)
    if damping > 0.0:
        for i in range(support):
            x[i] = w[F[i]] + (x[i] if factored else 0.0)
    cut = 1.0
    for i in range(support):
        f = F[i]
        if x[i] * w[f] <= 0.0:
            cut = min(cut, w[f] / (w[f] - x[i]))
    return damping > 0.0, cut


@compiled
def violation_of(m, b, l1, l2, w, q):  # type: ignore[no-untyped-def]
    """Largest violation of the optimality conditions."""
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


@compiled
def set_product(H, m, w, q):  # type: ignore[no-untyped-def]
    """Set q = H w."""
    for k in range(m):
        q[k] = 0.0
    for j in range(m):
        if w[j] != 0.0:
            for k in range(m):
                q[k] += w[j] * H[j, k]
