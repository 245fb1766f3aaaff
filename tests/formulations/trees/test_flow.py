"""The best tree: mixed-integer program, dynamic program and brute force agree under all limits."""

import threading
from dataclasses import replace

import numpy as np
import pytest

from formulations.leaves.box_costs import OutOfTimeError, box_costs, count_boxes, members_of, subset_of_rank
from formulations.leaves.cost import PatternRows
from formulations.leaves.logistic import LogisticLeafCost
from formulations.leaves.squared import SquaredLeafCost
from formulations.linear_solver import solve_linear
from formulations.trees.dynamic_program import best_costs, best_tree, leaves_of, tree_cost
from formulations.trees.flow import build_optimal_tree, optimal_tree_problem, solve_optimal_tree
from tests.formulations.rows import random_rows


def solved(boxes, rows, leaves, last_splits="best", start=None, **options):
    """Tree and certificate of the mixed-integer program."""
    problem = optimal_tree_problem(boxes, rows, leaves, None, last_splits, start)
    return solve_optimal_tree(problem, start=start, **options)


def brute_force(leaf_cost, members, features, depth, leaves, min_rows, is_root=True):
    """Cost of the best tree by trying all, each leaf fitted on its rows."""
    counts = leaf_cost.rows.counts
    enough = is_root or counts[members].sum() >= min_rows
    best = leaf_cost.fit(members).cost if enough else np.inf
    if depth == 0 or leaves == 1:
        return best
    for j in features:
        missing = leaf_cost.rows.patterns[members, j]
        sides = members[~missing], members[missing]
        if min(counts[side].sum() for side in sides) < max(1, min_rows):
            continue
        for a in range(1, leaves):
            below = [
                brute_force(leaf_cost, side, features, depth - 1, q, min_rows, False)
                for side, q in zip(sides, (a, leaves - a), strict=True)
            ]
            best = min(best, sum(below))
    return best


@pytest.mark.parametrize("seed", range(200))
def test_three_computations_agree(seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 6))
    depth = int(rng.integers(1, 3 if d > 3 else 4))
    rows = random_rows(rng, int(rng.integers(10, 50)), d)
    leaves, min_rows = int(rng.integers(1, 2**depth + 1)), int(rng.integers(1, 8))
    features = np.sort(rng.permutation(d)[: rng.integers(1, d + 1)])
    scale = ("leaf", "sample")[seed % 2]
    leaf_cost = SquaredLeafCost(rows, float(rng.choice([0.0, 0.01, 1.0])), scale)
    everything = np.arange(len(rows.patterns))
    expected = brute_force(leaf_cost, everything, features, depth, leaves, min_rows)

    boxes = box_costs(leaf_cost, features, depth, min_rows)
    tree, value = best_tree(boxes, leaves)
    found, certificate = solved(boxes, rows, leaves)
    _, with_all = solved(boxes, rows, leaves, "all")
    tolerance = 1e-9 * max(expected, 1e-3)
    assert abs(value - expected) <= tolerance
    assert abs(certificate.objective - expected) <= tolerance
    assert abs(with_all.objective - expected) <= tolerance
    assert certificate.status == with_all.status == "solver's bound"
    assert certificate.bound <= certificate.objective
    for result in (tree, found):
        held = leaves_of(result)
        assert len(held) <= leaves
        assert max(map(len, held)) <= depth
        assert {j for literals in held for j, _ in literals} <= set(features.tolist())
        members = [members_of(rows.patterns, literals) for literals in held]
        assert sorted(np.concatenate(members).tolist()) == everything.tolist()
        assert len(held) == 1 or min(rows.counts[m].sum() for m in members) >= min_rows
        assert abs(leaf_cost.total(members) - expected) <= tolerance


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
@pytest.mark.parametrize("scale", ["leaf", "sample"])
def test_boxes_by_inclusion_and_exclusion_are_the_boxes(depth, scale):
    rows = random_rows(np.random.default_rng(depth), 150, 5)
    leaf_cost = SquaredLeafCost(rows, 0.3, scale)
    boxes = box_costs(leaf_cost, np.array([0, 1, 3, 4]), depth, 4)
    assert sum(level.size for level in boxes.costs) == count_boxes(4, depth)
    for k in range(1, depth + 1):
        for rank in range(len(boxes.costs[k])):
            for v in range(1 << k):
                literals = boxes.literals(k, rank, v)
                members = members_of(rows.patterns, literals)
                if rows.counts[members].sum() < 4:
                    assert np.isinf(boxes.cost(literals))
                else:
                    assert boxes.cost(literals) == pytest.approx(leaf_cost.fit(members).cost, rel=1e-9, abs=1e-9)


def test_subsets_are_numbered_one_by_one():
    for k in range(5):
        listed = [subset_of_rank(rank, k) for rank in range(count_boxes(7, k) // 2**k if k == 0 else 35)]
        assert listed == sorted(set(listed), key=lambda subset: subset[::-1])


def test_costs_fall_with_the_number_of_leaves_and_meet_the_budgeted_optima():
    rows = random_rows(np.random.default_rng(5), 400, 5)
    boxes = box_costs(SquaredLeafCost(rows, 0.1), np.arange(5), 3, 5)
    costs = best_costs(boxes, 8)
    assert np.all(np.diff(costs) <= 0)
    assert costs == pytest.approx([best_tree(boxes, q)[1] for q in range(1, 9)], rel=1e-14)


def test_logistic_tree_agrees_with_brute_force():
    rows = random_rows(np.random.default_rng(0), 120, 3)
    classes = PatternRows(rows.patterns, rows.start, rows.A, np.where(rows.y > 0, 1.0, -1.0), rows.s)
    leaf_cost = LogisticLeafCost(classes, 0.5)
    boxes = box_costs(leaf_cost, np.arange(3), 2, 5)
    expected = brute_force(leaf_cost, np.arange(len(rows.patterns)), range(3), 2, 4, 5)
    assert best_tree(boxes, 4)[1] == pytest.approx(expected, rel=1e-10)
    assert solved(boxes, classes, 4)[1].objective == pytest.approx(expected, rel=1e-9)


@pytest.fixture(scope="module")
def leaf_cost():
    return SquaredLeafCost(random_rows(np.random.default_rng(1), 300, 5), 1.0)


@pytest.fixture(scope="module")
def boxes(leaf_cost):
    return box_costs(leaf_cost, np.arange(5), 3, 5)


def test_no_time_leaves_a_gap(leaf_cost, boxes):
    tree, certificate = solved(boxes, leaf_cost.rows, 8, time_limit=0.0)
    assert tree is None
    assert certificate.gap > 0
    assert certificate.status == "time limit"
    with pytest.raises(OutOfTimeError):
        box_costs(leaf_cost, np.arange(5), 3, 5, deadline=0.0)


def test_fractional_values_of_an_interrupted_solve_are_not_a_tree(leaf_cost, boxes, monkeypatch):
    def interrupted(model, variables, **options):
        found = solve_linear(model, variables, **options)
        return replace(found, values=np.full(len(variables), 0.5), bound=0.0, status="time limit")

    monkeypatch.setattr("formulations.linear_solver.solve_linear", interrupted)
    tree, certificate = solved(boxes, leaf_cost.rows, 8)
    assert tree is None
    assert certificate.status == "time limit"


def test_the_start_is_never_made_worse(leaf_cost, boxes):
    start = (0, None, (2, None, None))
    tree, certificate = solved(boxes, leaf_cost.rows, 8, start=start, time_limit=0.0)
    assert tree == start
    assert certificate.objective == tree_cost(boxes, start)
    assert solved(boxes, leaf_cost.rows, 5, start=start)[1].objective == pytest.approx(
        best_tree(boxes, 5)[1], rel=1e-12
    )


def test_a_start_with_other_last_splits_is_replaced_by_one_that_costs_no_more(leaf_cost, boxes):
    start = (0, (1, (4, None, None), None), (2, None, None))
    tree, certificate = solved(boxes, leaf_cost.rows, 8, start=start, time_limit=0.0)
    assert tree_cost(boxes, tree) == pytest.approx(certificate.objective, rel=1e-12)
    assert certificate.objective <= tree_cost(boxes, start)
    assert solved(boxes, leaf_cost.rows, 8, "all", start, time_limit=0.0)[0] == start


def test_the_model_has_the_parts_of_its_statement():
    import pyomo.environ as pyo

    rows = random_rows(np.random.default_rng(2), 300, 4)
    names = ["income", "age", "sex", "km"]
    boxes = box_costs(SquaredLeafCost(rows, 1.0), np.arange(4), 3, 1)
    free = build_optimal_tree(optimal_tree_problem(boxes, rows, 8, names, "all"))
    assert len(free.flow) == len(free.BOXES) == len(free.leaf) == count_boxes(4, 3)
    assert len(free.SPLITS) == len(free.split) == 4 + 8 * 3 + 24 * 2
    assert list(free.FEATURES) == names
    assert all(v.is_continuous() and v.ub is None for v in free.component_data_objects(pyo.Var))
    box = "income missing, age observed"
    held = members_of(rows.patterns, [(0, True), (1, False)])
    assert free.rows[box] == rows.counts[held].sum()
    assert free.cost[box].value == boxes.cost([(0, True), (1, False)])
    kinds = pyo.Set, pyo.Param, pyo.Var, pyo.Expression, pyo.Objective, pyo.Constraint
    assert all(part.doc for part in free.component_objects(kinds))

    best = build_optimal_tree(optimal_tree_problem(boxes, rows, 5, names), integer=True)
    assert len(best.SPLITS) == 4 + 8 * 3 + 24  # one last split of each box
    assert all(v.is_binary() for v in best.component_data_objects(pyo.Var))
    assert pyo.value(best.leaves.upper) == 5


def test_names_that_cannot_be_told_apart_are_refused():
    rows = random_rows(np.random.default_rng(2), 100, 3)
    boxes = box_costs(SquaredLeafCost(rows, 1.0), np.arange(3), 2, 1)
    for names in (["age", "age", "sex"], ["a", "b", "a missing, b"]):
        with pytest.raises(ValueError, match="same name"):
            optimal_tree_problem(boxes, rows, 4, names)


def test_a_solve_in_a_thread_ends(leaf_cost, boxes):
    results = []
    threads = [threading.Thread(target=lambda: results.append(solved(boxes, leaf_cost.rows, 6)[1])) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert [certificate.status for certificate in results] == ["solver's bound"] * 3
