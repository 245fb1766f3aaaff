"""What a leaf costs: the one object that all partitions are compared by.

Data        rows i with pattern p(i), leaf features a_i (k numbers), target y_i, weight s_i > 0
            ridge >= 0, scaled by "leaf" (as it is) or by "sample" (times the weight of the leaf)
Leaf        a set G of patterns; W(G) the weight of its rows
Cost        c(G) = min over b, w of   sum_{i : p(i) in G} s_i l(y_i, b + w'a_i) + r(G) |w|^2
            r(G) = ridge   or   ridge W(G)

It is a sum, not a mean, and b is free. A partition costs the sum over its leaves.

For squared loss everything about a pattern is its Gram matrix of (1, a, y): Gram matrices add up over patterns, and the
cost of a leaf is the last pivot of one small Cholesky factorisation. Columns are shifted by their means over all rows
first, which b absorbs. Patterns with more rows than the matrix has are kept as its square root R, R'R = Gram.
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

from formulations.leaf_cholesky import gram_of_rows, leaf_costs, split_grams
from formulations.losses import Array, BoolArray, Loss, Squared

IntArray = NDArray[np.int64]
RIDGE_SCALES = ("leaf", "sample")


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
        order = np.argsort(codes, kind="stable")
        start = np.searchsorted(codes[order], np.arange(len(patterns) + 1))
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
        if len(members) == len(self.patterns):
            return np.arange(len(self.s))
        return np.concatenate([np.arange(self.start[p], self.start[p + 1]) for p in members])


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
        self._known: dict[bytes, float] = {}

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
        key = np.asarray(members).tobytes()
        if key not in self._known:
            self._known[key] = self.fit(members).cost
        return self._known[key]

    @abstractmethod
    def fit(self, members: IntArray) -> LeafModel:
        """The model of a leaf and its cost, computed from its rows."""

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
        Z = np.column_stack([np.ones(len(share)), rows.A - share @ rows.A, rows.y[:, :1] - share @ rows.y[:, :1]])
        Z *= np.sqrt(rows.s)[:, None]
        self.Z, self.start = _compressed(Z, rows.start)

    def cost(self, members: IntArray) -> float:
        T = gram_of_rows(self.Z, self.start, np.asarray(members))
        return float(self.costs_of_grams(T[:, None])[0])

    def costs_of_grams(self, T: Array) -> Array:
        """Costs from packed Gram matrices, one a column; ``T`` is overwritten."""
        return np.asarray(leaf_costs(T, self.Z.shape[1], self.ridge, self.ridge_scale == "sample"))

    def split_costs(self, members: IntArray, features: IntArray, min_rows: int) -> tuple[Array, Array]:
        members = np.asarray(members)
        T, counts = split_grams(self.Z, self.start, self.rows.counts, self.rows.patterns, members, features)
        costs = self.costs_of_grams(T).reshape(2, -1)
        costs[counts < max(1, min_rows)] = np.inf
        return costs[0], costs[1]

    def fit(self, members: IntArray) -> LeafModel:
        places = self.rows.of_patterns(members)
        A, y, s = self.rows.A[places], self.rows.y[places, 0], self.rows.s[places]
        share, k = s / s.sum(), A.shape[1]
        centre, level = share @ A, share @ y
        root, r = np.sqrt(s), self.penalty(float(s.sum()))
        B, z = root[:, None] * (A - centre), root * (y - level)
        w = scipy.linalg.lstsq(np.vstack([B, np.sqrt(r) * np.eye(k)]), np.append(z, np.zeros(k)), check_finite=False)[0]
        residual = z - B @ w
        return LeafModel(np.array([level - centre @ w]), w[None, :], float(residual @ residual + r * (w @ w)))


def _compressed(Z: Array, start: IntArray) -> tuple[Array, IntArray]:
    """Rows with the same Gram matrix in every pattern, at most as many as Z has columns."""
    counts, size = np.diff(start), Z.shape[1]
    large = np.flatnonzero(counts > size)
    if not len(large):
        return np.ascontiguousarray(Z), start
    kept = np.minimum(counts, size)
    new_start = np.append(0, np.cumsum(kept))
    compressed = np.empty((new_start[-1], size))
    small = np.repeat(counts <= size, counts)
    compressed[np.repeat(counts <= size, kept)] = Z[small]
    for p in large:
        compressed[new_start[p] : new_start[p + 1]] = np.linalg.qr(Z[start[p] : start[p + 1]], mode="r")
    return compressed, new_start
