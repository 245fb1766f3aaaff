"""Means and scales of observed values."""

import numpy as np

from formulations.arrays import BoolArray, FloatArray
from formulations.jit import compiled


@compiled
def observed_moments(X, s):  # type: ignore[no-untyped-def]
    """Weighted mean, standard deviation, largest size of the observed values of each feature, and whether any is 0."""
    n, d = X.shape
    weight, mean, size = np.zeros(d), np.zeros(d), np.zeros(d)
    has_zero = np.zeros(d, dtype=np.bool_)
    for i in range(n):
        for j in range(d):
            x = X[i, j]
            if not np.isnan(x):
                weight[j] += s[i]
                size[j] = max(size[j], abs(x))
                has_zero[j] |= x == 0.0
    unit = np.where(size > 0.0, size, 1.0)  # sums of x / unit cannot overflow
    for i in range(n):
        for j in range(d):
            if not np.isnan(X[i, j]):
                mean[j] += s[i] * (X[i, j] / unit[j])
    mean /= weight
    variance = np.zeros(d)
    for i in range(n):
        for j in range(d):
            if not np.isnan(X[i, j]):
                variance[j] += s[i] * (X[i, j] / unit[j] - mean[j]) ** 2
    return mean * unit, np.sqrt(variance / weight) * unit, size, has_zero


def observed_scale(deviation: FloatArray, size: FloatArray) -> tuple[FloatArray, BoolArray]:
    """Standard deviations, or the size of the values if they are all equal; and whether they are."""
    is_constant = ~(deviation > 1e-12 * size)
    return np.where(is_constant, np.where(size > 0, size, 1.0), deviation), is_constant


def standardised(X: FloatArray, s: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Features with observed mean 0 and deviation 1, 0 if missing or constant; and the means and scales."""
    mean, deviation, size, _ = observed_moments(X, s)
    scale, is_constant = observed_scale(deviation, size)
    return np.where(np.isnan(X) | is_constant, 0.0, (X - mean) / scale), mean, scale
