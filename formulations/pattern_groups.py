"""The best grouping of missingness patterns, whatever the groups look like.

Sets and data
    p in P       patterns; M_p is the Gram matrix of its weighted rows (1, a, y), r_p and s_p its rows and weight
    G in 2^P     groups with at least r rows;  c_G = min over (b, w) of sum_{p in G} Q_p(b, w) + penalty_G |w|^2,
                 Q_p(b, w) = sum over the rows of p of s_i (y_i - b - w'a_i)^2,
                 penalty_G = ridge ("leaf") or ridge * sum_{p in G} s_p ("sample")
    Q            most groups
Variables
    z_G in {0, 1}   1 where G is one of the groups
Objective
    min  sum_G c_G z_G
Constraints
    cover    sum_{G with p in G} z_G = 1     for every p       (prices pi_p)
    budget   sum_G z_G <= Q                                    (price sigma <= 0)

*Column generation.* The linear relaxation is solved over the groups known so far (Pyomo's matrices in HiGHS, which then
takes one column at a time). Groups with c_G < pi(G) + sigma enter: first those that an exchange of single patterns
finds, then those of the branch and bound of :mod:`formulations.group_pricing`.

*Bound.* For any prices, if no group has c_G - pi(G) below t <= 0, every partition costs at least  sum_p pi_p + Q t. A
branch and bound that was stopped early knows such a t as well.

*Closing the gap.* Let U be the cost of the best partition known. In a better one each group has
c_G - pi(G) < U - sum_p pi_p - (Q - 1) t. If these groups are few, all are enumerated by the same branch and bound, and
an integer program over them settles the question. Otherwise the search branches on whether two patterns are in the same
group (Ryan and Foster, 1981): together they are one pattern with the sum of the quadratics, apart they are a forbidden
pair.

The first partition comes from moving single patterns between groups, with restarts; it is nearly always the best.
"""

import heapq
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from formulations.certificate import Certificate
from formulations.compiled import compiled
from formulations.group_pricing import (
    Array,
    BoolArray,
    GroupChoice,
    IntArray,
    Priced,
    improve_group,
    least_value,
    price_groups,
)
from formulations.linear_solver import solve_linear

RIDGE_SCALES = ("leaf", "sample")
# A gap below this share of the objective counts as closed; costs are in units of the first partition's cost.
CLOSED = 1e-9
TOLERANCE = 1e-10
# Rounding of a cost, as a share of the sum of squares of the target that it is computed from.
ROUNDING = 1e-13
# What leaving a pattern out costs in the relaxation, which keeps it feasible under every branching.
LEFT_OUT = 1e3
RESTARTS, PRICING_STARTS, MOST_PRICED, MOST_ENUMERATED = 200, 60, 50, 20_000

Progress = Callable[[float, float], None]


@dataclass(frozen=True)
class PatternGroupsProblem:
    """Data of the program.

    Attributes
    ----------
    gram : array of shape (P, k + 2, k + 2)
        Gram matrix of the weighted rows (1, a_1 .. a_k, y) of each pattern. Well centred columns keep it accurate.
    rows : array of shape (P,)
        Rows of each pattern, at least 1.
    weights : array of shape (P,)
        Sum of the weights of these rows.
    ridge : float
        Weight of |w|^2.
    ridge_scale : {"sample", "leaf"}
        Whether the ridge of a group is multiplied by its weight.
    max_groups : int
        Most groups, Q.
    min_rows : int
        Fewest rows of a group; all patterns together are a group in any case.
    """

    gram: Array
    rows: IntArray
    weights: Array
    ridge: float = 1e-3
    ridge_scale: str = "sample"
    max_groups: int = 3
    min_rows: int = 1

    def __post_init__(self) -> None:
        P = len(self.rows)
        order = self.gram.shape[-1]
        if P < 1 or self.gram.shape != (P, order, order) or order < 2 or len(self.weights) != P:
            raise ValueError("gram, rows and weights need one entry a pattern, and gram square matrices.")
        if np.min(self.rows) < 1 or not np.isfinite(self.gram).all():
            raise ValueError("Every pattern needs at least one row and a finite Gram matrix.")
        if not 0 <= self.ridge < math.inf or self.max_groups < 1:
            raise ValueError("ridge must be a number of at least 0 and max_groups at least 1.")
        if self.ridge_scale not in RIDGE_SCALES:
            raise ValueError(f"Unknown ridge_scale {self.ridge_scale!r}: choose 'sample' or 'leaf'.")

    @property
    def patterns(self) -> int:
        return len(self.rows)

    @property
    def least_rows(self) -> int:
        """Rows that a group needs: never more than there are."""
        return int(min(max(self.min_rows, 1), np.sum(self.rows)))

    def choice(self) -> GroupChoice:
        """Quadratics of the coefficients, the penalty included, as the pricing problem wants them."""
        penalised = np.arange(1, self.gram.shape[1] - 1)
        quadratics = np.array(self.gram, dtype=float)
        base = np.zeros(self.gram.shape[1:])
        if self.ridge_scale == "sample":
            quadratics[:, penalised, penalised] += self.ridge * np.asarray(self.weights, dtype=float)[:, None]
        else:
            base[penalised, penalised] = self.ridge
        rows = np.asarray(self.rows, dtype=np.int64)
        return GroupChoice(quadratics, base, rows, self.least_rows, np.zeros((len(rows), len(rows)), dtype=bool))


def group_cost(problem: PatternGroupsProblem, members: Any) -> float:
    """c_G of the patterns ``members``, a mask or a list of numbers."""
    member = np.zeros(problem.patterns, dtype=bool)
    member[members] = True
    return problem.choice().cost(member) if member.any() else 0.0


def solve_pattern_groups(
    problem: PatternGroupsProblem,
    start: IntArray | None = None,
    time_limit: float | None = None,
    random_state: int = 0,
    on_progress: Progress | None = None,
) -> tuple[IntArray, Certificate]:
    """Group of each pattern, numbered from 0 in order of appearance, and the proof of how good the partition is.

    Parameters
    ----------
    problem : PatternGroupsProblem
    start : array of shape (P,), optional
        Labels of a partition to start from.
    time_limit : float, optional
        Seconds. With 0 the start, or one group, comes back with a bound that needs no search.
    random_state : int
        Seed of the restarts; where no time limit strikes, the same seed gives the same result.
    on_progress : callable, optional
        Called now and then with the objective and the bound so far.

    Examples
    --------
    >>> a, y = np.array([1.0, -1.0, 2.0, -2.0]), np.array([1.0, -1.0, -2.0, 2.0])
    >>> rows = [np.column_stack([np.ones(2), a[i : i + 2], y[i : i + 2]]) for i in (0, 2, 0)]
    >>> gram = np.array([r.T @ r for r in rows])
    >>> problem = PatternGroupsProblem(gram, np.full(3, 2), np.full(3, 2.0), ridge=0.0, max_groups=2)
    >>> labels, certificate = solve_pattern_groups(problem)
    >>> labels, certificate.status
    (array([0, 1, 0]), 'optimal')
    """
    search = _Search(problem, time_limit, random_state, on_progress)
    search.offer(np.zeros(problem.patterns, dtype=np.int64))
    if start is not None:
        search.offer(_checked_start(problem, start))
    try:
        status = search.run()
    except KeyboardInterrupt:
        status = "interrupted"
    return search.result(status)


def _checked_start(problem: PatternGroupsProblem, start: Any) -> IntArray:
    labels = np.unique(np.asarray(start), return_inverse=True)[1].astype(np.int64)
    if np.shape(start) != (problem.patterns,) or labels.max() >= problem.max_groups:
        raise ValueError("start needs one label a pattern, and no more labels than max_groups.")
    if np.bincount(labels, weights=problem.rows).min() < problem.least_rows:
        raise ValueError("start has a group with fewer rows than min_rows.")
    return labels


@dataclass(order=True)
class _Node:
    """A part of the partitions: patterns of one class are together, the pairs ``apart`` are not."""

    bound: float
    number: int
    classes: IntArray = field(compare=False)
    apart: tuple[tuple[int, int], ...] = field(compare=False)


@dataclass
class _Relaxation:
    """Where column generation ended at a node: the bound, the prices it rests on, and the fractional solution."""

    bound: float
    prices: Array
    lowest: float
    groups: BoolArray
    z: Array
    finished: bool


class _Search:
    """Branch and price; what is known at any moment is in ``labels``, ``value`` and ``bound``."""

    def __init__(
        self, problem: PatternGroupsProblem, time_limit: float | None, random_state: int, on_progress: Progress | None
    ) -> None:
        self.problem, self.on_progress = problem, on_progress
        self.began = time.perf_counter()
        self.deadline = math.inf if time_limit is None else self.began + time_limit
        self.rng = np.random.default_rng(random_state)
        self.choice = problem.choice()
        self.unit = 1.0
        self.labels = np.zeros(problem.patterns, dtype=np.int64)
        self.value = math.inf
        singles = self.choice.quadratics
        # Even with one model a pattern, and without the ridge that a group pays once, a partition costs this much.
        self.bound = sum(float(least_value(M, np.zeros_like(M))) for M in singles)
        self.known: dict[bytes, float] = {}
        self.failed_gap = math.inf

    def late(self) -> bool:
        return time.perf_counter() >= self.deadline

    def offer(self, labels: IntArray) -> None:
        """Keep a partition if it is better than the best so far."""
        value = sum(self.choice.cost(labels == g) for g in np.unique(labels))
        if value < self.value:
            self.labels, self.value = labels.copy(), value

    def report(self) -> None:
        if self.on_progress is not None:
            self.on_progress(self.value * self.unit, min(self.value, self.bound) * self.unit)

    def closed(self, bound: float) -> bool:
        return bound >= self.value - 0.5 * CLOSED * abs(self.value) - self.rounding

    @property
    def rounding(self) -> float:
        return ROUNDING * float(self.choice.quadratics[:, -1, -1].sum())

    def result(self, status: str) -> tuple[IntArray, Certificate]:
        first = np.unique(self.labels, return_index=True)[1]
        order = np.argsort(np.argsort(first))
        labels = order[np.unique(self.labels, return_inverse=True)[1]].astype(np.int64)
        groups = [labels == g for g in range(labels.max() + 1)]
        objective = sum(group_cost(self.problem, group) for group in groups)
        bound = min(self.bound * self.unit, objective)
        slack = CLOSED * abs(objective) + self.rounding * self.unit
        return labels, Certificate(
            objective=objective,
            bound=bound,
            status="optimal" if objective - bound <= slack else status,
            solver="HIGHS",
            version=_highs_version(),
            seconds=time.perf_counter() - self.began,
        )

    def run(self) -> str:
        """Search until the gap is closed or time is over; returns what stopped it."""
        if self.problem.max_groups == 1 or self.problem.patterns == 1:
            self.bound = self.value
        if self.closed(self.bound):
            return "optimal"
        if self.late():
            return "time limit"
        self.exchange()
        self.rescale()
        P = self.problem.patterns
        open_nodes = [_Node(self.bound, 0, np.arange(P), ())]
        numbers, proven = 1, math.inf
        while open_nodes:
            node = heapq.heappop(open_nodes)
            if not self.closed(node.bound):
                children, bound = self.process(node, numbers, is_root=node.number == 0)
                if children is None:
                    proven = min(proven, bound)
                else:
                    numbers += len(children)
                    for child in children:
                        heapq.heappush(open_nodes, child)
            else:
                proven = min(proven, node.bound)
            lowest = min([proven, *(other.bound for other in open_nodes)])
            self.bound = max(self.bound, min(lowest, self.value))
            self.report()
            if self.late():
                return "time limit"
        return "node limit"
