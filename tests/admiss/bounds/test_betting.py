"""Bounds by betting against their definition, exact probabilities and simulated laws."""

import math
from itertools import product

import numpy as np
import pytest
from scipy.stats import binom

from admiss.bounds.certificate import bernstein_bound, betting_bound, is_rejected, predictable_stakes

LAWS = {
    "normal residuals": lambda rng, n: np.minimum(rng.normal(size=n) ** 2 / 9, 1),
    "heavy tails": lambda rng, n: np.minimum(rng.standard_t(2, n) ** 2 / 30, 1),
    "lognormal": lambda rng, n: np.minimum(rng.lognormal(-4, 1.5, n), 1),
    "uniform": lambda rng, n: rng.uniform(size=n),
    "near 1": lambda rng, n: rng.beta(9, 1, n),
    "rare 1": lambda rng, n: 1.0 * (rng.uniform(size=n) < 0.01),
    "Bernoulli .05": lambda rng, n: 1.0 * (rng.uniform(size=n) < 0.05),
    "Bernoulli .5": lambda rng, n: 1.0 * (rng.uniform(size=n) < 0.5),
    "mostly 1": lambda rng, n: 1.0 * (rng.uniform(size=n) < 0.99),
}


def largest_log_wealth(m, v, alpha):
    """The definition, row by row: the stake of a row is computed from the rows before it."""
    wealth, largest = 0.0, -math.inf
    for i in range(len(v)):
        means = [(0.5 + math.fsum(v[: j + 1])) / (j + 2) for j in range(i)]
        variance = (0.25 + math.fsum((v[j] - means[j]) ** 2 for j in range(i))) / (i + 1)
        stake = min(math.sqrt(2 * math.log(1 / alpha) / (len(v) * variance)), 0.75 / (1 - m))
        wealth += math.log(1 + stake * (m - v[i]))
        largest = max(largest, wealth)
    return largest


@pytest.mark.parametrize("law", LAWS)
def test_bound_is_the_smallest_rejected_mean(law):
    for n, alpha in ((1, 0.6), (2, 0.3), (25, 0.05), (60, 0.01)):
        v = LAWS[law](np.random.default_rng(n), n)
        bound = betting_bound(v, alpha)
        if bound < 1:
            assert largest_log_wealth(bound, v, alpha) >= math.log(1 / alpha) - 1e-9
        assert largest_log_wealth(bound * (1 - 1e-6), v, alpha) < math.log(1 / alpha)


def test_stakes_depend_on_earlier_rows_only():
    rng = np.random.default_rng(0)
    v = rng.uniform(size=30)
    for i in range(30):
        changed = np.append(v[:i], rng.uniform(size=30 - i))
        assert np.array_equal(predictable_stakes(v, 0.05)[: i + 1], predictable_stakes(changed, 0.05)[: i + 1])


@pytest.mark.parametrize("law", LAWS)
def test_every_factor_of_the_wealth_is_monotone_in_m(law):
    v = LAWS[law](np.random.default_rng(0), 40)
    stakes = predictable_stakes(v, 0.05)
    m = np.linspace(0, 1, 2001)[:-1, None]
    factors = 1 + np.minimum(stakes, 0.75 / (1 - m)) * (m - v)
    assert factors.min() >= 0.25 - 1e-15
    assert np.diff(factors, axis=0).min() >= -1e-12


@pytest.mark.parametrize(("values", "n"), [((0.0, 1.0), 8), ((0.0, 0.1, 1.0), 5)])
def test_exact_probability_of_failure_is_at_most_alpha(values, n):
    """All sequences of a law on two or three values, with their probabilities."""
    sequences = np.array(list(product(range(len(values)), repeat=n)))
    shares = []
    for alpha in (0.2, 0.8):
        bounds = np.array([betting_bound(v, alpha) for v in np.array(values)[sequences]])
        for weights in product((1, 3, 10), repeat=len(values)):
            p = np.array(weights) / sum(weights)
            failed = sequences[bounds < p @ values - 1e-9]
            shares.append(p[failed].prod(axis=1).sum() / alpha)
    assert max(shares) <= 1
    assert max(shares) > 0.3  # it is not true for trivial reasons


def test_degenerate_samples():
    for alpha in (1e-9, 0.05):
        assert betting_bound(np.zeros(1), alpha) == betting_bound(np.ones(500), alpha) == 1.0
        assert betting_bound(np.ones(1), alpha) == bernstein_bound(np.zeros(1), alpha) == 1.0
    n = 1000
    # no bound can be below that of the best bet against zeros, which stakes all
    assert 1 - 0.05 ** (1 / n) < betting_bound(np.zeros(n), 0.05) < 2 * -math.log(0.05) / n
    constant = betting_bound(np.full(n, 0.3), 0.05)
    assert 0.3 < constant < 0.31
    tiny = betting_bound(np.full(n, 1e-300), 0.05)
    assert tiny == pytest.approx(betting_bound(np.zeros(n), 0.05), rel=1e-9)


def test_more_confidence_is_a_larger_bound():
    v = np.random.default_rng(0).uniform(size=100)
    for bound in (betting_bound, bernstein_bound):
        values = [bound(v, alpha) for alpha in (0.5, 0.1, 0.01, 1e-4, 1e-12)]
        assert values == sorted(values)


def test_bernstein_by_hand():
    v = np.array([0.0] * 600 + [1.0] * 400)
    variance = 0.24 * 1000 / 999
    expected = 0.4 + math.sqrt(2 * variance * math.log(40) / 1000) + 7 * math.log(40) / (3 * 999)
    assert bernstein_bound(v, 0.05) == pytest.approx(expected, rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS)
def test_failures_of_simulated_runs(law):
    """Draws with replacement from 10,000 values, whose mean is known."""
    population = LAWS[law](np.random.default_rng(0), 10_000)
    mean, runs = float(population.mean()), 2000
    for n, alpha in ((30, 0.05), (300, 0.05), (300, 0.05 / 3)):
        rng = np.random.default_rng(n)
        failures = 0
        for _ in range(runs):
            v = rng.choice(population, n)
            failures += is_rejected(mean, v, predictable_stakes(v, alpha), alpha)
        # exceeded with probability 1e-5 if each run fails with probability alpha
        assert failures <= binom.ppf(1 - 1e-5, runs, alpha)
