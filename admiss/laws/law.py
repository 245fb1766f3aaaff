"""A Gaussian law of rows with missing values.

Features that are never missing in training, z, are given; the others, v, follow

    v | z ~ N(mu + B z, S),

the conditional form of a joint Gaussian. In a ``censored`` law a missing v_j is known to lie above the largest or below
the smallest observed value c_j, so v_m | v_o, z is a truncated Gaussian.
"""

from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg

from admiss.laws.completion import complete_rows
from admiss.patterns import PatternTable
from formulations.arrays import BoolArray, FloatArray


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
