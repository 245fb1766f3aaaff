"""One pass over a source.

The chunks of a source, in their order, are divided into units of equally many chunks, at most 256 if
their number is known. The statistics of a unit are accumulated from its rows, here or on a Dask worker, and added to
those of the units before it, in this order: the result does not depend on the number of workers, to the last bit.

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
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any

from admiss.atomic_write import EngineError, write_atomically
from admiss.folder_lock import locked
from admiss.statistics.row_statistics import RowStatistics
from admiss.streaming.units import unit_statistics
from admiss.tables.column import SourceError
from admiss.tables.source import Chunk, Source
from admiss.terminal.progress import counter, waiting

# Seconds between two writes of a checkpoint.
SAVE_SECONDS = 30.0

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
    if source.schema.target is None:
        raise SourceError("The source has no target: name the column to predict.")
    key = source.schema.key
    if empty.folds is not None and key is not None and key != empty.folds.key:
        raise SourceError(f"The key of the source is {key!r}, and that of the folds {empty.folds.key!r}: name one key.")
    with ExitStack() as stack:
        kept = None if checkpoint is None else stack.enter_context(_opened(Path(checkpoint), _settings(source, empty)))
        if kept is not None and kept.complete:
            _skip(source.chunks(), kept, whole=True)
        return _Pass(source, empty, kept).run(workers, scheduler)


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
    complete : bool
        Whether these are all chunks.
    """

    folder: Path
    settings: str
    chunks: tuple[str, ...] = ()
    statistics: str = ""
    complete: bool = False

    def loaded(self, adaptivity: Any) -> RowStatistics | None:
        """The statistics of the finished chunks, or None if there are none."""
        return RowStatistics.load(self.folder / self.statistics, adaptivity) if self.statistics else None

    def saved(self, statistics: RowStatistics, chunks: Sequence[str], *, complete: bool) -> "Checkpoint":
        """Write the statistics of more chunks."""
        name = f"statistics-{uuid.uuid4().hex}.npz"
        new = replace(self, chunks=tuple(chunks), statistics=name, complete=complete)
        try:
            statistics.save(self.folder / name)
            content = {"layout": LAYOUT, "settings": new.settings, "complete": complete, "statistics": name}
            text = json.dumps(content | {"chunks": new.chunks}, indent=1)
            write_atomically(self.folder / PROGRESS, text.encode())
        except BaseException:
            (self.folder / name).unlink(missing_ok=True)
            raise
        for old in self.folder.glob("statistics-*"):
            if old.name != name:
                old.unlink()
        return new


class _Pass:
    """The sum of the finished units, and the chunks in it."""

    def __init__(self, source: Source, empty: RowStatistics, kept: Checkpoint | None) -> None:
        self.source, self.empty, self.kept = source, empty, kept
        self.total: RowStatistics | None = None if kept is None else kept.loaded(empty.adaptivity)
        self.done: list[str] = [] if kept is None else list(kept.chunks)
        self.n_done = len(self.done)
        self.saved = time.monotonic()

    def run(self, workers: int | None, scheduler: str | None) -> RowStatistics:
        """Accumulate the units that are left."""
        if self.kept is None or not self.kept.complete:
            try:
                self._add_units(workers, scheduler)
            except BaseException as error:
                self._save()
                if isinstance(error, SourceError) and self.kept is not None:
                    kept = f"{self.n_done:,} chunks before it are in {self.kept.folder}, where the same call continues"
                    raise SourceError(f"{str(error).rstrip('.')}; the {kept}.") from error
                raise
            self._save(complete=True)
        if self.total is None or not self.total.n_rows:
            raise SourceError("The source has no rows with a target.")
        return self.total

    def _add_units(self, workers: int | None, scheduler: str | None) -> None:
        chunks = self.source.chunks()
        if self.kept is not None:
            _skip(chunks, self.kept)
        size = self.source.size
        units = _units(chunks, 1 if size is None else -(-size // 256))
        with _reporter(size) as report:
            for unit, statistics in self._computed(units, workers, scheduler):
                # digests of arrays and frames read all of their rows: an interrupt must not fall between sum and list
                digests = [] if self.kept is None else [chunk.digest for chunk in unit]
                total = statistics if self.total is None else self.total.merge(statistics)
                self.total, self.done, self.n_done = total, self.done + digests, self.n_done + len(unit)
                if time.monotonic() - self.saved > SAVE_SECONDS:
                    self._save()
                report(self.n_done)

    def _computed(
        self, units: Iterator[list[Chunk]], workers: int | None, scheduler: str | None
    ) -> Iterator[tuple[list[Chunk], RowStatistics]]:
        """Units with their statistics, in order."""
        names = self.source.schema.names
        if workers is None and scheduler is None:
            for unit in units:
                yield unit, unit_statistics(unit, self.empty, names)
            return
        from admiss.streaming.on_dask import computed_on_dask

        yield from computed_on_dask(units, self.empty, names, workers, scheduler)

    def _save(self, *, complete: bool = False) -> None:
        if self.kept is not None and self.total is not None and (complete or len(self.done) > len(self.kept.chunks)):
            self.kept = self.kept.saved(self.total, self.done, complete=complete)
            self.saved = time.monotonic()


def _units(chunks: Iterator[Chunk], size: int) -> Iterator[list[Chunk]]:
    while unit := list(islice(chunks, size)):
        yield unit


@contextmanager
def _opened(folder: Path, settings: str) -> Iterator[Checkpoint]:
    """The checkpoint in a folder, which is made if it does not exist and locked until the end."""
    try:
        lock = locked(folder)
    except EngineError as error:
        raise CheckpointError(f"The checkpoint {folder} cannot be used: {error}") from error
    with closing(lock):
        yield _read(folder, settings)


def _read(folder: Path, settings: str) -> Checkpoint:
    path = folder / PROGRESS
    if not path.exists():
        return Checkpoint(folder, settings)
    try:
        content: dict[str, Any] = json.loads(path.read_text())
        found = Checkpoint(
            folder, content["settings"], tuple(content["chunks"]), content["statistics"], content["complete"]
        )
        layout = content["layout"]
    except (ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"{path} is not the progress of a pass: delete the folder to start again.") from error
    if layout != LAYOUT:
        raise CheckpointError(f"{path} was written by another version of admiss: delete the folder to start again.")
    if found.settings != settings:
        raise CheckpointError(
            f"{folder} holds a pass with other settings or columns: choose another folder, or delete it to start again."
        )
    return found


def _skip(chunks: Iterator[Chunk], kept: Checkpoint, *, whole: bool = False) -> None:
    """Take the finished chunks off an iterator, or raise an error if they are others."""
    advice = f"delete {kept.folder} to start again"
    for number, digest in enumerate(kept.chunks):
        chunk = next(chunks, None)
        if chunk is None:
            raise CheckpointError(
                f"The source has {number:,} chunks, and {len(kept.chunks):,} were finished: {advice}."
            )
        if chunk.digest != digest:
            raise CheckpointError(f"{chunk.name} has changed since it was finished: {advice}.")
    if whole and (chunk := next(chunks, None)) is not None:
        raise CheckpointError(f"{chunk.name} is new since the pass was complete: {advice}.")


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
