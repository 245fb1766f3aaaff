"""A run on Dask: on the workers of a running scheduler, or on a local cluster.

A task is a few cells of one instance, and only a few tasks per worker are with Dask at a time. A task computes in a
child process of its Dask worker, as on one machine: Dask runs tasks in threads, in which Pyomo with HiGHS hangs, and
only a process can be held to limits. The child is reused for the next task. The coordinator receives each outcome at
once, as an event, and again when the task ends.

    a worker dies           Dask gives its tasks to others; outcomes that have arrived stay as they are
    a worker differs        its files are not those of the coordinator: the run ends with a sentence
    several workers die     with a task: its cells are tried alone at the end; a cell with which they die has failed
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
import logging
import os
import pickle
import queue
import sys
import time
import uuid
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from admiss.extras import optional_import
from admiss.study.cell_process import cannot_be_sent
from admiss.study.local import PATIENCE, Arrived, Finished
from admiss.study.outcome import Outcome, origin
from admiss.study.plan import Cell, EngineError
from admiss.study.sending import sent
from admiss.study.stale import Present

with optional_import("A run on Dask", "dask"):
    import dask
    import distributed
    from distributed.scheduler import KilledWorker

    from admiss.study.dask_address import check_scheduler
    from admiss.study.dask_worker import CellProcesses, compute_cells

# Tasks per thread of Dask: enough that none waits for the coordinator.
TASKS_PER_THREAD = 4
# Seconds after which the threads of the cluster are counted again, as workers come and go.
COUNT_AGAIN = 5.0
# Entries of each of Dask's logs.
LOG_LENGTH = 100
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
    local = scheduler is None
    processes = CellProcesses(seconds, gigabytes, local=local)
    with connection(workers, scheduler) as client, _registered(processes, client) as name:
        # On this machine files that change during the run show in the record of each cell, as without Dask.
        coordinator = Coordinator(client, name, finished, None if local else Present())
        try:
            coordinator.compute(cells)
        except KeyboardInterrupt:
            coordinator.drain()
            raise
        finally:
            coordinator.pass_on()
            coordinator.cancel()


@contextlib.contextmanager
def connection(workers: int, scheduler: str | None) -> Iterator[Any]:
    """A client of a scheduler, or of a local cluster of so many workers that lives as long."""
    with contextlib.ExitStack() as stack:
        # Dask keeps recent messages, events and transitions, and in a local cluster those of the scheduler are here.
        stack.enter_context(dask.config.set({"distributed.admin.low-level-log-length": LOG_LENGTH}))
        address: Any = scheduler
        if scheduler is None:
            local = {"n_workers": workers, "threads_per_worker": 1, "processes": True, "memory_limit": 0}
            quiet = {"dashboard_address": None, "silence_logs": logging.ERROR}
            address = distributed.LocalCluster(**local, **quiet)
            stack.callback(_close, address)
        else:
            check_scheduler(scheduler)
        client = distributed.Client(address, set_as_default=False)
        # The loss of the scheduler is reported in one sentence instead of a log.
        logging.getLogger("distributed.client").setLevel(logging.CRITICAL)
        yield stack.enter_context(client)


def _close(cluster: Any) -> None:
    with contextlib.suppress(Exception):  # a worker that is still starting; it ends with this process
        cluster.close()


@contextlib.contextmanager
def _registered(processes: CellProcesses, client: Any) -> Iterator[str]:
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


class Coordinator:
    """The tasks that Dask has, and the outcomes that it returns.

    Parameters
    ----------
    client : Client
    name : str
        Name of the plugin with the child processes, and of the topic of the events.
    finished : callable
    present : Present, optional
        The files and packages that the workers must have.
    """

    def __init__(self, client: Any, name: str, finished: Finished, present: Present | None = None) -> None:
        self.client = client
        self.name = name
        self.finished = finished
        self.arrived: list[Arrived] = []  # outcomes that were not passed on yet
        self.present = present
        self.tasks: dict[str, tuple[Any, list[Cell]]] = {}  # futures and their cells
        self.missing: dict[str, Cell] = {}  # cells of tasks whose outcomes have not arrived
        self.submitted = 0
        self.messages: queue.SimpleQueue[Any] = queue.SimpleQueue()  # events as bytes, futures that have ended
        self.counted = time.monotonic()
        client.subscribe_topic(name, lambda event: self.messages.put(event[1]))

    def compute(self, cells: Sequence[Cell]) -> None:
        """Submit tasks until all cells have ended."""
        threads = self._first_threads()
        waiting = _pieces(cells, max(1, len(cells) // (TASKS_PER_THREAD * threads)))
        suspects: deque[Cell] = deque()  # cells of tasks with which workers died
        alone = False
        while True:
            while len(self.tasks) < TASKS_PER_THREAD * max(1, threads) and (piece := next(waiting, None)):
                self._submit(piece)
            if not self.tasks and self.messages.empty():
                # At the end and one at a time: none is blamed for a worker that another one kills.
                alone = True
                suspect = next((cell for cell in _taken(suspects) if cell.key in self.missing), None)
                if suspect is None:
                    return
                self._submit([suspect])
            with contextlib.suppress(queue.Empty):
                messages = [self.messages.get(timeout=PATIENCE)]
                messages += [self.messages.get_nowait() for _ in range(self.messages.qsize())]
                for message in messages:
                    if isinstance(message, bytes):
                        self._receive(*pickle.loads(message))
                    else:
                        suspects.extend(self._end(message, alone))
            self.pass_on()
            if time.monotonic() - self.counted > COUNT_AGAIN:
                threads = self._threads(threads)

    def _first_threads(self) -> int:
        threads = self._threads(before=1)
        while not threads:
            time.sleep(PATIENCE)
            threads = self._threads(before=0)
        return threads

    def _threads(self, before: int) -> int:
        """Number of threads of all workers; a message is printed when none is left."""
        try:
            threads = sum(self.client.nthreads().values())
        except OSError:
            raise self._lost() from None
        if before and not threads:
            print("waiting for Dask workers: there are none", file=sys.stderr, flush=True)
        self.counted = time.monotonic()
        return threads

    def _submit(self, piece: list[Cell]) -> None:
        pickled = []
        for cell in piece:
            try:
                # As bytes, which only the child unpickles: the Dask worker need not import the study.
                pickled.append((cell.key, sent(cell)))
                self.missing[cell.key] = cell
            except Exception as error:
                outcome = Outcome("failed", cannot_be_sent(error), origin=origin(), pid=os.getpid())
                self.arrived.append((cell, outcome))
        self.submitted += 1
        key = f"{self.name}-{self.submitted}"
        future = self.client.submit(compute_cells, self.name, pickled, key=key, pure=False)
        self.tasks[key] = (future, piece)
        future.add_done_callback(self.messages.put)

    def _receive(self, key: str, outcome: Outcome) -> None:
        """Keep the first outcome of a cell; that of a task computed again differs only in its times."""
        cell = self.missing.get(key)
        if cell is None:
            return
        changes = [] if self.present is None else self.present.changes(outcome.dependencies, cell)
        if changes:
            more = [f"{len(changes) - 3:,} more"] * (len(changes) > 3)
            words = "; ".join([*changes[:3], *more])
            raise EngineError(f"A worker has other files or packages than this run ({words}): {SAME_FILES}.")
        del self.missing[key]
        self.arrived.append((cell, outcome))

    def pass_on(self) -> None:
        """Pass on the outcomes that have arrived."""
        if self.arrived:
            self.finished(self.arrived)
            self.arrived = []

    def _end(self, future: Any, alone: bool) -> list[Cell]:
        """Finish a task; returns the cells that must be tried alone because workers died with it."""
        _, piece = self.tasks.pop(future.key)
        if future.status == "finished":
            try:
                outcomes = future.result()
            except (OSError, distributed.CancelledError):
                raise self._lost() from None
            for key, outcome in outcomes.items():
                self._receive(key, outcome)
            return []
        if future.status != "error":
            raise self._lost()
        error = future.exception()
        if not isinstance(error, KilledWorker):
            raise _explained(error)
        left = [cell for cell in piece if cell.key in self.missing]
        if not alone:
            return left
        for cell in left:
            reason = f"all Dask workers that computed it died ({error.allowed_failures + 1})"
            self._receive(cell.key, Outcome("failed", reason, _line(error), origin=origin(), pid=os.getpid()))
        return []

    def _lost(self) -> EngineError:
        return EngineError(
            f"The Dask scheduler at {self.client.scheduler.address} was lost: the cells that were finished are safe; "
            f"start it again, and the same command continues."
        )

    def drain(self) -> None:
        """Pass on the outcomes that wait in the queue."""
        with contextlib.suppress(queue.Empty):
            while True:
                message = self.messages.get_nowait()
                if isinstance(message, bytes):
                    self._receive(*pickle.loads(message))

    def cancel(self) -> None:
        """Cancel the tasks that Dask still has."""
        if self.tasks and self.client.status == "running":
            with contextlib.suppress(OSError):
                self.client.cancel([future for future, _ in self.tasks.values()])


def _pieces(cells: Sequence[Cell], size: int) -> Iterator[list[Cell]]:
    """Split cells into pieces of one instance and limited size, to spread few instances over many workers."""
    for _, group in groupby(cells, key=lambda cell: cell.instance):
        same = list(group)
        for start in range(0, len(same), size):
            yield same[start : start + size]


def _taken(cells: deque[Cell]) -> Iterator[Cell]:
    while cells:
        yield cells.popleft()


def _explained(error: BaseException) -> EngineError:
    if isinstance(error, EngineError):
        return error
    words = f"{type(error).__name__}: {_line(error)}"
    if isinstance(error, ImportError) or "deserialization of the task graph" in words:  # read by the scheduler
        return EngineError(f"The Dask scheduler or a worker does not find the sources: {SAME_FILES}.")
    return EngineError(f"A Dask worker could not compute ({words}); the cells that were finished are safe.")


def _line(error: BaseException) -> str:
    return " ".join(str(error).split()).rstrip(".")
