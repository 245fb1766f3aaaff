"""The pool: threads that take cells from a schedule, and child processes that compute them.

The cells of an instance go to one slot, whose process makes its rows once; an idle slot takes cells from the end of the
longest list of another. A slot is a thread of this process, which waits for its child or for a worker of Dask
(:mod:`admiss.study.dask_cluster`). Every cell ends in an outcome:

    done or failed      as reported by the child
    time limit          the child is killed
    death               the child ended by itself or was killed; the cell is tried once more in a new child
    no start            what the cell needs was not imported in time; the child is killed
    memory limit        the child is killed; if it had computed other cells before, which may have left something in its
                        memory, the cell is tried once more in a new child

A cell process is used from one thread, and may be closed from any other. On Linux the child dies with the thread that
started it; another thread starts another child.
"""

import contextlib
import os
import pickle
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import groupby
from typing import IO, Any, Protocol

from admiss.atomic_write import EngineError
from admiss.study.outcome import Outcome, origin
from admiss.study.plan import Cell
from admiss.study.recipe import sent
from admiss.study.worker import DETAILS, memory_reason, read_frame, write_frame

Arrived = tuple[Cell, Outcome]
Finished = Callable[[Sequence[Arrived]], None]
# Outcomes that may wait: what arrives while the disk is busy is written at once, but no slot runs far ahead of it.
MOST_WAITING = 32
# Seconds after which a wait is interrupted, for Ctrl-C on systems that cannot interrupt it.
PATIENCE = 0.5
# Seconds within which a child must be ready, and within which it must have imported what a cell needs: some network
# disks take minutes for the first import.
START_SECONDS = 300.0
# Seconds within which a child that has closed its output ends by itself: it has nothing left to do.
END_SECONDS = 2.0
SINGLE_THREAD = (
    "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS", "NUMBA_NUM_THREADS", "LOKY_MAX_CPU_COUNT",
)  # fmt: skip


class Slot(Protocol):
    """Computes one cell at a time."""

    closed: bool

    def run(self, cell: Cell) -> Outcome | None:
        """Compute a cell; None if it has no outcome yet."""

    def close(self) -> None:
        """Stop computing; the cell has no outcome."""


class ClosedError(Exception):
    """The slot was closed while it computed: the cell has no outcome."""


def run_locally(cells: Iterable[Cell], finished: Finished, *, workers: int, seconds: float, gigabytes: float) -> None:
    """Compute cells in processes of this machine, see :func:`compute`."""
    slots = [CellProcess(seconds, gigabytes) for _ in range(workers)]
    compute(cells, finished, lambda: slots)


def compute(cells: Iterable[Cell], finished: Finished, slots: Callable[[], Sequence[Slot]]) -> None:
    """Compute cells in slots, and call ``finished`` in this thread with those that have ended since the last call.

    However it ends, by Ctrl-C or an error in ``finished`` too, the slots are closed; outcomes that have arrived by then
    are passed on first, unless ``finished`` itself has raised.

    Parameters
    ----------
    cells : iterable of Cell
    finished : callable
    slots : callable
        The slots that there are now, with those that there have been; called again and again.
    """
    schedule = Schedule(cells)
    outcomes: queue.Queue[Arrived | Exception | None] = queue.Queue(maxsize=MOST_WAITING)
    used: list[Slot] = []
    living = 0
    arrived: list[Arrived] = []
    try:
        while living or schedule.has_cells():
            for slot in slots():
                if slot not in used and schedule.has_cells():
                    used.append(slot)
                    living += 1
                    threading.Thread(target=_work, args=(slot, schedule, outcomes), daemon=True).start()
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
        for slot in used:
            slot.close()


def _waiting(outcomes: "queue.Queue[Arrived | Exception | None]") -> list[Arrived | Exception | None]:
    return [outcomes.get_nowait() for _ in range(outcomes.qsize())]


def _work(slot: Slot, schedule: "Schedule", outcomes: "queue.Queue[Any]") -> None:
    try:
        while not slot.closed and (cell := schedule.next(slot)) is not None:
            outcome = slot.run(cell)
            if outcome is not None:
                outcomes.put((cell, outcome))
        slot.close()
        outcomes.put(None)
    except ClosedError:
        pass
    except Exception as error:  # raised again by the coordinator
        outcomes.put(error)


class Schedule:
    """The order in which slots take cells."""

    def __init__(self, cells: Iterable[Cell]) -> None:
        self._lock = threading.Lock()
        self._waiting = deque(deque(group) for _, group in groupby(cells, key=lambda cell: cell.instance))
        self._taken: dict[object, deque[Cell]] = {}

    def next(self, slot: object) -> Cell | None:
        """Take a cell of the same instance, of the next instance, or of the instance of another slot."""
        with self._lock:
            if not self._taken.get(slot) and self._waiting:
                self._taken[slot] = self._waiting.popleft()
            if self._taken.get(slot):
                return self._taken[slot].popleft()
            longest = max(self._taken.values(), key=len, default=None)
            return longest.pop() if longest else None

    def has_cells(self) -> bool:
        """Whether there are cells that no slot has taken."""
        with self._lock:
            return bool(self._waiting) or any(self._taken.values())

    def stop(self) -> None:
        """Drop all remaining cells."""
        with self._lock:
            self._waiting.clear()
            self._taken.clear()


class CellProcess:
    """Computes cells in a child process, which is started on demand.

    Parameters
    ----------
    seconds, gigabytes : float
        Limits per cell.
    """

    def __init__(self, seconds: float, gigabytes: float) -> None:
        self.seconds = seconds
        self.gigabytes = gigabytes
        self.closed = False
        self._lock = threading.Lock()
        self._child: _Child | None = None

    def run(self, cell: Cell | bytes) -> Outcome:
        """Compute a cell, which may be pickled; raises ``ClosedError``, or ``EngineError`` if no child can start."""
        outcome, again = self._attempt(cell)
        return self._attempt(cell)[0] if again else outcome

    def close(self) -> None:
        """Kill the child; the cell that it is computing has no outcome."""
        with self._lock:
            self.closed = True
            if self._child is not None:
                self._child.kill()

    def _attempt(self, cell: Cell | bytes) -> tuple[Outcome, bool]:
        """The outcome, and whether the cell should be tried again."""
        child = self._living_child()
        child.dependencies = {}
        start = time.monotonic()
        try:
            pickled = cell if isinstance(cell, bytes) else sent(cell)
        except Exception as error:  # a lambda, for instance
            return self._failed(cannot_be_sent(error), start, child), False
        limit = f"start limit of {START_SECONDS:g} s: what the cell needs was not imported by then"
        try:
            child.send((pickled, self.seconds, self.gigabytes))
            child.dependencies = child.report("started", START_SECONDS) or {}
            limit = f"time limit of {self.seconds:g} s"
            start = time.monotonic()
            outcome: Outcome = child.report("ended", self.seconds)
        except queue.Empty:
            self._drop(child)
            return self._failed(limit, start, child), False
        except (EOFError, OSError):
            child.let_end()
            self._drop(child)
            return self._failed(child.death(), start, child), True
        used, child.cells = child.cells > 0, child.cells + 1
        outcome = replace(outcome, origin=child.origin)
        if outcome.reason == memory_reason(self.gigabytes):
            self._drop(child)
            return outcome, used
        return outcome, False

    def _living_child(self) -> "_Child":
        with self._lock:
            if self.closed:
                raise ClosedError
            if self._child is None or self._child.process.poll() is not None:
                self._child = _Child()
            child = self._child
        if not child.ready:
            try:
                child.origin = child.report("ready", START_SECONDS)
                child.ready = True
            except queue.Empty:
                self._drop(child)
                raise EngineError(f"A worker could not start: it was not ready after {START_SECONDS:g} s.") from None
            except EOFError:
                child.let_end()
                self._drop(child)
                last = child.printed().strip().splitlines()[-1:]
                raise EngineError(f"A worker could not start: {' '.join([child.death(), *last])}.") from None
        return child

    def _drop(self, child: "_Child") -> None:
        with self._lock:
            child.kill()
            self._child = None
            if self.closed:
                raise ClosedError

    def _failed(self, reason: str, start: float, child: "_Child") -> Outcome:
        elapsed = time.monotonic() - start
        where: dict[str, Any] = {"origin": child.origin, "pid": child.process.pid, "dependencies": child.dependencies}
        return Outcome("failed", reason, child.printed(), elapsed=elapsed, **where)


def cannot_be_sent(error: Exception) -> str:
    """Reason of a cell that cannot be pickled."""
    return f"the cell cannot be sent to a worker: {error}"


class _Child:
    """The process, a thread that reads its reports, and a file with its standard error."""

    def __init__(self) -> None:
        self.ready = False
        self.origin = origin()  # until it reports its own
        self.dependencies: dict[str, str] = {}  # of the cell that it computes, when it started
        self.cells = 0
        self.reports: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.errors = tempfile.TemporaryFile("a+b")  # noqa: SIM115 (closed with this object)
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "admiss.study.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            env=_environment(),
            # A process group of its own: Ctrl-C in the terminal does not reach it, and it is killed with its children.
            start_new_session=True,
            creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.stdin: IO[bytes] = self.process.stdin
        threading.Thread(target=_pass_on, args=(self.process.stdout, self.reports), daemon=True).start()

    def send(self, job: Any) -> None:
        self.errors.truncate(0)
        write_frame(self.stdin, job)

    def report(self, kind: str, seconds: float) -> Any:
        """Wait for a report of a kind; raises ``queue.Empty`` after so many seconds, ``EOFError`` if the child dies."""
        deadline = time.monotonic() + seconds
        while True:
            report = self.reports.get(timeout=max(0.0, deadline - time.monotonic()))
            if report is None:
                raise EOFError
            if report[0] == kind:
                return report[1]
            if report[0] == "ended":  # before it started: the cell could not be unpickled
                self.reports.put(report)
                return None

    def let_end(self) -> None:
        """Give a child that has closed its output time to end: its own death is reported, not the kill.

        The process is not reaped: its group, which includes the processes that it has started, keeps its number.
        """
        if not hasattr(os, "waitid"):
            time.sleep(END_SECONDS / 4)
            return
        deadline = time.monotonic() + END_SECONDS
        with contextlib.suppress(ChildProcessError):  # reaped by a thread that closes
            while os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
                if time.monotonic() > deadline:
                    return
                time.sleep(0.01)

    def kill(self) -> None:
        if self.process.returncode is not None:  # reaped: its number may belong to another process by now
            return
        try:
            if hasattr(os, "killpg"):
                os.killpg(self.process.pid, signal.SIGKILL)
            else:
                self.process.kill()
        except (ProcessLookupError, PermissionError):  # it has ended
            self.process.kill()
        self.process.wait()
        with contextlib.suppress(OSError):  # unsent input is lost
            self.stdin.close()

    def death(self) -> str:
        code = self.process.returncode
        return f"the worker died ({f'signal {-code}' if code < 0 else f'exit code {code}'})"

    def printed(self) -> str:
        """The end of its standard error."""
        self.errors.seek(0, os.SEEK_END)
        self.errors.seek(max(0, self.errors.tell() - DETAILS))
        return self.errors.read().decode(errors="replace")


def _pass_on(pipe: IO[bytes], reports: "queue.SimpleQueue[Any]") -> None:
    try:
        while True:
            reports.put(read_frame(pipe))
    except (EOFError, OSError, pickle.UnpicklingError):
        reports.put(None)
    finally:
        pipe.close()


def _environment() -> dict[str, str]:
    """Environment of the child: single threads, fixed hashes, and the import path of this process."""
    path = os.pathsep.join(map(os.path.abspath, sys.path))
    threads = dict.fromkeys(SINGLE_THREAD, "1")
    return {**os.environ, **threads, "PYTHONHASHSEED": "0", "PYTHONPATH": path}
