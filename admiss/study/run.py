"""A run of a study: the pending cells, their computation, and its progress.

Cells that are done are not computed again; failed cells and cells of other sources only on request. An old row stays
until the new one replaces it.
"""

import contextlib
import json
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from admiss._version import __version__
from admiss.study.digest import origin
from admiss.study.local import Finished
from admiss.study.outcome import Outcome
from admiss.study.store import Store
from admiss.study.study import SCALES, Cell, EngineError, Study
from admiss.versions import versions

# Seconds between two messages on a terminal and elsewhere.
PAUSE, LONG_PAUSE = 0.2, 60.0
Runner = Callable[[Sequence[Cell], Finished], None]


def pending_cells(
    cells: Sequence[Cell], states: Mapping[str, Mapping[str, Any]], digest: str, *, retry: bool, stale: bool
) -> list[Cell]:
    """Select the cells to compute, in their order."""

    def wanted(cell: Cell) -> bool:
        state = states.get(cell.key)
        if state is None:
            return True
        return (retry and state["status"] == "failed") or (stale and state["digest"] != digest)

    return [cell for cell in cells if wanted(cell)]


def matching(cells: Sequence[Cell], text: str | None) -> list[Cell]:
    """Select the cells whose recipe, as JSON in the form of the store, contains a text."""
    return [cell for cell in cells if text is None or text in json.dumps(cell.recipe)]


def grid_keys(store: Store, study: Study) -> set[str]:
    """Keys of all cells of a study at the scales at which a store was run."""
    scales = store.scales()
    for scale in scales:
        if scale not in SCALES:
            raise EngineError(
                f"{store.path} was run at the scale {scale!r}, which this version does not have (it has "
                f"{', '.join(SCALES)}): read it with the version that wrote it, or run again in another folder."
            )
    return {cell.key for scale in scales for cell in grid(study, scale)}


def grid(study: Study, scale: str) -> list[Cell]:
    """The cells of a scale."""
    with listed(study, scale):
        return list(study.cells(scale))


@contextlib.contextmanager
def listed(study: Study, scale: str) -> Iterator[None]:
    """Turn an error in the code of a study that lists its cells into one sentence."""
    try:
        yield
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
    sources: tuple[str, ...] = (),
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
    here = origin(sources)
    pending = pending_cells(cells, states, here["digest"], retry=retry, stale=stale)
    if pending:
        run = {"command": command, "scale": scale, "digest": here["digest"], "machine": here["machine"]}
        store.add_run({**run, "versions": json.dumps({**versions(), "admiss": __version__})})
        before = [(cell.method.name, states[cell.key]["elapsed"]) for cell in cells if cell.key in states]
        again = {cell.key for cell in pending}
        failed = sum(
            states[cell.key]["status"] == "failed" for cell in cells if cell.key in states and cell.key not in again
        )
        progress = Progress(pending, len(cells), before, failed)

        def finished(cell: Cell, outcome: Outcome) -> None:
            store.add(cell, outcome)
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
        lines.append("The same command with --retry computes failed cells again.")
    return "\n".join(lines)


def failures(states: Sequence[Mapping[str, Any]]) -> list[str]:
    """One line per reason, the most frequent first."""
    reasons = Counter(state["reason"] for state in states if state["status"] == "failed")
    return [f"  {count:,} failed: {reason}" for reason, count in reasons.most_common()]


class Progress:
    """Reports how much is done and how long the rest may take: on a terminal in one line, elsewhere every minute.

    The time left is the sum over pending cells of the mean time of their method, times the wall-clock seconds that one
    second of a method has taken so far, with all workers at once.
    """

    def __init__(
        self, pending: Sequence[Cell], total: int, before: Sequence[tuple[str, float]] = (), failed: int = 0
    ) -> None:
        self.total = total
        self.done = total - len(pending)
        self.failed = failed
        self.left = Counter(cell.method.name for cell in pending)
        self.times: defaultdict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
        for name, elapsed in before:
            self._count(name, elapsed)
        self.spent = 0.0
        self.start = time.monotonic()
        self.terminal = sys.stderr.isatty()
        self.shown = self.start
        self.width = 0

    def _count(self, name: str, elapsed: float) -> None:
        self.times[name][0] += elapsed
        self.times[name][1] += 1

    def report(self, cell: Cell, outcome: Outcome) -> None:
        """Count a cell, and print a message if the last one is old enough."""
        self.done += 1
        self.failed += outcome.status == "failed"
        self.left[cell.method.name] -= 1
        self.spent += outcome.elapsed
        self._count(cell.method.name, outcome.elapsed)
        now = time.monotonic()
        if now - self.shown > (PAUSE if self.terminal else LONG_PAUSE):
            self.shown = now
            self._show(f"{self.done:,}/{self.total:,} cells, {self.failed:,} failed, {duration(self.time_left())} left")

    def time_left(self) -> float:
        """Estimate the seconds until all cells are computed."""
        seconds, cells = (sum(parts) for parts in zip(*self.times.values(), strict=True))
        left = 0.0
        for name, count in self.left.items():
            own_seconds, own_cells = self.times.get(name, (seconds, cells))
            left += count * own_seconds / own_cells
        return left * (time.monotonic() - self.start) / self.spent if self.spent else left

    def _show(self, text: str) -> None:
        if self.terminal:
            self.width = max(self.width, len(text))
            print(f"\r{text:<{self.width}}", end="", file=sys.stderr, flush=True)
        else:
            print(text, file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Clear the line on a terminal."""
        if self.width:
            print("\r" + " " * self.width + "\r", end="", file=sys.stderr, flush=True)


def duration(seconds: float) -> str:
    """Seconds in words.

    Examples
    --------
    >>> duration(42), duration(300), duration(9000)
    ('42 s', '5 min', '2 h 30 min')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60:,} h {minutes % 60:02d} min"
