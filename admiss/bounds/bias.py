"""Upper bounds on the bias b(F) of a class.

Let the truth be fully adaptive, f*(x, m) = w*_0(m) + sum_j w*_j(m) (1 - m_j) x_j, with |f*| <= L for all m and all x in
a box that contains 0. This is stronger than Assumption 2.1: L must also hold if some of the observed x_j are set to 0,
which a bound on the data does not ensure if features are strongly correlated (large weights that cancel). The truth has
an adaptive intercept if w*_0 depends on the pattern. It does if features whose mean is not 0 can be missing, since the
mean of their part of Y is then in w*_0, and if M depends on X or Y; the data of the paper's authors have both. It does
not if the features are centred and M is independent of (X, Y). Let weights and intercept of F contain all polynomials
of the pattern up to degree t.

If the M_k are independent, ``two_sided`` bounds the largest b(F) from both sides. For any law of M, with e_k the
elementary symmetric polynomial and any centre c in [0, 1]^d,

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

The paper's explicit form d^(t+1) L^2 / ((t+1)!)^2 takes the remainder in the Euclidean norm, and the power of a mean
for the mean of a power. It is not a bound: parities exceed it. Its zero for the fully adaptive class is exact.
"""

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any, Protocol, TypeGuard, runtime_checkable

import numpy as np
from scipy.special import logsumexp

from admiss.adaptivity import Adaptivity, Affine, AffineIntercept, FullyAdaptive, Polynomial, Static
from admiss.bounds.counts import ClassLike, class_name, contains_polynomials, read_class
from admiss.bounds.missing_law import MissingLaw, read_missing
from admiss.bounds.moments import moment_bias
from admiss.bounds.two_sided import first_exact_order, lower_share, upper_share
from formulations.arrays import FloatArray

BIASES = ("proved", "paper", "moments")
# Largest number of features for which the declared degree of a new class is checked, over all patterns.
CHECKED_FEATURES = 8
SHIPPED = (Static, AffineIntercept, Affine, Polynomial, FullyAdaptive)


@runtime_checkable
class Estimated(Protocol):
    """A value with its standard error, as returned by ``estimate_bias``."""

    value: float
    standard_error: float


Bias = str | float | Estimated


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
    d : int
        Features.
    L : float
        Bound on |f*| for all x in a box that contains 0, and not only on the data.
    bias : {"proved", "paper", "moments"}, float or Estimate
        The bound proved above; the printed form, which is not a bound; the value by second moments, which needs
        ``moments`` and ``missing``, see ``moment_bias``; a number, which is returned; or an estimate, whose value is
        returned, 0 if negative.
    missing : float, array, mechanism or None
        The law of M: a 0/1 matrix (its rows, equally likely), a pair of a mechanism and features, from which one draw
        is made, a probability or one for each feature (independent), or a ``CompletelyAtRandom``. The worst of all laws
        by default. A matrix gives the bias under the law of its rows. For the population this is an estimate, which
        tends to be too small at high orders: rare patterns with many missing features dominate the expectation.
        Probabilities are for M_k that are independent of each other and of X.
    adaptive_intercept : bool
        Whether the truth may have an intercept that depends on the pattern, as the fully adaptive class has, and as in
        the data of the paper's authors. Without, the bias vanishes from order d - 1 on, with one from order d on.
    moments : pair of mean and covariance, or Law, optional
        For ``bias="moments"``: of the features as they enter the model.
    beta : array of shape (d,), optional
        For ``bias="moments"``: slopes of the best linear predictor of y from the full features; by default the worst
        ones with Var(beta'X) = 1.

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
    L = positive("L", L)
    adaptivity = read_class(adaptivity, d)
    d = int(d)
    if not isinstance(bias, str):
        return max(0.0, bias.value) if isinstance(bias, Estimated) else not_negative("bias", bias)
    if bias not in BIASES:
        raise ValueError(f"bias must be 'proved', 'paper', 'moments' or a non-negative number, not {bias!r}.")
    if bias == "moments":
        return max(0.0, moment_bias(adaptivity, moments, missing=missing, beta=beta, d=d).value)
    law = read_missing(missing, d)
    if bias == "paper":
        t = degree_of(adaptivity, d, adaptive_intercept)
        if type(adaptivity) is FullyAdaptive:
            return 0.0
        return exp_or_inf((t + 1) * math.log(d) - 2 * math.lgamma(t + 2) + 2 * math.log(L))
    return bias_sides(adaptivity, d, L, law, adaptive_intercept).upper


@dataclass(frozen=True)
class Sides:
    """The two sides between which the largest b(F) over all truths is; the lower one is None if unknown."""

    lower: float | None
    upper: float


def bias_sides(adaptivity: Adaptivity, d: int, L: float, law: MissingLaw, adaptive_intercept: bool = True) -> Sides:
    """The sides between which the largest b(F) over all truths with |f*| <= L is."""
    inner = degree_of(adaptivity, d, adaptive_intercept)
    # the degree of polynomials that contain the class, known for shipped classes
    outer = {AffineIntercept: 1}.get(type(adaptivity), inner) if type(adaptivity) in SHIPPED else None
    exact = first_exact_order(d, adaptive_intercept)
    if inner >= exact:
        return Sides(0.0, 0.0)
    if law.patterns is not None and law.probabilities is not None:
        share = math.exp(min(0.0, log_mean_square(law.patterns, law.probabilities, inner + 1)))
        return Sides(None, L * L * share)
    share = 1.0 if law.rates is None else upper_share(law.rates, inner)
    if outer is None:
        return Sides(None, L * L * share)
    least = 1.0 if law.rates is None else lower_share(law.rates, outer, adaptive_intercept)
    return Sides(L * L * least if outer < exact else 0.0, L * L * share)


def degree_of(adaptivity: Adaptivity, d: int, adaptive_intercept: bool = True) -> int:
    """The largest t such that weights (and intercept) of a class contain all polynomials of the pattern of degree t."""
    kind = type(adaptivity)
    shipped = {Static: 0, AffineIntercept: 0, Affine: 1, FullyAdaptive: d}
    # A subclass with another basis does not inherit the degree of its parent.
    declares = kind is Polynomial or "degree" in vars(kind) or not isinstance(adaptivity, Polynomial)
    degree = shipped.get(kind, getattr(adaptivity, "degree", None) if declares else None)
    if adaptivity.has_structure():
        raise ValueError(
            f"{class_name(adaptivity)} imposes a structure on its weights, but Theorem 1 is about plain least squares: "
            "give its bias as a number."
        )
    if not isinstance(degree, int | np.integer) or isinstance(degree, bool) or degree < 0:
        raise ValueError(
            f"No bias is known for {class_name(adaptivity)}: give it an attribute 'degree', the largest degree for "
            "which its weights contain all polynomials of the pattern, or give the bias as a number."
        )
    degree = min(int(degree), d)
    checked = kind not in SHIPPED and d <= CHECKED_FEATURES
    if checked and not contains_polynomials(adaptivity, d, degree, adaptive_intercept):
        what = "weights and the intercept" if adaptive_intercept else "weights"
        raise ValueError(
            f"The {what} of {class_name(adaptivity)} do not contain all polynomials of the pattern up to the degree "
            f"{degree} that it declares: correct its attribute 'degree', or give the bias as a number."
        )
    return degree


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


def positive(name: str, value: object) -> float:
    """A positive number whose square neither vanishes nor overflows."""
    number = _number(value)
    if not 1e-150 <= number <= 1e150:
        raise ValueError(f"{name} must be a positive number (between 1e-150 and 1e150), not {value!r}.")
    return number


def not_negative(name: str, value: object) -> float:
    """A finite non-negative number."""
    number = _number(value)
    if not 0 <= number < math.inf:
        raise ValueError(f"{name} must be a finite non-negative number, not {value!r}.")
    return number


def is_number(value: object) -> TypeGuard[float]:
    """Whether a value is a real number and not a bool."""
    return isinstance(value, Real) and not isinstance(value, bool)


def _number(value: object) -> float:
    """A value as a float, NaN if it is not a number or too large."""
    try:
        return float(value) if is_number(value) else math.nan
    except OverflowError:
        return math.nan
