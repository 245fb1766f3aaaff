"""Thresholds: one start for all patterns, the stated program, split and full conformal prediction agree."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

from formulations.conformal.program import ThresholdProblem, solve_threshold
from formulations.conformal.thresholds import (
    conformal_rank,
    conservative_thresholds,
    miscoverage,
    order_threshold,
    thresholds_at,
)

# A score that is larger than every finite threshold of the cases here.
FAR = 1e4


def small_case(seed):
    """Few rows, ties, features that are never or always missing or missing together, real-valued columns, p > n."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(2, 13)), int(rng.integers(0, 4))
    M = (rng.uniform(size=(n + 1, d)) < rng.uniform(0, 1, size=d)).astype(float)
    if d > 1 and seed % 4 == 0:
        M[:, 1] = M[:, 0]
    Phi = np.column_stack([np.ones(n + 1), M])
    if d and seed % 5 == 0:
        Phi = np.column_stack([np.ones(n + 1), rng.normal(size=d) @ M.T])
    S = np.abs(rng.normal(size=n)) * (1 + M[:n].sum(axis=1))
    if seed % 3 == 0:
        S = S.round(1)
    a = float(rng.choice([0.1, 0.2, 0.25, 0.3, 0.5]))
    return ThresholdProblem(S, Phi[:n], a), Phi[n]


def is_covered(problem, phi, s):
    """Whether s <= phi'b for every b that minimises the loss of all n + 1 rows, found among all interpolating b."""
    Phi, S, a = np.vstack([problem.basis, phi]), np.append(problem.scores, s), problem.miscoverage
    Phi = Phi[:, independent(Phi)]
    sets = np.array(list(itertools.combinations(range(len(S)), Phi.shape[1])))
    sets = sets[np.abs(np.linalg.det(Phi[sets])) > 1e-9]
    b = np.linalg.solve(Phi[sets], S[sets][:, :, None])[:, :, 0]
    r = S - b @ Phi.T
    losses = np.maximum((1 - a) * r, -a * r).sum(axis=1)
    best = losses <= losses.min() + 1e-11 * max(1.0, np.abs(S).max())
    return (b[best] @ Phi[-1]).min() >= s - 1e-9 * max(1.0, s)


def independent(Phi):
    columns = []
    for k in range(Phi.shape[1]):
        if np.linalg.matrix_rank(Phi[:, [*columns, k]]) > len(columns):
            columns.append(k)
    return columns


def bisected(covered):
    """The supremum of the scores that are covered."""
    if covered(FAR):
        return np.inf
    low, high = -FAR, FAR
    while high - low > 1e-7:
        middle = (low + high) / 2
        low, high = (middle, high) if covered(middle) else (low, middle)
    return low


def agree(found, expected):
    return found == expected or abs(found - expected) <= 1e-6


def assert_brute_force(seeds):
    for seed in seeds:
        problem, phi = small_case(seed)
        found = conservative_thresholds(problem, phi[None])
        expected = bisected(lambda s, problem=problem, phi=phi: is_covered(problem, phi, s))
        assert agree(found[0], expected), (seed, found, expected)


def test_full_conformal_by_bisection():
    assert_brute_force(range(6))


@pytest.mark.slow
def test_full_conformal_by_bisection_on_many_cases():
    assert_brute_force(range(1000, 1200))


def assert_randomised(seeds):
    """The test row is covered if its multiplier in the program of all n + 1 rows is below u."""
    for seed in seeds:
        problem, phi = small_case(seed)
        a, rng = problem.miscoverage, np.random.default_rng(seed)
        S = problem.scores + rng.uniform(size=len(problem.scores))
        problem, u = ThresholdProblem(S, problem.basis, a), float(rng.uniform(-a, 1 - a))
        Phi = np.vstack([problem.basis, phi])

        def covered(s, S=S, Phi=Phi, a=a, u=u):
            return linprog(-np.append(S, s), A_eq=Phi.T, b_eq=np.zeros(Phi.shape[1]), bounds=(-a, 1 - a)).x[-1] < u

        expected = bisected(covered) if covered(-FAR) else -np.inf
        found = thresholds_at(problem, phi[None], np.array([u]))[0]
        assert agree(found, expected), (seed, found, expected)


def test_randomised_full_conformal_by_bisection():
    assert_randomised(range(2))


@pytest.mark.slow
def test_randomised_full_conformal_by_bisection_on_many_cases():
    assert_randomised(range(2000, 2060))


@pytest.mark.parametrize("seed", range(6))
def test_stated_program(seed):
    rng = np.random.default_rng(seed)
    n, d = (40, 3) if seed % 2 else (120, 6)
    M = (rng.uniform(size=(n, d)) < rng.uniform(0.05, 0.5, size=d)).astype(float)
    Phi = np.column_stack([np.ones(n), M, M[:, :1] * M[:, 1:2]])
    problem = ThresholdProblem(rng.gamma(1.0, size=n) * 10.0 ** rng.integers(-8, 8), Phi, 0.1)
    tests = Phi[rng.integers(n, size=4)]
    scale = problem.scores.max()
    u = np.append(rng.uniform(-0.1, 0.9, size=3), 0.9)
    fast = thresholds_at(problem, tests, u)
    for p in range(4):
        stated, certificate = solve_threshold(problem, tests[p], min(float(u[p]), problem.limit))
        assert fast[p] == stated or abs(fast[p] - stated) < 1e-9 * scale
        assert np.isinf(stated) or certificate.status == "optimal"


def test_constant_basis_is_split_conformal_to_the_last_digit():
    rng = np.random.default_rng(0)
    for n in [*range(1, 25), 79, 99, 100, 129]:
        for level in (0.5, 0.7, 0.8, 0.9, 0.95):
            S = rng.gamma(1.0, size=n).round(1 if n % 3 == 0 else 12)
            problem = ThresholdProblem(S, np.ones((n, 1)), miscoverage(level))
            rank = -(-(n + 1) * Fraction(str(level)) // 1)
            expected = np.sort(S)[rank - 1] if rank <= n else np.inf
            assert conservative_thresholds(problem, np.ones((1, 1)))[0] == expected == order_threshold(S, level)
            assert rank == conformal_rank(n, level)


def test_disjoint_groups_are_split_conformal_within_each():
    rng = np.random.default_rng(0)
    group, S = rng.integers(4, size=200), rng.normal(size=200)
    problem = ThresholdProblem(S, np.eye(5)[group], 0.1)
    found = conservative_thresholds(problem, np.vstack([np.eye(5), np.zeros(5)]))
    assert found.tolist() == [*(order_threshold(S[group == g], 0.9) for g in range(4)), np.inf, np.inf]


def test_a_rare_feature_is_infinite_below_nine_rows():
    rng = np.random.default_rng(0)
    for rows, finite in ((8, False), (9, True)):
        Phi = np.column_stack([np.ones(100), np.arange(100) < rows])
        found = conservative_thresholds(ThresholdProblem(rng.normal(size=100), Phi, 0.1), np.array([[1.0, 1.0]]))
        assert np.isfinite(found[0]) == finite


def test_order_of_calibration_rows_and_batch_of_patterns():
    rng = np.random.default_rng(0)
    M = (rng.uniform(size=(300, 5)) < 0.3).astype(float)
    Phi, S = np.column_stack([np.ones(300), M]), rng.gamma(1.0, size=300).round(1)
    tests, order = np.unique(Phi, axis=0), rng.permutation(300)
    expected = conservative_thresholds(ThresholdProblem(S, Phi, 0.1), tests)
    permuted = ThresholdProblem(S[order], Phi[order], 0.1)
    np.testing.assert_array_equal(conservative_thresholds(permuted, tests[::-1])[::-1], expected)
    single = [conservative_thresholds(permuted, tests[p : p + 1])[0] for p in range(len(tests))]
    np.testing.assert_array_equal(single, expected)


def test_equivalent_bases_give_the_same_thresholds():
    """Another basis of the same space, redundant columns, other units."""
    rng = np.random.default_rng(1)
    M = (rng.uniform(size=(150, 4)) < 0.3).astype(float)
    Phi, S = np.column_stack([np.ones(150), M]), rng.gamma(1.0, size=150)
    tests = np.unique(Phi, axis=0)
    expected = conservative_thresholds(ThresholdProblem(S, Phi, 0.1), tests)
    T = rng.normal(size=(5, 8)) * np.exp2(rng.integers(-30, 30, size=8))
    np.testing.assert_allclose(conservative_thresholds(ThresholdProblem(S, Phi @ T, 0.1), tests @ T), expected)
    shifted = conservative_thresholds(ThresholdProblem(1e-200 * S, Phi, 0.1), tests)
    np.testing.assert_allclose(shifted, 1e-200 * expected)


def test_levels_may_cross():
    """Why nested sets need a maximum: here the threshold falls as the level rises."""
    rng = np.random.default_rng(132)
    Phi = np.column_stack([np.ones(30), rng.uniform(size=(30, 2)) < 0.3])
    S = rng.gamma(1.0, size=30)
    found = [conservative_thresholds(ThresholdProblem(S, Phi, a), Phi) for a in (0.5, 0.4, 0.3)]
    assert np.diff(found, axis=0).min() < -1e-3
