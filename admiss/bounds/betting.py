"""Upper bounds on the mean of bounded variables: by betting, and by empirical Bernstein.

Let v_1, .., v_n in [0, 1] be independent draws of a law with mean mu, in a fixed order, and 0 < alpha < 1.

Betting (Waudby-Smith and Ramdas, "Estimating means of bounded random variables by betting", 2024). Against the
hypothesis mu >= m a gambler with wealth 1 stakes lambda_i(m) on v_i < m, knowing v_1 .. v_(i-1):

    W_k(m) = prod_{i <= k} (1 + lambda_i(m) (m - v_i)),    lambda_i(m) = min(l_i, 3/4 / (1 - m)),
    l_i = sqrt(2 log(1/alpha) / (n s_i)),    s_i = (1/4 + sum_{j < i} (v_j - mu_j)^2) / i,
    mu_j = (1/2 + v_1 + .. + v_j) / (j + 1).

The bound is U = inf {m in [0, 1): W_k(m) >= 1/alpha for some k <= n}, or 1 if there is no such m.

* Valid: P(mu <= U) >= 1 - alpha. Factors are at least 1/4, because v_i <= 1, and l_i is a function of the past, so
  E[W_k(mu) | past] = W_(k-1)(mu): a non-negative martingale that starts at 1. By Ville's inequality it reaches 1/alpha
  with probability at most alpha; if it does not, mu is not in the set, which by the next point is all of (U, 1).
* Monotone: every factor is positive and non-decreasing in m, hence so is W_k(m), and bisection finds U. For a constant
  l >= 0, 1 + l (m - v) is non-decreasing; so is 1 + 3/4 (m - v) / (1 - m), with derivative 3/4 (1 - v) / (1 - m)^2.
  The factor is the smaller of the two where m >= v, and the larger one where m < v; both are 1 at m = v.
* The choice of l_i: log W_n(m) is about l (m - mu) n - l^2 n s / 2 with the variance s, which first reaches
  log(1/alpha) at m = mu + sqrt(2 s log(1/alpha) / n), for the l above. It only affects how close U is to mu. So does
  3/4, the largest part of the wealth that can be lost at once.

Empirical Bernstein (Maurer and Pontil, "Empirical Bernstein bounds and sample variance penalization", 2009, Theorem 4),
with the sample variance V, also with probability at least 1 - alpha:

    mu <= mean(v) + sqrt(2 V log(2/alpha) / n) + 7 log(2/alpha) / (3 (n - 1)).

The smaller of the two holds with probability 1 - 2 alpha only.
"""

import math

import numpy as np

from formulations.arrays import FloatArray


def betting_bound(v: FloatArray, alpha: float) -> float:
    """A number that the mean of the law of v, with values in [0, 1], exceeds with probability at most alpha.

    Examples
    --------
    >>> v = np.random.default_rng(0).uniform(size=300)
    >>> round(betting_bound(v, 0.05), 3), round(bernstein_bound(v, 0.05), 3)
    (0.577, 0.616)
    >>> round(betting_bound(np.zeros(300), 0.05), 3), betting_bound(np.zeros(1), 0.05)
    (0.013, 1.0)
    """
    stakes = predictable_stakes(v, alpha)
    low, high = 0.0, 1.0
    # the upper end of the bisection is returned
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        if is_rejected(middle, v, stakes, alpha):
            high = middle
        else:
            low = middle
    return high


def predictable_stakes(v: FloatArray, alpha: float) -> FloatArray:
    """l_1 .. l_n of the module docstring: l_i depends on v_1 .. v_(i-1), on n and on alpha."""
    n = len(v)
    times = np.arange(1, n + 1)
    means = (0.5 + np.cumsum(v)) / (times + 1)
    sums = 0.25 + np.cumsum((v - means) ** 2)
    variances = np.append(0.25, sums[:-1]) / times
    return np.asarray(np.sqrt(2 * math.log(1 / alpha) / (n * variances)))


def is_rejected(m: float, v: FloatArray, stakes: FloatArray, alpha: float) -> bool:
    """Whether the wealth against a mean of m or more reaches 1 / alpha, beyond doubt by rounding."""
    gains = np.log1p(np.minimum(stakes, 0.75 / (1 - m)) * (m - v))
    rounding = len(v) * np.finfo(float).eps * np.abs(gains).sum()
    return bool(np.cumsum(gains).max() >= math.log(1 / alpha) + rounding)


def bernstein_bound(v: FloatArray, alpha: float) -> float:
    """The bound of Maurer and Pontil, at most 1."""
    n = len(v)
    if n == 1:
        return 1.0
    log = math.log(2 / alpha)
    return float(min(1.0, v.mean() + math.sqrt(2 * v.var(ddof=1) * log / n) + 7 * log / (3 * (n - 1))))
