"""One pass over a source.

The chunks of a source, in their order, are divided into units of equally many chunks, at most 256 if
their number is known. The statistics of a unit are accumulated from its rows, here or on a Dask worker, and added to
those of the units before it, in this order: the result does not depend on the number of workers, to the last bit.
Sums start from the anchor of the first unit, so that they are added without a change of origin.

With a checkpoint the sum is on disk every half minute, and at the end, however the pass ends. The next pass compares
the digests of the finished chunks with those of the source, refuses a source that has changed, and continues behind
them. The folder of a checkpoint holds ``progress.json`` and the file of statistics that it names. A new file of
statistics is written first and named by a new ``progress.json`` afterwards, each completely or not at all: whenever a
process is killed or a disk is full, the folder holds the statistics of exactly the chunks that it lists. A lock keeps
a second process out.
"""

import json
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from admiss.atomic_write import EngineError, write_atomically
from admiss.folder_lock import locked
from admiss.statistics.row_statistics import RowStatistics
from admiss.tables.column import SourceError
from admiss.tables.source import Batch, Chunk, Source, named_frame
from admiss.terminal.progress import counter, waiting
from formulations.arrays import FloatArray

# Seconds between two writes of a checkpoint.
SAVE_SECONDS = 30.0
# Units of a source with a known number of chunks: tasks for many workers, of which one is lost if one dies.
MOST_UNITS = 256

LAYOUT = 1
PROGRESS = "progress.json"


class CheckpointError(ValueError):
    """A checkpoint that does not belong to a pass, in one sentence that says what to do."""


def accumulate(
    source: Source,
    empty: RowStatistics,
    *,
    checkpoint: str | Path | None = None,
    workers: int | None = None,
    scheduler: str | None = None,
) -> RowStatistics:
    """Accumulate statistics of all rows of a source.

    Parameters
    ----------
    source : Source
        With a target. Rows without one are left out.
    empty : RowStatistics
        Statistics of no rows, which determine what is accumulated.
    checkpoint : path, optional
        Folder that keeps what is finished; the same call continues after an interruption.
    workers : int, optional
        Processes on this machine, which need Dask; by default this process.
    scheduler : str, optional
        Address of a Dask scheduler, on whose workers the files must be found under the same names.

    Examples
    --------
    >>> import numpy as np
    >>> from admiss import AdaptiveRegressor
    >>> from admiss.streaming import RowStatistics, accumulate, open_source
    >>> X = np.array([[1.0, np.nan], [2.0, 3.0], [3.0, 1.0], [np.nan, 2.0]])
    >>> statistics = accumulate(open_source(X, X[:, :1].sum(axis=1, where=~np.isnan(X[:, :1]))), RowStatistics())
    >>> AdaptiveRegressor().fit_statistics(statistics).certificate_.status
    'optimal'
    """
    _check(source, empty)
    with ExitStack() as stack:
        kept = None if checkpoint is None else stack.enter_context(_opened(Path(checkpoint), _settings(source, empty)))
        if kept is not None and kept.is_complete:
            kept.skip(source.chunks())
            total = kept.loaded(empty.adaptivity)
        else:
            total = _sum_of_units(source, empty, kept, workers, scheduler)
    if total is None or not total.n_rows:
        raise SourceError("The source has no rows with a target.")
    return total


def _check(source: Source, empty: RowStatistics) -> None:
    """Refuse a source without a target that is a number, and folds of another key."""
    schema = source.schema
    if schema.target is None:
        raise SourceError("The source has no target: name the column to predict.")
    if schema.task == "classification":
        raise SourceError(
            f"The target {schema.target} has class labels, which are fitted in memory: use "
            "admiss.tables.read_table, or task='regression' (--task regression) if they are numbers."
        )
    if empty.folds is not None and schema.key is not None and schema.key != empty.folds.key:
        raise SourceError(
            f"The key of the source is {schema.key!r}, and that of the folds {empty.folds.key!r}: name one key."
        )


def _sum_of_units(
    source: Source, empty: RowStatistics, kept: "Checkpoint | None", workers: int | None, scheduler: str | None
) -> RowStatistics | None:
    """The statistics of all rows, or None if there are none; those of finished chunks are kept however this ends."""
    chunks = source.chunks()
    total, finished, n_before = None, list[str](), 0
    if kept is not None:
        kept.skip(chunks)
        total, finished, n_before = kept.loaded(empty.adaptivity), list(kept.chunks), len(kept.chunks)
    n_done, saved = n_before, time.monotonic()
    compute = partial(unit_statistics, empty=empty, names=source.schema.names)
    anchor = None if total is None else total.features.anchor
    units = _units(chunks, 1 if source.size is None else -(-source.size // MOST_UNITS))
    try:
        with _reporter(source.size) as report:
            for unit, statistics in _computed(units, compute, anchor, workers, scheduler):
                # An interruption between these statements must not count a chunk twice.
                digests = [] if kept is None else [chunk.digest for chunk in unit]
                added = statistics if total is None else total.merge(statistics)
                total, finished, n_done = added, finished + digests, n_done + len(unit)
                if kept is not None and time.monotonic() - saved > SAVE_SECONDS:
                    kept = kept.saved(total, finished)
                    saved = time.monotonic()
                report(n_done)
    except BaseException as error:
        if kept is not None and total is not None and len(finished) > len(kept.chunks):
            kept = kept.saved(total, finished)
        if isinstance(error, SourceError) and kept is not None:
            where = f"{n_done:,} chunks before it are in {kept.folder}, where the same call continues"
            raise SourceError(f"{str(error).rstrip('.')}; the {where}.") from error
        raise
    if kept is not None and total is not None:
        kept.saved(total, finished, is_complete=True)
    return total


def _units(chunks: Iterator[Chunk], size: int) -> Iterator[list[Chunk]]:
    while unit := list(islice(chunks, size)):
        yield unit


def _computed(
    units: Iterator[list[Chunk]],
    compute: Callable[[Sequence[Chunk], FloatArray | None], RowStatistics],
    anchor: FloatArray | None,
    workers: int | None,
    scheduler: str | None,
) -> Iterator[tuple[list[Chunk], RowStatistics]]:
    """Units with their statistics, in order; those after the first one have its anchor."""
    if workers is None and scheduler is None:
        for unit in units:
            statistics = compute(unit, anchor)
            if anchor is None and statistics.parts:
                anchor = statistics.features.anchor
            yield unit, statistics
        return
    from admiss.streaming.on_dask import computed_on_dask

    yield from computed_on_dask(units, compute, anchor, workers, scheduler)


def unit_statistics(
    unit: Sequence[Chunk], anchor: FloatArray | None, empty: RowStatistics, names: Sequence[str]
) -> RowStatistics:
    """The statistics of some chunks, with the names of their features; ``anchor`` is that of the first unit."""
    found = clone(empty)
    found.anchor = anchor
    for chunk in unit:
        for batch in chunk.batches():
            try:
                y, weight = target_and_weight(batch)
                if weight is None or weight.any():
                    found.update(batch.X, y, weight, keys=batch.keys, place=batch.place)
            except ValueError as error:
                raise SourceError(f"{chunk.name}: {_infinite(batch, names) or error}") from error
    found.feature_names_in_ = np.array(names, dtype=object)
    return found


def _infinite(batch: Batch, names: Sequence[str]) -> str:
    """A sentence with the columns that contain infinity, of which the statistics of an array know the numbers only."""
    found = [name for name, column in zip(names, batch.X.T, strict=True) if np.isinf(column).any()]
    return f"column {', '.join(found[:5])} contains infinity: replace it, with null if it is missing." if found else ""


def target_and_weight(batch: Batch) -> tuple[FloatArray, FloatArray | None]:
    """Target and weights; rows without a target get the weight 0, so that the others keep their numbers."""
    y, weight = batch.y, batch.weight
    assert y is not None  # a source without a target is refused before
    without = np.isnan(y)
    if not without.any():
        return y, weight
    return np.where(without, 0.0, y), np.where(without, 0.0, 1.0 if weight is None else weight)


class SourceRows:
    """The rows of a source, read again in every iteration: ``settle`` of ``FiniteRegressor.fit_statistics``.

    Parameters
    ----------
    source : Source
        Rows that can be read more than once; see :func:`~admiss.streaming.open_source`.
    """

    def __init__(self, source: Source) -> None:
        self.source = source

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        for chunk in self.source.chunks():
            for batch in chunk.batches():
                y, weight = target_and_weight(batch)
                yield named_frame(batch.X, self.source.schema.names), y, weight


@dataclass(frozen=True)
class Checkpoint:
    """What is on disk.

    Attributes
    ----------
    folder : Path
    settings : str
        Digest of what is accumulated.
    chunks : tuple of str
        Digests of the finished chunks, in order.
    statistics : str
        Name of the file of statistics; empty before the first chunk.
    is_complete : bool
        Whether these are all chunks.
    """

    folder: Path
    settings: str
    chunks: tuple[str, ...] = ()
    statistics: str = ""
    is_complete: bool = False

    @classmethod
    def read(cls, folder: Path, settings: str) -> "Checkpoint":
        """The checkpoint in a folder, which must be one of these settings if there is one."""
        path = folder / PROGRESS
        if not path.exists():
            return cls(folder, settings)
        try:
            content: dict[str, Any] = json.loads(path.read_text())
            layout, kept_settings, chunks = content["layout"], content["settings"], tuple(content["chunks"])
            found = cls(folder, settings, chunks, content["statistics"], content["complete"])
        except (ValueError, KeyError, TypeError) as error:
            raise CheckpointError(f"{path} is not the progress of a pass: delete the folder to start again.") from error
        if layout != LAYOUT:
            raise CheckpointError(f"{path} was written by another version of admiss: delete the folder to start again.")
        if kept_settings != settings:
            raise CheckpointError(
                f"{folder} holds a pass with other settings or columns: choose another folder, or delete it to start "
                "again."
            )
        return found

    def loaded(self, adaptivity: Any) -> RowStatistics | None:
        """The statistics of the finished chunks, or None if there are none."""
        return RowStatistics.load(self.folder / self.statistics, adaptivity) if self.statistics else None

    def skip(self, chunks: Iterator[Chunk]) -> None:
        """Take the finished chunks off an iterator, or raise an error if they are others."""
        advice = f"delete {self.folder} to start again"
        for number, digest in enumerate(self.chunks):
            chunk = next(chunks, None)
            if chunk is None:
                raise CheckpointError(
                    f"The source has {number:,} chunks, and {len(self.chunks):,} were finished: {advice}."
                )
            if chunk.digest != digest:
                raise CheckpointError(f"{chunk.name} has changed since it was finished: {advice}.")
        if self.is_complete and (chunk := next(chunks, None)) is not None:
            raise CheckpointError(f"{chunk.name} is new since the pass was complete: {advice}.")

    def saved(self, statistics: RowStatistics, chunks: Sequence[str], *, is_complete: bool = False) -> "Checkpoint":
        """Write the statistics of more chunks."""
        name = f"statistics-{uuid.uuid4().hex}.npz"
        new = replace(self, chunks=tuple(chunks), statistics=name, is_complete=is_complete)
        try:
            statistics.save(self.folder / name)
            content = {"layout": LAYOUT, "settings": new.settings, "complete": is_complete, "statistics": name}
            text = json.dumps(content | {"chunks": new.chunks}, indent=1)
            write_atomically(self.folder / PROGRESS, text.encode())
        except BaseException:
            (self.folder / name).unlink(missing_ok=True)
            raise
        for old in self.folder.glob("statistics-*"):
            if old.name != name:
                old.unlink()
        return new


@contextmanager
def _opened(folder: Path, settings: str) -> Iterator[Checkpoint]:
    """The checkpoint in a folder, which is made if it does not exist and locked until the end."""
    try:
        lock = locked(folder)
    except EngineError as error:
        raise CheckpointError(f"The checkpoint {folder} cannot be used: {error}") from error
    with closing(lock):
        yield Checkpoint.read(folder, settings)


def _settings(source: Source, empty: RowStatistics) -> str:
    return blake2b(f"{source.schema!r} {empty.settings()}".encode(), digest_size=12).hexdigest()


@contextmanager
def _reporter(size: int | None) -> Iterator[Any]:
    """A function to report how many chunks are done."""
    if size is None:
        with waiting("reading frames"):
            yield lambda done: None
    else:
        with counter("reading chunks") as report:
            yield lambda done: report(done, size)
