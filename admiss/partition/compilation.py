"""Compilation of the loops of exact partitions, before the clock of a time limit or a certificate starts."""

from functools import cache

import numpy as np

from admiss.partition.base import Limits
from admiss.partition.greedy import grow_greedily
from formulations.groups.compilation import compile_loops as compile_search
from formulations.groups.proven_groups import proven_groups
from formulations.leaves.box_costs import box_costs
from formulations.leaves.cost import PatternRows
from formulations.leaves.squared import SquaredLeafCost
from formulations.trees.dynamic_program import proven_tree

LIMITS = Limits(2, 3, 5, np.arange(2))


@cache
def compile_loops() -> None:
    """Compile or load the loops of trees and boxes, once per process."""
    leaf_cost = _small_cost(1.0)
    grow_greedily(leaf_cost, LIMITS)
    boxes = box_costs(leaf_cost, LIMITS.features, LIMITS.depth, LIMITS.rows)
    proven_tree(leaf_cost, boxes, LIMITS.leaves)


@cache
def compile_group_loops() -> None:
    """Compile or load the loops of groups, once per process, with those of leaves that are nearly singular."""
    leaf_cost = _small_cost(0.0)
    grow_greedily(leaf_cost, LIMITS)
    compile_search()
    proven_groups(leaf_cost, np.zeros(4, dtype=np.int64), LIMITS.leaves, LIMITS.rows)


def _small_cost(ridge: float) -> SquaredLeafCost:
    """Costs of twenty rows with four patterns; the second feature nearly repeats the first."""
    codes, rng = np.repeat(np.arange(4), 5), np.random.default_rng(0)
    patterns = np.array([[False, False], [False, True], [True, False], [True, True]])
    a, noise, y = rng.normal(size=(3, 20))
    A = np.column_stack([a, a + 1e-7 * noise])
    return SquaredLeafCost(PatternRows.of(patterns, codes, A, y + codes, np.ones(20)), ridge)
