"""A bound for many patterns, from blocks of fewer patterns that are searched one by one.

Let m blocks B contain every pattern exactly w times. If each block may choose its own coefficients,

    c_G  =  min over u of  Q_0(u) + sum_{p in G} Q_p(u)
        >=  1/w  sum_B  min over u of  w/m Q_0(u) + sum_{p in G and B} Q_p(u)

where groups that do not meet B cost nothing in B, as Q_0 >= 0. A partition into at most Q groups divides B into at most
Q groups, of any number of rows. It costs at least

    1/w  sum_B v_B,      v_B a bound on every division of B into at most Q groups, where Q_0 is replaced by w/m Q_0

*Layouts.* The patterns are cut into m slices, and block i is the slices i .. i + w - 1 (cyclically): all blocks have
about w/m of the patterns. Larger blocks give higher bounds. v_B is the bound of :mod:`formulations.groups.search`, the
least cost itself if the search of the block is finished. Small blocks are searched first; from the time this takes
follows the largest layout for which time is left, or one that is nearly so. If it is a single block, the search of all
patterns can be finished.

*Slices.* The bound depends on which patterns share a block. Divisions of the blocks by exchange estimate it: the best
of some random orders of the patterns is improved by swapping two of them.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from formulations.arrays import IntArray
from formulations.groups.exchange import improved_partition
from formulations.groups.pricing.choice import GroupChoice
from formulations.groups.search import GroupSearch

# The blocks of the first layout have at most this many patterns.
FIRST = 30
# Later layouts (m, w), and the factor by which the seconds of a block grow per pattern, measured on 30 to 40 patterns.
LAYOUTS, GROWTH = ((1, 1), (5, 4), (4, 3), (3, 2), (5, 3), (2, 1), (5, 2), (3, 1)), 1.3
# Without time for any, the quickest layout is tried up to this multiple of the time left: stopped, it has a bound too.
ATTEMPT = 5.0
# Starts of the exchange in a block.
RESTARTS = 150
# Orders of the patterns: random ones, and swaps; starts of the exchange in each block.
ORDERS, SWAPS, STARTS = 40, 1500, 3


@dataclass(frozen=True)
class Layout:
    """How many blocks there are, and how many of them contain each pattern."""

    blocks: int
    times: int

    def size(self, patterns: int) -> int:
        """Patterns of the largest block."""
        return min(patterns, -(-patterns // self.blocks) * self.times)

    def cut(self, order: IntArray) -> list[IntArray]:
        """The patterns of each block."""
        slices = np.array_split(order, self.blocks)
        return [
            np.sort(np.concatenate([slices[(i + k) % self.blocks] for k in range(self.times)]))
            for i in range(self.blocks)
        ]


def bound_by_blocks(
    c: GroupChoice,
    max_groups: int,
    labels: IntArray,
    deadline: float,
    rng: np.random.Generator,
    report: Callable[[float], None],
) -> None:
    """Report the bounds of some layouts; ``labels`` is a good partition, ``deadline`` is on ``time.perf_counter()``."""
    P = c.patterns
    layout: Layout | None = Layout(-(-P // FIRST), 1)
    while layout is not None and layout.blocks > 1:
        blocks = layout.cut(_good_order(c, layout, max_groups, labels, deadline, rng))
        started = time.perf_counter()
        bound, finished = bound_of_layout(c, layout, blocks, max_groups, deadline, rng)
        report(bound)
        per_block = (time.perf_counter() - started) / layout.blocks
        layout = _next_layout(P, layout, per_block, deadline - time.perf_counter()) if finished else None


def _next_layout(P: int, layout: Layout, per_block: float, left: float) -> Layout | None:
    """The layout with the largest blocks for which time is left, or the quickest one with larger blocks; or None."""
    size = layout.size(P)
    larger = [other for other in (Layout(*shape) for shape in LAYOUTS) if other.size(P) > size]
    expected = [other.blocks * per_block * GROWTH ** (other.size(P) - size) for other in larger]
    for other, seconds in zip(larger, expected, strict=True):
        if seconds <= left:
            return other
    if not larger or min(expected) > ATTEMPT * left:
        return None
    return larger[int(np.argmin(expected))]


def bound_of_layout(
    c: GroupChoice, layout: Layout, blocks: list[IntArray], max_groups: int, deadline: float, rng: np.random.Generator
) -> tuple[float, bool]:
    """The bound from the blocks of a layout, and whether all were searched to the end."""
    total, all_finished = 0.0, True
    for i, members in enumerate(blocks):
        now = time.perf_counter()
        end = now + max(0.0, deadline - now) / (len(blocks) - i)
        search = GroupSearch(
            _block(c, members, layout), max_groups, None, end - now, int(rng.integers(2**32)), restarts=RESTARTS
        )
        all_finished &= search.run() == "optimal"
        total += search.bound * search.unit
    return total / layout.times, all_finished


def _block(c: GroupChoice, members: IntArray, layout: Layout) -> GroupChoice:
    """The groups of the patterns of a block, of any number of rows."""
    quadratics, forbidden = np.ascontiguousarray(c.quadratics[members]), np.zeros((len(members),) * 2, dtype=bool)
    return GroupChoice(quadratics, c.base * (layout.times / layout.blocks), c.rows[members], 1, forbidden)


def _good_order(
    c: GroupChoice, layout: Layout, max_groups: int, labels: IntArray, deadline: float, rng: np.random.Generator
) -> IntArray:
    """An order of the patterns whose blocks have a high bound, as far as the exchange can tell."""
    P = c.patterns
    best, highest = np.arange(P), -np.inf
    end = time.perf_counter() + 0.1 * (deadline - time.perf_counter())
    for attempt in range(ORDERS + SWAPS):
        order = rng.permutation(P) if attempt < ORDERS else best.copy()
        if attempt >= ORDERS:
            p, q = rng.choice(P, 2, replace=False)
            order[[p, q]] = order[[q, p]]
        value = 0.0
        for members in layout.cut(order):
            block = _block(c, members, layout)
            current = np.unique(labels[members], return_inverse=True)[1]
            starts = [current, *rng.integers(min(max_groups, len(members)), size=(STARTS, len(members)))]
            value += min(improved_partition(block, start, max_groups, lambda: False)[1] for start in starts)
        if value > highest:
            best, highest = order, value
        if time.perf_counter() > end:
            break
    return best
