"""Rounding errors of sums, and sums that are rounded once.

A sum of n products has an error of at most gamma(n) = n u / (1 - n u) times the sum of absolute values, u = 2^-53,
whatever the order of summation (Higham, Accuracy and Stability of Numerical Algorithms, 2002, Section 3.1).
"""

import math

import numpy as np
import scipy.sparse as sp

from formulations.arrays import FloatArray, Matrix

UNIT = 2.0**-53


def gamma(m: float) -> float:
    """Relative error of m successive roundings."""
    return m * UNIT / (1.0 - m * UNIT)


def exact_sum(values: FloatArray, a: FloatArray, b: FloatArray) -> float:
    """sum(values) + a'b, rounded once.

    Examples
    --------
    >>> exact_sum(np.array([1e17, 0.5]), np.array([-1e16, 3.0]), np.array([10.0, 1.0]))
    3.5
    """
    product, error = _two_product(a, b)
    return math.fsum([*values.tolist(), *product.tolist(), *error.tolist()])


def precise_residuals(A: Matrix, y: FloatArray, w: FloatArray) -> FloatArray:
    """y - A w in twice the working precision, column by column, rounded at the end.

    The error is at most u |y - A w| + gamma(2 p)^2 (|y| + |A| |w|), for each row (Ogita, Rump and Oishi, Accurate sum
    and dot product, 2005).
    """
    columns = sp.csc_array(A)
    high, low = y.copy(), np.zeros(len(y))
    for k in np.flatnonzero(w):
        part = slice(columns.indptr[k], columns.indptr[k + 1])
        rows = columns.indices[part]
        before = high[rows]
        product, error = _two_product(columns.data[part], -w[k : k + 1])
        total = before + product
        back = total - before
        low[rows] += ((before - (total - back)) + (product - back)) + error
        high[rows] = total
    return np.asarray(high + low)


def _two_product(a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    """a b and its rounding error (Dekker 1971)."""
    product = a * b
    (a_high, a_low), (b_high, b_low) = _split(a), _split(b)
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


def _split(x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Two numbers of 26 bits each that add up to x."""
    shifted = 134217729.0 * x
    high = shifted - (shifted - x)
    return high, x - high
