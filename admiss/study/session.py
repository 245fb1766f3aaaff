"""A run of a study from its options: checks, the folder, the workers, and interruptions."""

import contextlib
import math
import os
import signal
import sys
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from admiss.study.folders import check_scale, folder_of
from admiss.study.local import run_locally
from admiss.study.plan import EngineError, Plan
from admiss.study.run import Runner, grid, matching, run_cells
from admiss.study.sending import check_cells
from admiss.study.store import Store

# Seconds of four months, gigabytes beyond any machine.
LARGEST = 1e7


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, with a sentence."""


def run_plan(
    study: Plan,
    *,
    command: str,
    scale: str | None = None,
    folder: str | Path | None = None,
    workers: int | None = None,
    seconds: float | None = None,
    gigabytes: float | None = None,
    retry: bool = False,
    stale: bool = False,
    only: str | None = None,
    dask: bool = False,
    scheduler: str | None = None,
) -> str:
    """Compute the pending cells of a study, and return a summary.

    Parameters
    ----------
    study : Plan
    command : str
        The command or call, which the store records.
    scale : str, optional
        By default the first scale of the study.
    folder : path, optional
        Folder of the store.
    workers : int, optional
        Processes, by default as many as cores; not used with ``scheduler``.
    seconds, gigabytes : float, optional
        Limits per cell, by default those of the study.
    retry, stale : bool
        Whether failed cells, and stale cells, are computed again.
    only : str, optional
        Only cells whose instance and method, as JSON, contain this text.
    dask : bool
        Whether to run on a local Dask cluster.
    scheduler : str, optional
        Address of a Dask scheduler to run on.
    """
    check_scale(study, scale)
    scale = study.scales[0] if scale is None else scale
    workers = (os.cpu_count() or 1) if workers is None else workers
    _check(workers, {"seconds": seconds, "gigabytes": gigabytes}, dask, scheduler)
    cells = grid(study, scale)
    if not cells:
        raise EngineError(f"{study.name} has no cells at scale {scale}.")
    selected = matching(cells, only)
    if not selected:
        raise EngineError(f"No cell of {study.name} at scale {scale} contains {only!r}.")
    check_cells(selected)
    conditions: dict[str, Any] = {
        "workers": workers,
        "seconds": study.seconds if seconds is None else seconds,
        "gigabytes": study.gigabytes if gigabytes is None else gigabytes,
    }
    runner: Runner = partial(run_locally, **conditions)
    if dask or scheduler is not None:
        from admiss.study.dask_cluster import run_on_dask

        runner = partial(run_on_dask, **conditions, scheduler=scheduler)
    path = folder_of(study, scale) if folder is None else Path(folder)
    with _stopped_by_terminate(), Store(path, study.name, write=True) as store:
        where = f"{workers} worker{'s' * (workers > 1)}" if scheduler is None else f"Dask scheduler {scheduler}"
        print(f"{study.name} at scale {scale} in {path}, {where}", file=sys.stderr)
        try:
            return run_cells(store, selected, runner, scale=scale, command=command, retry=retry, stale=stale)
        except KeyboardInterrupt:
            states = store.states()
            done = sum(cell.key in states for cell in selected)
            raise Interrupted(
                f"stopped with {done:,} of {len(selected):,} cells finished; the same command continues"
            ) from None


def _check(workers: Any, limits: dict[str, float | None], dask: bool, scheduler: str | None) -> None:
    if isinstance(workers, bool) or not isinstance(workers, int) or workers < 1:
        raise EngineError(f"workers must be a whole number of at least 1, not {workers!r}.")
    for name, value in limits.items():
        if value is not None and not (math.isfinite(value) and 0 < value <= LARGEST):
            raise EngineError(f"{name} must be a positive number of at most {LARGEST:g}, not {value:g}.")
    if dask and scheduler is not None:
        raise EngineError("dask starts a cluster and scheduler names a running one: choose one of the two.")


@contextlib.contextmanager
def _stopped_by_terminate() -> Iterator[None]:
    """Make SIGTERM, sent by a cluster at the end of a job for instance, stop the run like Ctrl-C."""

    def stop(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
