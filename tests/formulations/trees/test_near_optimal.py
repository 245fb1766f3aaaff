"""Numbers of trees close to the optimum, against all trees one by one."""

from fractions import Fraction
from math import inf

import numpy as np
import pytest

from formulations.leaves.box_costs import BoxCosts
from formulations.trees import near_optimal, rounded_costs
from formulations.trees.dynamic_program import best_costs, best_tree, leaves_of, tree_cost
from formulations.trees.near_optimal import trees_better, trees_within
from formulations.trees.rounded_costs import TooManyTreesError
from tests.formulations.trees.small_trees import all_trees, exact_cost, random_boxes


def shifted(boxes, rng, most):
    """Costs that are smaller by a random share."""
    return BoxCosts(boxes.features, boxes.depth, [c * (1 - most * rng.uniform(size=c.shape)) for c in boxes.costs])


@pytest.fixture(params=["as formed", "on a grid"])
def coarse(request, monkeypatch):
    """Both ways to add lists, the second one also where lists are short."""
    if request.param == "on a grid":
        monkeypatch.setattr(near_optimal, "MOST_VALUES", 8)
    return request.param == "on a grid"


@pytest.mark.parametrize("seed", range(24))
def test_the_count_is_that_of_all_trees_one_by_one(seed, coarse):
    rng = np.random.default_rng(seed)
    d, depth = [(1, 1), (3, 2), (4, 2), (3, 3), (5, 2), (3, 1)][seed % 6]
    upper = random_boxes(rng, d, depth, whole=seed % 2 == 0)
    lower = upper if seed % 4 < 3 else shifted(upper, rng, 0.01)
    leaves = int(rng.integers(2, 2**depth + 1)) if seed % 3 else 2**depth
    trees = [tree for tree in all_trees(range(d), depth) if len(leaves_of(tree)) <= leaves]
    percents = [0, 1, 2, 5, 20, 100]
    found = trees_within(lower, upper, leaves, percents)
    for truth in (lower, upper):
        costs = [exact_cost(truth, tree) for tree in trees]
        for percent, bracket in zip(percents, found, strict=True):
            number = sum(cost <= min(costs) * (1 + Fraction(percent, 100)) for cost in costs)
            assert bracket.least <= number <= bracket.most
            if lower is upper and seed % 2 == 0 and not coarse:
                assert bracket.least == number == bracket.most
        tree = trees[int(rng.choice([i for i, cost in enumerate(costs) if cost < inf]))]
        bracket = trees_better(lower, upper, leaves, tree)
        number = sum(cost < exact_cost(truth, tree) * (1 - Fraction(1, 10**9)) for cost in costs)
        assert bracket.least <= number <= bracket.most
        if lower is upper and not coarse:
            assert bracket.least == bracket.most


def test_the_optimum_is_counted_and_nothing_is_better():
    boxes = random_boxes(np.random.default_rng(0), 5, 3, whole=True)
    tree, cost = best_tree(boxes, 8)
    assert tree_cost(boxes, tree) == cost == best_costs(boxes, 8)[-1]
    assert trees_within(boxes, boxes, 8, [0])[0].least >= 1
    assert trees_better(boxes, boxes, 8, tree).most == 0


@pytest.mark.parametrize("leaves", [16, 9])
def test_a_coarse_grid_brackets_a_fine_one(leaves, monkeypatch):
    boxes = random_boxes(np.random.default_rng(1), 6, 4, whole=False)
    monkeypatch.setattr(near_optimal, "MOST_VALUES", 10**7)
    exact = trees_within(boxes, boxes, leaves, [1, 2, 5])
    assert all(bracket.least == bracket.most for bracket in exact)
    monkeypatch.setattr(near_optimal, "MOST_VALUES", 16)
    for bracket, coarse in zip(exact, trees_within(boxes, boxes, leaves, [1, 2, 5]), strict=True):
        assert coarse.least <= bracket.least <= coarse.most <= 2 * coarse.least + 5


def test_what_cannot_be_counted_says_why(monkeypatch):
    boxes = random_boxes(np.random.default_rng(2), 4, 3, whole=False)
    zero = BoxCosts(boxes.features, 3, [np.zeros_like(level) for level in boxes.costs])
    with pytest.raises(TooManyTreesError, match="the optimum is 0"):
        trees_within(zero, zero, 8, [1])
    for module, name, value, words in (
        (rounded_costs, "MOST_BOXES", 5, "too many boxes"),
        (near_optimal, "MOST_VISITED", 3, "so close to the optimum"),
        (near_optimal, "MOST_TREES", 2, "more than"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, value)
            with pytest.raises(TooManyTreesError, match=words):
                trees_within(boxes, boxes, 8, [50])
