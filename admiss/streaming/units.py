"""Rows of chunks: their statistics, and once more the rows themselves."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from admiss.statistics.row_statistics import RowStatistics
from admiss.tables.column import SourceError
from admiss.tables.source import Batch, Chunk, Source, named_frame
from formulations.arrays import FloatArray


def unit_statistics(unit: Sequence[Chunk], empty: RowStatistics, names: Sequence[str]) -> RowStatistics:
    """The statistics of some chunks, with the names of their features."""
    found = clone(empty)
    for chunk in unit:
        for batch in chunk.batches():
            try:
                _add(found, batch)
            except ValueError as error:
                raise SourceError(f"{chunk.name}: {_infinite(batch, names) or error}") from error
    found.feature_names_in_ = np.array(names, dtype=object)
    return found


def _infinite(batch: Batch, names: Sequence[str]) -> str:
    """A sentence with the columns that contain infinity, of which the statistics of an array know the numbers only."""
    found = [name for name, column in zip(names, batch.X.T, strict=True) if np.isinf(column).any()]
    return f"column {', '.join(found[:5])} contains infinity: replace it, with null if it is missing." if found else ""


def _add(statistics: RowStatistics, batch: Batch) -> None:
    y, weight = target_and_weight(batch)
    if weight is None or weight.any():
        statistics.update(batch.X, y, weight, keys=batch.keys, place=batch.place)


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
