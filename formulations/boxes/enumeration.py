"""All partitions into boxes whose reduced costs sum to less than a gap, by depth-first search.

With prices as in :mod:`formulations.boxes.partition`, a partition costs at least L plus its reduced costs; boxes that
are still to come add at least the least reduced cost each, if that is negative. The search extends a set of disjoint
boxes by a box that holds the uncovered cell with the fewest candidates, in ascending order of reduced costs, and stops
where the sum reaches the gap U - L. Sets of cells are bits of whole numbers.
"""

from formulations.arrays import FloatArray, IntArray

# Most steps of a search.
MOST_STEPS = 300_000


def best_partition(
    cells: list[IntArray],
    cost: FloatArray,
    reduced: FloatArray,
    retained: IntArray,
    most: int,
    U: float,
    L: float,
    n_cells: int,
) -> tuple[list[int], float] | None:
    """Boxes and cost of the best partition, or no boxes and U if none costs less; None if the search is too long."""
    low = float(min(0.0, reduced[retained].min(initial=0.0)))
    masks = {int(B): sum(1 << int(p) for p in cells[B]) for B in retained}
    order = sorted(masks, key=lambda B: float(reduced[B]))
    holding: list[list[int]] = [[B for B in order if masks[B] >> p & 1] for p in range(n_cells)]
    order_of_cells = sorted(range(n_cells), key=lambda p: len(holding[p]))
    everything = (1 << n_cells) - 1
    best, value, steps = list[int](), U, 0
    stack: list[tuple[int, float, float, tuple[int, ...]]] = [(0, 0.0, 0.0, ())]
    while stack:
        covered, excess, total, chosen = stack.pop()
        if covered == everything:
            if total < value:
                best, value = list(chosen), total
            continue
        left = most - len(chosen)
        if left == 0:
            continue
        cell = next(p for p in order_of_cells if not covered >> p & 1)
        for B in holding[cell]:
            steps += 1
            if steps > MOST_STEPS:
                return None
            if excess + float(reduced[B]) + (left - 1) * low >= value - L:
                break  # the following boxes have larger reduced costs
            if not masks[B] & covered:
                stack.append((covered | masks[B], excess + float(reduced[B]), total + float(cost[B]), (*chosen, B)))
    return best, value
