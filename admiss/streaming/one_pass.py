"""One pass over a source.

The chunks of a source, in their order, are divided into units of equally many chunks, at most 256 if
their number is known. The statistics of a unit are accumulated from its rows, here or on a Dask worker, and added to
those of the units before it, in this order: the result does not depend on the number of workers, to the last bit.
Sums start from the anchor of the first unit, so that they are added without a change of origin.

A pass that is interrupted starts again. Its result can be kept: :meth:`RowStatistics.save
<admiss.streaming.RowStatistics.save>`.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
from sklearn.base import clone

from admiss.statistics.row_statistics import RowStatistics
from admiss.tables.column import SourceError
from admiss.tables.source import Batch, Chunk, Source, named_frame
from admiss.terminal.progress import counter, waiting
from formulations.arrays import FloatArray

# Units of a source with a known number of chunks: tasks for many workers, of which one is lost if one dies.
MOST_UNITS = 256


def accumulate(
    source: Source, empty: RowStatistics, *, workers: int | None = None, scheduler: str | None = None
) -> RowStatistics:
    """Accumulate statistics of all rows of a source.

    Parameters
    ----------
    source : Source
        With a target. Rows without one are left out.
    empty : RowStatistics
        Statistics of no rows, which determine what is accumulated.
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
    units = _units(source.chunks(), 1 if source.size is None else -(-source.size // MOST_UNITS))
    compute = partial(unit_statistics, empty=empty, names=source.schema.names)
    total, n_done = None, 0
    with _reporter(source.size) as report:
        for n_chunks, statistics in _computed(units, compute, workers, scheduler):
            total = statistics if total is None else total.merge(statistics)
            n_done += n_chunks
            report(n_done)
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


def _units(chunks: Iterator[Chunk], size: int) -> Iterator[list[Chunk]]:
    while unit := list(islice(chunks, size)):
        yield unit


def _computed(
    units: Iterator[list[Chunk]],
    compute: Callable[[Sequence[Chunk], FloatArray | None], RowStatistics],
    workers: int | None,
    scheduler: str | None,
) -> Iterator[tuple[int, RowStatistics]]:
    """The number of chunks of each unit with its statistics, in order; those after the first one have its anchor."""
    if workers is not None or scheduler is not None:
        from admiss.streaming.on_dask import computed_on_dask

        yield from computed_on_dask(units, compute, workers, scheduler)
        return
    anchor = None
    for unit in units:
        statistics = compute(unit, anchor)
        if anchor is None and statistics.parts:
            anchor = statistics.features.anchor
        yield len(unit), statistics


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


@contextmanager
def _reporter(size: int | None) -> Iterator[Any]:
    """A function to report how many chunks are done."""
    if size is None:
        with waiting("reading frames"):
            yield lambda done: None
    else:
        with counter("reading chunks") as report:
            yield lambda done: report(done, size)
