"""The cost of a leaf, by which all partitions are compared.

Data        rows i with pattern p(i), leaf features a_i (k numbers), target y_i, weight s_i > 0
            ridge >= 0, per "leaf" (as it is) or per "sample" (times the weight of the leaf)
            d_k > 0, the weight of feature k in the ridge (1 by default)
Leaf        a set G of patterns; W(G) the weight of its rows
Cost        c(G) = min over b, w of   sum_{i : p(i) in G} s_i l(y_i, b + w'a_i) + r(G) sum_k d_k w_k^2
            r(G) = ridge   or   ridge W(G)

It is a sum, not a mean, and b is free. A partition costs the sum over its leaves.

Proofs need more than a cost in floating point: every leaf cost has an interval, lower <= c(G) <= upper, that holds in
exact arithmetic. The upper end is the value of a model, the lower end comes from duality. The cost of a partition is at
most the sum of upper ends, and the minimum over partitions is at least the minimum of the sum of lower ends.
"""

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np

from formulations.arrays import BoolArray, FloatArray, IntArray
from formulations.losses import Loss

RIDGE_SCALES = ("leaf", "sample")
# Larger ridges count as this one in solvers.
LARGEST_RIDGE = 1e200


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
    ridge_weights : array of shape (k,), optional
        d_k, the weight of each leaf feature in the ridge; 1 by default.
    """

    patterns: BoolArray
    start: IntArray
    A: FloatArray
    y: FloatArray
    s: FloatArray
    ridge_weights: FloatArray | None = None

    @property
    def complete(self) -> bool:
        """Whether these are the patterns of the rows."""
        return True

    @classmethod
    def of(
        cls,
        patterns: BoolArray,
        codes: IntArray,
        A: FloatArray,
        y: FloatArray,
        s: FloatArray,
        ridge_weights: FloatArray | None = None,
    ) -> "PatternRows":
        """Sort rows by the code of their pattern."""
        small = codes.astype(np.uint16) if len(patterns) < 2**16 else codes  # sorted faster
        order = np.argsort(small, kind="stable")
        start = np.append(0, np.cumsum(np.bincount(codes, minlength=len(patterns))))
        targets = y[order]
        targets = targets[:, None] if y.ndim == 1 else targets
        return cls(patterns, start, A[order], targets, s[order], ridge_weights)

    @cached_property
    def counts(self) -> IntArray:
        """Rows of each pattern."""
        return np.diff(self.start)

    @cached_property
    def weights(self) -> FloatArray:
        """Weight of each pattern."""
        return np.add.reduceat(self.s, self.start[:-1])

    @cached_property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.counts.sum())

    @cached_property
    def rarest_class(self) -> int | None:
        """Rows of the rarest class, or of the rest if they are fewer, if all targets are -1 or 1; else None."""
        if not (np.abs(self.y) == 1.0).all():
            return None
        positive = (self.y > 0).sum(axis=0)
        return int(np.minimum(positive, len(self.y) - positive).min())

    def of_patterns(self, members: IntArray) -> IntArray:
        """Indices of the rows of some patterns."""
        inside = np.zeros(len(self.patterns), dtype=bool)
        inside[members] = True
        return np.flatnonzero(np.repeat(inside, np.diff(self.start)))


@dataclass(frozen=True)
class PatternTotals(PatternRows):
    """Patterns with the numbers and weights of rows that are not held themselves: others, or none, are in their place.

    Attributes
    ----------
    totals : (int array, float array)
        Rows and weight of each pattern.
    rarest : int, optional
        See :attr:`PatternRows.rarest_class`.
    complete : bool
        Whether these are the patterns of the rows. If not, numbers of rows are right for boxes only.
    """

    totals: tuple[IntArray, FloatArray] = field(default_factory=lambda: (np.zeros(0, dtype=np.int64), np.zeros(0)))
    rarest: int | None = None
    complete: bool = True

    @classmethod
    def of_totals(
        cls,
        patterns: BoolArray,
        counts: IntArray,
        weights: FloatArray,
        ridge_weights: FloatArray,
        rarest: int | None = None,
        complete: bool = True,
    ) -> "PatternTotals":
        """Totals of patterns with one leaf feature for each ridge weight."""
        empty, k = np.zeros(0), len(ridge_weights)
        start = np.zeros(1 + len(patterns), dtype=np.int64)
        given = (counts, weights), rarest, complete
        return cls(patterns, start, np.zeros((0, k)), empty[:, None], empty, ridge_weights, *given)

    @cached_property
    def counts(self) -> IntArray:
        return self.totals[0]

    @cached_property
    def weights(self) -> FloatArray:
        return self.totals[1]

    @cached_property
    def rarest_class(self) -> int | None:
        return self.rarest


class LeafModel(NamedTuple):
    """A minimiser of a leaf's cost; ``cost`` is its value, rounded up (in SquaredEstimates, an estimate).

    The intercept is a double, which may be farther from the best one for the weights than the cost tells: ``rounding``
    is what that adds to the value of the coefficients as they are.
    """

    intercept: FloatArray
    weights: FloatArray
    cost: float
    rounding: float = 0.0


class Split(NamedTuple):
    """A feature to split a leaf on, and the costs of its sides."""

    feature: int
    observed: float
    missing: float


class LeafCost(ABC):
    """The cost of leaves of one data set; see the module."""

    def __init__(self, rows: PatternRows, loss: Loss, ridge: float, ridge_scale: str = "leaf") -> None:
        if ridge_scale not in RIDGE_SCALES:
            raise ValueError(f"ridge_scale must be one of {', '.join(map(repr, RIDGE_SCALES))}, not {ridge_scale!r}.")
        self.rows = rows
        self.loss = loss
        self.ridge = float(ridge)
        self.ridge_scale = ridge_scale
        self.ridge_weights = np.ones(rows.A.shape[1]) if rows.ridge_weights is None else rows.ridge_weights
        self._known: dict[bytes, LeafModel] = {}
        self._lower_ends: dict[bytes, float] = {}
        self._splits: dict[tuple[bytes, bytes, int], Split | None] = {}

    def with_ridge(self, ridge: float) -> Self:
        """The same with another ridge; all that does not depend on it is shared."""
        other = copy.copy(self)
        other.ridge = float(ridge)
        other._known = {}
        other._lower_ends = {}
        other._splits = {}
        return other

    def penalty(self, weight: float) -> float:
        """r(G) of a leaf of this weight."""
        return self.ridge * weight if self.ridge_scale == "sample" else self.ridge

    @property
    def ridges(self) -> FloatArray:
        """ridge d_k of every leaf feature, rounded: these numbers define the cost."""
        return self.ridge * self.ridge_weights

    def cost(self, members: IntArray) -> float:
        """c(G) of the leaf that holds these patterns, by index, in floating point."""
        return self.fit(members).cost

    def fit(self, members: IntArray) -> LeafModel:
        """The model of a leaf and its cost, computed once from its rows."""
        key = np.asarray(members).tobytes()
        if key not in self._known:
            self._known[key] = self._fit(members)
        return self._known[key]

    def models(self, labels: IntArray) -> list[LeafModel]:
        """The models of the leaves 0, 1, .. of a partition, from the leaf of each pattern."""
        return [self.fit(np.flatnonzero(labels == leaf)) for leaf in range(labels.max() + 1)]

    def interval(self, members: IntArray) -> tuple[float, float]:
        """Lower and upper end of c(G), computed once from the rows of the leaf; SquaredEstimates estimates them."""
        key, upper = np.asarray(members).tobytes(), self.fit(members).cost
        if key not in self._lower_ends:
            self._lower_ends[key] = self._lower_end(members)
        lower = self._lower_ends[key]
        return (min(lower, upper) if math.isfinite(lower) else 0.0), upper

    def quick_end(self, members: IntArray, end: int) -> float:
        """The lower end of c(G) if ``end`` is negative, else the upper end; possibly looser than :meth:`interval`."""
        return self.interval(members)[end >= 0]

    @abstractmethod
    def _fit(self, members: IntArray) -> LeafModel:
        """Compute the model of a leaf and the value of its cost, rounded up."""

    @abstractmethod
    def _lower_end(self, members: IntArray) -> float:
        """Compute a number that is not above c(G), even in exact arithmetic."""

    def best_split(self, members: IntArray, features: IntArray, min_rows: int) -> Split | None:
        """The split of a leaf whose sides cost least, among those with enough rows on both sides; computed once.

        Ties go to the first feature.
        """
        key = members.tobytes(), features.tobytes(), min_rows
        if key not in self._splits:
            allowed, missing = self._allowed_splits(members, features, min_rows)
            self._splits[key] = self._best_split(members, allowed, missing) if len(allowed) else None
        return self._splits[key]

    def _allowed_splits(self, members: IntArray, features: IntArray, min_rows: int) -> tuple[IntArray, BoolArray]:
        """Features by which a leaf may be split, and for each of them whether it is missing in each pattern."""
        counts = self.rows.counts[members]
        missing = self.rows.patterns[np.ix_(members, features)]
        rows = np.array([counts[column].sum() for column in missing.T], dtype=np.int64)
        allowed = np.minimum(rows, counts.sum() - rows) >= max(1, min_rows)
        return features[allowed], missing.T[allowed]

    def _best_split(self, members: IntArray, features: IntArray, missing: BoolArray) -> Split | None:
        """The split whose sides cost least; ``missing[i]`` are the patterns where ``features[i]`` is missing."""
        observed, absent = self._side_costs(members, features, missing)
        best = int(np.argmin(observed + absent))
        split = Split(int(features[best]), float(observed[best]), float(absent[best]))
        return split if np.isfinite(split.observed + split.missing) else None

    def _side_costs(self, members: IntArray, features: IntArray, missing: BoolArray) -> FloatArray:
        """Costs of both sides of a leaf for each feature, of shape (2, features)."""
        return np.array([[self.cost(members[~inside]), self.cost(members[inside])] for inside in missing]).T

    def total(self, leaves: Iterable[IntArray]) -> float:
        """Cost of a partition, from the rows of its leaves, rounded up."""
        return math.fsum(self.fit(members).cost for members in leaves) * (1.0 + 2.0**-52)
