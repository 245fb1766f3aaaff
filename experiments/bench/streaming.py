"""Statistics of rows in memory, and fits by them, beside scikit-learn and glum.

A million rows of 20 features, 30 % of the values missing completely at random:

* one pass of statistics, for affine intercepts and for affine weights, without folds and with 5 folds;
* ``AdaptiveRegressor`` and ``AdaptiveRegressorCV`` on affine intercepts, and what follows the pass:
  ``AdaptiveRegressorCV.fit_statistics``;
* ``Ridge``, glum's ridge and ``SGDRegressor.partial_fit`` (one pass in blocks of 10,000 rows, and five) on standardised
  (x, m) with 0 for missing. SGD is compared by how far its risk lies above the least one.

All times are CPU nanoseconds per row of one thread, the least of a few, after a first call that compiles.
"""

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import Ridge, SGDRegressor

from admiss import AdaptiveRegressor, AdaptiveRegressorCV
from admiss.streaming import HashFolds, RowStatistics
from experiments.bench.records import footer, least_seconds, measured, table, timed
from formulations.arrays import FloatArray

# Rows per block of SGD, and for which patterns are drawn at a time.
BLOCK = 10_000


def run(folder: Path, *, quick: bool = False) -> str:
    """Run the missing measurements, and return the report."""
    n = 20_000 if quick else 10**6
    measures = {"statistics": statistics, "fits": fits, "peers": peers}
    records = measured(folder, {f"{name}-{n}": partial(measure, n) for name, measure in measures.items()})
    lines = [[what, _shown(value)] for record in records.values() for what, value in record.items() if what != "memory"]
    words = "CPU ns per row of one thread, least of 5 (SGD: one run)"
    return table([f"{n:,} rows of 20 features", "ns per row"], lines, f"{words}; {footer()}")


def _shown(value: float | list[float]) -> str:
    """Nanoseconds, and for SGD the excess of the risk."""
    if isinstance(value, list):
        return f"{value[0]:,.0f} (risk {100 * value[1]:.3g} % above the least)"
    return f"{value:,.0f}"


def rows(n: int) -> tuple[FloatArray, FloatArray]:
    """Correlated features of which 30 % are missing, and a linear target."""
    rng = np.random.default_rng(2001)
    X = rng.normal(size=(n, 20)) @ (np.eye(20) + 0.2 * rng.normal(size=(20, 20)))
    y = X @ rng.normal(size=20) + rng.normal(size=n)
    for start in range(0, n, BLOCK):
        X[start : start + BLOCK][rng.random((min(BLOCK, n - start), 20)) < 0.3] = np.nan
    return X, y


def statistics(n: int) -> dict[str, Any]:
    """Passes over the rows; affine weights on a tenth of them."""
    X, y = rows(n)
    part = slice(0, max(BLOCK, n // 10))
    found = {}
    for folds in (None, HashFolds(5)):
        words = "" if folds is None else ", 5 folds"
        for adaptivity, own in (("affine_intercept", slice(None)), ("affine", part)):
            settings: dict[str, Any] = {"adaptivity": adaptivity, "tree_depth": None, "folds": folds}
            collect = partial(RowStatistics.of, X[own], y[own], **settings)
            found[f"statistics, {adaptivity}{words}"] = _per_row(collect, len(X[own]))
    return found


def fits(n: int) -> dict[str, Any]:
    """Fits of affine intercepts in memory, and from statistics."""
    X, y = rows(n)
    folds = HashFolds(5)
    collected = RowStatistics.of(X, y, adaptivity="affine_intercept", tree_depth=None, folds=folds)
    search = partial(AdaptiveRegressorCV, "affine_intercept")
    return {
        "AdaptiveRegressor, in memory": _per_row(lambda: AdaptiveRegressor().fit(X, y), n),
        "AdaptiveRegressorCV, in memory, 5 folds": _per_row(lambda: search(cv=folds).fit(X, y), n),
        "AdaptiveRegressorCV, from statistics": _per_row(lambda: search().fit_statistics(collected), n),
    }


def peers(n: int) -> dict[str, Any]:
    """Linear models on (x, m)."""
    X, y = rows(n)
    Z = np.hstack([np.nan_to_num(X), np.isnan(X)])
    Z = (Z - Z.mean(axis=0)) / Z.std(axis=0)
    found = {"Ridge on (x, m)": _per_row(lambda: Ridge().fit(Z, y), n)}
    if find_spec("glum"):
        from glum import GeneralizedLinearRegressor

        glum = partial(GeneralizedLinearRegressor, family="normal", alpha=1.0 / n, l1_ratio=0)
        found["glum on (x, m)"] = _per_row(lambda: glum().fit(Z, y), n)
    return found | {
        "SGDRegressor.partial_fit on (x, m), one pass": _sgd(Z, y, 1),
        "SGDRegressor.partial_fit on (x, m), five passes": _sgd(Z, y, 5),
    }


def _sgd(Z: FloatArray, y: FloatArray, passes: int) -> list[float]:
    """Nanoseconds per row, and the share by which the risk exceeds that of least squares."""
    least = float(np.mean((y - Ridge(1e-6).fit(Z, y).predict(Z)) ** 2))
    model = SGDRegressor(random_state=0, alpha=1e-8)

    def fit() -> None:
        for _ in range(passes):
            for begin in range(0, len(Z), BLOCK):
                model.partial_fit(Z[begin : begin + BLOCK], y[begin : begin + BLOCK])

    seconds, _ = timed(fit)
    return [seconds * 1e9 / len(Z), float(np.mean((y - model.predict(Z)) ** 2)) / least - 1.0]


def _per_row(function: Callable[[], Any], n: int) -> float:
    function()  # compiles
    return least_seconds(function, 5) * 1e9 / n
