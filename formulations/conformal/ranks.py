"""Levels as exact numbers, and the order statistic of split conformal prediction.

A level such as 0.9 is the decimal number that was typed, not its neighbour in binary: with 99 scores the rank is 90,
and no rounding makes it 91.
"""

from fractions import Fraction

import numpy as np

from formulations.arrays import FloatArray


def miscoverage(level: float) -> float:
    """a = 1 - level, correctly rounded.

    Examples
    --------
    >>> 1 - 0.9, miscoverage(0.9)
    (0.09999999999999998, 0.1)
    """
    return float(1 - _exact(level))


def conformal_rank(n: int, level: float) -> int:
    """The smallest whole number k >= (n + 1) level.

    Examples
    --------
    >>> conformal_rank(99, 0.9), conformal_rank(100, 0.9), conformal_rank(8, 0.9)
    (90, 91, 9)
    """
    return -int(-(n + 1) * _exact(level) // 1)


def order_threshold(scores: FloatArray, level: float) -> float:
    """The score of rank ``conformal_rank``: the threshold of split conformal prediction, infinite if there is none.

    Examples
    --------
    >>> order_threshold(np.array([3.0, 1.0, 2.0]), 0.75), order_threshold(np.array([3.0, 1.0, 2.0]), 0.9)
    (3.0, inf)
    """
    rank = conformal_rank(len(scores), level)
    return float(np.partition(scores, rank - 1)[rank - 1]) if rank <= len(scores) else np.inf


def _exact(level: float) -> Fraction:
    return Fraction(repr(float(level)))
