"""The best cover of all cells by disjoint boxes: a proof that none costs less than a given bound.

For any prices u of the cells and any price t >= 0 of a box, a cover by at most Q boxes costs

    sum_B c_B  >=  sum u - Q t + sum_B r_B,       r_B = c_B - sum_{cells of B} u + t.

The prices are those of the linear relaxation. They come from a solver in floating point and are not trusted: they are
rounded to integers, t is raised until no r_B is negative, and r_B is exact. If the first two terms reach the bound, it
is proven. Otherwise a cover below the bound consists of boxes with r_B less than the difference, and a search through
these decides.
"""

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

from admiss.verification.boxes import Box, BoxSums
from admiss.verification.result import NotCoveredError

# Nodes of the search.
MOST_NODES = 200_000


def no_cover_below(boxes: BoxSums, costs: dict[Box, int], most_boxes: int, bound: int) -> int:
    """A proven lower bound on the cost of covers that is ``bound`` if none costs less, and less than it otherwise."""
    members = [boxes.members(box) for box in costs]
    values = list(costs.values())
    prices, price = _prices(members, values, len(boxes.cells), most_boxes)
    reduced = [c - sum(prices[cell] for cell in cells) + price for c, cells in zip(values, members, strict=True)]
    lift = max(0, -min(reduced))
    reduced, price = [r + lift for r in reduced], price + lift
    base = sum(prices) - most_boxes * price
    if base >= bound:
        return bound
    allowed = [b for b, r in enumerate(reduced) if r < bound - base]
    found = _search(members, values, reduced, allowed, len(boxes.cells), most_boxes, bound, base)
    return bound if found is None else found


def _prices(members: list[np.ndarray], values: list[int], cells: int, most_boxes: int) -> tuple[list[int], int]:
    """Dual prices of the linear relaxation, rounded to integers."""
    unit = max(max(values), 1)
    c = np.array([value / unit for value in values])
    columns = np.repeat(np.arange(len(members)), [len(part) for part in members])
    cover = sp.csr_array((np.ones(len(columns)), (np.concatenate(members), columns)), shape=(cells, len(members)))
    count = np.ones((1, len(members)))
    solution = linprog(c, A_ub=count, b_ub=[most_boxes], A_eq=cover, b_eq=np.ones(cells), method="highs")
    if solution.status != 0:  # any prices are valid
        return [0] * cells, 0
    exact = [int(float(u) * 2**60) * unit >> 60 for u in solution.eqlin.marginals]
    return exact, max(0, int(-float(solution.ineqlin.marginals[0]) * 2**60) * unit >> 60)


def _search(
    members: list[np.ndarray],
    values: list[int],
    reduced: list[int],
    allowed: list[int],
    cells: int,
    most_boxes: int,
    bound: int,
    base: int,
) -> int | None:
    """The cost of a cover below the bound, or None if there is none."""
    masks = {b: sum(1 << int(cell) for cell in members[b]) for b in allowed}
    holders: list[list[int]] = [[] for _ in range(cells)]
    for b in sorted(allowed, key=lambda b: reduced[b]):
        for cell in members[b]:
            holders[cell].append(b)
    everything, nodes = (1 << cells) - 1, 0

    def extend(covered: int, cost: int, spent: int, count: int) -> int | None:
        nonlocal nodes
        nodes += 1
        if nodes > MOST_NODES:
            raise NotCoveredError("the search through box partitions is too long")
        if covered == everything:
            return cost if cost < bound else None
        if count == most_boxes:
            return None
        open_cells = [cell for cell in range(cells) if not covered >> cell & 1]
        choices = min(
            ([b for b in holders[cell] if not masks[b] & covered] for cell in open_cells), key=len, default=[]
        )
        for b in choices:
            if base + spent + reduced[b] < bound:
                found = extend(covered | masks[b], cost + values[b], spent + reduced[b], count + 1)
                if found is not None:
                    return found
        return None

    return extend(0, 0, 0, 0)
