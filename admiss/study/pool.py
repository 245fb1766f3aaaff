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

from admiss.study.plan import Cell, EngineError, Outcome, origin
from admiss.study.recipe import sent
from admiss.study.worker import DETAILS, memory_reason, write_message

Arrived = tuple[Cell, Outcome]
Finished = Callable[[Sequence[Arrived]], None]
# The engine is hashed before it is imported: a file that is saved meanwhile leaves its old hash.
CHILD = """\
from admiss.study.dependencies import Recorder
recorder = Recorder()
from admiss.study.worker import main
main(recorder)
"""
# Seconds within which a child must be ready, and within which it must have imported what a cell needs: some network
# disks take minutes for the first import.
START_SECONDS = 300.0
SINGLE_THREAD = (
    "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS", "NUMBA_NUM_THREADS", "LOKY_MAX_CPU_COUNT",
)  # fmt: skip


class Slot(Protocol):
    """Computes one cell at a time."""

    closed: bool

    def run(self, pickled: bytes) -> Outcome:
        """Compute a pickled cell."""

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
    are passed on first, unless ``finished`` itself has raised. ``slots`` is called again and again: it returns the
    slots that there are now, with those that there have been.
    """
    schedule = Schedule(cells)
    # What arrives while the disk is busy is written at once, but no slot runs far ahead of it.
    outcomes: queue.Queue[Arrived | Exception | None] = queue.Queue(maxsize=32)
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
                # some systems cannot interrupt a longer wait by Ctrl-C
                messages = [outcomes.get(timeout=0.5), *_waiting(outcomes)]
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
            outcomes.put((cell, outcome_of(cell, slot)))
        slot.close()
        outcomes.put(None)
    except ClosedError:
        pass
    except Exception as error:  # raised again by the coordinator
        outcomes.put(error)


def outcome_of(cell: Cell, slot: Slot) -> Outcome:
    """Compute a cell in a slot; raises ``ClosedError``, or ``EngineError`` if the slot cannot compute."""
    try:
        pickled = sent(cell)
    except Exception as error:  # a lambda, for instance
        return Outcome("failed", f"the cell cannot be sent to a worker: {error}", origin=origin(), pid=os.getpid())
    return slot.run(pickled)


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
    """Computes cells in a child process, which is started on demand, within limits per cell."""

    def __init__(self, seconds: float, gigabytes: float) -> None:
        self.seconds = seconds
        self.gigabytes = gigabytes
        self.closed = False
        self._lock = threading.Lock()
        self._child: _Child | None = None

    def run(self, pickled: bytes) -> Outcome:
        """Compute a pickled cell; raises ``ClosedError``, or ``EngineError`` if no child can start."""
        outcome, again = self._attempt(pickled)
        return self._attempt(pickled)[0] if again else outcome

    def close(self) -> None:
        """Kill the child; the cell that it is computing has no outcome."""
        with self._lock:
            self.closed = True
            if self._child is not None:
                self._child.kill()

    def _attempt(self, pickled: bytes) -> tuple[Outcome, bool]:
        """The outcome, and whether the cell should be tried again."""
        child = self._living_child()
        again, child.used = child.used, True
        dependencies: dict[str, str] = {}
        start = time.monotonic()
        limit = f"start limit of {START_SECONDS:g} s: what the cell needs was not imported by then"
        try:
            child.send((pickled, self.gigabytes))
            report = child.report(START_SECONDS)
            if not isinstance(report, Outcome):  # an outcome if it could not be unpickled
                dependencies = report
                start = time.monotonic()
                limit = f"time limit of {self.seconds:g} s"
                report = child.report(self.seconds)
            outcome: Outcome = replace(report, origin=child.origin)
            if outcome.reason != memory_reason(self.gigabytes):
                return outcome, False
        except (queue.Empty, EOFError, OSError) as error:
            elapsed = time.monotonic() - start
            again = not isinstance(error, queue.Empty)
            reason = child.death() if again else limit
            facts: dict[str, Any] = {"origin": child.origin, "pid": child.process.pid, "dependencies": dependencies}
            outcome = Outcome("failed", reason, child.printed(), elapsed=elapsed, **facts)
        self._drop(child)
        return outcome, again

    def _living_child(self) -> "_Child":
        with self._lock:
            if self.closed:
                raise ClosedError
            if self._child is not None and self._child.process.poll() is None:
                return self._child
            child = self._child = _Child()
        try:
            child.origin = child.report(START_SECONDS)
        except (queue.Empty, EOFError) as error:
            late = isinstance(error, queue.Empty)
            reason = f"it was not ready after {START_SECONDS:g} s" if late else child.death()
            self._drop(child)
            last = child.printed().strip().splitlines()[-1:]
            raise EngineError(f"A worker could not start: {' '.join([reason, *last])}.") from None
        return child

    def _drop(self, child: "_Child") -> None:
        with self._lock:
            child.kill()
            self._child = None
            if self.closed:
                raise ClosedError


class _Child:
    """The process, a thread that reads its reports, and a file with its standard error."""

    def __init__(self) -> None:
        self.origin = origin()  # until it reports its own
        self.used = False
        self.killed = False
        self.reports: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.errors = tempfile.TemporaryFile("a+b")  # noqa: SIM115 (closed with this object)
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-c", CHILD],
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
        write_message(self.stdin, job)

    def report(self, seconds: float) -> Any:
        """Wait for a report; raises ``queue.Empty`` after so many seconds, ``EOFError`` if the child dies."""
        report = self.reports.get(timeout=seconds)
        if report is None:
            raise EOFError
        return report

    def death(self) -> str:
        """How a child that has closed its output ended; it gets two seconds to end by itself, then it is killed."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(2)
        self.kill()
        code = self.process.returncode
        return f"the worker died ({f'signal {-code}' if code < 0 else f'exit code {code}'})"

    def kill(self) -> None:
        """Kill the process and those that it has started, once: later its number may belong to another one."""
        if self.killed:
            return
        self.killed = True
        with contextlib.suppress(ProcessLookupError, PermissionError):  # all have ended
            if hasattr(os, "killpg"):
                os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()
        self.process.wait()
        with contextlib.suppress(OSError):  # unsent input is lost
            self.stdin.close()

    def printed(self) -> str:
        """The end of its standard error."""
        self.errors.seek(0, os.SEEK_END)
        self.errors.seek(max(0, self.errors.tell() - DETAILS))
        return self.errors.read().decode(errors="replace")


def _pass_on(pipe: IO[bytes], reports: "queue.SimpleQueue[Any]") -> None:
    with pipe, contextlib.suppress(EOFError, OSError, pickle.UnpicklingError):
        while True:
            reports.put(pickle.load(pipe))
    reports.put(None)


def _environment() -> dict[str, str]:
    """Environment of the child: single threads, fixed hashes, and the import path of this process."""
    path = os.pathsep.join(map(os.path.abspath, sys.path))
    threads = dict.fromkeys(SINGLE_THREAD, "1")
    return {**os.environ, **threads, "PYTHONHASHSEED": "0", "PYTHONPATH": path}
