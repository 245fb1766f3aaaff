"""Sums that are rounded once, against rational arithmetic."""

from fractions import Fraction

import numpy as np

from formulations.rounding import exact_sum


def test_sums_are_rounded_once():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 50)) * 10.0 ** rng.integers(-8, 8, size=(2, 50))
    values = np.array([1e17, -1e17, 0.1])
    exact = sum(map(Fraction, values)) + sum(Fraction(x) * Fraction(y) for x, y in zip(a, b, strict=True))
    assert exact_sum(values, a, b) == float(exact)
