"""Measurements that are kept: each in a file of its own, written whole, and never measured again."""

import json
import multiprocessing
import platform
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any


def cached(path: Path, compute: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """The record at a path; computed and written first where there is none."""
    if not path.exists():
        print(f"measuring {path.stem} ..", flush=True)
        unfinished = path.with_suffix(".partial")
        unfinished.write_text(json.dumps(compute(), indent=1))
        unfinished.replace(path)
    return json.loads(path.read_text())


def in_new_process(function: Callable[..., dict[str, Any]], *arguments: Any) -> dict[str, Any]:
    """Result of a function in a process of its own, with the most memory that it has held, in GB, as ``memory``."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(_with_memory, function, *arguments).result()


def _with_memory(function: Callable[..., dict[str, Any]], *arguments: Any) -> dict[str, Any]:
    result = function(*arguments)
    return {**result, "memory": _peak_memory()}


def _peak_memory() -> float:
    """Most memory that this process has held, in GB."""
    status = Path("/proc/self/status")
    if status.exists():  # getrusage would count what the parent held when it made this process
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024 / 1e9
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9


def markdown(header: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    """Lines of a table."""
    return ["| " + " | ".join(map(str, cells)) + " |" for cells in (header, ["---"] * len(header), *rows)]


def processor() -> str:
    """What this machine computes with."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        lines = cpuinfo.read_text().splitlines()
        models = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
        if models:
            return models[0]
    return platform.processor() or platform.machine()
