"""The cost of intervals: 1,000 test rows with 400 patterns, in CPU seconds of one thread.

``predict_interval`` of a calibrated model with the basis (1, m): predictions, patterns and thresholds. Of the last, the
solver that starts from one basis is compared with the stated program on some of the patterns (scaled to all, ~), and
with the largest difference of their thresholds.
"""

import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from admiss import AdaptiveRegressor, PatternConformalRegressor
from admiss.study.sections import markdown
from experiments.bench.records import cached, footer, in_new_process
from formulations.conformal.program import ThresholdProblem, solve_threshold

ROWS, PATTERNS, STATED, REPEATS = 1000, 400, 20, 5
# Calibration rows and features.
SIZES = ((1000, 10), (1000, 20), (1000, 50), (10_000, 20))


def run(folder: Path, *, quick: bool = False) -> str:
    """Run the missing measurements, and return the report."""
    folder.mkdir(parents=True, exist_ok=True)
    records = [
        cached(folder / f"{n}-{d}.json", partial(in_new_process, measure, n, d))
        for n, d in (((200, 10),) if quick else SIZES)
    ]
    header = ["calibration rows", "features", "predict_interval s", "of which thresholds", "stated program s", "ratio"]
    rows = [
        [f"{r['n']:,}", r["d"], f"{r['seconds']:.3f}", f"{r['thresholds']:.3f}", f"~{r['stated']:.1f}",
         f"{r['stated'] / r['thresholds']:.0f}", f"{r['difference']:.0e}", f"{r['infinite']:.2f}"]
        for r in records
    ]  # fmt: skip
    words = f"{ROWS:,} test rows with {PATTERNS} patterns, CPU seconds of one thread, least of {REPEATS}"
    table = markdown([*header, "largest difference", "infinite"], rows)
    return "\n".join([*table, "", f"{words}; {footer('admiss', 'numpy', 'numba', 'highspy')}"])


def measure(n: int, d: int) -> dict[str, Any]:
    """Seconds of one size, the least of several repetitions, after a first call that compiles."""
    rng = np.random.default_rng(0)
    share = rng.uniform(0.05, 0.5, size=d)
    X = rng.normal(size=(2 * n, d))
    M = rng.uniform(size=X.shape) < share
    y = X @ rng.normal(size=d) + rng.normal(size=2 * n) * (1 + M.sum(axis=1))
    X = np.where(M, np.nan, X)
    patterns = np.unique(rng.uniform(size=(100 * PATTERNS, d)) < share, axis=0)
    patterns = patterns[rng.permutation(len(patterns))[:PATTERNS]]
    tests = rng.normal(size=(ROWS, d))
    tests[patterns[np.arange(ROWS) % len(patterns)]] = np.nan
    model = PatternConformalRegressor(AdaptiveRegressor().fit(X[:n], y[:n]), basis="features", prefit=True)
    model.conformalize(X[n:], y[n:])
    intervals = model.predict_interval(tests)[1]
    seconds = min(_seconds(lambda: model.predict_interval(tests)) for _ in range(REPEATS))
    thresholds = min(_seconds(lambda: model._class_thresholds(patterns, [0.9])) for _ in range(REPEATS))
    problem, phi = ThresholdProblem(model.scores_, model.basis_(M[n:]), 0.1), model.basis_(patterns[:STATED])
    start = time.process_time()
    stated = np.array([solve_threshold(problem, row, problem.limit)[0] for row in phi])
    stated_seconds = (time.process_time() - start) * len(patterns) / STATED
    found = model._class_thresholds(patterns[:STATED], [0.9])[:, 0]
    finite = np.isfinite(stated)
    if (np.isfinite(found) != finite).any():
        raise AssertionError("the methods disagree on which thresholds are finite")
    difference = float(np.abs(found[finite] - stated[finite]).max(initial=0.0))
    return {
        "n": n, "d": d, "seconds": seconds, "thresholds": thresholds, "stated": stated_seconds,
        "difference": difference, "infinite": float(np.isinf(intervals[:, 1, 0]).mean()),
    }  # fmt: skip


def _seconds(function: Any) -> float:
    start = time.process_time()
    function()
    return time.process_time() - start
