"""The number of trees close to the optimum, and the best number of leaves under a penalty per leaf.

A tree is a recursive split structure with at most Q leaves and depth D: two structures with the same leaves count
twice. The number is bracketed, with costs rounded up for the lower end and down for the upper end (``rounded_costs``).

From the deepest boxes up, each box has a list of costs with the numbers of its subtrees that have them: its own cost as
a leaf, and for each split the sums over pairs from both sides, up to the most that a subtree of the box may cost. At
the root pairs of two sorted lists are counted without being formed. Lists that are too long are rounded outward to a
coarser grid, where sums over pairs are convolutions. If leaves are limited, there is a list for each number of leaves.

*Partitions.* Many trees make the same partition: splits in another order, or on features that divide the observed
patterns in the same way. A partition is a set of leaves, a leaf the set of observed patterns in its box. The distinct
ones are listed box by box like the costs of trees, each with its lowest rounded cost, and counted at the root: with
costs rounded up for the lower end of the bracket, down for the upper end.

*Penalty.* With V(q) the cost of the best tree with at most q leaves, min over q of V(q) + gamma q is attained at a
vertex of the lower convex hull of the points (q, V(q)): q_1 < q_2 < .. with slopes that rise to 0. Vertex q_i is best
for gamma between the absolute slopes on its right and on its left,

    (V(q_i) - V(q_{i+1})) / (q_{i+1} - q_i)  <=  gamma  <=  (V(q_{i-1}) - V(q_i)) / (q_i - q_{i-1}).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import floor, inf

import numpy as np

from formulations.arrays import BoolArray, FloatArray, IntArray
from formulations.leaves.box_costs import BoxCosts, members_of
from formulations.rounding import UNIT
from formulations.trees.dynamic_program import Tree, leaves_of
from formulations.trees.rounded_costs import RoundedTrees, TooManyTreesError, ceilings_within, rounded_trees

# Largest number of pairs of costs that are formed for a split, and of values in a list, before they are rounded.
MOST_VALUES = 16384
# Multiplications in all convolutions (seconds), which set the number of steps of the grid.
CONVOLVED = 5 * 10**8
# Largest number of visited boxes and pairs of lists.
MOST_VISITED = 2 * 10**4
# Larger numbers of trees, whose products may overflow, are not counted. From EXACT on numbers are rounded, which the
# share ROUNDING covers for eight million roundings in a row.
MOST_TREES = 2.0**500
EXACT = 1.0 / UNIT
ROUNDING = 2**23 * UNIT
# A cost is better than another if it is lower by more than this share.
BETTER = Fraction(1, 10**9)

# Sorted costs with their numbers of subtrees.
Costs = tuple[FloatArray, FloatArray]


@dataclass(frozen=True)
class Bracket:
    """A number that is at least ``least`` and at most ``most``."""

    least: float
    most: float


def trees_within(lower: BoxCosts, upper: BoxCosts, max_leaves: int, percents: Sequence[float]) -> list[Bracket]:
    """Numbers of trees that cost at most so many percent more than the optimum.

    Parameters
    ----------
    lower, upper : BoxCosts
        Lower and upper ends of the costs of the same boxes.
    max_leaves : int
        Largest number of leaves.
    percents : sequence of float
        Non-negative.

    Raises :class:`TooManyTreesError` if counting would take too long.
    """
    up, down, ceilings = ceilings_within(lower, upper, max_leaves, percents)
    least = [max(1.0, number) for number in count(up, [low for low, _ in ceilings])]  # the best tree is within
    most = count(down, [high for _, high in ceilings])
    return [_bracket(*ends) for ends in zip(least, most, strict=True)]


def trees_better(lower: BoxCosts, upper: BoxCosts, max_leaves: int, tree: Tree) -> Bracket:
    """Number of trees that cost less than a tree, by more than 1e-9 of its cost."""
    up, down = rounded_trees(lower, upper, max_leaves, sum(upper.cost(literals) for literals in leaves_of(tree)))
    low, high = (sum(int(side.boxes.cost(leaf)) for leaf in leaves_of(tree)) for side in (down, up))
    return _bracket(count(up, [floor((1 - BETTER) * low)])[0], count(down, [floor((1 - BETTER) * high)])[0])


def _bracket(least: float, most: float) -> Bracket:
    return Bracket(least if least < EXACT else least * (1 - ROUNDING), most if most < EXACT else most * (1 + ROUNDING))


def count_pairs(x: Costs, y: Costs, ceilings: Sequence[int]) -> FloatArray:
    """Number of pairs with a sum of at most each ceiling, for sorted costs, which are whole numbers."""
    up_to = np.append(0.0, np.cumsum(y[1]))
    return np.array([x[1] @ up_to[np.searchsorted(y[0], ceiling - x[0], side="right")] for ceiling in ceilings])


def count(trees: RoundedTrees, ceilings: Sequence[int]) -> list[float]:
    """Numbers of trees with cost at most each ceiling: not too few if costs are rounded down, not too many if up."""
    highest, budget, depth = float(max(ceilings)), max(ceilings) - trees.optimum, trees.boxes.depth
    if budget < 0:
        return [0.0] * len(ceilings)
    allowed, visited, pairs = trees.allowed(highest)
    added = sum(pairs[1 : depth - 1])  # those of the root are only counted, those of the deepest boxes are single costs
    if added + sum(map(len, visited[:depth])) > MOST_VISITED:
        raise TooManyTreesError("too many boxes are so close to the optimum")
    steps = (CONVOLVED / max(1, added)) ** 0.5
    grid = _Grid(2.0 ** np.ceil(np.log2(max(steps, budget) / steps)), trees.rounded)
    below: dict[tuple[int, int], dict[int, Costs]] = {}
    for k in range(min(depth, max(1, depth - 1)), 0, -1):
        level: dict[tuple[int, int], dict[int, Costs]] = {}
        for rank, v in visited[k].tolist():
            lists: dict[int, list[Costs]] = {}
            cost, most = trees.boxes.costs[k][rank, v], allowed[k][rank, v]
            if cost <= most[0]:
                lists[0] = [(np.array([cost]), np.ones(1))]
            if k == depth - 1 and len(most) > trees.limited:
                other, observed, missing = trees.sides(k, rank, v).T
                sums = trees.boxes.costs[depth][other, observed] + trees.boxes.costs[depth][other, missing]
                sums = sums[sums <= most[int(trees.limited)]]
                lists.setdefault(int(trees.limited), []).append((sums, np.ones(len(sums))))
            elif k < depth - 1:
                for q, x, y in _pairs_of_lists(trees, below, k, rank, v):
                    if q < len(most) and x[0][0] + y[0][0] <= most[q]:
                        lists.setdefault(q, []).append(grid.sums(x, y, most[q]))
            merged = {q: grid.merged(parts) for q, parts in lists.items()}
            level[rank, v] = {q: costs for q, costs in merged.items() if len(costs[0])}
        below = level
    total = np.array([trees.boxes.costs[0][0, 0] <= ceiling for ceiling in ceilings], dtype=float)
    if depth:
        for q, x, y in _pairs_of_lists(trees, below, 0, 0, 0):
            if q < trees.values[0].shape[2]:
                total += count_pairs(x, y, ceilings)
    return [float(number) for number in total]


def _pairs_of_lists(
    trees: RoundedTrees, below: dict[tuple[int, int], dict[int, Costs]], k: int, rank: int, v: int
) -> Iterator[tuple[int, Costs, Costs]]:
    """For each split of a box and numbers of leaves on both sides: their index together, and the two lists."""
    for other, observed, missing in trees.sides(k, rank, v).tolist():
        for a, x in below.get((other, observed), {}).items():
            for b, y in below.get((other, missing), {}).items():
                yield a + b + trees.limited, x, y


@dataclass(frozen=True)
class _Grid:
    """Sums and unions of lists of costs, on a grid if they are long."""

    step: float
    rounded: Callable[[FloatArray], FloatArray]

    def sums(self, x: Costs, y: Costs, most: float) -> Costs:
        """All sums of two costs that are at most ``most``."""
        if len(x[0]) * len(y[0]) <= MOST_VALUES:
            values, numbers = np.add.outer(x[0], y[0]).ravel(), np.multiply.outer(x[1], y[1]).ravel()
        else:
            numbers = np.convolve(self._on_grid(x), self._on_grid(y))
            held = np.flatnonzero(numbers)
            values, numbers = held * self.step + (x[0][0] + y[0][0]), numbers[held]
        kept = values <= most
        return values[kept], numbers[kept]

    def merged(self, lists: list[Costs]) -> Costs:
        """One sorted list, equal costs put together."""
        values, index = np.unique(np.concatenate([values for values, _ in lists]), return_inverse=True)
        numbers = _totals(index, np.concatenate([numbers for _, numbers in lists]))
        if len(values) > MOST_VALUES:
            numbers = self._on_grid((values, numbers))
            held = np.flatnonzero(numbers)
            values, numbers = held * self.step + values[0], numbers[held]
        if numbers.sum() > MOST_TREES:
            raise TooManyTreesError("there are more than 1e150 of them")
        return values, numbers

    def _on_grid(self, costs: Costs) -> FloatArray:
        """The numbers at 0, 1, .. steps above the lowest cost."""
        values, numbers = costs
        return _totals(self.rounded((values - values[0]) / self.step).astype(np.int64), numbers)


def _totals(index: IntArray, numbers: FloatArray) -> FloatArray:
    return np.bincount(index, weights=numbers).astype(float)


# Largest number of unions of two partitions.
MOST_UNIONS = 10**5

# Partitions of a box, each a set of leaves, with their costs.
Partitions = dict[frozenset[bytes], float]


def partitions_within(
    lower: BoxCosts, upper: BoxCosts, max_leaves: int, percent: float, patterns: BoolArray
) -> Bracket:
    """Number of distinct partitions of the patterns by trees that cost at most so many percent above the optimum.

    Raises :class:`TooManyTreesError` if counting would take too long.
    """
    up, down, [(low, high)] = ceilings_within(lower, upper, max_leaves, [percent])
    least = max(1, len(partitions(up, low, patterns)))  # that of the best tree is within
    return Bracket(float(least), float(len(partitions(down, high, patterns))))


def partitions(trees: RoundedTrees, ceiling: int, patterns: BoolArray) -> Partitions:
    """The partitions with cost at most a ceiling."""
    if ceiling < trees.optimum:
        return {}
    allowed, visited, _ = trees.allowed(ceiling)
    if sum(map(len, visited)) > MOST_VISITED:
        raise TooManyTreesError("too many boxes are so close to the optimum")
    below: dict[tuple[int, int], list[tuple[float, frozenset[bytes]]]] = {}
    unions = 0
    for k in range(trees.boxes.depth, -1, -1):
        level = {}
        for rank, v in visited[k].tolist():
            most, found = allowed[k][rank, v].tolist(), Partitions()
            highest = max(most)
            if trees.boxes.costs[k][rank, v] <= most[0]:
                members = members_of(patterns, trees.boxes.literals(k, rank, v))
                found[frozenset([members.tobytes()])] = float(trees.boxes.costs[k][rank, v])
            for other, observed, missing in trees.sides(k, rank, v).tolist() if k < trees.boxes.depth else []:
                for x, first in below.get((other, observed), []):
                    for y, second in below.get((other, missing), []):
                        if x + y > highest:
                            break
                        unions += 1
                        if unions > MOST_UNIONS:
                            raise TooManyTreesError("there are too many partitions so close to the optimum")
                        together = first | second
                        q = len(together) - 1 if trees.limited else 0
                        if q < len(most) and x + y <= min(most[q], found.get(together, np.inf)):
                            found[together] = x + y
            level[rank, v] = sorted(((cost, held) for held, cost in found.items()), key=lambda item: item[0])
        below = level
    return {held: cost for cost, held in below.get((0, 0), [])}


@dataclass(frozen=True)
class PenaltyRange:
    """The penalties per leaf, from ``low`` to ``high``, at which trees with ``leaves`` leaves are best."""

    leaves: int
    low: float
    high: float


def penalty_ranges(costs: Sequence[float]) -> list[PenaltyRange]:
    """Ranges of the penalty, the largest first, from the costs with at most 1, 2, .. leaves.

    Examples
    --------
    >>> for part in penalty_ranges([10.0, 9.0, 4.0, 3.0, 3.0]):
    ...     print(part)
    PenaltyRange(leaves=1, low=3.0, high=inf)
    PenaltyRange(leaves=3, low=1.0, high=3.0)
    PenaltyRange(leaves=4, low=0.0, high=1.0)
    """
    ranges: list[PenaltyRange] = []
    q, high = 1, inf
    while True:
        cost = costs[q - 1]
        slopes = [((cost - lower) / (r - q), r) for r, lower in enumerate(costs, 1) if r > q and lower < cost]
        if not slopes:
            return [*ranges, PenaltyRange(q, 0.0, high)]
        low, farthest = max(slopes)
        ranges.append(PenaltyRange(q, low, high))
        q, high = farthest, low
