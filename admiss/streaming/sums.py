"""Sums over many blocks that are exact to rounding: double-double across blocks.

A block adds numbers whose own sums have an error of gamma(rows of the block). Between blocks the running sum keeps what
each addition rounds off (Knuth's two-sum), so that the error does not grow with the number of blocks: sums of a billion
rows are as accurate as those of a block.
"""

import numpy as np

from formulations.arrays import FloatArray
from formulations.leaves.double_double import exactly, two_sum


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
