"""The best cover of the observed patterns by disjoint boxes, as set partitioning.

Sets        p            cells: observed patterns that differ on the features allowed to split on
            B            boxes with at most D literals, see :mod:`formulations.leaves.boxes`; of boxes that hold the same
                         cells only the one with fewest literals
Data        c_B          cost of B as a leaf; boxes with too few rows are left out
            Q            most leaves
            U            cost of the best tree, which is such a cover
Variables   x_B in {0,1} 1 where B is a leaf
Objective   min  sum_B c_B x_B
Constraints cover   sum_{B holds p} x_B = 1, for every p
            leaves  sum_B x_B <= Q

The boxes are disjoint on the cells, not on all of {0,1}^d: a pattern never seen may lie in none of them, or in two.

1. Linear relaxation, x >= 0, by interior point with crossover. Weak duality gives L <= min and reduced costs r_B.
2. A partition with x_B = 1 costs at least L + r_B: where that is above U, B is in no partition better than the tree.
3. The integer program over the boxes that are left, with optimum V. A partition costs at least min{U, V}.

Costs are handed over in units of U, so that the tolerances of the solver are relative.
"""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from formulations.arrays import BoolArray, FloatArray, IntArray
from formulations.certificate import Certificate
from formulations.leaves.boxes import BoxCosts, members_of, subset_of_rank
from formulations.leaves.cost import LeafCost
from formulations.linear_solver import LinearSolution, highs_version, require_solver, solve_linear, time_left
from formulations.trees.dynamic_program import Tree, leaves_of
from formulations.trees.flow import CLOSED, tree_cost

# A box as pairs of feature and whether it is missing.
Literals = list[tuple[int, bool]]
# Fixing leaves room for rounding: only boxes that are worse than U by more than this share are dropped.
ROUNDING = 1e-9
# Costs that differ by less than this share are equal.
TIE = 1e-12


@dataclass(frozen=True)
class BoxPartitionProblem:
    """Data of the program.

    Attributes
    ----------
    patterns : bool array of shape (cells, d)
        One pattern of each cell.
    boxes : list of (k, rank, v)
        The boxes B, as :class:`~formulations.leaves.boxes.BoxCosts` numbers them.
    cost : array
        c_B.
    cells : list of int arrays
        The cells that each box holds, ascending.
    max_leaves : int
        Q.
    """

    patterns: BoolArray
    boxes: list[tuple[int, int, int]]
    cost: FloatArray
    cells: list[IntArray]
    max_leaves: int


def box_partition_problem(
    patterns: BoolArray, boxes: BoxCosts, max_leaves: int, most: float = np.inf
) -> BoxPartitionProblem:
    """The data from enumerated boxes; those that cost more than ``most`` are left out."""
    distinct, first = np.unique(patterns[:, boxes.features], axis=0, return_index=True)
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
    return BoxPartitionProblem(patterns[first], listed, np.array(cost), cells, max_leaves)


def build_box_partition(problem: BoxPartitionProblem, kept: IntArray, unit: float, relaxed: bool) -> Any:
    """The program over the boxes that are kept, in the order and with the names of the module's docstring."""
    import pyomo.environ as pyo

    model = pyo.ConcreteModel()
    model.x = pyo.Var(kept.tolist(), domain=pyo.NonNegativeReals if relaxed else pyo.Binary)
    model.cost = pyo.Objective(expr=pyo.quicksum(problem.cost[B] / unit * x for B, x in model.x.items()))

    holding: list[list[Any]] = [[] for _ in problem.patterns]
    for B, x in model.x.items():
        for p in problem.cells[B].tolist():
            holding[p].append(x)
    model.cover = pyo.Constraint(range(len(holding)), rule=lambda model, p: pyo.quicksum(holding[p]) == 1)
    model.leaves = pyo.Constraint(expr=pyo.quicksum(model.x.values()) <= problem.max_leaves)
    return model


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
        The data set that the boxes were enumerated for.
    boxes : BoxCosts
    max_leaves : int
        Q.
    start : tree
        A tree over these boxes with at most Q leaves, best the best one: the result is never worse.
    solver : str
        Solver of the integer program; the relaxation is solved with HiGHS.
    time_limit : float, optional
        Seconds.
    """
    began = time.perf_counter()
    require_solver(solver)
    # No loss is negative.
    best = _Best(leaves_of(start), tree_cost(boxes, start), 0.0, "time limit", "HIGHS", highs_version())
    try:
        if not best.closed and time_left(time_limit, began) != 0:
            problem = box_partition_problem(leaf_cost.rows.patterns, boxes, max_leaves, best.objective)
            _improve(best, problem, boxes, solver, time_limit, began)
    except KeyboardInterrupt:
        best.status = "interrupted"
    unproven = best.status if best.status != "optimal" else "not proven to the tolerance"
    return best.leaves, Certificate(
        objective=best.objective,
        bound=min(best.bound, best.objective),
        status="optimal" if best.closed else unproven,
        solver=best.solver,
        version=best.version,
        seconds=time.perf_counter() - began,
    )


@dataclass
class _Best:
    """The best partition found, what is proven, and what the last solver said."""

    leaves: list[Literals]
    objective: float
    bound: float
    status: str
    solver: str
    version: str

    @property
    def closed(self) -> bool:
        return self.objective - self.bound <= CLOSED * abs(self.objective)

    def take(self, problem: BoxPartitionProblem, boxes: BoxCosts, kept: IntArray, solution: LinearSolution) -> None:
        """The solution, where it is a partition and better by more than rounding: of equals the tree is kept."""
        self.status, self.solver, self.version = solution.status, solution.solver, solution.version
        if solution.values is None:
            return
        chosen = kept[solution.values > 0.5]
        cover = np.zeros(len(problem.patterns), dtype=int)
        for B in chosen:
            cover[problem.cells[B]] += 1
        cost = float(problem.cost[chosen].sum())
        if (cover == 1).all() and len(chosen) <= problem.max_leaves and cost < self.objective * (1.0 - TIE):
            self.leaves, self.objective = [boxes.literals(*problem.boxes[B]) for B in chosen], cost


def _improve(
    best: _Best,
    problem: BoxPartitionProblem,
    boxes: BoxCosts,
    solver: str,
    time_limit: float | None,
    began: float,
) -> None:
    """The three steps of the module's docstring."""
    unit, kept = best.objective, np.arange(len(problem.boxes))
    model = build_box_partition(problem, kept, unit, relaxed=True)
    root = solve_linear(
        model,
        list(model.x.values()),
        time_limit=time_left(time_limit, began),
        upper=1.0,
        options={"solver": "ipm", "run_crossover": "on"},
    )
    best.bound = max(best.bound, root.bound * unit)
    best.take(problem, boxes, kept, root)
    if best.closed or root.status != "optimal":
        return

    U = best.objective
    if root.reduced_costs is not None:
        kept = np.flatnonzero(root.bound * unit + root.reduced_costs * unit <= U * (1.0 + ROUNDING))
    model = build_box_partition(problem, kept, unit, relaxed=False)
    held = {members_of(problem.patterns, leaf).tobytes() for leaf in best.leaves}
    rest = solve_linear(
        model,
        list(model.x.values()),
        solver=solver,
        time_limit=time_left(time_limit, began),
        start=np.array([float(problem.cells[B].tobytes() in held) for B in kept]),
    )
    if np.isfinite(rest.bound):  # "infeasible" would be infinite, and wrong: the boxes of the start are kept
        best.bound = max(best.bound, min(U, rest.bound * unit))
    best.take(problem, boxes, kept, rest)
