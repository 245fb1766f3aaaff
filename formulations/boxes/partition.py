"""The best cover of the observed patterns by disjoint boxes: :mod:`formulations.set_partition` over a list of boxes.

Sets        PATTERNS    observed patterns p that differ on the features allowed to split on ("cells")
            BOXES       boxes B with at most D literals, see :mod:`formulations.leaves.box_costs`, and enough rows; of
                        boxes with the same cells, only the one with fewest literals
Params      cost_B      cost of B as a leaf
            rows_B      rows in B
            max_leaves  Q
            unit        U, the cost of the best tree, which is also a cover
Variables   leaf_B in {0,1}    1 if B is a leaf
Objective   min  sum_B cost_B leaf_B / unit
Constraints cover   sum_{B holds p} leaf_B = 1, for every p
            leaves  sum_B leaf_B <= max_leaves

The boxes are disjoint on the cells, not on all of {0,1}^d: an unseen pattern may lie in none of them, or in two.

1. Linear relaxation, leaf >= 0, by interior point with crossover. Any prices pi_p of the cells and sigma <= 0 of a leaf
   give reduced costs r_B = cost_B - sigma - sum_{p in B} pi_p, and every partition costs at least

       L + sum of r_B over its boxes,      L = sum_p pi_p + Q sigma.

2. If no r_B is negative, L is a lower bound; else L plus Q times the least r_B is. A box with r_B above U - L is in no
   partition that is better than the tree.
3. The integer program over the remaining boxes finds a good partition, by the solver's bound the best one.
4. A depth-first search over the partitions into the remaining boxes, cell by cell, whose reduced costs sum to less than
   U - L, proves it: it trusts neither the solver's prices nor its bound.

The costs are lower ends (:mod:`formulations.leaves.cost`). If the upper ends of the partition found do not meet the
bound, the lower ends of its boxes are computed from rows, and the steps are repeated.

Costs are in units of U, which makes the tolerances of the solver relative.

*The search of step 4.* A partition costs at least L plus its reduced costs; boxes that are still to come add at least
the least reduced cost each, if that is negative. The search extends a set of disjoint boxes by a box that holds the
uncovered cell with the fewest candidates, in ascending order of reduced costs, and stops where the sum reaches the
gap U - L. Sets of cells are bits of integers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from formulations.arrays import BoolArray, FloatArray, IntArray
from formulations.certificate import Certificate, certify, clock
from formulations.leaves.box_costs import BoxCosts, Literals, members_of, subset_of_rank
from formulations.leaves.cost import LeafCost, PatternRows
from formulations.linear_solver import closed_gap, highs_version, require_solver, solve_linear, time_left, trusted
from formulations.names import box_name, feature_names_of, pattern_name, require_distinct
from formulations.set_partition import SetPartition, build_set_partition
from formulations.trees.dynamic_program import ILL_CONDITIONED, ROUNDING, Refinement, Tree, leaves_of, tolerance_of

# Most steps of a search; after a longer one, the bound is that of HiGHS.
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


@dataclass(frozen=True)
class BoxPartitionProblem:
    """Data of the program.

    Attributes
    ----------
    patterns : bool array of shape (cells, d)
        One pattern of each cell.
    cell_names : list of str
        PATTERNS: the cells as text, by the features that may be split on.
    boxes : list of (k, rank, v)
        The boxes B, numbered as in :class:`~formulations.leaves.box_costs.BoxCosts`.
    box_names : list of str
        BOXES: the same as text.
    cost : array
        Of each box.
    rows : int array
        Of each box.
    cells : list of int arrays
        The cells of each box, ascending.
    max_leaves : int
        Q.
    """

    patterns: BoolArray
    cell_names: list[str]
    boxes: list[tuple[int, int, int]]
    box_names: list[str]
    cost: FloatArray
    rows: IntArray
    cells: list[IntArray]
    max_leaves: int


def box_partition_problem(
    rows: PatternRows,
    boxes: BoxCosts,
    max_leaves: int,
    names: Sequence[str] | None = None,
    most: float = np.inf,
) -> BoxPartitionProblem:
    """Data of the program from enumerated boxes.

    Parameters
    ----------
    rows : PatternRows
        The rows for which costs were computed.
    boxes : BoxCosts
        Costs of all boxes with at most D literals.
    max_leaves : int
        Q.
    names : list of str, optional
        Names of all features; x0, x1, .. by default.
    most : float
        Boxes that cost more are left out.

    Examples
    --------
    >>> patterns, codes = np.array([[False], [True]]), np.array([0, 0, 1, 1])
    >>> rows = PatternRows.of(patterns, codes, np.zeros((4, 0)), np.array([1.0, 1.0, 3.0, 3.0]), np.ones(4))
    >>> boxes = BoxCosts(np.array([0]), 1, [np.array([[4.0]]), np.array([[0.0, 0.0]])])
    >>> problem = box_partition_problem(rows, boxes, max_leaves=2, names=["age"])
    >>> problem.box_names, problem.cell_names
    (['all patterns', 'age observed', 'age missing'], ['nothing missing', 'missing age'])
    """
    names = feature_names_of(names, rows.patterns.shape[1])
    distinct, first, code = np.unique(rows.patterns[:, boxes.features], axis=0, return_index=True, return_inverse=True)
    count = np.bincount(code.ravel(), rows.counts, len(distinct)).astype(int)
    listed, cost, cells = [], [], []
    seen: set[bytes] = set()
    for k, level in enumerate(boxes.costs):
        bits, corners = 1 << np.arange(k), np.arange(1 << k)
        for rank, costs in enumerate(level):
            side = distinct[:, list(subset_of_rank(rank, k))] @ bits
            order = np.argsort(side, kind="stable")
            ends = np.searchsorted(side[order], corners, side="right")
            held = np.split(order, ends[:-1])
            for v in np.flatnonzero(np.isfinite(costs) & (costs <= most)).tolist():
                key = held[v].tobytes()
                if key not in seen:
                    seen.add(key)
                    listed.append((k, rank, v))
                    cost.append(costs[v])
                    cells.append(held[v])
    box_names = [box_name(boxes.literals(*box), names) for box in listed]
    cell_names = [pattern_name(cell, [names[j] for j in boxes.features]) for cell in distinct]
    require_distinct(box_names, len(box_names))
    require_distinct(cell_names, len(cell_names))
    return BoxPartitionProblem(
        patterns=rows.patterns[first],
        cell_names=cell_names,
        boxes=listed,
        box_names=box_names,
        cost=np.array(cost),
        rows=np.array([count[held].sum() for held in cells]),
        cells=cells,
        max_leaves=max_leaves,
    )


def build_box_partition(
    problem: BoxPartitionProblem, unit: float = 1.0, integer: bool = True, retained: IntArray | None = None
) -> Any:
    """The program with the names of the module docstring.

    Parameters
    ----------
    problem : BoxPartitionProblem
        Its data.
    unit : float
        Costs are divided by it in the objective.
    integer : bool
        Whether variables are binary.
    retained : int array, optional
        The boxes that may be leaves; all by default.

    Examples
    --------
    >>> names, cells = ["all patterns", "age observed", "age missing"], [np.array([0, 1]), np.array([0]), np.array([1])]
    >>> problem = BoxPartitionProblem(
    ...     patterns=np.array([[False], [True]]), cell_names=["nothing missing", "missing age"],
    ...     boxes=[(0, 0, 0), (1, 0, 0), (1, 0, 1)], box_names=names, cost=np.array([4.0, 0.0, 0.5]),
    ...     rows=np.array([9, 5, 4]), cells=cells, max_leaves=2,
    ... )
    >>> print(build_box_partition(problem).cover["missing age"].expr)
    leaf[all patterns] + leaf[age missing]  ==  1
    """
    numbers = range(len(problem.boxes)) if retained is None else retained.tolist()
    listed = SetPartition(
        patterns=problem.cell_names,
        members={problem.box_names[B]: problem.cells[B].tolist() for B in numbers},
        cost={problem.box_names[B]: float(problem.cost[B]) for B in numbers},
        rows={problem.box_names[B]: int(problem.rows[B]) for B in numbers},
        max_leaves=problem.max_leaves,
        unit=unit,
        kind="BOXES",
    )
    return build_set_partition(listed, integer)


def solve_box_partition(
    leaf_cost: LeafCost,
    boxes: BoxCosts,
    max_leaves: int,
    *,
    start: Tree,
    solver: str = "highs",
    time_limit: float | None = None,
) -> tuple[list[Literals], Certificate]:
    """The best partition into boxes, or the best one found within the time limit.

    Parameters
    ----------
    leaf_cost : LeafCost
        The data for which the boxes were enumerated.
    boxes : BoxCosts
    max_leaves : int
        Q.
    start : tree
        A tree over these boxes with at most Q leaves, preferably the best one: the result is never worse.
    solver : str
        Solver of the integer program; the relaxation is solved with HiGHS.
    time_limit : float, optional
        Seconds.
    """
    started = clock()
    require_solver(solver)
    search = _Search(leaf_cost, boxes, max_leaves, leaves_of(start), solver, time_limit, started)
    try:
        while not search.closed and time_left(time_limit, started) != 0:
            if not search.improve():
                break
    except KeyboardInterrupt:
        search.status = "interrupted"
    return search.leaves, search.certificate()


class _Search:
    """The best partition found, its bound, and the steps of the module."""

    def __init__(
        self,
        leaf_cost: LeafCost,
        boxes: BoxCosts,
        max_leaves: int,
        leaves: list[Literals],
        solver: str,
        time_limit: float | None,
        started: float,
    ) -> None:
        self.leaf_cost, self.boxes, self.max_leaves = leaf_cost, boxes, max_leaves
        self.refinement = Refinement(leaf_cost, boxes)
        self.leaves, self.objective = leaves, self.refinement.upper(leaves)
        self.bound, self.rigorous, self.status = 0.0, True, "time limit"  # no loss is negative
        self.solver, self.version = "HIGHS", highs_version()
        self.integer_solver, self.time_limit, self.started = solver, time_limit, started
        self.problem: BoxPartitionProblem | None = None

    def certificate(self) -> Certificate:
        reason = ILL_CONDITIONED if self.status == "optimal" else self.status
        return certify(
            self.objective,
            self.bound,
            self.tolerance,
            reason,
            self.solver,
            self.version,
            self.started,
            rigorous=self.rigorous,
        )

    @property
    def tolerance(self) -> float:
        """The largest gap that counts as closed: to the bound of a solver, what its tolerances leave."""
        tolerance = tolerance_of(self.leaf_cost, self.objective)
        return tolerance if self.rigorous else closed_gap(tolerance, self.objective, self.solver)

    @property
    def closed(self) -> bool:
        return self.objective - self.bound <= self.tolerance

    def raise_bound(self, bound: float, rigorous: bool) -> None:
        if bound > self.bound:
            self.bound, self.rigorous = bound, rigorous

    def improve(self) -> bool:
        """One round of the steps; returns whether lower ends were refined, so that another round may close the gap."""
        if self.problem is None:
            rows = self.leaf_cost.rows
            self.problem = box_partition_problem(rows, self.boxes, self.max_leaves, most=self.objective)
        problem, unit, everything = self.problem, self.objective, np.arange(len(self.problem.boxes))
        problem.cost[:] = [self.boxes.costs[k][rank, v] for k, rank, v in problem.boxes]
        model = build_box_partition(problem, unit, integer=False)
        root = solve_linear(
            model,
            list(model.leaf.values()),
            time_limit=time_left(self.time_limit, self.started),
            upper=1.0,
            options={"solver": "ipm", "run_crossover": "on"},
        )
        self.status, self.solver, self.version = root.status, root.solver, root.version
        taken = self._take(everything, root.values)
        if root.status != "optimal" or not root.duals:
            return False
        pi = unit * np.array([root.duals[id(row)] for row in model.cover.values()])
        sigma = unit * min(0.0, root.duals[id(model.leaves)])
        self._close(everything, pi, sigma, unit)
        if self.closed or not self.rigorous:
            return False
        return bool(self.refinement.refine(taken or self.leaves) or self.refinement.refine(self.leaves))

    def _close(self, everything: IntArray, pi: FloatArray, sigma: float, unit: float) -> None:
        """Steps 2 to 4, from the prices of the relaxation."""
        problem = self.problem
        assert problem is not None
        paid = np.array([pi[cells].sum() for cells in problem.cells])
        # error of any sum below
        size = float(problem.cost.max() + np.abs(pi).sum()) + self.max_leaves * abs(sigma)
        error = (len(pi) + 8) * 2.0**-52 * size
        reduced = problem.cost - sigma - paid - error
        L = float(pi.sum()) + self.max_leaves * sigma - error
        self.raise_bound(L + self.max_leaves * min(0.0, float(reduced.min(initial=0.0))), True)
        if self.closed:
            return
        retained = everything[reduced + self.max_leaves * min(0.0, float(reduced.min())) <= self.objective - L]
        model = build_box_partition(problem, unit, retained=retained)
        held = {members_of(problem.patterns, leaf).tobytes() for leaf in self.leaves}
        rest = solve_linear(
            model,
            list(model.leaf.values()),
            solver=self.integer_solver,
            time_limit=time_left(self.time_limit, self.started),
            start=np.array([float(problem.cells[B].tobytes() in held) for B in retained]),
        )
        self.status, self.solver, self.version = rest.status, rest.solver, rest.version
        self._take(retained, rest.values)
        found = best_partition(
            problem.cells, problem.cost, reduced, retained, self.max_leaves, self.objective, L, len(problem.patterns)
        )
        if found is not None:
            self.raise_bound(min(self.objective, found[1]) * (1.0 - ROUNDING - self.max_leaves * 2.0**-52), True)
            self._take_boxes(found[0])
        elif np.isfinite(rest.bound):  # infinite if "infeasible", which would be wrong: the start is retained
            bound = min(self.objective, trusted(rest.bound, rest.solver) * unit)
            self.raise_bound(bound, False)
            left = self.objective - bound
            if not self.closed and left <= closed_gap(self.tolerance, self.objective, rest.solver):
                self.rigorous = False  # the bound of the relaxation is above that of the solver, which closes the gap

    def _take(self, retained: IntArray, values: FloatArray | None) -> list[Literals]:
        """Accept the values of a program if they are a partition; returns its boxes."""
        if values is None:
            return []
        assert self.problem is not None
        selected = retained[values > 0.5]
        cover = np.zeros(len(self.problem.patterns), dtype=int)
        for B in selected:
            cover[self.problem.cells[B]] += 1
        is_partition = bool((cover == 1).all()) and len(selected) <= self.max_leaves
        return self._take_boxes(selected.tolist()) if is_partition else []

    def _take_boxes(self, selected: list[int]) -> list[Literals]:
        """Accept a partition if it is better by more than rounding; a tie retains the tree."""
        assert self.problem is not None
        leaves = [self.boxes.literals(*self.problem.boxes[B]) for B in selected]
        cost = self.refinement.upper(leaves) if leaves else np.inf
        if cost < self.objective * (1.0 - ROUNDING):
            self.leaves, self.objective = leaves, cost
        return leaves
