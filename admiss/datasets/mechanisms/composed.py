"""Missingness mechanisms built from others.

Only(mechanism, columns)        restricted to some columns
Together(mechanism, blocks)     applied to the means of blocks of columns, which are missing together
Either(mechanisms)              missing by at least one of them
Adversarial(mechanism)          its patterns, permuted over the rows to hide the largest sum of values
"""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from admiss.datasets.mechanisms.single import (
    AtRandom,
    Censoring,
    CompletelyAtRandom,
    Mechanism,
    Rule,
    SelfMasking,
    check_fraction,
    column_numbers,
    standardise,
)
from admiss.patterns import PatternTable
from formulations.adversary import reallocate
from formulations.arrays import BoolArray, FloatArray

# Pairs of a row and a pattern; beyond this the reallocation would take many minutes and gigabytes.
LARGEST_REALLOCATION = 2 * 10**6


@dataclass(frozen=True)
class Only(Rule):
    """A mechanism that sees all columns but removes values from some of them only.

    Attributes
    ----------
    mechanism : callable
    columns : sequence of int, or mask

    Examples
    --------
    >>> X = np.random.RandomState(0).normal(size=(1000, 3))
    >>> Only(Censoring(0.25), columns=[2])(X, random_state=0).mean(axis=0).tolist()
    [0.0, 0.0, 0.25]
    """

    mechanism: Mechanism
    columns: ArrayLike

    def missing(self, X: FloatArray, rng: np.random.RandomState) -> BoolArray:
        allowed = np.zeros(X.shape[1], dtype=bool)
        allowed[column_numbers(self.columns, X.shape[1])] = True
        return self.mechanism(X, rng) & allowed


@dataclass(frozen=True)
class Together(Rule):
    """Blocks of columns that are missing together.

    Attributes
    ----------
    mechanism : callable
        Called with the means of the standardised columns of each block, one column per block.
    blocks : int or sequence of sequences of int
        The columns of each block, or the number of adjacent columns in a block. Columns outside of all blocks are never
        missing.

    Examples
    --------
    >>> X = np.random.RandomState(0).normal(size=(1000, 4))
    >>> M = Together(CompletelyAtRandom(0.3), blocks=2)(X, random_state=0)
    >>> bool((M[:, 0] == M[:, 1]).all()), bool((M[:, 1] == M[:, 2]).all())
    (True, False)
    """

    mechanism: Mechanism
    blocks: int | Sequence[ArrayLike] = 2

    def missing(self, X: FloatArray, rng: np.random.RandomState) -> BoolArray:
        d = X.shape[1]
        if isinstance(self.blocks, int | np.integer):
            size = int(self.blocks)
            if size < 1:
                raise ValueError(f"blocks must be at least 1, not {size!r}.")
            blocks = [np.arange(j, min(j + size, d)) for j in range(0, d, size)]
        else:
            blocks = [column_numbers(block, d) for block in self.blocks]
        Z = np.nan_to_num(standardise(X))
        together = self.mechanism(np.column_stack([Z[:, block].mean(axis=1) for block in blocks]), rng)
        M = np.zeros(X.shape, dtype=bool)
        for k, block in enumerate(blocks):
            M[:, block] |= together[:, [k]]
        return M


@dataclass(frozen=True)
class Either(Rule):
    """Missing by at least one of several mechanisms.

    Attributes
    ----------
    mechanisms : sequence of mechanisms
        Objects of this module, or functions of X and a random state.

    Examples
    --------
    >>> X = np.random.RandomState(0).normal(size=(1000, 2))
    >>> tails = Either([Censoring(0.1), Censoring(0.1, side="below")])
    >>> tails(X, random_state=0).mean(axis=0).tolist()
    [0.2, 0.2]
    """

    mechanisms: Sequence[Mechanism]

    def missing(self, X: FloatArray, rng: np.random.RandomState) -> BoolArray:
        return np.logical_or.reduce([np.isnan(X), *(mechanism(X, rng) for mechanism in self.mechanisms)])


@dataclass(frozen=True)
class Adversarial(Rule):
    """The patterns of a mechanism, reallocated to maximise the sum of the standardised hidden values.

    A linear program with one variable per row and distinct pattern: thousands of rows take seconds with tens of
    patterns, such as those of a few blocks.

    Attributes
    ----------
    mechanism : callable
        The source of the patterns; X must have no missing values.

    Examples
    --------
    >>> X = np.random.RandomState(0).normal(size=(300, 4))
    >>> M = Adversarial(Together(CompletelyAtRandom(0.3)))(X, random_state=0)
    >>> bool(X[M].mean() > 0.7 and X[~M].mean() < 0)
    True
    """

    mechanism: Mechanism

    def missing(self, X: FloatArray, rng: np.random.RandomState) -> BoolArray:
        return reallocated(standardise(X), self.mechanism(X, rng))


def reallocated(Z: FloatArray, M: BoolArray) -> BoolArray:
    """The patterns M, permuted over the rows to hide the largest sum of Z."""
    pairs = len(Z) * len(PatternTable.of(M).patterns)
    if pairs > LARGEST_REALLOCATION:
        raise ValueError(
            f"The reallocation has {pairs:,} pairs of rows and patterns, more than {LARGEST_REALLOCATION:,}: "
            "use fewer rows, or a mechanism with fewer patterns, such as blocks of columns."
        )
    found, certificate = reallocate(Z, M)
    if certificate.status == "interrupted":  # the incumbent is not optimal
        raise KeyboardInterrupt
    if certificate.status != "optimal":
        warnings.warn(
            f"The reallocation may be suboptimal by {certificate.relative_gap:.1e}: {certificate.status}.",
            stacklevel=2,
        )
    return found


NAMED: dict[str, Callable[[float], Mechanism]] = {
    "mcar": CompletelyAtRandom,
    "mar": AtRandom,
    "self_masking": SelfMasking,
    "censoring": Censoring,
    "blocks": lambda fraction: Together(CompletelyAtRandom(fraction)),
}


def resolve_mechanism(mechanism: str | Mechanism, fraction: float) -> Mechanism:
    """The named mechanism with a missing fraction, or the callable itself.

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
    check_fraction(fraction)
    return NAMED[mechanism](fraction)
