"""The search for the best groups of patterns: branch and price.

*Start.* The best partition found by :mod:`formulations.groups.exchange`. Its groups, those of the next best partitions,
and those that differ from its own by one pattern, are the first columns. From here on, costs are in units of its cost.

*Blocks.* With many patterns and a time limit, :mod:`formulations.groups.blocks` has a first bound, from searches of
fewer patterns.

*Bound.* Each part of the set of partitions (:mod:`formulations.groups.pricing.choice`), the whole set at first, is
bounded by :mod:`formulations.groups.relaxation`. It is settled if its bound reaches U, the cost of the best partition
known.

*Better partitions.* The groups with the largest values in the relaxation are rounded to a partition, which the exchange
improves; once, an integer program selects among the groups of the relaxation (:mod:`formulations.groups.relaxation`).

*Closing the gap.* If partitions that cost less than U consist of few groups, :mod:`formulations.groups.joining`
enumerates these partitions, which settles the part. Their number grows with the gap U - bound: after a failure this is
tried again once the gap is clearly smaller.

*Branching.* Otherwise the part is split in two, on whether two patterns are in the same group. The part with the lowest
bound is next.
"""

import heapq
import math
from collections.abc import Callable

import numpy as np

from formulations.arrays import BoolArray, IntArray
from formulations.certificate import clock
from formulations.groups.exchange import exchanged_partitions, improved_partition
from formulations.groups.joining import MOST_JOINED, join_groups, small_groups
from formulations.groups.pricing.choice import (
    GroupChoice,
    Part,
    children,
    choice_of_part,
    fractional_pair,
    groups_of_part,
)
from formulations.groups.pricing.quadratics import least_value
from formulations.groups.relaxation import TOLERANCE, Relaxation, choose_groups, relax

# A gap below this share of the objective counts as closed.
CLOSED = 1e-9
# Rounding error of a cost, as a share of the sum of squares of the target.
ROUNDING = 1e-13
# Most starts of the exchange, and how many of the partitions provide columns.
RESTARTS, COLUMN_PARTITIONS = 1000, 100
# Up to this many patterns there are no blocks.
MOST_DIRECT = 44
# With more patterns than this, only the exchange is run.
MOST_PATTERNS = 400
# The smallest unit of costs, as a share of the sum of squares of the target.
LEAST_UNIT = 1e-6
# The gap must shrink to this share before all better partitions are enumerated again.
SMALLER_GAP = 0.7

Progress = Callable[[float, float], None]
# From the groups, the most groups, a good partition, the deadline, random numbers and a function that receives bounds.
BoundByBlocks = Callable[[GroupChoice, int, IntArray, float, np.random.Generator, Callable[[float], None]], None]


class GroupSearch:
    """The search; its current state is in ``labels``, ``value`` and ``bound``, the last two in multiples of ``unit``.

    ``value`` is infinite until a partition has been evaluated; ``labels`` is then the start, or one group.
    """

    def __init__(
        self,
        choice: GroupChoice,
        max_groups: int,
        start: IntArray | None,
        time_limit: float | None,
        random_state: int,
        on_progress: Progress | None = None,
        bound_by_blocks: BoundByBlocks | None = None,
        restarts: int = RESTARTS,
    ) -> None:
        self.choice, self.max_groups, self.start, self.on_progress = choice, max_groups, start, on_progress
        self.bound_by_blocks, self.restarts = bound_by_blocks, restarts
        self.started = clock()
        self.deadline = math.inf if time_limit is None else self.started + time_limit
        self.seed, self.rng = random_state, np.random.default_rng(random_state)
        self.one_group = np.zeros(choice.patterns, dtype=np.int64)
        self.labels = self.one_group if start is None else start
        self.value, self.bound, self.unit = math.inf, 0.0, 1.0
        self.known: dict[bytes, float] = {}
        self.failed_gap = math.inf
        self.out_of_nodes = False

    def run(self) -> str:
        """Search until the gap is closed or time is up; returns the reason for stopping."""
        P = self.choice.patterns
        # Even with one model per pattern, and without the ridge that a group pays once, a partition costs this much.
        self.bound = sum(float(least_value(M, np.zeros_like(M))) for M in self.choice.quadratics)
        self.offer(self.one_group)
        if self.start is not None:
            self.offer(self.start)
        if self.max_groups == 1 or P == 1:
            self.bound = self.value
        if self.closed(self.bound):
            return "optimal"
        if self.late():
            return "time limit"
        self.exchange()
        if P > MOST_PATTERNS:
            return "too many patterns"
        self.rescale()
        if self.bound_by_blocks is not None and P > MOST_DIRECT and self.deadline < math.inf:
            # The random numbers of blocks leave those of the search as they are.
            rng = np.random.default_rng(self.seed)
            self.bound_by_blocks(self.choice, self.max_groups, self.labels, self.deadline, rng, self.raise_bound)
        open_parts = [Part(self.bound, 0, np.arange(P), ())]
        numbers, proven = 1, math.inf
        while open_parts and not self.late():
            halves, rest = self.process(heapq.heappop(open_parts), numbers)
            for half in halves:
                heapq.heappush(open_parts, half)
            numbers += len(halves)
            proven = min(proven, rest)
            self.bound = max(self.bound, min([self.value, proven, *(part.bound for part in open_parts)]))
            self.report()
        return "time limit" if self.late() else "node limit" if self.out_of_nodes else "optimal"

    def offer(self, labels: IntArray) -> None:
        """Keep a partition if it is better than the best so far."""
        value = sum(self.choice.cost(labels == g) for g in np.unique(labels))
        if value < self.value:
            self.labels, self.value = labels.copy(), value

    def closed(self, bound: float) -> bool:
        return bound >= self.value - 0.5 * CLOSED * abs(self.value) - self.rounding

    @property
    def rounding(self) -> float:
        return ROUNDING * float(self.choice.quadratics[:, -1, -1].sum())

    def late(self) -> bool:
        return clock() >= self.deadline

    def report(self) -> None:
        if self.on_progress is not None:
            self.on_progress(self.value * self.unit, min(self.value, self.bound) * self.unit)

    def exchange(self) -> None:
        """Find good partitions, and take the first columns from them."""
        c = self.choice
        partitions = exchanged_partitions(c, self.labels, self.max_groups, self.rng, self.late, self.restarts)
        for labels in partitions[:COLUMN_PARTITIONS]:
            self.offer(labels)
            self.learn(np.array([labels == g for g in np.unique(labels)]))
        if c.patterns <= MOST_PATTERNS:
            # In the relaxation, patterns change groups one by one: add the neighbours of the best partition.
            for g in np.unique(self.labels):
                neighbours = (self.labels == g) ^ np.eye(c.patterns, dtype=bool)
                self.learn(neighbours[neighbours @ c.rows >= c.least_rows])

    def learn(self, groups: BoolArray) -> None:
        """Remember groups as columns of the relaxation."""
        for member in groups:
            key = np.ascontiguousarray(member).tobytes()
            if key not in self.known:
                self.known[key] = self.choice.cost(member)

    def rescale(self) -> None:
        """Measure costs in units of the best partition, which makes the tolerances of the solver relative."""
        c = self.choice
        unit = max(self.value, LEAST_UNIT * float(c.quadratics[:, -1, -1].sum()))
        self.choice = GroupChoice(c.quadratics / unit, c.base / unit, c.rows, c.least_rows, c.forbidden)
        self.unit, self.value, self.bound = unit, self.value / unit, self.bound / unit
        self.known = {key: cost / unit for key, cost in self.known.items()}

    def raise_bound(self, bound: float) -> None:
        """Take over a bound on all partitions."""
        self.bound = max(self.bound, min(bound, self.value))
        self.report()

    def process(self, part: Part, number: int) -> tuple[list[Part], float]:
        """Bound a part; returns its halves, if it is split, and a bound on what they do not cover."""
        if self.closed(part.bound):
            return [], part.bound
        c = choice_of_part(self.choice, part)
        groups, costs = groups_of_part(part, self.known)
        useful = self.value - 0.25 * CLOSED
        relaxation = relax(c, self.max_groups, groups, costs, useful, self.rng, self.late, self.report)
        self.learn(relaxation.groups[relaxation.known :, part.classes])
        bound = max(part.bound, relaxation.bound)
        if part.number == 0:
            self.bound = max(self.bound, min(bound, self.value))
        if self.closed(bound) or not relaxation.finished:
            self.out_of_nodes |= not (self.closed(bound) or self.late())
            return [], bound
        self.round(part, relaxation)
        if not self.closed(bound) and self.settle(part, c, relaxation):
            return [], max(bound, self.value - TOLERANCE)
        pair = fractional_pair(relaxation.groups, relaxation.z)
        if pair is None or self.closed(bound) or self.late():
            return [], bound
        return children(part, pair, bound, number), math.inf

    def round(self, part: Part, relaxation: Relaxation) -> None:
        """A partition from the groups with the largest values in the relaxation."""
        largest = np.argsort(-relaxation.z, kind="stable")[: self.max_groups]
        self.offer_improved(part, relaxation.groups[largest])

    def choose(self, part: Part, c: GroupChoice, relaxation: Relaxation) -> None:
        """A good partition into some of the groups of the relaxation."""
        groups, prices = relaxation.groups, relaxation.prices
        reduced = np.array([c.cost(member) for member in groups]) - groups @ prices
        left = None if self.deadline == math.inf else max(0.0, self.deadline - clock())
        selected = choose_groups(groups, reduced, self.max_groups, left)
        if selected is not None:
            self.offer_improved(part, selected)

    def offer_improved(self, part: Part, groups: BoolArray) -> None:
        """Put each class into the first of its groups, improve this partition by exchange, and offer it."""
        labels = np.argmax(groups, axis=0)[part.classes]
        self.offer(improved_partition(self.choice, labels, self.max_groups, self.late)[0])

    def settle(self, part: Part, c: GroupChoice, relaxation: Relaxation) -> bool:
        """Enumerate every partition that may be better; False if there are too many."""
        prices, lowest = relaxation.prices, relaxation.lowest
        if part.number == 0:
            self.choose(part, c, relaxation)
        gap = self.value - relaxation.bound
        if gap > self.failed_gap:
            return False
        small, steps = small_groups(c, prices, lowest, self.max_groups, self.value, self.late), np.array([MOST_JOINED])
        while small is not None and steps[0] > 0 and not self.late():
            limit = self.value - float(prices.sum()) - TOLERANCE
            labels = join_groups(
                c.quadratics, c.base, prices, c.rows, c.least_rows, *small, lowest, self.max_groups, limit, steps
            )
            if labels[0] < 0 and steps[0] > 0:
                return True
            before = self.value
            if labels[0] >= 0:
                self.offer(labels[part.classes])
            if self.value == before:  # better by rounding errors only: it would be found again and again
                break
        self.failed_gap = SMALLER_GAP * gap
        return False
