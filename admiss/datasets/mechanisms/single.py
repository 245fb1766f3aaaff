"""Basic missingness mechanisms.

A mechanism is called with a matrix and a random state and returns the 0/1 matrix M of missing values. It never sees the
target; any function with this signature will do. Those below accept any matrix or data frame of numbers. Values that
are NaN already stay missing, and rates are shares of the others.

    CompletelyAtRandom   M_ij ~ Bernoulli(p)                                                                    (MCAR)
    AtRandom             M_ij ~ Bernoulli(sigmoid(a + strength s_i)), s_i the standardised mean of given columns,
                         which are never missing                                                                 (MAR)
    SelfMasking          M_ij ~ Bernoulli(sigmoid(a_j + strength z_ij)), z_j = x_j standardised                   (NMAR)
    Censoring            M_ij = 1 for the share p of the largest values of column j, the smallest, or both        (NMAR)

The intercepts a make the mean probability over the rows equal to p.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import expit
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from admiss.estimator.scaling import observed_moments, observed_scale
from admiss.estimator.validation import read_features
from formulations.arrays import BoolArray, FloatArray, IntArray

Mechanism = Callable[[FloatArray, np.random.RandomState], BoolArray]

SIDES = ("above", "below", "both", "coin")


class Rule(ABC):
    """Base of the mechanisms: validates the matrix and keeps missing values missing."""

    def __call__(self, X: Any, random_state: int | np.random.RandomState | None = None) -> BoolArray:
        matrix = read_features(BaseEstimator(), X, reset=True)
        return self.missing(matrix, check_random_state(random_state)) | np.isnan(matrix)

    @abstractmethod
    def missing(self, X: FloatArray, rng: np.random.RandomState) -> BoolArray:
        """The 0/1 matrix of missing values."""


@dataclass(frozen=True)
class CompletelyAtRandom(Rule):
    """M_ij ~ Bernoulli(fraction), independently (MCAR).

    Attributes
    ----------
    fraction : float
        The probability.

    Examples
    --------
    >>> X = np.random.RandomState(0).normal(size=(1000, 2))
    >>> bool(abs(CompletelyAtRandom(0.3)(X, random_state=0).mean() - 0.3) < 0.05)
    True
    """

    fraction: float

    @property
    def independent_rates(self) -> float:
        """P(M_j = 1) for all j, whatever the other M_k and X: a bound can take it as the law of M."""
        return self.fraction

    def missing(self, X: FloatArray, rng: np.random.RandomState) -> BoolArray:
        check_fraction(self.fraction)
        return rng.uniform(size=X.shape) < self.fraction


@dataclass(frozen=True)
class AtRandom(Rule):
    """Missing with a probability that depends on columns that are never missing (MAR).

    Attributes
    ----------
    fraction : float
        Mean probability, in each of the other columns.
    given : sequence of int, or mask
        The columns that determine the probability.
    strength : float
        Increase of the log-odds per standard deviation of their mean; if negative, small values hide.

    Examples
    --------
    >>> X = np.random.RandomState(0).normal(size=(1000, 2))
    >>> M = AtRandom(0.3, given=[0])(X, random_state=0)
    >>> bool(M[:, 0].any()), bool(X[M[:, 1], 0].mean() > 0.5)  # large values of x0 hide x1
    (False, True)
    """

    fraction: float
    given: ArrayLike = (0,)
    strength: float = 2.0

    def missing(self, X: FloatArray, rng: np.random.RandomState) -> BoolArray:
        check_fraction(self.fraction)
        given = given_columns(type(self).__name__, self.given, X)
        score = standardise(standardise(X[:, given]).mean(axis=1, keepdims=True))
        M = rng.uniform(size=X.shape) < probabilities(score, self.fraction, self.strength)
        M[:, given] = False
        return M


@dataclass(frozen=True)
class SelfMasking(Rule):
    """Missing with a probability that depends on the value itself (NMAR).

    Attributes
    ----------
    fraction : float
        Mean probability, in each column.
    strength : float
        Increase of the log-odds per standard deviation; if negative, small values hide.

    Examples
    --------
    >>> X = np.random.RandomState(0).normal(size=(1000, 2))
    >>> M = SelfMasking(0.3)(X, random_state=0)
    >>> bool(X[M].mean() > 0.5)  # large values hide themselves
    True
    """

    fraction: float
    strength: float = 2.0

    def missing(self, X: FloatArray, rng: np.random.RandomState) -> BoolArray:
        check_fraction(self.fraction)
        return rng.uniform(size=X.shape) < probabilities(standardise(X), self.fraction, self.strength)


@dataclass(frozen=True)
class Censoring(Rule):
    """A share ``fraction`` of the most extreme values of each column is missing (NMAR).

    Attributes
    ----------
    fraction : float
        Share of each column, rounded to a whole number of rows. Ties are broken at random.
    side : {"above", "below", "both", "coin"}
        The largest values, the smallest, half of each, or the largest or smallest by a fair coin for each column (as in
        the code of the paper's authors).

    Examples
    --------
    >>> X = np.random.RandomState(0).normal(size=(1000, 2))
    >>> M = Censoring(0.3)(X, random_state=0)
    >>> M.mean(axis=0).tolist(), bool(X[M[:, 0], 0].min() > X[~M[:, 0], 0].max())
    ([0.3, 0.3], True)
    """

    fraction: float
    side: str = "above"

    def missing(self, X: FloatArray, rng: np.random.RandomState) -> BoolArray:
        check_fraction(self.fraction)
        if self.side not in SIDES:
            raise ValueError(f"Unknown side {self.side!r}: choose one of {', '.join(map(repr, SIDES))}.")
        high = np.full(X.shape[1], self.side != "below")
        if self.side == "coin":
            high = np.asarray(rng.uniform(size=X.shape[1]) < 0.5)
        M = np.zeros(X.shape, dtype=bool)
        for j in range(X.shape[1]):
            rows = np.flatnonzero(~np.isnan(X[:, j]))
            count = round(self.fraction * len(rows))
            ordered = rows[order_of_values(X[rows, j] if high[j] else -X[rows, j], rng)]
            above = count - count // 2 if self.side == "both" else count
            M[ordered[len(rows) - above :], j] = True
            M[ordered[: count - above], j] = True
        return M


def check_fraction(fraction: float) -> None:
    """Raise an error if a number is not between 0 and 1."""
    if not 0 <= fraction <= 1:
        raise ValueError(f"The missing fraction must be between 0 and 1, not {fraction!r}.")


def column_numbers(columns: ArrayLike, d: int) -> IntArray:
    """Indices of columns that are given as integers or as a mask."""
    given = np.atleast_1d(np.asarray(columns))
    if given.dtype == bool and given.shape == (d,):
        return np.flatnonzero(given)
    numbers = given.astype(np.int64)
    if given.dtype == bool or not np.array_equal(numbers, given) or not ((-d <= numbers) & (numbers < d)).all():
        raise ValueError(f"Columns must be numbers from 0 to {d - 1}, or a mask of {d}, not {columns!r}.")
    return numbers % d


def given_columns(mechanism: str, columns: ArrayLike, X: FloatArray) -> IntArray:
    """Indices of the columns on which a mechanism depends, after checks."""
    given = column_numbers(columns, X.shape[1])
    if not 0 < len(given) < X.shape[1]:
        raise ValueError(f"{mechanism} needs at least one given column, and one that is not given.")
    if np.isnan(X[:, given]).any():
        raise ValueError(f"{mechanism} needs given columns without missing values.")
    return given


def standardise(X: FloatArray) -> FloatArray:
    """Columns with mean 0 and standard deviation 1 over their observed values; constant columns are 0."""
    # A column that is never observed has no mean and stays NaN.
    with np.errstate(invalid="ignore"):
        mean, deviation, size, _ = observed_moments(X, np.ones(len(X)))
    scale, is_constant = observed_scale(np.nan_to_num(deviation), size)
    Z = X / scale - np.nan_to_num(mean) / scale
    return np.where(is_constant & ~np.isnan(X), 0.0, Z)


def probabilities(Z: FloatArray, fraction: float, strength: float) -> FloatArray:
    """sigmoid(a_j + strength z_ij), with mean ``fraction`` over the observed rows of each column."""
    if not np.isfinite(strength):
        raise ValueError(f"strength must be a finite number, not {strength!r}.")
    if fraction in (0.0, 1.0):
        return np.full(Z.shape, fraction)
    chance = np.empty(Z.shape)
    for j in range(Z.shape[1]):
        score = strength * Z[:, j]
        known = score[~np.isnan(score)]
        # At the ends all probabilities are below, or above, the fraction.
        centre = np.log(fraction / (1.0 - fraction))
        reach = np.abs(known).max(initial=0.0) + 1.0
        ends = (centre - reach, centre + reach)
        intercept = brentq(lambda a, z: expit(a + z).mean() - fraction, *ends, args=(known,)) if len(known) else centre
        chance[:, j] = expit(intercept + np.nan_to_num(score))
    return chance


def order_of_values(x: FloatArray, rng: np.random.RandomState) -> IntArray:
    """Rows in increasing order of value, ties in random order."""
    if len(np.unique(x)) == len(x):
        return np.asarray(np.argsort(x), dtype=np.int64)
    return np.asarray(np.lexsort((rng.uniform(size=len(x)), x)), dtype=np.int64)
