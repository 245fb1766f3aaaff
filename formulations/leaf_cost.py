"""What a leaf costs: the one object that all partitions are compared by.

Data        rows i with pattern p(i), leaf features a_i (k numbers), target y_i, weight s_i > 0
            ridge >= 0, scaled by "leaf" (as it is) or by "sample" (times the weight of the leaf)
Leaf        a set G of patterns; W(G) the weight of its rows
Cost        c(G) = min over b, w of   sum_{i : p(i) in G} s_i l(y_i, b + w'a_i) + r(G) |w|^2
            r(G) = ridge   or   ridge W(G)

It is a sum, not a mean, and b is free. A partition costs the sum over its leaves.

For squared loss everything about a pattern is its Gram matrix of (1, a, y): Gram matrices add up over patterns, and the
cost of a leaf is the last pivot of one small Cholesky factorisation. Columns are shifted by their means over all rows
first, which b absorbs.
"""

import copy
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from formulations.leaf_cholesky import all_grams, gram_of_patterns, leaf_costs, split_grams
from formulations.losses import Array, BoolArray, Loss, Squared

IntArray = NDArray[np.int64]
RIDGE_SCALES = ("leaf", "sample")
# Directions with a singular value below this share of the largest are left out of a leaf's model.
COLLINEAR = 1e-13
# A column whose squares about its mean in a leaf are below this share of its squares does not vary there.
CONSTANT = 1e-13
# Smallest pivot, as a share of the largest diagonal entry, from which on normal equations are accurate enough.
WELL_CONDITIONED = 1e-6
# Bytes of Gram matrices that are held; where patterns are more, matrices are formed from the rows as they are needed.
MOST_GRAMS = 5 * 10**8


@dataclass(frozen=True)
class PatternRows:
    """The rows of a data set, sorted by pattern.

    Attributes
    ----------
    patterns : bool array of shape (P, d)
        Distinct patterns.
    start : int array of shape (P + 1,)
        Rows of pattern p are ``start[p]`` to ``start[p + 1]``.
    A : array of shape (n, k)
        Leaf features.
    y : array of shape (n, outputs)
        Targets; a leaf costs the sum over them.
    s : array of shape (n,)
        Weights.
    """

    patterns: BoolArray
    start: IntArray
    A: Array
    y: Array
    s: Array

    @classmethod
    def of(cls, patterns: BoolArray, codes: IntArray, A: Array, y: Array, s: Array) -> "PatternRows":
        """Sort rows by the code of their pattern."""
        small = codes.astype(np.uint16) if len(patterns) < 2**16 else codes  # sorted faster
        order = np.argsort(small, kind="stable")
        start = np.append(0, np.cumsum(np.bincount(codes, minlength=len(patterns))))
        targets = y[order]
        return cls(patterns, start, A[order], targets[:, None] if y.ndim == 1 else targets, s[order])

    @cached_property
    def counts(self) -> IntArray:
        """Rows of each pattern."""
        return np.diff(self.start)

    @cached_property
    def weights(self) -> Array:
        """Weight of each pattern."""
        return np.add.reduceat(self.s, self.start[:-1])

    def of_patterns(self, members: IntArray) -> IntArray:
        """Places of the rows of some patterns."""
        inside = np.zeros(len(self.patterns), dtype=bool)
        inside[members] = True
        return np.flatnonzero(np.repeat(inside, self.counts))


class LeafModel(NamedTuple):
    """The minimiser of a leaf's cost."""

    intercept: Array
    weights: Array
    cost: float


class LeafCost(ABC):
    """The cost of leaves of one data set; see the module."""

    def __init__(self, rows: PatternRows, loss: Loss, ridge: float, ridge_scale: str = "leaf") -> None:
        if ridge_scale not in RIDGE_SCALES:
            raise ValueError(f"ridge_scale must be one of {', '.join(map(repr, RIDGE_SCALES))}, not {ridge_scale!r}.")
        self.rows = rows
        self.loss = loss
        self.ridge = float(ridge)
        self.ridge_scale = ridge_scale
        self._known: dict[bytes, LeafModel] = {}

    def with_ridge(self, ridge: float) -> Self:
        """The same with another ridge; what does not depend on it is shared."""
        other = copy.copy(self)
        other.ridge, other._known = float(ridge), {}
        return other

    def penalty(self, weight: float) -> float:
        """r(G) of a leaf of this weight."""
        return self.ridge * weight if self.ridge_scale == "sample" else self.ridge

    def cost(self, members: IntArray) -> float:
        """c(G) of the leaf that holds these patterns, by index."""
        return self.fit(members).cost

    def fit(self, members: IntArray) -> LeafModel:
        """The model of a leaf and its cost, computed from its rows, once."""
        key = np.asarray(members).tobytes()
        if key not in self._known:
            self._known[key] = self._fit(members)
        return self._known[key]

    @abstractmethod
    def _fit(self, members: IntArray) -> LeafModel:
        """The same, computed."""

    def split_costs(self, members: IntArray, features: IntArray, min_rows: int) -> tuple[Array, Array]:
        """Costs of the sides m_j = 0 and m_j = 1 of a leaf for each feature j; infinite where a side is too small."""
        costs = np.full((2, len(features)), np.inf)
        inside, counts = self.rows.patterns[members], self.rows.counts[members]
        for place, j in enumerate(features):
            missing = inside[:, j]
            if min(counts[missing].sum(), counts[~missing].sum()) >= max(1, min_rows):
                costs[:, place] = self.cost(members[~missing]), self.cost(members[missing])
        return costs[0], costs[1]

    def total(self, leaves: Iterable[IntArray]) -> float:
        """Cost of a partition, from the rows of its leaves."""
        return float(sum(self.fit(members).cost for members in leaves))


class SquaredLeafCost(LeafCost):
    """Squared loss, in closed form."""

    def __init__(self, rows: PatternRows, ridge: float, ridge_scale: str = "leaf") -> None:
        super().__init__(rows, Squared(), ridge, ridge_scale)
        share = rows.s / rows.s.sum()
        n, k = rows.A.shape
        self.centre, self.level = share @ rows.A, float(share @ rows.y[:, 0])
        self.size, self.length = k + 2, (k + 2) * (k + 3) // 2
        self.Z = np.empty((n, self.size))
        self.Z[:, 0] = 1.0
        self.Z[:, 1:-1] = rows.A - self.centre
        self.Z[:, -1] = rows.y[:, 0] - self.level
        self.Z *= np.sqrt(rows.s)[:, None]
        held = 8 * len(rows.patterns) * self.length <= MOST_GRAMS
        self.grams: Array = all_grams(self.Z, rows.start, self.length) if held else np.empty((0, self.length))

    @property
    def statistics(self) -> tuple[Array, IntArray, Array]:
        """Shifted rows, where each pattern's begin, and the packed Gram matrices where they are held."""
        return self.Z, self.rows.start, self.grams

    def cost(self, members: IntArray) -> float:
        G = gram_of_patterns(*self.statistics, np.asarray(members), self.length)
        return float(self.costs_of_grams(G)[0])

    def costs_of_grams(self, G: Array) -> Array:
        """Costs from packed Gram matrices, one a row."""
        return np.asarray(leaf_costs(G, self.size, self.ridge, self.ridge_scale == "sample"))

    def split_costs(self, members: IntArray, features: IntArray, min_rows: int) -> tuple[Array, Array]:
        patterns, counts = self.rows.patterns, self.rows.counts
        G, rows = split_grams(*self.statistics, counts, patterns, np.asarray(members), features, self.length)
        costs = self.costs_of_grams(G).reshape(2, -1)
        costs[:, rows.min(axis=0) < max(1, min_rows)] = np.inf
        return costs[0], costs[1]

    def _fit(self, members: IntArray) -> LeafModel:
        Z = self.Z[self.rows.of_patterns(members)]
        G = Z.T @ Z
        weight, mean = G[0, 0], G[0, 1:] / G[0, 0]
        r = self.penalty(float(weight))
        H = G[1:-1, 1:-1] - weight * np.outer(mean[:-1], mean[:-1])
        varies = np.diag(H) > CONSTANT * np.diag(G)[1:-1]
        w = np.zeros(len(H))
        if varies.any():
            g = G[1:-1, -1] - weight * mean[:-1] * mean[-1]
            solved = _solve_well_conditioned(H[np.ix_(varies, varies)], g[varies], r)
            w[varies] = _least_squares(Z, mean, varies, r) if solved is None else solved
        b = mean[-1] - mean[:-1] @ w
        residual = Z[:, -1] - Z[:, 0] * b - Z[:, 1:-1] @ w
        cost = float(residual @ residual + r * (w @ w))
        return LeafModel(np.array([self.level + b - self.centre @ w]), w[None, :], cost)


def _solve_well_conditioned(H: Array, g: Array, r: float) -> Array | None:
    """Solution of (H + r I) w = g by Cholesky, or None where that would not be accurate."""
    H[np.diag_indices(len(H))] += r
    L, failed = scipy.linalg.lapack.dpotrf(H, lower=1)
    if failed or np.min(np.diag(L)) ** 2 < WELL_CONDITIONED * np.max(np.diag(H)):
        return None
    return np.asarray(scipy.linalg.lapack.dpotrs(L, g, lower=1)[0])


def _least_squares(Z: Array, mean: Array, varies: BoolArray, r: float) -> Array:
    """The same from the rows, by singular values."""
    centred = Z[:, 1:] - Z[:, :1] * mean
    B, k = centred[:, :-1][:, varies], int(varies.sum())
    padded, target = np.vstack([B, np.sqrt(r) * np.eye(k)]), np.append(centred[:, -1], np.zeros(k))
    return scipy.linalg.lstsq(padded, target, COLLINEAR, check_finite=False)[0]
