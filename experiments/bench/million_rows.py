"""One fit on a million rows."""

import time
import tracemalloc
from typing import Any

import numpy as np
from sklearn.linear_model import Ridge

from admiss import AdaptiveRegressor

PAIRS = 5


def large_fit() -> dict[str, Any]:
    """One fit of the affine intercept on a million rows against scikit-learn's Ridge on (x, m)."""
    rng = np.random.default_rng(0)
    n, d = 10**6, 20
    X = rng.normal(size=(n, d))
    y = X @ rng.normal(size=d) + rng.normal(size=n)
    for rows in range(0, n, 10**5):
        X[rows : rows + 10**5][rng.uniform(size=(10**5, d)) < 0.3] = np.nan
    stacked = np.hstack([np.nan_to_num(X), np.isnan(X)])
    AdaptiveRegressor().fit(X[:1000], y[:1000])  # compiles
    ours, theirs = [], []
    for _ in range(PAIRS):
        start = time.process_time()
        AdaptiveRegressor().fit(X, y)
        ours.append(time.process_time() - start)
        start = time.process_time()
        Ridge().fit(stacked, y)
        theirs.append(time.process_time() - start)
    del stacked
    tracemalloc.start()
    AdaptiveRegressor().fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return {
        "admiss": float(np.median(ours)),
        "ridge": float(np.median(theirs)),
        "ratio": float(np.median(np.divide(ours, theirs))),
        "memory": peak / X.nbytes,
    }
