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
        Sigma[np.ix_(z, z)] = self.second_moment
        Sigma[np.ix_(v, z)] = cross
        Sigma[np.ix_(z, v)] = cross.T
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
    S = np.array(law.S, order="C")
    side = np.array(law.side, dtype=float)
    limit = np.array(law.limit, dtype=float)
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
    A, E = np.empty((v, v)), np.empty((v, v))
    order, rest = np.empty(v, np.int64), np.empty(v)
    expected, own_side, own_limit = np.empty(v), np.empty(v), np.empty(v)
    covariance[:] = 0.0
    log_likelihood, log_det = 0.0, 0.0
    n_o, n_m, last, truncated = 0, 0, -1, False
    for i in range(n):
        if codes[i] != last:
            last = codes[i]
            n_o = 0
            for j in range(v):
                if not patterns[last, j]:
                    order[n_o] = j
                    n_o += 1
            n_m = 0
            truncated = False
            for j in range(v):
                if patterns[last, j]:
                    order[n_o + n_m] = j
                    own_side[n_m], own_limit[n_m] = side[j], limit[j]
                    truncated |= side[j] != 0.0
                    n_m += 1
            log_det = _eliminate(S, order, n_o, A)
        for a in range(v):
            j = order[a]
            rest[a] = V[i, j] - mean[i, j] if a < n_o else -mean[i, j]
        square = 0.0
        for a in range(n_o):
            u = rest[a] / A[a, a] if A[a, a] > 0.0 else 0.0
            square += u * u
            row = A[a]
            for b in range(a + 1, v):
                rest[b] -= u * row[b]
            completed[i, order[a]] = V[i, order[a]]
        log_likelihood -= 0.5 * weights[i] * (square + log_det + n_o * LOG_2_PI)
        for b in range(n_m):
            expected[b] = -rest[n_o + b]
        if truncated:
            _truncate(expected, A[n_o:, n_o:], n_m, own_side, own_limit, E)
        for b in range(n_m):
            completed[i, order[n_o + b]] = expected[b]
            for c in range(n_m):
                share = E[b, c] if truncated else A[n_o + b, n_o + c]
                covariance[order[n_o + b], order[n_o + c]] += weights[i] * share
    return log_likelihood


@compiled
def _eliminate(S, order, n_o, A):  # type: ignore[no-untyped-def]
    """Write the rows (L', W) and below them C = S_mm - W'W for the entries ``order``; return log det S_oo."""
    v = len(order)
    for a in range(v):
        for b in range(a, v):
            A[a, b] = S[order[a], order[b]]
    log_det = 0.0
    for a in range(v):
        row = A[a, a:]
        for k in range(min(a, n_o)):
            factor = A[k, a]
            above = A[k, a:]
            for b in range(v - a):
                row[b] -= factor * above[b]
        if a < n_o:
            pivot = A[a, a]
            root = math.sqrt(pivot) if pivot > PIVOT_TOLERANCE * S[order[a], order[a]] else 0.0
            if root > 0.0:
                log_det += 2.0 * math.log(root)
            for b in range(v - a):
                row[b] = row[b] / root if root > 0.0 else 0.0
    for a in range(n_o, v):
        for b in range(n_o, a):
            A[a, b] = A[b, a]
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
