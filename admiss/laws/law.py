"""A Gaussian law of rows with missing values.

Features that are never missing in training, z, are given; the others, v, follow

    v | z ~ N(mu + B z, S),

the conditional form of a joint Gaussian. In a ``censored`` law a missing v_j is known to lie above the largest or below
the smallest observed value c_j, so v_m | v_o, z is a truncated Gaussian.

**Moments of missing entries.** For a row with observed entries o and missing entries m of N(mean, S), with the Cholesky
factor L L' = S_oo,

    u = L^-1 (v_o - mean_o),   W = L^-1 S_om:      E[v_m | v_o] = mean_m + W'u,     Cov[v_m | v_o] = S_mm - W'W,

and -2 log density of v_o = u'u + log det S_oo + |o| log 2 pi. A pivot of L vanishes if the previous entries determine
the entry; it is skipped, which amounts to a generalised inverse.

If missing entries are known to lie beyond limits, v_j > c_j or v_j < c_j, the law of v_m | v_o is a truncated Gaussian,
whose mean and covariance have no closed form. Expectation propagation (Minka 2001; for these regions Cunningham, Hennig
and Lacoste-Julien 2011) replaces each half-line by a Gaussian factor exp(nu_j v_j - tau_j v_j^2 / 2) that gives v_j the
same first two moments, all other factors fixed. For one missing entry it is exact.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg

from admiss.patterns import PatternTable
from formulations.arrays import BoolArray, FloatArray
from formulations.jit import compiled
from formulations.rounding import PIVOT_TOLERANCE


@dataclass(frozen=True, eq=False)
class Law:
    """A fitted law of features standardised to observed mean 0 and deviation 1.

    Attributes
    ----------
    location, scale : arrays of shape (d,)
        Observed means and standard deviations of the features, in the user's units.
    missable : bool array of shape (d,)
        Which features have missing values (v).
    mu : array of shape (v,)
    B : array of shape (v, z)
    S : array of shape (v, v)
    second_moment : array of shape (z, z)
        Of z.
    side : array of shape (v,)
        1 if missing values lie above the limit, -1 if below, 0 if the law has no limit.
    limit : array of shape (v,)
    history : array
        Penalised log-likelihood after each step of EM; empty for a censored law, which has no closed form of it.
    """

    location: FloatArray
    scale: FloatArray
    missable: BoolArray
    mu: FloatArray
    B: FloatArray
    S: FloatArray
    second_moment: FloatArray
    side: FloatArray
    limit: FloatArray
    history: FloatArray

    def parameters(self) -> FloatArray:
        """mu, B and S as one vector."""
        return np.concatenate([self.mu, self.B.ravel(), self.S.ravel()])

    def with_parameters(self, theta: FloatArray) -> "Law":
        """A copy with other mu, B and S."""
        v, size = len(self.mu), self.B.size
        S = theta[v + size :].reshape(v, v)
        return replace(self, mu=theta[:v], B=theta[v : v + size].reshape(self.B.shape), S=(S + S.T) / 2)

    @property
    def mean(self) -> FloatArray:
        """Mean of the features, in the user's units."""
        centre = np.zeros(len(self.missable))
        centre[self.missable] = self.mu
        return self.location + self.scale * centre

    @property
    def covariance(self) -> FloatArray:
        """Covariance of the features, in the user's units."""
        return self.standard_covariance * np.outer(self.scale, self.scale)

    @property
    def standard_covariance(self) -> FloatArray:
        """Covariance of the standardised features."""
        z, v = np.flatnonzero(~self.missable), np.flatnonzero(self.missable)
        Sigma = np.empty((len(self.missable), len(self.missable)))
        cross = self.B @ self.second_moment
        Sigma[np.ix_(z, z)], Sigma[np.ix_(v, z)], Sigma[np.ix_(z, v)] = self.second_moment, cross, cross.T
        Sigma[np.ix_(v, v)] = self.S + cross @ self.B.T
        return Sigma

    def standardise(self, X: FloatArray) -> FloatArray:
        """Standardised features, NaN where missing."""
        return (X - self.location) / self.scale

    def expect(self, X: FloatArray) -> FloatArray:
        """E[x | x_obs] in the user's units; the mean for a missing feature that was complete in training."""
        return np.where(np.isnan(X), self.location + self.scale * self.expect_standard(X), X)

    def expect_standard(self, X: FloatArray) -> FloatArray:
        """E[x | x_obs] of the standardised features."""
        completed = self.standardise(X)
        z = np.nan_to_num(completed[:, ~self.missable])
        V = completed[:, self.missable]
        completed[:, ~self.missable] = z
        completed[:, self.missable] = expectations(
            V, self.mu + z @ self.B.T, np.ones(len(X)), PatternTable.of(np.isnan(V)), self
        )[0]
        return completed

    def deviations_of(self, directions: FloatArray, M: BoolArray) -> FloatArray:
        """Standard deviations of a'x | x_obs for the columns a of ``directions``, for each row of the patterns M.

        x is standardised, and the law is the Gaussian one.
        """
        a = directions[self.missable]
        table = PatternTable.of(M[:, self.missable])
        variances = np.zeros((len(table.patterns), a.shape[1]))
        for k, m in enumerate(table.patterns):
            S_om = self.S[np.ix_(~m, m)]
            C = self.S[np.ix_(m, m)] - S_om.T @ scipy.linalg.pinvh(self.S[np.ix_(~m, ~m)]) @ S_om
            variances[k] = np.einsum("jr,jr->r", a[m], C @ a[m])
        return np.sqrt(np.maximum(variances, 0.0))[table.codes]


def expectations(
    V: FloatArray, mean: FloatArray, weights: FloatArray, table: PatternTable, law: Law
) -> tuple[FloatArray, FloatArray, float]:
    """Completed rows, the weighted sum of conditional covariances, and the log-likelihood of the observed values."""
    order = np.argsort(table.codes, kind="stable")
    completed, covariance = np.empty(V.shape), np.empty(law.S.shape)
    # Loops are compiled once more for arrays that are read-only or in another order.
    S, side, limit = np.array(law.S, order="C"), np.array(law.side, dtype=float), np.array(law.limit, dtype=float)
    log_likelihood = complete_rows(
        np.ascontiguousarray(V[order]), np.ascontiguousarray(mean[order]), weights[order], table.codes[order],
        table.patterns, S, side, limit, completed, covariance,
    )  # fmt: skip
    result = np.empty(V.shape)
    result[order] = completed
    return result, covariance, float(log_likelihood)


LOG_2_PI = math.log(2.0 * math.pi)


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
    for _ in range(12):  # sweeps over the factors, until the means change by less than 1e-3 standard deviations
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
        if change < 1e-3:
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
