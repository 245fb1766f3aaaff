"""The process in which cells are computed one at a time: ``python -m admiss.study.worker``.

It reads cells from standard input and reports on standard output, in frames: eight bytes with the length, then a
pickled object. Whatever libraries print goes to standard error. For every cell it reports the start with what the cell
depends on so far (:mod:`admiss.study.dependencies`), then the outcome.

Rows are made once for consecutive cells of an instance, and every method receives its own copy: whatever it writes into
them, the next one sees the rows as they were made.

The memory limit applies to private memory (``RLIMIT_DATA``) on Linux and to the address space (``RLIMIT_AS``) on other
systems that support it; Windows has none. The time limit is enforced by the parent, which kills this process.

When the parent dies, Linux kills this process. Elsewhere standard input ends, and a thread ends the process; if
compiled code does not let that thread run, a timer outside Python ends the process some time after the time limit.
"""

import contextlib
import copy
import ctypes
import faulthandler
import io
import os
import pickle
import queue
import signal
import struct
import sys
import threading
import time
import traceback
from collections.abc import Callable
from functools import partial
from typing import IO, Any

from admiss.study.dependencies import Recorder
from admiss.study.outcome import Outcome, origin, plain_scores
from admiss.study.shared_rows import row_sketch

LENGTH = struct.Struct("<Q")
# Seconds after the time limit at which a process that its parent has not killed ends by itself: its parent is dead.
GRACE = 30.0
# Characters of a traceback that are stored: the last calls and the error.
DETAILS = 2000


def write_frame(pipe: IO[bytes], message: Any) -> None:
    """Send a message."""
    content = pickle.dumps(message)
    pipe.write(LENGTH.pack(len(content)) + content)
    pipe.flush()


def read_frame(pipe: IO[bytes]) -> Any:
    """Receive the next message; raises ``EOFError`` at the end of the pipe, even in the middle of a message."""
    (length,) = LENGTH.unpack(_read(pipe, LENGTH.size))
    return pickle.loads(_read(pipe, length))


def _read(pipe: IO[bytes], size: int) -> bytes:
    pieces = []
    while size:
        piece = pipe.read(size)
        if not piece:
            raise EOFError("the other end of the pipe was closed")
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)


def main() -> None:
    """Compute cells until standard input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _die_with_parent()
    faulthandler.enable()
    reports = _protected_output()
    jobs: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(_protected_input(), jobs), daemon=True).start()
    recorder = Recorder()
    recorder.install()
    computer = Computer(recorder)
    write_frame(reports, ("ready", origin()))
    while True:
        pickled, seconds, gigabytes = jobs.get()
        outcome = computer.outcome(pickled, gigabytes, partial(_start, reports, seconds))
        faulthandler.cancel_dump_traceback_later()
        write_frame(reports, ("ended", outcome))


def _start(reports: IO[bytes], seconds: float, dependencies: dict[str, str]) -> None:
    """Start the clock, after everything that the cell needs has been imported."""
    faulthandler.dump_traceback_later(seconds + GRACE, exit=True)
    write_frame(reports, ("started", dependencies))


def _die_with_parent() -> None:
    """Ask Linux for SIGKILL when the thread that started this process ends."""
    if sys.platform == "linux":
        set_parent_death_signal = 1  # PR_SET_PDEATHSIG of prctl(2)
        ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL)


def _protected_input() -> IO[bytes]:
    """Return standard input; from now on it is empty: a forked process closes it, and would wait for who reads it."""
    jobs = os.fdopen(os.dup(0), "rb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return jobs


def _protected_output() -> IO[bytes]:
    """Return standard output; from now on, printed text goes to standard error, from compiled code too."""
    reports = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return reports


def _listen(pipe: IO[bytes], jobs: "queue.SimpleQueue[Any]") -> None:
    """Pass jobs on; the pipe ends when the parent has closed it or is dead, and nobody waits for a report."""
    with contextlib.suppress(EOFError, OSError, pickle.UnpicklingError):
        while True:
            jobs.put(read_frame(pipe))
    if hasattr(os, "killpg") and os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)  # together with the processes that methods have started
    os._exit(1)


class Computer:
    """Computes cells, and caches the rows of the last instance."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.instance: Any = None
        self.rows: Any = None
        self.data: dict[str, str] = {}  # declared files of the instance, with their hashes when the rows were made
        self.sketch = ""

    def outcome(self, pickled: bytes, gigabytes: float, started: Callable[[dict[str, str]], None]) -> Outcome:
        """Compute a pickled cell; every exception becomes a failed outcome."""
        start = time.monotonic()
        data: dict[str, str] = {}
        try:
            cell = pickle.loads(pickled)
            same = self.instance == cell.instance
            data = self.data if same else self.recorder.declared(cell.instance)
            started(self.recorder.dependencies(data))
            start = time.monotonic()
            _limit_memory(gigabytes)
            if not same:
                self.instance, self.rows = None, None
                self.rows = cell.instance.make()
                # An instance with a field ``dataset`` says itself what it is made of.
                self.sketch = "" if hasattr(cell.instance, "dataset") else row_sketch(self.rows)
                self.instance, self.data = cell.instance, data
            rows = copy.deepcopy(self.rows)
            start = time.monotonic()
            scores = plain_scores(cell.method.run(rows, cell.seed, **cell.method.parameters))
            return self._ended("done", start, data, scores=scores, rows=self.sketch)
        except MemoryError:
            self.instance, self.rows = None, None
            return self._ended("failed", start, data, reason=memory_reason(gigabytes), details=_last_lines())
        except BaseException as error:  # SystemExit too: the cell has failed, the worker continues
            words = " ".join(str(error).split())
            reason = f"{type(error).__name__}: {words}" if words else type(error).__name__
            return self._ended("failed", start, data, reason=reason, details=_last_lines())

    def _ended(self, status: str, start: float, data: dict[str, str], **parts: Any) -> Outcome:
        elapsed = time.monotonic() - start
        dependencies = self.recorder.dependencies(data)
        return Outcome(status, elapsed=elapsed, pid=os.getpid(), dependencies=dependencies, **parts)


def memory_reason(gigabytes: float) -> str:
    """Reason of a cell that needed more memory than allowed."""
    return f"memory limit of {gigabytes:g} GB"


def _limit_memory(gigabytes: float) -> None:
    try:
        import resource
    except ImportError:  # Windows
        return
    limit = resource.RLIMIT_DATA if sys.platform == "linux" else resource.RLIMIT_AS
    _, hard = resource.getrlimit(limit)
    size = int(gigabytes * 1e9)
    if hard != resource.RLIM_INFINITY:
        size = min(size, hard)
    with contextlib.suppress(ValueError, OSError):  # systems that define the limit but refuse to set it
        resource.setrlimit(limit, (size, hard))


def _last_lines() -> str:
    text = io.StringIO()
    traceback.print_exc(file=text)
    return text.getvalue()[-DETAILS:]


if __name__ == "__main__":
    main()
