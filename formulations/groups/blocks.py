"""A bound for many patterns, from blocks of fewer patterns that are searched one by one.

Let m blocks B contain every pattern exactly w times. If each block may choose its own coefficients,

    c_G  =  min over u of  Q_0(u) + sum_{p in G} Q_p(u)
        >=  1/w  sum_B  min over u of  w/m Q_0(u) + sum_{p in G and B} Q_p(u)

where groups that do not meet B cost nothing in B, as Q_0 >= 0. A partition into at most Q groups divides B into at most
Q groups, of any number of rows. It costs at least

    1/w  sum_B v_B,      v_B a bound on every division of B into at most Q groups, where Q_0 is replaced by w/m Q_0

*Steps.* Larger blocks give higher bounds. v_B is the bound of
:mod:`formulations.groups.search`, the least cost itself if the search of the block is finished. Small blocks are
searched first; from the time this takes follows the largest layout for which time is left. If it is a single block, the
search of all patterns can be finished. If there is time for no larger blocks, but to search those of the same layout
again, a better order of the patterns is searched for in the rest of the time.

*Layouts.* The patterns, in some order, are cut into m slices, and block i is the slices i .. i + w - 1 (cyclically):
all blocks have about w/m of the patterns, and every pattern is in w blocks.

*Order.* The bound depends on the order, often more than on the size of the blocks. Divisions of the blocks by exchange
estimate it; a random order is improved by swapping two patterns of different slices until no swap seems to be left,
and then another one, as time allows.

*Estimates* are costs of divisions, hence never below the least cost of a block, and come closer to it with every start
of the exchange. With few starts they are too high where the exchange does badly, and a search among many orders would
select just these. So a swap has to look better than the present order after every stage of more starts. Most swaps
fail at the first stage, in which the exchange starts from the divisions known for all patterns and for the present
blocks.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from formulations.arrays import IntArray
from formulations.certificate import ROUNDING, clock
from formulations.groups.exchange import improved_partition
from formulations.groups.pricing.quadratics import GroupChoice
from formulations.groups.search import GroupSearch

# Swaps in a row without success, per pattern, after which another random order is tried.
PATIENCE = 15
# Stages of a swap: after the k-th, from 0 on, each block had 4^k - 1 random starts of the exchange.
STAGES = 4
# For the first search of an order: the most orders, and the largest share of the time left.
MOST_ORDERS, SHARE = 3, 0.15


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


def block_choice(c: GroupChoice, members: IntArray, layout: Layout) -> GroupChoice:
    """The groups of the patterns of a block, of any number of rows."""
    quadratics = np.ascontiguousarray(c.quadratics[members])
    return GroupChoice(quadratics, c.base * (layout.times / layout.blocks), c.rows[members], 1)


class OrderSearch:
    """The search for an order of the patterns whose blocks have a high bound, as far as the exchange can tell.

    ``labels`` is a good partition of all patterns. The best order so far is ``best``, the identity at first.
    """

    def __init__(
        self, c: GroupChoice, layout: Layout, max_groups: int, labels: IntArray, rng: np.random.Generator
    ) -> None:
        self.c, self.layout, self.max_groups, self.labels, self.rng = c, layout, max_groups, labels, rng
        slices = np.array_split(np.arange(c.patterns), layout.blocks)
        self.slice_of = np.repeat(np.arange(layout.blocks), [len(part) for part in slices])
        self.best, self.highest = np.arange(c.patterns), -np.inf
        self.order, self.value, self.failed = self.best, -np.inf, 0
        # Of each block: the lowest cost found, its division with the groups of all other patterns, and random starts.
        self.divided: dict[bytes, tuple[float, IntArray, int]] = {}
        self.starts = [labels]

    def improve(self, end: float, most_orders: float = np.inf) -> bool:
        """Search for a better order until ``end`` on ``clock()``, or from so many; False if none is found."""
        before, ended = self.highest, 0
        while ended < most_orders and clock() < end:
            order = self._next()
            blocks = self.layout.cut(order)
            for stage in range(STAGES):
                value = sum(self._estimate(members, 4**stage - 1, end) for members in blocks)
                if value <= self.value or (self.highest > -np.inf and clock() >= end):
                    self.failed += 1
                    ended += self.failed > PATIENCE * self.c.patterns
                    break
            else:
                self.order, self.value, self.failed = order, value, 0
                self.starts = [self.labels, *(self.divided[members.tobytes()][1] for members in blocks)]
                if value > self.highest:
                    self.best, self.highest = order, value
        return bool(self.highest > before)

    def _next(self) -> IntArray:
        """The present order with two patterns of different slices swapped, or a random one to continue from."""
        P = self.c.patterns
        if self.value == -np.inf or self.failed > PATIENCE * P:
            self.value, self.failed, self.starts, self.divided = -np.inf, 0, [self.labels], {}
            return self.rng.permutation(P)
        order, p = self.order.copy(), self.rng.integers(P)
        q = self.rng.choice(np.flatnonzero(self.slice_of != self.slice_of[p]))
        order[[p, q]] = order[[q, p]]
        return order

    def _estimate(self, members: IntArray, starts: int, end: float) -> float:
        """Lowest cost of a block that the exchange finds, after so many random starts, fewer if the time is over."""
        key = members.tobytes()
        value, labels, done = self.divided.get(key, (np.inf, self.labels, -1))
        if done >= starts:
            return value
        block, groups = block_choice(self.c, members, self.layout), min(self.max_groups, len(members))
        divisions = [np.unique(known[members], return_inverse=True)[1] for known in self.starts] if done < 0 else []
        divisions += list(self.rng.integers(groups, size=(starts - max(done, 0), len(members))))
        for division in divisions:
            improved, cost = improved_partition(block, division, self.max_groups, lambda: False)
            if cost < value:
                value, labels = cost, self.labels.copy()
                labels[members] = improved
            if clock() >= end:
                starts = max(done, 0)
                break
        self.divided[key] = value, labels, starts
        return value


# The blocks of the first layout have at most this many patterns.
FIRST = 30
# Later layouts (m, w), and the factor by which the seconds of a block grow per pattern: 1.2 to 1.4, measured on 30 to
# 40 patterns. Unfinished blocks have poor bounds, so that the expected seconds are not to be exceeded.
LAYOUTS, GROWTH = ((1, 1), (5, 4), (4, 3), (3, 2), (5, 3), (2, 1), (5, 2), (3, 1)), 1.4


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
    is_first = True
    while finished and layout.blocks > 1:
        now = clock()
        if is_first:
            is_better = orders.improve(now + SHARE * (deadline - now), MOST_ORDERS)
        else:  # blocks of a better order take longer, as if there were two more patterns
            is_better = orders.improve(deadline - layout.blocks * per_block * GROWTH**2)
        if is_better:
            started = clock()
            bound, finished = bound_of_layout(c, layout, layout.cut(orders.best), max_groups, deadline, rng)
            report(bound)
            per_block = (clock() - started) / layout.blocks
        larger = _next_layout(P, layout, per_block, deadline - clock())
        if larger is None:
            return
        is_first = larger != layout
        if is_first:
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
            block_choice(c, members, layout), max_groups, None, end - now, int(rng.integers(2**32)), restarts=4**STAGES
        )
        all_finished &= search.run() in ("optimal", ROUNDING)
        total += search.bound * search.unit
    return total / layout.times, all_finished
