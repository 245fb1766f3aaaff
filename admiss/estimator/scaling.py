"""Means and scales of observed values, and the origin and the units in which features enter a model."""

import numpy as np

from formulations.arrays import BoolArray, FloatArray
from formulations.jit import compiled


def observed_moments(X: FloatArray, s: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, BoolArray]:
    """Weighted mean, standard deviation, largest size of the observed values of each feature, and whether any is 0.

    Thresholds of semi-synthetic data depend on the last digits: another order of the sums makes other instances.
    """
    d = X.shape[1]
    sums, has_zero = np.zeros((7, d)), np.zeros(d, dtype=bool)
    low, high, unit, mean, deviation, size = sums[1:]
    low[:] = np.inf
    high[:] = -np.inf
    unit[:] = 1.0
    _write_moments(np.ascontiguousarray(X), s, *sums, has_zero)
    return mean, deviation, size, has_zero


@compiled
def _write_moments(X, s, weight, low, high, unit, mean, deviation, size, has_zero):  # type: ignore[no-untyped-def]
    n, d = X.shape
    for i in range(n):
        for j in range(d):
            x = X[i, j]
            if not np.isnan(x):
                weight[j] += s[i]
                low[j], high[j] = min(low[j], x), max(high[j], x)
                has_zero[j] |= x == 0.0
    for j in range(d):
        if weight[j] > 0.0:
            size[j] = max(abs(low[j]), abs(high[j]))
        if size[j] > 0.0:
            unit[j] = size[j]  # sums of x / unit cannot overflow
    for i in range(n):
        for j in range(d):
            if not np.isnan(X[i, j]):
                mean[j] += s[i] * (X[i, j] / unit[j])
    for j in range(d):
        mean[j] /= weight[j]
    for i in range(n):
        for j in range(d):
            if not np.isnan(X[i, j]):
                deviation[j] += s[i] * (X[i, j] / unit[j] - mean[j]) ** 2
    for j in range(d):
        is_constant = low[j] == high[j]  # exactly, whatever the rounding of the sums
        mean[j] = low[j] if is_constant else mean[j] * unit[j]
        deviation[j] = 0.0 if is_constant else np.sqrt(deviation[j] / weight[j]) * unit[j]


def observed_scale(deviation: FloatArray, size: FloatArray) -> tuple[FloatArray, BoolArray]:
    """Standard deviations, or the size of the values if they are all equal; and whether they are.

    Values below the normal floating-point numbers, by which nothing can be divided, count as equal and of size 1.
    """
    smallest = np.finfo(float).tiny
    is_constant = ~(deviation > np.maximum(1e-12 * size, smallest))
    return np.where(is_constant, np.where(size > smallest, size, 1.0), deviation), is_constant


def centre_of(mean: FloatArray, deviation: FloatArray) -> FloatArray:
    """The means, rounded to 2^-36 of the standard deviations; the value itself if all are equal.

    Differences of numbers with few digits (counts, indicators) are then exact, so that columns which depend on each
    other still do.

    Examples
    --------
    >>> centre_of(np.array([1 / 3, 0.1]), np.array([1.0, 0.0])).tolist() == [round(2**36 / 3) / 2**36, 0.1]
    True
    """
    grid = np.maximum(power_of_two(deviation) * 2.0**-36, 2.0**-1074)
    return np.where(deviation > 0, np.round(mean / grid) * grid, mean)


def power_of_two(size: FloatArray) -> FloatArray:
    """The power of 2 next to each number, in ratio; 1 for 0."""
    return np.exp2(np.round(np.log2(np.where(size > 0, size, 1.0))))


def standardised(X: FloatArray, s: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Features with observed mean 0 and deviation 1, 0 if missing or constant; and the means and scales."""
    mean, deviation, size, _ = observed_moments(X, s)
    scale, is_constant = observed_scale(deviation, size)
    return np.where(np.isnan(X) | is_constant, 0.0, (X - mean) / scale), mean, scale
