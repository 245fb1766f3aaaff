"""The number of trees close to the optimum.

A tree is a recursive split structure with at most Q leaves and depth D: two structures with the same leaves count
twice. Leaf costs are known as intervals l(B) <= c(B) <= u(B), and the count is bracketed. Costs are rounded outward to
integer multiples of a unit; with V the optimum for rounded costs,

    least  =  #{ T : sum of ceil(u / unit)  <= (1 + e) V of floor(l / unit) }
    most   =  #{ T : sum of floor(l / unit) <= (1 + e) V of ceil(u / unit) },

and the number of trees with cost at most (1 + e) times the optimum is between them. These integers are exact in double
precision, so that the sums below have no other rounding.

Trees in a box B are counted by their excess over V(B), the smallest cost of a tree in B with at most Q leaves:

    c(B) - V(B)                                                                        for a leaf,
    [V(B with m_j = 0) + V(B with m_j = 1) - V(B)]  +  excess of both subtrees         for a split on j.

No excess is negative, so from the root down only boxes are visited at which some excess is left. From the deepest of
these up, each has a list of excesses with numbers of trees; those of a split are sums over pairs, and at the root pairs
of two sorted lists are counted without being formed. Lists that are too long are rounded outward to a coarser grid,
where sums over pairs are convolutions. If Q is less than 2^D, there is one list per number of leaves.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import floor, frexp, isfinite

import numpy as np

from formulations.arrays import FloatArray, IntArray
from formulations.jit import compiled
from formulations.leaves.box_costs import BoxCosts, subset_of_rank
from formulations.leaves.box_grams import binomials, next_subset
from formulations.trees.dynamic_program import Tree, best_values, leaves_of, with_element

# Costs up to the largest that counts are below 2^UNITS units.
UNITS = 48
# Largest number of pairs of excesses of a split that are formed, and longest list before it is rounded.
MOST_PAIRS = 4096
MOST_VALUES = 16384
# Multiplications in all convolutions, which set the steps of the grid within these limits.
CONVOLVED = 5 * 10**8
STEPS = (128, 4096)
# Largest numbers of boxes, and of visited boxes and pairs of lists.
MOST_BOXES = 4 * 10**6
MOST_VISITED = 2 * 10**4
# Larger numbers of trees are not counted; from EXACT on, they are rounded.
MOST_TREES = 1e150
EXACT = 2.0**53
ROUNDING = 1e-9
# A cost is lower than another if it is by more than this share.
LOWER = Fraction(1, 10**9)

# Sorted excesses with their numbers of trees, for each number of leaves (0 if leaves are not limited).
Excesses = dict[int, tuple[FloatArray, FloatArray]]


class TooManyTreesError(Exception):
    """There are too many trees to count; the message says why."""


@dataclass(frozen=True)
class Bracket:
    """A number that is at least ``least`` and at most ``most``."""

    least: float
    most: float


def trees_within(
    lower: BoxCosts, upper: BoxCosts, max_leaves: int, percents: Sequence[float]
) -> list[Bracket]:
    """Numbers of trees that cost at most so many percent more than the optimum.

    Parameters
    ----------
    lower, upper : BoxCosts
        Lower and upper ends of the costs of the same boxes.
    max_leaves : int
        Largest number of leaves.
    percents : sequence of float
        Percentages, at least 0.

    Raises :class:`TooManyTreesError` if counting would take too long.
    """
    ceiling = (1 + max(percents) / 100) * float(best_values(upper, max_leaves)[0][0, 0, -1])
    up, down = rounded_trees(lower, upper, max_leaves, ceiling)
    factors = [1 + Fraction(percent) / 100 for percent in percents]
    least = count(up, [floor(factor * down.optimum) for factor in factors])
    most = count(down, [floor(factor * up.optimum) for factor in factors])
    return [_bracket(*ends) for ends in zip(least, most, strict=True)]


def trees_better(lower: BoxCosts, upper: BoxCosts, max_leaves: int, tree: Tree) -> Bracket:
    """Number of trees that cost less than a tree, by more than 1e-9 of its cost."""
    ceiling = sum(upper.cost(literals) for literals in leaves_of(tree))
    up, down = rounded_trees(lower, upper, max_leaves, ceiling)
    low, high = (sum(int(side.boxes.cost(leaf)) for leaf in leaves_of(tree)) for side in (down, up))
    return _bracket(count(up, [floor((1 - LOWER) * low)])[0], count(down, [floor((1 - LOWER) * high)])[0])


def _bracket(least: float, most: float) -> Bracket:
    return Bracket(least if least < EXACT else least * (1 - ROUNDING), most if most < EXACT else most * (1 + ROUNDING))


@dataclass(frozen=True)
class RoundedTrees:
    """Costs rounded to whole numbers, and their best values.

    Attributes
    ----------
    boxes : BoxCosts
        Whole numbers; infinite above the largest cost that counts.
    values : list of arrays
        V of each level, in the order of ``boxes.costs``.
    max_leaves : int
    rounded : function
        ``np.ceil`` or ``np.floor``.
    binom : int array
        Binomial coefficients.
    """

    boxes: BoxCosts
    values: list[FloatArray]
    max_leaves: int
    rounded: Callable[[FloatArray], FloatArray]
    binom: IntArray

    @property
    def optimum(self) -> int:
        """Cost of the best tree."""
        return int(self.values[0][0, 0])

    def visited(self, budget: float) -> tuple[list[FloatArray], list[int]]:
        """The largest excess left at each box within a budget, negative if none is; the splits of each level."""
        left, splits = [np.full((1, 1), float(budget))], []
        for k in range(self.boxes.depth):
            values = self.values[k], self.values[k + 1]
            below, number = left_below(left[k], *values, k, len(self.boxes.features), self.binom)
            left.append(below)
            splits.append(int(number))
        return left, splits

    def splits(self, k: int, rank: int, v: int) -> tuple[FloatArray, IntArray]:
        """The excess of each split of a box over the box, and rank, observed and missing side of its boxes."""
        S = np.array(subset_of_rank(rank, k), dtype=np.int64)
        sides = sides_of(S, k, v, len(self.boxes.features), self.binom)
        below = self.values[k + 1]
        excess = below[sides[:, 0], sides[:, 1]] + below[sides[:, 0], sides[:, 2]] - self.values[k][rank, v]
        return excess, sides


def rounded_trees(
    lower: BoxCosts, upper: BoxCosts, max_leaves: int, ceiling: float
) -> tuple[RoundedTrees, RoundedTrees]:
    """The upper ends rounded up and the lower ends rounded down, for trees that cost not much more than ``ceiling``."""
    if sum(costs.size for costs in lower.costs) > MOST_BOXES:
        raise TooManyTreesError("there are too many boxes")
    if not 0 < ceiling < np.inf or not ceiling > 1e-12 * upper.costs[0][0, 0]:
        raise TooManyTreesError("the optimum is 0 up to rounding")
    unit = 2.0 ** (frexp(ceiling)[1] - UNITS)
    sides = []
    for boxes, rounded in ((upper, np.ceil), (lower, np.floor)):
        costs = [rounded(level / unit) for level in boxes.costs]
        whole = BoxCosts(boxes.features, boxes.depth, [np.where(c < 2.0 ** (UNITS + 1), c, np.inf) for c in costs])
        values = [np.ascontiguousarray(level[:, :, -1]) for level in best_values(whole, max_leaves)]
        sides.append(RoundedTrees(whole, values, max_leaves, rounded, binomials(len(boxes.features))))
    return sides[0], sides[1]


@compiled
def left_below(left, values, below, k, n_features, binom):  # type: ignore[no-untyped-def]
    """The largest excess left at the boxes with k + 1 literals, -1 if none is; the number of splits that leave some."""
    most, number = np.full(below.shape, -1.0), 0
    S = np.arange(k)
    for rank in range(len(values)):
        for j in range(n_features):
            position, other = with_element(S, k, j, binom)
            if position < 0:
                continue
            low_bits = (1 << position) - 1
            for v in range(values.shape[1]):
                if left[rank, v] < 0:
                    continue
                observed = (v & low_bits) | ((v & ~low_bits) << 1)
                missing = observed | (1 << position)
                rest = left[rank, v] + values[rank, v] - below[other, observed] - below[other, missing]
                if rest >= 0:
                    number += 1
                    most[other, observed] = max(most[other, observed], rest)
                    most[other, missing] = max(most[other, missing], rest)
        next_subset(S, k, n_features)
    return most, number


@compiled
def sides_of(S, k, v, n_features, binom):  # type: ignore[no-untyped-def]
    """For each feature that is not in S the rank of S + j, and the indices of its observed and missing side."""
    sides, n = np.empty((n_features - k, 3), dtype=np.int64), 0
    for j in range(n_features):
        position, other = with_element(S, k, j, binom)
        if position >= 0:
            low_bits = (1 << position) - 1
            sides[n, 0], sides[n, 1] = other, (v & low_bits) | ((v & ~low_bits) << 1)
            sides[n, 2] = sides[n, 1] | (1 << position)
            n += 1
    return sides


@compiled
def count_pairs(x, of_x, y, up_to_y, ceilings):  # type: ignore[no-untyped-def]
    """Number of pairs with x + y at most each ceiling, for sorted x and y; ``up_to_y`` are cumulated numbers."""
    total = np.zeros(len(ceilings))
    for t in range(len(ceilings)):
        b = len(y)
        for a in range(len(x)):
            while b and x[a] + y[b - 1] > ceilings[t]:
                b -= 1
            if not b:
                break
            total[t] += of_x[a] * up_to_y[b - 1]
    return total


def count(trees: RoundedTrees, ceilings: Sequence[int]) -> list[float]:
    """Numbers of trees with cost at most each ceiling: never too few if costs are rounded down, too many if up."""
    within = np.array(ceilings, dtype=float) - trees.optimum
    budget, depth, costs = within.max(), trees.boxes.depth, trees.boxes.costs
    if budget < 0:
        return [0.0] * len(ceilings)
    left, splits = trees.visited(budget)
    pairs = sum(splits[: max(0, depth - 1)])
    if pairs + sum(int((level >= 0).sum()) for level in left[:depth]) > MOST_VISITED:
        raise TooManyTreesError("too many boxes are so close to the optimum")
    steps = min(STEPS[1], max(STEPS[0], int((CONVOLVED / max(1, pairs)) ** 0.5)))
    grid = _Grid(max(1.0, 2.0 ** np.ceil(np.log2(max(1.0, budget) / steps))), trees.rounded)
    leaf = int(trees.max_leaves < 1 << depth)  # a leaf counts as one if leaves are limited
    one: Excesses = {leaf: (np.zeros(1), np.ones(1))}
    below: dict[tuple[int, int], Excesses] = {}
    for k in range(depth - 1, 0, -1):
        level: dict[tuple[int, int], Excesses] = {}
        for rank, v in np.argwhere(left[k] >= 0).tolist():
            most, (excess, sides) = left[k][rank, v], trees.splits(k, rank, v)
            parts: dict[int, list[tuple[FloatArray, FloatArray]]] = {}
            as_leaf = costs[k][rank, v] - trees.values[k][rank, v]
            if as_leaf <= most:
                parts[leaf] = [(np.array([as_leaf]), np.ones(1))]
            useful = excess <= most
            if k == depth - 1:
                if 2 * leaf <= trees.max_leaves and useful.any():
                    parts.setdefault(2 * leaf, []).append((excess[useful], np.ones(useful.sum())))
            else:
                for shift, (other, observed, missing) in zip(excess[useful], sides[useful].tolist(), strict=True):
                    for a, x in below[other, observed].items():
                        for b, y in below[other, missing].items():
                            if a + b <= trees.max_leaves:
                                parts.setdefault(a + b, []).append(grid.sums(x, y, shift, most))
            level[rank, v] = {q: grid.merged(lists) for q, lists in parts.items()}
        below = level
    total = ((costs[0][0, 0] - trees.optimum) <= within).astype(float)
    if depth == 0:
        return list(total.tolist())
    excess, sides = trees.splits(0, 0, 0)
    for shift, (other, observed, missing) in zip(excess, sides.tolist(), strict=True):
        if shift <= budget:
            for a, x in (below[other, observed] if depth > 1 else one).items():
                for b, y in (below[other, missing] if depth > 1 else one).items():
                    if a + b <= trees.max_leaves:
                        total += count_pairs(*x, y[0], np.cumsum(y[1]), within - shift)
    return list(total.tolist())


@dataclass(frozen=True)
class _Grid:
    """Sums of lists of excesses, on a grid if they are long."""

    step: float
    rounded: Callable[[FloatArray], FloatArray]

    def sums(
        self, x: tuple[FloatArray, FloatArray], y: tuple[FloatArray, FloatArray], shift: float, most: float
    ) -> tuple[FloatArray, FloatArray]:
        """All sums of two excesses and a shift that are at most ``most``."""
        if len(x[0]) * len(y[0]) <= MOST_PAIRS:
            values, numbers = np.add.outer(x[0], y[0]).ravel() + shift, np.multiply.outer(x[1], y[1]).ravel()
        else:
            dense = [np.bincount(self.rounded(v / self.step).astype(np.int64), weights=n) for v, n in (x, y)]
            numbers = np.convolve(*dense)
            held = np.flatnonzero(numbers)
            values, numbers = held * self.step + shift, numbers[held]
        kept = values <= most
        return values[kept], numbers[kept]

    def merged(self, lists: list[tuple[FloatArray, FloatArray]]) -> tuple[FloatArray, FloatArray]:
        """One sorted list, equal excesses put together."""
        values, index = np.unique(np.concatenate([values for values, _ in lists]), return_inverse=True)
        numbers = np.bincount(index, weights=np.concatenate([n for _, n in lists]), minlength=len(values))
        if len(values) > MOST_VALUES:
            values, index = np.unique(self.rounded(values / self.step) * self.step, return_inverse=True)
            numbers = np.bincount(index, weights=numbers)
        if len(numbers) and not (isfinite(numbers.sum()) and numbers.max() < MOST_TREES):
            raise TooManyTreesError("there are more than 1e150 of them")
        return values, numbers
