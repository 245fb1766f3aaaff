"""The number of partitions close to the optimum that trees make.

Many trees make the same partition: splits in another order, or on features that divide the observed patterns in the
same way. A partition is a set of leaves, a leaf the set of observed patterns in its box. The distinct ones are listed
box by box like the costs of trees in ``near_optimal``, each with its lowest rounded cost, and counted at the root: with
costs rounded up for the lower end of the bracket, down for the upper end.
"""

import numpy as np

from formulations.arrays import BoolArray
from formulations.leaves.box_costs import BoxCosts, members_of
from formulations.trees.near_optimal import Bracket
from formulations.trees.rounded_costs import RoundedTrees, TooManyTreesError, ceilings_within

# Largest numbers of visited boxes, and of unions of two partitions.
MOST_VISITED = 10**4
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
