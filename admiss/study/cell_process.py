"""A child process that computes cells, seen from its parent: limits, deaths and restarts.

Every cell ends in an outcome:

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
from dataclasses import replace
from typing import IO, Any, NamedTuple

from admiss.study.outcome import Outcome, origin
from admiss.study.plan import Cell, EngineError
from admiss.study.sending import sent
from admiss.study.worker import DETAILS, memory_reason, read_frame, write_frame

# Seconds within which a child must be ready, and within which it must have imported what a cell needs.
START_SECONDS = 300.0
# Seconds within which a child that has closed its output ends by itself.
END_SECONDS = 2.0
SINGLE_THREAD = (
    "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS", "NUMBA_NUM_THREADS", "LOKY_MAX_CPU_COUNT",
)  # fmt: skip


class ClosedError(Exception):
    """The process was closed while it computed: the cell has no outcome."""


class _Attempt(NamedTuple):
    outcome: Outcome
    again: bool = False


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
        first = self._attempt(cell)
        return self._attempt(cell).outcome if first.again else first.outcome

    def close(self) -> None:
        """Kill the child; the cell that it is computing has no outcome."""
        with self._lock:
            self.closed = True
            if self._child is not None:
                self._child.kill()

    def _attempt(self, cell: Cell | bytes) -> _Attempt:
        child = self._living_child()
        child.dependencies = {}
        start = time.monotonic()
        try:
            pickled = cell if isinstance(cell, bytes) else sent(cell)
        except Exception as error:  # a lambda, for instance
            return _Attempt(self._failed(cannot_be_sent(error), start, child))
        limit = f"start limit of {START_SECONDS:g} s: what the cell needs was not imported by then"
        try:
            child.send((pickled, self.seconds, self.gigabytes))
            child.dependencies = child.report("started", START_SECONDS) or {}
            limit = f"time limit of {self.seconds:g} s"
            start = time.monotonic()
            outcome: Outcome = child.report("ended", self.seconds)
        except queue.Empty:
            self._drop(child)
            return _Attempt(self._failed(limit, start, child))
        except (EOFError, OSError):
            child.let_end()
            self._drop(child)
            return _Attempt(self._failed(child.death(), start, child), again=True)
        used, child.cells = child.cells > 0, child.cells + 1
        outcome = replace(outcome, origin=child.origin)
        if outcome.reason == memory_reason(self.gigabytes):
            self._drop(child)
            return _Attempt(outcome, again=used)
        return _Attempt(outcome)

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
