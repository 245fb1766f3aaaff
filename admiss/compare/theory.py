"""Theory of adaptivity classes on given rows: p(F) and the bound of Theorem 1.

Without a formula, p(F) of a class is counted over all patterns, up to 8 features. The bias b(F) is that of the largest
degree up to which all polynomials of the pattern are among the weights and the intercept, declared by the attribute
``degree`` or found; it is unknown for a class with a structure or with its own columns.
"""

import math
from typing import Any

import numpy as np

from admiss.adaptivity import Adaptivity, Affine, AffineIntercept, FullyAdaptive, Polynomial, Static
from admiss.bounds import BoundSetting, bias_bound, coefficient_count, estimate_noise, generalization_bound
from admiss.bounds.counts import ALL_PATTERNS, contains_polynomials
from admiss.estimator.notices import silence
from formulations.arrays import FloatArray

# Classes whose bias has a formula.
KNOWN_BIAS = (Static, AffineIntercept, Affine, Polynomial, FullyAdaptive)


def noise_or_none(X: FloatArray, y: FloatArray, seed: int) -> float | None:
    """The variance of the noise, or None if too few rows share a pattern."""
    try:
        with silence():
            return estimate_noise(X, y, random_state=seed).value
    except ValueError:
        return None


def theory_of(entry: Any, X: FloatArray, noise: float | None, L: float) -> tuple[float, float, str]:
    """p(F), the bound of Theorem 1 and whether it is vacuous; NaN and "-" if undefined.

    Parameters
    ----------
    entry : Adaptivity or estimator
        The models of an estimator, for instance of one that finds a partition, do not form a linear space.
    X : array of shape (n, d)
        Rows, whose patterns are the law of M.
    noise : float or None
        sigma^2, if known.
    L : float
        Bound on |f*|.
    """
    n, d = X.shape
    if not isinstance(entry, Adaptivity):
        return math.nan, math.nan, "-"
    if isinstance(entry, Polynomial) and entry.degree > d:
        entry = Polynomial(d)  # the same space
    p, bias = _count(entry, d, n), _bias(entry, X, L)
    if noise is None or math.isnan(p + bias):
        return p, math.nan, "-"
    bound = generalization_bound(BoundSetting(d, noise, L, bias=bias), n, entry)
    return p, bound.total, "yes" if bound.vacuous else "no"


def _count(adaptivity: Adaptivity, d: int, n: int) -> float:
    """p(F), infinite beyond the largest float, NaN if it needs all patterns of too many features."""
    try:
        p = coefficient_count(adaptivity, d, n=n)
    except ValueError:
        if d <= ALL_PATTERNS:
            raise
        return math.nan
    return float(p) if p < 2**1023 else math.inf


def _bias(adaptivity: Adaptivity, X: FloatArray, L: float) -> float:
    """b(F) under the law of the observed patterns, NaN if unknown; an undeclared degree is found."""
    d, M = X.shape[1], np.isnan(X)
    if adaptivity.has_structure() or type(adaptivity).columns is not Adaptivity.columns:
        return math.nan
    kind = type(adaptivity)  # a subclass may have another basis than its parent
    declared = hasattr(adaptivity, "degree") and not isinstance(adaptivity, Polynomial)
    if kind in KNOWN_BIAS or declared or "degree" in vars(kind):
        return bias_bound(adaptivity, d, L, missing=M)
    if d > ALL_PATTERNS:
        return math.nan
    contained = [t for t in range(d + 1) if contains_polynomials(adaptivity, d, t, intercept=True)]
    # f = 0 is in every class: the bias is at most L^2, even if constant weights are not in the class
    return bias_bound(("polynomial", max(contained)), d, L, missing=M) if contained else L * L
