"""The linear relaxation over all groups, by column generation.

*Columns.* The program below is solved over the groups known so far, which gives
prices pi_p of the patterns and sigma of the budget. Groups with c_G < pi(G) + sigma enter: first those found by
:mod:`formulations.groups.exchange`; if it finds none, those of the branch and bound of
:mod:`formulations.groups.pricing.branch_and_bound`. If it finds none either, the relaxation is solved.

*Bound.* For any prices, if no group has c_G - pi(G) below t <= 0, every partition costs at least

    sum_p pi_p + Q t

A branch and bound that was stopped early knows such a t as well. If t is high enough for the bound to show that no
partition is useful, pricing can stop: groups above that t are not searched for.

*Program*: the relaxation of :mod:`formulations.set_partition` over the groups known so far. A pattern may be
left out at a large cost, which keeps the program feasible for any groups:

Variables   left_out_p >= 0    1 if p is in no group
Objective   min  sum_G cost_G leaf_G + LEFT_OUT sum_p left_out_p
Constraints cover   sum_{G holds p} leaf_G + left_out_p = 1, for every p       (prices pi_p)
            leaves  sum_G leaf_G <= max_leaves                                 (price sigma <= 0)

Pyomo's matrices go into HiGHS once; after that, columns are added one at a time and HiGHS continues from its basis.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from formulations.arrays import BoolArray, FloatArray
from formulations.groups.exchange import price_by_exchange
from formulations.groups.pricing.branch_and_bound import price_groups
from formulations.groups.pricing.quadratics import GroupChoice
from formulations.linear_solver import HIGHS_TOLERANCE, highs_lp
from formulations.set_partition import SetPartition, build_set_partition

# Cost of leaving a pattern out, in units of the cost of a good partition: any number above 1 will do.
LEFT_OUT = 1e3


def master_program(groups: BoolArray, costs: FloatArray, max_groups: int) -> Any:
    """The program of the module over the given groups; patterns and groups are called by their numbers."""
    import pyomo.environ as pyo

    labels = [str(g) for g in range(len(groups))]
    known = SetPartition(
        patterns=[str(p) for p in range(groups.shape[1])],
        members={label: np.flatnonzero(group).tolist() for label, group in zip(labels, groups, strict=True)},
        cost=dict(zip(labels, costs.tolist(), strict=True)),
        rows=dict.fromkeys(labels, 1),
        max_leaves=max_groups,
    )
    model = build_set_partition(known, integer=False)
    model.left_out = pyo.Var(model.PATTERNS, domain=pyo.NonNegativeReals, doc="1 if the pattern is in no group")
    for p in model.PATTERNS:
        model.cover[p].set_value(model.cover[p].body + model.left_out[p] == 1)
    model.objective.set_value(model.objective.expr + LEFT_OUT * pyo.quicksum(model.left_out.values()))
    return model


class Master:
    """The linear relaxation over the groups known so far, in HiGHS."""

    def __init__(self, max_groups: int, groups: BoolArray, costs: FloatArray) -> None:
        import highspy
        from pyomo.repn.plugins.standard_form import LinearStandardFormCompiler

        model = master_program(groups, costs, max_groups)
        columns = [*model.left_out.values(), *model.leaf.values()]
        form = LinearStandardFormCompiler().write(model, mixed_form=True, column_order=columns)
        row_of = {id(row.constraint): i for i, row in enumerate(form.rows)}
        self.cover = np.array([row_of[id(row)] for row in model.cover.values()])
        self.budget = row_of[id(model.leaves)]
        self.groups, self.seen = groups, {member.tobytes() for member in groups}
        self.highs = highspy.Highs()
        settings: dict[str, Any] = {"output_flag": False, "threads": 1, "solver": "simplex"}
        tolerances = {"primal_feasibility_tolerance": HIGHS_TOLERANCE, "dual_feasibility_tolerance": HIGHS_TOLERANCE}
        for name, value in {**settings, **tolerances}.items():
            self.highs.setOptionValue(name, value)
        self.highs.passModel(highs_lp(form))

    def solve(self) -> tuple[FloatArray, float, FloatArray]:
        """Prices of the patterns and of the budget, and the values of the groups."""
        self.highs.run()
        solution = self.highs.getSolution()
        duals = np.array(solution.row_dual)
        return duals[self.cover], min(0.0, float(duals[self.budget])), np.array(solution.col_value)[len(self.cover) :]

    def unknown(self, groups: BoolArray) -> BoolArray:
        """The groups that are not columns yet."""
        return groups[[member.tobytes() not in self.seen for member in groups]]

    def add(self, member: BoolArray, cost: float) -> None:
        """Add a column."""
        rows = np.append(self.cover[member], self.budget).astype(np.int32)
        self.highs.addCol(cost, 0.0, np.inf, len(rows), rows, np.ones(len(rows)))
        self.groups = np.vstack([self.groups, member])
        self.seen.add(member.tobytes())


@dataclass
class Relaxation:
    """State in which column generation ended.

    Attributes
    ----------
    bound, prices, lowest
        The bound, and the pi and t that it rests on.
    groups, z
        The columns, and the fractional solution.
    finished : bool
        Whether no column is missing; if not, the bound is valid nevertheless.
    """

    bound: float
    prices: FloatArray
    lowest: float
    groups: BoolArray
    z: FloatArray
    finished: bool


def relax(
    c: GroupChoice,
    max_groups: int,
    groups: BoolArray,
    costs: FloatArray,
    useful: float,
    rng: np.random.Generator,
    stop: Callable[[], bool],
    report: Callable[[], None],
) -> Relaxation:
    """Solve the relaxation from the given groups; partitions that cost ``useful`` or more need not be distinguished."""
    master = Master(max_groups, groups, costs)
    bound, lowest, finished = -math.inf, -math.inf, False
    while True:
        prices, sigma, z = master.solve()
        new = master.unknown(price_by_exchange(c, prices, sigma - HIGHS_TOLERANCE, master.groups[z > 0], rng, stop))
        if len(new) == 0 and not stop():
            enough = (useful - float(prices.sum())) / max_groups
            priced = price_groups(c, prices, min(sigma - HIGHS_TOLERANCE / max_groups, enough), stop)
            lowest = min(0.0, priced.bound)
            bound = max(bound, float(prices.sum()) + max_groups * lowest)
            new = master.unknown(priced.groups)
            finished = priced.finished and len(new) == 0
            report()
        if len(new) == 0 or stop():
            return Relaxation(bound, prices, lowest, master.groups, z, finished)
        for member in new:
            master.add(member, c.cost(member))
