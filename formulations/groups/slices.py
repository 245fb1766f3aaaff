"""Which patterns share a block, in the bound of :mod:`formulations.groups.blocks`.

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

from dataclasses import dataclass

import numpy as np

from formulations.arrays import IntArray
from formulations.certificate import clock
from formulations.groups.exchange import improved_partition
from formulations.groups.pricing.choice import GroupChoice

# Swaps in a row without success, per pattern, after which another random order is tried; most such orders at a time.
PATIENCE, MOST_ORDERS = 15, 3
# Random starts of the exchange in each block, stage by stage.
STAGES = (0, 3, 12, 60)
# Largest share of the time left for the search of an order, and the least gain that counts.
SHARE, LEAST_GAIN = 0.15, 1e-6


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
    quadratics, forbidden = np.ascontiguousarray(c.quadratics[members]), np.zeros((len(members),) * 2, dtype=bool)
    return GroupChoice(quadratics, c.base * (layout.times / layout.blocks), c.rows[members], 1, forbidden)


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

    def improve(self, deadline: float) -> bool:
        """Search for a better order, for a share of the time until ``deadline`` at most; False if none is found."""
        before, now, ended = self.highest, clock(), 0
        end = now + SHARE * (deadline - now)
        while ended < MOST_ORDERS and clock() < end:
            order = self._next()
            blocks = self.layout.cut(order)
            for starts in STAGES:
                value = sum(self._estimate(members, starts, end) for members in blocks)
                if value <= self.value or (self.highest > -np.inf and clock() >= end):
                    self.failed += 1
                    ended += self.failed > PATIENCE * self.c.patterns
                    break
            else:
                self.order, self.value, self.failed = order, value, 0
                self.starts = [self.labels, *(self.divided[members.tobytes()][1] for members in blocks)]
                if value > self.highest:
                    self.best, self.highest = order, value
        return bool(self.highest > before + LEAST_GAIN * abs(self.highest))

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
