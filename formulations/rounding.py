"""The unit roundoff, rounding errors of sums, and sums that are rounded once.

A sum of n products has an error of at most gamma(n) = n u / (1 - n u) times the sum of absolute values, u = 2^-53,
whatever the order of summation (Higham, Accuracy and Stability of Numerical Algorithms, 2002, Section 3.1).
"""

import math

from formulations.arrays import FloatArray

# The unit roundoff of doubles: half the distance from 1 to the next number.
UNIT = 2.0**-53
# A pivot of a factorisation below this share of its diagonal entry counts as 0: what rounding may leave of the variance
# of a column that depends linearly on others, 45,000 eps.
PIVOT_TOLERANCE = 1e-11


def gamma(m: float) -> float:
    """Relative error of m successive roundings."""
    return m * UNIT / (1.0 - m * UNIT)


def exact_sum(values: FloatArray, a: FloatArray, b: FloatArray) -> float:
    """sum(values) + a'b, rounded once.

    Examples
    --------
    >>> import numpy as np
    >>> exact_sum(np.array([1e17, 0.5]), np.array([-1e16, 3.0]), np.array([10.0, 1.0]))
    3.5
    """
    product, error = _two_product(a, b)
    return math.fsum([*values.tolist(), *product.tolist(), *error.tolist()])


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
