"""Sums over the rows in which all of U is missing, for trees: one part of row statistics, for each fold.

See :mod:`formulations.leaves.set_sums` for the sums and their error, and :mod:`formulations.leaves.set_moments` for what
follows from them. x and y are summed around anchors near the data.
"""

import copy
from math import comb

import numpy as np

from admiss.streaming.feature_sums import anchored
from admiss.streaming.rows import Arrays, Rows, Shape
from formulations.arrays import FloatArray, IntArray
from formulations.leaves.set_moments import SetMoments
from formulations.leaves.set_sums import SetSums, count_sets

# Bytes that the sums of all folds may take.
MOST_BYTES = 15 * 10**8
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

    def update(self, rows: Rows) -> None:
        """Add a block of rows."""
        self.anchor[:-1] = anchored(self.anchor[:-1], rows.X)
        self.anchor[-1:] = anchored(self.anchor[-1:], rows.y[:, None])
        X, y = rows.X - self.anchor[:-1], rows.y - self.anchor[-1]
        longest = 0.0
        for f, sums in enumerate(self.sums):
            inside = rows.fold == f
            if inside.all():
                longest = sums.add(X, y, rows.s)
            elif inside.any():
                longest = max(longest, sums.add(X[inside], y[inside], rows.s[inside]))
        self.additions = max(self.additions, longest) + 1.0

    def merged(self, other: "MissingSets") -> "MissingSets":
        """The sums of the rows of both; the anchors are those of this part."""
        found = copy.copy(self)
        found.anchor = np.where(np.isnan(self.anchor), other.anchor, self.anchor)
        shift = other.anchor - found.anchor
        shift = np.where(np.isnan(shift), 0.0, shift)
        parts = [SetMoments(sums, other.moved, other.additions) for sums in other.sums]
        if shift.any():
            parts = [part.rebased(shift) for part in parts]
        found.moved = np.maximum(self.moved, parts[0].moved)
        found.additions = max(self.additions, parts[0].additions) + 1.0
        found.sums = [own.plus(part.sums) for own, part in zip(self.sums, parts, strict=True)]
        return found

    def arrays(self) -> Arrays:
        """All sums, by name."""
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
