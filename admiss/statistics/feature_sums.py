"""Counts, means, squares and ranges of the features and of the target, for each fold.

With anchors a_j near the data, and o_ij = 1 if x_ij is observed,

    sum_i s_i o_ij,   sum_i s_i o_ij (x_ij - a_j),   sum_i s_i o_ij (x_ij - a_j)^2,

and the same for y. An anchor is the weighted mean of the first observed values, so that no digits are lost wherever the
data lie; sums around another anchor b follow by  x - b = (x - a) + (a - b).
"""

from dataclasses import dataclass
from functools import reduce

import numpy as np

from admiss.patterns import alike, alike_in_both, is_first
from admiss.statistics.blocks import BLOCK_ROWS, CompensatedSum, NamedSums, RowBlock, Shape, anchored
from formulations.arrays import BoolArray, FloatArray, IntArray
from formulations.jit import compiled


@dataclass(frozen=True)
class FeatureSummary:
    """Features and target of the rows of some folds.

    Attributes
    ----------
    n_rows : int
        Rows of positive weight.
    weight : float
        Sum of their weights.
    n_observed : int array of shape (d,)
        Rows in which each feature is observed.
    mean, deviation, low, high : arrays of shape (d + 1,)
        Mean, standard deviation and range of the observed values of each feature, and of y as the last entry; NaN for a
        feature that is never observed.
    largest_weight : float
        Largest weight of a row.
    alike : int array of shape (d,)
        The first feature that is missing in the same rows as each.
    """

    n_rows: int
    weight: float
    n_observed: IntArray
    mean: FloatArray
    deviation: FloatArray
    low: FloatArray
    high: FloatArray
    largest_weight: float
    alike: IntArray

    @property
    def missing_once(self) -> BoolArray:
        """Features that are missing somewhere, one of those that are always missing together."""
        return np.asarray((self.n_observed < self.n_rows) & is_first(self.alike))

    @property
    def size(self) -> FloatArray:
        """Largest absolute value of each feature and of y."""
        return np.maximum(np.abs(self.low), np.abs(self.high))


class FeatureSums(NamedSums):
    """The sums of the module, with y as the last feature."""

    plain = ("anchor", "n_observed", "low", "high", "largest_weight", "alike")
    compensated = ("sums",)

    def __init__(self, shape: Shape) -> None:
        d, n_folds = shape.n_features + 1, shape.n_folds
        self.anchor = np.full(d, np.nan)
        self.sums = CompensatedSum((n_folds, 3, d))
        self.n_observed = np.zeros((n_folds, d), dtype=np.int64)
        self.low, self.high = np.full((n_folds, d), np.inf), np.full((n_folds, d), -np.inf)
        self.largest_weight = np.zeros(n_folds)
        self.alike = np.zeros((n_folds, d - 1), dtype=np.int64)  # without rows all are

    def update(self, rows: RowBlock) -> None:
        """Add a block of rows."""
        self.anchor = anchored(self.anchor, rows)
        for start in range(0, len(rows), BLOCK_ROWS):
            part = rows.block(slice(start, start + BLOCK_ROWS))
            sums = np.zeros(self.sums.high.shape)
            _add_sums(part.X, part.y, part.s, part.fold, self.anchor, sums)
            self._add_ranges(part)  # while the block is in the cache
            self._add_patterns(part)
            for f, values in enumerate(sums):
                self.sums.add(f, values)

    def _add_ranges(self, rows: RowBlock) -> None:
        ranges = self.n_observed, self.low, self.high, self.largest_weight
        _add_ranges(rows.X, rows.y, rows.s, rows.fold, *ranges)

    def _add_patterns(self, rows: RowBlock) -> None:
        """Split the features that were missing in the same rows so far, and are not in these."""
        tied = np.flatnonzero(np.any([np.bincount(first)[first] > 1 for first in self.alike], axis=0))
        M = np.isnan(rows.X[:, tied])
        if M.any():
            for f, first in enumerate(self.alike):
                first[tied] = tied[alike_in_both(first[tied], alike(M[rows.fold == f]))]

    @classmethod
    def with_sums(cls, rows: RowBlock, anchor: FloatArray, sums: FloatArray) -> "FeatureSums":
        """The statistics of rows whose sums around anchors, of shape (folds, 3, d + 1), are known already."""
        found = cls(Shape(rows.X.shape[1], len(sums)))
        found.anchor, found.sums.high = anchor, sums
        found._add_ranges(rows)
        for start in range(0, len(rows), BLOCK_ROWS):
            found._add_patterns(rows.block(slice(start, start + BLOCK_ROWS)))
        return found

    def merged(self, other: "FeatureSums") -> "FeatureSums":
        """The sums of the rows of both."""
        n_folds, d = self.n_observed.shape
        found = FeatureSums(Shape(d - 1, n_folds))
        found.anchor = np.where(np.isnan(self.anchor), other.anchor, self.anchor)
        for part in (self, other):
            move = np.where(np.isnan(part.anchor), 0.0, part.anchor - found.anchor)
            found.sums = found.sums.plus(_moved(part.sums.high, move), _moved(part.sums.low, move))
        found.n_observed = self.n_observed + other.n_observed
        found.low, found.high = np.minimum(self.low, other.low), np.maximum(self.high, other.high)
        found.largest_weight = np.maximum(self.largest_weight, other.largest_weight)
        found.alike = np.array([alike_in_both(*each) for each in zip(self.alike, other.alike, strict=True)])
        return found

    def summary(self, folds: IntArray) -> FeatureSummary:
        """What is known of the rows of some folds."""
        weight, total, squares = self.sums.value[folds].sum(axis=0)
        low, high = self.low[folds].min(axis=0), self.high[folds].max(axis=0)
        with np.errstate(invalid="ignore", divide="ignore"):
            shift = total / weight
            variance = np.maximum(squares / weight - shift**2, 0.0)
            same = low == high
            mean = np.where(same, low, np.clip(self.anchor + shift, low, high))
            deviation = np.where(same, 0.0, np.sqrt(variance))
        n_observed = self.n_observed[folds].sum(axis=0)
        return FeatureSummary(
            n_rows=int(n_observed[-1]),
            weight=float(weight[-1]),
            n_observed=n_observed[:-1],
            mean=mean,
            deviation=deviation,
            low=low,
            high=high,
            largest_weight=float(self.largest_weight[folds].max(initial=0.0)),
            alike=reduce(alike_in_both, self.alike[folds]),
        )


def _moved(sums: FloatArray, move: FloatArray) -> FloatArray:
    """Sums of x - b from those of x - a, with ``move`` = a - b."""
    weight, total, squares = sums.transpose(1, 0, 2)
    return np.stack([weight, total + move * weight, squares + move * (2.0 * total + move * weight)], axis=1)


@compiled
def _add_sums(X, y, s, fold, anchor, sums):  # type: ignore[no-untyped-def]
    n, d = X.shape
    for i in range(n):
        f, weight = fold[i], s[i]
        for j in range(d):  # without branches, so that the loop is vectorised
            x = X[i, j]
            z = 0.0 if np.isnan(x) else x - anchor[j]
            sums[f, 0, j] += 0.0 if np.isnan(x) else weight
            sums[f, 1, j] += weight * z
            sums[f, 2, j] += weight * z * z
        z = y[i] - anchor[d]
        sums[f, 0, d] += weight
        sums[f, 1, d] += weight * z
        sums[f, 2, d] += weight * z * z


@compiled
def _add_ranges(X, y, s, fold, n_observed, low, high, largest_weight):  # type: ignore[no-untyped-def]
    n, d = X.shape
    for i in range(n):
        f = fold[i]
        for j in range(d):
            x = X[i, j]
            n_observed[f, j] += 0 if np.isnan(x) else 1
            low[f, j] = x if x < low[f, j] else low[f, j]
            high[f, j] = x if x > high[f, j] else high[f, j]
        n_observed[f, d] += 1
        low[f, d] = min(low[f, d], y[i])
        high[f, d] = max(high[f, d], y[i])
        largest_weight[f] = max(largest_weight[f], s[i])
