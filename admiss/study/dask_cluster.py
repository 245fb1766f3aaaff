"""A run on Dask: on the workers of a running scheduler, or on a local cluster.

A task is a few cells of one instance, and only a few tasks per worker are with Dask at a time. A task computes in a
child process of its Dask worker, as on one machine: Dask runs tasks in threads, in which Pyomo with HiGHS hangs, and
only a process can be held to limits. The child is reused for the next task. The coordinator receives each outcome at
once, as an event, and again when the task ends.

    a worker dies           Dask gives its tasks to others; outcomes that have arrived stay as they are
    a worker differs        its sources are not those of the coordinator: the run ends with a sentence
    several workers die     with a task: its cells are tried alone at the end; a cell with which they die has failed
    the scheduler is lost   the run ends with a sentence; outcomes that have arrived are in the store
    the coordinator ends    in any way: Dask drops the tasks, and the child processes that compute them are killed

Scheduler and workers must find the sources. By hand, in a checkout on each machine (a thread computes one cell at a
time; ``--memory-limit 0``, since cells have their own limits):

    PYTHONPATH=. dask scheduler
    PYTHONPATH=. dask worker ADDRESS --nworkers 16 --nthreads 1 --memory-limit 0
    python -m experiments run STUDY --scale paper --scheduler ADDRESS

On SLURM, dask-jobqueue submits the workers as jobs; the scheduler runs in the script, in a checkout that all nodes see
(``cores`` and ``memory`` are those of a job; ``job_script_prologue`` is run before its workers start):

    import subprocess
    from dask_jobqueue import SLURMCluster

    cluster = SLURMCluster(queue="normal", account="me", cores=16, processes=16, memory="128GB", walltime="12:00:00",
                           job_script_prologue=["cd /home/me/admiss", "export PYTHONPATH=$PWD"])
    cluster.scale(jobs=10)
    command = "python -m experiments run synthetic --scale paper --scheduler"
    subprocess.run([*command.split(), cluster.scheduler_address], check=True)
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
from admiss.study.cell_process import SAME_SOURCES, cannot_be_sent
from admiss.study.digest import origin
from admiss.study.local import PATIENCE, Finished
from admiss.study.outcome import Outcome
from admiss.study.study import Cell, EngineError

with optional_import("A run on Dask", "dask"):
    import distributed
    from distributed.scheduler import KilledWorker

    from admiss.study.dask_worker import CellProcesses, compute_cells

# Tasks per thread of Dask: enough that none waits for the coordinator.
TASKS_PER_THREAD = 4
# Seconds after which the threads of the cluster are counted again, as workers come and go.
COUNT_AGAIN = 5.0


def run_on_dask(
    cells: Sequence[Cell],
    finished: Finished,
    *,
    workers: int,
    seconds: float,
    gigabytes: float,
    sources: tuple[str, ...] = (),
    scheduler: str | None = None,
) -> None:
    """Compute cells on the workers of a scheduler, and call ``finished`` in this thread for each.

    Without a scheduler, a local cluster of so many workers lives as long as the run.
    """
    local = scheduler is None
    # On this machine sources that change during the run show in the digest of each row, as without Dask.
    digest = None if local else origin(sources)["digest"]
    processes = CellProcesses(seconds, gigabytes, sources, digest, local=local)
    with _connection(workers, scheduler) as client, _registered(processes, client) as name:
        coordinator = Coordinator(client, name, finished, sources)
        try:
            coordinator.compute(cells)
        except KeyboardInterrupt:
            coordinator.drain()
            raise
        finally:
            coordinator.cancel()


@contextlib.contextmanager
def _connection(workers: int, scheduler: str | None) -> Iterator[Any]:
    with contextlib.ExitStack() as stack:
        address: Any = scheduler
        if scheduler is None:
            local = {"n_workers": workers, "threads_per_worker": 1, "processes": True, "memory_limit": 0}
            quiet = {"dashboard_address": None, "silence_logs": logging.ERROR}
            address = distributed.LocalCluster(**local, **quiet)
            stack.callback(_close, address)
        try:
            client = distributed.Client(address, set_as_default=False)
        except (OSError, ValueError) as error:  # nothing answers at the address, or it is malformed
            raise EngineError(
                f"There is no Dask scheduler at {scheduler} ({_line(error)}): check the address, and that it runs."
            ) from None
        # The loss of the scheduler is reported in one sentence instead of a log.
        logging.getLogger("distributed.client").setLevel(logging.CRITICAL)
        yield stack.enter_context(client)


def _close(cluster: Any) -> None:
    with contextlib.suppress(Exception):  # a worker that is still starting; it ends with this process
        cluster.close()


@contextlib.contextmanager
def _registered(processes: CellProcesses, client: Any) -> Iterator[str]:
    """Register child processes with all workers, later ones too, under the returned name; kill them at the end."""
    name = f"experiments-{uuid.uuid4().hex}"
    try:
        try:
            client.register_plugin(processes, name=name)
        except Exception as error:  # Dask passes on the errors of a worker in several forms
            raise EngineError(f"A Dask worker does not find the sources ({_line(error)}): {SAME_SOURCES}.") from None
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
    sources : tuple of str
    """

    def __init__(self, client: Any, name: str, finished: Finished, sources: tuple[str, ...] = ()) -> None:
        self.client = client
        self.name = name
        self.finished = finished
        self.origin = origin(sources)
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
            try:
                message = self.messages.get(timeout=PATIENCE)
            except queue.Empty:
                pass
            else:
                if isinstance(message, bytes):
                    self._receive(*pickle.loads(message))
                else:
                    suspects.extend(self._end(message, alone))
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
        sent = []
        for cell in piece:
            try:
                # As bytes, which only the child unpickles: the Dask worker need not import the study.
                sent.append((cell.key, pickle.dumps(cell)))
                self.missing[cell.key] = cell
            except Exception as error:
                self.finished(cell, Outcome("failed", cannot_be_sent(error), origin=self.origin, pid=os.getpid()))
        self.submitted += 1
        key = f"{self.name}-{self.submitted}"
        future = self.client.submit(compute_cells, self.name, sent, key=key, pure=False)
        self.tasks[key] = (future, piece)
        future.add_done_callback(self.messages.put)

    def _receive(self, key: str, outcome: Outcome) -> None:
        """Pass on the first outcome of a cell; that of a task computed again differs only in its times."""
        cell = self.missing.pop(key, None)
        if cell is not None:
            self.finished(cell, outcome)

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
            self._receive(cell.key, Outcome("failed", reason, _line(error), origin=self.origin, pid=os.getpid()))
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
        return EngineError(f"The Dask scheduler or a worker does not find the sources: {SAME_SOURCES}.")
    return EngineError(f"A Dask worker could not compute ({words}); the cells that were finished are safe.")


def _line(error: BaseException) -> str:
    return " ".join(str(error).split()).rstrip(".")
