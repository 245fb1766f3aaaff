"""Dask workers in a run: their child processes, and the task that computes cells in them."""

import pickle
import signal
import threading
from typing import Any, cast

import distributed

from admiss.study.cell_process import CellProcess, ClosedError
from admiss.study.outcome import Outcome


class CellProcesses(distributed.WorkerPlugin):
    """The child processes of a Dask worker, one per thread.

    Parameters
    ----------
    seconds, gigabytes : float
        Limits per cell.
    local : bool
        Whether Ctrl-C in the terminal of the run reaches the worker, which must leave it to the coordinator.
    """

    def __init__(self, seconds: float, gigabytes: float, *, local: bool) -> None:
        self.conditions = (seconds, gigabytes)
        self.local = local

    def setup(self, worker: Any) -> None:
        """Called when the run or the worker starts."""
        if self.local and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        self.threads: dict[int, CellProcess] = {}
        self.tasks: dict[Any, CellProcess] = {}

    def take(self, task: Any) -> CellProcess:
        """Return the process for a task in this thread."""
        process = self.threads.get(threading.get_ident())
        if process is None or process.closed:
            process = self.threads[threading.get_ident()] = CellProcess(*self.conditions)
        self.tasks[task] = process
        return process

    def transition(self, key: Any, start: Any, finish: Any, **_: Any) -> None:
        """Kill the process of a released task, since Dask cannot stop a thread."""
        if finish == "released" and key in self.tasks:
            self.tasks.pop(key).close()

    def teardown(self, worker: Any) -> None:
        """Called when the run or the worker ends."""
        for process in list(self.threads.values()):
            process.close()


def compute_cells(name: str, cells: list[tuple[str, bytes]]) -> dict[str, Outcome]:
    """Compute pickled cells in a thread of a Dask worker: outcomes by key, each also logged as an event at once.

    Each cell has its key.
    """
    worker = distributed.get_worker()
    task = worker.get_current_task()
    processes = cast(CellProcesses, worker.plugins[name])
    process = processes.take(task)
    outcomes = {}
    try:
        for key, pickled in cells:
            outcomes[key] = process.run(pickled)
            worker.log_event(name, pickle.dumps((key, outcomes[key])))
    except ClosedError:  # the worker ends, or the task was released
        raise distributed.Reschedule from None
    finally:
        processes.tasks.pop(task, None)
    return outcomes
