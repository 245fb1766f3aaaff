"""The best tree of missingness patterns in the textbook formulation: split, assign, fit, all in one program.

Following Bertsimas and Dunn, Optimal classification trees, Machine Learning 106 (2017), with a linear model in each
leaf. :mod:`formulations.trees.flow` solves the same problem over enumerated leaves, and much faster: this program is
for comparison. It takes the absolute loss without a ridge, which makes it linear.

Sets        t in 1 .. 2^D - 1        nodes of the complete tree of depth D; 2t (observed) and 2t + 1 (missing) below
            l in 2^D .. 2^(D+1) - 1  its leaves
            j in F                   features that may be split on
            p                        observed patterns
            i                        rows, p(i) the pattern of row i
Data        a_i, y_i, s_i            leaf features, target and weight of a row
            n_p                      rows of a pattern
            N, Q                     fewest rows of a leaf, most leaves
            M_i                      a bound on the residual, see below
Variables   a_tj in {0,1}            t is split on j
            z_pl in {0,1}            pattern p goes to leaf l
            u_l  in {0,1}            leaf l is used
            b_l, w_lj                model of a leaf
            e_i >= 0                 loss of a row
Objective   min  sum_i s_i e_i
Constraints one_split  sum_j a_tj <= 1
            above      sum_j a_tj <= sum_j a_t'j,  t' above t
            one_leaf   sum_l z_pl = 1
            missing    sum_{l under 2t + 1} z_pl <= sum_{j missing in p} a_tj
            observed   sum_{l under 2t} z_pl <= 1 - sum_{j missing in p} a_tj
            used       z_pl <= u_l
            rows       sum_p n_p z_pl >= N u_l
            leaves     sum_l u_l <= Q
            over       e_i >= b_l + w_l'a_i - y_i - M_i (1 - z_p(i)l)
            under      e_i >= y_i - b_l - w_l'a_i - M_i (1 - z_p(i)l)

A node that does not split sends everything to 2t, and nothing below it splits: each tree is represented once.

M_i is the largest |y_i - b_B - w_B'a_i| over the fitted models (b_B, w_B) of all boxes B that can be leaves, and b_l,
w_l are restricted to the range of these models. That is valid: the leaves of a best tree are among these boxes, so the
tree with their models, and the model of the root in every unused leaf, is feasible at the cost of the tree.

For good scaling the program is stated relative to the root: y_i is the residual of its model in units of the mean
residual, b_l and w_l are differences from it, and the columns of a_i are divided by their largest value. The fitted
models come from an interior-point method, and the big-M rows hold to the tolerance of the solver: its bound is lowered
for that, and a gap below 1e-6 of the objective counts as closed.
"""

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from formulations.arrays import FloatArray, IntArray
from formulations.certificate import GAP_TOLERANCE, Certificate, certify, clock
from formulations.leaves.box_costs import OutOfTimeError, members_of
from formulations.leaves.cost import LeafCost, LeafModel, PatternRows
from formulations.linear_solver import highs_version, require_solver, solve_linear, time_left
from formulations.losses import Absolute
from formulations.trees.dynamic_program import Tree, leaves_of

TOLERANCES = {"mip_feasibility_tolerance": 1e-9, "primal_feasibility_tolerance": 1e-9, "mip_rel_gap": 1e-7}


@dataclass(frozen=True)
class SplitAssignProblem:
    """Data of the program.

    Attributes
    ----------
    rows : PatternRows
    pattern_of, features : int arrays
        p(i) and F.
    depth, max_leaves, min_rows : int
        D, Q and N.
    models : dict
        The model of every box that can be a leaf, by the bytes of its pattern indices; the root first.
    A, y, big_m : arrays of shape (n, k), (n,), (n,)
        a_i, y_i and M_i, scaled.
    unit, size : float and array of shape (k,)
        Units of y_i and of the columns of a_i.
    """

    rows: PatternRows
    pattern_of: IntArray
    features: IntArray
    depth: int
    max_leaves: int
    min_rows: int
    models: dict[bytes, LeafModel]
    A: FloatArray
    y: FloatArray
    big_m: FloatArray
    unit: float
    size: FloatArray

    def scaled(self, model: LeafModel) -> tuple[float, FloatArray]:
        """The model (b, w) of a leaf in the units of the program."""
        root = next(iter(self.models.values()))
        b = float(model.intercept[0] - root.intercept[0]) / self.unit
        return b, (model.weights[0] - root.weights[0]) * self.size / self.unit


def split_assign_problem(
    leaf_cost: LeafCost, features: IntArray, depth: int, max_leaves: int, min_rows: int, deadline: float = np.inf
) -> SplitAssignProblem:
    """Data of the program; raises ``OutOfTimeError`` once ``clock()`` is past the deadline."""
    if not isinstance(leaf_cost.loss, Absolute) or leaf_cost.ridge != 0.0:
        raise ValueError("The split / assign formulation is linear: it takes the absolute loss with ridge = 0 only.")
    rows, depth = leaf_cost.rows, min(depth, len(features))
    fewest = min(max(1, min_rows), len(rows.s))  # the root may be a leaf with any number of rows
    models: dict[bytes, LeafModel] = {}
    for S in (S for k in range(depth + 1) for S in combinations(np.asarray(features).tolist(), k)):
        side = rows.patterns[:, list(S)] @ (1 << np.arange(len(S)))
        for v in np.unique(side):
            members = np.flatnonzero(side == v)
            if rows.counts[members].sum() >= fewest and members.tobytes() not in models:
                models[members.tobytes()] = leaf_cost.fit(members)
            if clock() > deadline:
                raise OutOfTimeError
    residuals = np.array([rows.y[:, 0] - model.intercept[0] - rows.A @ model.weights[0] for model in models.values()])
    unit, size = float(np.abs(residuals[0]).mean()) or 1.0, np.abs(rows.A).max(axis=0)
    size[size == 0] = 1.0
    return SplitAssignProblem(
        rows=rows,
        pattern_of=np.repeat(np.arange(len(rows.patterns)), rows.counts),
        features=np.asarray(features),
        depth=depth,
        max_leaves=max_leaves,
        min_rows=fewest,
        models=models,
        A=rows.A / size,
        y=residuals[0] / unit,
        big_m=np.abs(residuals).max(axis=0) / unit,
        unit=unit,
        size=size,
    )


def build_split_assign(problem: SplitAssignProblem) -> Any:
    """The program, in the order and with the names of the module docstring."""
    import pyomo.environ as pyo

    rows, first = problem.rows, 1 << problem.depth
    features, p_of, counts = problem.features.tolist(), problem.pattern_of.tolist(), rows.counts.tolist()
    A, y, s, M = problem.A.tolist(), problem.y.tolist(), rows.s.tolist(), problem.big_m.tolist()
    fitted = [problem.scaled(model) for model in problem.models.values()]
    b, w = np.array([b for b, _ in fitted]), np.array([w for _, w in fitted])
    w_range = list(zip(w.min(axis=0).tolist(), w.max(axis=0).tolist(), strict=True))
    nodes, leaves = range(1, first), range(first, 2 * first)
    patterns, n, k = range(len(rows.patterns)), range(len(s)), range(rows.A.shape[1])

    model = pyo.ConcreteModel()
    model.a = pyo.Var(nodes, features, domain=pyo.Binary)
    model.z = pyo.Var(patterns, leaves, domain=pyo.Binary)
    model.u = pyo.Var(leaves, domain=pyo.Binary)
    model.b = pyo.Var(leaves, bounds=(float(b.min()), float(b.max())))
    model.w = pyo.Var(leaves, k, bounds=lambda model, l, j: w_range[j])
    model.e = pyo.Var(n, domain=pyo.NonNegativeReals)
    model.loss = pyo.Objective(expr=pyo.quicksum(s[i] * model.e[i] for i in n))

    def splits(t: int) -> Any:
        return pyo.quicksum(model.a[t, j] for j in features)

    def on_missing(t: int, p: int) -> Any:
        return pyo.quicksum(model.a[t, j] for j in features if rows.patterns[p, j])

    def below(t: int, p: int) -> Any:
        return pyo.quicksum(model.z[p, l] for l in leaves if t == l >> (l.bit_length() - t.bit_length()))

    def outside(i: int, l: int) -> Any:
        return M[i] * (1 - model.z[p_of[i], l])

    def prediction(i: int, l: int) -> Any:
        return model.b[l] + pyo.quicksum(A[i][j] * model.w[l, j] for j in k if A[i][j])

    model.one_split = pyo.Constraint(nodes, rule=lambda _, t: splits(t) <= 1)
    model.above = pyo.Constraint(nodes[1:], rule=lambda _, t: splits(t) <= splits(t // 2))
    model.one_leaf = pyo.Constraint(patterns, rule=lambda _, p: below(1, p) == 1)
    model.missing = pyo.Constraint(nodes, patterns, rule=lambda _, t, p: below(2 * t + 1, p) - on_missing(t, p) <= 0)
    model.observed = pyo.Constraint(nodes, patterns, rule=lambda _, t, p: below(2 * t, p) + on_missing(t, p) <= 1)
    model.used = pyo.Constraint(patterns, leaves, rule=lambda _, p, l: model.z[p, l] <= model.u[l])
    model.rows = pyo.Constraint(
        leaves,
        rule=lambda _, l: pyo.quicksum(counts[p] * model.z[p, l] for p in patterns) >= problem.min_rows * model.u[l],
    )
    model.leaves = pyo.Constraint(expr=pyo.quicksum(model.u.values()) <= problem.max_leaves)
    model.over = pyo.Constraint(n, leaves, rule=lambda _, i, l: model.e[i] >= prediction(i, l) - y[i] - outside(i, l))
    model.under = pyo.Constraint(n, leaves, rule=lambda _, i, l: model.e[i] >= y[i] - prediction(i, l) - outside(i, l))
    return model


def solve_split_assign_tree(
    leaf_cost: LeafCost,
    features: IntArray,
    depth: int,
    max_leaves: int,
    min_rows: int,
    *,
    start: Tree = None,
    solver: str = "highs",
    time_limit: float | None = None,
) -> tuple[Tree, Certificate]:
    """The best tree, or the best one found within the time limit, never worse than ``start``.

    Parameters
    ----------
    leaf_cost : LeafCost
        Absolute loss, ridge 0.
    features, depth, max_leaves, min_rows
        Features that may be split on, and limits of the tree.
    start : tree
        A tree within these limits; None is the tree without a split. Only HiGHS uses it.
    solver : str
        "highs", or a solver of Pyomo.
    time_limit : float, optional
        Seconds, including those for the models of the boxes.
    """
    started = clock()
    require_solver(solver)
    trees, bound, status, used = [start], 0.0, "time limit", ("HIGHS", highs_version())
    try:
        deadline = np.inf if time_limit is None else started + time_limit
        problem = split_assign_problem(leaf_cost, features, depth, max_leaves, min_rows, deadline)
        model = build_split_assign(problem)
        keys = [(name, key) for name in ("a", "z", "u", "b", "w", "e") for key in getattr(model, name)]
        solution = solve_linear(
            model,
            [getattr(model, name)[key] for name, key in keys],
            solver=solver,
            time_limit=time_left(time_limit, started),
            start=_values_of(problem, start, keys),
            options=dict(TOLERANCES),
        )
        status, used = solution.status, (solution.solver, solution.version)
        if np.isfinite(solution.bound):  # infinite if "infeasible", which would be wrong: the start is feasible
            bound = max(bound, solution.bound * problem.unit * (1.0 - GAP_TOLERANCE / 2))  # no loss is negative
        if solution.values is not None:
            trees.append(_tree_of(problem, keys, solution.values))
    except OutOfTimeError:
        pass
    except KeyboardInterrupt:
        status = "interrupted"
    patterns = leaf_cost.rows.patterns
    costs = [leaf_cost.total(members_of(patterns, leaf) for leaf in leaves_of(tree)) for tree in trees]
    objective = min(costs)
    tree = trees[costs.index(objective)]
    return tree, certify(objective, bound, GAP_TOLERANCE * objective, status, *used, started, rigorous=False)


def _values_of(problem: SplitAssignProblem, tree: Tree, keys: list[tuple[str, Any]]) -> FloatArray:
    """Values of the variables for a tree."""
    rows, first = problem.rows, 1 << problem.depth
    values: dict[tuple[str, Any], float] = {}
    root = next(iter(problem.models.values()))
    in_leaf = dict.fromkeys(range(first, 2 * first), root)

    def mark(below: Tree, t: int, members: IntArray) -> None:
        if below is not None:
            missing = rows.patterns[members, below[0]]
            values["a", (t, below[0])] = 1.0
            mark(below[1], 2 * t, members[~missing])
            mark(below[2], 2 * t + 1, members[missing])
            return
        l = t << (first.bit_length() - t.bit_length())
        in_leaf[l] = problem.models[members.tobytes()]
        values["u", l] = 1.0
        values.update({("z", (p, l)): 1.0 for p in members.tolist()})
        b, w = problem.scaled(in_leaf[l])
        for i in np.flatnonzero(np.isin(problem.pattern_of, members)).tolist():
            values["e", i] = abs(problem.y[i] - b - problem.A[i] @ w)

    mark(tree, 1, np.arange(len(rows.patterns)))
    for l, model in in_leaf.items():
        values["b", l], weights = problem.scaled(model)
        values.update({("w", (l, j)): weight for j, weight in enumerate(weights)})
    return np.array([values.get(key, 0.0) for key in keys])


def _tree_of(problem: SplitAssignProblem, keys: list[tuple[str, Any]], values: FloatArray) -> Tree:
    """The tree that the split variables encode, without splits that leave a side empty."""
    feature = {key[0]: key[1] for (name, key), value in zip(keys, values, strict=True) if name == "a" and value > 0.5}
    patterns = problem.rows.patterns

    def grow(t: int, members: IntArray) -> Tree:
        if t not in feature:
            return None
        missing = patterns[members, feature[t]]
        observed_side, missing_side = members[~missing], members[missing]
        if not len(missing_side):
            return grow(2 * t, observed_side)
        if not len(observed_side):
            return grow(2 * t + 1, missing_side)
        return feature[t], grow(2 * t, observed_side), grow(2 * t + 1, missing_side)

    return grow(1, np.arange(len(patterns)))
