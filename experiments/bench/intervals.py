"""The cost of intervals: 1,000 test rows with 400 patterns, in CPU seconds of one thread.

``predict_interval`` of a calibrated model with the basis (1, m): predictions, patterns and thresholds. Of the last, the
solver that starts from one basis is compared with the stated program on some of the patterns (scaled to all, ~), and
with the largest difference of their thresholds.
"""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from admiss import AdaptiveRegressor, PatternConformalRegressor
from experiments.bench.records import footer, least_seconds, measured, table, timed
from formulations.conformal.program import ThresholdProblem, solve_threshold


def run(folder: Path, *, quick: bool = False) -> str:
    """Run the missing measurements, and return the report."""
    sizes = [(200, 10)] if quick else [(1000, 10), (1000, 20), (1000, 50), (10_000, 20)]
    measures = {f"{n}-{d}": partial(measure, n, d) for n, d in sizes}
    header = ["calibration rows", "features", "predict_interval s", "of which thresholds", "stated program s", "ratio"]
    rows = [
        [f"{r['n']:,}", r["d"], f"{r['seconds']:.3f}", f"{r['thresholds']:.3f}", f"~{r['stated']:.1f}",
         f"{r['stated'] / r['thresholds']:.0f}", f"{r['difference']:.0e}", f"{r['infinite']:.2f}"]
        for r in measured(folder, measures).values()
    ]  # fmt: skip
    words = "1,000 test rows with 400 patterns, CPU seconds of one thread, least of 5"
    versions = footer("admiss", "numpy", "numba", "highspy")
    return table([*header, "largest difference", "infinite"], rows, f"{words}; {versions}")


def measure(n: int, d: int, n_patterns: int = 400, n_stated: int = 20) -> dict[str, Any]:
    """Seconds of n calibration rows, the least of several repetitions, after a first call that compiles.

    The stated program is solved for some of the patterns.
    """
    rng = np.random.default_rng(0)
    share = rng.uniform(0.05, 0.5, size=d)
    X = rng.normal(size=(2 * n, d))
    M = rng.uniform(size=X.shape) < share
    y = X @ rng.normal(size=d) + rng.normal(size=2 * n) * (1 + M.sum(axis=1))
    X = np.where(M, np.nan, X)
    patterns = np.unique(rng.uniform(size=(100 * n_patterns, d)) < share, axis=0)
    patterns = patterns[rng.permutation(len(patterns))[:n_patterns]]
    tests = rng.normal(size=(1000, d))
    tests[patterns[np.arange(len(tests)) % len(patterns)]] = np.nan
    model = PatternConformalRegressor(AdaptiveRegressor().fit(X[:n], y[:n]), basis="features", prefit=True)
    model.conformalize(X[n:], y[n:])
    intervals = model.predict_interval(tests)[1]
    seconds = least_seconds(lambda: model.predict_interval(tests), 5)
    thresholds = least_seconds(lambda: model._class_thresholds(patterns, [0.9]), 5)
    problem, phi = ThresholdProblem(model.scores_, model.basis_(M[n:]), 0.1), model.basis_(patterns[:n_stated])
    stated_seconds, values = timed(lambda: [solve_threshold(problem, row, problem.limit)[0] for row in phi])
    stated = np.array(values)
    found = model._class_thresholds(patterns[:n_stated], [0.9])[:, 0]
    finite = np.isfinite(stated)
    if (np.isfinite(found) != finite).any():
        raise AssertionError("the methods disagree on which thresholds are finite")
    difference = float(np.abs(found[finite] - stated[finite]).max(initial=0.0))
    return {
        "n": n, "d": d, "seconds": seconds, "thresholds": thresholds,
        "stated": stated_seconds * len(patterns) / n_stated,
        "difference": difference, "infinite": float(np.isinf(intervals[:, 1, 0]).mean()),
    }  # fmt: skip
