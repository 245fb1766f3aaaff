"""The process in which cells are computed one at a time, which :mod:`admiss.study.pool` starts.

It reads pickled cells from standard input and writes pickled objects to standard output: where it runs, then for every
cell what it depends on when it starts (:mod:`admiss.study.dependencies`) and its outcome. Whatever libraries print goes
to standard error.

Rows are made once for consecutive cells of an instance, and every method receives its own copy: whatever it writes into
them, the next one sees the rows as they were made.

The memory limit applies to private memory (``RLIMIT_DATA``) on Linux and to the address space (``RLIMIT_AS``) on other
systems that support it; Windows has none. The time limit is enforced by the parent, which kills this process. When the
parent dies, Linux kills this process; elsewhere standard input ends, and a thread ends the process.
"""

import contextlib
import copy
import ctypes
import faulthandler
import math
import os
import pickle
import queue
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from typing import IO, Any

from admiss.study.dependencies import Recorder
from admiss.study.plan import Outcome, Scores, encodable, origin
from admiss.study.shared_rows import row_sketch

# Characters of a traceback that are stored: the last calls and the error.
DETAILS = 2000
# Numbers that are compared: a cell with one that is not finite has failed.
COMPARED = ("score", "cv_score", "seconds")


def write_message(pipe: IO[bytes], message: Any) -> None:
    """Send a message, which ``pickle.load`` receives."""
    pickle.dump(message, pipe)
    pipe.flush()


def main(recorder: Recorder) -> None:
    """Compute cells until standard input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _die_with_parent()
    faulthandler.enable()
    reports = _protected_output()
    jobs: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(_protected_input(), jobs), daemon=True).start()
    recorder.install()
    computer = Computer(recorder)
    write_message(reports, origin())
    while True:
        pickled, gigabytes = jobs.get()
        outcome = computer.outcome(pickled, gigabytes, lambda dependencies: write_message(reports, dependencies))
        write_message(reports, outcome)


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
            jobs.put(pickle.load(pipe))
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
            _limit_memory(gigabytes)
            start = time.monotonic()
            if not same:
                self._make_rows(cell.instance, data)
            rows = copy.deepcopy(self.rows)
            start = time.monotonic()
            scores = plain_scores(cell.method.run(rows, cell.seed, **cell.method.parameters))
            return self._ended("done", start, data, scores=scores, rows=self.sketch)
        except BaseException as error:  # SystemExit too: the cell has failed, the worker continues
            reason = " ".join(f"{type(error).__name__}: {error}".split()).removesuffix(":")
            if isinstance(error, MemoryError):
                self.instance, self.rows = None, None
                reason = memory_reason(gigabytes)
            return self._ended("failed", start, data, reason=reason, details=traceback.format_exc()[-DETAILS:])

    def _make_rows(self, instance: Any, data: dict[str, str]) -> None:
        self.instance, self.rows = None, None
        self.rows = instance.make()
        # An instance with a field ``dataset`` says itself what it is made of.
        self.sketch = "" if hasattr(instance, "dataset") else row_sketch(self.rows)
        self.instance, self.data = instance, data

    def _ended(self, status: str, start: float, data: dict[str, str], **parts: Any) -> Outcome:
        elapsed = time.monotonic() - start
        dependencies = self.recorder.dependencies(data)
        return Outcome(status, elapsed=elapsed, pid=os.getpid(), dependencies=dependencies, **parts)


def plain_scores(scores: Any) -> Scores:
    """Convert the scores of a method to values of JSON; raises ``ValueError`` if they are not scores.

    A number that is not finite is an error among the compared ones, and None otherwise. Text is made encodable.

    Examples
    --------
    >>> plain_scores({"score": 0.5, "mu": (1.0, float("nan"))})
    {'score': 0.5, 'mu': [1.0, None]}
    """
    if not isinstance(scores, Mapping):
        raise ValueError(f"the method returned {type(scores).__name__} instead of a dict of scores")
    if "score" not in scores:
        raise ValueError("the method returned no score")
    plain = {encodable(str(name)): _plain(name, value) for name, value in scores.items()}
    for name in COMPARED:
        if name not in scores or (scores[name] is None and name != "score"):
            continue
        if isinstance(plain[name], bool) or not isinstance(plain[name], int | float):
            raise ValueError(f"{name} is {scores[name]!r}, not a finite number")
    return plain


def _plain(name: Any, value: Any) -> Any:
    if hasattr(value, "tolist"):  # arrays and scalars of numpy
        value = value.tolist()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, str):
        return encodable(value)
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, Mapping):
        return {encodable(str(key)): _plain(name, item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(name, item) for item in value]
    raise ValueError(f"{name} is of type {type(value).__name__}, not a plain value")


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
