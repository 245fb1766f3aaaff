"""The search for the best groups of patterns: column generation, then enumeration.

*Start.* The best partition found by :mod:`formulations.groups.exchange`. Its groups, those of the next best partitions,
as many as there are patterns, and those that differ from its own by one pattern, are the first columns. From here on,
costs are in units of its cost.

*Blocks.* With many patterns and a time limit, :mod:`formulations.groups.blocks` has a first bound, from searches of
fewer patterns.

*Bound.* :mod:`formulations.groups.relaxation` bounds the cost of every partition. The search ends if its bound reaches
U, the cost of the best partition known.

*Better partitions.* The groups with the largest values in the relaxation are rounded to a partition, which the exchange
improves.

*Closing the gap.* For prices pi, the value of a group is c_G - pi(G), and no value is below t <= 0. A partition costs
sum_p pi_p plus its values, of at most Q groups; empty groups may be added with value 0 >= t. If it costs less than U,
the two largest of its values sum to less than U - sum_p pi_p - (Q - 2) t, and all but the largest are below

    (U - sum_p pi_p - (Q - 2) t) / 2

:mod:`formulations.groups.pricing.branch_and_bound` enumerates the groups below that. A depth-first search then selects
disjoint ones in ascending order of value; the patterns left over are the last group, of the largest value. If the
excess over t of the groups selected so far sums to e, the next group has at most the excess of the last group: it needs
e + 2 (value - t) < U - sum_p pi_p - Q t, and the search goes no further in the ascending list. Branching on pairs
of patterns instead took 28 s for 40 patterns in 5 groups, which enumeration settles in 9 s.
"""

import math
from collections.abc import Callable

import numpy as np

from formulations.arrays import BoolArray, IntArray
from formulations.certificate import ROUNDING as ROUNDING_STATUS
from formulations.certificate import clock
from formulations.groups.exchange import exchanged_partitions, improved_partition
from formulations.groups.pricing.branch_and_bound import price_groups
from formulations.groups.pricing.quadratics import GroupChoice, add_quadratic, least_value, set_quadratic
from formulations.groups.relaxation import Relaxation, relax
from formulations.jit import compiled
from formulations.linear_solver import HIGHS_TOLERANCE
from formulations.rounding import UNIT
from formulations.trees.dynamic_program import CLOSED

# Rounding error of a cost, as a share of the sum of squares of the target: that of some hundred additions of Gram
# matrices and a factorisation.
ROUNDING = 1000.0 * UNIT
# Up to this many patterns there are no blocks.
MOST_DIRECT = 44
# With more patterns than this, only the exchange is run.
MOST_PATTERNS = 400
# The smallest unit of costs, as a share of the sum of squares of the target.
LEAST_UNIT = 1e-6
# Most groups enumerated (50 MB), most steps of joining them (two minutes), and steps that a second allows.
MOST_ENUMERATED, MOST_JOINED, JOINED_PER_SECOND = 10**6, 10**10, 10**8

Progress = Callable[[float, float], None]
# From the groups, the most groups, a good partition, the deadline, random numbers and a function that receives bounds.
BoundByBlocks = Callable[[GroupChoice, int, IntArray, float, np.random.Generator, Callable[[float], None]], None]


class GroupSearch:
    """The search; its current state is in ``labels``, ``value`` and ``bound``, the last two in multiples of ``unit``.

    ``value`` is infinite until a partition has been evaluated; ``labels`` is then the start, or one group. The exchange
    has at most ``restarts`` starts: searches of many blocks have less time for each.
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
        restarts: int = 1000,
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
        # whether the search is at its end, with a gap that rounding leaves
        self.is_rounded = False

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
        return self.settle()

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
        for labels in partitions[: c.patterns]:
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
        self.choice = GroupChoice(c.quadratics / unit, c.base / unit, c.rows, c.least_rows)
        self.unit, self.value, self.bound = unit, self.value / unit, self.bound / unit
        self.known = {key: cost / unit for key, cost in self.known.items()}

    def raise_bound(self, bound: float) -> None:
        """Take over a bound on all partitions."""
        self.bound = max(self.bound, min(bound, self.value))
        self.report()

    def settle(self) -> str:
        """Bound all partitions by the relaxation, and enumerate those that may be better than the best one known."""
        c = self.choice
        groups = np.frombuffer(b"".join(self.known), dtype=bool).reshape(-1, c.patterns)
        costs = np.array(list(self.known.values()))
        useful = self.value - 0.25 * CLOSED
        relaxation = relax(c, self.max_groups, groups, costs, useful, self.rng, self.late, self.report)
        self.learn(relaxation.groups)
        self.raise_bound(relaxation.bound)
        if not self.closed(self.bound) and relaxation.finished:
            self.round(relaxation)
        if not self.closed(self.bound) and relaxation.finished and self.is_best(relaxation):
            self.raise_bound(self.value - HIGHS_TOLERANCE)
        if self.closed(self.bound):
            return "optimal"
        if self.is_rounded:
            return ROUNDING_STATUS
        return "time limit" if self.late() else "too many groups to enumerate"

    def round(self, relaxation: Relaxation) -> None:
        """A partition from the groups with the largest values in the relaxation, improved by exchange."""
        largest = np.argsort(-relaxation.z, kind="stable")[: self.max_groups]
        labels = np.argmax(relaxation.groups[largest], axis=0)
        self.offer(improved_partition(self.choice, labels, self.max_groups, self.late)[0])

    def is_best(self, relaxation: Relaxation) -> bool:
        """Enumerate every partition that may be better, and take the best; False if there are too many."""
        c, prices, lowest = self.choice, relaxation.prices, relaxation.lowest
        left = self.value - float(prices.sum())
        threshold = 0.5 * (left - (self.max_groups - 2) * lowest)
        priced = price_groups(c, prices, threshold, self.late, MOST_ENUMERATED)
        order = np.argsort(priced.values, kind="stable")
        small = priced.groups[order], priced.values[order]
        steps = np.array([int(min(MOST_JOINED, JOINED_PER_SECOND * max(0.0, self.deadline - clock())))])
        while priced.finished and steps[0] > 0 and not self.late():
            limit = self.value - float(prices.sum()) - HIGHS_TOLERANCE
            labels = join_groups(
                c.quadratics, c.base, prices, c.rows, c.least_rows, *small, lowest, self.max_groups, limit, steps
            )
            if labels[0] < 0 and steps[0] > 0:
                return True
            before = self.value
            if labels[0] >= 0:
                self.offer(labels)
            if self.value == before:  # better by rounding errors only: it would be found again and again
                self.is_rounded = True
                break
        return False


@compiled
def join_groups(quadratics, base, prices, rows, least_rows, groups, values, lowest, most, limit, steps):  # type: ignore[no-untyped-def]
    """Labels of a partition into disjoint ``groups`` and the rest, with values that sum to less than ``limit``.

    The value of a group is its cost minus its prices, at least ``lowest``; ``values`` ascend, and the rest is taken to
    have the largest value in the partition. The first label is -1 if there is no such partition; ``steps[0]`` counts
    down, and the search ends at 0.
    """
    P, order, m = quadratics.shape[0], quadratics.shape[1], len(groups)
    gap = limit - most * lowest
    words = _bits(groups)
    labels, selected = np.full(P, -1), np.full(most, -1)
    union, total = np.zeros((most, words.shape[1]), np.int64), np.zeros(most)
    matrix, L = np.empty((order, order)), np.zeros((order, order))
    depth, g = 0, -1
    # Groups are selected in order of value; the selected ones have the sum total[depth] and the patterns union[depth].
    while True:
        g += 1
        steps[0] -= 1
        excess = total[depth] - depth * lowest
        if steps[0] <= 0:
            return labels
        if depth == most - 1 or g >= m or excess + 2.0 * (values[g] - lowest) >= gap:
            if depth == 0:
                return labels
            depth -= 1
            g = selected[depth]
            continue
        disjoint = True
        for w in range(words.shape[1]):
            if union[depth, w] & words[g, w]:
                disjoint = False
        if not disjoint:
            continue
        selected[depth] = g
        depth += 1
        total[depth] = total[depth - 1] + values[g]
        for w in range(words.shape[1]):
            union[depth, w] = union[depth - 1, w] | words[g, w]
        rest = _value_of_rest(quadratics, base, prices, rows, least_rows, union[depth], matrix, L)
        if total[depth] + rest < limit:
            for p in range(P):
                labels[p] = depth
                for k in range(depth):
                    if groups[selected[k], p]:
                        labels[p] = k
            return labels


@compiled
def _bits(groups):  # type: ignore[no-untyped-def]
    """The members of each group as bits, 63 per word."""
    m, P = groups.shape
    words = np.zeros((m, P // 63 + 1), np.int64)
    for g in range(m):
        for p in range(P):
            if groups[g, p]:
                words[g, p // 63] |= 1 << (p % 63)
    return words


@compiled
def _value_of_rest(quadratics, base, prices, rows, least_rows, union, matrix, L):  # type: ignore[no-untyped-def]
    """The value of the group of all patterns outside ``union``: 0 if there are none, infinite with too few rows."""
    set_quadratic(matrix, base)
    paid, count = 0.0, 0
    for p in range(len(rows)):
        if not union[p // 63] >> (p % 63) & 1:
            add_quadratic(matrix, quadratics[p], 1.0)
            paid += prices[p]
            count += rows[p]
    if count == 0:
        return 0.0
    return least_value(matrix, L) - paid if count >= least_rows else np.inf
