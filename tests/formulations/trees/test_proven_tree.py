"""Proven trees: lower ends that are loose are refined until the optimum is proven."""

import numpy as np
import pytest

from formulations.leaves.box_costs import box_costs
from formulations.leaves.squared import SquaredLeafCost
from formulations.trees import dynamic_program as module
from formulations.trees.dynamic_program import (
    best_tree,
    best_values,
    leaves_of,
    proven_tree,
    tolerance_of,
    tree_cost,
    update_values,
)
from tests.formulations.rows import random_rows


def loosened(rng, boxes, share):
    """Lower ends of which a share is far too low."""
    for level in boxes.costs[1:]:
        loose = (rng.random(level.shape) < share) & np.isfinite(level)
        level[loose] *= rng.choice([0.0, 0.5, 1.0 - 1e-6], size=int(loose.sum()))
    return boxes


@pytest.mark.parametrize("seed", range(30))
def test_loose_lower_ends_do_not_change_the_optimum(seed):
    rng = np.random.default_rng(seed)
    leaf_cost = SquaredLeafCost(random_rows(rng, 120, 4), [0.01, 1.0][seed % 2])
    leaves = int(rng.integers(2, 9))
    expected = best_tree(box_costs(leaf_cost, np.arange(4), 3, 4), leaves)[1]
    found = proven_tree(leaf_cost, loosened(rng, box_costs(leaf_cost, np.arange(4), 3, 4), 0.3), leaves)
    assert found.objective == pytest.approx(expected, rel=1e-9)
    assert found.bound <= found.objective <= found.bound + tolerance_of(leaf_cost, found.objective)


@pytest.mark.parametrize("seed", range(10))
def test_updated_values_are_those_of_a_new_run(seed):
    rng = np.random.default_rng(seed)
    boxes = box_costs(SquaredLeafCost(random_rows(rng, 150, 5), 1.0), np.array([0, 2, 3, 4]), 3, 3)
    values, (tree, _) = best_values(boxes, 6), best_tree(boxes, 6)
    leaves = leaves_of(tree)
    for leaf in leaves:
        k, rank, v = boxes.index(leaf)
        boxes.costs[k][rank, v] += 5.0
    update_values(values, boxes, leaves)
    for updated, new in zip(values, best_values(boxes, 6), strict=True):
        assert np.array_equal(updated, new)
    assert tree_cost(boxes, tree) > best_tree(boxes, 6)[1]


def test_a_leaf_that_nothing_settles_leaves_a_gap(monkeypatch):
    leaf_cost = SquaredLeafCost(random_rows(np.random.default_rng(0), 100, 3), 1.0)
    monkeypatch.setattr(leaf_cost, "_lower_end", lambda members: 0.0)
    boxes = box_costs(leaf_cost, np.arange(3), 2, 5)
    for level in boxes.costs:
        level[np.isfinite(level)] = 0.0
    found = proven_tree(leaf_cost, boxes, 4)
    assert (found.bound, found.reason) == (0.0, module.ILL_CONDITIONED)
    assert found.objective > 0


def test_out_of_time_the_bound_is_that_of_the_first_round():
    rng = np.random.default_rng(1)
    leaf_cost = SquaredLeafCost(random_rows(rng, 100, 4), 1.0)
    boxes = loosened(rng, box_costs(leaf_cost, np.arange(4), 3, 4), 0.9)
    found = proven_tree(leaf_cost, boxes, 8, deadline=0.0)
    assert found.reason == "time limit"
    assert found.bound < found.objective
