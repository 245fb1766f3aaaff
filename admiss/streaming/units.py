"""Statistics of some chunks."""

from collections.abc import Sequence

import numpy as np
from sklearn.base import clone

from admiss.streaming.sources.schema import SourceError
from admiss.streaming.sources.source import Batch, Chunk
from admiss.streaming.statistics import RowStatistics


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
    """Add rows; those without a target get the weight 0, so that the others keep their numbers."""
    y, weight = batch.y, batch.weight
    assert y is not None  # as `accumulate` has checked
    without = np.isnan(y)
    if without.any():
        weight = np.where(without, 0.0, 1.0 if weight is None else weight)
        y = np.where(without, 0.0, y)
    if weight is not None and not weight.any():
        return
    statistics.update(batch.X, y, weight, keys=batch.keys, place=batch.place)
