"""The process in which cells are computed, one at a time: ``python -m admiss.study.worker``.

It reads cells from its standard input and answers on its standard output, in frames. What libraries print goes to
standard error. For every cell it says that it has started, then how it ended.

Rows are made once for consecutive cells of an instance, and every method gets a copy of its own: whatever it writes
into them, the next one sees the rows as they were made.

The memory limit is on the private memory (``RLIMIT_DATA``) on Linux and on the address space (``RLIMIT_AS``) on other
systems that have one; there is none on Windows. The time limit is kept by the parent, which kills.

When the parent dies, Linux kills the process. Elsewhere standard input ends, and a thread ends the process; where
compiled code does not let that thread run, a timer without Python ends it some time after the time limit.
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
import sys
import threading
import time
import traceback
from functools import partial
from typing import IO, Any

from admiss.study.digest import origin
from admiss.study.frames import read_frame, write_frame
from admiss.study.outcome import Outcome, plain_scores

# Seconds after the time limit at which a process that its parent has not killed ends by itself.
GRACE = 30.0
# Characters of a traceback that are kept.
DETAILS = 2000


def main() -> None:
    """Answer until standard input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _die_with_parent()
    faulthandler.enable()
    answers = _protected_output()
    jobs: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(sys.stdin.buffer, jobs), daemon=True).start()
    write_frame(answers, ("ready", origin()))
    computer = Computer()
    while True:
        pickled, seconds, gigabytes = jobs.get()
        outcome = computer.outcome(pickled, gigabytes, partial(_start, answers, seconds))
        faulthandler.cancel_dump_traceback_later()
        write_frame(answers, ("ended", outcome))


def _start(answers: IO[bytes], seconds: float) -> None:
    """From here on time counts: what the cell needs is imported."""
    faulthandler.dump_traceback_later(seconds + GRACE, exit=True)
    write_frame(answers, ("started", None))


def _die_with_parent() -> None:
    """Ask Linux for SIGKILL when the thread that started this process ends."""
    if sys.platform == "linux":
        set_parent_death_signal = 1  # PR_SET_PDEATHSIG of prctl(2)
        ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL)


def _protected_output() -> IO[bytes]:
    """Standard output as it was; from now on, what is printed goes to standard error, also from compiled code."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return answers


def _listen(pipe: IO[bytes], jobs: "queue.SimpleQueue[Any]") -> None:
    """Pass jobs on; at the end of the pipe the parent has closed it or is dead, and nobody waits for an answer."""
    with contextlib.suppress(EOFError, OSError, pickle.UnpicklingError):
        while True:
            jobs.put(read_frame(pipe))
    if hasattr(os, "killpg") and os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)  # with the processes that methods have started
    os._exit(1)


class Computer:
    """Computes cells, and keeps the rows of the last instance."""

    def __init__(self) -> None:
        self.instance: Any = None
        self.rows: Any = None

    def outcome(self, pickled: bytes, gigabytes: float, started: Any) -> Outcome:
        """The outcome of a pickled cell; nothing that it raises is passed on."""
        began = time.monotonic()
        try:
            cell = pickle.loads(pickled)
            started()
            began = time.monotonic()
            _limit_memory(gigabytes)
            if self.instance != cell.instance:
                self.instance, self.rows = None, None
                self.rows = cell.instance.make()
                self.instance = cell.instance
            rows = copy.deepcopy(self.rows)
            began = time.monotonic()
            scores = plain_scores(cell.method.run(rows, cell.seed, **cell.method.parameters))
            return self._ended("done", began, scores=scores)
        except MemoryError:
            self.instance, self.rows = None, None
            return self._ended("failed", began, reason=memory_reason(gigabytes), details=_last_lines())
        except BaseException as error:  # SystemExit too: the cell has failed, the worker goes on
            words = " ".join(str(error).split())
            reason = f"{type(error).__name__}: {words}" if words else type(error).__name__
            return self._ended("failed", began, reason=reason, details=_last_lines())

    @staticmethod
    def _ended(status: str, began: float, **parts: Any) -> Outcome:
        elapsed = time.monotonic() - began
        return Outcome(status, elapsed=elapsed, origin=origin(), pid=os.getpid(), **parts)


def memory_reason(gigabytes: float) -> str:
    """How a cell is said to fail that wanted more memory than it may have."""
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
    with contextlib.suppress(ValueError, OSError):  # systems that know the limit and refuse it
        resource.setrlimit(limit, (size, hard))


def _last_lines() -> str:
    text = io.StringIO()
    traceback.print_exc(file=text)
    return text.getvalue()[-DETAILS:]


if __name__ == "__main__":
    main()
