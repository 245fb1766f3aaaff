"""Ridge paths on sufficient statistics: one decomposition for all lambdas.

    minimise over w   w'H w / 2 - b'w + lambda sum_j v_j w_j^2 / 2,      H positive semidefinite, v >= 0

Coefficients f without penalty (v_j = 0) are eliminated: w_f = H_ff^+ (b_f - H_fk w_k), which leaves the others with the
Schur complement of H and with b_k - H_kf H_ff^+ b_f. With w_k = u / sqrt(v_k) every penalty is lambda u_j^2 / 2, and u
solves (G + lambda) u = g, with G and g the quadratic in these units.

With G = V diag(s) V', V of shape (p, r) with orthonormal columns,

    u = V (s + lambda)^-1 V'g + (g - V V'g) / lambda.

If the rank r is small, as where columns outnumber rows, a Cholesky factorisation with pivots ends after r columns,
G = L L'. With L = Q R, V is Q times the eigenvectors of R R': all that is decomposed is of size r x r.

Residuals are those of the stated problem, and are solved for in the same way until they are rounding. Where the
conditions are not met, the solutions are those of :mod:`formulations.erm.quadratic_path`.
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dpstrf

from formulations.arrays import FloatArray, IntArray
from formulations.erm.active_set import CONDITION_TOLERANCE
from formulations.erm.quadratic_path import TINY, Path, quadratic_path

# A rank below this share of the columns is exploited.
LOW_RANK = 0.8
# Residuals, as a share of the largest |b|, that are rounding; and rounds of solving for larger ones.
ROUNDING, CORRECTIONS = 1e-14, 3


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
        scale = max(float(np.abs(self.b).max(initial=0.0)), TINY)
        W = self._solve(self.b[None], lambdas)
        residuals, violation = self._residuals(W, lambdas, scale)
        for _ in range(CORRECTIONS):
            if np.all(violation <= ROUNDING):
                break
            corrected = W + self._solve(residuals, lambdas)
            new_residuals, new_violation = self._residuals(corrected, lambdas, scale)
            better = new_violation < violation
            W[better], residuals[better] = corrected[better], new_residuals[better]
            gained = np.any(new_violation < 0.5 * violation)
            violation = np.where(better, new_violation, violation)
            if not gained:
                break
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
