"""Groups with a proof in exact arithmetic agree with the dynamic program over subsets."""

import numpy as np
import pytest

from formulations.groups import subsets as module
from formulations.groups.problem import PatternGroupsProblem
from formulations.groups.subsets import best_groups_by_subsets, is_provable, proven_groups
from formulations.leaves.squared import SquaredLeafCost
from formulations.trees.dynamic_program import tolerance_of
from tests.formulations.rows import random_rows


def problem_of(leaf_cost, max_groups, min_rows):
    rows, gram, scale = leaf_cost.rows, leaf_cost.pattern_grams(), leaf_cost.ridge_scale
    return PatternGroupsProblem(gram, rows.counts, rows.weights, leaf_cost.ridge, scale, max_groups, min_rows)


@pytest.mark.parametrize("seed", range(20))
def test_equals_the_dynamic_program(seed):
    rng = np.random.default_rng(seed)
    leaf_cost = SquaredLeafCost(random_rows(rng, 100, 3), [0.1, 1.0][seed % 2], ("leaf", "sample")[seed % 3 == 0])
    groups, min_rows = int(rng.integers(1, 5)), int(rng.integers(1, 12))
    expected = best_groups_by_subsets(problem_of(leaf_cost, groups, min_rows))[1]
    one_group = np.zeros(len(leaf_cost.rows.patterns), dtype=np.int64)
    labels, objective, bound = proven_groups(leaf_cost, one_group, groups, min_rows)
    assert objective == pytest.approx(expected, rel=1e-9)
    assert bound <= objective <= bound + tolerance_of(leaf_cost, objective)
    counts = np.bincount(labels, weights=leaf_cost.rows.counts)
    assert len(counts) <= groups
    assert len(counts) == 1 or counts.min() >= min_rows


def test_groups_that_gram_matrices_cannot_tell_are_computed_from_rows(monkeypatch):
    leaf_cost = SquaredLeafCost(random_rows(np.random.default_rng(3), 80, 3), 0.5)
    ends = module.lower_ends
    expected = proven_groups(leaf_cost, np.zeros(len(leaf_cost.rows.patterns), dtype=np.int64), 3, 5)

    def nothing_known(*arguments):
        lower = ends(*arguments)
        lower[np.isfinite(lower)] = 0.0
        return lower

    monkeypatch.setattr(module, "lower_ends", nothing_known)
    found = proven_groups(leaf_cost, np.zeros(len(leaf_cost.rows.patterns), dtype=np.int64), 3, 5)
    assert found[1:] == pytest.approx(expected[1:], rel=1e-9)


def test_only_few_patterns_are_provable():
    rng = np.random.default_rng(0)
    assert is_provable(SquaredLeafCost(random_rows(rng, 50, 3), 1.0))
    assert not is_provable(SquaredLeafCost(random_rows(rng, 300, 6), 1.0))
