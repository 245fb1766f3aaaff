"""Rows by missingness pattern whose target depends on the pattern."""

import numpy as np

from formulations.leaves.cost import PatternRows


def random_rows(rng, n, d, missing=(0.2, 0.6)):
    """Weighted rows with zero-imputed features; the share of missing values is drawn from the range ``missing``."""
    X = rng.normal(size=(n, d))
    M = rng.uniform(size=(n, d)) < rng.uniform(*missing)
    y = X @ rng.normal(size=d) + (M[:, 0] ^ M[:, -1]) * rng.normal() * X.sum(axis=1) + rng.normal(size=n)
    patterns, codes = np.unique(M, axis=0, return_inverse=True)
    return PatternRows.of(patterns, codes.ravel(), np.where(M, 0.0, X), y, rng.uniform(0.5, 1.5, size=n))
