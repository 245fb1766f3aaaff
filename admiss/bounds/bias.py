"""Upper bounds on the bias b(F) of a class.

Let the truth be fully adaptive, f*(x, m) = w*_0(m) + sum_j w*_j(m) (1 - m_j) x_j, with |f*| <= L for all m and all x in
a box that contains 0. This is stronger than Assumption 2.1: L must also hold if some of the observed x_j are set to 0,
which a bound on the data does not ensure if features are strongly correlated (large weights that cancel). The truth has
an adaptive intercept if w*_0 depends on the pattern. It does if features whose mean is not 0 can be missing, since the
mean of their part of Y is then in w*_0, and if M depends on X or Y; the data of the paper's authors have both. It does
not if the features are centred and M is independent of (X, Y). Let weights and intercept of F contain all polynomials
of the pattern up to degree t.

*Any law of M.* With e_k the elementary symmetric polynomial and any centre c in [0, 1]^d,

    b(F) = min_{f in F} E[(f* - f)^2] <= min{ L^2, 4^(t+1) L^2 E[e_(t+1)(|M - c|)^2] }

and b(F) = 0 for t >= d, without an adaptive intercept for t >= d - 1.

*Proof.* f = 0 is in F, hence L^2. For the other bound fix x and m, put x~_j = (1 - m_j) x_j, and set w*_j(v) = 0 if
v_j = 1, which does not change f*. On a pattern v, g(v) = w*_0(v) + sum_j w*_j(v) x~_j is f* at a point of the box,
since 0 is in it: |g(v)| <= L. Extend g to the cube as the polynomial that is affine in each variable,

    g(m) = sum_S D_S g(c) prod_{k in S} (m_k - c_k).

The Taylor polynomial g^t of order t lacks the sets of more than t elements. Group these by their t + 1 largest elements
S: the terms in the smaller elements sum to the same derivative at a mixed point,

    g(m) - g^t(m) = sum_{|S| = t+1} D_S g(m_1, .., m_(min S - 1), c_(min S), .., c_d) prod_{k in S} (m_k - c_k).

D_S g does not depend on the variables of S and is affine in each of the others; at a pattern it is a signed sum of
2^(t+1) values of g, so |D_S g| <= 2^(t+1) L in the cube. Hence |f* - f^t| <= 2^(t+1) L e_(t+1)(|m - c|). Finally, w_0
is a polynomial of d variables, and w_j, which matters at m_j = 0 only, of d - 1: the error vanishes for t >= d, or
t >= d - 1.

The centre is free. It is c = E[M] here as in the paper, the best constant prediction of M in mean square; other centres
can give smaller bounds (c = 0, for many features that are rarely missing). By Maclaurin e_k(a) <= (sum a)^k / k!, which
gives the bound in the 1-norm of the Taylor remainder cited in Lemma 1.

The paper's explicit form d^(t+1) L^2 / ((t+1)!)^2 ("paper") takes the remainder in the Euclidean norm, and the power of
a mean for the mean of a power. It is not a bound: parities exceed it. That of Table 1, d^(t+1) / (t+1)^(3(t+1)) times
L^2 ("table"), does not follow from it, as (t+1)! grows like (t+1)^(t+1) e^-(t+1): it is smaller by a factor without
bound in t. The zero of both for the fully adaptive class is exact.

*Independent M_k.* Let M_k ~ Bernoulli(p_k) be independent of each other and of X, and F_t the class of polynomial
weights and intercept of order t. Over all truths and all laws of X in the box, the largest bias is known from both
sides: with a_k = 4 p_k (1 - p_k), and PB(..) a sum of independent Bernoulli variables with the given probabilities,

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

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import logsumexp

from admiss.adaptivity import Adaptivity, FullyAdaptive, Polynomial
from admiss.bounds.counts import (
    ALL_PATTERNS,
    ClassLike,
    class_name,
    contains_polynomials,
    polynomial_degrees,
    read_class,
)
from admiss.bounds.moments import moment_bias
from admiss.bounds.setting import Bias, BoundSetting, Estimated, not_negative
from formulations.arrays import FloatArray

AS_PRINTED = "as printed, not a bound"
GIVEN, ESTIMATED = "given as a number", "an estimate"
EXACT = "exact"


def bias_bound(
    adaptivity: ClassLike,
    d: int,
    L: float,
    *,
    bias: Bias = "proved",
    missing: Any = None,
    adaptive_intercept: bool = True,
    moments: Any = None,
    beta: Any = None,
) -> float:
    """An upper bound on the bias b(F) of a class, for a fully adaptive truth, or its value by second moments.

    Parameters
    ----------
    adaptivity : str, ("polynomial", t) or Adaptivity
        The class. A new class declares in an attribute ``degree`` the largest degree for which its weights and its
        intercept contain all polynomials of the pattern.
    d, L, bias, missing, adaptive_intercept, moments, beta
        As in ``BoundSetting``.

    Examples
    --------
    >>> round(bias_bound(("polynomial", 3), 5, 1.0, missing=0.05), 6), bias_bound(("polynomial", 3), 5, 1.0)
    (0.006764, 1.0)
    >>> [bias_bound(("polynomial", 4), 5, 1.0, adaptive_intercept=intercept) for intercept in (True, False)]
    [1.0, 0.0]
    >>> same = 0.5 * np.eye(5) + 0.5
    >>> round(bias_bound("affine", 5, 1.0, bias="moments", moments=(np.zeros(5), same), missing=0.2), 6)
    0.001933
    """
    setting = BoundSetting(
        d,
        sigma2=0.0,
        L=L,
        bias=bias,
        missing=missing,
        adaptive_intercept=adaptive_intercept,
        moments=moments,
        beta=beta,
    )
    return bias_of(setting, read_class(adaptivity, d)).value


@dataclass(frozen=True)
class ClassBias:
    """b(F), its source in words, and what some truth attains at least, None if unknown."""

    value: float
    source: str
    lower: float | None = None


def bias_of(setting: BoundSetting, adaptivity: Adaptivity) -> ClassBias:
    """b(F) by the rule of the setting."""
    rule = setting.bias
    if isinstance(rule, Estimated):
        return ClassBias(max(0.0, rule.value), f"{ESTIMATED}, standard error {8 * rule.standard_error:.2g}")
    if not isinstance(rule, str):
        return ClassBias(not_negative("bias", rule), GIVEN)
    if rule == "moments":
        by_moments = moment_bias(adaptivity, setting.moments, missing=setting.missing, beta=setting.beta, d=setting.d)
        return ClassBias(max(0.0, by_moments.value), by_moments.note)
    if rule in ("paper", "table"):
        order = degree_of(adaptivity, setting.d, setting.adaptive_intercept) + 1
        if type(adaptivity) is FullyAdaptive:
            return ClassBias(0.0, EXACT)
        log_divisor = 2 * math.lgamma(order + 1) if rule == "paper" else 3 * order * math.log(order)
        log = order * math.log(setting.d) - log_divisor + 2 * math.log(setting.L)
        return ClassBias(exp_or_inf(log), AS_PRINTED)
    lower, upper = bias_sides(setting, adaptivity)
    return ClassBias(upper, f"proved, law of M: {setting.law.text}" if upper else EXACT, lower)


def bias_sides(setting: BoundSetting, adaptivity: Adaptivity) -> tuple[float | None, float]:
    """The sides between which the largest b(F) over all truths with |f*| <= L is; the lower one is None if unknown."""
    law = setting.law
    square = setting.L * setting.L
    inner = degree_of(adaptivity, setting.d, setting.adaptive_intercept)
    exact = first_exact_order(setting)
    if inner >= exact:
        return 0.0, 0.0
    if law.patterns is not None and law.probabilities is not None:
        return None, square * math.exp(min(0.0, log_mean_square(law.patterns, law.probabilities, inner + 1)))
    upper = 1.0 if law.rates is None else upper_share(law.rates, inner)
    degrees = polynomial_degrees(adaptivity, setting.d)
    if degrees is None:
        return None, square * upper
    outer = max(degrees)
    if outer >= exact:
        return 0.0, square * upper
    lower = 1.0 if law.rates is None else lower_share(law.rates, outer, setting.adaptive_intercept)
    return square * lower, square * upper


def first_exact_order(setting: BoundSetting) -> int:
    """The smallest t with b(F_t) = 0 for all truths."""
    return setting.d if setting.adaptive_intercept else setting.d - 1


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
    a_of_missing = 4 * rates * (1 - rates)
    with np.errstate(over="ignore"):
        for a in a_of_missing[a_of_missing > 0].tolist():
            above += a * (above + float(e[t]))
            if above >= 1:
                return 1.0
            e[1:] += a * e[:-1]
    return above


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


def degree_of(adaptivity: Adaptivity, d: int, adaptive_intercept: bool = True) -> int:
    """The largest t such that weights (and intercept) of a class contain all polynomials of the pattern of degree t."""
    if adaptivity.has_structure():
        raise ValueError(
            f"{class_name(adaptivity)} imposes a structure on its weights, but Theorem 1 is about plain least squares: "
            "give its bias as a number."
        )
    degrees = polynomial_degrees(adaptivity, d)
    if degrees is not None:
        return min(degrees)
    degree = declared_degree(adaptivity)
    if not isinstance(degree, int | np.integer) or isinstance(degree, bool) or degree < 0:
        raise ValueError(
            f"No bias is known for {class_name(adaptivity)}: give it an attribute 'degree', the largest degree for "
            "which its weights contain all polynomials of the pattern, or give the bias as a number."
        )
    degree = min(int(degree), d)
    if d <= ALL_PATTERNS and not contains_polynomials(adaptivity, d, degree, adaptive_intercept):
        what = "weights and the intercept" if adaptive_intercept else "weights"
        raise ValueError(
            f"The {what} of {class_name(adaptivity)} do not contain all polynomials of the pattern up to the degree "
            f"{degree} that it declares: correct its attribute 'degree', or give the bias as a number."
        )
    return degree


def declared_degree(adaptivity: Adaptivity) -> Any:
    """The attribute ``degree`` of a new class, None without one.

    That of the monomials of this package does not count: a subclass may have another basis.

    Examples
    --------
    >>> class Rare(Polynomial):
    ...     pass
    >>> declared_degree(Rare(2)) is None
    True
    """
    new = [kind for kind in type(adaptivity).__mro__ if not kind.__module__.startswith("admiss.adaptivity.")]
    declares = any("degree" in vars(kind) for kind in new)
    declares |= "degree" in vars(adaptivity) and not isinstance(adaptivity, Polynomial)
    return getattr(adaptivity, "degree", None) if declares else None


def log_mean_square(patterns: Any, probabilities: FloatArray, k: int) -> float:
    """log E[e_k(2 |M - c|)^2] with c = E[M], for a law given pattern by pattern."""
    patterns = np.asarray(patterns, dtype=float)
    logs = log_elementary_symmetric(2 * np.abs(patterns - probabilities @ patterns), k)
    return float(logsumexp(2 * logs, b=probabilities))


def log_elementary_symmetric(values: Any, k: int) -> FloatArray:
    """log e_k of each row of non-negative numbers, e_k = sum_{|S| = k} prod_{j in S} a_j.

    Computed by e_k(a_1..a_j) = e_k(a_1..a_(j-1)) + a_j e_(k-1)(a_1..a_(j-1)), in logarithms.

    Examples
    --------
    >>> np.exp(log_elementary_symmetric([[1.0, 2.0, 3.0], [0.0, 0.0, 4.0]], 2)).round(9).tolist()
    [11.0, 0.0]
    """
    rows = np.asarray(values, dtype=float)
    with np.errstate(divide="ignore"):
        logs = np.log(rows)
    e = np.full((len(rows), k + 1), -np.inf)
    e[:, 0] = 0.0
    for j in range(rows.shape[1]):
        e[:, 1:] = np.logaddexp(e[:, 1:], logs[:, [j]] + e[:, :-1])
    return np.asarray(e[:, k])


def exp_or_inf(log: float) -> float:
    """exp, with infinity in place of an overflow."""
    return math.exp(log) if log < 709.0 else math.inf
