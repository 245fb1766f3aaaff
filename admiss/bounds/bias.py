"""Upper bounds on the bias b(F) of a class.

Let the truth be fully adaptive, f*(x, m) = sum_j w*_j(m) (1 - m_j) x_j, with |f*| <= L for all m and all x in a box
that contains 0. This is stronger than Assumption 2.1: L must also hold if some of the observed x_j are set to 0, which
a bound on the data does not ensure if features are strongly correlated (large weights that cancel). Let the weights of
F contain all polynomials of the pattern up to degree t. Then, with e_k the elementary symmetric polynomial and any
centre c in [0, 1]^d,

    b(F) = min_{f in F} E[(f* - f)^2] <= min{ L^2, 4^(t+1) L^2 E[e_(t+1)(|M - c|)^2] },     b(F) = 0 for t >= d - 1.

*Proof.* f = 0 is in F, hence L^2. For the other bound fix x and m, put x~_j = (1 - m_j) x_j, and set w*_j(v) = 0 if
v_j = 1, which does not change f*. On a pattern v, g(v) = sum_j w*_j(v) x~_j is f* at a point of the box, since 0 is in
it: |g(v)| <= L. Extend g to the cube as the polynomial that is affine in each variable,

    g(m) = sum_S D_S g(c) prod_{k in S} (m_k - c_k).

The Taylor polynomial g^t of order t lacks the sets of more than t elements. Group these by their t + 1 largest elements
S: the terms in the smaller elements sum to the same derivative at a mixed point,

    g(m) - g^t(m) = sum_{|S| = t+1} D_S g(m_1, .., m_(min S - 1), c_(min S), .., c_d) prod_{k in S} (m_k - c_k).

D_S g does not depend on the variables of S and is affine in each of the others; at a pattern it is a signed sum of
2^(t+1) values of g, so |D_S g| <= 2^(t+1) L in the cube. Hence |f* - f^t| <= 2^(t+1) L e_(t+1)(|m - c|). Finally, w_j
matters at m_j = 0 only, where it is a polynomial of d - 1 variables: the error vanishes for t >= d - 1.

The centre is free. It is c = E[M] here as in the paper, the best constant prediction of M in mean square; other centres
can give smaller bounds (c = 0, for many features that are rarely missing). By Maclaurin e_k(a) <= (sum a)^k / k!, which
gives the bound in the 1-norm of the Taylor remainder cited in Lemma 1.

*Worst case.* If nothing is known about the law of M, then b(F) <= L^2 cannot be improved for t <= d - 2. Let feature 1
never be missing, the others independently with probability 1/2, x_1 = +-1 with equal probability independently of
everything else, and f* = L x_1 prod_{k>1} (1 - 2 m_k). This parity is orthogonal to all polynomials of degree d - 2, so
b(F) = L^2.

The paper's explicit form d^(t+1) L^2 / ((t+1)!)^2 takes the remainder in the Euclidean norm, and the power of a mean
for the mean of a power. It is not a bound: parities exceed it.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any, Protocol, TypeGuard, runtime_checkable

import numpy as np
from scipy.special import logsumexp

from admiss.adaptivity import Adaptivity, Affine, AffineIntercept, FullyAdaptive, Polynomial, Static
from admiss.bounds.counts import ClassLike, class_name, contains_polynomials, read_class
from admiss.datasets.mechanisms.single import CompletelyAtRandom
from admiss.patterns import PatternTable
from formulations.arrays import FloatArray

BIASES = ("proved", "paper")
# Largest number of features for which the declared degree of a new class is checked, over all patterns.
CHECKED_FEATURES = 8


@runtime_checkable
class Estimated(Protocol):
    """A value with its standard error, as returned by ``estimate_bias``."""

    value: float
    standard_error: float


Bias = str | float | Estimated


def bias_bound(adaptivity: ClassLike, d: int, L: float, *, bias: Bias = "proved", missing: Any = None) -> float:
    """An upper bound on the bias b(F) of a class, for a fully adaptive truth.

    Parameters
    ----------
    adaptivity : str, ("polynomial", t) or Adaptivity
        The class. A new class declares in an attribute ``degree`` the largest degree for which its weights contain all
        polynomials of the pattern.
    d : int
        Features.
    L : float
        Bound on |f*| for all x in a box that contains 0, and not only on the data.
    bias : {"proved", "paper"}, float or Estimate
        The bound proved above; the printed form, which is not a bound; a number, which is returned; or an estimate,
        whose value is returned, 0 if negative.
    missing : optional
        The law of M: a 0/1 matrix (its rows, equally likely), a pair of a mechanism and features, from which one draw
        is made, a probability or one for each feature (independent), or a ``CompletelyAtRandom``. The worst of all laws
        by default. A matrix gives the bias under the law of its rows. For the population this is an estimate, which
        tends to be too small at high orders: rare patterns with many missing features dominate the expectation.

    Examples
    --------
    >>> round(bias_bound(("polynomial", 3), 5, 1.0, missing=0.05), 6), bias_bound(("polynomial", 3), 5, 1.0)
    (0.011468, 1.0)
    >>> bias_bound(("polynomial", 4), 5, 1.0)
    0.0
    """
    L = positive("L", L)
    adaptivity = read_class(adaptivity, d)
    d = int(d)
    if not isinstance(bias, str):
        return max(0.0, bias.value) if isinstance(bias, Estimated) else not_negative("bias", bias)
    if bias not in BIASES:
        raise ValueError(f"bias must be 'proved', 'paper' or a non-negative number, not {bias!r}.")
    law = read_missing(missing, d)
    t = degree_of(adaptivity, d)
    if bias == "paper":
        if type(adaptivity) is FullyAdaptive:
            return 0.0
        return exp_or_inf((t + 1) * math.log(d) - 2 * math.lgamma(t + 2) + 2 * math.log(L))
    if t >= d - 1:
        return 0.0
    return L * L * math.exp(min(0.0, law.log_mean_square(t + 1)))


def degree_of(adaptivity: Adaptivity, d: int) -> int:
    """The largest t such that the weights of a class contain all polynomials of the pattern of degree t."""
    shipped = {Static: 0, AffineIntercept: 0, Affine: 1, FullyAdaptive: d}
    kind = type(adaptivity)
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
    if kind not in (*shipped, Polynomial) and d <= CHECKED_FEATURES and not contains_polynomials(adaptivity, d, degree):
        raise ValueError(
            f"The weights of {class_name(adaptivity)} do not contain all polynomials of the pattern up to the degree "
            f"{degree} that it declares: correct its attribute 'degree', or give the bias as a number."
        )
    return degree


@dataclass(frozen=True)
class Law:
    """A law of M and its log E[e_k(2 |M - E M|)^2].

    Attributes
    ----------
    text : str
        The law in words.
    log_mean_square : callable of k
        It need not be exact if positive, since the bound is then L^2.
    """

    text: str
    log_mean_square: Callable[[int], float]


def read_missing(missing: Any, d: int) -> Law:
    """The law given by the argument ``missing``."""
    if missing is None:
        # For M uniform e_k(2 |M - c|) = C(d, k) >= 1: never below 0 = log 1.
        return Law("the worst of all laws", lambda k: 0.0)
    if isinstance(missing, CompletelyAtRandom):
        missing = missing.fraction
    if isinstance(missing, tuple) and len(missing) == 2 and callable(missing[0]):
        mechanism, X = missing
        missing = mechanism(X, np.random.RandomState(0))
    elif callable(missing):
        raise ValueError("A mechanism needs features to act on: use missing=(mechanism, X).")
    try:
        values = np.asarray(missing, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"missing must be a 0/1 matrix, probabilities or a mechanism, not {missing!r}.") from error
    if values.ndim == 0:
        values = np.full(d, float(values))
    if values.ndim > 2 or values.shape[-1] != d or values.size == 0:
        raise ValueError(f"missing has shape {values.shape}: give rows of {d} features, or {d} probabilities.")
    if values.ndim == 1:
        if not ((values >= 0) & (values <= 1)).all():
            raise ValueError("The probabilities in missing must be between 0 and 1.")
        return Law("independent, with the given probabilities", lambda k: _independent(values, k))
    if not np.isin(values, (0.0, 1.0)).all():
        raise ValueError("missing must be a matrix of 0 and 1, such as isnan(X).")
    table = PatternTable.of(values)
    probabilities = table.weights / len(values)
    text = f"that of the {len(values)} rows, an estimate for others"
    return Law(text, lambda k: log_mean_square(table.patterns, probabilities, k))


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


def _independent(p: FloatArray, k: int) -> float:
    """log E[e_k(2 |M - p|)^2] for independent M_j.

    E e_k^2 is the coefficient of u^k v^k in prod_j E[(1 + u A_j) (1 + v A_j)], A_j = 2 |M_j - p_j|.
    """
    with np.errstate(divide="ignore"):
        moments = np.log(4 * p * (1 - p))  # E A and E A^2 alike
    mean = float(log_elementary_symmetric(4 * (p * (1 - p))[None], k)[0])  # E e_k(A) = e_k(E A)
    if mean >= 0.0:  # E e^2 >= (E e)^2 >= 1: the bound is L^2
        return 2 * mean
    table = np.full((k + 1, k + 1), -np.inf)
    table[0, 0] = 0.0
    for moment in moments:
        new = table.copy()
        new[1:, :] = np.logaddexp(new[1:, :], moment + table[:-1, :])
        new[:, 1:] = np.logaddexp(new[:, 1:], moment + table[:, :-1])
        new[1:, 1:] = np.logaddexp(new[1:, 1:], moment + table[:-1, :-1])
        table = new
    return float(table[k, k])


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
