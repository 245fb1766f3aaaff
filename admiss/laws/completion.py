"""Moments of missing entries under a Gaussian law: exact, or truncated to half-lines by expectation propagation.

For a row with observed entries o and missing entries m of N(mean, S), with the Cholesky factor L L' = S_oo,

    u = L^-1 (v_o - mean_o),   W = L^-1 S_om:      E[v_m | v_o] = mean_m + W'u,     Cov[v_m | v_o] = S_mm - W'W,

and -2 log density of v_o = u'u + log det S_oo + |o| log 2 pi. A pivot of L vanishes if the previous entries determine
the entry; it is skipped, which amounts to a generalised inverse.

If missing entries are known to lie beyond limits, v_j > c_j or v_j < c_j, the law of v_m | v_o is a truncated Gaussian,
whose mean and covariance have no closed form. Expectation propagation (Minka 2001; for these regions Cunningham, Hennig
and Lacoste-Julien 2011) replaces each half-line by a Gaussian factor exp(nu_j v_j - tau_j v_j^2 / 2) that gives v_j the
same first two moments, all other factors fixed. For one missing entry it is exact.
"""

import math

import numpy as np

from formulations.jit import compiled

# Pivots below this share of their diagonal entry are skipped.
PIVOT_TOLERANCE = 1e-11
LOG_2_PI = math.log(2.0 * math.pi)
# Largest number of sweeps over the factors, and the change of the means, in standard deviations, that ends them.
SWEEPS = 12
SETTLED = 1e-3


@compiled
def complete_rows(  # type: ignore[no-untyped-def]
    V, mean, weights, codes, patterns, S, side, limit, completed, covariance
):
    """Fill in expectations, sum weighted covariances, and return the log-likelihood of the observed entries.

    Rows are sorted by pattern; ``patterns[codes[i]]`` is the pattern of row i, ``mean[i]`` its mean. ``side`` is 1 for
    missing entries above their limit, -1 below, 0 without limit. The log-likelihood is that of the Gaussian law without
    limits. Results are written to ``completed`` and ``covariance``.
    """
    n, v = V.shape
    L, W, C, E = np.empty((v, v)), np.empty((v, v)), np.empty((v, v)), np.empty((v, v))
    o, m = np.empty(v, np.int64), np.empty(v, np.int64)
    u, expected = np.empty(v), np.empty(v)
    own_side, own_limit = np.empty(v), np.empty(v)
    covariance[:] = 0.0
    log_likelihood, log_det = 0.0, 0.0
    n_o, n_m, last, truncated = 0, 0, -1, False
    for i in range(n):
        if codes[i] != last:
            last = codes[i]
            n_o, n_m = 0, 0
            for j in range(v):
                if patterns[last, j]:
                    m[n_m] = j
                    n_m += 1
                else:
                    o[n_o] = j
                    n_o += 1
            log_det = _condition(S, o, n_o, m, n_m, L, W, C)
            truncated = False
            for a in range(n_m):
                own_side[a], own_limit[a] = side[m[a]], limit[m[a]]
                truncated |= own_side[a] != 0.0
        for a in range(n_o):
            total = V[i, o[a]] - mean[i, o[a]]
            for k in range(a):
                total -= L[a, k] * u[k]
            u[a] = total / L[a, a] if L[a, a] > 0.0 else 0.0
            completed[i, o[a]] = V[i, o[a]]
        square = 0.0
        for a in range(n_o):
            square += u[a] * u[a]
        log_likelihood -= 0.5 * weights[i] * (square + log_det + n_o * LOG_2_PI)
        for b in range(n_m):
            total = mean[i, m[b]]
            for a in range(n_o):
                total += W[a, b] * u[a]
            expected[b] = total
        if truncated:
            _truncate(expected, C, n_m, own_side, own_limit, E)
        for b in range(n_m):
            completed[i, m[b]] = expected[b]
            for c in range(n_m):
                covariance[m[b], m[c]] += weights[i] * (E[b, c] if truncated else C[b, c])
    return log_likelihood


@compiled
def _condition(S, o, n_o, m, n_m, L, W, C):  # type: ignore[no-untyped-def]
    """Write L, W and C = S_mm - W'W of a pattern; return log det S_oo."""
    log_det = 0.0
    for a in range(n_o):
        for b in range(a):
            total = S[o[a], o[b]]
            for k in range(b):
                total -= L[a, k] * L[b, k]
            L[a, b] = total / L[b, b] if L[b, b] > 0.0 else 0.0
        pivot = S[o[a], o[a]]
        for k in range(a):
            pivot -= L[a, k] * L[a, k]
        L[a, a] = math.sqrt(pivot) if pivot > PIVOT_TOLERANCE * S[o[a], o[a]] else 0.0
        if L[a, a] > 0.0:
            log_det += 2.0 * math.log(L[a, a])
    for a in range(n_o):
        for b in range(n_m):
            total = S[o[a], m[b]]
            for k in range(a):
                total -= L[a, k] * W[k, b]
            W[a, b] = total / L[a, a] if L[a, a] > 0.0 else 0.0
    for b in range(n_m):
        for c in range(b + 1):
            total = S[m[b], m[c]]
            for a in range(n_o):
                total -= W[a, b] * W[a, c]
            C[b, c], C[c, b] = total, total
    return log_det


@compiled
def _truncate(mean, C, r, side, limit, E):  # type: ignore[no-untyped-def]
    """Mean (in place) and covariance E of N(mean, C) with entries truncated beyond their limits."""
    tau, nu = np.zeros(r), np.zeros(r)
    column = np.empty(r)
    for a in range(r):
        for b in range(r):
            E[a, b] = C[a, b]
    for _ in range(SWEEPS):
        change = 0.0
        for j in range(r):
            variance = E[j, j]
            if side[j] == 0.0 or not variance > PIVOT_TOLERANCE * C[j, j] or not variance > 0.0:
                continue
            rest = 1.0 / variance - tau[j]  # precision of the other factors
            if not rest > 0.0:
                continue
            centre, deviation = (mean[j] / variance - nu[j]) / rest, 1.0 / math.sqrt(rest)
            shift, variance_share = _half_line(side[j] * (limit[j] - centre) / deviation)
            new_mean = centre + side[j] * deviation * shift
            new_tau = max(0.0, rest / variance_share - rest)
            new_nu = new_mean * (rest + new_tau) - centre * rest
            d_tau, d_nu = new_tau - tau[j], new_nu - nu[j]
            tau[j], nu[j] = new_tau, new_nu
            gain = 1.0 / (1.0 + d_tau * variance)
            step = gain * (d_nu - d_tau * mean[j])
            for a in range(r):
                column[a] = E[a, j]
            for a in range(r):
                mean[a] += step * column[a]
                for b in range(r):
                    E[a, b] -= gain * d_tau * column[a] * column[b]
            change = max(change, abs(step) * math.sqrt(variance))
        if change < SETTLED:
            break


@compiled
def _half_line(z):  # type: ignore[no-untyped-def]
    """Mean and variance of a standard Gaussian above z."""
    if z < -38.0:
        return 0.0, 1.0
    if z > 30.0:  # the tail of erfc underflows further out
        return z + 1.0 / z - 2.0 / z**3, 1.0 / z**2
    hazard = math.exp(-0.5 * z * z) / (math.sqrt(0.5 * math.pi) * math.erfc(z / math.sqrt(2.0)))
    return hazard, min(1.0, max(1.0 - hazard * (hazard - z), 1e-10))
