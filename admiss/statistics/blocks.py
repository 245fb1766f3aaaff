"""Blocks of rows, the parts of which statistics of them are made, and sums over many blocks.

Every part of :class:`admiss.streaming.RowStatistics` reads the same blocks of rows, adds to the same part of other
rows, and is saved as arrays. A part keeps its sums for each fold: the sums of training rows are those of the other
folds.

A block adds numbers whose own sums have an error of gamma(rows of the block). Between blocks a running sum keeps what
each addition rounds off (Knuth's two-sum), so that the error does not grow with the number of blocks: sums of a billion
rows are as accurate as those of a block.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from admiss.estimator.scaling import centre_of, observed_moments
from formulations.arrays import FloatArray, IntArray
from formulations.leaves.double_double import exactly, two_sum

# A part as it is saved.
Arrays = dict[str, Any]
# Rows whose sums are formed before they are added to a running sum: the error of all sums is gamma of this number.
BLOCK_ROWS = 4096


@dataclass(frozen=True)
class RowBlock:
    """A block of rows of positive weight.

    Attributes
    ----------
    X : array of shape (n, d)
        Features, NaN if missing.
    y : array of shape (n,)
        Target.
    s : array of shape (n,)
        Weights.
    fold : int array of shape (n,)
        The fold in which each row is held out, counted from 0; 0 if there are no folds.
    """

    X: FloatArray
    y: FloatArray
    s: FloatArray
    fold: IntArray

    def __len__(self) -> int:
        return len(self.y)

    def block(self, part: slice) -> "RowBlock":
        """Some of the rows."""
        return RowBlock(self.X[part], self.y[part], self.s[part], self.fold[part])


@dataclass(frozen=True)
class Shape:
    """Number of features and of folds (1 if there are none)."""

    n_features: int
    n_folds: int


class Part(Protocol):
    """Sums over rows that add up."""

    def update(self, rows: RowBlock) -> None:
        """Add a block of rows."""

    def merged(self, other: Self) -> Self:
        """The part of the rows of both; neither is changed."""

    def arrays(self) -> Arrays:
        """All sums, by name."""

    def read(self, arrays: Arrays) -> None:
        """Take over sums that `arrays` has returned, in a new part with the same settings."""


def anchored(anchor: FloatArray, rows: RowBlock, n_rows: int = 256) -> FloatArray:
    """Anchors of the features and of y near the data: of those that have none (NaN) yet, the mean of ``n_rows`` rows.

    It is weighted: next to rows of much larger weight, others hardly move the mean that sums are moved to.

    Examples
    --------
    >>> rows = RowBlock(np.array([[1.0, 2.0], [2.0, 2.0]]), np.array([3.0, 4.0]), np.ones(2), np.zeros(2, dtype=int))
    >>> anchored(np.array([np.nan, 5.0, np.nan]), rows).tolist()
    [1.5, 5.0, 3.5]
    """
    found = anchor.copy()
    for start in range(0, len(rows), n_rows):
        part = rows.block(slice(start, start + n_rows))
        unknown = np.flatnonzero(np.isnan(found))
        if not len(unknown):
            break
        mean, deviation, *_ = observed_moments(np.column_stack([part.X, part.y])[:, unknown], part.s)
        found[unknown] = centre_of(mean, deviation)  # NaN if nothing is observed
    return found


class CompensatedSum:
    """A running sum of arrays of one shape, ``high + low``."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.high, self.low = np.zeros(shape), np.zeros(shape)

    def add(self, index: int, values: FloatArray) -> None:
        """Add to one entry of the first axis."""
        _add(self.high[index].reshape(-1), self.low[index].reshape(-1), np.ascontiguousarray(values).reshape(-1))

    def plus(self, high: FloatArray, low: FloatArray) -> "CompensatedSum":
        """A new sum, with another one added."""
        found = CompensatedSum(self.high.shape)
        found.high[...], found.low[...] = self.high, self.low
        for values in (high, low):
            _add(found.high.reshape(-1), found.low.reshape(-1), np.ascontiguousarray(values).reshape(-1))
        return found

    @property
    def value(self) -> FloatArray:
        """The sum, rounded once."""
        return self.high + self.low


@exactly
def _add(high, low, values):  # type: ignore[no-untyped-def]
    for i in range(len(high)):
        high[i], rest = two_sum(high[i], values[i])
        low[i] += rest


class NamedSums:
    """A part that is saved by the names of its attributes: plain arrays, and compensated sums."""

    plain: ClassVar[tuple[str, ...]]
    compensated: ClassVar[tuple[str, ...]]

    def arrays(self) -> Arrays:
        """All sums, by name."""
        found: Arrays = {name: np.asarray(getattr(self, name)) for name in self.plain}
        for name in self.compensated:
            total = getattr(self, name)
            found |= {f"{name}_high": total.high, f"{name}_low": total.low}
        return found

    def read(self, arrays: Arrays) -> None:
        """Take over saved sums."""
        for name in self.plain:
            setattr(self, name, arrays[name])
        for name in self.compensated:
            total = getattr(self, name)
            total.high, total.low = arrays[f"{name}_high"], arrays[f"{name}_low"]
