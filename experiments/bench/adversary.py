"""The adversarial reallocation of patterns: the cost of its proof, against an assignment of rows to rows.

Rows are standard normal, with a given number of random patterns in random counts. Times are CPU seconds of one thread,
building included, each in a new process. The peer is scipy's ``linear_sum_assignment`` on the n x n matrix of rows
against rows, which is exact too and needs n^2 numbers; its optimum must be the same.
"""

import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from admiss.study.sections import markdown
from experiments.bench.records import cached, footer, in_new_process
from formulations.adversary import reallocate

FEATURES = 10
SIZES = ((1000, 20), (1000, 200), (5000, 20), (25_000, 20), (58_788, 2))
# With more rows the peer's matrix does not fit into memory.
LARGEST_PEER = 5000


def run(folder: Path, *, quick: bool = False) -> str:
    """Run the missing measurements, and return the report."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for n, patterns in ((200, 5), (200, 50)) if quick else SIZES:
        path = folder / f"{n}-{patterns}.json"
        rows.append(cached(path, partial(in_new_process, measure, n, patterns)))
    return report(rows)


def measure(n: int, patterns: int) -> dict[str, Any]:
    """Measure one reallocation, and the assignment if it fits."""
    rng = np.random.RandomState(0)
    X = rng.normal(size=(n, FEATURES))
    M = _distinct_patterns(patterns, rng)[rng.randint(patterns, size=n)]
    reallocate(X[:50], M[:50])
    start = time.process_time()
    moved, certificate = reallocate(X, M)
    seconds = time.process_time() - start
    if certificate.status != "optimal":
        raise AssertionError(f"the reallocation is not proven: {certificate.status}")
    result = {"n": n, "patterns": patterns, "seconds": seconds, "gap": certificate.relative_gap}
    if n <= LARGEST_PEER:
        start = time.process_time()
        hidden = X @ M.T.astype(float)
        assigned = linear_sum_assignment(hidden, maximize=True)
        result["peer"] = time.process_time() - start
        result["difference"] = abs(float((X * moved).sum()) / float(hidden[assigned].sum()) - 1)
    return result


def _distinct_patterns(count: int, rng: np.random.RandomState) -> np.ndarray:
    codes = rng.permutation(2**FEATURES)[:count]
    return (codes[:, None] >> np.arange(FEATURES)) % 2


def report(rows: list[dict[str, Any]]) -> str:
    """The measurements as a table."""
    cells = [
        [f"{row['n']:,}", row["patterns"], f"{row['seconds']:.1f}", f"{row['gap']:.0e}", f"{row['memory']:.2f}",
         f"{row['peer']:.1f}" if "peer" in row else "-", f"{row['difference']:.0e}" if "peer" in row else "-"]
        for row in rows
    ]  # fmt: skip
    header = ["rows", "patterns", "admiss s", "gap", "GB", "linear_sum_assignment s", "difference of the optima"]
    return "\n".join([*markdown(header, cells), "", footer("admiss", "scipy", "highspy")])
