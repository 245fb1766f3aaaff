"""The duality gap of a penalised least-squares problem from its second moments, which are known up to rounding.

    P(w) = (1/S) sum_i s_i (y_i - a_i'w)^2 + sum_k l1_k |w_k| + l2_k w_k^2 / 2

The dual of :mod:`formulations.erm.dual_bound` is taken at theta_i = - 2 c s_i r_i / S, with r = y - A w the residual of
any w and 0 <= c <= 1. Then all it consists of are second moments of (a, y): with M their matrix, v = (-w, 1),

    g = M v = (sum_i s_i a_i r_i, sum_i s_i y_i r_i),     v'M v = sum_i s_i r_i^2 = |r|^2,

    D = [ c (2 - c) |r|^2 + 2 c sum_k w_k g_k ] / S - sum_k (2 c |g_k| / S - l1_k)_+^2 / (2 l2_k)     <=  min P,

where l2_k = 0 requires 2 c |g_k| / S <= l1_k, which sets c.

*Columns F without penalty* require g_F = 0. Let b be the least-squares coefficients of r on them, in exact arithmetic:
w_F + b meets the condition. It changes g_k by at most D_k delta, and takes away delta^2 from |r|^2, with D_k the size
of column k and  delta^2 = g_F' M_FF^-1 g_F.  Nothing is proven if M_FF is not positive definite up to its errors.

*Rounding.* M is known up to  |M_computed - M|_ij <= e D_i D_j:  a sum of n products has an error of at most gamma(n)
times the sum of absolute values, and by Cauchy-Schwarz that is at most gamma(n) D_i D_j with D_i^2 the sum of squares;
a linear map T of the columns maps the sizes to |T| D. So g_k is known up to e D_k tau and |r|^2 up to e tau^2, with
tau = |v|'D, and the quantities of D are lowered by that much. Only the coefficients of the fit enter: columns may
depend on each other if they have a penalty.
"""

import numpy as np

from formulations.arrays import FloatArray
from formulations.rounding import gamma


def moment_bound(
    M: FloatArray, D: FloatArray, e: float, S: float, l1: FloatArray, l2: FloatArray, w: FloatArray
) -> tuple[float, float]:
    """P(w), rounded up, and a lower bound on the minimum of P, which is 0 if nothing is proven.

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
    >>> up, low = moment_bound(M, np.sqrt(np.diag(M)), 1e-15, 2.0, np.zeros(1), np.zeros(1), np.array([0.5]))
    >>> round(up, 9), round(low, 9)
    (1.25, 1.25)
    """
    p, v = len(w), np.append(-w, 1.0)
    rounding = gamma(4 * p + 40)
    e = e + rounding
    tau = float(np.abs(v) @ D)
    g, error = (M @ v)[:-1], e * tau * D[:-1]
    squares = float(v @ (M @ v))
    penalties = float(l1 @ np.abs(w) + l2 @ w**2 / 2.0)
    objective = ((max(squares, 0.0) + e * tau**2) / S + penalties) * (1.0 + rounding + 2.0 * e)

    free = (l1 == 0) & (l2 == 0) & (D[:-1] > 0)  # columns that are 0 on all rows do not change the risk
    delta = _distance(M[:-1, :-1][np.ix_(free, free)], D[:-1][free], e, g[free], error[free])
    if np.isinf(delta):
        return objective, 0.0
    error = error + D[:-1] * delta
    largest = np.where(free, 0.0, np.abs(g) + error) * (2.0 / S)
    hard = (l2 == 0) & (largest > l1)
    c = float(np.min(l1[hard] / largest[hard], initial=1.0)) * (1.0 - rounding)
    soft = l2 > 0
    excess = np.maximum(c * largest - l1, 0.0)[soft]
    residual = max(0.0, squares - e * tau**2 - delta**2)
    products = np.where(free, 0.0, w * g - np.abs(w) * error)
    value = (c * (2.0 - c) * residual + 2.0 * c * float(products.sum())) / S - float(excess**2 @ (0.5 / l2[soft]))
    size = (residual + float(np.abs(products).sum())) / S
    return objective, max(0.0, value - (rounding + 2.0 * e) * size)


def _distance(M: FloatArray, D: FloatArray, e: float, g: FloatArray, error: FloatArray) -> float:
    """An upper bound on delta, for g up to ``error``; infinite if M may be singular.

    In units of D, M minus f e times the unit matrix is below the true one. With N this matrix, X any one and
    |X'N X - 1| <= defect < 1,  delta <= |X'g| / sqrt(1 - defect).
    """
    f = len(g)
    if f == 0:
        return 0.0
    N = M / D[:, None] / D - f * e * np.eye(f)
    try:
        X = np.linalg.inv(np.linalg.cholesky(N)).T
    except np.linalg.LinAlgError:
        return np.inf
    rounding = gamma(4 * f + 40)
    defect = np.linalg.norm(X.T @ N @ X - np.eye(f)) + rounding * np.linalg.norm(np.abs(X).T @ np.abs(N) @ np.abs(X))
    if not defect < 0.5:
        return np.inf
    size = np.linalg.norm(X.T @ (g / D)) + np.linalg.norm(np.abs(X).T @ (error / D + rounding * np.abs(g / D)))
    return float(size / np.sqrt(1.0 - defect) * (1.0 + rounding))
