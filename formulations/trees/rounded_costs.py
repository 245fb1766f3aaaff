"""Costs of boxes rounded to whole numbers, and the boxes of all trees that cost at most so much.

Leaf costs are known as intervals l(B) <= c(B) <= u(B). What is said about all trees within a share of the optimum is
made certain by rounding outward, to integer multiples of a unit: with V the optimum for rounded costs,

    sum of ceil(u / unit)  <= (1 + e) V of floor(l / unit)    only if a tree is within the share e,
    sum of floor(l / unit) <= (1 + e) V of ceil(u / unit)     if it is.

These integers are exact in double precision, so that sums have no other rounding.

For trees with cost at most a ceiling C, A(B, q) is the most that a subtree of box B with q leaves may cost, and V(B, q)
the least, of at most q leaves, by the dynamic program:

    A(root, q) = C,   A(B with m_j = 0, a) = max over B, b of A(B, a + b) - V(B with m_j = 1, b), and vice versa.

Only boxes with V(B, q) <= A(B, q) for some q are in such trees. If Q is at least 2^D, leaves are not limited, and one q
stands for all.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import floor, frexp

import numpy as np

from formulations.arrays import FloatArray, IntArray
from formulations.jit import compiled
from formulations.leaves.box_costs import BoxCosts, subset_of_rank
from formulations.leaves.subsets import binomials, next_subset, with_element
from formulations.trees.dynamic_program import best_values, splits_of

# Costs that count are below 2^UNITS units, and their sums below 2^53, so that these are exact.
UNITS = 48
# Most boxes: their costs, values and ceilings take some hundred MB.
MOST_BOXES = 4 * 10**6


class TooManyTreesError(Exception):
    """The trees cannot be counted; the message says why."""


@dataclass(frozen=True)
class RoundedTrees:
    """Costs rounded to whole numbers, and their best values.

    Attributes
    ----------
    boxes : BoxCosts
        Whole numbers; infinite if they are larger than any cost that counts.
    values : list of arrays
        V of each level, as of :func:`best_values`; with one number of leaves if these are not limited.
    limited : bool
        Whether the number of leaves is.
    rounded : function
        ``np.ceil`` or ``np.floor``.
    binom : int array
        Binomial coefficients.
    """

    boxes: BoxCosts
    values: list[FloatArray]
    limited: bool
    rounded: Callable[[FloatArray], FloatArray]
    binom: IntArray

    @property
    def optimum(self) -> int:
        """Cost of the best tree."""
        return int(self.values[0][0, 0, -1])

    def allowed(self, ceiling: float) -> tuple[list[FloatArray], list[IntArray], list[int]]:
        """For each level A, the (rank, v) of the boxes in some tree, and the number of their splits within A."""
        most, pairs = [np.full(self.values[0].shape, float(ceiling))], []
        for k in range(self.boxes.depth):
            levels = most[k], self.values[k], self.values[k + 1]
            most.append(np.full(levels[-1].shape, -np.inf))
            n_features = len(self.boxes.features)
            pairs.append(int(allow_below(*levels, np.arange(k), k, n_features, self.limited, self.binom, most[-1])))
        boxes = [np.argwhere((high >= low).any(axis=2)) for high, low in zip(most, self.values, strict=True)]
        return most, boxes, pairs

    def sides(self, k: int, rank: int, v: int) -> IntArray:
        """For each split of a box the rank, and the indices of its observed and missing side."""
        splits = splits_of(subset_of_rank(rank, k), v, len(self.boxes.features), self.binom)
        return np.array([sides for _, *sides in splits], dtype=np.int64).reshape(-1, 3)


def rounded_trees(
    lower: BoxCosts, upper: BoxCosts, max_leaves: int, ceiling: float
) -> tuple[RoundedTrees, RoundedTrees]:
    """The upper ends rounded up and the lower ends rounded down, for trees that cost about ``ceiling`` or less."""
    if sum(costs.size for costs in lower.costs) > MOST_BOXES:
        raise TooManyTreesError("there are too many boxes")
    if not 1e-12 * upper.costs[0][0, 0] < ceiling < np.inf:
        raise TooManyTreesError("the optimum is 0 up to rounding")
    unit, limited = 2.0 ** (frexp(ceiling)[1] - UNITS), max_leaves < 1 << lower.depth
    both = []
    for boxes, rounded in ((upper, np.ceil), (lower, np.floor)):
        costs = [rounded(level / unit) for level in boxes.costs]
        whole = BoxCosts(boxes.features, boxes.depth, [np.where(c < 2.0 ** (UNITS + 1), c, np.inf) for c in costs])
        values = best_values(whole, max_leaves)
        values = values if limited else [np.ascontiguousarray(level[:, :, -1:]) for level in values]
        both.append(RoundedTrees(whole, values, limited, rounded, binomials(len(boxes.features))))
    return both[0], both[1]


def ceilings_within(
    lower: BoxCosts, upper: BoxCosts, max_leaves: int, percents: Sequence[float]
) -> tuple[RoundedTrees, RoundedTrees, list[tuple[int, int]]]:
    """Trees with costs rounded up and down, and for each percentage the largest cost that counts for either."""
    optimum = float(best_values(upper, max_leaves)[0][0, 0, -1])
    up, down = rounded_trees(lower, upper, max_leaves, (1 + max(percents) / 100) * optimum)
    factors = [1 + Fraction(percent) / 100 for percent in percents]
    return up, down, [(floor(factor * down.optimum), floor(factor * up.optimum)) for factor in factors]


@compiled
def allow_below(allowed, values, below, S, k, n_features, limited, binom, most):  # type: ignore[no-untyped-def]
    """Raise ``most`` to A of the boxes with k + 1 literals; returns the number of pairs within A of their boxes.

    S is the first set of k features.
    """
    pairs = 0
    for rank in range(len(values)):
        for j in range(n_features):
            position, other = with_element(S, k, j, binom)
            if position < 0:
                continue
            low_bits = (1 << position) - 1
            for v in range(values.shape[1]):
                observed = (v & low_bits) | ((v & ~low_bits) << 1)
                missing = observed | (1 << position)
                for q in range(values.shape[2]):
                    if allowed[rank, v, q] < values[rank, v, q]:
                        continue
                    for a in range(below.shape[2]):
                        b = q - 1 - a if limited else 0
                        if not 0 <= b < below.shape[2]:
                            continue
                        x, y = below[other, observed, a], below[other, missing, b]
                        if x + y <= allowed[rank, v, q]:
                            pairs += 1
                            most[other, observed, a] = max(most[other, observed, a], allowed[rank, v, q] - y)
                            most[other, missing, b] = max(most[other, missing, b], allowed[rank, v, q] - x)
        next_subset(S, k, n_features)
    return pairs
