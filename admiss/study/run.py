"""A run of a study: its options, its folder, the pending cells, interruptions, and what is left to do.

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
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from admiss.atomic_write import NamedFile
from admiss.study.plan import Cell, EngineError, Plan, Product, check_products, check_scale, encodable
from admiss.study.pool import Arrived, Finished, run_locally
from admiss.study.stale import ADVICE, Present, stale_cells, stale_lines
from admiss.study.store import FILE, Store
from admiss.terminal.progress import command_progress, counter
from admiss.terminal.table import wrapped

Runner = Callable[[Sequence[Cell], Finished], None]
RUNS = Path("runs")
# Limits of a cell: seconds of four months, gigabytes beyond any machine.
LARGEST = 1e7


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, with a sentence."""


@dataclass(frozen=True)
class RunOptions:
    """How a study is run."""

    scale: str | None = None  # the first one by default
    folder: str | Path | None = None  # of the store
    workers: int | None = None  # processes, as many as cores by default; not used with a scheduler
    seconds: float | None = None  # limits per cell, those of the study by default
    gigabytes: float | None = None
    retry: bool = False  # whether failed cells, and stale ones, are computed again
    stale: bool = False
    only: str | None = None  # only cells whose instance and method, as JSON, contain this text
    dask: bool = False  # on a local Dask cluster
    scheduler: str | None = None  # address of a Dask scheduler to run on

    def __post_init__(self) -> None:
        workers = self.workers
        if workers is not None and (isinstance(workers, bool) or not isinstance(workers, int) or workers < 1):
            raise EngineError(f"workers must be an integer of at least 1, not {workers!r}.")
        for name, value in (("seconds", self.seconds), ("gigabytes", self.gigabytes)):
            if value is not None and not (math.isfinite(value) and 0 < value <= LARGEST):
                raise EngineError(f"{name} must be a positive number of at most {LARGEST:g}, not {value:g}.")
        if self.dask and self.scheduler is not None:
            raise EngineError("dask starts a cluster and scheduler names a running one: choose one of the two.")

    def runner(self, study: Plan) -> tuple[Runner, str]:
        """The function that computes cells, and where it does."""
        workers = self.workers or os.cpu_count() or 1
        limits: dict[str, Any] = {
            "workers": workers,
            "seconds": study.seconds if self.seconds is None else self.seconds,
            "gigabytes": study.gigabytes if self.gigabytes is None else self.gigabytes,
        }
        if not self.dask and self.scheduler is None:
            return partial(run_locally, **limits), f"{workers} worker{'s' * (workers > 1)}"
        from admiss.study.dask_cluster import run_on_dask

        where = f"{workers} worker{'s' * (workers > 1)}" if self.dask else f"Dask scheduler {self.scheduler}"
        return partial(run_on_dask, **limits, scheduler=self.scheduler), where


def run_plan(study: Plan, options: RunOptions, command: str, answer: Callable[[Store], str]) -> None:
    """Compute the pending cells, and print a summary and the answer; the store records the command or call."""
    scale = options.scale or study.scales[0]
    selected = [cell for cell in grid(study, scale) if options.only is None or options.only in json.dumps(cell.recipe)]
    if not selected:
        contains = "" if options.only is None else f" that contain {options.only!r}"
        raise EngineError(f"{study.name} has no cells{contains} at scale {scale}.")
    check_products(Product([cell.instance], [cell.method]) for cell in selected)
    runner, where = options.runner(study)
    path = Path(options.folder or folder_of(study, scale))
    with _stopped_by_terminate(), Store(path, study.name, write=True) as store:
        print(f"{study.name} at scale {scale} in {path}, {where}", file=sys.stderr)
        try:
            text = run_cells(store, selected, runner, scale, command, retry=options.retry, stale=options.stale)
        except KeyboardInterrupt:
            states = store.states()
            done = sum(cell.key in states for cell in selected)
            raise Interrupted(
                f"stopped with {done:,} of {len(selected):,} cells finished; the same command continues"
            ) from None
        print(encodable(wrapped(text)), flush=True)
        if said := answer(store):
            print(encodable(said), flush=True)


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


def folder_of(study: Plan, scale: str) -> Path:
    """The folder of a run at a scale, unless another is named."""
    return RUNS / (study.name if len(study.scales) == 1 else f"{study.name}-{scale}")


def folders_of_runs(study: Plan, scale: str | None = None) -> list[Path]:
    """The folders under ``runs`` that have a store of a study."""
    folders = [folder_of(study, name) for name in study.scales if scale in (None, name)]
    return [folder for folder in folders if folder.joinpath(FILE).exists()]


def opened_store(study: Plan, scale: str | None = None, folder: str | Path | None = None) -> Store:
    """The store in the folder that is named, or in the only one that exists, to be read."""
    check_scale(study, scale)
    if folder is not None:
        return Store(folder, study.name)
    if scale is not None:
        return Store(folder_of(study, scale), study.name)
    found = folders_of_runs(study)
    if not found:
        raise EngineError(f"There is no run of {study.name} in {RUNS}: run it first, or name its folder with --out.")
    if len(found) > 1:
        raise EngineError(f"There are several runs ({', '.join(map(str, found))}): choose one with --scale or --out.")
    return Store(found[0], study.name)


def grid(study: Plan, scale: str) -> list[Cell]:
    """The cells of a scale; an error in the code of a study that lists them becomes one sentence."""
    try:
        return list(study.cells(scale))
    except EngineError:
        raise
    except Exception as error:
        words = " ".join(f"{type(error).__name__}: {error}".split()).rstrip(".")
        raise EngineError(f"The cells of {study.name} at scale {scale} cannot be listed ({words}).") from error


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


def run_cells(
    store: Store,
    cells: Sequence[Cell],
    runner: Runner,
    scale: str,
    command: str,
    *,
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
    old = set(stale_cells(cells, store))
    again = {cell.key for cell in cells if retry and states.get(cell.key, {}).get("status") == "failed"}
    again |= old if stale else set()
    pending = [cell for cell in cells if cell.key not in states or cell.key in again]
    if left := len(old - again):
        print(f"{left:,} of {len(states):,} cells are stale, as 'status' explains: {ADVICE}", file=sys.stderr)
    if pending:
        store.add_run(command, scale)
        label = f"{store.study} cells"
        present = Present()
        done = failed = 0

        def finished(arrived: Sequence[Arrived]) -> None:
            nonlocal done, failed
            with store.transaction():
                for cell, outcome in arrived:
                    dependencies = outcome.dependencies | present.main_dependencies(cell)
                    store.add(cell, replace(outcome, dependencies=dependencies))
                    done += 1
                    failed += outcome.status == "failed"
            report(done, len(pending), f", {failed:,} failed")

        with command_progress(label), counter(label) as report:
            runner(pending, finished)
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


def status_text(store: Store, study: Plan) -> str:
    """Count the cells of a store, and name what has changed since they were computed."""
    states = store.states()
    cells = {cell.key: cell for cell in run_grid(store, study)}
    known = [state for key, state in states.items() if key in cells]
    done = sum(state["status"] == "done" for state in known)
    lines = [
        f"{study.name} ({', '.join(store.scales())}) in {store.folder}",
        f"{done:,} done, {len(known) - done:,} failed, {len(cells) - len(known):,} pending, of {len(cells):,} cells",
        *failures(known),
        *stale_lines(cells.values(), store),
    ]
    if len(known) < len(states):
        lines.append(f"{len(states) - len(known):,} rows of cells that are no longer in the study, left out of tables")
    return "\n".join(lines)
