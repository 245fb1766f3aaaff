"""Numbers of distinct partitions close to the optimum, against all trees one by one."""

from fractions import Fraction
from math import inf

import numpy as np
import pytest

from formulations.leaves.box_costs import BoxCosts, members_of
from formulations.trees import near_optimal
from formulations.trees.dynamic_program import leaves_of
from formulations.trees.near_optimal import partitions_within
from formulations.trees.rounded_costs import TooManyTreesError
from tests.formulations.trees.small_trees import all_trees, random_boxes


def boxes_of_members(rng, patterns, depth):
    """Costs that depend on the patterns in a box only, infinite if there are none."""
    boxes = random_boxes(rng, patterns.shape[1], depth, whole=False)
    known: dict[bytes, float] = {}
    for k, level in enumerate(boxes.costs):
        for (rank, v), cost in np.ndenumerate(level):
            members = members_of(patterns, boxes.literals(k, rank, v))
            level[rank, v] = known.setdefault(members.tobytes(), cost) if len(members) else inf
    return boxes


def distinct(boxes, trees, patterns):
    """The cost of each partition."""
    costs = {}
    for tree in trees:
        leaves = leaves_of(tree)
        parts = [boxes.cost(literals) for literals in leaves]
        if inf not in parts:
            costs[frozenset(members_of(patterns, leaf).tobytes() for leaf in leaves)] = sum(map(Fraction, parts))
    return costs


@pytest.mark.parametrize("seed", range(16))
def test_the_count_is_that_of_all_trees_one_by_one(seed):
    rng = np.random.default_rng(seed)
    d, depth = [(3, 2), (4, 2), (3, 3), (5, 2)][seed % 4]
    patterns = np.unique(rng.uniform(size=(12, d)) < 0.5, axis=0)
    if seed % 2:
        patterns[:, 1] = patterns[:, 0]
        patterns = np.unique(patterns, axis=0)
    boxes = boxes_of_members(rng, patterns, depth)
    leaves = int(rng.integers(2, 2**depth + 1)) if seed % 3 else 2**depth
    trees = [tree for tree in all_trees(range(d), depth) if len(leaves_of(tree)) <= leaves]
    costs = distinct(boxes, trees, patterns)
    for percent in (0, 5, 30, 100):
        ceiling = min(costs.values()) * (1 + Fraction(percent, 100))
        number = sum(cost <= ceiling for cost in costs.values())
        bracket = partitions_within(boxes, boxes, leaves, percent, patterns)
        assert bracket.least <= number <= bracket.most
        if percent:
            assert bracket.least == bracket.most
    lower = BoxCosts(boxes.features, depth, [0.99 * level for level in boxes.costs])
    wide = partitions_within(lower, boxes, leaves, 30, patterns)
    assert wide.least <= sum(cost <= min(costs.values()) * Fraction(13, 10) for cost in costs.values()) <= wide.most


def test_too_many_partitions_say_so(monkeypatch):
    rng = np.random.default_rng(0)
    patterns = np.unique(rng.uniform(size=(12, 4)) < 0.5, axis=0)
    boxes = boxes_of_members(rng, patterns, 3)
    for name, words in (("MOST_UNIONS", "too many partitions"), ("MOST_VISITED", "too many boxes")):
        monkeypatch.setattr(near_optimal, name, 2)
        with pytest.raises(TooManyTreesError, match=words):
            partitions_within(boxes, boxes, 8, 100, patterns)
