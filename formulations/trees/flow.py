"""The best tree of missingness patterns as a mixed-integer program (the open question at the end of Section 2.2).

Sets        FEATURES    features that may be split on
            BOXES       "all patterns", and boxes such as "income missing, age observed": at most D literals
            SPLITS      pairs (B, j) of a box and a feature; its two sides are B with j observed and B with j missing
Params      cost_B      cost of B as a leaf
            rows_B      rows in B
            max_leaves  Q
            unit        a typical cost, which makes the tolerances of solvers relative
Variables   leaf_B   >= 0    1 if B is a leaf
            split_Bj >= 0    1 if B is split on j
Objective   min  sum_B cost_B leaf_B / unit
Constraints flow    leaf_B + sum_j split_Bj = inflow of B, for every B
                    inflow of "all patterns" is 1; of any other box, the sum of split_Aj over the (A, j) it is a side of
            leaves  sum_B leaf_B <= max_leaves

A box is split only if both sides have enough rows. With ``last_splits="all"`` every such pair is in SPLITS. With
"best", of the splits of a box with D - 1 literals only the cheapest is: every last split has two leaves, so the
optimum is the same, and the program is a fraction of the size. It is not the same under other constraints, for example
on features.

A split gives a box two children at once: this is a flow in an AND/OR graph. If Q >= 2^D, the linear relaxation has an
integral optimum. So the variables are continuous and have no upper bounds, and are declared binary only if the optimum
of the relaxation is fractional.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from formulations.arrays import FloatArray
from formulations.certificate import Certificate, certify, clock
from formulations.leaves.box_costs import BoxCosts, Literals, subset_of_rank
from formulations.leaves.cost import PatternRows
from formulations.linear_solver import closed_gap, is_integral, require_solver, solve_integral, time_left, trusted
from formulations.names import ROOT, box_name, feature_names_of, require_distinct
from formulations.trees.dynamic_program import CLOSED, NOISE, Tree, leaves_of

LAST_SPLITS = ("all", "best")
# The set S of a box, as indices into the list of features, and the values of the indicators in S.
Box = tuple[tuple[int, ...], tuple[int, ...]]


@dataclass(frozen=True)
class OptimalTreeProblem:
    """Data of the program.

    Attributes
    ----------
    features : dict of str to int
        Names and indices of the features that may be split on.
    literals : dict of str to list
        BOXES with their literals, "all patterns" first.
    cost, rows : dict of str to number
        Of each box.
    sides : dict of (str, str) to (str, str)
        SPLITS with the side where the feature is observed and the side where it is missing.
    max_leaves : int
        Q.
    unit : float
        Costs are divided by it in the objective.
    """

    features: dict[str, int]
    literals: dict[str, Literals]
    cost: dict[str, float]
    rows: dict[str, int]
    sides: dict[tuple[str, str], tuple[str, str]]
    max_leaves: int
    unit: float = 1.0


def optimal_tree_problem(
    boxes: BoxCosts,
    rows: PatternRows,
    max_leaves: int,
    names: Sequence[str] | None = None,
    last_splits: str = "best",
    start: Tree = None,
) -> OptimalTreeProblem:
    """Data of the program from enumerated boxes.

    Parameters
    ----------
    boxes : BoxCosts
        Costs of all boxes with at most D literals.
    rows : PatternRows
        The rows for which they were computed.
    max_leaves : int
        Q.
    names : list of str, optional
        Names of all features; x0, x1, .. by default.
    last_splits : {"best", "all"}
        Which last splits of each box are in the program.
    start : tree, optional
        A good tree, whose cost is the unit; None is the tree without a split.

    Examples
    --------
    >>> patterns, codes = np.array([[False], [True]]), np.array([0, 0, 1, 1])
    >>> rows = PatternRows.of(patterns, codes, np.zeros((4, 0)), np.array([1.0, 1.0, 3.0, 3.0]), np.ones(4))
    >>> boxes = BoxCosts(np.array([0]), 1, [np.array([[4.0]]), np.array([[0.0, 0.0]])])
    >>> problem = optimal_tree_problem(boxes, rows, max_leaves=2, names=["age"])
    >>> list(problem.literals), list(problem.sides)
    (['all patterns', 'age observed', 'age missing'], [('all patterns', 'age')])
    """
    if last_splits not in LAST_SPLITS:
        raise ValueError(f"last_splits must be 'all' or 'best', not {last_splits!r}.")
    names = feature_names_of(names, rows.patterns.shape[1])
    split_names = [names[j] for j in boxes.features]
    cost = {box: value for k in range(boxes.depth + 1) for box, value in _boxes_of_level(boxes.costs[k], k)}
    level: list[Box] = [((), ())]
    listed, splits = list(level), list[tuple[Box, int, Box, Box]]()
    for k in range(boxes.depth):
        sides_of_level: dict[Box, None] = {}
        for box in level:
            possible = _splits_of(box, len(split_names), cost)
            if last_splits == "best" and k == boxes.depth - 1:
                possible = sorted(possible, key=lambda split: (cost[split[2]] + cost[split[3]], split[1]))[:1]
            splits += possible
            sides_of_level |= dict.fromkeys(side for split in possible for side in split[2:])
        level = list(sides_of_level)
        listed += level
    literals = {box: [(int(boxes.features[j]), bool(v)) for j, v in zip(*box, strict=True)] for box in listed}
    name = {box: box_name(literals[box], names) for box in listed}
    require_distinct(name.values(), len(listed))
    require_distinct(split_names, len(split_names))
    count = _box_rows(boxes, rows, listed)
    return OptimalTreeProblem(
        features=dict(zip(split_names, boxes.features.tolist(), strict=True)),
        literals={name[box]: literals[box] for box in listed},
        cost={name[box]: cost[box] for box in listed},
        rows={name[box]: count[box] for box in listed},
        sides={(name[box], split_names[j]): (name[observed], name[missing]) for box, j, observed, missing in splits},
        max_leaves=max_leaves,
        unit=sum(boxes.cost(leaf) for leaf in leaves_of(start)) or 1.0,
    )


def _boxes_of_level(costs: FloatArray, k: int) -> list[tuple[Box, float]]:
    """The boxes with k literals and enough rows, with their costs."""
    values = [tuple(v >> i & 1 for i in range(k)) for v in range(1 << k)]
    return [
        ((subset_of_rank(rank, k), values[v]), value)
        for rank, row in enumerate(costs.tolist())
        for v, value in enumerate(row)
        if value < np.inf
    ]


def _splits_of(box: Box, n_features: int, cost: dict[Box, float]) -> list[tuple[Box, int, Box, Box]]:
    """The splits of a box into two sides with enough rows: box, feature, side observed, side missing."""
    S, v = box
    splits = []
    for j in range(n_features):
        if j in S:
            continue
        i = sum(element < j for element in S)
        extended = (*S[:i], j, *S[i:])
        observed, missing = (extended, (*v[:i], 0, *v[i:])), (extended, (*v[:i], 1, *v[i:]))
        if observed in cost and missing in cost:
            splits.append((box, j, observed, missing))
    return splits


def _box_rows(boxes: BoxCosts, rows: PatternRows, listed: list[Box]) -> dict[Box, int]:
    """The number of rows in each box."""
    patterns = rows.patterns[:, boxes.features]
    by_set: dict[tuple[int, ...], list[int]] = {}
    for S in dict.fromkeys(S for S, _ in listed):
        code = patterns[:, list(S)] @ (1 << np.arange(len(S)))
        by_set[S] = np.bincount(code, rows.counts, 1 << len(S)).astype(int).tolist()
    return {(S, v): by_set[S][sum(bit << i for i, bit in enumerate(v))] for S, v in listed}


def build_optimal_tree(problem: OptimalTreeProblem, integer: bool = False) -> Any:
    """The program, in the order and with the names of the module docstring.

    Parameters
    ----------
    problem : OptimalTreeProblem
        Its data.
    integer : bool
        Whether variables are binary.

    Examples
    --------
    >>> literals = {"all patterns": [], "age observed": [(0, False)], "age missing": [(0, True)]}
    >>> cost, rows = dict(zip(literals, [4.0, 0.0, 0.5])), dict(zip(literals, [9, 5, 4]))
    >>> sides = {("all patterns", "age"): ("age observed", "age missing")}
    >>> model = build_optimal_tree(OptimalTreeProblem({"age": 0}, literals, cost, rows, sides, max_leaves=2))
    >>> print(model.flow["age missing"].expr)
    leaf[age missing]  ==  split[all patterns,age]
    """
    import pyomo.environ as pyo

    domain = pyo.Binary if integer else pyo.NonNegativeReals
    splits_of: dict[str, list[str]] = {B: [] for B in problem.literals}
    side_of: dict[str, list[tuple[str, str]]] = {B: [] for B in problem.literals}
    for (A, j), sides in problem.sides.items():
        splits_of[A].append(j)
        for side in sides:
            side_of[side].append((A, j))

    model = pyo.ConcreteModel(name="optimal_tree")
    model.FEATURES = pyo.Set(initialize=list(problem.features), doc="features that may be split on")
    model.BOXES = pyo.Set(initialize=list(problem.literals), doc="boxes with enough rows that a tree can reach")
    model.SPLITS = pyo.Set(dimen=2, initialize=list(problem.sides), doc="boxes, with features to split them on")

    model.cost = pyo.Param(
        model.BOXES, initialize=problem.cost, mutable=True, doc="training cost as a leaf, in units of the certificate"
    )
    model.rows = pyo.Param(model.BOXES, initialize=problem.rows, doc="training rows in the box")
    model.max_leaves = pyo.Param(initialize=problem.max_leaves, mutable=True, doc="most leaves of the tree")
    model.unit = pyo.Param(initialize=problem.unit, mutable=True, doc="a typical cost, in units of the certificate")

    model.leaf = pyo.Var(model.BOXES, domain=domain, doc="1 if the box is a leaf")
    model.split = pyo.Var(model.SPLITS, domain=domain, doc="1 if the box is split on the feature")

    model.training_cost = pyo.Expression(
        expr=pyo.quicksum(model.cost[B] * model.leaf[B] for B in model.BOXES),
        doc="training cost of the tree, in units of the certificate",
    )
    model.objective = pyo.Objective(expr=model.training_cost / model.unit, doc="training cost divided by unit")

    def flow(model: Any, B: str) -> Any:
        inflow = 1 if B == ROOT else pyo.quicksum(model.split[A, j] for A, j in side_of[B])
        return model.leaf[B] + pyo.quicksum(model.split[B, j] for j in splits_of[B]) == inflow

    model.flow = pyo.Constraint(model.BOXES, rule=flow, doc="a box that is reached is a leaf or split once")
    model.leaves = pyo.Constraint(
        expr=pyo.quicksum(model.leaf[B] for B in model.BOXES) <= model.max_leaves, doc="at most max_leaves leaves"
    )
    return model


def solve_optimal_tree(
    problem: OptimalTreeProblem,
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
    marked = variables_of(start, problem)
    trees, bound, status, version = [tree_of(problem, marked)], 0.0, "interrupted", ""
    try:
        model = build_optimal_tree(problem)
        variables = [*model.leaf.values(), *model.split.values()]
        first = np.array([float(key in marked) for key in (*model.leaf, *model.split)])
        solution = solve_integral(
            model, variables, solver=solver, time_limit=time_left(time_limit, started), start=first, upper=1.0
        )
        status, version = solution.status, solution.version
        bound = max(trusted(solution.bound, solution.solver) * problem.unit, 0.0)  # no loss is negative
        if solution.values is not None and is_integral(solution.values):
            values = dict(zip((*model.leaf, *model.split), solution.values > 0.5, strict=True))
            trees.append(tree_of(problem, {key for key, taken in values.items() if taken}))
    except KeyboardInterrupt:
        pass
    objective, tree = min(((cost_of(problem, tree), tree) for tree in trees), key=lambda pair: pair[0])
    name = "HIGHS" if solver == "highs" else solver
    tolerance = closed_gap(max(CLOSED * abs(objective), NOISE * problem.cost[ROOT]), objective, name)
    return tree, certify(objective, bound, tolerance, status, name, version, started, rigorous=False)


def cost_of(problem: OptimalTreeProblem, tree: Tree) -> float:
    """Sum of the costs of the leaves of a tree."""
    return sum(problem.cost[B] for B in variables_of(tree, problem) if isinstance(B, str))


def variables_of(tree: Tree, problem: OptimalTreeProblem) -> set[Any]:
    """The indices of the variables that are 1 for a tree; a last split that is not in SPLITS is replaced by the one."""
    name_of = {j: name for name, j in problem.features.items()}
    only = dict(problem.sides.keys())
    marked: set[Any] = set()

    def mark(below: Tree, B: str) -> None:
        if below is None:
            marked.add(B)
            return
        split = B, name_of[below[0]]
        split = split if split in problem.sides else (B, only[B])
        marked.add(split)
        for side, rest in zip(problem.sides[split], below[1:], strict=True):
            mark(rest, side)

    mark(tree, ROOT)
    return marked


def tree_of(problem: OptimalTreeProblem, marked: set[Any]) -> Tree:
    """The tree of the variables that are 1."""
    split: dict[str, str] = dict(key for key in marked if isinstance(key, tuple))

    def grow(B: str) -> Tree:
        if B not in split:
            return None
        observed, missing = problem.sides[B, split[B]]
        return problem.features[split[B]], grow(observed), grow(missing)

    return grow(ROOT)
