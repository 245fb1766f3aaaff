"""The cost of a leaf, by which all partitions are compared.

Data        rows i with pattern p(i), leaf features a_i (k numbers), target y_i, weight s_i > 0
            ridge >= 0, per "leaf" (as it is) or per "sample" (times the weight of the leaf)
Leaf        a set G of patterns; W(G) the weight of its rows
Cost        c(G) = min over b, w of   sum_{i : p(i) in G} s_i l(y_i, b + w'a_i) + r(G) |w|^2
            r(G) = ridge   or   ridge W(G)

It is a sum, not a mean, and b is free. A partition costs the sum over its leaves.

For squared loss a pattern is summarised by its Gram matrix of (1, a, y): Gram matrices add up over patterns, and the
cost of a leaf is the last pivot of one small Cholesky factorisation. Columns are first shifted by their means over all
rows, which b absorbs.
"""

import copy
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
import scipy.linalg

from formulations.arrays import BoolArray, FloatArray, IntArray
from formulations.leaves.cholesky import all_grams, gram_of_patterns, leaf_costs, split_grams
from formulations.losses import Loss, Squared

RIDGE_SCALES = ("leaf", "sample")
# Directions with a singular value below this share of the largest are left out of a leaf's model.
COLLINEAR = 1e-13
# A column whose spread in a leaf is below this share of its size does not vary there.
CONSTANT = 1e-14
# Smallest pivot of columns of norm 1 above which normal equations are accurate enough.
WELL_CONDITIONED = 1e-6
# Standard deviations from 0 above which sums of squares lose what a feature explains, and the eigenvalue of columns of
# norm 1 below which they lose the difference between columns.
FAR = 1e3
NEARLY_COLLINEAR = 1e-8
# Bytes of Gram matrices held in memory; with more patterns, matrices are computed from the rows when needed.
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
    A: FloatArray
    y: FloatArray
    s: FloatArray

    @classmethod
    def of(cls, patterns: BoolArray, codes: IntArray, A: FloatArray, y: FloatArray, s: FloatArray) -> "PatternRows":
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
    def weights(self) -> FloatArray:
        """Weight of each pattern."""
        return np.add.reduceat(self.s, self.start[:-1])

    def of_patterns(self, members: IntArray) -> IntArray:
        """Indices of the rows of some patterns."""
        inside = np.zeros(len(self.patterns), dtype=bool)
        inside[members] = True
        return np.flatnonzero(np.repeat(inside, self.counts))


class LeafModel(NamedTuple):
    """The minimiser of a leaf's cost."""

    intercept: FloatArray
    weights: FloatArray
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
        """The same with another ridge; all that does not depend on it is shared."""
        other = copy.copy(self)
        other.ridge, other._known = float(ridge), {}
        return other

    @property
    def inaccuracy_reason(self) -> str:
        """Why costs may be too inaccurate for a proof; empty if they are accurate."""
        return ""

    def penalty(self, weight: float) -> float:
        """r(G) of a leaf of this weight."""
        return self.ridge * weight if self.ridge_scale == "sample" else self.ridge

    def cost(self, members: IntArray) -> float:
        """c(G) of the leaf that holds these patterns, by index."""
        return self.fit(members).cost

    def fit(self, members: IntArray) -> LeafModel:
        """The model of a leaf and its cost, computed once from its rows."""
        key = np.asarray(members).tobytes()
        if key not in self._known:
            self._known[key] = self._fit(members)
        return self._known[key]

    @abstractmethod
    def _fit(self, members: IntArray) -> LeafModel:
        """Compute the model of a leaf and its cost."""

    def split_costs(self, members: IntArray, features: IntArray, min_rows: int) -> tuple[FloatArray, FloatArray]:
        """Costs of the sides m_j = 0 and m_j = 1 of a leaf for each feature j; infinite if a side is too small."""
        costs = np.full((2, len(features)), np.inf)
        inside, counts = self.rows.patterns[members], self.rows.counts[members]
        for i, j in enumerate(features):
            missing = inside[:, j]
            if min(counts[missing].sum(), counts[~missing].sum()) >= max(1, min_rows):
                costs[:, i] = self.cost(members[~missing]), self.cost(members[missing])
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
        self.grams: FloatArray = all_grams(self.Z, rows.start, self.length) if held else np.empty((0, self.length))

    @property
    def statistics(self) -> tuple[FloatArray, IntArray, FloatArray]:
        """Shifted rows, first row of each pattern, and the packed Gram matrices if they are held."""
        return self.Z, self.rows.start, self.grams

    def cost(self, members: IntArray) -> float:
        G = gram_of_patterns(*self.statistics, np.asarray(members), self.length)
        return float(self.costs_of_grams(G)[0])

    def costs_of_grams(self, G: FloatArray) -> FloatArray:
        """Costs from packed Gram matrices, one per row."""
        return np.asarray(leaf_costs(G, self.size, self.ridge, self.ridge_scale == "sample"))

    def split_costs(self, members: IntArray, features: IntArray, min_rows: int) -> tuple[FloatArray, FloatArray]:
        patterns, counts = self.rows.patterns, self.rows.counts
        G, rows = split_grams(*self.statistics, counts, patterns, np.asarray(members), features, self.length)
        costs = self.costs_of_grams(G).reshape(2, -1)
        costs[:, rows.min(axis=0) < max(1, min_rows)] = np.inf
        return costs[0], costs[1]

    @cached_property
    def inaccuracy_reason(self) -> str:
        """Why costs from statistics may be too inaccurate for a proof; empty if they are accurate."""
        mean, spread, has_zero = self._moments_of_nonzeros()
        # only a column with zeros keeps its offset when columns are shifted
        if np.any(has_zero & (spread > 1e-12 * np.abs(mean)) & (np.abs(mean) > FAR * spread)):
            return "a feature lies far from 0, centre it first"
        if self.ridge == 0:
            norms = np.sqrt((self.Z[:, 1:-1] ** 2).sum(axis=0))
            columns = self.Z[:, 1:-1][:, norms > 0] / norms[norms > 0]
            eigenvalues = np.linalg.eigvalsh(columns.T @ columns) if columns.size else np.ones(1)
            if np.any((eigenvalues > 1e-13) & (eigenvalues < NEARLY_COLLINEAR)):
                return "features are nearly collinear, use a ridge"
        return ""

    def _moments_of_nonzeros(self) -> tuple[FloatArray, FloatArray, BoolArray]:
        """Mean and standard deviation of the nonzero entries of each column, and whether some entry is 0."""
        A, s = self.rows.A, self.rows.s
        nonzero = A != 0
        weight = np.where(nonzero.any(axis=0), s @ nonzero, 1.0)
        mean = s @ A / weight
        variance = s @ np.where(nonzero, A - mean, 0.0) ** 2 / weight
        return mean, np.sqrt(variance), ~nonzero.all(axis=0)

    def _fit(self, members: IntArray) -> LeafModel:
        Z = self.Z[self.rows.of_patterns(members)]
        weight = float(Z[:, 0] @ Z[:, 0])
        mean = Z[:, 0] @ Z[:, 1:] / weight
        r = self.penalty(weight)
        centred = Z[:, 1:] - Z[:, :1] * mean
        B, z = centred[:, :-1], centred[:, -1]
        size = np.sqrt((B * B).sum(axis=0))
        varies = size > CONSTANT * np.sqrt(weight) * (np.abs(mean[:-1]) + np.abs(self.centre))
        w = np.zeros(B.shape[1])
        if varies.any():
            w[varies] = _ridge_weights(B if varies.all() else B[:, varies], z, r, size[varies])
        b = mean[-1] - mean[:-1] @ w
        residual = z - B @ w
        cost = float(residual @ residual + r * (w @ w))
        return LeafModel(np.array([self.level + b - self.centre @ w]), w[None, :], cost)


def _ridge_weights(B: FloatArray, z: FloatArray, r: float, size: FloatArray) -> FloatArray:
    """Minimiser of |z - B w|^2 + r |w|^2: by Cholesky if that is accurate, else by singular values.

    Columns are divided by their norms: their units do not matter.
    """
    B = B / size
    H = B.T @ B
    H[np.diag_indices(len(H))] += r / size**2
    L, failed = scipy.linalg.lapack.dpotrf(H, lower=1)
    if not failed and np.min(np.diag(L)) ** 2 > WELL_CONDITIONED:
        return np.asarray(scipy.linalg.lapack.dpotrs(L, B.T @ z, lower=1)[0]) / size
    padded = np.vstack([B, np.diag(np.sqrt(r) / size)])
    target = np.append(z, np.zeros(len(size)))
    return scipy.linalg.lstsq(padded, target, COLLINEAR, check_finite=False)[0] / size
