"""Blocks of rows, and what statistics of them are made of.

Every part of :class:`admiss.streaming.RowStatistics` reads the same blocks of rows, adds to the same part of other
rows, and is saved as arrays. A part keeps its sums for each fold: the sums of training rows are those of the other
folds.
"""

from dataclasses import dataclass
from typing import Any, Protocol, Self

from formulations.arrays import FloatArray, IntArray

# A part as it is saved.
Arrays = dict[str, Any]


@dataclass(frozen=True)
class Rows:
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

    def block(self, part: slice) -> "Rows":
        """Some of the rows."""
        return Rows(self.X[part], self.y[part], self.s[part], self.fold[part])


@dataclass(frozen=True)
class Shape:
    """Number of features and of folds (1 if there are none)."""

    n_features: int
    n_folds: int


class Part(Protocol):
    """Sums over rows that add up."""

    def update(self, rows: Rows) -> None:
        """Add a block of rows."""

    def merged(self, other: Self) -> Self:
        """The part of the rows of both; neither is changed."""

    def arrays(self) -> Arrays:
        """All sums, by name."""

    def read(self, arrays: Arrays) -> None:
        """Take over sums that `arrays` has returned, in a new part with the same settings."""
