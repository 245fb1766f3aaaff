"""The adversarial reallocation of patterns: the cost of its proof, against an assignment of rows to rows.

Rows are standard normal, with a given number of random patterns in random counts. Times are CPU seconds of one thread,
building included, each in a new process. The peer is scipy's ``linear_sum_assignment`` on the n x n matrix of rows
against rows, which is exact too and needs n^2 numbers; its optimum must be the same.
"""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from experiments.bench.records import footer, measured, table, timed
from formulations.adversary import reallocate


def run(folder: Path, *, quick: bool = False) -> str:
    """Run the missing measurements, and return the report."""
    small = [(200, 5), (200, 50)]
    large = [(1000, 20), (1000, 200), (5000, 20), (25_000, 20), (58_788, 2)]
    sizes = small if quick else large
    measures = {f"{n}-{patterns}": partial(measure, n, patterns) for n, patterns in sizes}
    return report(list(measured(folder, measures).values()))


def measure(n: int, patterns: int, d: int = 10, largest_peer: int = 5000) -> dict[str, Any]:
    """Measure one reallocation, and the assignment if its matrix fits into memory."""
    rng = np.random.RandomState(0)
    X = rng.normal(size=(n, d))
    distinct = (rng.permutation(2**d)[:patterns, None] >> np.arange(d)) % 2
    M = distinct[rng.randint(patterns, size=n)]
    reallocate(X[:50], M[:50])
    seconds, (moved, certificate) = timed(partial(reallocate, X, M))
    if certificate.status != "optimal":
        raise AssertionError(f"the reallocation is not proven: {certificate.status}")
    result = {"n": n, "patterns": patterns, "seconds": seconds, "gap": certificate.relative_gap}
    if n <= largest_peer:
        result["peer"], optimum = timed(partial(assigned, X, M))
        result["difference"] = abs(float((X * moved).sum()) / optimum - 1)
    return result


def assigned(X: np.ndarray, M: np.ndarray) -> float:
    """The largest sum of hidden values over assignments of patterns to rows."""
    hidden = X @ M.T.astype(float)
    return float(hidden[linear_sum_assignment(hidden, maximize=True)].sum())


def report(rows: list[dict[str, Any]]) -> str:
    """The measurements as a table."""
    cells = [
        [f"{row['n']:,}", row["patterns"], f"{row['seconds']:.1f}", f"{row['gap']:.0e}", f"{row['memory']:.2f}",
         f"{row['peer']:.1f}" if "peer" in row else "-", f"{row['difference']:.0e}" if "peer" in row else "-"]
        for row in rows
    ]  # fmt: skip
    header = ["rows", "patterns", "admiss s", "gap", "GB", "linear_sum_assignment s", "difference of the optima"]
    return table(header, cells, footer("admiss", "scipy", "highspy"))
