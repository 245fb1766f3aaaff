"""Mechanisms that make values missing.

A mechanism is called with a matrix and a random state and returns the 0/1 matrix M of what is missing. It never sees
the target, and a function of a few lines is one. A value that is NaN already stays missing; rates are shares of the
others.

    CompletelyAtRandom   M_ij ~ Bernoulli(p)                                                                    (MCAR)
    AtRandom             M_ij ~ Bernoulli(sigmoid(a + strength s_i)), s_i the standardised mean of columns that are
                         given and never missing                                                                 (MAR)
    SelfMasking          M_ij ~ Bernoulli(sigmoid(a_j + strength z_ij)), z_j = x_j standardised                   (NMAR)
    Censoring            M_ij = 1 for the share p of the largest values of column j, the smallest, or both        (NMAR)

The intercepts a are such that the mean probability over the rows is p. Mechanisms are built from others:

    Only(mechanism, columns)        in some columns
    Together(mechanism, blocks)     decided on the means of blocks of columns, which are missing together
    Either(mechanisms)              missing by one of them at least
    Adversarial(mechanism)          its patterns, given to those rows where they hide the largest sum of values
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

from admiss.patterns import BoolArray, FloatArray, IntArray
from formulations.adversary import reallocate

Mechanism = Callable[[FloatArray, np.random.RandomState], BoolArray]

SIDES = ("above", "below", "both", "coin")


@dataclass(frozen=True)
class CompletelyAtRandom:
    """M_ij ~ Bernoulli(fraction), independently (MCAR)."""

    fraction: float

    def __call__(self, X: FloatArray, random_state: np.random.RandomState) -> BoolArray:
        _check_fraction(self.fraction)
        return (random_state.uniform(size=X.shape) < self.fraction) | np.isnan(X)


@dataclass(frozen=True)
class AtRandom:
    """Missing with a probability that depends on columns that are never missing (MAR).

    Attributes
    ----------
    fraction : float
        Mean probability, in each of the other columns.
    given : sequence of int
        The columns that decide.
    strength : float
        How much the log-odds grow with one standard deviation of their mean; negative: small values hide.
    """

    fraction: float
    given: Sequence[int] = (0,)
    strength: float = 2.0

    def __call__(self, X: FloatArray, random_state: np.random.RandomState) -> BoolArray:
        _check_fraction(self.fraction)
        given = np.asarray(self.given, dtype=int)
        if len(given) == 0 or np.isnan(X[:, given]).any():
            raise ValueError("AtRandom needs at least one given column, and these without missing values.")
        score = _standardise(_standardise(X[:, given]).mean(axis=1, keepdims=True))
        M = random_state.uniform(size=X.shape) < _probabilities(score, self.fraction, self.strength)
        M[:, given] = False
        return M | np.isnan(X)


@dataclass(frozen=True)
class SelfMasking:
    """Missing with a probability that depends on the value itself (NMAR).

    Attributes
    ----------
    fraction : float
        Mean probability, in each column.
    strength : float
        How much the log-odds grow with one standard deviation; negative: small values hide.
    """

    fraction: float
    strength: float = 2.0

    def __call__(self, X: FloatArray, random_state: np.random.RandomState) -> BoolArray:
        _check_fraction(self.fraction)
        chance = _probabilities(_standardise(X), self.fraction, self.strength)
        return (random_state.uniform(size=X.shape) < chance) | np.isnan(X)


@dataclass(frozen=True)
class Censoring:
    """The most extreme values of each column are missing, a share ``fraction`` of them (NMAR).

    Attributes
    ----------
    fraction : float
        Share of each column, to the nearest whole number of rows. Equal values are told apart at random.
    side : {"above", "below", "both", "coin"}
        Which values: the largest, the smallest, half of each, or as a fair coin says for each column (as in the code of
        the paper's authors).
    """

    fraction: float
    side: str = "above"

    def __call__(self, X: FloatArray, random_state: np.random.RandomState) -> BoolArray:
        _check_fraction(self.fraction)
        if self.side not in SIDES:
            raise ValueError(f"Unknown side {self.side!r}: choose one of {', '.join(map(repr, SIDES))}.")
        high = np.full(X.shape[1], self.side != "below")
        if self.side == "coin":
            high = np.asarray(random_state.uniform(size=X.shape[1]) < 0.5)
        M = np.isnan(X)
        for j in range(X.shape[1]):
            rows = np.flatnonzero(~np.isnan(X[:, j]))
            count = round(self.fraction * len(rows))
            ordered = rows[_order(X[rows, j] if high[j] else -X[rows, j], random_state)]
            above = count - count // 2 if self.side == "both" else count
            M[ordered[len(rows) - above :], j] = True
            M[ordered[: count - above], j] = True
        return M


@dataclass(frozen=True)
class Only:
    """A mechanism in some columns; the others are never missing. It sees all of them.

    Examples
    --------
    >>> X = np.random.RandomState(0).normal(size=(1000, 3))
    >>> Only(Censoring(0.25), columns=[2])(X, np.random.RandomState(0)).mean(axis=0).tolist()
    [0.0, 0.0, 0.25]
    """

    mechanism: Mechanism
    columns: Sequence[int]

    def __call__(self, X: FloatArray, random_state: np.random.RandomState) -> BoolArray:
        allowed = np.zeros(X.shape[1], dtype=bool)
        allowed[np.asarray(self.columns, dtype=int)] = True
        return (self.mechanism(X, random_state) & allowed) | np.isnan(X)


@dataclass(frozen=True)
class Together:
    """Blocks of columns that are missing together.

    Attributes
    ----------
    mechanism : callable
        Called with the means of the standardised columns of each block, one column a block.
    blocks : int or sequence of sequences of int
        The columns of each block, or how many neighbouring columns are one. A column in no block is never missing.

    Examples
    --------
    >>> X = np.random.RandomState(0).normal(size=(1000, 4))
    >>> M = Together(CompletelyAtRandom(0.3), blocks=2)(X, np.random.RandomState(0))
    >>> bool((M[:, 0] == M[:, 1]).all()), bool((M[:, 1] == M[:, 2]).all())
    (True, False)
    """

    mechanism: Mechanism
    blocks: int | Sequence[Sequence[int]] = 2

    def __call__(self, X: FloatArray, random_state: np.random.RandomState) -> BoolArray:
        size, d = self.blocks, X.shape[1]
        if isinstance(size, int) and size < 1:
            raise ValueError(f"blocks must be at least 1, not {size!r}.")
        blocks = [range(j, min(j + size, d)) for j in range(0, d, size)] if isinstance(size, int) else size
        Z = np.nan_to_num(_standardise(X))
        missing = self.mechanism(np.column_stack([Z[:, list(block)].mean(axis=1) for block in blocks]), random_state)
        M = np.isnan(X)
        for k, block in enumerate(blocks):
            M[:, list(block)] |= missing[:, [k]]
        return M


@dataclass(frozen=True)
class Either:
    """Missing by one of several mechanisms at least.

    Examples
    --------
    >>> X = np.random.RandomState(0).normal(size=(1000, 2))
    >>> tails = Either([Censoring(0.1), Censoring(0.1, side="below")])
    >>> tails(X, np.random.RandomState(0)).mean(axis=0).tolist()
    [0.2, 0.2]
    """

    mechanisms: Sequence[Mechanism]

    def __call__(self, X: FloatArray, random_state: np.random.RandomState) -> BoolArray:
        return np.logical_or.reduce([np.isnan(X), *(mechanism(X, random_state) for mechanism in self.mechanisms)])


@dataclass(frozen=True)
class Adversarial:
    """The patterns of a mechanism, reallocated so that the sum of the standardised hidden values is largest.

    A linear program with a variable for each row and distinct pattern: thousands of rows take seconds with tens of
    patterns, such as those of a few blocks.

    Attributes
    ----------
    mechanism : callable
        Where the patterns come from; X must have no missing values.

    Examples
    --------
    >>> X = np.random.RandomState(0).normal(size=(300, 4))
    >>> M = Adversarial(Together(CompletelyAtRandom(0.3)))(X, np.random.RandomState(0))
    >>> bool(X[M].mean() > 0.7 and X[~M].mean() < 0)
    True
    """

    mechanism: Mechanism

    def __call__(self, X: FloatArray, random_state: np.random.RandomState) -> BoolArray:
        return reallocate(_standardise(X), self.mechanism(X, random_state))[0]


NAMED: dict[str, Callable[[float], Mechanism]] = {
    "mcar": CompletelyAtRandom,
    "mar": AtRandom,
    "self_masking": SelfMasking,
    "censoring": Censoring,
    "blocks": lambda fraction: Together(CompletelyAtRandom(fraction)),
}


def resolve_mechanism(mechanism: str | Mechanism, fraction: float) -> Mechanism:
    """The mechanism of a name at a missing fraction, or the callable itself.

    Examples
    --------
    >>> resolve_mechanism("mcar", 0.3)
    CompletelyAtRandom(fraction=0.3)
    """
    if not isinstance(mechanism, str):
        return mechanism
    if mechanism not in NAMED:
        known = ", ".join(map(repr, NAMED))
        raise ValueError(f"Unknown mechanism {mechanism!r}: choose one of {known}, or pass a callable.")
    _check_fraction(fraction)
    return NAMED[mechanism](fraction)


def _check_fraction(fraction: float) -> None:
    if not 0 <= fraction <= 1:
        raise ValueError(f"The missing fraction must be between 0 and 1, not {fraction!r}.")


def _standardise(X: FloatArray) -> FloatArray:
    """Columns with mean 0 and standard deviation 1 over what is observed; a constant column is 0."""
    observed = ~np.isnan(X)
    count = np.maximum(observed.sum(axis=0), 1)
    centred = X - np.where(observed, X, 0.0).sum(axis=0) / count
    spread = np.sqrt((np.where(observed, centred, 0.0) ** 2).sum(axis=0) / count)
    return centred / np.where(spread > 0, spread, 1.0)


def _probabilities(Z: FloatArray, fraction: float, strength: float) -> FloatArray:
    """sigmoid(a_j + strength z_ij) with the mean ``fraction`` over the observed rows of each column."""
    if fraction in (0.0, 1.0):
        return np.full(Z.shape, fraction)
    chance = np.empty(Z.shape)
    for j in range(Z.shape[1]):
        score = strength * Z[:, j]
        known = score[~np.isnan(score)]
        # At the ends every probability is below, or above, the fraction asked for.
        centre = np.log(fraction / (1.0 - fraction))
        reach = np.abs(known).max(initial=0.0) + 1.0
        intercept = brentq(_excess, centre - reach, centre + reach, args=(known, fraction)) if len(known) else centre
        chance[:, j] = expit(intercept + np.nan_to_num(score))
    return chance


def _excess(intercept: float, score: FloatArray, fraction: float) -> float:
    return float(expit(intercept + score).mean() - fraction)


def _order(x: FloatArray, random_state: np.random.RandomState) -> IntArray:
    """Rows by increasing value, those with equal values in random order."""
    if len(np.unique(x)) == len(x):
        return np.asarray(np.argsort(x), dtype=np.int64)
    return np.asarray(np.lexsort((random_state.uniform(size=len(x)), x)), dtype=np.int64)
