"""The minimiser of a penalised quadratic, by coordinate descent and direct solves on the support.

    minimise over w in R^m   w'H w / 2 - b'w + sum_j [ l1_j |w_j| + l2_j w_j^2 / 2 ]

with H positive semidefinite. From a start w with q = H w

1. sweep by coordinate descent, which finds the coordinates that enter and leave the support F, and their signs s;
2. solve K w = b - l1 s on F directly, K = H_FF + diag(l2). If no sign flips and no other coordinate violates its
   condition, w is optimal to rounding error. If a sign flips, the step is clipped at 0, or cut short if clipping would
   not decrease the objective, and 2 follows again on the smaller support; if a coordinate wants to enter, 1 follows.

If K is singular, 2 is a proximal step. The compiled loops use the Cholesky factorisation below, since LAPACK raises on
singular matrices. Arrays may be longer than m; entries past the first m are not touched.
"""

import numpy as np

from formulations.jit import compiled

# A condition |b_j - q_j| <= l1_j counts as violated beyond this share of the largest |b|.
CONDITION_TOLERANCE = 1e-10
# Sweeps between two direct solves, and rounds of both before giving up.
SWEEPS = 2
MAX_ROUNDS = 2000
# Proximal steps on a singular support before others may enter.
PROXIMAL_STEPS = 3
# A pivot below this share of its diagonal entry makes a matrix count as singular.
PIVOT_TOLERANCE = 1e-11


@compiled
def solve_quadratic(H, m, b, l1, l2, w, q, L, F, x, before, q_before, tolerance):  # type: ignore[no-untyped-def]
    """Steps 1 and 2 from w and q = H w, in place, until w is optimal; returns the size of its support."""
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
        # first find the minimum on this support, which can only shrink; then see which coordinates want to enter
        proximal = proximal + 1 if singular and cut == 1.0 else 0
        sweep = cut == 1.0 and proximal % PROXIMAL_STEPS == 0
        if cut == 1.0:
            step_towards(H, m, F, support, x, 1.0, w, q)
            if violation_of(m, b, l1, l2, w, q) <= tolerance:
                # q is a sum of many updates: check again after recomputing it
                set_product(H, m, w, q)
                if violation_of(m, b, l1, l2, w, q) <= 10.0 * tolerance:
                    return support
            continue
        old = _objective(m, b, l1, l2, w, q)
        _copy(m, w, before)
        _copy(m, q, q_before)
        step_towards(H, m, F, support, x, 1.0, w, q)
        if _objective(m, b, l1, l2, w, q) > old:
            _copy(m, before, w)
            _copy(m, q_before, q)
            step_towards(H, m, F, support, x, cut, w, q)
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
    """Share of the step from w to x at which the first coordinate reaches 0; 1 if none does."""
    cut = 1.0
    for i in range(support):
        f = F[i]
        if x[i] * w[f] <= 0.0:
            cut = min(cut, w[f] / (w[f] - x[i]))
    return cut


@compiled
def step_towards(H, m, F, support, x, share, w, q):  # type: ignore[no-untyped-def]
    """Take a share of the step from w to x on the support; coordinates that reach or cross 0 are set to 0."""
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
def _copy(m, source, target):  # type: ignore[no-untyped-def]
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
def _direct_solution(H, b, l1, l2, w, q, L, F, support, x):  # type: ignore[no-untyped-def]
    """Step 2: x with K x = b - l1 s on the support, or the proximal step from w (and True) if K is singular."""
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
def cholesky(L, m):  # type: ignore[no-untyped-def]
    """Factor the lower triangle in place; False if a pivot vanishes."""
    for i in range(m):
        for j in range(i):
            total = L[i, j]
            for k in range(j):
                total -= L[i, k] * L[j, k]
            L[i, j] = total / L[j, j]
        diagonal = L[i, i]
        total = diagonal
        for k in range(i):
            total -= L[i, k] * L[i, k]
        if not total > PIVOT_TOLERANCE * diagonal:
            return False
        L[i, i] = np.sqrt(total)
    return True


@compiled
def cholesky_solve(L, m, x):  # type: ignore[no-untyped-def]
    """Solve L L'x = b in place, b in the first m entries of x."""
    for i in range(m):
        total = x[i]
        for k in range(i):
            total -= L[i, k] * x[k]
        x[i] = total / L[i, i]
    for i in range(m - 1, -1, -1):
        x[i] /= L[i, i]
        value = x[i]
        for k in range(i):
            x[k] -= L[i, k] * value


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


@compiled
def largest_entry(v):  # type: ignore[no-untyped-def]
    """Largest |v_j|."""
    largest = 0.0
    for j in range(len(v)):
        largest = max(largest, abs(v[j]))
    return largest
