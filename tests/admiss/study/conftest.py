"""Makes the toy study importable, here and in workers, and starts runs in processes that can be found again."""

import contextlib
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

# Seconds that a busy machine may need.
PATIENCE = 240.0
HERE = Path(__file__).parent
ROOT = HERE.parents[2]
sys.path.insert(0, str(HERE))


class Runs:
    """Starts commands with the toy study, and finds all processes that descend from them."""

    def __init__(self) -> None:
        self.mark = f"TOY_RUN={uuid.uuid4().hex}"
        name, value = self.mark.split("=")
        self.environment = {**os.environ, name: value, "PYTHONPATH": str(ROOT)}

    def start(self, *arguments: object) -> "subprocess.Popen[str]":
        command = [sys.executable, str(HERE / "toy_command.py"), *map(str, arguments)]
        pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return subprocess.Popen(command, env=self.environment, **pipes)

    def finish(self, *arguments: object) -> tuple[int, str, str]:
        process = self.start(*arguments)
        out, err = process.communicate(timeout=PATIENCE)
        return process.returncode, out, err

    def living(self) -> list[int]:
        """Processes that have the mark in their environment."""
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if self.mark.encode() in (folder / "environ").read_bytes():
                    found.append(int(folder.name))
            except OSError:  # ended, or of another user
                continue
        return found


@pytest.fixture
def runs() -> Iterator[Runs]:
    runs = Runs()
    yield runs
    for pid in runs.living():  # of a failed test
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)


@pytest.fixture
def wait_for() -> Callable[[Callable[[], bool]], bool]:
    def wait(condition: Callable[[], bool], seconds: float = PATIENCE) -> bool:
        deadline = time.monotonic() + seconds
        while not condition() and time.monotonic() < deadline:
            time.sleep(0.02)
        return condition()

    return wait


@pytest.fixture
def compute() -> Callable[..., dict[str, dict[str, Any]]]:
    """Computes cells in a store, and returns its rows by key."""
    from admiss.study.plan import Cell
    from admiss.study.pool import run_locally
    from admiss.study.run import run_cells
    from admiss.study.store import Store

    def run(
        folder: Path,
        cells: Sequence[Cell],
        workers: int = 2,
        seconds: float = 600,
        gigabytes: float = 4,
        **options: Any,
    ) -> dict[str, dict[str, Any]]:
        def runner(pending: Any, finished: Any) -> None:
            run_locally(pending, finished, workers=workers, seconds=seconds, gigabytes=gigabytes)

        with Store(folder, "toy", write=True) as store:
            run_cells(store, cells, runner, scale="smoke", command="test", **options)
            return {row["key"]: row for row in store.rows()}

    return run
