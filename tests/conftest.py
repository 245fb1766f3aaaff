"""Data that several tests share."""

from collections.abc import Callable

import numpy as np
import pytest


@pytest.fixture
def make_rows() -> Callable[..., tuple[np.ndarray, np.ndarray]]:
    """Rows with missing values whose target depends on the values and on what is missing."""

    def make(n: int = 120, d: int = 3, fraction: float = 0.3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng(seed)
        X = 1.0 + rng.normal(size=(n, d)) @ rng.normal(size=(d, d))
        y = 2.0 + X @ np.linspace(1.0, -1.0, d) + 0.5 * rng.normal(size=n)
        M = rng.uniform(size=X.shape) < fraction
        M[M.all(axis=1), 0] = False
        return np.where(M, np.nan, X), y + M @ np.linspace(0.5, 1.5, d)

    return make
