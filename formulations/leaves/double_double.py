"""Arithmetic on unevaluated sums of two doubles, and the enclosure of a leaf's cost under squared loss with it.

A number is a pair (high, low), |low| <= ulp(high) / 2. Sums and products of pairs have a relative error of a few
2^-106; 2^-101 covers every operation used here. The algorithms are those of Dekker (1971) and Knuth. They rely on the
order of operations, so that these loops are compiled without reassociation.

*Gram matrix.* x - c is a pair without error for doubles x and c. The matrix G = sum_i s_i z_i z_i' of the rows
z_i = (1, x_i - c, y_i - l) is therefore known to

    |G_computed - G|_ij  <=  e sqrt(G_ii G_jj),      e = 2^-101 (number of rows + number of patterns + 16)

and its factorisation is exact for a matrix that is off by as much with e = 2^-101 (4 m + 16), m the order of G.

*Cost.* The cost of a leaf is the minimum of v'(G + R) v over v with last entry 1, R the diagonal of ridges. For any E
with |E_ij| <= e sqrt(D_ii D_jj),  |v'E v| <= e m sum_i D_ii v_i^2. The last pivot of (G + R)
with its diagonal lowered by that share is therefore below the cost, and the value at any v, raised by the same share of
the diagonal, is above it.
"""

from functools import partial

import numpy as np

from formulations.jit import compiled

exactly = partial(compiled, fastmath=False)

# Relative error that covers any operation on pairs.
UNIT = 2.0**-101
# Pivots below this may have lost digits by underflow: they count as 0.
TINY = 2.0**-900
# Steps that refine a minimiser.
STEPS = 4
# Splits a double into two halves of 26 bits.
SPLITTER = 2.0**27 + 1.0


@exactly
def two_sum(a, b):  # type: ignore[no-untyped-def]
    """a + b as a pair, without error."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


@exactly
def two_product(a, b):  # type: ignore[no-untyped-def]
    """a b as a pair, without error."""
    p = a * b
    t = SPLITTER * a
    a1 = t - (t - a)
    a2 = a - a1
    t = SPLITTER * b
    b1 = t - (t - b)
    b2 = b - b1
    return p, ((a1 * b1 - p) + a1 * b2 + a2 * b1) + a2 * b2


@exactly
def add(ah, al, bh, bl):  # type: ignore[no-untyped-def]
    """Sum of two pairs."""
    s, e = two_sum(ah, bh)
    t, f = two_sum(al, bl)
    s, e = two_sum(s, e + t)
    return two_sum(s, e + f)


@exactly
def multiply(ah, al, bh, bl):  # type: ignore[no-untyped-def]
    """Product of two pairs."""
    p, e = two_product(ah, bh)
    return two_sum(p, e + (ah * bl + al * bh))


@exactly
def divide(ah, al, bh, bl):  # type: ignore[no-untyped-def]
    """Quotient of two pairs, by three steps of long division."""
    q, q_low = ah / bh, 0.0
    for _ in range(2):
        h, l = multiply(bh, bl, q, q_low)
        rh, _rl = add(ah, al, -h, -l)
        q, q_low = add(q, q_low, rh / bh, 0.0)
    return q, q_low


@exactly
def add_precise_gram(total, A, y, s, centre, level, unit, first, last):  # type: ignore[no-untyped-def]
    """Add the packed matrix G of rows, columns divided by ``unit``; ``total`` has the rows high and low."""
    size = A.shape[1] + 2
    zh, zl = np.empty(size), np.empty(size)
    for row in range(first, last):
        zh[0], zl[0] = 1.0 / unit[0], 0.0
        for j in range(size - 2):
            zh[j + 1], zl[j + 1] = two_sum(A[row, j] / unit[j + 1], -centre[j] / unit[j + 1])
        zh[size - 1], zl[size - 1] = two_sum(y[row] / unit[size - 1], -level / unit[size - 1])
        entry = 0
        for i in range(size):
            wh, wl = multiply(zh[i], zl[i], s[row], 0.0)
            for j in range(i + 1):
                if zh[j] != 0.0:
                    h, l = multiply(wh, wl, zh[j], zl[j])
                    total[0, entry], total[1, entry] = add(total[0, entry], total[1, entry], h, l)
                entry += 1


@exactly
def precise_grams(A, y, s, centre, level, unit, start):  # type: ignore[no-untyped-def]
    """Packed matrix of every pattern, high and low parts."""
    size = A.shape[1] + 2
    grams = np.zeros((len(start) - 1, 2, size * (size + 1) // 2))
    for p in range(len(grams)):
        add_precise_gram(grams[p], A, y, s, centre, level, unit, start[p], start[p + 1])
    return grams


@exactly
def sum_of_patterns(grams, members):  # type: ignore[no-untyped-def]
    """Sum of the matrices of some patterns."""
    total = np.zeros(grams.shape[1:])
    for p in members:
        for t in range(grams.shape[2]):
            total[0, t], total[1, t] = add(total[0, t], total[1, t], grams[p, 0, t], grams[p, 1, t])
    return total


@exactly
def lowest_pivot(G, ridge, share, used):  # type: ignore[no-untyped-def]
    """Last pivot of G + ridge with its diagonal lowered by a share, over the columns ``used``.

    Also returned are the first column without a clearly positive pivot, -1 if there is none, and, rounded, the factor
    (unit lower triangular, filled up to that column) and its pivots.
    """
    size = len(ridge)
    kept_high, kept_low = two_sum(1.0, -share)
    # U = D L' by rows of the lower triangle, and L
    UH, UL = np.zeros((size, size)), np.zeros((size, size))
    LH, LL = np.zeros((size, size)), np.zeros((size, size))
    for i in range(size):
        if not used[i]:
            continue
        for j in range(i + 1):
            if not used[j]:
                continue
            h, l = G[0, i * (i + 1) // 2 + j], G[1, i * (i + 1) // 2 + j]
            if i == j:
                h, l = add(h, l, ridge[i], 0.0)
                h, l = multiply(h, l, kept_high, kept_low)
            for c in range(j):
                if used[c]:
                    ph, pl = multiply(LH[i, c], LL[i, c], UH[j, c], UL[j, c])
                    h, l = add(h, l, -ph, -pl)
            UH[i, j], UL[i, j] = h, l
            if j < i:
                LH[i, j], LL[i, j] = divide(h, l, UH[j, j], UL[j, j])
        if i < size - 1 and not UH[i, i] > TINY:
            return 0.0, i, LH, np.diag(UH)
    last = UH[size - 1, size - 1]
    return last if last > TINY else 0.0, -1, LH, np.diag(UH)


@exactly
def triangular_factor(G, error, origin, mean, factor, lost):  # type: ignore[no-untyped-def]
    """Mean minus origin, and rows of R with R'R = G minus the part of the means, for G of the rows (1, z).

    A column whose pivot is at most its ``error`` depends on the others up to rounding. It comes after all of them, so
    that R has its part along each of these, and no row of its own: the root of what is left is written to ``lost``. Its
    sign does not matter: next to a nearly dependent column the rounding of a pivot is far above ``error``. Returns the
    number of rows.
    """
    size = len(error)
    UH, UL = np.zeros((size, size)), np.zeros((size, size))
    LH, LL = np.zeros((size, size)), np.zeros((size, size))
    kept = np.zeros(size, dtype=np.bool_)
    order = np.zeros(size, dtype=np.int64)
    n_kept = 0
    for i in range(size):
        _eliminate(G, UH, UL, LH, LL, i, order[:n_kept])
        if i > 0:
            h, l = add(LH[i, 0], LL[i, 0], -origin[i - 1], 0.0)
            mean[i - 1] = h
        kept[i] = UH[i, i] > max(error[i], TINY)
        if kept[i]:
            order[n_kept] = i
            n_kept += 1
    for i in range(1, size):
        if not kept[i]:
            _eliminate(G, UH, UL, LH, LL, i, order[:n_kept])
            lost[i - 1] = np.sqrt(abs(UH[i, i]) + error[i])
            for k in range(1, i):
                if not kept[k]:  # what is left of their product is not in R either
                    h, l = G[0, i * (i + 1) // 2 + k], G[1, i * (i + 1) // 2 + k]
                    for c in order[:n_kept]:
                        ph, pl = multiply(LH[i, c], LL[i, c], UH[k, c], UL[k, c])
                        h, l = add(h, l, -ph, -pl)
                    lost[i - 1] += np.sqrt(abs(h))
                    lost[k - 1] += np.sqrt(abs(h))
    n_rows = 0
    for c in order[1:n_kept]:
        factor[n_rows, c - 1] = np.sqrt(UH[c, c])
        for i in range(1, size):
            if i > c or not kept[i]:
                factor[n_rows, i - 1] = np.sqrt(UH[c, c]) * LH[i, c]
        n_rows += 1
    return n_rows


@exactly
def _eliminate(G, UH, UL, LH, LL, i, order):  # type: ignore[no-untyped-def]
    """Row i of L and U against the columns in ``order``, and its pivot."""
    for n in range(len(order) + 1):
        j = i if n == len(order) else order[n]
        place = max(i, j) * (max(i, j) + 1) // 2 + min(i, j)
        h, l = G[0, place], G[1, place]
        for c in order[:n]:
            ph, pl = multiply(LH[i, c], LL[i, c], UH[j, c], UL[j, c])
            h, l = add(h, l, -ph, -pl)
        UH[i, j], UL[i, j] = h, l
        if j != i:
            LH[i, j], LL[i, j] = divide(h, l, UH[j, j], UL[j, j])


@exactly
def refined_minimiser(G, ridge, v, L, pivots, used):  # type: ignore[no-untyped-def]
    """Minimise v'(G + ridge) v over all but the last entry of v, in place, by steps with a factor of the matrix."""
    size = len(v)
    low, slope = np.zeros(size), np.zeros(size)
    for _ in range(STEPS):
        for i in range(size - 1):
            h, l = 0.0, 0.0
            for j in range(size):
                if used[i] and used[j]:
                    entry = i * (i + 1) // 2 + j if j <= i else j * (j + 1) // 2 + i
                    gh, gl = G[0, entry], G[1, entry]
                    if i == j:
                        gh, gl = add(gh, gl, ridge[i], 0.0)
                    gh, gl = multiply(gh, gl, v[j], low[j])
                    h, l = add(h, l, gh, gl)
            slope[i] = -h
            for j in range(i):
                slope[i] -= L[i, j] * slope[j]
        for i in range(size - 2, -1, -1):
            if used[i]:
                slope[i] /= pivots[i]
                for j in range(i + 1, size - 1):
                    slope[i] -= L[j, i] * slope[j]
                v[i], low[i] = add(v[i], low[i], slope[i], 0.0)


@exactly
def quadratic_value(G, ridge, v):  # type: ignore[no-untyped-def]
    """v'(G + ridge) v minimised over the first entry of v, and the sum of (G + ridge)_ii v_i^2."""
    size = len(v)
    gh, gl = 0.0, 0.0  # entry 0 of G v without v_0
    for i in range(1, size):
        row = i * (i + 1) // 2
        h, l = multiply(G[0, row], G[1, row], v[i], 0.0)
        gh, gl = add(gh, gl, h, l)
    v0h, v0l = divide(-gh, -gl, G[0, 0], G[1, 0])
    # the minimum over v_0 is the value of the rest plus v_0 times entry 0
    th, tl = multiply(v0h, v0l, gh, gl)
    weight = G[0, 0] * v0h * v0h
    for i in range(1, size):
        row = i * (i + 1) // 2
        for j in range(1, i + 1):
            ph, pl = multiply(v[i], 0.0, v[j], 0.0)
            h, l = multiply(G[0, row + j], G[1, row + j], ph, pl)
            factor = 1.0 if i == j else 2.0
            th, tl = add(th, tl, factor * h, factor * l)
        h, l = two_product(v[i], v[i])
        h, l = multiply(h, l, ridge[i], 0.0)
        th, tl = add(th, tl, h, l)
        weight += (G[0, row + i] + ridge[i]) * v[i] * v[i]
    return th, weight
