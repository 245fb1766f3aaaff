"""Reallocated patterns: the linear program, scipy's assignment and weak duality agree."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from formulations import adversary
from formulations.adversary import Reallocation, build_reallocation, reallocate, solve_reallocation
from formulations.certificate import SolverError
from formulations.linear_solver import solve_linear


def largest_hidden_sum(X, M):
    """By an assignment of all rows to all rows, without grouping the patterns."""
    hidden = X @ M.T.astype(float)
    rows, columns = linear_sum_assignment(hidden, maximize=True)
    return hidden[rows, columns].sum()


def with_budget(rng, n, d=6):
    """Ratings, and a budget in millions; whole numbers, so that all sums are exact."""
    X = rng.integers(0, 10, size=(n, d)).astype(float)
    X[:, 0] = np.round(np.exp(rng.normal(16, 2, size=n)))
    return X, rng.random((n, d)) < 0.4


def test_as_assignment_of_rows_to_rows():
    for seed in range(150):
        rng = np.random.default_rng(seed)
        n, d = rng.integers(1, 30), rng.integers(1, 6)
        M = (rng.random((n, d)) < rng.uniform(0, 1)).astype(int)
        X = rng.normal(size=(n, d)) if seed % 2 else rng.integers(-2, 3, size=(n, d)).astype(float)  # the latter ties
        found, certificate = reallocate(X, M)
        best = largest_hidden_sum(X, M)
        assert sorted(found.tolist()) == sorted(M.tolist())
        assert (X * found).sum() == pytest.approx(best, rel=1e-12, abs=1e-12)
        assert (X * found).sum() >= (X * M).sum() - 1e-12
        assert certificate.objective == pytest.approx(-best, rel=1e-12, abs=1e-12)
        assert certificate.objective - 1e-9 <= certificate.bound <= certificate.objective
        assert certificate.status == "optimal"


@pytest.mark.parametrize("seed", range(3))
def test_small_values_are_hidden_beside_large_ones(seed):
    """Whole numbers: any rating left in the wrong row is detected, although it is 1e-10 of the objective."""
    X, M = with_budget(np.random.default_rng(seed), 120)
    found, certificate = reallocate(X, M)
    best = largest_hidden_sum(X, M)
    assert best < 2**53
    assert (X * found).sum() == best == -certificate.objective
    assert certificate.status == "optimal"
    assert certificate.gap < 0.5


@pytest.mark.parametrize("scale", [1e-9, 1e-3, 1e6, 1e12])
def test_scale_changes_nothing_but_the_scale(scale):
    rng = np.random.default_rng(1)
    X, M = rng.normal(size=(80, 5)), rng.random((80, 5)) < 0.3
    found, certificate = reallocate(scale * X, M)
    expected, unscaled = reallocate(X, M)
    assert np.array_equal(found, expected)  # without ties there is one optimum
    assert certificate.objective == pytest.approx(scale * unscaled.objective, rel=1e-12)
    assert certificate.status == "optimal"


@given(st.integers(0, 2**32 - 1), st.integers(2, 15), st.integers(1, 5))
@settings(max_examples=25, deadline=None)
def test_what_must_not_matter(seed, n, d):
    """Order of rows, of patterns and of features, features never missing, and constants of features."""
    rng = np.random.default_rng(seed)
    X, M = rng.normal(size=(n, d)), rng.random((n, d)) < 0.5
    best = reallocate(X, M)[1].objective
    rows, patterns, features = rng.permutation(n), rng.permutation(n), rng.permutation(d)
    shift = rng.normal(size=d)

    def objective(X, M):
        return pytest.approx(reallocate(X, M)[1].objective, rel=1e-9, abs=1e-9)

    assert best == objective(X[rows], M)
    assert best == objective(X, M[patterns])
    assert best == objective(X[:, features], M[:, features])
    assert best == objective(np.hstack([X, 1e6 + rng.normal(size=(n, 1))]), np.hstack([M, np.zeros((n, 1))]))
    assert best - (M @ shift).sum() == objective(X + shift, M)


@pytest.mark.parametrize("M", [np.zeros((4, 2)), np.ones((4, 2)), np.tile([0, 1], (4, 1))])
def test_one_pattern_stays(M):
    X = np.arange(8.0).reshape(4, 2)
    found, certificate = reallocate(X, M)
    assert np.array_equal(found, M)
    assert (certificate.objective, certificate.gap, certificate.status) == (-(X * M).sum(), 0.0, "optimal")


def test_same_result_each_time():
    rng = np.random.default_rng(3)
    X, M = rng.integers(0, 3, size=(80, 6)), rng.random((80, 6)) < 0.3
    assert np.array_equal(reallocate(X, M)[0], reallocate(X, M)[0])


def test_stated_program_by_another_method():
    """The program of the docstring, costs -c, by simplex."""
    rng = np.random.default_rng(4)
    hidden, codes = rng.normal(size=(60, 7)), np.append(rng.integers(0, 7, size=53), np.arange(7))
    problem = Reallocation(hidden, codes)
    model = build_reallocation(-hidden, problem.counts)
    solution = solve_linear(model, list(model.z.values()), upper=1.0, options={"solver": "simplex"})
    selected, certificate = solve_reallocation(problem)
    assert certificate.objective == pytest.approx(-hidden.ravel() @ solution.values, abs=1e-9)
    assert certificate.bound == pytest.approx(solution.bound, abs=1e-6)
    assert np.array_equal(np.bincount(selected), problem.counts)
    assert hidden[np.arange(60), selected].sum() == pytest.approx(-certificate.objective)


def later(monkeypatch, *, first=None, second=None):
    """Change the first or second solution of the solver."""
    calls = []

    def changed(*args, **kwargs):
        solution = solve_linear(*args, **kwargs)
        calls.append(solution)
        change = {1: first, 2: second}.get(len(calls))
        return replace(solution, **change) if change else solution

    monkeypatch.setattr(adversary, "solve_linear", changed)
    return calls


def test_fractional_solution_is_refused(monkeypatch):
    X, M = with_budget(np.random.default_rng(5), 60)
    shares = np.tile(np.unique(M, axis=0, return_counts=True)[1] / 60, 60)  # feasible, and no vertex

    def fractional(*args, **kwargs):
        return replace(solve_linear(*args, **kwargs), values=shares)

    monkeypatch.setattr(adversary, "solve_linear", fractional)
    with pytest.raises(SolverError, match="not integral"):
        reallocate(X, M)


def test_crossover_that_fails_once_is_repaired(monkeypatch):
    X, M = with_budget(np.random.default_rng(5), 60)
    shares = np.tile(np.unique(M, axis=0, return_counts=True)[1] / 60, 60)
    calls = later(monkeypatch, first={"values": shares})
    found, certificate = reallocate(X, M)
    assert len(calls) > 1
    assert (X * found).sum() == largest_hidden_sum(X, M)
    assert certificate.status == "optimal"


@pytest.mark.parametrize("status", ["time limit", "interrupted", "unknown"])
def test_stopped_later_returns_the_best_so_far(monkeypatch, status):
    """The first solution is the best one except for two rows, the second never comes."""
    rng = np.random.default_rng(2)
    X, M = rng.normal(size=(40, 3)), rng.random((40, 3)) < 0.5
    best_found, _ = reallocate(X, M)
    shown, hiding = best_found.sum(axis=1).argmin(), (X * best_found).sum(axis=1).argmax()
    best_found[[shown, hiding]] = best_found[[hiding, shown]]
    values = (best_found[:, None] == np.unique(M, axis=0)).all(axis=2).astype(float).ravel()
    stopped = {"status": status, "values": None, "reduced_costs": None}
    calls = later(monkeypatch, first={"values": values}, second=stopped)
    found, certificate = reallocate(X, M)
    best = largest_hidden_sum(X, M)
    assert len(calls) == 2
    assert np.array_equal(found, best_found)
    assert certificate.status == status
    assert -certificate.objective == pytest.approx((X * found).sum())
    assert -certificate.objective < best - 1e-3
    assert best - 1e-9 <= -certificate.bound <= best + 1e-6


def test_out_of_time_at_once():
    X, M = with_budget(np.random.default_rng(1), 50)
    with pytest.raises(SolverError, match="time limit"):
        reallocate(X, M, time_limit=0.0)


def test_interrupt_with_nothing_found_is_passed_on(monkeypatch):
    X, M = with_budget(np.random.default_rng(1), 50)
    later(monkeypatch, first={"status": "interrupted", "values": None, "reduced_costs": None})
    with pytest.raises(KeyboardInterrupt):
        reallocate(X, M)


@pytest.mark.parametrize(
    ("X", "M", "words"),
    [
        (np.array([[1.0, np.nan]]), np.zeros((1, 2)), "NaN"),
        (np.array([[1.0, -np.inf]]), np.zeros((1, 2)), "infinite"),
        (np.ones((3, 2)), np.zeros((2, 3)), "same shape"),
        (np.ones(3), np.zeros(3), "same shape"),
        (np.ones((0, 2)), np.zeros((0, 2)), "at least one row"),
        (np.ones((2, 2)), np.full((2, 2), 0.5), "other entries"),
        (np.ones((2, 2)), np.full((2, 2), np.nan), "other entries"),
        (np.array([[1e308, 1e308], [0.0, 0.0]]), np.array([[1, 1], [0, 0]]), "overflow"),
    ],
)
def test_refused(X, M, words):
    with pytest.raises(ValueError, match=words):
        reallocate(X, M)
