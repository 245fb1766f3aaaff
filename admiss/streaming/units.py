"""Statistics of some chunks."""

from collections.abc import Sequence

import numpy as np
from sklearn.base import clone

from admiss.streaming.sources.schema import SourceError
from admiss.streaming.sources.source import Batch, Chunk
from admiss.streaming.statistics import RowStatistics


def unit_statistics(unit: Sequence[Chunk], empty: RowStatistics) -> RowStatistics:
    """The statistics of some chunks."""
    found = clone(empty)
    for chunk in unit:
        try:
            for batch in chunk.batches():
                _add(found, batch)
        except SourceError:
            raise
        except ValueError as error:
            raise SourceError(f"{chunk.name}: {error}") from error
    return found


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
