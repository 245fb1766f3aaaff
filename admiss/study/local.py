"""A run on this machine: cells go to child processes, and the coordinator receives each outcome at once.

The cells of an instance go to one worker, which makes its rows once; an idle worker takes cells from the end of the
longest list of another. Each worker is a thread of this process that waits for its child.
"""

import queue
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby

from admiss.study.cell_process import CellProcess, ClosedError
from admiss.study.outcome import Outcome
from admiss.study.plan import Cell

Arrived = tuple[Cell, Outcome]
Finished = Callable[[Sequence[Arrived]], None]
# Outcomes of a worker that may wait: what arrives while the disk is busy is written at once.
MOST_WAITING = 8
# Seconds after which a wait is interrupted, for Ctrl-C on systems that cannot interrupt it.
PATIENCE = 0.5


def run_locally(
    cells: Iterable[Cell],
    finished: Finished,
    *,
    workers: int,
    seconds: float,
    gigabytes: float,
) -> None:
    """Compute cells in processes, and call ``finished`` in this thread with those that have ended since the last call.

    However it ends, by Ctrl-C or an error in ``finished`` too, the processes are killed; outcomes that have arrived by
    then are passed on first, unless ``finished`` itself has raised.
    """
    schedule = Schedule(cells, workers)
    processes = [CellProcess(seconds, gigabytes) for _ in range(workers)]
    # Bounded, to keep workers from running ahead of a slow disk.
    outcomes: queue.Queue[Arrived | Exception | None] = queue.Queue(maxsize=MOST_WAITING * workers)
    for index, process in enumerate(processes):
        threading.Thread(target=_work, args=(index, process, schedule, outcomes), daemon=True).start()
    living = workers
    arrived: list[Arrived] = []
    try:
        while living:
            try:
                messages = [outcomes.get(timeout=PATIENCE), *_waiting(outcomes)]
            except queue.Empty:
                continue
            arrived += [message for message in messages if isinstance(message, tuple)]
            if arrived:
                finished(arrived)
                arrived = []
            for message in messages:
                if isinstance(message, Exception):
                    raise message
            living -= messages.count(None)
    except KeyboardInterrupt:
        schedule.stop()
        arrived += [message for message in _waiting(outcomes) if isinstance(message, tuple)]
        if arrived:
            finished(arrived)
        raise
    finally:
        schedule.stop()
        for process in processes:
            process.close()


def _waiting(outcomes: "queue.Queue[Arrived | Exception | None]") -> list[Arrived | Exception | None]:
    return [outcomes.get_nowait() for _ in range(outcomes.qsize())]


def _work(index: int, process: CellProcess, schedule: "Schedule", outcomes: "queue.Queue[object]") -> None:
    try:
        while (cell := schedule.next(index)) is not None:
            outcomes.put((cell, process.run(cell)))
        process.close()
        outcomes.put(None)
    except ClosedError:
        pass
    except Exception as error:  # raised again by the coordinator
        outcomes.put(error)


class Schedule:
    """The order in which workers take cells."""

    def __init__(self, cells: Iterable[Cell], workers: int) -> None:
        self._lock = threading.Lock()
        self._waiting = deque(deque(group) for _, group in groupby(cells, key=lambda cell: cell.instance))
        self._taken: list[deque[Cell]] = [deque() for _ in range(workers)]

    def next(self, worker: int) -> Cell | None:
        """Take a cell of the same instance, of the next instance, or of the instance of another worker."""
        with self._lock:
            if not self._taken[worker] and self._waiting:
                self._taken[worker] = self._waiting.popleft()
            if self._taken[worker]:
                return self._taken[worker].popleft()
            longest = max(self._taken, key=len)
            return longest.pop() if longest else None

    def stop(self) -> None:
        """Drop all remaining cells."""
        with self._lock:
            self._waiting.clear()
            for cells in self._taken:
                cells.clear()
