"""Groups of patterns: CPU seconds to a proof, the gap that a minute leaves, and compilation apart.

The rows are those of the paper's linear model (:func:`experiments.bench.partitions.groups_problem`), d = 10, with
either leaf model. 30 patterns are to be proven within ``PROVEN_SECONDS``. 60 patterns in 3 groups are to have a gap of
at most ``GAPS`` after ``LIMIT`` seconds; 100 patterns are reported beside them. Time limits are on the wall clock, so
gaps need an idle machine: the CPU seconds in the report say how much of it there was. The loops are compiled in an
empty cache, in a process of their own.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from admiss.study.sections import markdown
from experiments.bench.partitions import groups_problem
from experiments.bench.records import cached, footer, in_new_process
from formulations.groups.problem import solve_pattern_groups

LEAF_MODELS = ("static", "affine_intercept")
PROVEN_SECONDS, COMPILED_SECONDS = 15.0, 10.0
# Largest gaps of 60 patterns, by the number of rows, and the seconds of the search.
GAPS, LIMIT = {1500: 0.05, 10_000: 0.02}, 60.0
# Seconds after which a proof is given up.
PATIENCE = 300.0
FIRST_SEED, SEEDS = 500, 3
COMPILE = "import time; from experiments.bench.groups import first_search; start = time.process_time(); \
first_search(); print(time.process_time() - start)"


def run(folder: Path, *, quick: bool = False) -> str:
    """Run the missing measurements, and return the report."""
    folder.mkdir(parents=True, exist_ok=True)
    proven = [(8, 200)] if quick else [(30, 600), (30, 1500), (30, 10_000)]
    limited = [(48, 200)] if quick else [(60, 1500), (60, 10_000), (100, 1500), (100, 10_000)]
    counts, limit = ((2, 3), 1.0) if quick else ((2, 3, 4, 5), LIMIT)
    measured: dict[str, Callable[[], dict[str, Any]]] = {"compilation": compilation}
    for leaf_model in LEAF_MODELS:
        for patterns, n in proven:
            compute = partial(solved, patterns, n, leaf_model, counts, PATIENCE)
            measured[f"proven-{patterns}-{n}-{leaf_model}"] = partial(in_new_process, compute)
        for patterns, n in limited:
            compute = partial(solved, patterns, n, leaf_model, (3,), limit)
            measured[f"limited-{patterns}-{n}-{leaf_model}"] = partial(in_new_process, compute)
    return report({name: cached(folder / f"{name}.json", compute) for name, compute in measured.items()})


def compilation() -> dict[str, Any]:
    """CPU seconds to compile the loops of the search, without a cache."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "NUMBA_CACHE_DIR": folder}
        printed = subprocess.run(
            [sys.executable, "-c", COMPILE], env=environment, check=True, capture_output=True, text=True
        ).stdout
    return {"seconds": float(printed)}


def first_search() -> None:
    """A small search, which compiles the loops."""
    solve_pattern_groups(groups_problem(8, 200, 3, FIRST_SEED, "static"))


def solved(n_patterns: int, n: int, leaf_model: str, counts: tuple[int, ...], limit: float) -> dict[str, Any]:
    """Searches with some numbers of groups and seeds: CPU seconds, gap and status of each."""
    first_search()
    rows = []
    for count in counts:
        for seed in range(FIRST_SEED, FIRST_SEED + SEEDS):
            problem = groups_problem(n_patterns, n, count, seed, leaf_model)
            start = time.process_time()
            _, certificate = solve_pattern_groups(problem, time_limit=limit)
            seconds = time.process_time() - start
            found = {"seconds": seconds, "gap": certificate.relative_gap, "status": certificate.status}
            rows.append({"groups": count, "seed": seed, **found})
    return {"patterns": n_patterns, "n": n, "leaf_model": leaf_model, "limit": limit, "rows": rows}


def report(records: dict[str, dict[str, Any]]) -> str:
    """The measurements as a table: worst cases, and the gap of every search with a time limit."""
    table = []
    for name, record in records.items():
        if name == "compilation":
            met = _met(record["seconds"] <= COMPILED_SECONDS)
            table.append(["compilation", f"{record['seconds']:.1f} s", f"{COMPILED_SECONDS:.0f} s: {met}", "-"])
            continue
        rows = record["rows"]
        counts = sorted({row["groups"] for row in rows})
        groups = f"{counts[0]} to {counts[-1]} groups" if len(counts) > 1 else f"{counts[0]} groups"
        leaves = record["leaf_model"].replace("_", " ")
        what = f"{record['patterns']} patterns, {groups}, n = {record['n']:,}, {leaves}"
        proven = sum(row["status"] == "optimal" for row in rows)
        slowest, widest = max(row["seconds"] for row in rows), max(row["gap"] for row in rows)
        if name.startswith("proven"):
            found = f"{proven} of {len(rows)} proven, slowest {slowest:.1f} s"
            bar = f"{PROVEN_SECONDS:.0f} s: {_met(proven == len(rows) and slowest <= PROVEN_SECONDS)}"
        else:
            gaps = ", ".join(f"{100 * row['gap']:.2g}" for row in rows)
            found = f"gaps {gaps} %; {min(row['seconds'] for row in rows):.0f} to {slowest:.0f} s"
            allowed = GAPS.get(record["n"]) if record["patterns"] == 60 else None
            bar = "-" if allowed is None else f"{100 * allowed:.0f} %: {_met(widest <= allowed)}"
        table.append([what, found, bar, f"{record['memory']:.2f} GB"])
    lines = ["CPU seconds of one thread, after compilation:", ""]
    lines += [*markdown(["problem", "found", "bar", "memory"], table), ""]
    return "\n".join([*lines, footer("python", "admiss", "numpy", "numba", "pyomo", "highspy")])


def _met(holds: bool) -> str:
    return "met" if holds else "missed"
