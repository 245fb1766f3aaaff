"""Disjoint boxes: set partitioning agrees with brute force, and never costs more than the best tree."""

import itertools
import threading
from dataclasses import replace

import numpy as np
import pytest

from formulations.boxes import partition
from formulations.boxes.partition import box_partition_problem, solve_box_partition
from formulations.leaves.box_costs import box_costs, members_of
from formulations.leaves.cost import PatternRows
from formulations.leaves.squared import SquaredLeafCost
from formulations.linear_solver import LinearSolution
from formulations.trees.dynamic_program import best_tree, leaves_of
from tests.formulations.rows import random_rows

MISSING = (0.3, 0.6)


def pinwheel(seed=0):
    """Six patterns, none with all or nothing missing, in three boxes that cannot be the three leaves of a tree."""
    rng = np.random.default_rng(seed)
    patterns = np.array([m for m in itertools.product([False, True], repeat=3) if 0 < sum(m) < 3])
    codes = np.repeat(np.arange(6), 10)
    m = patterns[codes]
    X = rng.normal(size=(60, 3))
    first, second = ~m[:, 0] & m[:, 1], m[:, 0] & ~m[:, 2]
    y = np.where(first, 4.0, np.where(second, -3.0, 0.0)) + 0.1 * rng.normal(size=60)
    return PatternRows.of(patterns, codes, np.where(m, 0.0, X), y, np.ones(60))


def solved(leaf_cost, boxes, leaves, **options):
    tree, value = best_tree(boxes, leaves)
    return value, *solve_box_partition(leaf_cost, boxes, leaves, start=tree, **options)


def brute_force(leaf_cost, features, depth, leaves, min_rows):
    """Cost of the best partition by trying all, each box fitted on its rows."""
    patterns, counts = leaf_cost.rows.patterns, leaf_cost.rows.counts
    literals = itertools.product((None, False, True), repeat=len(features))
    cost = {}
    for choice in literals:
        box = [(int(j), side) for j, side in zip(features, choice, strict=True) if side is not None]
        members = members_of(patterns, box)
        enough = not box or counts[members].sum() >= max(1, min_rows)
        if len(box) <= depth and enough and len(members):
            cost.setdefault(frozenset(members.tolist()), leaf_cost.fit(members).cost)

    def best(left, q):
        if not left:
            return 0.0
        if q == 0:
            return np.inf
        first = min(left)
        return min((c + best(left - held, q - 1) for held, c in cost.items() if first in held <= left), default=np.inf)

    return best(frozenset(range(len(patterns))), leaves)


@pytest.mark.parametrize("seed", range(60))
def test_agrees_with_brute_force(seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 5))
    depth, leaves, min_rows = int(rng.integers(1, d + 1)), int(rng.integers(1, 7)), int(rng.integers(1, 6))
    rows = random_rows(rng, int(rng.integers(12, 60)), d, MISSING)
    features = np.sort(rng.permutation(d)[: rng.integers(1, d + 1)])
    depth = min(depth, len(features))
    leaf_cost = SquaredLeafCost(rows, float(rng.choice([0.01, 1.0])), ("leaf", "sample")[seed % 2])
    boxes = box_costs(leaf_cost, features, depth, min_rows)

    tree_value, found, certificate = solved(leaf_cost, boxes, leaves)
    expected = brute_force(leaf_cost, features, depth, leaves, min_rows)
    assert certificate.status == "optimal"
    assert certificate.objective == pytest.approx(expected, rel=1e-9)
    assert certificate.bound <= certificate.objective <= tree_value * (1 + 1e-9)
    members = [members_of(rows.patterns, box) for box in found]
    assert len(found) <= leaves
    assert all(len(box) <= depth and {j for j, _ in box} <= set(features.tolist()) for box in found)
    assert np.sort(np.concatenate(members)).tolist() == list(range(len(rows.patterns)))
    assert len(found) == 1 or min(rows.counts[held].sum() for held in members) >= min_rows
    assert leaf_cost.total(members) == pytest.approx(certificate.objective, rel=1e-9)


def test_boxes_beat_trees_on_a_pinwheel():
    rows = pinwheel()
    leaf_cost = SquaredLeafCost(rows, 0.01)
    boxes = box_costs(leaf_cost, np.arange(3), 2, 1)
    tree_value, found, certificate = solved(leaf_cost, boxes, 3)
    assert certificate.status == "optimal"
    assert certificate.objective < 0.1 * tree_value
    assert sorted(sorted(box) for box in found) == [
        [(0, False), (1, True)],
        [(0, True), (2, False)],
        [(1, False), (2, True)],
    ]


@pytest.fixture(scope="module")
def fractional():
    """An instance whose relaxation is below the optimum, and its optimum below the best tree."""
    rng = np.random.default_rng(37)
    leaf_cost = SquaredLeafCost(random_rows(rng, 120, 4, MISSING), 0.1)
    return leaf_cost, box_costs(leaf_cost, np.arange(4), 3, 5), 6


def solutions_of(monkeypatch):
    """The list of all solutions that the linear solver returns from now on."""
    returned = []
    solve_linear = partition.solve_linear

    def recorded(*arguments, **options):
        returned.append(solve_linear(*arguments, **options))
        return returned[-1]

    monkeypatch.setattr(partition, "solve_linear", recorded)
    return returned


def test_integer_rest_has_fewer_boxes_and_closes_the_gap(fractional, monkeypatch):
    leaf_cost, boxes, leaves = fractional
    returned = solutions_of(monkeypatch)
    tree_value, _, certificate = solved(leaf_cost, boxes, leaves)
    root, rest = returned
    assert root.bound * tree_value < certificate.objective * (1 - 1e-4)
    assert len(rest.values) < len(root.values)
    assert certificate.status == "optimal"
    assert certificate.objective < tree_value * (1 - 1e-4)
    assert certificate.objective == pytest.approx(brute_force(leaf_cost, np.arange(4), 3, leaves, 5), rel=1e-9)


@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_unit_of_the_target_does_not_matter(unit):
    rng = np.random.default_rng(37)
    rows = random_rows(rng, 120, 4, MISSING)
    scaled = PatternRows(rows.patterns, rows.start, rows.A, unit * rows.y, rows.s)
    plain, other = (SquaredLeafCost(each, 0.0) for each in (rows, scaled))
    _, expected, certificate = solved(plain, box_costs(plain, np.arange(4), 3, 8), 6)
    _, found, same = solved(other, box_costs(other, np.arange(4), 3, 8), 6)
    assert same.status == certificate.status == "optimal"
    assert same.objective == pytest.approx(unit**2 * certificate.objective, rel=1e-9)
    assert found == expected


def test_boxes_with_the_same_patterns_are_one_column():
    leaf_cost = SquaredLeafCost(pinwheel(), 0.01)
    boxes = box_costs(leaf_cost, np.arange(3), 3, 1)
    problem = box_partition_problem(leaf_cost.rows, boxes, 3)
    held = [tuple(cells.tolist()) for cells in problem.cells]
    assert len(set(held)) == len(held) == 1 + 6 + 6 + 6
    assert [len(boxes.literals(*box)) for box in problem.boxes] == [0] + 6 * [1] + 12 * [2]


def test_patterns_that_no_box_tells_apart_are_one_row():
    leaf_cost = SquaredLeafCost(random_rows(np.random.default_rng(0), 200, 5), 0.1)
    boxes = box_costs(leaf_cost, np.array([1, 3]), 2, 1)
    assert len(box_partition_problem(leaf_cost.rows, boxes, 4).patterns) == 4


def test_no_time_returns_the_start_with_a_gap(fractional):
    leaf_cost, boxes, leaves = fractional
    tree, value = best_tree(boxes, leaves)
    found, certificate = solve_box_partition(leaf_cost, boxes, leaves, start=tree, time_limit=0)
    assert found == leaves_of(tree)
    assert certificate.objective == pytest.approx(value)
    assert certificate.gap > 0
    assert certificate.status == "time limit"


def test_a_weak_start_is_improved(fractional):
    leaf_cost, boxes, leaves = fractional
    best = solved(leaf_cost, boxes, leaves)[2]
    _, certificate = solve_box_partition(leaf_cost, boxes, leaves, start=None)
    assert certificate.status == "optimal"
    assert certificate.objective == pytest.approx(best.objective, rel=1e-9)


def test_an_interrupt_returns_the_start(fractional, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    leaf_cost, boxes, leaves = fractional
    monkeypatch.setattr(partition, "build_box_partition", interrupted)
    tree_value, _, certificate = solved(leaf_cost, boxes, leaves)
    assert certificate.status == "interrupted"
    assert certificate.objective == pytest.approx(tree_value)
    assert certificate.gap > 0


def test_a_failed_integer_rest_keeps_the_bound_of_the_relaxation(fractional, monkeypatch):
    leaf_cost, boxes, leaves = fractional
    solve_linear = partition.solve_linear

    def failing(model, variables, **options):
        if "solver" in options:
            return LinearSolution(None, -np.inf, "solver failed: killed", "glpk", "", 0.0)
        return solve_linear(model, variables, **options)

    best = solved(leaf_cost, boxes, leaves)[2]
    monkeypatch.setattr(partition, "solve_linear", failing)
    certificate = solved(leaf_cost, boxes, leaves)[2]
    assert certificate.status == "optimal"  # the enumeration does without the integer program
    assert certificate.objective == pytest.approx(best.objective, rel=1e-9)
    monkeypatch.setattr(partition, "MOST_STEPS", 0)
    tree_value, _, certificate = solved(leaf_cost, boxes, leaves)
    assert certificate.status == "solver failed: killed"
    assert certificate.objective == pytest.approx(tree_value)
    assert 0.9 * tree_value < certificate.bound < tree_value


def test_without_the_enumeration_the_bound_is_the_solvers(fractional, monkeypatch):
    leaf_cost, boxes, leaves = fractional
    best = solved(leaf_cost, boxes, leaves)[2]
    monkeypatch.setattr(partition, "MOST_STEPS", 0)
    certificate = solved(leaf_cost, boxes, leaves)[2]
    assert certificate.status == "solver's bound"
    assert certificate.bound < certificate.objective == pytest.approx(best.objective, rel=1e-9)


@pytest.mark.parametrize("share", [0.0, 1e-8])
def test_without_the_enumeration_the_tolerances_of_another_solver_are_no_gap(fractional, monkeypatch, share):
    """Also if prices that are off by a small share leave a bound of the relaxation above that of the solver."""
    leaf_cost, boxes, leaves = fractional
    if share:
        leaf_cost = SquaredLeafCost(pinwheel(), 0.1)  # whose relaxation is integral
        boxes, leaves = box_costs(leaf_cost, np.arange(3), 2, 1), 3
    solve_linear = partition.solve_linear

    def inexact(model, variables, **options):
        solution = solve_linear(model, variables, **options)
        duals = {row: value * (1.0 - share) for row, value in (solution.duals or {}).items()}
        return replace(solution, duals=duals)

    best = solved(leaf_cost, boxes, leaves)[2]
    monkeypatch.setattr(partition, "solve_linear", inexact)
    monkeypatch.setattr(partition, "MOST_STEPS", 0)
    certificate = solved(leaf_cost, boxes, leaves, solver="glpk")[2]
    assert (certificate.solver, certificate.status) == ("glpk", "solver's bound")
    assert 1e-9 < certificate.gap / certificate.objective < 1e-6
    assert certificate.tolerance == 1e-6 * certificate.objective
    assert certificate.objective == pytest.approx(best.objective, rel=1e-9)


def test_another_solver(fractional):
    leaf_cost, boxes, leaves = fractional
    expected = solved(leaf_cost, boxes, leaves)[2]
    certificate = solved(leaf_cost, boxes, leaves, solver="appsi_highs")[2]
    assert (certificate.solver, certificate.status) == ("appsi_highs", "optimal")
    assert certificate.objective == pytest.approx(expected.objective, rel=1e-9)
    with pytest.raises(ValueError, match="no solver called 'nonsense'"):
        solved(leaf_cost, boxes, leaves, solver="nonsense")


def test_one_pattern_and_from_a_thread(fractional):
    leaf_cost, boxes, leaves = fractional
    results = []
    worker = threading.Thread(target=lambda: results.append(solved(leaf_cost, boxes, leaves)[2]), daemon=True)
    worker.start()
    worker.join(30)
    assert results[0].status == "optimal"

    rng = np.random.default_rng(0)
    A = rng.normal(size=(20, 2))
    rows = PatternRows.of(np.zeros((1, 2), dtype=bool), np.zeros(20, dtype=int), A, rng.normal(size=20), np.ones(20))
    leaf_cost = SquaredLeafCost(rows, 0.1)
    _, found, certificate = solved(leaf_cost, box_costs(leaf_cost, np.arange(2), 2, 5), 4)
    assert found == [[]]
    assert certificate.status == "optimal"
