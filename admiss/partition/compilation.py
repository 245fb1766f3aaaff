"""Compilation of the loops of exact partitions, before the clock of a time limit or a certificate starts."""

from functools import cache

import numpy as np

from admiss.partition.base import Limits
from admiss.partition.greedy import grow_greedily
from admiss.terminal.progress import progress
from formulations.leaves.box_costs import box_costs
from formulations.leaves.cost import PatternRows
from formulations.leaves.squared import SquaredLeafCost
from formulations.trees.proven_tree import proven_tree


@cache
def compile_loops() -> None:
    """Compile or load the loops of trees and boxes, once per process, on twenty rows with four patterns."""
    codes, rng = np.repeat(np.arange(4), 5), np.random.default_rng(0)
    patterns = np.array([[False, False], [False, True], [True, False], [True, True]])
    rows = PatternRows.of(patterns, codes, rng.normal(size=(20, 2)), rng.normal(size=20) + codes, np.ones(20))
    leaf_cost, limits = SquaredLeafCost(rows, 1.0), Limits(2, 3, 5, np.arange(2))

    def prove() -> None:
        boxes = box_costs(leaf_cost, limits.features, limits.depth, limits.rows)
        proven_tree(leaf_cost, boxes, limits.leaves)

    steps = [lambda: grow_greedily(leaf_cost, limits), prove]
    for step in progress(steps, len(steps), "compiling"):
        step()
