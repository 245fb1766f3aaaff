"""A bound for many patterns, from blocks of fewer patterns that are searched one by one.

Let m blocks B contain every pattern exactly w times. If each block may choose its own coefficients,

    c_G  =  min over u of  Q_0(u) + sum_{p in G} Q_p(u)
        >=  1/w  sum_B  min over u of  w/m Q_0(u) + sum_{p in G and B} Q_p(u)

where groups that do not meet B cost nothing in B, as Q_0 >= 0. A partition into at most Q groups divides B into at most
Q groups, of any number of rows. It costs at least

    1/w  sum_B v_B,      v_B a bound on every division of B into at most Q groups, where Q_0 is replaced by w/m Q_0

*Layouts.* Larger blocks (:mod:`formulations.groups.slices`) give higher bounds. v_B is the bound of
:mod:`formulations.groups.search`, the least cost itself if the search of the block is finished. Small blocks are
searched first; from the time this takes follows the largest layout for which time is left. If it is a single block, the
search of all patterns can be finished. If there is time for no larger blocks, but to search those of the same layout
again, a better order of the patterns is searched for.
"""

from collections.abc import Callable

import numpy as np

from formulations.arrays import IntArray
from formulations.certificate import clock
from formulations.groups.pricing.choice import GroupChoice
from formulations.groups.search import GroupSearch
from formulations.groups.slices import SHARE, Layout, OrderSearch, block_choice

# The blocks of the first layout have at most this many patterns.
FIRST = 30
# Later layouts (m, w), and the factor by which the seconds of a block grow per pattern: 1.2 to 1.4, measured on 30 to
# 40 patterns. Unfinished blocks have poor bounds, so that the expected seconds are not to be exceeded.
LAYOUTS, GROWTH = ((1, 1), (5, 4), (4, 3), (3, 2), (5, 3), (2, 1), (5, 2), (3, 1)), 1.4
# Starts of the exchange in a block.
RESTARTS = 150


def bound_by_blocks(
    c: GroupChoice,
    max_groups: int,
    labels: IntArray,
    deadline: float,
    rng: np.random.Generator,
    report: Callable[[float], None],
) -> None:
    """Report the bounds of some layouts; ``labels`` is a good partition, ``deadline`` is on ``clock()``."""
    P = c.patterns
    layout = Layout(-(-P // FIRST), 1)
    orders, per_block, finished = OrderSearch(c, layout, max_groups, labels, rng), 0.0, True
    while finished and layout.blocks > 1:
        if orders.improve(deadline):
            started = clock()
            bound, finished = bound_of_layout(c, layout, layout.cut(orders.best), max_groups, deadline, rng)
            report(bound)
            per_block = (clock() - started) / layout.blocks
        larger = _next_layout(P, layout, per_block, deadline - clock())
        if larger is None:
            return
        if larger != layout:
            layout, orders = larger, OrderSearch(c, larger, max_groups, labels, rng)


def _next_layout(P: int, layout: Layout, per_block: float, left: float) -> Layout | None:
    """The layout with the largest blocks for which time is left, possibly the present one; or None."""
    size, searched = layout.size(P), (1.0 - SHARE) * left
    for other in (*(Layout(*shape) for shape in LAYOUTS), layout):
        larger = other.size(P) > size or other == layout
        if larger and other.blocks * per_block * GROWTH ** (other.size(P) - size) <= searched:
            return other
    return None


def bound_of_layout(
    c: GroupChoice, layout: Layout, blocks: list[IntArray], max_groups: int, deadline: float, rng: np.random.Generator
) -> tuple[float, bool]:
    """The bound from the blocks of a layout, and whether all were searched to the end."""
    total, all_finished = 0.0, True
    for i, members in enumerate(blocks):
        now = clock()
        end = now + max(0.0, deadline - now) / (len(blocks) - i)
        search = GroupSearch(
            block_choice(c, members, layout), max_groups, None, end - now, int(rng.integers(2**32)), restarts=RESTARTS
        )
        all_finished &= search.run() == "optimal"
        total += search.bound * search.unit
    return total / layout.times, all_finished
