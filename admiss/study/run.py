"""A run of a study: its options, its folder, the pending cells, and interruptions.

Cells that are done are not computed again; failed cells and stale cells only on request. An old row stays until the
new one replaces it. Folders are ``runs/NAME-SCALE`` below the current one, ``runs/NAME`` for a study with one scale.
"""

import contextlib
import json
import math
import os
import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from admiss._version import __version__
from admiss.atomic_write import EngineError, NamedFile
from admiss.study.outcome import origin
from admiss.study.plan import Cell, Plan
from admiss.study.pool import Arrived, Finished, run_locally
from admiss.study.progress import Progress
from admiss.study.recipe import RecipeError, check_sent, recipe_of
from admiss.study.stale import ADVICE, Present, stale_cells
from admiss.study.store import FILE, Store
from admiss.versions import versions

Runner = Callable[[Sequence[Cell], Finished], None]
RUNS = Path("runs")
# Limits of a cell: seconds of four months, gigabytes beyond any machine.
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
        raise EngineError(f"workers must be an integer of at least 1, not {workers!r}.")
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


def check_scale(study: Plan, scale: str | None) -> None:
    """Refuse an unknown scale; None is any."""
    if scale not in (None, *study.scales):
        raise EngineError(f"Unknown scale {scale!r} of {study.name}: choose one of {', '.join(study.scales)}.")


def folder_of(study: Plan, scale: str) -> Path:
    """The folder of a run at a scale, unless another is named."""
    return RUNS / (study.name if len(study.scales) == 1 else f"{study.name}-{scale}")


def folders_of_runs(study: Plan, scale: str | None = None) -> list[Path]:
    """The folders under ``runs`` that have a store of a study."""
    folders = [folder_of(study, name) for name in study.scales if scale in (None, name)]
    return [folder for folder in folders if folder.joinpath(FILE).exists()]


def store_folder(study: Plan, scale: str | None = None, folder: str | Path | None = None) -> Path:
    """The folder that is named, or the only one that exists."""
    check_scale(study, scale)
    if folder is not None:
        return Path(folder)
    if scale is not None:
        return folder_of(study, scale)
    found = folders_of_runs(study)
    if not found:
        raise EngineError(f"There is no run of {study.name} in {RUNS}: run it first, or name its folder with --out.")
    if len(found) > 1:
        raise EngineError(f"There are several runs ({', '.join(map(str, found))}): choose one with --scale or --out.")
    return found[0]


def pending_cells(
    cells: Sequence[Cell], states: Mapping[str, Mapping[str, Any]], stale: Collection[str], *, retry: bool
) -> list[Cell]:
    """Select the cells to compute, in their order: new ones, stale ones by their keys, and on request failed ones."""

    def wanted(cell: Cell) -> bool:
        state = states.get(cell.key)
        return state is None or cell.key in stale or (retry and state["status"] == "failed")

    return [cell for cell in cells if wanted(cell)]


def matching(cells: Sequence[Cell], text: str | None) -> list[Cell]:
    """Select the cells whose recipe, as JSON in the form of the store, contains a text."""
    return [cell for cell in cells if text is None or text in json.dumps(cell.recipe)]


def grid_keys(store: Store, study: Plan) -> set[str]:
    """Keys of all cells of a study at the scales at which a store was run."""
    return {cell.key for cell in run_grid(store, study)}


def run_grid(store: Store, study: Plan) -> list[Cell]:
    """All cells of a study at the scales at which a store was run."""
    scales = store.scales()
    for scale in scales:
        if scale not in study.scales:
            raise EngineError(
                f"{store.path} was run at the scale {scale!r}, which this version does not have (it has "
                f"{', '.join(study.scales)}): read it with the version that wrote it, or run again in another folder."
            )
    return [cell for scale in scales for cell in grid(study, scale)]


def study_files(store: Store, study: Plan) -> list[NamedFile]:
    """What is read of a study, and must not be overwritten: its store, the tables of its instances, its modules."""
    files = [("the store of the study", path) for path in store.files()]
    tables = dict.fromkeys(file for cell in run_grid(store, study) for file in getattr(cell.instance, "files", ()))
    files += [("a table of the study", Path(table)) for table in tables]
    sources = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
    return files + [("a module that is in use", Path(source)) for source in sources if source]


def grid(study: Plan, scale: str) -> list[Cell]:
    """The cells of a scale."""
    with listed(study, scale):
        return list(study.cells(scale))


@contextlib.contextmanager
def listed(study: Plan, scale: str) -> Iterator[None]:
    """Turn an error in the code of a study that lists its cells into one sentence."""
    try:
        yield
    except RecipeError as error:
        raise EngineError(str(error)) from error
    except Exception as error:
        words = " ".join(f"{type(error).__name__}: {error}".split()).rstrip(".")
        raise EngineError(f"The cells of {study.name} at scale {scale} cannot be listed ({words}).") from error


def run_cells(
    store: Store,
    cells: Sequence[Cell],
    runner: Runner,
    *,
    scale: str,
    command: str,
    retry: bool = False,
    stale: bool = False,
) -> str:
    """Compute the pending cells and return a summary; Ctrl-C is passed on once all outcomes are written."""
    known = store.scales()
    if known and scale not in known:
        raise EngineError(
            f"{store.folder} holds cells of the scale {' and '.join(known)}, not {scale}: choose another folder with "
            f"--out, or none for that of the scale."
        )
    states = store.states()
    old = set(stale_cells(cells, states, store.dependencies()))
    pending = pending_cells(cells, states, old if stale else (), retry=retry)
    if left := len(old.difference(cell.key for cell in pending)):
        print(f"{left:,} of {len(states):,} cells are stale, as 'status' explains: {ADVICE}", file=sys.stderr)
    if pending:
        run = {"command": command, "scale": scale, "digest": "", "machine": origin()["machine"]}
        store.add_run({**run, "versions": json.dumps({**versions(), "admiss": __version__})})
        before = [(cell, states[cell.key]["elapsed"]) for cell in cells if cell.key in states]
        again = {cell.key for cell in pending}
        failed = sum(
            states[cell.key]["status"] == "failed" for cell in cells if cell.key in states and cell.key not in again
        )
        progress = Progress(pending, len(cells), before=before, failed=failed)

        present = Present()

        def finished(arrived: Sequence[Arrived]) -> None:
            with store.transaction():
                for cell, outcome in arrived:
                    dependencies = outcome.dependencies | present.main_dependencies(cell)
                    store.add(cell, replace(outcome, dependencies=dependencies))
            for cell, outcome in arrived:
                progress.report(cell, outcome)

        try:
            runner(pending, finished)
        finally:
            progress.clear()
    return summary(cells, store.states(), len(pending))


def summary(cells: Sequence[Cell], states: Mapping[str, Mapping[str, Any]], computed: int) -> str:
    """Count the cells that are done and failed, with failures by reason."""
    known = [states[cell.key] for cell in cells if cell.key in states]
    done = sum(state["status"] == "done" for state in known)
    lines = [f"{done:,} of {len(cells):,} cells done, {len(known) - done:,} failed ({computed:,} computed now)"]
    lines += failures(known)
    if done < len(known):
        lines.append("The same command with --retry (in Python retry=True) computes failed cells again.")
    return "\n".join(lines)


def failures(states: Sequence[Mapping[str, Any]]) -> list[str]:
    """One line per reason, the most frequent first."""
    reasons = Counter(state["reason"] for state in states if state["status"] == "failed")
    return [f"  {count:,} failed: {reason}" for reason, count in reasons.most_common()]


def check_cells(cells: Iterable[Cell]) -> None:
    """Refuse cells of a method, or of a kind of instance, that cannot be sent."""
    seen: set[Any] = set()
    for cell in cells:
        if id(cell.method) not in seen:
            seen.add(id(cell.method))
            try:
                recipe_of(cell.method.run, f"method {cell.method.name!r}")
            except RecipeError as error:
                raise EngineError(str(error)) from error
            check_sent(cell.method, f"method {cell.method.name!r}")
        if type(cell.instance) not in seen:
            seen.add(type(cell.instance))
            check_sent(cell.instance, f"instance {cell.instance!r:.60}")
