"""Measurements: CPU seconds, one file per measurement, which is not repeated once the file exists, and reports."""

import csv
import io
import json
import multiprocessing
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

from admiss.atomic_write import write_atomically
from admiss.study.report.sections import markdown
from admiss.versions import processor, versions


def timed(function: Callable[[], Any]) -> tuple[float, Any]:
    """CPU seconds of a call, and its result."""
    start = time.process_time()
    result = function()
    return time.process_time() - start, result


def least_seconds(function: Callable[[], Any], repeats: int) -> float:
    """The least CPU seconds of several calls."""
    return min(timed(function)[0] for _ in range(repeats))


def measured(folder: Path, measures: Mapping[str, Callable[[], dict[str, Any]]]) -> dict[str, dict[str, Any]]:
    """The record of each measurement by its name, each made in a new process."""
    return {name: cached(folder / f"{name}.json", partial(in_new_process, make)) for name, make in measures.items()}


def cached(path: Path, compute: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Read the record at a path, after computing and writing it if it does not exist."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        print(f"measuring {path.stem} ..", flush=True)
        write_atomically(path, json.dumps(compute(), indent=1).encode())
    return json.loads(path.read_text())


def table(header: Sequence[str], rows: Sequence[Sequence[Any]], *last: str) -> str:
    """A report: a table, and lines below it."""
    return "\n".join([*markdown(header, rows), "", *last])


def write_tables(report: str, folder: Path, name: str) -> None:
    """Write the tables of a report as CSV files: the first has the name, the others a number too."""
    tables = [
        [line.strip("| ").split(" | ") for line in lines if not line.startswith("| ---")]
        for is_table, lines in groupby(report.splitlines(), lambda line: line.startswith("|"))
        if is_table
    ]
    for k, cells in enumerate(tables, start=1):
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(cells)
        write_atomically(folder / (f"{name}-{k}.csv" if k > 1 else f"{name}.csv"), text.getvalue().encode())


def footer(*packages: str, peer: str = "") -> str:
    """Versions of packages (by default all known ones) and of a peer, and the processor: the last line of a report."""
    found = versions()
    used = ", ".join(f"{name} {found[name]}" for name in packages or found)
    return "; ".join(filter(None, (used, peer, processor())))


def in_new_process(function: Callable[..., dict[str, Any]], *arguments: Any) -> dict[str, Any]:
    """Call a function in a new process; the result has the peak memory in GB as ``memory``."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(_with_memory, function, *arguments).result()


def _with_memory(function: Callable[..., dict[str, Any]], *arguments: Any) -> dict[str, Any]:
    result = function(*arguments)
    return {**result, "memory": _peak_memory()}


def _peak_memory() -> float:
    """Peak memory of this process in GB."""
    status = Path("/proc/self/status")
    if status.exists():  # getrusage would include the memory of the parent at the fork
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024 / 1e9
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9
