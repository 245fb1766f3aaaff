"""The largest bias that L and independent missing values allow, from both sides.

Let M_k ~ Bernoulli(p_k) be independent of each other and of X, and F_t the class of polynomial weights and intercept of
order t. The truths are all f*(x, m) = w_0(m) + sum_j w_j(m) (1 - m_j) x_j with |f*| <= L at every pattern and every x
of a box that contains 0, and X has any law in the box. With a_k = 4 p_k (1 - p_k), e_u the elementary symmetric
polynomials, and PB(..) a sum of independent Bernoulli variables with the given probabilities,

    w_0 = 0      max_j L^2 (1 - p_j) P(PB(a_k, k != j) > t)  <=  sup b(F_t)  <=  L^2 min{1, sum_{u > t} e_u(a)}
    any w_0      L^2 P(PB(a_1, .., a_d) > t)                 <=  sup b(F_t)  <=  L^2 min{1, sum_{u > t} e_u(a)},

and sup b(F_t) = 0 for t >= d - 1 if w_0 = 0, for t >= d otherwise.

*Upper side.* f = 0 gives L^2. For the rest fix x. Products phi_T(m) = prod_{k in T} (m_k - p_k) / sqrt(p_k (1 - p_k))
are orthonormal. Write w_0 in those of all bits, w_j in those without bit j, and omit the terms of more than t bits:
what remains is in F_t. Since 1 - m_j = (1 - p_j) - sqrt(p_j (1 - p_j)) phi_j, the coefficient of phi_T in the error is

    w^_0(T) + sum_{j not in T} (1 - p_j) w^_j(T) x_j - sum_{j in T} sqrt(p_j (1 - p_j)) w^_j(T - j) x_j,

where the second sum is there for |T| > t + 1 only, and all of it for |T| > t only. For |T| > t + 1 this is the
coefficient of f*(x, .); for |T| = t + 1 it is that of f*(x', .), where x' is x with x_T = 0, a point of the box. The
coefficient of a function bounded by L is at most L E|phi_T| = L sqrt(prod_{k in T} a_k); sum the squares (Parseval).
For w_0 = 0 and |T| = d = t + 1 nothing is left: no order d - 1 has a bias. If w_0 != 0, none of order d has.

*Lower side.* The squared coefficients of a parity prod_k (1 - 2 m_k) are the products of a_k over T and of 1 - a_k
over the others: its part of degree above t has squared norm P(PB > t). Take X = 0 and f* = L prod_k (1 - 2 m_k);
members of F_t are then polynomials of degree t. Or, if w_0 = 0, take X constant, 0 but for x_j, which is at the end of
its side that is largest in absolute value, 1 after scaling, and f* = L x_j (1 - m_j) prod_{k != j} (1 - 2 m_k): given
m_j = 0, which has probability 1 - p_j, members of F_t are polynomials of degree t in the other bits, whatever their
intercept.

If no law of M is given, the supremum is also over these laws, and p = 1/2 (one p_j = 0 if w_0 = 0) gives L^2 at every
order that has a bias.
"""

import numpy as np

from formulations.arrays import FloatArray

# Partial sums are cut off here; whatever follows, the bound is then L^2.
LARGE = 1e300


def first_exact_order(d: int, adaptive_intercept: bool) -> int:
    """The smallest t with b(F_t) = 0 for all truths."""
    return d if adaptive_intercept else d - 1


def upper_share(rates: FloatArray, t: int) -> float:
    """min{1, sum_{u > t} e_u(a)}, the upper side as a share of L^2.

    With one more a, the sum grows by a times the sum, and by a e_t.

    Examples
    --------
    >>> round(upper_share(np.full(10, 0.01), 1), 3)
    0.079
    """
    e = np.zeros(t + 1)
    e[0] = 1.0
    above = 0.0
    for a in (4 * rates * (1 - rates)).tolist():
        above = min(above + a * (above + float(e[t])), LARGE)
        e[1:] = np.minimum(e[1:] + a * e[:-1], LARGE)
    return min(1.0, above)


def lower_share(rates: FloatArray, t: int, adaptive_intercept: bool) -> float:
    """The lower side as a share of L^2.

    Examples
    --------
    >>> [round(lower_share(np.full(10, 0.3), 3, intercept), 4) for intercept in (False, True)]
    [0.6994, 0.9998]
    """
    a = 4 * rates * (1 - rates)
    if adaptive_intercept:
        return float(poisson_binomial_tail(a[None], t)[0])
    # features with the same rate have the same tail
    some = np.unique(rates, return_index=True)[1]
    others = np.tile(a, (len(some), 1))
    others[np.arange(len(some)), some] = 0.0
    return float(np.max((1 - rates[some]) * poisson_binomial_tail(others, t)))


def poisson_binomial_tail(probabilities: FloatArray, t: int) -> FloatArray:
    """P(B_1 + .. + B_d > t) of independent B_k, for each row of probabilities.

    Examples
    --------
    >>> poisson_binomial_tail(np.array([[0.5, 0.5, 0.5]]), 1).tolist()
    [0.5]
    """
    equal = np.zeros((len(probabilities), t + 1))
    equal[:, 0] = 1.0
    above = np.zeros(len(probabilities))
    for a in probabilities.T:
        above += a * equal[:, t]
        equal[:, 1:] = equal[:, 1:] * (1 - a[:, None]) + equal[:, :-1] * a[:, None]
        equal[:, 0] *= 1 - a
    return above
