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

*Closing the gap.* Let U be the cost of the best partition known; an integer program over the groups of the relaxation
may lower it. In a better partition all groups but the costliest have  c_G - pi(G) < (U - sum_p pi_p - (Q - 2) t) / 2.
If these are few, the same branch and bound enumerates them, and every way to choose disjoint ones, with the patterns
left over as the last group, is looked at. Otherwise the search branches on whether two patterns are in the same group
(Ryan and Foster, 1981): together they are one pattern with the sum of the quadratics, apart they are a forbidden pair.

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
    add_quadratic,
    improve_group,
    least_value,
    price_groups,
)
from formulations.linear_solver import highs_version, solve_linear

RIDGE_SCALES = ("leaf", "sample")
# A gap below this share of the objective counts as closed; costs are in units of the first partition's cost.
CLOSED = 1e-9
TOLERANCE = 1e-10
# Rounding of a cost, as a share of the sum of squares of the target that it is computed from.
ROUNDING = 1e-13
# What leaving a pattern out costs in the relaxation, which keeps it feasible under every branching.
LEFT_OUT = 1e3
# Random starts of the exchange, and how many of its partitions give columns; random starts of the pricing by exchange.
RESTARTS, KEPT_PARTITIONS, PRICING_STARTS = 1000, 100, 60
# Most groups that exact pricing returns at a time, groups enumerated, steps of joining them, nodes of integer programs.
MOST_PRICED, MOST_ENUMERATED, MOST_JOINED, INTEGER_NODES = 50, 50_000, 3 * 10**8, 100

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
        return min(max(self.min_rows, 1), int(np.sum(self.rows)))

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
            version=highs_version(),
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
        open_nodes = [_Node(self.bound, 0, np.arange(self.problem.patterns), ())]
        numbers, proven = 1, math.inf
        while open_nodes and not self.late():
            node = heapq.heappop(open_nodes)
            children, rest = self.process(node, numbers)
            for child in children:
                heapq.heappush(open_nodes, child)
            numbers += len(children)
            proven = min(proven, rest)
            self.bound = max(self.bound, min([self.value, proven, *(other.bound for other in open_nodes)]))
            self.report()
        return "time limit" if self.late() else "node limit"

    def exchange(self) -> None:
        """Improve random partitions by moving single patterns; the groups of the best are the first columns."""
        P, Q, c = self.problem.patterns, min(self.problem.max_groups, self.problem.patterns), self.choice
        starts = [self.labels, np.arange(P) % Q]
        while len(starts) < max(20, min(RESTARTS, 40_000 // P)):
            starts.append(self.rng.integers(Q, size=P))
        partitions: list[tuple[float, int, IntArray]] = []
        for start in starts:
            labels = _with_enough_rows(start.astype(np.int64), c.rows, c.least_rows)
            value = improve_partition(c.quadratics, c.base, c.rows, c.least_rows, labels, Q)
            partitions.append((value, len(partitions), labels))
            if self.late():
                break
        for _, _, labels in sorted(partitions)[:KEPT_PARTITIONS]:
            self.offer(labels)
            self.learn(np.array([labels == g for g in np.unique(labels)]))
        # Patterns that change their group in the relaxation do so one by one: the neighbours of the best partition.
        for g in np.unique(self.labels):
            neighbours = (self.labels == g) ^ np.eye(P, dtype=bool)
            self.learn(neighbours[neighbours @ c.rows >= c.least_rows])

    def rescale(self) -> None:
        """Count costs in units of the best partition, so that tolerances of the solver mean the same everywhere."""
        squares = float(self.choice.quadratics[:, -1, -1].sum())
        unit = max(self.value, 1e-6 * squares)
        c = self.choice
        self.choice = GroupChoice(c.quadratics / unit, c.base / unit, c.rows, c.least_rows, c.forbidden)
        self.unit, self.value, self.bound = unit, self.value / unit, self.bound / unit
        self.known = {key: cost / unit for key, cost in self.known.items()}

    def learn(self, groups: BoolArray) -> None:
        """Remember groups as columns of the relaxation."""
        for member in groups:
            key = np.ascontiguousarray(member).tobytes()
            if key not in self.known:
                self.known[key] = self.choice.cost(member)

    def process(self, node: _Node, number: int) -> tuple[list[_Node], float]:
        """Bound a node; returns its children, if it needs any, and a bound on what they do not cover."""
        if self.closed(node.bound):
            return [], node.bound
        c = _merged(self.choice, node)
        relaxation = self.relax(node, c)
        bound = max(node.bound, relaxation.bound)
        if node.number == 0:
            self.bound = max(self.bound, min(bound, self.value))
        if self.closed(bound) or not relaxation.finished:
            return [], bound
        if self.settle(node, c, relaxation):
            return [], math.inf
        pair = _fractional_pair(relaxation.groups, relaxation.z)
        if pair is None or self.closed(bound) or self.late():
            return [], bound
        return _children(node, pair, bound, number), math.inf

    def relax(self, node: _Node, c: GroupChoice) -> _Relaxation:
        """Column generation at a node."""
        Q = self.problem.max_groups
        groups, costs = _columns_of(node, c, self.known)
        master = _Master(c.patterns, Q, groups, costs)
        bound, lowest, finished = -math.inf, -math.inf, False
        while True:
            prices, sigma, z = master.solve()
            new = master.unknown(self.exchange_pricing(c, prices, sigma, master.groups[z > 0]))
            if len(new) == 0 and not self.late():
                # Prices that already prove this node useless need no more than that.
                enough = (self.value - 0.25 * CLOSED - float(prices.sum())) / Q
                priced = price_groups(c, prices, min(sigma - TOLERANCE / Q, enough), self.late, MOST_PRICED)
                lowest = min(0.0, priced.bound)
                bound = max(bound, float(prices.sum()) + Q * lowest)
                new = master.unknown(priced.groups)
                finished = priced.finished and len(new) == 0
                self.report()
            if len(new) == 0 or self.late():
                return _Relaxation(bound, prices, lowest, master.groups, z, finished)
            for member in new:
                master.add(member, c.cost(member))
            self.learn(new[:, node.classes])

    def exchange_pricing(self, c: GroupChoice, prices: Array, sigma: float, basis: BoolArray) -> BoolArray:
        """Groups of negative reduced cost, found by adding and dropping single patterns."""
        shares = self.rng.uniform(0.1, 0.6, size=(PRICING_STARTS, 1))
        starts = np.concatenate([basis, self.rng.random((PRICING_STARTS, c.patterns)) < shares])
        found = []
        for member in starts:
            value = improve_group(c.quadratics, c.base, prices, c.rows, c.least_rows, c.forbidden, member)
            if value < sigma - TOLERANCE:
                found.append(member)
            if self.late():
                break
        return np.unique(found, axis=0) if found else np.zeros((0, c.patterns), dtype=bool)

    def settle(self, node: _Node, c: GroupChoice, relaxation: _Relaxation) -> bool:
        """Look at every partition that may be better; False where they are too many."""
        Q, prices, lowest = self.problem.max_groups, relaxation.prices, relaxation.lowest
        if node.number == 0:
            self.choose(node, c, relaxation.groups, prices)
        gap = self.value - relaxation.bound
        if gap > self.failed_gap:
            return False
        left = self.value - float(prices.sum())
        priced = price_groups(c, prices, 0.5 * (left - (Q - 2) * lowest), self.late, MOST_ENUMERATED)
        order = np.argsort(priced.values, kind="stable")
        groups, values, steps = priced.groups[order], priced.values[order], np.array([MOST_JOINED])
        while priced.finished and steps[0] > 0 and not self.late():
            labels = join_groups(
                c.quadratics, c.base, prices, c.rows, c.least_rows, groups, values, lowest, Q,
                self.value - float(prices.sum()) - TOLERANCE, steps,
            )  # fmt: skip
            if labels[0] < 0 and steps[0] > 0:
                return True
            if labels[0] >= 0:
                self.offer(labels[node.classes])
        self.failed_gap = 0.7 * gap
        return False

    def choose(self, node: _Node, c: GroupChoice, groups: BoolArray, prices: Array) -> None:
        """A good partition into some of the groups of the relaxation."""
        reduced = np.array([c.cost(member) for member in groups]) - groups @ prices
        model = master_program(groups, reduced, self.problem.max_groups, integer=True)
        left = None if self.deadline == math.inf else max(0.0, self.deadline - time.perf_counter())
        solution = solve_linear(
            model, list(model.z.values()), time_limit=left, options={"mip_max_nodes": INTEGER_NODES}
        )
        if solution.status == "interrupted":
            raise KeyboardInterrupt
        if solution.values is not None:
            labels = np.argmax(groups[np.asarray(solution.values) > 0.5], axis=0)[node.classes].astype(np.int64)
            improve_partition(
                self.choice.quadratics, self.choice.base, self.choice.rows, self.choice.least_rows,
                labels, min(self.problem.max_groups, self.problem.patterns),
            )  # fmt: skip
            self.offer(labels)


class _Master:
    """The linear relaxation over the groups known so far, in HiGHS."""

    def __init__(self, patterns: int, max_groups: int, groups: BoolArray, costs: Array) -> None:
        import highspy
        from pyomo.repn.plugins.standard_form import LinearStandardFormCompiler

        model = master_program(groups, costs, max_groups, integer=False, left_out=LEFT_OUT)
        columns = [*model.missing.values(), *model.z.values()]
        form = LinearStandardFormCompiler().write(model, mixed_form=True, column_order=columns)
        row_of = {id(row.constraint): i for i, row in enumerate(form.rows)}
        self.cover = np.array([row_of[id(model.cover[p])] for p in model.P])
        self.budget = row_of[id(model.budget)]
        self.groups, self.seen = groups, {member.tobytes() for member in groups}
        lp = highspy.HighsLp()
        lp.num_row_, lp.num_col_ = form.A.shape
        lp.col_cost_ = np.asarray(form.c.todense(), dtype=float).ravel()
        lp.col_lower_, lp.col_upper_ = np.zeros(lp.num_col_), np.full(lp.num_col_, np.inf)
        lp.row_upper_ = np.asarray(form.rhs, dtype=float)
        lp.row_lower_ = np.array([-np.inf if i == self.budget else 1.0 for i in range(lp.num_row_)])
        A = form.A.tocsc()
        lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = A.indptr, A.indices, A.data
        self.highs = highspy.Highs()
        settings: dict[str, Any] = {"output_flag": False, "threads": 1, "solver": "simplex"}
        tolerances = {"primal_feasibility_tolerance": TOLERANCE, "dual_feasibility_tolerance": TOLERANCE}
        for name, value in {**settings, **tolerances}.items():
            self.highs.setOptionValue(name, value)
        self.highs.passModel(lp)

    def solve(self) -> tuple[Array, float, Array]:
        """Prices of the patterns and of the budget, and the values of the groups."""
        self.highs.run()
        solution = self.highs.getSolution()
        duals = np.array(solution.row_dual)
        return duals[self.cover], min(0.0, float(duals[self.budget])), np.array(solution.col_value)[len(self.cover) :]

    def unknown(self, groups: BoolArray) -> BoolArray:
        """Those of the groups that are no columns yet."""
        return groups[[member.tobytes() not in self.seen for member in groups]]

    def add(self, member: BoolArray, cost: float) -> None:
        rows = np.append(self.cover[member], self.budget).astype(np.int32)
        self.highs.addCol(cost, 0.0, np.inf, len(rows), rows, np.ones(len(rows)))
        self.groups = np.vstack([self.groups, member])
        self.seen.add(member.tobytes())


def master_program(groups: BoolArray, costs: Array, max_groups: int, integer: bool, left_out: float = 0.0) -> Any:
    """The program of the module over the given groups, in Pyomo; ``left_out`` prices patterns without a group."""
    import pyomo.environ as pyo

    model = pyo.ConcreteModel()
    model.P = pyo.RangeSet(0, groups.shape[1] - 1)
    model.G = pyo.RangeSet(0, len(groups) - 1)
    model.z = pyo.Var(model.G, domain=pyo.Binary if integer else pyo.NonNegativeReals)
    model.missing = pyo.Var(model.P if left_out > 0 else [], domain=pyo.NonNegativeReals)
    model.cost = pyo.Objective(
        expr=pyo.quicksum(float(costs[g]) * model.z[g] for g in model.G)
        + pyo.quicksum(left_out * model.missing[p] for p in model.missing)
    )

    def covered_once(model: Any, p: int) -> Any:
        chosen = pyo.quicksum(model.z[int(g)] for g in np.flatnonzero(groups[:, p]))
        return (chosen + model.missing[p] if left_out > 0 else chosen) == 1

    model.cover = pyo.Constraint(model.P, rule=covered_once)
    model.budget = pyo.Constraint(expr=pyo.quicksum(model.z[g] for g in model.G) <= max_groups)
    return model


def _merged(c: GroupChoice, node: _Node) -> GroupChoice:
    """The pricing problem of a node: one pattern a class."""
    classes = node.classes
    n = int(classes.max()) + 1
    quadratics, rows = np.zeros((n, *c.base.shape)), np.zeros(n, dtype=np.int64)
    np.add.at(quadratics, classes, c.quadratics)
    np.add.at(rows, classes, c.rows)
    forbidden = np.zeros((n, n), dtype=bool)
    for p, q in node.apart:
        forbidden[classes[p], classes[q]] = forbidden[classes[q], classes[p]] = True
    return GroupChoice(quadratics, c.base, rows, c.least_rows, forbidden)


def _columns_of(node: _Node, c: GroupChoice, known: dict[bytes, float]) -> tuple[BoolArray, Array]:
    """The known groups that are possible at a node, in its classes, and their costs."""
    P = len(node.classes)
    groups = np.frombuffer(b"".join(known), dtype=bool).reshape(-1, P)
    first = np.unique(node.classes, return_index=True)[1]
    merged = groups[:, first]
    possible = (merged[:, node.classes] == groups).all(axis=1)
    for p, q in node.apart:
        possible &= ~(groups[:, p] & groups[:, q])
    return np.ascontiguousarray(merged[possible]), np.array(list(known.values()))[possible]


def _fractional_pair(groups: BoolArray, z: Array) -> tuple[int, int] | None:
    """The two patterns of which it is least clear whether they are together."""
    together = (groups * z[:, None]).T @ groups
    doubt = np.triu(np.minimum(together, 1.0 - together), k=1)
    p, q = np.unravel_index(int(np.argmax(doubt)), doubt.shape)
    return (int(p), int(q)) if doubt[p, q] > 1e-6 else None


def _children(node: _Node, pair: tuple[int, int], bound: float, number: int) -> list[_Node]:
    """The node with the two classes together, and with them apart."""
    p, q = (int(np.flatnonzero(node.classes == k)[0]) for k in pair)
    merged = np.where(node.classes == pair[1], pair[0], node.classes)
    together = np.unique(merged, return_inverse=True)[1].astype(np.int64)
    return [_Node(bound, number, together, node.apart), _Node(bound, number + 1, node.classes, (*node.apart, (p, q)))]


def _with_enough_rows(labels: IntArray, rows: IntArray, least_rows: int) -> IntArray:
    """Labels where groups with too few rows have been put together with the smallest other group."""
    while True:
        names, labels_of = np.unique(labels, return_inverse=True)
        counts = np.bincount(labels_of, weights=rows)
        if len(names) == 1 or counts.min() >= least_rows:
            return labels
        smallest, second = np.argsort(counts, kind="stable")[:2]
        labels = np.where(labels == names[smallest], names[second], labels)


@compiled
def improve_partition(quadratics, base, rows, least_rows, labels, groups):  # type: ignore[no-untyped-def]
    """Move one pattern at a time to its best group, in place, as long as the total cost falls; returns the cost.

    The groups of ``labels`` that are not empty have enough rows, and keep them.
    """
    P, order = quadratics.shape[0], quadratics.shape[1]
    matrices, costs = np.empty((groups, order, order)), np.zeros(groups)
    counts, sizes = np.zeros(groups, np.int64), np.zeros(groups, np.int64)
    L = np.zeros((order, order))
    for g in range(groups):
        for i in range(order):
            for j in range(order):
                matrices[g, i, j] = base[i, j]
    for p in range(P):
        add_quadratic(matrices[labels[p]], quadratics[p], 1.0)
        counts[labels[p]] += rows[p]
        sizes[labels[p]] += 1
    for g in range(groups):
        costs[g] = least_value(matrices[g], L) if sizes[g] > 0 else 0.0
    still, p = 0, -1
    while still < P:
        p = (p + 1) % P
        still += 1
        source = labels[p]
        if sizes[source] > 1 and counts[source] - rows[p] < least_rows:
            continue
        add_quadratic(matrices[source], quadratics[p], -1.0)
        left = least_value(matrices[source], L) if sizes[source] > 1 else 0.0
        target, lowest, joined = -1, -1e-10 * costs[source], 0.0
        for g in range(groups):
            if g != source and counts[g] + rows[p] >= least_rows:
                add_quadratic(matrices[g], quadratics[p], 1.0)
                cost = least_value(matrices[g], L)
                add_quadratic(matrices[g], quadratics[p], -1.0)
                change = left + cost - costs[source] - costs[g]
                if change < lowest:
                    target, lowest, joined = g, change, cost
        if target < 0:
            add_quadratic(matrices[source], quadratics[p], 1.0)
            continue
        add_quadratic(matrices[target], quadratics[p], 1.0)
        counts[source] -= rows[p]
        counts[target] += rows[p]
        sizes[source] -= 1
        sizes[target] += 1
        costs[source], costs[target] = left, joined
        labels[p] = target
        still = 0
    return costs.sum()


@compiled
def join_groups(quadratics, base, prices, rows, least_rows, groups, values, lowest, most, limit, steps):  # type: ignore[no-untyped-def]
    """Labels of a partition into disjoint ``groups`` and the rest, with values that sum to less than ``limit``.

    The value of a group is its cost less its prices, at least ``lowest``; ``values`` of the groups ascend, and the rest
    is taken for the costliest group of the partition. The first label is -1 where there is no such partition;
    ``steps[0]`` counts down, and the search ends at 0.
    """
    P, order, m = quadratics.shape[0], quadratics.shape[1], len(groups)
    gap = limit - most * lowest
    words = np.zeros((m, P // 63 + 1), np.int64)
    for g in range(m):
        for p in range(P):
            if groups[g, p]:
                words[g, p // 63] |= 1 << (p % 63)
    labels, chosen = np.full(P, -1), np.full(most, -1)
    union, total = np.zeros((most, words.shape[1]), np.int64), np.zeros(most)
    matrix, L = np.empty((order, order)), np.zeros((order, order))
    depth, g = 0, -1
    # Groups are chosen in order of their values; those chosen have the sum total[depth] and the patterns union[depth].
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
            g = chosen[depth]
            continue
        disjoint = True
        for w in range(words.shape[1]):
            if union[depth, w] & words[g, w]:
                disjoint = False
        if not disjoint:
            continue
        chosen[depth] = g
        depth += 1
        total[depth] = total[depth - 1] + values[g]
        for w in range(words.shape[1]):
            union[depth, w] = union[depth - 1, w] | words[g, w]
        for i in range(order):
            for j in range(order):
                matrix[i, j] = base[i, j]
        paid, count = 0.0, 0
        for p in range(P):
            if not union[depth, p // 63] >> (p % 63) & 1:
                add_quadratic(matrix, quadratics[p], 1.0)
                paid += prices[p]
                count += rows[p]
        rest = least_value(matrix, L) - paid if count >= least_rows else np.inf
        if total[depth] + (rest if count > 0 else 0.0) < limit:
            for p in range(P):
                labels[p] = depth
                for k in range(depth):
                    if groups[chosen[k], p]:
                        labels[p] = k
            return labels
