"""The bound by blocks of patterns is below the cost of every partition, whatever the blocks, the ridge and the time."""

import time

import numpy as np
import pytest

from formulations.certificate import clock
from formulations.groups import blocks, search
from formulations.groups.blocks import LAYOUTS, Layout, OrderSearch, bound_by_blocks, bound_of_layout
from formulations.groups.problem import PatternGroupsProblem, group_cost, solve_pattern_groups
from formulations.groups.subsets import best_groups_by_subsets

NASTY = ("plain", "collinear", "ties", "rare", "offset", "constant")


def draw(seed, patterns, kind="plain", **settings):
    """A problem whose patterns have few and many rows, with what makes least squares difficult."""
    rng = np.random.default_rng(seed)
    gram, counts, features = [], [], 4
    slopes = rng.normal(size=(3, features))
    for p in range(patterns):
        n = int(rng.integers(1, 4)) if kind == "rare" and p % 2 else int(rng.integers(2, 25))
        x = rng.normal(size=(n, features)) * (rng.uniform(size=features) > 0.4)
        if kind == "collinear":
            x[:, 1] = x[:, 0] * (1.0 + 1e-5 * rng.normal(size=n))
        if kind == "offset":
            x += 1e3
        if kind == "constant":
            x[:, 2] = 1.0
        y = (x * slopes[p % 3]).sum(axis=1) + (0.0 if kind == "constant" else rng.normal(size=n))
        table = np.column_stack([np.ones(n), x, y])
        if kind == "ties" and p % 3:
            gram.append(gram[-1])
            counts.append(counts[-1])
        else:
            gram.append(table.T @ table)
            counts.append(n)
    rows = np.array(counts)
    return PatternGroupsProblem(np.array(gram), rows, rows.astype(float), **settings)


@pytest.mark.parametrize("layout", [Layout(2, 1), Layout(3, 2), Layout(5, 4), Layout(9, 1)])
def test_every_pattern_is_in_as_many_blocks_as_the_layout_says(layout):
    members = layout.cut(np.random.default_rng(0).permutation(47))
    assert len(members) == layout.blocks
    assert np.bincount(np.concatenate(members), minlength=47).tolist() == [layout.times] * 47
    assert max(map(len, members)) <= layout.size(47)


@pytest.mark.parametrize("ridge_scale", ["sample", pytest.param("leaf", marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", NASTY)
def test_no_layout_bounds_above_the_optimum(kind, ridge_scale):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        ridge, groups, least = float(rng.choice([0.0, 1e-3, 1.0])), int(rng.integers(2, 5)), int(rng.choice([1, 20]))
        problem = draw(seed, 9, kind, ridge=ridge, ridge_scale=ridge_scale, max_groups=groups, min_rows=least)
        exact = best_groups_by_subsets(problem)[1]
        choice, rounding = problem.choice(), 1e-9 * exact + 1e-11 * problem.gram[:, -1, -1].sum()
        for layout in (Layout(m, w) for m, w in [*LAYOUTS, (9, 1), (9, 2)]):
            members = layout.cut(rng.permutation(9))
            bound, finished = bound_of_layout(choice, layout, members, groups, np.inf, rng)
            assert finished
            assert bound <= exact + rounding
            stopped, _ = bound_of_layout(choice, layout, members, groups, clock(), rng)
            assert stopped <= bound + rounding


def test_a_single_block_is_the_relaxation_and_larger_blocks_are_better():
    problem = draw(0, 12, ridge=0.01, max_groups=3)
    exact, rng = best_groups_by_subsets(problem)[1], np.random.default_rng(0)
    found = []
    for layout in (Layout(1, 1), Layout(2, 1), Layout(3, 1), Layout(12, 1)):
        members = layout.cut(np.arange(12))
        found.append(bound_of_layout(problem.choice(), layout, members, 3, np.inf, rng)[0])
    assert found[0] == pytest.approx(exact, rel=0.02)
    assert found == sorted(found, reverse=True)
    assert found[-1] == pytest.approx(sum(group_cost(problem, [p]) for p in range(12)), rel=1e-9)


@pytest.mark.parametrize("ridge_scale", ["sample", "leaf"])
def test_the_search_with_blocks_is_right(ridge_scale, monkeypatch):
    monkeypatch.setattr(search, "MOST_DIRECT", 3)
    monkeypatch.setattr(blocks, "FIRST", 4)
    problem = draw(5, 12, ridge=0.01, ridge_scale=ridge_scale, max_groups=3, min_rows=15)
    exact = best_groups_by_subsets(problem)[1]
    plain = solve_pattern_groups(problem)
    bounds = []
    labels, certificate = solve_pattern_groups(
        problem, time_limit=600, on_progress=lambda _, bound: bounds.append(bound)
    )
    assert labels.tolist() == plain[0].tolist()
    assert certificate.objective == pytest.approx(exact, rel=1e-9)
    assert certificate.relative_gap <= 1e-8
    assert 0.5 * exact < bounds[0] <= max(bounds) <= exact * (1 + 1e-9)


def test_larger_blocks_follow_as_time_allows(monkeypatch):
    """With time for everything, the first layout is followed by the search of all patterns at once."""
    tried = []

    def record(c, layout, members, max_groups, deadline, rng):
        tried.append((layout.blocks, layout.times))
        return 0.0, True

    monkeypatch.setattr(blocks, "bound_of_layout", record)
    problem = draw(1, 60, ridge=0.01, max_groups=3)
    arguments = problem.choice(), 3, np.zeros(60, dtype=np.int64)
    bound_by_blocks(*arguments, clock() + 2.0, np.random.default_rng(0), lambda bound: None)
    assert tried == [(2, 1)]
    assert blocks._next_layout(60, Layout(2, 1), 0.5, 65.0) == Layout(3, 2)
    assert blocks._next_layout(60, Layout(2, 1), 10.0, 45.0) == Layout(2, 1)
    assert blocks._next_layout(60, Layout(2, 1), 100.0, 45.0) is None
    assert blocks._next_layout(60, Layout(3, 2), 13.0, 10.0) is None


def test_a_layout_is_searched_again_only_with_another_order(monkeypatch):
    tried = []

    def record(c, layout, members, max_groups, deadline, rng):
        time.sleep(0.05)
        tried.append(tuple(members[0]))
        return 0.0, True

    monkeypatch.setattr(blocks, "bound_of_layout", record)
    monkeypatch.setattr(blocks, "GROWTH", 2.0)
    arguments = draw(1, 46, ridge=0.01, max_groups=3).choice(), 3, np.arange(46) % 3
    bound_by_blocks(*arguments, clock() + 3.0, np.random.default_rng(0), lambda bound: None)
    assert len(set(tried)) == len(tried) > 1


@pytest.mark.parametrize("layout", [Layout(2, 1), Layout(3, 2)])
def test_the_order_of_patterns_is_improved(layout):
    """Its estimate is the sum of the least costs of the blocks, and exceeds that of random orders."""
    problem = draw(3, 14, ridge=0.01, max_groups=3)
    c, rng = problem.choice(), np.random.default_rng(0)
    orders = OrderSearch(c, layout, 3, np.arange(14) % 3, rng)
    assert not orders.improve(clock() - 1.0)
    assert orders.best.tolist() == list(range(14))
    assert orders.improve(clock() + 10.0)
    assert sorted(orders.best) == list(range(14))
    random = [least_costs(problem, layout, rng.permutation(14)) for _ in range(20)]
    assert orders.highest == pytest.approx(least_costs(problem, layout, orders.best), rel=1e-9)
    assert orders.highest >= max(random)


def least_costs(problem, layout, order):
    """Sum of the least costs of the blocks, by dynamic programming over subsets."""
    return sum(
        best_groups_by_subsets(
            PatternGroupsProblem(problem.gram[m], problem.rows[m], problem.weights[m], problem.ridge, "sample", 3)
        )[1]
        for m in layout.cut(order)
    )
