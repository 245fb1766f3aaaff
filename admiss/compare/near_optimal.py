"""Training cost against the number of leaves, and the optimum among other trees: how many are about as good.

The curve of greedy splitting has the cost of its tree with at most 1, 2, .. leaves; the curve of the optimum has the
bound that the dynamic program proves for every tree with so many leaves. Both are costs of the same program, that of
the certificates.

If many trees cost almost as little as the best one, the training rows hardly tell them apart: greedy splitting may miss
the optimum and predict as well. If greedy costs more than all of these, it has missed something.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from math import floor, isfinite, log10
from typing import Any

import numpy as np

from admiss.compare.setting import Setting
from admiss.estimator.notices import silence
from admiss.partition.greedy import grow_greedily, tree_objective
from admiss.partition.optimal_tree import enumerated_boxes
from admiss.terminal.progress import progress
from formulations.arrays import BoolArray
from formulations.certificate import clock
from formulations.leaves.box_costs import BoxCosts
from formulations.leaves.cholesky import LOWER, UPPER
from formulations.leaves.cost import LeafCost
from formulations.trees.dynamic_program import Tree, best_costs, tree_cost
from formulations.trees.near_optimal import (
    Bracket,
    PenaltyRange,
    partitions_within,
    penalty_ranges,
    trees_better,
    trees_within,
)
from formulations.trees.rounded_costs import TooManyTreesError

# Costs above the optimum, in per cent, at which trees are counted.
PERCENTS = (1, 2, 5)
UNKNOWN = Bracket(0.0, np.inf)


@dataclass(frozen=True)
class Within:
    """Numbers of trees, and of distinct partitions, that cost at most ``percent`` % more than the optimum."""

    percent: int
    trees: Bracket
    partitions: Bracket


@dataclass(frozen=True)
class NearOptimal:
    """The optimum among other trees.

    Attributes
    ----------
    within : list of Within
    reason : str
        Why numbers are unknown, if some are.
    curve : list of (percent, Bracket)
        Number of trees against the cost above the optimum in percent.
    penalties : list of PenaltyRange
        Best number of leaves for each penalty per leaf.
    greedy_percent : float
        Cost of the greedy tree above the optimum; NaN if that is 0 or unknown.
    better : Bracket
        Number of trees that cost less than the greedy one.
    """

    within: list[Within]
    reason: str
    curve: list[tuple[float, Bracket]]
    penalties: list[PenaltyRange]
    greedy_percent: float
    better: Bracket

    def lines(self) -> list[str]:
        """The numbers in words: trees close to the optimum and the greedy one, and leaves under a penalty."""
        numbers = [f"{part.percent} %: {_words(part)}" for part in self.within if isfinite(part.trees.most)]
        unknown = [part for part in self.within if not isfinite(part.trees.most)]
        if unknown:
            shares = ", ".join(f"{part.percent} %" for part in unknown)
            least = f"at least {_number(unknown[0].trees.least)}, " if unknown[0].trees.least > 1 else ""
            numbers.append(f"{shares}: {least}not counted, {self.reason}")
        counted = "; ".join(numbers).replace(":", " of the optimum:", 1)
        return [" ".join([f"Within {counted}.", *self._greedy()]), _penalty_line(self.penalties)]

    def _greedy(self) -> list[str]:
        """The greedy tree among the others."""
        if self.better.least == 0 or not isfinite(self.better.most + self.greedy_percent):
            return []
        others = f"{_bracket(self.better)} {'tree is' if self.better.most == 1 else 'trees are'} better"
        reached = [part.trees for part in self.within if part.percent >= self.greedy_percent]
        if not reached:
            return [f"Greedy's tree is not among these; {others}, so this is more than a near tie."]
        if reached[0].least < 10:
            return [f"Greedy's tree is among these, {others}."]
        reason = "with so many about as good, a slightly lower cost says little about new rows"
        return [f"Greedy's tree is among these, {others}: {reason}."]

    def to_dict(self) -> dict[str, Any]:
        """The numbers as plain lists; infinite ones are None."""
        return {
            "within": [
                {"percent": p.percent, "trees": _plain(p.trees), "partitions": _plain(p.partitions)}
                for p in self.within
            ],
            "reason": self.reason,
            "curve": [[percent, *_plain(number)] for percent, number in self.curve],
            "leaf_penalty": [asdict(r) | {"high": r.high if isfinite(r.high) else None} for r in self.penalties],
            "greedy_percent": self.greedy_percent if isfinite(self.greedy_percent) else None,
            "better_than_greedy": _plain(self.better),
            "lines": self.lines(),
        }


def near_optimal(lower: BoxCosts, upper: BoxCosts, max_leaves: int, patterns: BoolArray, greedy: Tree) -> NearOptimal:
    """Count the trees close to the optimum, and those that are better than the greedy one.

    Parameters
    ----------
    lower, upper : BoxCosts
        Lower and upper ends of the costs of all boxes.
    max_leaves : int
        Largest number of leaves.
    patterns : bool array
        The observed patterns.
    greedy : Tree
    """
    limits = lower, upper, max_leaves
    within, reason, least, partitions = [], "", 1.0, Bracket(0.0, 0.0)
    for percent in progress(PERCENTS, len(PERCENTS), "trees close to the optimum: shares"):
        trees, why = _counted(partial(_within, *limits, percent))
        if trees.most > 10**6:  # partitions are told apart by listing all trees
            partitions = UNKNOWN
        elif isfinite(partitions.most):  # otherwise a smaller share has too many
            partitions, _ = _counted(partial(partitions_within, *limits, percent, patterns))
        least, reason = max(trees.least, least), reason or why
        within.append(Within(percent, Bracket(least, trees.most), partitions))
    costs, cost = best_costs(upper, max_leaves).tolist(), tree_cost(upper, greedy)
    above = 100 * (cost / costs[-1] - 1) if isfinite(cost) and costs[-1] > 0 else np.nan
    better, _ = _counted(partial(trees_better, *limits, greedy))
    return NearOptimal(within, reason, _curve(*limits, above), penalty_ranges(costs), above, better)


def _within(lower: BoxCosts, upper: BoxCosts, max_leaves: int, percent: float) -> Bracket:
    return trees_within(lower, upper, max_leaves, [percent])[0]


def _curve(lower: BoxCosts, upper: BoxCosts, max_leaves: int, percent: float) -> list[tuple[float, Bracket]]:
    """Number of trees up to the greedy one and a little further, or as far as they can be counted."""
    for highest in (np.fmax(PERCENTS[-1], 1.1 * percent), *reversed(PERCENTS)):
        percents = np.linspace(0, highest, 41).tolist()
        try:
            return list(zip(percents, trees_within(lower, upper, max_leaves, percents), strict=True))
        except TooManyTreesError:
            continue
    return []


def _counted(count: Callable[[], Bracket]) -> tuple[Bracket, str]:
    """A number, or an unknown one and the reason."""
    try:
        return count(), ""
    except TooManyTreesError as error:
        return UNKNOWN, str(error)


def _plain(number: Bracket) -> list[float | None]:
    return [end if isfinite(end) else None for end in (number.least, number.most)]


def _number(value: float, up: bool = False) -> str:
    """A whole number, above a million rounded down or up to three digits.

    Examples
    --------
    >>> _number(12617.0), _number(1234567.0), _number(1234567.0, up=True)
    ('12,617', '1.23e6', '1.24e6')
    """
    if value < 10**6:
        return f"{int(value):,}"
    power = floor(log10(value))
    digits = -floor(-value / 10.0 ** (power - 2)) if up else floor(value / 10.0 ** (power - 2))
    return f"{digits / 100:.2f}e{power}"


def _bracket(number: Bracket) -> str:
    if number.least == number.most:
        return _number(number.least)
    low, high = _number(number.least), _number(number.most, up=True)
    return low if low == high else f"{low} to {high}"


def _words(part: Within) -> str:
    """Numbers of trees and, if known, of partitions; with nouns at the first percentage."""
    known = [("tree", part.trees)] + [("partition", part.partitions)] * isfinite(part.partitions.most)
    nouns = [f" {noun}{'s' * (number.most != 1)}" * (part.percent == PERCENTS[0]) for noun, number in known]
    trees, *partitions = (_bracket(number) + noun for (_, number), noun in zip(known, nouns, strict=True))
    return f"{trees} ({partitions[0]})" if partitions else trees


def _penalty_line(ranges: list[PenaltyRange], most: int = 8) -> str:
    """Best number of leaves for each penalty, the largest penalty first; of many ranges the first and the last."""
    parts = [f"{r.leaves} above {format(r.low, '.3g' if r.low < 1000 else ',.0f')}" for r in ranges[:-1]]
    if len(parts) > most:
        parts = [*parts[: most - 2], "..", parts[-1]]
    last = f"otherwise {ranges[-1].leaves}" if parts else f"{ranges[-1].leaves} at any"
    return f"Best number of leaves at a penalty per leaf: {', '.join([*parts, last])}."


class Curves:
    """Curves of one data set, and the trees close to the optimum, as far as they have been computed.

    Attributes
    ----------
    costs : dict of lists
        "greedy" and "optimum".
    near : NearOptimal, optional
    """

    def __init__(self) -> None:
        self.costs: dict[str, list[float]] = {}
        self.near: NearOptimal | None = None

    def compute(self, setting: Setting, leaf_cost: LeafCost, is_exact: bool, seconds: float | None) -> str:
        """Compute the curves, and with an exact tree the trees close to it; return why some are unknown, if so.

        Parameters
        ----------
        setting : Setting
        leaf_cost : LeafCost
            Costs of the training rows at these settings.
        is_exact : bool
            Whether there is an exact tree.
        seconds : float, optional
            Time limit.
        """
        start = clock()
        limits = setting.partitioner("tree").limits(leaf_cost.rows)
        numbers = progress(range(1, limits.leaves + 1), limits.leaves, "greedy trees")
        trees = [grow_greedily(leaf_cost, replace(limits, leaves=q)) for q in numbers]
        self.costs["greedy"] = [tree_objective(leaf_cost, tree) for tree in trees]
        with silence():  # the exact tree has issued them
            lower, reason = enumerated_boxes(leaf_cost, limits, limits.depth, seconds, start, LOWER)
            if lower is None:
                return reason
            optimum = best_costs(lower, limits.leaves).tolist()
            self.costs["optimum"] = optimum + [optimum[-1]] * (limits.leaves - len(optimum))
            if not is_exact:
                return ""
            upper, reason = enumerated_boxes(leaf_cost, limits, limits.depth, seconds, start, UPPER)
        if upper is not None:
            max_leaves = setting.max_leaves or 1 << limits.depth  # rows and patterns limit leaves anyway
            self.near = near_optimal(lower, upper, max_leaves, leaf_cost.rows.patterns, trees[-1])
        return reason
