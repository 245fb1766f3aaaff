"""The textbook formulation agrees with the dynamic program over the same boxes, under all limits."""

import numpy as np
import pytest

from formulations.leaves.any_loss import ProgramLeafCost
from formulations.leaves.box_costs import box_costs, members_of
from formulations.leaves.cost import PatternRows
from formulations.leaves.squared import SquaredLeafCost
from formulations.linear_solver import LinearSolution
from formulations.losses import Absolute
from formulations.trees import split_assign
from formulations.trees.dynamic_program import best_tree, leaves_of
from formulations.trees.split_assign import build_split_assign, solve_split_assign_tree, split_assign_problem


def random_rows(rng, n, d, weighted=True):
    X = rng.normal(size=(n, d))
    M = rng.uniform(size=(n, d)) < 0.4
    y = X @ rng.normal(size=d) + 2.0 * (M[:, 0] ^ M[:, -1]) + rng.normal(size=n)
    patterns, codes = np.unique(M, axis=0, return_inverse=True)
    s = rng.uniform(0.5, 1.5, size=n) if weighted else np.ones(n)
    return PatternRows.of(patterns, codes.ravel(), np.where(M, 0.0, X), y, s)


def absolute(rows):
    return ProgramLeafCost(rows, Absolute(), 0.0)


@pytest.mark.parametrize("seed", range(12))
def test_agrees_with_the_dynamic_program(seed):
    """Without a start, the presolve of HiGHS 1.15.1 calls seed 7 infeasible."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 4))
    depth, leaves, min_rows = int(rng.integers(1, 3)), int(rng.integers(2, 5)), int(rng.integers(1, 9))
    features = np.sort(rng.permutation(d)[: rng.integers(1, d + 1)])
    leaf_cost = absolute(random_rows(rng, 25, d))
    rows = leaf_cost.rows
    _, expected = best_tree(box_costs(leaf_cost, features, depth, min_rows), leaves)

    tree, certificate = solve_split_assign_tree(leaf_cost, features, depth, leaves, min_rows)
    assert certificate.status == "solver's bound"
    assert certificate.objective == pytest.approx(expected, rel=1e-6)
    assert certificate.bound == pytest.approx(expected, rel=1e-6)
    held = leaves_of(tree)
    members = [members_of(rows.patterns, literals) for literals in held]
    assert len(held) <= leaves
    assert max(map(len, held)) <= depth
    assert {j for literals in held for j, _ in literals} <= set(features.tolist())
    assert len(held) == 1 or min(rows.counts[each].sum() for each in members) >= min_rows
    assert leaf_cost.total(members) == pytest.approx(certificate.objective)


def test_scale_of_the_data_does_not_matter():
    rng = np.random.default_rng(3)
    rows = random_rows(rng, 25, 3)
    moved = PatternRows(rows.patterns, rows.start, rows.A * [1e3, 1.0, 1e-2], 50.0 + 0.1 * rows.y, rows.s)
    first, second = (solve_split_assign_tree(absolute(each), np.arange(3), 2, 3, 4) for each in (rows, moved))
    assert first[0] == second[0]
    assert second[1].status == "solver's bound"
    assert second[1].objective == pytest.approx(0.1 * first[1].objective, rel=1e-6)


def test_a_column_of_zeros():
    rng = np.random.default_rng(4)
    rows = random_rows(rng, 20, 2)
    padded = PatternRows(rows.patterns, rows.start, np.column_stack([rows.A, np.zeros(20)]), rows.y, rows.s)
    first, second = (solve_split_assign_tree(absolute(each), np.arange(2), 1, 2, 4)[1] for each in (rows, padded))
    assert second.status == "solver's bound"
    assert second.objective == pytest.approx(first.objective, rel=1e-6)


def test_no_split_where_rows_are_few():
    leaf_cost = absolute(random_rows(np.random.default_rng(0), 20, 2))
    tree, certificate = solve_split_assign_tree(leaf_cost, np.arange(2), 2, 4, 21)
    assert tree is None
    assert certificate.status == "solver's bound"


def test_no_time_returns_the_start_with_a_gap():
    leaf_cost = absolute(random_rows(np.random.default_rng(1), 25, 3))
    start, value = best_tree(box_costs(leaf_cost, np.arange(3), 2, 3), 4)
    tree, certificate = solve_split_assign_tree(leaf_cost, np.arange(3), 2, 4, 3, start=start, time_limit=0.0)
    assert tree == start
    assert certificate.objective == pytest.approx(value)
    assert certificate.status == "time limit"
    assert certificate.gap > 0


def test_time_limit():
    leaf_cost = absolute(random_rows(np.random.default_rng(1), 200, 5))
    _, value = best_tree(box_costs(leaf_cost, np.arange(5), 2, 10), 4)
    _, certificate = solve_split_assign_tree(leaf_cost, np.arange(5), 2, 4, 10, time_limit=1.0)
    assert certificate.status == "time limit"
    assert certificate.seconds < 8.0
    assert certificate.bound <= value * (1 + 1e-6)
    root = leaf_cost.cost(np.arange(len(leaf_cost.rows.patterns)))
    assert value * (1 - 1e-6) <= certificate.objective <= root * (1 + 1e-12)


def test_the_start_is_feasible():
    leaf_cost = absolute(random_rows(np.random.default_rng(1), 25, 3))
    start, value = best_tree(box_costs(leaf_cost, np.arange(3), 2, 3), 4)
    problem = split_assign_problem(leaf_cost, np.arange(3), 2, 4, 3)
    model = build_split_assign(problem)
    keys = [(name, key) for name in ("a", "z", "u", "b", "w", "e") for key in getattr(model, name)]
    for (name, key), number in zip(keys, split_assign._values_of(problem, start, keys), strict=True):
        getattr(model, name)[key].set_value(number)
    assert model.loss() * problem.unit == pytest.approx(value, rel=1e-9)
    for constraint in model.component_data_objects(ctype=type(model.leaves), active=True):
        assert constraint.slack() >= -1e-9, constraint.name


def test_infeasible_is_no_proof(monkeypatch):
    """The start is feasible, so the solver is wrong."""
    wrong = LinearSolution(None, np.inf, "infeasible", "HIGHS", "", 0.0)
    monkeypatch.setattr(split_assign, "solve_linear", lambda *_, **__: wrong)
    leaf_cost = absolute(random_rows(np.random.default_rng(1), 25, 3))
    tree, certificate = solve_split_assign_tree(leaf_cost, np.arange(3), 2, 4, 3)
    assert tree is None
    assert certificate.status == "infeasible"
    assert certificate.gap > 0


def test_an_interrupt_returns_the_start(monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(split_assign, "build_split_assign", interrupted)
    leaf_cost = absolute(random_rows(np.random.default_rng(1), 25, 3))
    tree, certificate = solve_split_assign_tree(leaf_cost, np.arange(3), 2, 4, 3, start=(1, None, None))
    assert tree == (1, None, None)
    assert certificate.status == "interrupted"
    assert certificate.gap > 0


def test_other_losses_are_refused():
    rows = random_rows(np.random.default_rng(1), 25, 3)
    for leaf_cost in (SquaredLeafCost(rows, 0.0), ProgramLeafCost(rows, Absolute(), 1.0)):
        with pytest.raises(ValueError, match="takes the absolute loss with ridge = 0 only"):
            solve_split_assign_tree(leaf_cost, np.arange(3), 2, 4, 3)
