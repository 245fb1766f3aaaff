"""A bound on a penalised least-squares problem from its cross products alone, that holds in exact arithmetic.

    P(w) = (1/S) sum_i s_i (y_i - a_i'w)^2 + sum_k l1_k |w_k| + l2_k w_k^2 / 2  =  v'M v / S + penalties,   v = (-w, 1)

with M the matrix of second moments of (a, y). M is known up to  |M_computed - M|_ij <= e D_i D_j  with sizes D: a sum
of n products has an error of at most gamma(n) times the sum of absolute values, and by Cauchy-Schwarz that is at most
gamma(n) D_i D_j with D_i^2 the sum of squares. A linear map T of the columns maps the sizes to |T| D.

*Objective.* At any w, |v'(M_computed - M) v| <= e (|v|'D)^2.

*Bound.* With g the gradient of the smooth part at w, and z any subgradient of the l1 part,

    P(w + x) >= P(w) + (g + z)'x + x'(2 M_aa / S + L2) x / 2         for every x.

Let t_k^2 = D_k^2 / S + l2_k. If the scaled matrix  T^-1 (2 M_aa / S + L2) T^-1,  T = diag(t), has no eigenvalue below
kappa > 0, then  min P >= P(w) - sum_k ((g_k + z_k) / t_k)^2 / (2 kappa).  A Cholesky factorisation of the scaled matrix
minus tau I that succeeds proves kappa >= tau - rounding (Rump, Verification of positive definiteness, BIT 46, 2006);
the errors of M take away at most 2 e p. Since the gradient of a solution is rounding, kappa need not be large.
"""

import numpy as np

from formulations.arrays import FloatArray
from formulations.erm.rounding import gamma


def gram_bound(
    M: FloatArray, D: FloatArray, e: float, S: float, l1: FloatArray, l2: FloatArray, w: FloatArray
) -> tuple[float, float]:
    """The objective of w, rounded up, and a lower bound on the minimum; the bound is 0 if nothing is proven.

    Parameters
    ----------
    M : array of shape (p + 1, p + 1)
        Second moments of the columns and of y.
    D : array of shape (p + 1,)
        Their sizes.
    e : float
        Accuracy of M.
    S : float
        Weight of the rows, accurate to e.
    l1, l2, w : arrays of shape (p,)
        Penalties and coefficients.

    Examples
    --------
    >>> M = np.array([[2.0, 1.0], [1.0, 3.0]])
    >>> up, low = gram_bound(M, np.sqrt(np.diag(M)), 1e-15, 2.0, np.zeros(1), np.zeros(1), np.array([0.5]))
    >>> round(up, 9), round(low, 9)
    (1.25, 1.25)
    """
    p, v = len(w), np.append(-w, 1.0)
    e = e + gamma(4 * p + 40)
    reach = float(np.abs(v) @ D)
    value, error = float(v @ (M @ v)) / S, 2.0 * e * reach**2 / S
    penalties = float(l1 @ np.abs(w) + l2 @ w**2 / 2.0)
    up = (max(value, 0.0) + error + penalties) * (1.0 + gamma(4 * p + 40) + 2.0 * e)
    low = (value - error + penalties) * (1.0 - gamma(4 * p + 40) - 2.0 * e)

    t = np.sqrt(D[:-1] ** 2 / S + l2)
    used = t > 0  # columns that are 0 on all rows, without ridge, do not change the risk
    t, index = t[used], np.flatnonzero(used)
    H = (2.0 / S) * M[np.ix_(index, index)] + np.diag(l2[index])
    kappa = _least_eigenvalue(H / t[:, None] / t) - 2.0 * e * p
    if kappa <= 0:
        return up, 0.0
    gradient = -(2.0 / S) * (M @ v)[:-1] + l2 * w
    with_l1 = np.where(w != 0, gradient + l1 * np.sign(w), np.sign(gradient) * np.maximum(np.abs(gradient) - l1, 0.0))
    rest = np.abs(with_l1[index]) / t + 4.0 * e * reach / np.sqrt(S)
    return up, max(0.0, low - float(rest @ rest) * (1.0 + gamma(2 * p + 20)) / (2.0 * kappa))


def _least_eigenvalue(B: FloatArray) -> float:
    """A proven lower bound on the eigenvalues of a symmetric matrix, or 0 if none is positive."""
    if len(B) == 0:
        return 1.0
    tau = 0.5 * float(np.linalg.eigvalsh(B)[0])
    rounding = 4.0 * gamma(len(B) + 10) * float(np.trace(B)) + gamma(10) * len(B)
    if tau <= rounding:
        return 0.0
    try:
        np.linalg.cholesky(B - tau * np.eye(len(B)))
    except np.linalg.LinAlgError:
        return 0.0
    return tau - rounding
