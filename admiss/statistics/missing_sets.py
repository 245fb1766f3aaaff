"""Sums over the rows in which all of U is missing, for trees: one part of row statistics, for each fold.

See :mod:`formulations.leaves.set_sums` for the sums and their error, :mod:`formulations.leaves.set_moments` for what
follows from them. x and y are summed around anchors near the data.
"""

import copy
from math import comb
from typing import Any

import numpy as np

from admiss.statistics.blocks import Arrays, RowBlock, Shape, anchored
from formulations.arrays import FloatArray, IntArray
from formulations.leaves.set_moments import SetMoments
from formulations.leaves.set_sums import Rows, SetSums, rows_at_once
from formulations.leaves.subsets import count_sets

# Bytes that the sums of all folds may take.
MOST_BYTES = 15 * 10**8
# Values of the rows that wait, of all folds.
MOST_VALUES = 2**26
# Parts in which the most rows that wait arrive.
PARTS = 8
SUMS = ("second", "first", "weights")


def bytes_of_sums(shape: Shape, depth: int) -> int:
    """Bytes of the sums of all folds."""
    d = shape.n_features
    return 8 * shape.n_folds * (count_sets(d, depth) * ((d + 2) * (d + 3) // 2) + comb(d, depth + 1) * (d + 3))


class MissingSets:
    """Sums over all sets of at most ``depth`` missing features."""

    def __init__(self, shape: Shape, depth: int) -> None:
        d = shape.n_features
        size = bytes_of_sums(shape, depth)
        if size > MOST_BYTES:
            raise ValueError(
                f"Sums for trees of depth {depth} over {d} features and {shape.n_folds} folds take "
                f"{size / 10**9:.1f} GB: use patterns=True if there are few patterns, a smaller tree_depth, or "
                "tree_depth=None for linear models only."
            )
        self.anchor, self.moved, self._additions = np.full(d + 1, np.nan), np.zeros(d + 1), np.zeros(shape.n_folds)
        self.sums = [SetSums.zero(d, depth) for _ in range(shape.n_folds)]
        self._waiting: list[list[Rows]] = [[] for _ in self.sums]
        self._n_waiting = np.zeros(shape.n_folds, dtype=np.int64)
        # False while rows that wait are added, and after an addition that was interrupted
        self._is_complete = True

    def update(self, rows: RowBlock) -> None:
        """Add a block of rows; those of each fold wait for others, with which they are added faster."""
        self._require_complete()
        self.anchor = anchored(self.anchor, rows)
        d, n_folds = rows.X.shape[1], len(self.sums)
        most = min(rows_at_once(d), max(1024, MOST_VALUES // (max(1, d) * n_folds)))
        step = -(-most // PARTS)
        for begin in range(0, len(rows), step):
            part = rows.block(slice(begin, begin + step))
            for f in np.unique(part.fold):
                inside = np.flatnonzero(part.fold == f)
                self._waiting[f].append((part.X.take(inside, axis=0), part.y[inside], part.s[inside]))
                self._n_waiting[f] += len(inside)
                if self._n_waiting[f] > most - step:
                    self._add_waiting(f)

    def _add_waiting(self, fold: int) -> None:
        if self._waiting[fold]:
            self._is_complete = False
            longest = self.sums[fold].add(self._waiting[fold], self.origin)
            self._additions[fold] = max(self._additions[fold], longest) + 1.0
            self._waiting[fold], self._n_waiting[fold] = [], 0
            self._is_complete = True

    def _require_complete(self) -> None:
        if not self._is_complete:
            raise ValueError("An addition of rows to these sums was interrupted: start from a saved copy.")

    def complete(self) -> None:
        """Add all rows that wait."""
        self._require_complete()
        for fold in range(len(self.sums)):
            self._add_waiting(fold)

    @property
    def additions(self) -> float:
        """The largest number of additions of an entry."""
        return float(self._additions.max())

    def __getstate__(self) -> dict[str, Any]:
        """Sums, not rows, are sent to other processes."""
        self.complete()
        return vars(self)

    def merged(self, other: "MissingSets") -> "MissingSets":
        """The sums of the rows of both; the anchors are those of this part."""
        for part in (self, other):
            part.complete()
        found = copy.copy(self)
        found.anchor = np.where(np.isnan(self.anchor), other.anchor, self.anchor)
        shift = other.anchor - found.anchor
        shift = np.where(np.isnan(shift), 0.0, shift)
        moments = [SetMoments(sums, other.moved, c) for sums, c in zip(other.sums, other._additions, strict=True)]
        if shift.any():
            moments = [each.rebased(shift) for each in moments]
        found.moved = np.maximum(self.moved, moments[0].moved)
        found._additions = np.maximum(self._additions, [each.additions for each in moments]) + 1.0
        found.sums = [own.plus(each.sums) for own, each in zip(self.sums, moments, strict=True)]
        found._waiting, found._n_waiting = [[] for _ in found.sums], np.zeros_like(self._n_waiting)
        return found

    def arrays(self) -> Arrays:
        """All sums, by name."""
        self.complete()
        sums = {name: np.stack([getattr(part, name) for part in self.sums]) for name in SUMS}
        return sums | {"anchor": self.anchor, "moved": self.moved, "additions": np.array(self.additions)}

    def read(self, arrays: Arrays) -> None:
        """Take over saved sums."""
        self.anchor, self.moved = arrays["anchor"], arrays["moved"]
        self._additions = np.full(len(self.sums), float(arrays["additions"]))
        for f, part in enumerate(self.sums):
            for name in SUMS:
                setattr(part, name, arrays[name][f])

    def moments(self, folds: IntArray) -> SetMoments:
        """The moments of the rows of some folds."""
        self.complete()
        total = self.sums[folds[0]]
        for f in folds[1:]:
            total = total.plus(self.sums[f])
        return SetMoments(total, self.moved, self.additions + len(folds))

    @property
    def depth(self) -> int:
        """Largest number of literals of a box."""
        return self.sums[0].depth

    @property
    def origin(self) -> FloatArray:
        """Anchors of x and y; 0 for features that were never observed."""
        return np.nan_to_num(self.anchor)
