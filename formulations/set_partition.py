"""The best partition of missingness patterns into leaves of a list, as set partitioning.

Sets        PATTERNS    observed patterns p
            LEAVES      boxes or groups L of patterns that may be leaves, with enough rows: BOXES or GROUPS in the model
Params      cost_L      cost of L as a leaf
            rows_L      rows of L
            max_leaves  Q
            unit        a typical cost, which makes the tolerances of solvers relative
Variables   leaf_L in {0,1}    1 if L is a leaf
Objective   min  sum_L cost_L leaf_L / unit
Constraints cover   sum_{L holds p} leaf_L = 1, for every p
            leaves  sum_L leaf_L <= max_leaves

:mod:`formulations.boxes.partition` lists all boxes. With all groups in the list (2^P - 1 for P patterns), this is the
program of :mod:`formulations.groups.problem`. With those that column generation has found
(:mod:`formulations.groups.relaxation`), its optimum is an upper bound; and if the program is changed, other groups may
be needed, so that its solution is a heuristic one.
"""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class SetPartition:
    """Data of the program.

    Attributes
    ----------
    patterns : list of str
        PATTERNS.
    members : dict of str to list of int
        LEAVES with the indices of their patterns.
    cost, rows : dict of str to number
        Of each.
    max_leaves : int
        Q.
    unit : float
        Costs are divided by it in the objective.
    kind : {"GROUPS", "BOXES"}
        Name of the set of leaves in the model.
    """

    patterns: list[str]
    members: dict[str, list[int]]
    cost: dict[str, float]
    rows: dict[str, int]
    max_leaves: int
    unit: float = 1.0
    kind: str = "GROUPS"


def build_set_partition(problem: SetPartition, integer: bool = True) -> Any:
    """The program, in the order and with the names of the module docstring.

    Parameters
    ----------
    problem : SetPartition
        Its data.
    integer : bool
        Whether variables are binary.

    Examples
    --------
    >>> members = {"both": [0, 1], "first": [0], "second": [1]}
    >>> cost, rows = {"both": 4.0, "first": 1.0, "second": 0.0}, {"both": 9, "first": 5, "second": 4}
    >>> model = build_set_partition(SetPartition(["nothing missing", "missing age"], members, cost, rows, max_leaves=2))
    >>> print(model.cover["missing age"].expr)
    leaf[both] + leaf[second]  ==  1
    """
    import pyomo.environ as pyo

    leaves_with: dict[str, list[str]] = {p: [] for p in problem.patterns}
    for L, held in problem.members.items():
        for p in held:
            leaves_with[problem.patterns[p]].append(L)

    model = pyo.ConcreteModel(name="set_partition")
    model.PATTERNS = pyo.Set(initialize=problem.patterns, doc="observed patterns")
    LEAVES = pyo.Set(initialize=list(problem.members), doc="leaves to choose from, with enough rows")
    model.add_component(problem.kind, LEAVES)

    model.cost = pyo.Param(
        LEAVES, initialize=problem.cost, mutable=True, doc="training cost as a leaf, in units of the certificate"
    )
    model.rows = pyo.Param(LEAVES, initialize=problem.rows, doc="training rows in the leaf")
    model.max_leaves = pyo.Param(initialize=problem.max_leaves, mutable=True, doc="most leaves")
    model.unit = pyo.Param(initialize=problem.unit, mutable=True, doc="a typical cost, in units of the certificate")

    domain = pyo.Binary if integer else pyo.NonNegativeReals
    model.leaf = pyo.Var(LEAVES, domain=domain, doc="1 if it is a leaf")

    model.training_cost = pyo.Expression(
        expr=pyo.quicksum(model.cost[L] * model.leaf[L] for L in LEAVES),
        doc="training cost of the partition, in units of the certificate",
    )
    model.objective = pyo.Objective(expr=model.training_cost / model.unit, doc="training cost divided by unit")

    def cover(model: Any, p: str) -> Any:
        return pyo.quicksum(model.leaf[L] for L in leaves_with[p]) == 1

    model.cover = pyo.Constraint(model.PATTERNS, rule=cover, doc="every pattern is in one leaf")
    model.leaves = pyo.Constraint(
        expr=pyo.quicksum(model.leaf[L] for L in LEAVES) <= model.max_leaves, doc="at most max_leaves leaves"
    )
    return model
