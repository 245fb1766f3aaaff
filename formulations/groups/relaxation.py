"""The linear relaxation over all groups, by column generation.

*Columns.* The relaxation of :mod:`formulations.groups.master` is solved over the groups known so far, which gives
prices pi_p of the patterns and sigma of the budget. Groups with c_G < pi(G) + sigma enter: first those found by
:mod:`formulations.groups.exchange`; if it finds none, those of the branch and bound of
:mod:`formulations.groups.pricing.branch_and_bound`. If it finds none either, the relaxation is solved.

*Bound.* For any prices, if no group has c_G - pi(G) below t <= 0, every partition costs at least

    sum_p pi_p + Q t

A branch and bound that was stopped early knows such a t as well. If t is high enough for the bound to show that no
partition is useful, pricing can stop: groups above that t are not searched for.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from formulations.arrays import BoolArray, FloatArray
from formulations.groups.exchange import price_by_exchange
from formulations.groups.master import TOLERANCE, Master
from formulations.groups.pricing.branch_and_bound import price_groups
from formulations.groups.pricing.choice import GroupChoice

# Most groups that exact pricing returns at a time.
MOST_PRICED = 50


@dataclass
class Relaxation:
    """State in which column generation ended.

    Attributes
    ----------
    bound, prices, lowest
        The bound, and the pi and t that it rests on.
    groups, z
        The columns, and the fractional solution.
    known : int
        Number of groups that were given.
    finished : bool
        Whether no column is missing; if not, the bound is valid nevertheless.
    """

    bound: float
    prices: FloatArray
    lowest: float
    groups: BoolArray
    z: FloatArray
    known: int
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
    if len(groups) == 0:
        anything = price_groups(c, np.zeros(c.patterns), math.inf, stop, 1)
        groups, costs = anything.groups, anything.values
        if len(groups) == 0:
            nothing = math.inf if anything.finished else -math.inf
            return Relaxation(nothing, costs, nothing, groups, costs, 0, finished=False)
    master = Master(max_groups, groups, costs)
    bound, lowest, finished = -math.inf, -math.inf, False
    while True:
        prices, sigma, z = master.solve()
        new = master.unknown(price_by_exchange(c, prices, sigma - TOLERANCE, master.groups[z > 0], rng, stop))
        if len(new) == 0 and not stop():
            enough = (useful - float(prices.sum())) / max_groups
            priced = price_groups(c, prices, min(sigma - TOLERANCE / max_groups, enough), stop, MOST_PRICED)
            lowest = min(0.0, priced.bound)
            bound = max(bound, float(prices.sum()) + max_groups * lowest)
            new = master.unknown(priced.groups)
            finished = priced.finished and len(new) == 0
            report()
        if len(new) == 0 or stop():
            return Relaxation(bound, prices, lowest, master.groups, z, len(groups), finished)
        for member in new:
            master.add(member, c.cost(member))
