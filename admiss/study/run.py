"""A run of a study: the pending cells and their computation.

Cells that are done are not computed again; failed cells and stale cells only on request. An old row stays until the
new one replaces it.
"""

import contextlib
import json
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from admiss._version import __version__
from admiss.atomic_write import NamedFile
from admiss.study.local import Arrived, Finished
from admiss.study.outcome import origin
from admiss.study.plan import Cell, EngineError, Plan
from admiss.study.progress import Progress
from admiss.study.recipe import RecipeError
from admiss.study.stale import ADVICE, Present, stale_cells
from admiss.study.store import Store
from admiss.versions import versions

Runner = Callable[[Sequence[Cell], Finished], None]


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
            with store.together():
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
