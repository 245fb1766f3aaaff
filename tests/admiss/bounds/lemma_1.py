"""Lemma 1 as code, an oracle: Taylor polynomials of a fully adaptive truth, and the bounds on their errors.

Truths are those of :mod:`experiments.studies.bounds.population`, matrices w of shape (d, 2^d). As a function on the
cube that is affine in each m_k, w_j is its own Taylor series around any centre c: along each axis the two values
(v_0, v_1) become the value and the slope at c_k,

    (v_0, v_1) -> ((1 - c_k) v_0 + c_k v_1,  v_1 - v_0),

after which the entry of a set S (as a pattern) is the coefficient of prod_{k in S} (m_k - c_k). This takes d 2^d steps,
is exact, and is inverted by (a, b) -> (a - c_k b, a + (1 - c_k) b). The order-t polynomial retains |S| <= t.

============== =================================== ====================================================
pair           computed                            bound
============== =================================== ====================================================
`lemma_pair`   max_x |f* - f^t| at each pattern    2^(t+1) L e_(t+1)(|m - c|)
`norm_pair`    the same                            2^(t+1) L / (t+1)! ||m - c||^(t+1)
`bias_pair`    min_{f of order t} E[(f* - f)^2]    b(F), proved or as printed
============== =================================== ====================================================

The norm is the 1-norm; with the Euclidean norm of Lemma 2, the second one is not a bound. In the last one x is +-1 with
equal probability, independently of M: the minimum is then a projection for each weight, and the intercept is 0.
"""

import math

import numpy as np

from admiss.bounds import bias_bound
from admiss.bounds.bias import log_elementary_symmetric, log_mean_square
from admiss.bounds.counts import all_patterns


def truth_range(weights):
    """L of each truth of shape (.., d, 2^d): the largest |f*| over all patterns and x in [-1, 1]^d."""
    return np.abs(weights).sum(axis=-2).max(axis=-1, keepdims=True)


def taylor_coefficients(weights, centre):
    """The coefficients of prod_{k in S} (m_k - c_k), S in the order of ``all_patterns``."""
    return along_axes(weights, centre, lambda v0, v1, c: [(1 - c) * v0 + c * v1, v1 - v0])


def taylor_weights(weights, t, centre):
    """The order-t Taylor polynomials of the weights around a centre, at all patterns."""
    retained = all_patterns(weights.shape[-2]).sum(axis=1) <= t
    coefficients = taylor_coefficients(weights, centre) * retained
    return along_axes(coefficients, centre, lambda a, b, c: [a - c * b, a + (1 - c) * b])


def along_axes(values, centre, change):
    """The values with ``change`` applied, for each feature k, to the entries without k, those with k, and c_k."""
    d = values.shape[-2]
    table = values.reshape(*values.shape[:-1], *([2] * d))
    for k, c_k in enumerate(centre):
        table = np.stack(change(*np.moveaxis(table, k - d, 0), c_k), axis=k - d)
    return table.reshape(values.shape)


def taylor_error(weights, t, centre):
    """The largest |f* - f^t| over x in [-1, 1]^d at each pattern, of shape (.., 2^d)."""
    observed = all_patterns(weights.shape[-2]).T == 0
    return np.abs((weights - taylor_weights(weights, t, centre)) * observed).sum(axis=-2)


def lemma_pair(weights, t, centre):
    """Pattern by pattern: the error of the order-t polynomial, and 2^(t+1) L e_(t+1)(|m - c|)."""
    distance = np.abs(all_patterns(weights.shape[-2]) - centre)
    bound = truth_range(weights) * np.exp(log_elementary_symmetric(2 * distance, t + 1))
    return taylor_error(weights, t, centre), bound


def norm_pair(weights, t, centre, norm=1):
    """Pattern by pattern: the error, and 2^(t+1) L / (t+1)! ||m - c||^(t+1), a bound in the 1-norm only."""
    distance = np.linalg.norm(2 * (all_patterns(weights.shape[-2]) - centre), ord=norm, axis=1)
    bound = truth_range(weights) * distance ** (t + 1) / math.factorial(t + 1)
    return taylor_error(weights, t, centre), bound


def bias_pair(weights, t, law=None, bias="proved"):
    """The bias of the order-t class for a truth, x = +-1 independent of M, and b(F); uniform patterns by default."""
    d = len(weights)
    probabilities = np.full(2**d, 0.5**d) if law is None else law
    computed = sum(projection_error(weights[j], j, t, probabilities) for j in range(d))
    L = truth_range(weights).item()
    if bias == "paper":
        return computed, bias_bound(("polynomial", t), d, L, bias="paper")
    if t >= d - 1:
        return computed, 0.0
    return computed, L * L * math.exp(min(0.0, log_mean_square(all_patterns(d), probabilities, t + 1)))


def projection_error(w, j, t, probabilities):
    """min over polynomials v of degree t of E[(1 - M_j) (w(M) - v(M))^2]."""
    M = all_patterns(len(w).bit_length() - 1)
    used = (M[:, j] == 0) & (probabilities > 0)
    # Products of 1 - 2 m_k span the same polynomials as the monomials and are orthogonal for uniform patterns.
    sets = M[(M[:, j] == 0) & (M.sum(axis=1) <= t)]
    root = np.sqrt(probabilities[used])
    basis = root[:, None] * (1 - 2 * (M[used] @ sets.T % 2))
    target = root * w[used]
    residual = target - basis @ np.linalg.lstsq(basis, target, rcond=None)[0]
    return float((residual**2).sum())


def independent_law(probabilities):
    """The law of independent M_j with the given probabilities, over all patterns."""
    p = np.asarray(probabilities, dtype=float)
    return np.where(all_patterns(len(p)) == 1, p, 1 - p).prod(axis=1)
