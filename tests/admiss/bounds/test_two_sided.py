"""The two sides of the largest bias: against all parities and against ascents over truths from random starts."""

import math
from itertools import combinations, product

import numpy as np
import pytest

from admiss.bounds import BoundSetting, bias_bound
from admiss.bounds.bias import bias_sides, log_mean_square, lower_share, poisson_binomial_tail, upper_share
from admiss.bounds.counts import all_patterns, dense, read_class
from tests.admiss.bounds.lemma_1 import independent_law


class Projection:
    """The bias of a class, for truths as arrays of shape (2^d, d + 1), on points x of [-1, 1]^d independent of M."""

    def __init__(self, adaptivity, points, rates):
        d = len(rates)
        self.patterns = all_patterns(d)
        rows = np.tile(points, (2**d, 1))
        self.places = np.repeat(np.arange(2**d), len(points))
        M = self.patterns[self.places].astype(bool)
        X = np.where(M, np.nan, rows)
        columns = dense(read_class(adaptivity, d).fit(X, M).columns(X, M))
        self.root = np.sqrt(independent_law(rates)[self.places] / len(points))
        left, size, _ = np.linalg.svd(self.root[:, None] * columns, full_matrices=False)
        self.basis = left[:, size > 1e-10 * size[0]]
        self.z = np.column_stack([np.ones(len(rows)), np.where(M, 0.0, rows)])

    def residual(self, truth):
        y = self.root * np.einsum("ij,ij->i", self.z, truth[self.places])
        return y - self.basis @ (self.basis.T @ y)

    def bias(self, truth):
        return float((self.residual(truth) ** 2).sum())

    def ascend(self, truth):
        """The bias is convex in the truth: the best truth for its gradient, an extreme point, has no smaller bias."""
        best = -1.0
        while self.bias(truth) > best + 1e-12:
            best = self.bias(truth)
            gradient = np.zeros(truth.shape)
            np.add.at(gradient, self.places, (self.root * self.residual(truth))[:, None] * self.z)
            truth = extreme(gradient * self.allowed)
        return best

    def largest(self, intercept, starts, rng):
        """The largest bias of truths with |w_0| + sum |w_j| <= 1 at every pattern, so that |f*| <= 1 on the box."""
        d = self.patterns.shape[1]
        self.allowed = np.column_stack([np.full(2**d, float(intercept)), 1 - self.patterns])
        found = []
        for j in range(0 if intercept else 1, d + 1):
            others = [k for k in range(d) if k != j - 1]
            for S in (S for size in range(d + 1) for S in combinations(others, size)):
                truth = np.zeros((2**d, d + 1))
                truth[:, j] = (1 - 2 * self.patterns[:, list(S)]).prod(axis=1)
                found.append(self.bias(truth * self.allowed))
        found += [self.ascend(extreme(rng.normal(size=(2**d, d + 1)) * self.allowed)) for _ in range(starts)]
        return max(found)


def extreme(gradient):
    """The truth that is largest along a gradient: at every pattern one weight of 1 or -1."""
    truth = np.zeros(gradient.shape)
    rows, best = np.arange(len(truth)), np.abs(gradient).argmax(axis=1)
    truth[rows, best] = np.sign(gradient[rows, best])
    return truth


def places(d, rng):
    """Laws of x in the box: 0, the ends of one side, a corner, all corners, and some points."""
    signs = np.array(list(product((-1.0, 1.0), repeat=d)))
    return [np.zeros((1, d)), *np.eye(d)[:, None], np.ones((1, d)), signs, rng.uniform(-1, 1, (3, d))]


def check_sides(d, rates, starts, rng):
    for F in ["static", "affine_intercept", *(("polynomial", t) for t in range(1, d + 1)), "fully_adaptive"]:
        solved = [Projection(F, points, rates) for points in places(d, rng)]
        for intercept in (False, True):
            setting = BoundSetting(d, 0.0, 1.0, missing=rates, adaptive_intercept=intercept)
            lower, upper = bias_sides(setting, read_class(F, d))
            largest = max(each.largest(intercept, starts, rng) for each in solved)
            assert largest <= upper + 1e-9, (F, intercept, rates)
            assert largest >= lower - 1e-9, (F, intercept, rates)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_no_truth_is_above_and_some_reach_the_lower_side(d):
    rng = np.random.default_rng(d)
    for rates in (np.full(d, 0.5), np.full(d, 0.05), rng.uniform(0, 0.3, d), np.append(np.full(d - 1, 0.2), 0.0)):
        check_sides(d, rates, 3, rng)


@pytest.mark.slow
@pytest.mark.parametrize("d", [4, 5])
def test_no_truth_of_more_features_is_above(d):
    rng = np.random.default_rng(d)
    for rates in (np.full(d, 0.03), rng.uniform(0, 0.15, d)):
        check_sides(d, rates, 3, rng)


def test_lower_sides_are_between_0_and_the_upper_ones():
    rng = np.random.default_rng(0)
    for _ in range(100):
        d = int(rng.integers(1, 12))
        rates = rng.uniform(0, rng.choice([0.02, 0.2, 1.0]), d)
        for t in range(d):
            without, with_one = (lower_share(rates, t, intercept) for intercept in (False, True))
            assert 0 <= without <= with_one * (1 + 1e-12)
            assert with_one <= upper_share(rates, t) * (1 + 1e-12)


def test_formulas_against_sums_over_sets():
    rng = np.random.default_rng(1)
    rates = rng.uniform(0, 0.1, 6)
    a = 4 * rates * (1 - rates)
    for t in range(7):
        sets = [S for u in range(t + 1, 7) for S in combinations(range(6), u)]
        assert upper_share(rates, t) == pytest.approx(min(1, sum(math.prod(a[list(S)]) for S in sets)))
        tail = independent_law(a)[all_patterns(6).sum(axis=1) > t].sum()
        assert poisson_binomial_tail(a[None], t)[0] == pytest.approx(tail)


def test_upper_side_improves_on_the_one_for_any_law():
    rng = np.random.default_rng(2)
    improved = 0
    for _ in range(60):
        d = int(rng.integers(2, 9))
        rates = rng.uniform(0, rng.choice([0.01, 0.05, 0.2]), d)
        for t in range(d):
            other = math.exp(min(0.0, log_mean_square(all_patterns(d), independent_law(rates), t + 1)))
            assert upper_share(rates, t) <= other * (1 + 1e-9)
            improved += upper_share(rates, t) < 0.9 * other
    assert improved > 50
    assert bias_bound("affine", 10, 1.0, missing=0.01) == pytest.approx(0.0786, abs=1e-4)


def test_many_features():
    assert upper_share(np.full(5000, 0.3), 40) == 1.0
    assert lower_share(np.full(5000, 0.3), 40, adaptive_intercept=True) == pytest.approx(1.0)
    assert 0 < upper_share(np.full(5000, 1e-9), 3) < 1e-18
    # elementary symmetric polynomials beyond the largest float
    assert upper_share(np.append(np.full(2000, 0.5), 0.0), 1500) == 1.0
    assert upper_share(np.append(np.full(1500, 0.5), 0.0), 1500) == 0.0
