"""What greedy splitting loses in training, and whether that matters out of sample.

For data sets with values missing completely at random, censored, and with interacting patterns, each with 10 features:
the training cost of greedy's tree above the proven optimum at the same depth; the difference in test R2, exact minus
greedy, at that depth; and the same difference where depth, ridge and leaf model are chosen by cross-validation.
Finished cells are kept.
"""

import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from admiss import FiniteRegressor, FiniteRegressorCV
from admiss.datasets import SyntheticData, make_interacting, make_synthetic
from admiss.partition import Greedy, OptimalTree
from experiments.bench.records import kept, markdown, processor

DATA: dict[str, Callable[..., SyntheticData]] = {
    "mcar": partial(make_synthetic, mechanism="mcar"),
    "censoring": partial(make_synthetic, mechanism="censoring"),
    "mcar, nn": partial(make_synthetic, mechanism="mcar", signal="nn"),
    "interacting": make_interacting,
}
ROWS = (200, 1000, 10_000)
DEPTHS = (2, 3, 4)
SEEDS = 10


def run(folder: Path, *, quick: bool = False) -> str:
    """Compute the cells that are not there, and return the report."""
    folder.mkdir(parents=True, exist_ok=True)
    cells = []
    for n in ROWS[:1] if quick else ROWS:
        for name in DATA:
            for seed in range(1 if quick else SEEDS):
                path = folder / f"{name.replace(', ', '-')}-{n}-{seed}.json"
                cells.append(kept(path, partial(cell, name, n, seed)))
    return report(cells)


def cell(name: str, n: int, seed: int) -> dict[str, Any]:
    """Both partitioners on one data set."""
    data = DATA[name](n=n, random_state=seed)
    result: dict[str, Any] = {"data": name, "n": n, "seed": seed}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of features that a small sample never shows
        for depth in DEPTHS:
            greedy, exact = (
                FiniteRegressor(partitioner, leaf_model="static").fit(data.X_train, data.y_train)
                for partitioner in (Greedy(max_depth=depth), OptimalTree(max_depth=depth))
            )
            if exact.certificate_.status != "optimal":
                raise AssertionError(f"the tree of depth {depth} is not proven: {exact.certificate_.status}")
            result[f"loss_{depth}"] = greedy.certificate_.objective / exact.certificate_.objective - 1
            result[f"test_{depth}"] = exact.score(data.X_test, data.y_test) - greedy.score(data.X_test, data.y_test)
        scores = [
            FiniteRegressorCV(partitioner, random_state=seed)
            .fit(data.X_train, data.y_train)
            .score(data.X_test, data.y_test)
            for partitioner in (Greedy(), OptimalTree())
        ]
    result["test_cv"] = scores[1] - scores[0]
    return result


def report(cells: list[dict[str, Any]]) -> str:
    """Means over seeds, with standard errors, and the worst."""
    table = []
    for name in DATA:
        for n in ROWS:
            rows = [row for row in cells if row["data"] == name and row["n"] == n]
            if rows:
                chosen = _mean([row["test_cv"] for row in rows])
                for depth in DEPTHS:
                    losses = [100 * row[f"loss_{depth}"] for row in rows]
                    test = _mean([row[f"test_{depth}"] for row in rows])
                    table.append([name, f"{n:,}", depth, f"{np.mean(losses):.2f}", f"{max(losses):.2f}", test, chosen])
    header = ["data", "n", "depth", "greedy above optimum, mean %", "worst %", "test R2, exact - greedy"]
    header += ["the same at cross-validated depth"]
    return "\n".join([*markdown(header, table), "", f"mean and standard error over seeds; {processor()}"])


def _mean(values: list[float]) -> str:
    error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return f"{np.mean(values):+.3f} ± {error:.3f}"
