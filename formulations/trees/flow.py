"""The best tree of missingness patterns as a mixed-integer program (the open question at the end of Section 2.2).

Sets        B = (S, v)   boxes with at most D literals, see :mod:`formulations.leaves.box_costs`; splitting B on j not
                         in S gives the sides Bj0 and Bj1
Data        c_B          cost of B as a leaf; boxes with too few rows have no variable x_B
            Q            most leaves
Variables   x_B   >= 0   1 if B is a leaf
            y_Bj  >= 0   1 if B is split on j, |S| <= D - 2
            z_B   >= 0   1 if B, |S| = D - 1, is split a last time, into two leaves
Objective   min  sum_B c_B x_B + sum_B e_B z_B,      e_B = min over j of c_Bj0 + c_Bj1
Constraints flow   x_B + z_B + sum_j y_Bj = inflow of B, for every B
                   inflow of the root is 1; of any other box, the sum over its literals j of y_(B without j),j
            leaves sum_B x_B + 2 sum_B z_B <= Q

A split gives a box two children at once: this is a flow in an AND/OR graph. Without the row ``leaves`` its linear
relaxation has an integral optimum, so the variables are continuous and have no upper bounds; integrality is declared
only if the row can bind, Q < 2^D, and always checked: fractional values of an interrupted solve are not a tree.
Considering only the best last split is exact, as every last split has two leaves.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from formulations.arrays import FloatArray
from formulations.certificate import Certificate, certify, clock
from formulations.leaves.box_costs import BoxCosts, subset_of_rank
from formulations.linear_solver import HIGHS_TOLERANCE, require_solver, solve_linear, time_left
from formulations.trees.dynamic_program import CLOSED, NOISE, Tree, tree_cost

Box = tuple[tuple[int, ...], tuple[int, ...]]
# Values this close to 0 and 1 count as integral: the default of HiGHS.
INTEGRAL = 1e-6


@dataclass(frozen=True)
class OptimalTreeProblem:
    """Data of the program; boxes are identified by their index in a list, the root first.

    Attributes
    ----------
    boxes : list of (S, v)
        Boxes with at most D - 1 literals; elements of S are indices into the list of features.
    cost : list of float
        c_B of each.
    sides : dict
        For each box B with at most D - 2 literals and each j, the indices of Bj0 and Bj1.
    last_split : dict
        For each box with D - 1 literals that can be split, e_B and the j of its split.
    depth, max_leaves : int
        D and Q.
    """

    boxes: list[Box]
    cost: list[float]
    sides: dict[tuple[int, int], tuple[int, int]]
    last_split: dict[int, tuple[float, int]]
    depth: int
    max_leaves: int


def optimal_tree_problem(boxes: BoxCosts, max_leaves: int) -> OptimalTreeProblem:
    """Data of the program from enumerated boxes."""
    depth, n_features = boxes.depth, len(boxes.features)
    listed: list[Box] = []
    cost: list[float] = []
    for k in range(max(depth, 1)):
        for rank, row in enumerate(boxes.costs[k].tolist()):
            S = subset_of_rank(rank, k)
            listed += [(S, tuple(v >> i & 1 for i in range(k))) for v in range(1 << k)]
            cost += row
    index = {box: B for B, box in enumerate(listed)}
    sides = {
        (B, j): (index[observed], index[missing])
        for B, box in enumerate(listed)
        if len(box[0]) <= depth - 2
        for j in range(n_features)
        if j not in box[0]
        for observed, missing in [sides_of(box, j)]
    }
    last = {}
    if depth:
        best, feature = _last_splits(boxes)
        first = len(listed) - best.size
        last = {
            first + i: (value, j)
            for i, (value, j) in enumerate(zip(best.ravel().tolist(), feature.ravel().tolist(), strict=True))
            if np.isfinite(value)
        }
    return OptimalTreeProblem(listed, cost, sides, last, depth, min(max_leaves, 1 << depth))


def _last_splits(boxes: BoxCosts) -> tuple[np.ndarray, np.ndarray]:
    """The best split of every box with D - 1 literals, and its feature."""
    k = boxes.depth
    best = np.full(boxes.costs[k - 1].shape, np.inf)
    feature = np.full(best.shape, -1)
    ranks = {subset_of_rank(rank, k - 1): rank for rank in range(len(best))}
    for rank in range(len(boxes.costs[k])):
        S = subset_of_rank(rank, k)
        sides = boxes.costs[k][rank]
        for i, j in enumerate(S):
            pairs = sides.reshape(1 << (k - 1 - i), 2, 1 << i).sum(axis=1).ravel()
            parent = ranks[S[:i] + S[i + 1 :]]
            better = (pairs < best[parent]) | ((pairs == best[parent]) & np.isfinite(pairs) & (j < feature[parent]))
            best[parent] = np.where(better, pairs, best[parent])
            feature[parent] = np.where(better, j, feature[parent])
    return best, feature


def sides_of(box: Box, j: int) -> tuple[Box, Box]:
    """The sides of a box with j observed and with j missing."""
    S, v = box
    i = sum(element < j for element in S)
    extended = (*S[:i], j, *S[i:])
    return (extended, (*v[:i], 0, *v[i:])), (extended, (*v[:i], 1, *v[i:]))


def build_optimal_tree(problem: OptimalTreeProblem, unit: float = 1.0) -> Any:
    """The program, in the order and with the names of the module docstring; costs are divided by ``unit``."""
    import pyomo.environ as pyo

    binding = problem.max_leaves < 1 << problem.depth
    domain = pyo.Binary if binding else pyo.NonNegativeReals
    leaves = [B for B, cost in enumerate(problem.cost) if np.isfinite(cost)]

    model = pyo.ConcreteModel()
    model.x = pyo.Var(leaves, domain=domain)
    model.y = pyo.Var(list(problem.sides), domain=domain)
    model.z = pyo.Var(list(problem.last_split), domain=domain)
    model.cost = pyo.Objective(
        expr=pyo.quicksum(problem.cost[B] / unit * model.x[B] for B in leaves)
        + pyo.quicksum(e / unit * model.z[B] for B, (e, _) in problem.last_split.items())
    )

    outflow: list[list[Any]] = [[] for _ in problem.boxes]
    inflow: list[list[Any]] = [[] for _ in problem.boxes]
    for variables in (model.x, model.z):
        for B, variable in variables.items():
            outflow[B].append(variable)
    for (B, j), variable in model.y.items():
        outflow[B].append(variable)
        for side in problem.sides[B, j]:
            inflow[side].append(variable)
    model.flow = pyo.Constraint(
        range(len(problem.boxes)),
        rule=lambda model, B: (
            pyo.quicksum(outflow[B]) - pyo.quicksum(inflow[B]) == (1 if B == 0 else 0)
            if outflow[B] or inflow[B]
            else pyo.Constraint.Skip
        ),
    )
    if binding:
        total = pyo.quicksum(model.x.values()) + 2 * pyo.quicksum(model.z.values())
        model.leaves = pyo.Constraint(expr=total <= problem.max_leaves)
    return model


def solve_optimal_tree(
    boxes: BoxCosts,
    max_leaves: int,
    *,
    start: Tree = None,
    solver: str = "highs",
    time_limit: float | None = None,
) -> tuple[Tree, Certificate]:
    """The best tree for the given costs, or the best one found within the time limit, never worse than ``start``.

    The bound is the solver's, computed in floating point.
    """
    started = clock()
    require_solver(solver)
    unit = tree_cost(boxes, start) or 1.0  # makes the tolerances of the solver relative
    trees, bound, status, version = [start], 0.0, "interrupted", ""
    try:
        problem = optimal_tree_problem(boxes, max_leaves)
        model = build_optimal_tree(problem, unit)
        keys = [(name, key) for name in ("x", "y", "z") for key in getattr(model, name)]
        solution = solve_linear(
            model,
            [getattr(model, name)[key] for name, key in keys],
            solver=solver,
            time_limit=time_left(time_limit, started),
            start=_values_of(start, problem, boxes, keys),
            upper=1.0,
            options={"presolve": "off"} if hasattr(model, "leaves") else {},
        )
        status, version = solution.status, solution.version
        bound = max(solution.bound * unit * (1.0 - HIGHS_TOLERANCE), 0.0)  # no loss is negative
        if solution.values is not None and np.abs(solution.values - np.round(solution.values)).max() <= INTEGRAL:
            trees.append(_tree_of(problem, boxes, keys, solution.values))
    except KeyboardInterrupt:
        pass
    objective, tree = min(((tree_cost(boxes, tree), tree) for tree in trees), key=lambda pair: pair[0])
    tolerance = max(CLOSED * abs(objective), NOISE * boxes.costs[0].item())
    name = "HIGHS" if solver == "highs" else solver
    return tree, certify(objective, bound, tolerance, status, name, version, started, rigorous=False)


def _values_of(tree: Tree, problem: OptimalTreeProblem, boxes: BoxCosts, keys: list[tuple[str, Any]]) -> FloatArray:
    """The variables x, y, z of a tree, with its last splits replaced by the best ones."""
    marked: set[tuple[str, Any]] = set()

    def mark(below: Tree, B: int) -> None:
        if below is None:
            marked.add(("x", B))
        elif len(problem.boxes[B][0]) == problem.depth - 1:
            marked.add(("z", B))
        else:
            j = int(np.searchsorted(boxes.features, below[0]))
            marked.add(("y", (B, j)))
            for side, rest in zip(problem.sides[B, j], below[1:], strict=True):
                mark(rest, side)

    mark(tree, 0)
    return np.array([float(key in marked) for key in keys])


def _tree_of(problem: OptimalTreeProblem, boxes: BoxCosts, keys: list[tuple[str, Any]], values: FloatArray) -> Tree:
    """The tree that integral values encode."""
    selected = [key for key, value in zip(keys, values, strict=True) if value > 0.5]
    split = dict(key for name, key in selected if name == "y")
    last = {key for name, key in selected if name == "z"}

    def grow(B: int) -> Tree:
        if B in last:
            return int(boxes.features[problem.last_split[B][1]]), None, None
        if B not in split:
            return None
        observed, missing = problem.sides[B, split[B]]
        return int(boxes.features[split[B]]), grow(observed), grow(missing)

    return grow(0)
