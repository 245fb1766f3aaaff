"""The boxes of {0,1}^d that can be leaves of a tree, and their costs.

Sets        F       features that may be split on
            (S, v)  boxes: S a subset of F with |S| <= D, v in {0,1}^S; it holds the patterns with m_j = v_j on S
Data        c(S, v) cost of the box as a leaf, or an end of its interval; infinite with fewer than ``min_rows`` rows

The nodes of a tree of depth D are among these boxes: the root is the empty set, and splitting (S, v) on j gives boxes
of S + j. Costs are computed in advance for all boxes; they do not depend on the tree. The root may be a leaf with any
number of rows.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import comb

import numpy as np

from formulations.arrays import BoolArray, FloatArray, IntArray
from formulations.certificate import clock
from formulations.leaves.box_grams import write_box_costs
from formulations.leaves.cholesky import LOWER
from formulations.leaves.cost import LeafCost
from formulations.leaves.squared import SquaredLeafCost

Progress = Callable[[int, int], None]
# A box as pairs (feature, whether it is missing).
Literals = list[tuple[int, bool]]


class OutOfTimeError(Exception):
    """The deadline passed before all costs were known."""


@dataclass(frozen=True)
class BoxCosts:
    """All boxes with at most ``depth`` literals and ends of the intervals of their costs.

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

    def literals(self, k: int, rank: int, v: int) -> Literals:
        """A box as pairs (feature, whether it is missing)."""
        return [(int(self.features[j]), bool(v >> i & 1)) for i, j in enumerate(subset_of_rank(rank, k))]

    def index(self, literals: Literals) -> tuple[int, int, int]:
        """Number of literals, rank of S and v of a box."""
        held = sorted((int(np.searchsorted(self.features, j)), missing) for j, missing in literals)
        rank = sum(comb(j, i + 1) for i, (j, _) in enumerate(held))
        return len(held), rank, sum(missing << i for i, (_, missing) in enumerate(held))

    def cost(self, literals: Literals) -> float:
        """Cost of the box with these literals."""
        k, rank, v = self.index(literals)
        return float(self.costs[k][rank, v])


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


def members_of(patterns: BoolArray, literals: Literals) -> IntArray:
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
    end: int = LOWER,
) -> BoxCosts:
    """Ends of the intervals of the costs of all boxes with at most ``depth`` literals, lower ones by default.

    Raises :class:`OutOfTimeError` once ``clock()`` is past the deadline.
    """
    depth = min(depth, len(features))
    counts = [comb(len(features), k) << k for k in range(depth + 1)]
    first = np.append(0, np.cumsum(counts))
    flat = np.full(first[-1], np.inf)
    flat[0] = leaf_cost.quick_end(np.arange(len(leaf_cost.rows.patterns)), end)
    if isinstance(leaf_cost, SquaredLeafCost):
        steps = _write_squared(leaf_cost, features, depth, min_rows, end, first, flat)
    else:
        steps = _write_any(leaf_cost, features, depth, min_rows, end, first, flat)
    for done in steps:
        if on_progress is not None:
            on_progress(done, len(flat))
        if clock() > deadline:
            raise OutOfTimeError
    levels = [flat[first[k] : first[k + 1]].reshape(-1, 2**k) for k in range(depth + 1)]
    return BoxCosts(features, depth, levels)


def _write_squared(
    leaf_cost: SquaredLeafCost,
    features: IntArray,
    depth: int,
    min_rows: int,
    end: int,
    first: IntArray,
    out: FloatArray,
) -> Iterator[int]:
    """Write the costs of the boxes with k > 0 literals, from first[k]; yields how many are done."""
    if depth == 0:
        return
    rows = leaf_cost.rows
    options = (
        leaf_cost.size, leaf_cost.scaled_ridge, leaf_cost.ridge_scale == "sample", max(1, min_rows),
        end, leaf_cost.share_of_error, _redundant_columns(leaf_cost, features), leaf_cost.pattern_error,
    )  # fmt: skip
    patterns = np.ascontiguousarray(rows.patterns[:, features])
    data = (leaf_cost.Z, rows.start, leaf_cost.grams, rows.counts, patterns)
    A = leaf_cost.space_for_sums(features, depth)
    yield from write_box_costs(data, A, depth, options, first, out)
    out[1:] *= leaf_cost.unit[-1] ** 2


def _redundant_columns(leaf_cost: SquaredLeafCost, features: IntArray) -> IntArray:
    """For each feature f and m_f = 0 or 1, the columns of the Gram matrix that are constant there, ended by -1."""
    constant = leaf_cost.constant_sides(features)
    columns = np.full((len(features), 2, 1 + constant.sum(axis=2).max(initial=0)), -1)
    for f, side in np.ndindex(columns.shape[:2]):
        held = np.flatnonzero(constant[f, side])
        columns[f, side, : len(held)] = held + 1
    return columns


def _write_any(
    leaf_cost: LeafCost, features: IntArray, depth: int, min_rows: int, end: int, first: IntArray, out: FloatArray
) -> Iterator[int]:
    """The same for any loss, box by box."""
    patterns, counts = leaf_cost.rows.patterns, leaf_cost.rows.counts
    for k in range(1, depth + 1):
        for rank in range(comb(len(features), k)):
            at = int(first[k]) + (rank << k)
            value = patterns[:, features[list(subset_of_rank(rank, k))]] @ (1 << np.arange(k))
            for v in range(1 << k):
                members = np.flatnonzero(value == v)
                if counts[members].sum() >= max(1, min_rows):
                    out[at + v] = leaf_cost.quick_end(members, end)
            yield at + (1 << k)
