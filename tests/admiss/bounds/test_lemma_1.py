"""Lemma 1 on random truths, and the printed bias against parities."""

import itertools

import numpy as np
import pytest

from admiss.adaptivity import Affine
from admiss.bounds import BoundSetting, bias_bound, generalization_bound
from admiss.bounds.counts import all_patterns
from experiments.studies.bounds.population import KINDS, draw_truth, parity_truth
from tests.admiss.bounds.lemma_1 import (
    bias_pair,
    independent_law,
    lemma_pair,
    norm_pair,
    taylor_coefficients,
    taylor_weights,
    truth_range,
)


# 500 truths for each number of features and each kind are more than 10,000 in total.
@pytest.mark.parametrize("size", [60, pytest.param(500, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("kind", KINDS)
def test_the_inequality_holds_on_random_truths(kind, size):
    rng = np.random.RandomState(KINDS.index(kind))
    for d in range(1, 9):
        truths = np.array([draw_truth(kind, d, 1.0, rng) for _ in range(size)])
        centres = [rng.uniform(size=d), np.full(d, 0.5), rng.uniform(size=d) < 0.5]
        for centre, some in zip(centres, np.array_split(truths, 3), strict=True):
            for t in range(d + 1):
                computed, bound = lemma_pair(some, t, centre)
                assert computed.shape == (len(some), 2**d)
                assert (computed <= bound + 1e-9).all(), (kind, d, t)
                one_norm = norm_pair(some[:1], t, centre)[1]
                assert (bound[:1] <= one_norm + 1e-9).all(), (kind, d, t)


@pytest.mark.parametrize("d", [3, 6])
def test_the_inequality_is_tight(d):
    """Around c = 0 a parity attains the bound at every pattern with t + 1 missing features."""
    for t in range(d - 1):
        computed, bound = lemma_pair(parity_truth(d, L=3.0), t, np.zeros(d))
        M = all_patterns(d)
        attained = (M.sum(axis=1) == t + 1) & (M[:, 0] == 0)
        np.testing.assert_allclose(computed[attained], 3.0 * 2 ** (t + 1))
        np.testing.assert_allclose(bound[attained], computed[attained])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("d", [1, 4])
def test_truths_reach_their_range(kind, d):
    for seed in range(5):
        truth = draw_truth(kind, d, 2.5, seed)
        assert truth_range(truth) == pytest.approx(2.5)
        # f* at the corners of the box, pattern by pattern.
        corners = 1 - 2 * all_patterns(d)
        values = np.einsum("jm,mj,cj->cm", truth, 1 - all_patterns(d), corners)
        assert np.abs(values).max() == pytest.approx(2.5)


def test_taylor_coefficients_are_the_derivatives_of_the_proof():
    """Against the paper's explicit formula for the derivatives of a weight."""
    d, rng = 4, np.random.RandomState(0)
    truth, centre, M = draw_truth("gaussian", d, 1.0, rng), rng.uniform(size=d), all_patterns(d)
    coefficients = taylor_coefficients(truth, centre)
    for S, found in zip(M.astype(bool), coefficients.T, strict=True):
        likelihood = np.prod((1 - centre - M + 2 * centre * M)[:, ~S], axis=1)
        expected = truth @ (np.prod(2 * M[:, S] - 1, axis=1) * likelihood)
        np.testing.assert_allclose(found, expected, atol=1e-12)
    for t in range(d + 1):
        sets = [S for s in range(t + 1) for S in itertools.combinations(range(d), s)]
        index = [int(sum(2 ** (d - 1 - k) for k in S)) for S in sets]
        powers = np.array([np.prod(M[:, list(S)] - centre[list(S)], axis=1) for S in sets])
        np.testing.assert_allclose(taylor_weights(truth, t, centre), coefficients[:, index] @ powers, atol=1e-12)
    np.testing.assert_allclose(taylor_weights(truth, d, centre), truth, atol=1e-12)


def test_printed_bias_fails_on_parities():
    computed, printed = bias_pair(parity_truth(8), 6, bias="paper")
    assert computed == pytest.approx(0.5)
    assert printed == pytest.approx(0.0826, abs=1e-4)
    assert bias_pair(parity_truth(8), 6)[1] == 1.0
    for kind in ("gaussian", "signs"):
        random, printed = bias_pair(draw_truth(kind, 8, 1.0, 0), 6, bias="paper")
        assert random < printed
    observed = all_patterns(8)[:, 0] == 0
    computed, euclidean = norm_pair(parity_truth(8), 6, np.full(8, 0.5), norm=2)
    assert (computed[observed] > 3 * euclidean[observed]).all()


def test_theorem_fails_with_the_printed_bias():
    """The projection of the parity is 0, so the truncated fit tends to 0 and its risk to sigma^2 + L^2 / 2."""
    L, sigma2 = 2.0, 0.1
    computed, _ = bias_pair(parity_truth(10, L=L), 8)
    assert computed == pytest.approx(L**2 / 2)
    for c in (1.0, 1e6):
        printed, proved = (
            generalization_bound(BoundSetting(10, sigma2, L, c, bias=rule, missing=0.5), 1e30, ("polynomial", 8)).total
            for rule in ("paper", "proved")
        )
        assert printed < sigma2 + computed < proved


@pytest.mark.parametrize("kind", KINDS)
def test_proved_bias_is_above_the_true_one(kind):
    rng = np.random.RandomState(1)
    informative = 0
    for d in (1, 2, 3, 5):
        for law in (None, independent_law(rng.uniform(0, 0.1, d)), rng.dirichlet(np.full(2**d, 0.2))):
            for t in range(d + 1):
                truth = draw_truth(kind, d, 1.5, rng)
                computed, bound = bias_pair(truth, t, law)
                assert computed <= bound + 1e-12
                informative += 0 < bound < 1.5**2
    assert informative >= 5


def test_worst_case_is_attained():
    """One feature never missing, the others half of the time: no order below d - 1 explains any of the parity."""
    d, L = 5, 2.0
    law = independent_law([0.0] + [0.5] * (d - 1))
    for t in range(d - 1):
        computed, _ = bias_pair(parity_truth(d, L=L), t, law)
        assert computed == pytest.approx(L**2)
        assert bias_bound(("polynomial", t), d, L, adaptive_intercept=False) == L**2
    assert bias_pair(parity_truth(d, L=L), d - 1, law)[0] == pytest.approx(0.0, abs=1e-20)
    assert bias_bound(("polynomial", d - 1), d, L, adaptive_intercept=False) == 0.0


def test_bias_pair_agrees_with_bias_bound():
    rows = np.random.RandomState(0).uniform(size=(50, 4)) < [0.02, 0.1, 0.05, 0.3]
    law = np.array([np.mean((rows == m).all(axis=1)) for m in all_patterns(4)])
    truth = draw_truth("parity", 4, 1.0, 0)
    for t in range(5):
        expected = bias_bound(("polynomial", t), 4, 1.0, missing=rows, adaptive_intercept=False)
        assert bias_pair(truth, t, law)[1] == pytest.approx(expected, rel=1e-9)


def test_bias_pair_is_the_least_squares_risk():
    """Against a fit of the class itself to all patterns and signs, intercept included."""
    d = 3
    truth = draw_truth("gaussian", d, 1.0, 4)
    patterns, signs = all_patterns(d), 1 - 2 * all_patterns(d)
    M = np.repeat(patterns, len(signs), axis=0).astype(bool)
    x = np.tile(signs, (len(patterns), 1))
    y = (np.repeat(truth.T, len(signs), axis=0) * ~M * x).sum(axis=1)
    X = np.where(M, np.nan, x)
    Z = Affine().fit(X, M).columns(X, M)
    risk = np.mean((y - Z @ np.linalg.lstsq(Z, y, rcond=None)[0]) ** 2)
    assert bias_pair(truth, 1)[0] == pytest.approx(risk)
