"""A run on Dask: on the workers of a running scheduler, or on a local cluster.

Each thread of a Dask worker is a slot of the pool (:mod:`admiss.study.pool`). A task is one cell, and computes in a
child process of its Dask worker, as on one machine: Dask runs tasks in threads, in which Pyomo with HiGHS hangs, and
only a process can be held to limits. The child is reused for the next cell, mostly of the same instance.

    a worker dies           Dask gives its cells to others; outcomes that have arrived stay as they are
    a worker joins          it takes cells within seconds
    a worker differs        its files or packages are not those of this process: the run ends with a sentence
    several workers die     with a cell, more than Dask's ``allowed-failures``: it has failed, as after any other death
    the scheduler is lost   the run ends with a sentence; outcomes that have arrived are in the store
    the coordinator ends    in any way: Dask drops the tasks, and the child processes that compute them are killed

Scheduler and workers must find the sources. By hand, in the folder of the study on each machine (a thread computes one
cell at a time; ``--memory-limit 0``, since cells have their own limits):

    PYTHONPATH=. dask scheduler
    PYTHONPATH=. dask worker ADDRESS --nworkers 16 --nthreads 1 --memory-limit 0
    admiss study run mine.py --scheduler ADDRESS

docs/results/index.md has the script for SLURM.
"""

import contextlib
import os
import signal
import sys
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from typing import Any, cast

from admiss.extras import optional_import
from admiss.study.plan import Cell, EngineError, Outcome, origin
from admiss.study.pool import Arrived, CellProcess, ClosedError, Finished, compute
from admiss.study.stale import Present

with optional_import("A run on Dask", "dask"):
    import distributed
    from distributed.scheduler import KilledWorker

    from admiss.dask_connection import connection

# Seconds after which workers are looked for again, as they come and go: little against the minutes that they live.
LOOK_AGAIN = 5.0
SAME_FILES = (
    "start the scheduler and the workers with PYTHONPATH set to a checkout of the same version, and the same packages"
)


def run_on_dask(
    cells: Sequence[Cell],
    finished: Finished,
    *,
    workers: int,
    seconds: float,
    gigabytes: float,
    scheduler: str | None = None,
) -> None:
    """Compute cells on the workers of a scheduler, and call ``finished`` in this thread with those that have ended.

    Without a scheduler, a local cluster of so many workers lives as long as the run.
    """
    present = Present()

    def checked(arrived: Sequence[Arrived]) -> None:
        """Pass on outcomes up to the first one that other files or packages have computed."""
        for index, (cell, outcome) in enumerate(arrived):
            changes = present.changes(outcome.dependencies, cell)
            if changes:
                finished(arrived[:index])
                more = [f"{len(changes) - 3:,} more"] * (len(changes) > 3)
                words = "; ".join([*changes[:3], *more])
                raise EngineError(f"A worker has other files or packages than this run ({words}): {SAME_FILES}.")
        finished(arrived)

    processes = CellProcesses(seconds, gigabytes, local=scheduler is None)
    with connection(workers, scheduler) as client, _registered(processes, client) as name:
        # On this machine files that change during the run show in the record of each cell, as without Dask.
        compute(cells, finished if scheduler is None else checked, Slots(client, name))


@contextlib.contextmanager
def _registered(processes: "CellProcesses", client: Any) -> Iterator[str]:
    """Register child processes with all workers, later ones too, under the returned name; kill them at the end."""
    name = f"study-{uuid.uuid4().hex}"
    try:
        try:
            client.register_plugin(processes, name=name)
        except Exception as error:  # Dask passes on the errors of a worker in several forms
            raise EngineError(f"A Dask worker does not find the sources ({_line(error)}): {SAME_FILES}.") from None
        yield name
    finally:
        if client.status == "running":
            with contextlib.suppress(Exception):  # workers without it, or that end with their scheduler
                client.unregister_worker_plugin(name)


class Slots:
    """As many slots as the Dask workers have threads; more are added when workers join.

    With one task per thread, the worker that has just finished a cell of a slot is the idle one that gets the next,
    mostly of the same instance. ``name`` is that of the plugin with the child processes.
    """

    def __init__(self, client: Any, name: str) -> None:
        self.client = client
        self.name = name
        self._slots: list[DaskSlot] = []
        self._looked = -LOOK_AGAIN
        self._waiting = False

    def __call__(self) -> "list[DaskSlot]":
        """The slots that there are now; a message is printed when no worker is left."""
        if time.monotonic() - self._looked < LOOK_AGAIN and self._slots:
            return self._slots
        try:
            threads = sum(self.client.nthreads().values())
        except OSError:
            raise self.lost() from None
        self._looked = time.monotonic()
        self._slots += [DaskSlot(self) for _ in range(threads - len(self._slots))]
        if not threads and not self._waiting:
            print("waiting for Dask workers: there are none", file=sys.stderr, flush=True)
        self._waiting = not threads
        return self._slots

    def lost(self) -> EngineError:
        """The error of a scheduler that does not answer."""
        return EngineError(
            f"The Dask scheduler at {self.client.scheduler.address} was lost: the cells that were finished are safe; "
            f"start it again, and the same command continues."
        )


class DaskSlot:
    """Submits one cell at a time."""

    def __init__(self, slots: Slots) -> None:
        self.slots = slots
        self.closed = False
        self._future: Any = None

    def run(self, pickled: bytes) -> Outcome:
        """Compute a pickled cell, which only the child unpickles: the Dask worker need not import the study."""
        key = f"{self.slots.name}-{uuid.uuid4().hex}"
        self._future = self.slots.client.submit(compute_cell, self.slots.name, pickled, key=key, pure=False)
        try:
            return cast(Outcome, self._future.result())
        except KilledWorker as error:
            reason = f"all Dask workers that computed it died ({error.allowed_failures + 1})"
            return Outcome("failed", reason, _line(error), origin=origin(), pid=os.getpid())
        except (OSError, distributed.CancelledError):
            if self.closed:
                raise ClosedError from None
            raise self.slots.lost() from None
        except EngineError:
            raise
        except Exception as error:
            words = f"{type(error).__name__}: {_line(error)}"
            if isinstance(error, ImportError) or "deserialization of the task graph" in words:  # read by the scheduler
                words = f"The Dask scheduler or a worker does not find the sources: {SAME_FILES}."
            else:
                words = f"A Dask worker could not compute ({words}); the cells that were finished are safe."
            raise EngineError(words) from error

    def close(self) -> None:
        """Cancel the task."""
        self.closed = True
        if self._future is not None and self.slots.client.status == "running":
            with contextlib.suppress(OSError):
                self._future.cancel()


def _line(error: BaseException) -> str:
    return " ".join(str(error).split()).rstrip(".")


class CellProcesses(distributed.WorkerPlugin):
    """The child processes of a Dask worker, one per thread.

    Ctrl-C in the terminal of the run reaches workers of a ``local`` cluster, which must leave it to the coordinator.
    """

    def __init__(self, seconds: float, gigabytes: float, *, local: bool) -> None:
        self.limits = (seconds, gigabytes)
        self.local = local

    def setup(self, worker: Any) -> None:
        """Called when the run or the worker starts."""
        if self.local and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        self.threads: dict[int, CellProcess] = {}
        self.tasks: dict[Any, CellProcess] = {}

    def run(self, task: Any, pickled: bytes) -> Outcome:
        """Compute a pickled cell in the process of this thread."""
        process = self.threads.get(threading.get_ident())
        if process is None or process.closed:
            process = self.threads[threading.get_ident()] = CellProcess(*self.limits)
        self.tasks[task] = process
        try:
            return process.run(pickled)
        except ClosedError:  # the worker ends, or the task was released
            raise distributed.Reschedule from None
        finally:
            self.tasks.pop(task, None)

    def transition(self, key: Any, start: Any, finish: Any, **_: Any) -> None:
        """Kill the process of a released task, since Dask cannot stop a thread."""
        if finish == "released" and key in self.tasks:
            self.tasks.pop(key).close()

    def teardown(self, worker: Any) -> None:
        """Called when the run or the worker ends."""
        for process in list(self.threads.values()):
            process.close()


def compute_cell(name: str, pickled: bytes) -> Outcome:
    """Compute a pickled cell in a thread of a Dask worker."""
    worker = distributed.get_worker()
    return cast(CellProcesses, worker.plugins[name]).run(worker.get_current_task(), pickled)
