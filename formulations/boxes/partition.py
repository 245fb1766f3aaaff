"""The best cover of the observed patterns by disjoint boxes, as set partitioning.

Sets        p            cells: observed patterns that differ on the features allowed to split on
            B            boxes with at most D literals, see :mod:`formulations.leaves.box_costs`; of boxes with the same
                         cells, only the one with fewest literals
Data        c_B          cost of B as a leaf; boxes with too few rows are left out
            Q            most leaves
            U            cost of the best tree, which is also a cover
Variables   x_B in {0,1} 1 if B is a leaf
Objective   min  sum_B c_B x_B
Constraints cover   sum_{B holds p} x_B = 1, for every p
            leaves  sum_B x_B <= Q

The boxes are disjoint on the cells, not on all of {0,1}^d: an unseen pattern may lie in none of them, or in two.

1. Linear relaxation, x >= 0, by interior point with crossover. Weak duality gives L <= min and reduced costs r_B.
2. A partition with x_B = 1 costs at least L + r_B: if that is above U, B is in no partition better than the tree.
3. The integer program over the remaining boxes, with optimum V. A partition costs at least min{U, V}.

Costs are in units of U, which makes the tolerances of the solver relative.
"""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from formulations.arrays import BoolArray, FloatArray, IntArray
from formulations.certificate import Certificate, certify
from formulations.leaves.box_costs import BoxCosts, members_of, subset_of_rank
from formulations.leaves.cost import LeafCost
from formulations.linear_solver import LinearSolution, highs_version, require_solver, solve_linear, time_left
from formulations.trees.dynamic_program import Tree, leaves_of, tree_cost
from formulations.trees.flow import CLOSED

# A box as pairs (feature, whether it is missing).
Literals = list[tuple[int, bool]]
# Room for rounding: only boxes that are worse than U by more than this share are dropped.
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
        The boxes B, numbered as in :class:`~formulations.leaves.box_costs.BoxCosts`.
    cost : array
        c_B.
    cells : list of int arrays
        The cells of each box, ascending.
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
    """Data of the program from enumerated boxes; those that cost more than ``most`` are left out."""
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


def build_box_partition(problem: BoxPartitionProblem, retained: IntArray, unit: float, relaxed: bool) -> Any:
    """The program over the retained boxes, in the order and with the names of the module docstring."""
    import pyomo.environ as pyo

    model = pyo.ConcreteModel()
    model.x = pyo.Var(retained.tolist(), domain=pyo.NonNegativeReals if relaxed else pyo.Binary)
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
    started = time.perf_counter()
    require_solver(solver)
    # No loss is negative.
    best = _Best(leaves_of(start), tree_cost(boxes, start), 0.0, "time limit", "HIGHS", highs_version())
    try:
        if not best.closed and time_left(time_limit, started) != 0:
            problem = box_partition_problem(leaf_cost.rows.patterns, boxes, max_leaves, best.objective)
            _improve(best, problem, boxes, solver, time_limit, started)
    except KeyboardInterrupt:
        best.status = "interrupted"
    tolerance = CLOSED * abs(best.objective)
    return best.leaves, certify(best.objective, best.bound, tolerance, best.status, best.solver, best.version, started)


@dataclass
class _Best:
    """The best partition found, its bound, and the status of the last solver."""

    leaves: list[Literals]
    objective: float
    bound: float
    status: str
    solver: str
    version: str

    @property
    def closed(self) -> bool:
        return self.objective - self.bound <= CLOSED * abs(self.objective)

    def take(self, problem: BoxPartitionProblem, boxes: BoxCosts, retained: IntArray, solution: LinearSolution) -> None:
        """Accept a solution if it is a partition and better by more than rounding; a tie retains the tree."""
        self.status, self.solver, self.version = solution.status, solution.solver, solution.version
        if solution.values is None:
            return
        selected = retained[solution.values > 0.5]
        cover = np.zeros(len(problem.patterns), dtype=int)
        for B in selected:
            cover[problem.cells[B]] += 1
        cost = float(problem.cost[selected].sum())
        if (cover == 1).all() and len(selected) <= problem.max_leaves and cost < self.objective * (1.0 - TIE):
            self.leaves, self.objective = [boxes.literals(*problem.boxes[B]) for B in selected], cost


def _improve(
    best: _Best,
    problem: BoxPartitionProblem,
    boxes: BoxCosts,
    solver: str,
    time_limit: float | None,
    started: float,
) -> None:
    """The three steps of the module docstring."""
    unit, retained = best.objective, np.arange(len(problem.boxes))
    model = build_box_partition(problem, retained, unit, relaxed=True)
    root = solve_linear(
        model,
        list(model.x.values()),
        time_limit=time_left(time_limit, started),
        upper=1.0,
        options={"solver": "ipm", "run_crossover": "on"},
    )
    best.bound = max(best.bound, root.bound * unit)
    best.take(problem, boxes, retained, root)
    if best.closed or root.status != "optimal":
        return

    U = best.objective
    if root.reduced_costs is not None:
        retained = np.flatnonzero(root.bound * unit + root.reduced_costs * unit <= U * (1.0 + ROUNDING))
    model = build_box_partition(problem, retained, unit, relaxed=False)
    held = {members_of(problem.patterns, leaf).tobytes() for leaf in best.leaves}
    rest = solve_linear(
        model,
        list(model.x.values()),
        solver=solver,
        time_limit=time_left(time_limit, started),
        start=np.array([float(problem.cells[B].tobytes() in held) for B in retained]),
    )
    if np.isfinite(rest.bound):  # infinite if "infeasible", which would be wrong: the boxes of the start are retained
        best.bound = max(best.bound, min(U, rest.bound * unit))
    best.take(problem, boxes, retained, rest)
