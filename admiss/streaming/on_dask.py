"""Units of a pass on the workers of Dask.

A task is a unit: a worker reads its chunks and adds up their statistics. The coordinator fetches these as soon as they
are finished, and adds up those of all units in their order. So a worker that dies costs the unit that it was
computing, which Dask gives to another one.

Partitions of a Dask data frame and delayed frames are computed where their statistics are.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from itertools import islice
from typing import Any

from admiss.atomic_write import EngineError
from admiss.extras import optional_import
from admiss.statistics.row_statistics import RowStatistics
from admiss.tables.column import SourceError
from admiss.tables.frames import DelayedFrame
from admiss.tables.source import Chunk
from formulations.arrays import FloatArray

with optional_import("A pass on Dask", "dask"):
    import distributed
    from distributed.scheduler import KilledWorker

    from admiss.dask_connection import connection

# Statistics of the rows of a unit, with sums from an anchor.
Compute = Callable[[Sequence[Chunk], FloatArray | None], RowStatistics]


def computed_on_dask(
    units: Iterator[list[Chunk]],
    compute: Compute,
    workers: int | None,
    scheduler: str | None,
) -> Iterator[tuple[int, RowStatistics]]:
    """The number of chunks of each unit with what ``compute`` makes of it, in order.

    Others start when the anchor of the first one is known. Without a scheduler, a local cluster of so many workers
    lives as long.
    """
    with ExitStack() as stack:
        try:
            client = stack.enter_context(connection(workers or 1, scheduler))
        except RuntimeError as error:
            raise EngineError(
                "Workers on this machine could not start: a script must call this under if __name__ == '__main__'."
            ) from error
        running: dict[str, tuple[int, int]] = {}  # number and chunks of a unit
        finished: dict[int, tuple[int, RowStatistics]] = {}
        numbered, following = enumerate(units), 0
        anchor: FloatArray | None = None
        tasks = distributed.as_completed([], loop=client.loop, with_results=True, raise_errors=False)
        try:
            while True:
                most = 2 * max(1, sum(client.nthreads().values()))  # per thread one that is computed, one that waits
                most = most if anchor is not None else 1
                for number, unit in islice(numbered, max(0, most - len(running) - len(finished))):
                    future = _submitted(client, unit, anchor, compute)
                    running[future.key] = number, len(unit)
                    tasks.add(future)
                if not running:
                    return
                future, result = next(tasks)
                if future.status != "finished":
                    raise _explained(future, result, client)
                number, n_chunks = running.pop(future.key)
                finished[number] = n_chunks, result
                if anchor is None and result.parts:
                    anchor = result.features.anchor
                while following in finished:
                    yield finished.pop(following)
                    following += 1
        finally:
            if running and client.status == "running":
                client.cancel(list(tasks.futures))


def _submitted(client: Any, unit: list[Chunk], anchor: FloatArray | None, compute: Compute) -> Any:
    """The future of the statistics of a unit; Dask replaces those of frames by the frames, where they are needed."""
    frames = [client.compute(chunk.delayed) if isinstance(chunk, DelayedFrame) else None for chunk in unit]
    chunks = [chunk.without_task() if isinstance(chunk, DelayedFrame) else chunk for chunk in unit]
    return client.submit(_on_worker, chunks, frames, anchor, compute, pure=False)


def _on_worker(
    chunks: Sequence[Chunk], frames: Sequence[Any], anchor: FloatArray | None, compute: Compute
) -> RowStatistics:
    pairs = zip(chunks, frames, strict=True)
    return compute([c.of_frame(f) if isinstance(c, DelayedFrame) else c for c, f in pairs], anchor)


def _explained(future: Any, result: Any, client: Any) -> Exception:
    """The error of a unit that was not computed."""
    error = future.exception() if future.status == "error" else None
    if isinstance(error, SourceError):
        return error
    if isinstance(error, KilledWorker):
        return EngineError(
            f"All Dask workers that computed some chunks died ({error.allowed_failures + 1}): give them more memory."
        )
    if error is None:
        return EngineError(f"The Dask scheduler at {client.scheduler.address} was lost: start it and the pass again.")
    words = " ".join(f"{type(error).__name__} {error}".split()).rstrip(".")
    return EngineError(f"A Dask worker could not compute ({words[:300]}): it must find admiss and the files.")
