"""The second moments of (1, x, y) for each pattern and fold, for boxes and groups of patterns: one part of statistics.

x_j is 0 where it is missing; x and y are summed around anchors near the data. The error is bounded as in
:mod:`formulations.leaves.set_sums`.
"""

import copy

import numpy as np

from admiss.patterns import PatternTable, lookup
from admiss.statistics.blocks import Arrays, RowBlock, Shape
from admiss.statistics.feature_sums import anchored
from formulations.arrays import BoolArray, FloatArray, IntArray
from formulations.jit import compiled
from formulations.leaves.row_products import HEIGHT
from formulations.leaves.set_kernel import RUN, add_moments, sorted_rows
from formulations.leaves.set_moments import MAPS, U

MOST_PATTERNS = 20_000
# Rows that are sorted at once, which bounds the number of additions.
MOST_ROWS = 2**18
# Additions of a change of the anchors.
REBASED = 8


class PatternGrams:
    """Second moments of each pattern, at most 20,000.

    Attributes
    ----------
    patterns : bool array of shape (P, d)
        In lexicographic order.
    counts : int array of shape (P, folds)
    grams : array of shape (P, folds, (d + 2) (d + 3) / 2)
        Packed by rows of the lower triangle.
    """

    def __init__(self, shape: Shape) -> None:
        d, size = shape.n_features, shape.n_features + 2
        self.anchor, self.moved, self.additions = np.full(d + 1, np.nan), np.zeros(d + 1), 0.0
        self.patterns = np.zeros((0, d), dtype=bool)
        self.counts = np.zeros((0, shape.n_folds), dtype=np.int64)
        self.grams = np.zeros((0, shape.n_folds, size * (size + 1) // 2))

    def update(self, rows: RowBlock) -> None:
        """Add a block of rows."""
        self.anchor[:-1] = anchored(self.anchor[:-1], rows.X, rows.s)
        self.anchor[-1:] = anchored(self.anchor[-1:], rows.y[:, None], rows.s)
        for begin in range(0, len(rows), MOST_ROWS):
            self._add(rows.block(slice(begin, begin + MOST_ROWS)))

    def _add(self, rows: RowBlock) -> None:
        table = PatternTable.of(np.isnan(rows.X))
        index = self._include(table.patterns)
        n_folds, d = self.counts.shape[1], rows.X.shape[1]
        group = index[table.codes] * n_folds + rows.fold
        order = np.argsort(group, kind="stable")
        Z = np.empty((len(rows), -(-(d + 2) // HEIGHT) * HEIGHT))
        sorted_rows(rows.X - self.anchor[:-1], rows.y - self.anchor[-1], rows.s, order, Z)
        numbers = np.bincount(group, minlength=self.counts.size)
        _add_groups(Z, numbers, self.grams.reshape(self.counts.size, -1))
        self.counts += numbers.reshape(self.counts.shape)
        most = int(numbers.max(initial=0))
        self.additions = max(self.additions, float(min(RUN, most) + most // RUN + 1)) + 1.0

    def _include(self, patterns: BoolArray) -> IntArray:
        """Add new patterns, and return the index of each."""
        known = lookup(self.patterns, patterns) if len(self.patterns) else np.full(len(patterns), -1)
        if (known < 0).any():
            new = patterns[known < 0]
            table = PatternTable.of(np.vstack([self.patterns, new]))
            if len(table.patterns) > MOST_PATTERNS:
                raise ValueError(
                    f"These rows have more than {MOST_PATTERNS:,} patterns, too many for a Gram matrix of each: use "
                    "patterns=False, and trees with tree_depth."
                )
            counts, grams = (np.zeros((len(table.patterns), *a.shape[1:]), a.dtype) for a in (self.counts, self.grams))
            own = table.codes[: len(self.patterns)]
            counts[own], grams[own] = self.counts, self.grams
            self.patterns, self.counts, self.grams = table.patterns, counts, grams
            known = lookup(self.patterns, patterns)
        return known

    def merged(self, other: "PatternGrams") -> "PatternGrams":
        """The moments of the rows of both; the anchors are those of this part."""
        found = copy.copy(self)
        found.counts, found.grams = self.counts.copy(), self.grams.copy()
        found.anchor = np.where(np.isnan(self.anchor), other.anchor, self.anchor)
        index = found._include(other.patterns)
        shift = np.nan_to_num(other.anchor - found.anchor)
        grams = other.grams
        additions = other.additions
        if shift.any():
            found.moved = np.maximum(self.moved, other.moved + np.abs(shift))
            grams, additions = _moved(other.patterns, grams, shift), additions + REBASED
        found.counts[index] += other.counts
        found.grams[index] += grams
        found.additions = max(self.additions, additions) + 1.0
        return found

    def arrays(self) -> Arrays:
        """All moments, by name."""
        names = ("anchor", "moved", "patterns", "counts", "grams")
        return {name: getattr(self, name) for name in names} | {"additions": np.array(self.additions)}

    def read(self, arrays: Arrays) -> None:
        """Take over saved moments."""
        for name in ("anchor", "moved", "patterns", "counts", "grams"):
            setattr(self, name, arrays[name])
        self.additions = float(arrays["additions"])

    def table(self) -> PatternTable:
        """The patterns, without the codes of rows."""
        weights = self.grams[:, :, 0].sum(axis=1)
        return PatternTable(self.patterns, np.zeros(0, dtype=np.int64), self.counts.sum(axis=1), weights)

    @property
    def error(self) -> float:
        """Relative error of the moments of a pattern; see :mod:`formulations.leaves.pattern_costs`."""
        return U * (self.additions + self.counts.shape[1] + MAPS)

    @property
    def origin(self) -> FloatArray:
        """Anchors of x and y; 0 for features that were never observed."""
        return np.nan_to_num(self.anchor)


def squared(packed: FloatArray) -> FloatArray:
    """Packed matrices, along the last axis, as square ones."""
    size = int(np.sqrt(2 * packed.shape[-1]))
    low = np.tril_indices(size)
    G = np.empty((*packed.shape[:-1], size, size))
    G[..., low[0], low[1]] = G[..., low[1], low[0]] = packed
    return G


def _moved(patterns: BoolArray, grams: FloatArray, shift: FloatArray) -> FloatArray:
    """Moments of (1, x, y) with ``shift`` added to x, where observed, and to y."""
    d = patterns.shape[1]
    low = np.tril_indices(d + 2)
    found = np.empty_like(grams)
    for p, m in enumerate(patterns):
        S = np.eye(d + 2)
        S[1:-1, 0], S[-1, 0] = np.where(m, 0.0, shift[:-1]), shift[-1]
        found[p] = (S @ squared(grams[p]) @ S.T)[:, low[0], low[1]]
    return found


@compiled
def _add_groups(Z, numbers, grams):  # type: ignore[no-untyped-def]
    """Add the moments of consecutive groups of rows."""
    rows, W, begin = np.arange(len(Z)).astype(np.int32), np.empty((Z.shape[1], Z.shape[1])), 0
    for g in range(len(numbers)):
        if numbers[g]:
            add_moments(Z, rows, begin, begin + numbers[g], W, grams, g, grams.shape[1])
            begin += numbers[g]
