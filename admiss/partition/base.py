"""What every partitioner has: limits, and one method.

    partitioner.partition(statistics, leaf_cost) -> Partition

``statistics`` are the patterns with their rows, ``leaf_cost`` says what a set of patterns costs as a leaf; both are the
same for all partitioners, so that their certificates can be compared. A new partitioner is a class with this method.
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone

from admiss.partition.partition import Partition
from formulations.arrays import IntArray
from formulations.leaves.cost import LeafCost, PatternRows


@dataclass(frozen=True)
class Limits:
    """Limits as numbers: depth, leaves, rows of a leaf, features that may be split on."""

    depth: int
    leaves: int
    rows: int
    features: IntArray


class Partitioner(BaseEstimator):
    """A way to divide missingness patterns into leaves.

    Parameters
    ----------
    max_depth : int, optional
        Most splits on the way to a leaf, or literals of a box; as many as there are features by default.
    max_leaves : int, optional
        Most leaves.
    min_rows : int, optional
        Fewest rows of a leaf; 2 (d + 1) by default. Rows are counted, whatever their weights.
    split_features : list of int or str, optional
        Features that may be split on; all by default.
    """

    max_depth: int | None
    max_leaves: int | None
    min_rows: int | None
    split_features: Sequence[int] | Sequence[str] | None

    @abstractmethod
    def partition(
        self, statistics: PatternRows, leaf_cost: LeafCost, feature_names: Sequence[str] | None = None
    ) -> Partition:
        """Divide the patterns into leaves."""

    def check_limits(self) -> None:
        """One sentence for a limit that makes no sense on any data."""
        for name in ("max_depth", "max_leaves", "min_rows"):
            value = getattr(self, name, None)
            if value is not None and (not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 1):
                hint = "; for no split use max_leaves=1" if name == "max_depth" else ""
                raise ValueError(f"{name} must be a whole number from 1 on, or None, not {value!r}{hint}.")
        time_limit = getattr(self, "time_limit", None)
        if time_limit is not None and not (isinstance(time_limit, int | float | np.number) and time_limit >= 0):
            raise ValueError(f"time_limit must be a number of seconds from 0 on, or None, not {time_limit!r}.")

    def within(self, n: int) -> Self:
        """The same for fewer rows: where leaves need more rows than there are, there is no split."""
        least = getattr(self, "min_rows", None)
        return clone(self).set_params(min_rows=n) if least is not None and least > n else self

    def limits(self, statistics: PatternRows, feature_names: Sequence[str] | None = None) -> Limits:
        """The limits on this data."""
        self.check_limits()
        n, (n_patterns, d) = len(statistics.s), statistics.patterns.shape
        if self.min_rows is not None and self.min_rows > n:
            raise ValueError(f"min_rows={self.min_rows} is more than the {n} rows of the data: use a smaller number.")
        rows = 2 * (d + 1) if self.min_rows is None else int(self.min_rows)
        features = self._splittable(d, feature_names)
        varies = np.asarray(statistics.patterns.any(axis=0) & ~statistics.patterns.all(axis=0))
        features = features[varies[features]]
        depth = len(features) if self.max_depth is None else min(int(self.max_depth), len(features))
        most = min(n_patterns, max(1, n // rows))
        if self.max_depth is not None and depth < 40:
            most = min(most, 1 << depth)
        return Limits(depth, min(most, self.max_leaves or most), rows, features)

    def _splittable(self, d: int, feature_names: Sequence[str] | None) -> IntArray:
        listed: Any = getattr(self, "split_features", None)
        if listed is None:
            return np.arange(d)
        if isinstance(listed, str):
            raise ValueError(f"split_features must be a list of names or numbers, not {listed!r}.")
        names = list(feature_names) if feature_names is not None else []
        places = [names.index(item) if isinstance(item, str) and item in names else item for item in listed]
        unknown = [
            item
            for item in places
            if not isinstance(item, int | np.integer) or isinstance(item, bool) or not 0 <= item < d
        ]
        if unknown or len(set(places)) < len(places):
            what = ", ".join(map(repr, unknown)) or "a feature twice"
            raise ValueError(f"split_features lists {what}: give distinct names or numbers from 0 to {d - 1}.")
        return np.sort(np.asarray(places, dtype=np.int64))
