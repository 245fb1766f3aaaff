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
from formulations.leaves.set_sums import SetSums, count_sets

# Bytes that the sums of all folds may take.
MOST_BYTES = 15 * 10**8
# Rows that are added at once, and their values.
MOST_ROWS, MOST_VALUES = 2**20, 2**25
SUMS = ("second", "first", "weights")


class MissingSets:
    """Sums over all sets of at most ``depth`` missing features."""

    def __init__(self, shape: Shape, depth: int) -> None:
        d = shape.n_features
        size = 8 * shape.n_folds * (count_sets(d, depth) * ((d + 2) * (d + 3) // 2) + comb(d, depth + 1) * (d + 3))
        if size > MOST_BYTES:
            raise ValueError(
                f"Sums for trees of depth {depth} over {d} features and {shape.n_folds} folds take "
                f"{size / 10**9:.1f} GB: use a smaller tree_depth, or tree_depth=None for linear models only."
            )
        self.anchor, self.moved, self.additions = np.full(d + 1, np.nan), np.zeros(d + 1), 0.0
        self.sums = [SetSums.zero(d, depth) for _ in range(shape.n_folds)]
        self._waiting: list[RowBlock] = []

    def update(self, rows: RowBlock) -> None:
        """Add a block of rows; small blocks wait for others, with which they are added faster."""
        self.anchor = anchored(self.anchor, rows)
        most = min(MOST_ROWS, max(1024, MOST_VALUES // max(1, rows.X.shape[1])))
        for begin in range(0, len(rows), most):
            part = rows.block(slice(begin, begin + most))
            self._waiting.append(
                RowBlock(part.X - self.anchor[:-1], part.y - self.anchor[-1], part.s.copy(), part.fold.copy())
            )
            if sum(map(len, self._waiting)) >= most:
                self._add_waiting()

    def _add_waiting(self) -> None:
        if not self._waiting:
            return
        longest, waiting, self._waiting = 0.0, self._waiting, []
        for f, sums in enumerate(self.sums):
            held = [(rows, rows.fold == f) for rows in waiting]
            X, y, s = (np.concatenate([getattr(rows, name)[inside] for rows, inside in held]) for name in "Xys")
            longest = max(longest, sums.add(X, y, s))
        self.additions = max(self.additions, longest) + 1.0

    def __getstate__(self) -> dict[str, Any]:
        """Sums, not rows, are sent to other processes."""
        self._add_waiting()
        return vars(self)

    def merged(self, other: "MissingSets") -> "MissingSets":
        """The sums of the rows of both; the anchors are those of this part."""
        for part in (self, other):
            part._add_waiting()
        found = copy.copy(self)
        found.anchor = np.where(np.isnan(self.anchor), other.anchor, self.anchor)
        shift = other.anchor - found.anchor
        shift = np.where(np.isnan(shift), 0.0, shift)
        moments = [SetMoments(sums, other.moved, other.additions) for sums in other.sums]
        if shift.any():
            moments = [each.rebased(shift) for each in moments]
        found.moved = np.maximum(self.moved, moments[0].moved)
        found.additions = max(self.additions, moments[0].additions) + 1.0
        found.sums = [own.plus(each.sums) for own, each in zip(self.sums, moments, strict=True)]
        found._waiting = []
        return found

    def arrays(self) -> Arrays:
        """All sums, by name."""
        self._add_waiting()
        sums = {name: np.stack([getattr(part, name) for part in self.sums]) for name in SUMS}
        return sums | {"anchor": self.anchor, "moved": self.moved, "additions": np.array(self.additions)}

    def read(self, arrays: Arrays) -> None:
        """Take over saved sums."""
        self.anchor, self.moved, self.additions = arrays["anchor"], arrays["moved"], float(arrays["additions"])
        for f, part in enumerate(self.sums):
            for name in SUMS:
                setattr(part, name, arrays[name][f])

    def moments(self, folds: IntArray) -> SetMoments:
        """The moments of the rows of some folds."""
        self._add_waiting()
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
