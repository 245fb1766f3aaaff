"""Progress of a run, and the time that the rest may take.

The seconds of pending cells are drawn from their distribution given the cells that have ended, in earlier runs too
(:mod:`admiss.study.cell_seconds`), and are cut at the time limit. To each cell comes the mean time that a worker has
spent between two cells, of one instance or of two, whose rows must be made. Each draw is then put on the workers as
they are: each takes the next cell when it is free, and the ones that have been busy for a while are ahead. Of many
cells only a sample is drawn, whose sum is divided among the workers.

The time left is the median over the draws, and its uncertainty the range of their middle four fifths.
"""

import math
import sys
import time
from collections.abc import Callable, Sequence
from itertools import groupby, pairwise
from typing import Any

import numpy as np

from admiss.study.cell_seconds import Array, CellSeconds, Design, sampled
from admiss.study.outcome import Outcome
from admiss.study.plan import Cell

# Seconds between two messages on a terminal and elsewhere.
PAUSE, LONG_PAUSE = 0.2, 60.0
# Part of the time that may be spent on estimates.
SHARE = 0.02
# Pending cells that are drawn, and draws of each.
DRAWN, DRAWS = 400, 60
# Ended cells of earlier runs that are read.
EARLIER = 1000
# Largest ratio of the ends of a range that is worth to be told, and the largest that is called "about".
VAGUE, PRECISE = 8.0, 1.6


class Progress:
    """Reports how much is done and how long the rest may take: on a terminal in one line, elsewhere every minute.

    Parameters
    ----------
    pending : sequence of Cell
        In the order in which workers take them.
    pilot : int
        Number of cells at the beginning that were put there to learn from: until they have ended, too little is known.
    total : int
        Number of cells, with those that are not pending.
    before : sequence of (Cell, float)
        Cells that have ended in earlier runs, with their seconds.
    failed : int
        Number of failed cells that are not pending.
    workers : int, optional
        Number of processes; by default as many as are heard of.
    seconds : float
        Time limit of a cell.
    clock : callable
        Seconds.
    """

    def __init__(
        self,
        pending: Sequence[Cell],
        total: int,
        *,
        pilot: int = 0,
        before: Sequence[tuple[Cell, float]] = (),
        failed: int = 0,
        workers: int | None = None,
        seconds: float = math.inf,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.total, self.done, self.failed = total, total - len(pending), failed
        self.left = {cell.key: cell for cell in pending}
        self.pilot = {cell.key for cell in pending[:pilot]}
        self.group: dict[str, int] = {}  # consecutive cells of an instance, which go to one worker
        for index, (_, cells) in enumerate(groupby(pending, key=lambda cell: cell.instance)):
            self.group.update((cell.key, index) for cell in cells)
        self.seconds = CellSeconds(Design(pending))
        for cell, elapsed in sampled(before, EARLIER):
            self.seconds.add(cell, elapsed)
        self.workers, self.limit, self.clock = workers, seconds, clock
        self.start, self.delay = clock(), math.inf
        self.processes: dict[tuple[str, int], tuple[float, Cell]] = {}  # when they ended their last cell, and which
        self.warm: set[Any] = set()  # processes with the functions that they have called
        self.gaps = {True: [0.0, 0], False: [0.0, 0]}  # by whether the instance changed: sum of seconds, number
        self.terminal = sys.stderr.isatty()
        self.shown = self.start
        self.pause = PAUSE if self.terminal else LONG_PAUSE
        self.width = 0

    def report(self, cell: Cell, outcome: Outcome) -> None:
        """Count a cell, and print a message if the last one is old enough."""
        now = self.clock()
        self.done += 1
        self.failed += outcome.status == "failed"
        self.left.pop(cell.key, None)
        self.pilot.discard(cell.key)
        process = (outcome.origin.get("machine", ""), outcome.pid)
        warm = (process, cell.method.run)
        self.seconds.add(cell, outcome.elapsed, first=warm not in self.warm)
        self.warm.add(warm)
        self.delay = min(self.delay, now - outcome.elapsed - self.start)
        if process in self.processes:  # the first cell comes with the start of the process
            ended, last = self.processes[process]
            gap = self.gaps[last.instance != cell.instance]
            gap[0] += max(0.0, now - ended - outcome.elapsed)
            gap[1] += 1
        self.processes[process] = (now, cell)
        if outcome.status == "failed":  # the process may be dead; if not, it will be heard of again
            del self.processes[process]
        if now - self.shown > self.pause:
            self.shown = now
            self._show(f"{self.done:,}/{self.total:,} cells, {self.failed:,} failed, {self.words()}")
            cost = self.clock() - now
            self.pause = max(PAUSE if self.terminal else LONG_PAUSE, cost / SHARE)

    def words(self) -> str:
        """The time left in words."""
        if not self.left:
            return "0 s left"
        least, middle, most = self.time_left()
        if self.pilot or not most <= VAGUE * least:
            return f"more than {duration(least / PRECISE)} left" if least > 1 else "estimating the time left"
        if most <= PRECISE * least or duration(least) == duration(most):
            return f"about {duration(middle)} left"
        return f"{duration(least)} to {duration(most)} left"

    def time_left(self) -> tuple[float, float, float]:
        """Estimate the seconds until all cells have ended: the ends of a range, and the median between them."""
        if not self.seconds.ended or not self.left:
            return (0.0, math.inf if self.left else 0.0, math.inf if self.left else 0.0)
        generator = np.random.default_rng(0)
        now, workers = self.clock(), self.workers or max(1, len(self.processes))
        busy, ages = self._busy(now, workers)
        computed = {cell.key for cell in busy}
        waiting = [cell for cell in self.left.values() if cell.key not in computed]
        drawn = sampled(waiting, DRAWN)
        seconds = self.seconds.draws([*busy, *drawn], ages, DRAWS, generator)
        seconds = np.minimum(seconds, self.limit)
        seconds[:, : len(ages)] -= np.minimum(ages, seconds[:, : len(ages)])
        seconds += self._between([*busy, *drawn])
        if len(drawn) == len(waiting):
            ends = _ends(seconds, workers)
        else:
            ends = seconds[:, : len(busy)].sum(1) + seconds[:, len(busy) :].mean(1) * len(waiting)
            ends /= workers
        least, middle, most = np.quantile(ends, [0.1, 0.5, 0.9])
        return float(least), float(middle), float(most)

    def _busy(self, now: float, workers: int) -> tuple[list[Cell], list[float]]:
        """Cells that are probably computed now, and for how long.

        A process continues with the instance of its last cell; others have begun with the first instances that are
        left. When there are more processes than instances, those that have been busy for longest have the longest
        cells.
        """
        first: dict[int, Cell] = {}
        for cell in self.left.values():
            first.setdefault(self.group[cell.key], cell)
        heard = sorted(self.processes.values(), key=lambda last: last[0])[-workers:]
        starts = [ended for ended, _ in heard] + [self.start + self.delay] * (workers - len(heard))
        if len(first) < workers:
            left = list(self.left.values())
            longest = np.argsort(-self.seconds.means(left), kind="stable")[:workers]
            busy = [(left[index], start) for index, start in zip(longest, sorted(starts), strict=False)]
        else:
            own = [(self.group[last.key], ended) for ended, last in heard]
            busy = [(first.pop(group), ended) for group, ended in own if group in first]
            others = sorted(set(starts) - {ended for _, ended in busy})
            busy += list(zip(first.values(), others, strict=False))
        return [cell for cell, _ in busy], [max(0.0, now - start) for _, start in busy]

    def _between(self, cells: Sequence[Cell]) -> Array:
        """Mean seconds that pass between cells and the ones before."""
        every = [cell.instance for cell in self.left.values()]
        changes = sum(one != other for one, other in pairwise(every)) + 1
        (new, new_count), (same, same_count) = self.gaps[True], self.gaps[False]
        for_same = same / same_count if same_count else new / max(1, new_count)
        for_new = new / new_count if new_count else for_same
        part = min(1.0, changes / len(every))
        return np.full(len(cells), part * for_new + (1 - part) * for_same)

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


def _ends(seconds: Array, workers: int) -> Array:
    """When the last worker is free, if each takes the next cell as soon as it is free; by draw."""
    free = np.zeros((len(seconds), workers))
    draws = np.arange(len(seconds))
    for column in seconds.T:
        free[draws, free.argmin(1)] += column
    ends: Array = free.max(1)
    return ends


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
