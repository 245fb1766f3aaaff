"""The boxes of {0,1}^d that can be leaves of a tree, and their costs.

Sets        F       features that may be split on
            (S, v)  boxes: S a subset of F with |S| <= D, v in {0,1}^S; it holds the patterns with m_j = v_j on S
Data        c(S, v) cost of the box as a leaf; infinite if it has fewer than ``min_rows`` rows

The nodes of a tree of depth D are among these boxes: the root is the empty set, and splitting (S, v) on j gives boxes
of S + j. Costs are computed in advance for all boxes; they do not depend on the tree. The root may be a leaf with any
number of rows.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import comb

import numpy as np

from formulations.arrays import BoolArray, FloatArray, IntArray
from formulations.leaves.box_grams import all_missing, all_missing_with, binomials, costs_with_largest
from formulations.leaves.cost import LeafCost, SquaredLeafCost

Progress = Callable[[int, int], None]


class OutOfTimeError(Exception):
    """The deadline passed before all costs were known."""


@dataclass(frozen=True)
class BoxCosts:
    """All boxes with at most ``depth`` literals and their costs.

    Attributes
    ----------
    features : int array of shape (F,)
        Features that may be split on, ascending.
    depth : int
        Most literals of a box.
    costs : list of arrays
        At index k, the costs of the boxes with k literals, shape (C(F, k), 2^k): subsets of ``features`` in
        colexicographic order; bit i of the second index is the value of the i-th smallest element.
    """

    features: IntArray
    depth: int
    costs: list[FloatArray]

    def literals(self, k: int, rank: int, v: int) -> list[tuple[int, bool]]:
        """A box as pairs (feature, whether it is missing)."""
        return [(int(self.features[j]), bool(v >> i & 1)) for i, j in enumerate(subset_of_rank(rank, k))]

    def cost(self, literals: list[tuple[int, bool]]) -> float:
        """Cost of the box with these literals."""
        held = sorted((int(np.searchsorted(self.features, j)), missing) for j, missing in literals)
        rank = sum(comb(j, i + 1) for i, (j, _) in enumerate(held))
        return float(self.costs[len(held)][rank, sum(missing << i for i, (_, missing) in enumerate(held))])


def count_boxes(n_features: int, depth: int) -> int:
    """Number of boxes over ``n_features`` features with at most ``depth`` literals.

    Examples
    --------
    >>> count_boxes(20, 6)
    3064209
    """
    return sum(comb(n_features, k) << k for k in range(min(depth, n_features) + 1))


def subset_of_rank(rank: int, k: int) -> tuple[int, ...]:
    """The k-subset with this colexicographic rank.

    Examples
    --------
    >>> [subset_of_rank(rank, 2) for rank in range(4)]
    [(0, 1), (0, 2), (1, 2), (0, 3)]
    """
    elements = []
    for size in range(k, 0, -1):
        j = size - 1
        while comb(j + 1, size) <= rank:
            j += 1
        elements.append(j)
        rank -= comb(j, size)
    return tuple(reversed(elements))


def members_of(patterns: BoolArray, literals: list[tuple[int, bool]]) -> IntArray:
    """Indices of the patterns in a box."""
    inside = np.ones(len(patterns), dtype=bool)
    for j, missing in literals:
        inside &= patterns[:, j] == missing
    return np.flatnonzero(inside)


def box_costs(
    leaf_cost: LeafCost,
    features: IntArray,
    depth: int,
    min_rows: int,
    deadline: float = np.inf,
    on_progress: Progress | None = None,
) -> BoxCosts:
    """Costs of all boxes with at most ``depth`` literals.

    Raises :class:`OutOfTimeError` once ``time.monotonic()`` is past the deadline.
    """
    depth = min(depth, len(features))
    done, total = 0, count_boxes(len(features), depth)
    root = leaf_cost.cost(np.arange(len(leaf_cost.rows.patterns)))
    levels = [np.array([[root]])] + [np.empty((comb(len(features), k), 2**k)) for k in range(1, depth + 1)]
    if isinstance(leaf_cost, SquaredLeafCost):
        chunks = _squared_chunks(leaf_cost, features, depth, min_rows)
    else:
        chunks = _any_chunks(leaf_cost, features, depth, min_rows)
    for k, begin, costs in chunks:
        levels[k].ravel()[begin : begin + len(costs)] = costs
        done += len(costs)
        if on_progress is not None:
            on_progress(done, total)
        if time.monotonic() > deadline:
            raise OutOfTimeError
    return BoxCosts(features, depth, levels)


def _squared_chunks(
    leaf_cost: SquaredLeafCost, features: IntArray, depth: int, min_rows: int
) -> Iterator[tuple[int, int, FloatArray]]:
    """Level, first index and costs of consecutive boxes."""
    rows, size, length = leaf_cost.rows, leaf_cost.size, leaf_cost.length + 1
    patterns, binom = np.ascontiguousarray(rows.patterns[:, features]), binomials(len(features))
    if depth == 0:
        return
    data = (*leaf_cost.statistics, rows.counts, patterns)
    sizes = [comb(len(features), k) for k in range(depth + 1)]
    offsets = np.append(0, np.cumsum(sizes))
    A = np.zeros((offsets[depth], length))  # allocated by numpy, which uses large pages of memory
    all_missing(*data, depth - 1, binom, A)
    options = (size, leaf_cost.ridge, leaf_cost.ridge_scale == "sample", max(1, min_rows))
    for k in range(1, depth + 1):
        for f in range(k - 1, len(features)) if k > 1 else [len(features)]:
            first = comb(f, k) if k > 1 else 0
            top, top_first = A[offsets[k] : offsets[k + 1]], 0
            if k == depth > 1:
                top, top_first = np.zeros((comb(f, k - 1), length)), first
                all_missing_with(*data, f, k, binom, top)
            elif k == depth:
                both = np.zeros((offsets[2], length))
                all_missing(*data, 1, binom, both)
                top = both[1:]
            yield k, first << k, costs_with_largest(A, top, top_first, offsets, f, k, options, binom)


def _any_chunks(
    leaf_cost: LeafCost, features: IntArray, depth: int, min_rows: int
) -> Iterator[tuple[int, int, FloatArray]]:
    """The same for any loss, box by box."""
    patterns, counts = leaf_cost.rows.patterns, leaf_cost.rows.counts
    for k in range(1, depth + 1):
        for rank in range(comb(len(features), k)):
            subset = features[list(subset_of_rank(rank, k))]
            value = patterns[:, subset] @ (1 << np.arange(k))
            costs = np.full(1 << k, np.inf)
            for v in range(1 << k):
                members = np.flatnonzero(value == v)
                if counts[members].sum() >= max(1, min_rows):
                    costs[v] = leaf_cost.cost(members)
            yield k, rank << k, costs
