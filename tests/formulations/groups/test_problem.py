"""The best groups of patterns: column generation, the dynamic program over subsets and brute force agree."""

import math
import threading

import numpy as np
import pytest

from formulations.groups import search
from formulations.groups.pricing import branch_and_bound
from formulations.groups.pricing.branch_and_bound import price_groups
from formulations.groups.pricing.quadratics import GroupChoice
from formulations.groups.problem import PatternGroupsProblem, group_cost, solve_pattern_groups
from formulations.groups.subsets import best_groups_by_subsets

# In exact arithmetic, or by the bound of column generation in floating point.
PROVEN = ("optimal", "solver's bound")


def draw(seed, patterns=6, features=3, rows=60, **settings):
    """A problem, and the weighted rows with zero-imputed features, by pattern, that it comes from."""
    rng = np.random.default_rng(seed)
    codes = rng.permutation(2**features)[:patterns] if patterns <= 2**features else np.arange(patterns) % 2**features
    masks = codes[:, None] >> np.arange(features) & 1
    pattern = np.concatenate([np.arange(patterns), rng.integers(patterns, size=max(0, rows - patterns))])
    x, weight = rng.normal(size=(len(pattern), features)), rng.uniform(0.5, 2.0, size=len(pattern))
    slopes = rng.normal(size=(2, features))[(pattern % 3 == 0).astype(int)]
    y = (x * slopes).sum(axis=1) + 0.5 * rng.normal(size=len(pattern))
    table = np.column_stack([np.ones(len(pattern)), np.where(masks[pattern] == 1, 0.0, x), y])
    gram = np.array([(table[pattern == p].T * weight[pattern == p]) @ table[pattern == p] for p in range(patterns)])
    counts, weights = np.bincount(pattern), np.bincount(pattern, weights=weight)
    return PatternGroupsProblem(gram, counts, weights, **settings), (table, pattern, weight)


def partitions(items):
    """All set partitions of a list."""
    if not items:
        yield []
        return
    for rest in partitions(items[1:]):
        yield [[items[0]], *rest]
        for i, group in enumerate(rest):
            yield [*rest[:i], [items[0], *group], *rest[i + 1 :]]


def brute_force(problem):
    total, best, costs = problem.rows.sum(), math.inf, {}
    for partition in partitions(list(range(problem.patterns))):
        few = any(problem.rows[group].sum() < min(problem.min_rows, total) for group in partition)
        if len(partition) > problem.max_groups or few:
            continue
        value = 0.0
        for group in map(tuple, partition):
            if group not in costs:
                costs[group] = group_cost(problem, list(group))
            value += costs[group]
        best = min(best, value)
    return best


def check(problem, labels, certificate):
    """The certificate belongs to the labels, and these satisfy the constraints."""
    groups = [labels == g for g in range(labels.max() + 1)]
    assert labels.shape == (problem.patterns,)
    assert all(group.any() for group in groups)
    assert len(groups) <= problem.max_groups
    assert all(problem.rows[group].sum() >= min(problem.min_rows, problem.rows.sum()) for group in groups)
    assert certificate.objective == pytest.approx(sum(group_cost(problem, group) for group in groups), rel=1e-12)
    assert certificate.bound <= certificate.objective
    if certificate.status == "optimal":
        assert certificate.gap <= 1e-9 * certificate.objective + 1e-12 * problem.gram[:, -1, -1].sum()


@pytest.mark.parametrize("ridge_scale", ["sample", "leaf"])
@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_group_cost_is_a_least_squares_problem(ridge, ridge_scale):
    problem, (table, pattern, weight) = draw(0, rows=40, ridge=ridge, ridge_scale=ridge_scale)
    for group in ([0], [1, 3], [0, 2, 4, 5], list(range(6))):
        inside = np.isin(pattern, group)
        penalty = ridge * (weight[inside].sum() if ridge_scale == "sample" else 1.0)
        root = np.sqrt(weight[inside])[:, None]
        extra = np.hstack([np.zeros((3, 1)), np.sqrt(penalty) * np.eye(3)])
        A, y = np.vstack([root * table[inside, :-1], extra]), np.append(root[:, 0] * table[inside, -1], np.zeros(3))
        residual = y - A @ np.linalg.lstsq(A, y, rcond=None)[0]
        assert group_cost(problem, group) == pytest.approx(residual @ residual, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("seed", range(60))
def test_equals_brute_force_and_the_dynamic_program(seed):
    rng = np.random.default_rng(1000 + seed)
    problem, _ = draw(
        seed,
        patterns=int(rng.integers(1, 9)),
        rows=int(rng.integers(8, 120)),
        ridge=float(rng.choice([0.0, 1e-3, 0.1, 3.0])),
        ridge_scale=str(rng.choice(["sample", "leaf"])),
        max_groups=int(rng.integers(1, 6)),
        min_rows=int(rng.choice([1, 8, 20])),
    )
    labels, certificate = solve_pattern_groups(problem)
    check(problem, labels, certificate)
    assert certificate.status in PROVEN
    exact = brute_force(problem)
    close = {"rel": 1e-9, "abs": 1e-11 * problem.gram[:, -1, -1].sum()}
    assert certificate.objective == pytest.approx(exact, **close)
    by_subsets, value = best_groups_by_subsets(problem)
    assert value == pytest.approx(exact, **close)
    assert value == pytest.approx(sum(group_cost(problem, by_subsets == g) for g in np.unique(by_subsets)), **close)


@pytest.mark.parametrize(("ridge_scale", "groups"), [("sample", 2), ("sample", 4), ("leaf", 3)])
def test_equals_the_dynamic_program_on_more_patterns(ridge_scale, groups):
    problem, _ = draw(7, 13, features=4, rows=300, ridge=0.01, ridge_scale=ridge_scale, max_groups=groups, min_rows=30)
    labels, certificate = solve_pattern_groups(problem)
    check(problem, labels, certificate)
    assert certificate.status in PROVEN
    assert certificate.objective == pytest.approx(best_groups_by_subsets(problem)[1], rel=1e-9)


def test_without_enumeration_there_is_a_bound_and_no_proof(monkeypatch):
    monkeypatch.setattr(search, "MOST_ENUMERATED", 1)
    statuses = set()
    for seed in range(12):
        problem, _ = draw(seed, 10, features=4, rows=80, ridge=0.01, max_groups=3, min_rows=10)
        labels, certificate = solve_pattern_groups(problem)
        check(problem, labels, certificate)
        assert certificate.bound <= best_groups_by_subsets(problem)[1] * (1 + 1e-9)
        statuses.add(certificate.status)
    assert statuses == {"optimal", "too many groups to enumerate"}


@pytest.mark.parametrize("seed", range(6))
def test_pricing_finds_every_group_below_the_threshold(seed):
    problem, _ = draw(seed, 8, rows=60, ridge=[0.0, 0.1][seed % 2], ridge_scale=["sample", "leaf"][seed // 3])
    choice = problem.choice()
    prices = np.random.default_rng(seed).uniform(0.5, 2.0, 8) * group_cost(problem, range(8)) / 8
    choice = GroupChoice(choice.quadratics, choice.base, choice.rows, 12)
    masks = np.array([[code >> p & 1 for p in range(8)] for code in range(1, 256)], dtype=bool)
    masks = masks[masks @ choice.rows >= 12]
    values = np.array([choice.cost(mask) - prices @ mask for mask in masks])
    threshold = float(np.quantile(values, 0.2))
    priced = price_groups(choice, prices, threshold, lambda: False, 500)
    assert priced.finished
    assert {group.tobytes() for group in priced.groups} == {mask.tobytes() for mask in masks[values < threshold]}
    for nodes in (1, 3, 10, 30):
        assert price_groups(choice, prices, threshold, lambda: False, 500, nodes).bound <= values.min() + 1e-9


@pytest.mark.parametrize("time_limit", [0.0, 1e-4, 0.02, 0.05])
def test_a_time_limit_leaves_a_valid_bound(time_limit):
    problem, _ = draw(3, 14, features=5, rows=400, ridge=0.01, max_groups=3)
    exact = best_groups_by_subsets(problem)[1]
    labels, certificate = solve_pattern_groups(problem, time_limit=time_limit)
    check(problem, labels, certificate)
    assert certificate.bound <= exact * (1 + 1e-9) <= certificate.objective * (1 + 2e-9)
    if time_limit == 0:
        assert certificate.gap > 0
        assert certificate.status == "time limit"


def test_without_time_the_start_is_returned():
    problem, _ = draw(3, 8, rows=200, max_groups=3)
    start = np.array([5, 5, 2, 2, 7, 7, 5, 2])
    cost = sum(group_cost(problem, start == g) for g in (2, 5, 7))
    assert cost < 0.9 * group_cost(problem, range(8))
    labels, certificate = solve_pattern_groups(problem, start=start, time_limit=0)
    assert labels.tolist() == [0, 0, 1, 1, 2, 2, 0, 1]
    assert certificate.objective == pytest.approx(cost, rel=1e-12)
    assert certificate.status == "time limit"
    assert solve_pattern_groups(problem, start=start)[1].objective < 0.9 * cost


def test_the_same_seed_gives_the_same_result():
    problem, _ = draw(11, 16, features=5, rows=300, ridge=0.01, max_groups=4)
    first, second = (solve_pattern_groups(problem, random_state=3) for _ in range(2))
    assert np.array_equal(first[0], second[0])
    assert (first[1].objective, first[1].bound) == (second[1].objective, second[1].bound)


def test_an_interrupt_returns_the_best_so_far():
    problem, _ = draw(5, 16, features=5, rows=300, ridge=0.01, max_groups=3)
    exact = best_groups_by_subsets(problem)[1]
    for patience in range(3):
        calls = []

        def interrupt(objective, bound, calls=calls, patience=patience):
            assert bound <= exact * (1 + 1e-9) <= objective * (1 + 2e-9)
            calls.append(objective)
            if len(calls) > patience:
                raise KeyboardInterrupt

        labels, certificate = solve_pattern_groups(problem, on_progress=interrupt)
        check(problem, labels, certificate)
        assert certificate.bound <= exact * (1 + 1e-9)
        assert patience > 0 or certificate.gap > 1e-3 * exact
        assert certificate.status == ("interrupted" if certificate.gap > 1e-8 * exact else "optimal")


@pytest.mark.parametrize("start", [None, [1, 1, 0, 0, 2, 2, 1, 0]])
def test_an_interrupt_before_the_first_cost_returns_the_start(start, monkeypatch):
    def interrupt(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(search, "least_value", interrupt)
    problem, _ = draw(3, 8, rows=200, max_groups=3)
    labels, certificate = solve_pattern_groups(problem, start=start)
    check(problem, labels, certificate)
    assert labels.tolist() == ([0] * 8 if start is None else [0, 0, 1, 1, 2, 2, 0, 1])
    assert (certificate.status, certificate.bound) == ("interrupted", 0.0)


def test_a_full_pool_is_no_proof(monkeypatch):
    problem, _ = draw(3, 30, features=5, rows=400, ridge=0.01, max_groups=3)
    exact = solve_pattern_groups(problem)[1]
    monkeypatch.setattr(branch_and_bound, "POOL_BYTES", 1)
    labels, certificate = solve_pattern_groups(problem)
    check(problem, labels, certificate)
    assert (exact.status, certificate.status) == ("optimal", "too many groups to enumerate")
    assert certificate.bound < exact.bound


def test_many_patterns_are_grouped_without_proof():
    problem, _ = draw(3, 500, features=2, rows=2000, ridge=0.01, max_groups=3)
    labels, certificate = solve_pattern_groups(problem)
    check(problem, labels, certificate)
    assert certificate.status == "too many patterns"
    assert certificate.objective < group_cost(problem, range(500))


def test_from_threads():
    problem, _ = draw(2, 8, rows=100, max_groups=3)
    expected = solve_pattern_groups(problem)[1].objective
    results = []
    threads = [
        threading.Thread(target=lambda: results.append(solve_pattern_groups(problem)[1].objective), daemon=True)
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert results == [expected, expected]
    assert solve_pattern_groups(problem)[1].objective == expected


def test_single_pattern_and_more_groups_than_patterns():
    alone, _ = draw(0, 1, rows=20, max_groups=3)
    labels, certificate = solve_pattern_groups(alone, time_limit=0)
    assert labels.tolist() == [0]
    assert certificate.status in PROVEN
    assert certificate.relative_gap <= 1e-9
    many, _ = draw(0, 5, rows=60, ridge=0.1, max_groups=9)
    labels, certificate = solve_pattern_groups(many)
    assert labels.tolist() == [0, 1, 2, 3, 4]
    assert certificate.status in PROVEN
    too_few, _ = draw(0, 5, rows=60, max_groups=3, min_rows=1000)
    labels, certificate = solve_pattern_groups(too_few)
    assert labels.tolist() == [0] * 5
    assert certificate.status in PROVEN


def test_order_of_the_patterns_does_not_matter():
    problem, _ = draw(4, 12, features=4, rows=200, ridge=0.01, max_groups=3, min_rows=20)
    order = np.random.default_rng(0).permutation(12)
    permuted = PatternGroupsProblem(
        problem.gram[order], problem.rows[order], problem.weights[order], 0.01, "sample", 3, 20
    )
    one, other = solve_pattern_groups(problem), solve_pattern_groups(permuted)
    assert one[1].objective == pytest.approx(other[1].objective, rel=1e-9)


def test_bad_input_is_named():
    problem, _ = draw(0, 4, rows=40, max_groups=2, min_rows=5)
    with pytest.raises(ValueError, match="ridge_scale"):
        PatternGroupsProblem(problem.gram, problem.rows, problem.weights, ridge_scale="rows")
    with pytest.raises(ValueError, match="one entry per pattern"):
        PatternGroupsProblem(problem.gram, problem.rows[:-1], problem.weights)
    with pytest.raises(ValueError, match="max_groups"):
        PatternGroupsProblem(problem.gram, problem.rows, problem.weights, max_groups=0)
    with pytest.raises(ValueError, match="max_groups"):
        solve_pattern_groups(problem, start=np.arange(4))
    with pytest.raises(ValueError, match="22 patterns"):
        best_groups_by_subsets(draw(0, 23, features=5, rows=40)[0])
