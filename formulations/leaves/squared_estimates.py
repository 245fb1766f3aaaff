"""Costs and models of leaves under squared loss as accurate as comparisons of predictions need, without proofs.

Cross-validation fits the same leaves at many ridges. With C the centred Gram matrix of (a, y) over a leaf, which does
not depend on the ridge,

    w = (C_aa + r)^-1 C_ay,      c(G) = C_yy - w'C_ay.

So sums over leaves, and over the sides of their splits, are computed once for all ridges. Splits are compared by sums
over the leaf minus those over a side. The sums of patterns are multiples of one unit of rounding for all rows: a leaf
in which a column hardly varies, by its size there or over all rows, or whose columns are nearly collinear, is fitted
from its rows, with the interval of :mod:`formulations.leaves.squared`.
"""

from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

import numpy as np
import scipy.linalg

from formulations.arrays import BoolArray, FloatArray, IntArray
from formulations.certificate import GAP_TOLERANCE
from formulations.leaves.cholesky import LOWER
from formulations.leaves.cost import LeafModel, PatternRows, Split
from formulations.leaves.squared import MOST_GRAMS, OVERWHELMING, WELL_CONDITIONED, SquaredLeafCost

# Weight of a leaf, or spread of a column, below which it is lost to rounding, in units in which it is about 1 over all
# rows.
RESOLVED = 1e-9

T = TypeVar("T")


class Held(Generic[T]):
    """Values that are computed once, dropped when they exceed :data:`MOST_GRAMS` bytes."""

    def __init__(self) -> None:
        self._values: dict[bytes, T] = {}
        self._bytes = 0

    def get(self, key: bytes, compute: Callable[[], T], n_bytes: int) -> T:
        """The value of a key, which takes ``n_bytes`` besides the key."""
        if key not in self._values:
            value = compute()
            if self._bytes + n_bytes + len(key) > MOST_GRAMS:
                self._values.clear()
                self._bytes = 0
            self._values[key] = value
            self._bytes += n_bytes + len(key)
        return self._values[key]


class LeafMoments(NamedTuple):
    """Weight of a leaf, means of (a, y), C in units of the norms of its columns, and these norms; 0 if constant."""

    weight: float
    mean: FloatArray
    C: FloatArray
    size: FloatArray


class SquaredEstimates(SquaredLeafCost):
    """Squared loss, in floating point; the sums of all leaves are shared by all ridges."""

    def __init__(self, rows: PatternRows, ridge: float, ridge_scale: str = "leaf") -> None:
        super().__init__(rows, ridge, ridge_scale)
        self._sums = Held[FloatArray]()
        self._sums_of_sides = Held[FloatArray]()
        self._moments = Held[LeafMoments | None]()

    def gram(self, members: IntArray) -> FloatArray:
        key = np.asarray(members).tobytes()
        return self._sums.get(key, lambda: super(SquaredEstimates, self).gram(members), 8 * self.length)

    def _best_split(self, members: IntArray, features: IntArray, missing: BoolArray) -> Split | None:
        if 16 * self.length * len(features) > MOST_GRAMS:
            return super()._best_split(members, features, missing)
        whole, sides = self.gram(members), self._sides(members, features, missing)
        costs = self.costs_of_grams(np.vstack([whole - sides, sides])).reshape(2, -1)
        best = int(np.argmin(costs.sum(axis=0)))
        return Split(int(features[best]), float(costs[0, best]), float(costs[1, best]))

    def _sides(self, members: IntArray, features: IntArray, missing: BoolArray) -> FloatArray:
        """Packed Gram matrices of the sides with m_j = 1."""
        key = members.tobytes() + features.tobytes()
        size = 8 * self.length * len(features)
        return self._sums_of_sides.get(key, lambda: self.sums_of_grams(missing, members), size)

    def _moments_of(self, members: IntArray) -> LeafMoments | None:
        """Moments of a leaf; None if a column varies too little for them."""
        size = 8 * self.size * (self.size + 2)
        return self._moments.get(members.tobytes(), lambda: self._computed_moments(members), size)

    def _computed_moments(self, members: IntArray) -> LeafMoments | None:
        G, low = np.empty((self.size, self.size)), np.tril_indices(self.size)
        G[low] = G[low[1], low[0]] = self.gram(members)[0]
        weight, first, squares = float(G[0, 0]), G[0, 1:], np.diag(G)[1:]
        if weight <= RESOLVED:
            return None
        C = G[1:, 1:] - np.outer(first, first) / weight
        spread = np.diag(C)
        doubtful = spread <= np.maximum(WELL_CONDITIONED * squares, RESOLVED)
        if (doubtful & ~np.append(self.constant(members), False)).any():
            return None
        size = np.where(doubtful, 0.0, np.sqrt(np.maximum(spread, 0.0)))
        unit = np.where(size > 0.0, size, 1.0)
        return LeafMoments(weight, first / weight, C / np.outer(unit, unit), size)

    def _fit(self, members: IntArray) -> LeafModel:
        moments = self._moments_of(members)
        if moments is None:
            return super()._fit(members)
        weight, mean, C, size = moments
        r = self.scaled_ridge[1:-1] * (weight if self.ridge_scale == "sample" else 1.0)
        used = np.flatnonzero((size[:-1] > 0.0) & (r < OVERWHELMING))
        w, explained = np.zeros(len(size) - 1), np.zeros(0)
        if len(used):
            H = C[np.ix_(used, used)]
            H[np.diag_indices(len(used))] += r[used] / size[used] ** 2
            L, failed = scipy.linalg.lapack.dpotrf(H, lower=1)
            if failed or np.min(np.diag(L)) ** 2 <= WELL_CONDITIONED:
                return super()._fit(members)
            explained = scipy.linalg.lapack.dpotrs(L, C[used, -1], lower=1)[0]
            w[used] = explained * size[-1] / size[used]
        cost = (C[-1, -1] - explained @ C[used, -1]) * size[-1] ** 2
        coefficients = w * self.unit[-1] / self.unit[1:-1]
        b = self.unit[-1] / self.unit[0] * (mean[-1] - mean[:-1] @ w)
        intercept = self.level + b - self.centre @ coefficients
        return LeafModel(np.array([intercept]), coefficients[None, :], max(0.0, float(cost)) * self.unit[-1] ** 2)

    def _lower_end(self, members: IntArray) -> float:
        lower, upper = self.quick_end(members, LOWER), self.fit(members).cost
        return lower if upper - lower <= GAP_TOLERANCE * upper else super()._lower_end(members)
