"""Missingness mechanisms with structure across rows or columns, as in panels, surveys and sensor networks.

    Blocks             rectangles of adjacent rows and columns are missing together, each with probability p      (MCAR)
    Dropout            columns are in the order of time; a row that drops out at column j lacks all later ones, and
                       does so with the probability sigmoid(a + strength z_{i,j-1}), after the last value seen     (MAR)
    PanelAttrition     rows are in the order of units and waves; a unit that leaves lacks all later waves         (MCAR)
    QuantileAtRandom   missing only in the rows with the largest values of given columns, which are never missing  (MAR)
    LatentFactor       M_ij ~ Bernoulli(sigmoid(a_j + strength s_ij)), s_ij the factors of row i, which are the leading
                       principal components of the values, times loadings drawn for each column                   (NMAR)

These are among the patterns of MissBench (Feitelberg et al. 2025, arXiv 2510.02625) and of the literature on panels;
definitions differ in details. The intercepts a, and the probabilities to leave, make the expected share of missing
values equal to p: over all columns together for ``Dropout`` and ``PanelAttrition``, else of each column.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import expit

from admiss.datasets.mechanisms.single import (
    Rule,
    check_fraction,
    column_numbers,
    given_columns,
    order_of_values,
    probabilities,
    standardise,
)
from admiss.estimator.validation import positive_integer
from formulations.arrays import BoolArray, FloatArray


@dataclass(frozen=True)
class Blocks(Rule):
    """Rectangles of adjacent rows and columns that are missing together (MCAR).

    Attributes
    ----------
    fraction : float
        Probability of each rectangle.
    rows, columns : int
        Its numbers of rows and columns; at the ends they are smaller.

    Examples
    --------
    >>> M = Blocks(0.5, rows=10, columns=2)(np.zeros((1000, 4)), random_state=0)
    >>> bool((M[:10, 0] == M[0, 0]).all()), bool((M[:, 0] == M[:, 1]).all()), bool((M[:, 1] == M[:, 2]).all())
    (True, True, False)
    """

    fraction: float
    rows: int = 20
    columns: int = 2

    def missing(self, X: FloatArray, rng: np.random.RandomState) -> BoolArray:
        check_fraction(self.fraction)
        sizes = positive_integer("rows", self.rows), positive_integer("columns", self.columns)
        block = [np.arange(n) // size for n, size in zip(X.shape, sizes, strict=True)]
        shape = [part[-1] + 1 if len(part) else 0 for part in block]
        return np.asarray((rng.uniform(size=shape) < self.fraction)[np.ix_(*block)])


@dataclass(frozen=True)
class Dropout(Rule):
    """Rows that lack all columns from some point on (monotone missingness; MAR if ``strength`` is not 0).

    Attributes
    ----------
    fraction : float
        Expected share of missing values, over all columns; later columns have more of them.
    strength : float
        Increase of the log-odds of dropping out per standard deviation of the column before.

    Examples
    --------
    >>> X = np.random.RandomState(0).normal(size=(1000, 5))
    >>> M = Dropout(0.4)(X, random_state=0)
    >>> bool((M[:, 1:] >= M[:, :-1]).all())
    True
    """

    fraction: float
    strength: float = 1.0

    def missing(self, X: FloatArray, rng: np.random.RandomState) -> BoolArray:
        check_fraction(self.fraction)
        if not np.isfinite(self.strength):
            raise ValueError(f"strength must be a finite number, not {self.strength!r}.")
        before, observed = np.nan_to_num(standardise(X))[:, :-1], ~np.isnan(X)
        score = self.strength * np.hstack([np.zeros((len(X), 1)), before])

        def share(a: float) -> float:
            return float(1.0 - np.cumprod(expit(-(a + score)), axis=1)[observed].mean())

        reach = 700.0 + np.abs(score).max(initial=0.0)  # probabilities of 0 and 1 in double precision
        a = _solution(share, self.fraction, -reach, reach) if observed.any() else 0.0
        return np.logical_or.accumulate(rng.uniform(size=X.shape) < expit(a + score), axis=1)


@dataclass(frozen=True)
class PanelAttrition(Rule):
    """Units that leave a panel: all of their later rows are missing (MCAR).

    Attributes
    ----------
    fraction : float
        Expected share of missing rows. Every unit is there in its first wave, so that it is at most 1 - 1 / waves.
    waves : int
        Number of adjacent rows that belong to one unit, in the order of time.
    kept : sequence of int, or mask
        Columns that are known at all waves.

    Examples
    --------
    >>> M = PanelAttrition(0.3, waves=4)(np.zeros((1000, 2)), random_state=0)
    >>> bool(M[::4].any()), bool((M[3::4] >= M[2::4]).all())
    (False, True)
    """

    fraction: float
    waves: int = 5
    kept: ArrayLike = ()

    def missing(self, X: FloatArray, rng: np.random.RandomState) -> BoolArray:
        check_fraction(self.fraction)
        rows = np.arange(len(X))
        unit, wave = np.divmod(rows, positive_integer("waves", self.waves))
        largest = float(np.mean(wave > 0))
        if self.fraction > largest:
            raise ValueError(f"At most the share {largest:.3g} of {len(X)} rows can leave in {self.waves} waves.")
        leave = _solution(lambda p: float(1.0 - np.mean((1.0 - p) ** wave)), self.fraction, 0.0, 1.0)
        gone = rng.uniform(size=unit[-1] + 1)[unit] >= (1.0 - leave) ** wave
        M = np.repeat(gone[:, None], X.shape[1], axis=1)
        M[:, column_numbers(self.kept, X.shape[1])] = False
        return M


@dataclass(frozen=True)
class QuantileAtRandom(Rule):
    """Missing only in rows with large values of given columns, which are never missing (MAR by quantile).

    Attributes
    ----------
    fraction : float
        Share of missing values in each of the other columns, at most ``share``.
    given : sequence of int, or mask
        The columns whose standardised mean decides.
    share : float
        Share of the rows, those with the largest mean, in which values can be missing. Ties are broken at random.

    Examples
    --------
    >>> X = np.random.RandomState(0).normal(size=(1000, 3))
    >>> M = QuantileAtRandom(0.3, given=[0], share=0.5)(X, random_state=0)
    >>> bool(M[X[:, 0] < np.median(X[:, 0])].any()), bool(M[:, 0].any())
    (False, False)
    """

    fraction: float
    given: ArrayLike = (0,)
    share: float = 0.5

    def missing(self, X: FloatArray, rng: np.random.RandomState) -> BoolArray:
        check_fraction(self.fraction)
        check_fraction(self.share)
        rows = math.ceil(self.share * len(X) - 1e-9)
        if self.fraction > self.share:
            raise ValueError(f"fraction must be at most share={self.share!r}, not {self.fraction!r}.")
        given = given_columns(type(self).__name__, self.given, X)
        score = standardise(X[:, given]).mean(axis=1)
        allowed = np.zeros(len(X), dtype=bool)
        allowed[order_of_values(score, rng)[len(X) - rows :]] = True
        chance = min(1.0, self.fraction * len(X) / rows) if rows else 0.0
        M = allowed[:, None] & (rng.uniform(size=X.shape) < chance)
        M[:, given] = False
        return M


@dataclass(frozen=True)
class LatentFactor(Rule):
    """Missing with a probability that depends on factors behind all values of a row (NMAR).

    Attributes
    ----------
    fraction : float
        Mean probability, in each column.
    rank : int
        Number of factors: the leading principal components of the standardised values, of variance 1.
    strength : float
        Standard deviation of the log-odds over rows.

    Examples
    --------
    >>> X = np.random.RandomState(0).normal(size=(1000, 1)) * np.ones(3)
    >>> M = LatentFactor(0.3, rank=1, strength=5.0)(X, random_state=0)
    >>> bool(abs(np.corrcoef(M[:, 0], X[:, 0])[0, 1]) > 0.5)
    True
    """

    fraction: float
    rank: int = 2
    strength: float = 2.0

    def missing(self, X: FloatArray, rng: np.random.RandomState) -> BoolArray:
        check_fraction(self.fraction)
        Z = np.nan_to_num(standardise(X))
        rank = positive_integer("rank", self.rank)
        factors = standardise(np.linalg.svd(Z, full_matrices=False)[0][:, :rank])
        loadings = rng.normal(size=(factors.shape[1], X.shape[1]))
        loadings /= np.maximum(np.linalg.norm(loadings, axis=0), np.finfo(float).tiny)
        # the sign of a principal component is arbitrary
        score = np.where(np.isnan(X), np.nan, _with_fixed_signs(factors) @ loadings)
        return np.asarray(rng.uniform(size=X.shape) < probabilities(score, self.fraction, self.strength))


def _with_fixed_signs(factors: FloatArray) -> FloatArray:
    """Components whose entry of largest size is positive."""
    largest = np.take_along_axis(factors, np.abs(factors).argmax(axis=0)[None, :], axis=0)
    return factors * np.where(largest < 0, -1.0, 1.0)


def _solution(share: Callable[[float], float], fraction: float, low: float, high: float) -> float:
    """Where an increasing share equals a fraction."""
    if fraction in (0.0, share(high)):
        return low if fraction == 0.0 else high
    return float(brentq(lambda a: share(a) - fraction, low, high))
