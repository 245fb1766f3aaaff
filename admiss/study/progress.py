"""Progress of a run, and the time that the rest may take.

A pending cell is expected to take the mean seconds of the cells of its method that have ended, in earlier runs too (of
all cells if there are none). The rest takes as long as the run has taken so far, in proportion to these seconds.
"""

import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence

from admiss.study.outcome import Outcome
from admiss.study.plan import Cell
from admiss.terminal.progress import PAUSE

# Seconds between two messages where there is no terminal: a run of a night leaves a log that can be read.
LONG_PAUSE = 60.0


class Progress:
    """Reports how much is done and how long the rest may take: on a terminal in one line, elsewhere every minute.

    Parameters
    ----------
    pending : sequence of Cell
    total : int
        Number of cells, with those that are not pending.
    before : sequence of (Cell, float)
        Cells that have ended in earlier runs, with their seconds.
    failed : int
        Number of failed cells that are not pending.
    clock : callable
        Seconds.
    """

    def __init__(
        self,
        pending: Sequence[Cell],
        total: int,
        *,
        before: Sequence[tuple[Cell, float]] = (),
        failed: int = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.total = total
        self.done = total - len(pending)
        self.failed = failed
        self.left = Counter(cell.method.name for cell in pending)
        self.ended: Counter[str] = Counter()
        self.seconds: defaultdict[str, float] = defaultdict(float)  # of ended cells, by method
        for cell, elapsed in before:
            self._add(cell, elapsed)
        self.spent = 0.0  # seconds of cells in this run
        self.clock = clock
        self.start = clock()
        self.shown = self.start
        self.terminal = sys.stderr.isatty()
        self.width = 0

    def _add(self, cell: Cell, elapsed: float) -> None:
        self.ended[cell.method.name] += 1
        self.seconds[cell.method.name] += elapsed

    def report(self, cell: Cell, outcome: Outcome) -> None:
        """Count a cell, and print a message if the last one is old enough."""
        now = self.clock()
        self.done += 1
        self.failed += outcome.status == "failed"
        self.left[cell.method.name] -= 1
        self.spent += outcome.elapsed
        self._add(cell, outcome.elapsed)
        if now - self.shown > (PAUSE if self.terminal else LONG_PAUSE):
            self.shown = now
            self._show(f"{self.done:,}/{self.total:,} cells, {self.failed:,} failed, {self.words()}")

    def words(self) -> str:
        """The time left as text."""
        if self.done == self.total:
            return "0 s left"
        if not self.spent:
            return "estimating the time left"
        overall = sum(self.seconds.values()) / self.ended.total()
        rest = 0.0
        for name, count in self.left.items():
            rest += count * (self.seconds[name] / self.ended[name] if self.ended[name] else overall)
        return f"about {duration((self.clock() - self.start) * rest / self.spent)} left"

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
    """Seconds as text.

    Examples
    --------
    >>> duration(42), duration(300), duration(9000)
    ('42 s', '5 min', '2 h 30 min')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60:,} h {minutes % 60:02d} min"
