"""The best number of leaves under a penalty per leaf.

With V(q) the cost of the best tree with at most q leaves, min over q of V(q) + gamma q is attained at a vertex of the
lower convex hull of the points (q, V(q)): q_1 < q_2 < .. with slopes that rise to 0. Vertex q_i is best for gamma
between the absolute slopes on its right and on its left,

    (V(q_i) - V(q_{i+1})) / (q_{i+1} - q_i)  <=  gamma  <=  (V(q_{i-1}) - V(q_i)) / (q_i - q_{i-1}).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf


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
