"""Rates, dependence and composition of mechanisms.

Statistical tolerances are five standard errors: a correct mechanism fails once in a million.
"""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import norm

from admiss.datasets import (
    Adversarial,
    AtRandom,
    Blocks,
    Censoring,
    CompletelyAtRandom,
    Dropout,
    Either,
    LatentFactor,
    Only,
    PanelAttrition,
    QuantileAtRandom,
    SelfMasking,
    Together,
)
from formulations.certificate import Certificate

ROWS = 20_000


def draw(mechanism, X, seed=1):
    return mechanism(X, np.random.RandomState(seed))


def five_errors(p, rows=ROWS):
    return 5 * np.sqrt(p * (1 - p) / rows)


@pytest.fixture(scope="module")
def X():
    rng = np.random.RandomState(0)
    mixed = rng.normal(size=(ROWS, 4)) @ rng.normal(size=(4, 4)) * [1.0, 1e6, 1e-6, 3.0] + [0.0, 5e6, 0.0, -100.0]
    # A skewed, a discrete, a constant and a binary column.
    return np.column_stack(
        [mixed, np.exp(2 * rng.normal(size=ROWS)), rng.poisson(1.0, ROWS), np.ones(ROWS), rng.uniform(size=ROWS) < 0.1]
    )


IN_EXPECTATION = [CompletelyAtRandom, SelfMasking, lambda p: SelfMasking(p, -5.0), lambda p: AtRandom(p, [0, 3]),
                  lambda p: QuantileAtRandom(p, [0, 3], 0.9), LatentFactor,
                  lambda p: LatentFactor(p, 8, -4.0)]  # fmt: skip


@pytest.mark.parametrize("make", IN_EXPECTATION)
@pytest.mark.parametrize("p", [0.05, 0.3, 0.8])
def test_rates_in_expectation(X, make, p):
    mechanism = make(p)
    columns = [1, 2, 4, 5, 6, 7] if isinstance(mechanism, AtRandom | QuantileAtRandom) else range(8)
    rates = draw(mechanism, X).mean(axis=0)[list(columns)]
    np.testing.assert_allclose(rates, p, atol=five_errors(p))


@pytest.mark.parametrize("side", ["above", "below", "both", "coin"])
@pytest.mark.parametrize("p", [0.0, 0.05, 0.3333, 0.8, 1.0])
def test_rates_of_quantile_rules_are_exact(X, side, p):
    np.testing.assert_array_equal(draw(Censoring(p, side), X).sum(axis=0), round(p * ROWS))


@pytest.mark.parametrize("p", [0.0, 1.0])
@pytest.mark.parametrize("make", [CompletelyAtRandom, SelfMasking, lambda p: Only(SelfMasking(p), range(8))])
def test_none_and_all(X, make, p):
    assert (draw(make(p), X) == bool(p)).all()


def test_completely_at_random_is_independent_of_values_and_columns(X):
    M = draw(CompletelyAtRandom(0.3), X)
    for j in range(5):
        assert abs(np.corrcoef(M[:, j], X[:, j])[0, 1]) < 5 / np.sqrt(ROWS)
        assert abs(np.corrcoef(M[:, j], M[:, j + 1])[0, 1]) < 5 / np.sqrt(ROWS)


def test_at_random_depends_on_the_given_columns_and_on_nothing_else():
    X = np.random.RandomState(0).normal(size=(ROWS, 4))
    M = draw(AtRandom(0.4, given=[0, 1], strength=3.0), X)
    assert not M[:, :2].any()
    score = X[:, :2].sum(axis=1)
    for j in (2, 3):
        assert np.corrcoef(M[:, j], score)[0, 1] > 0.5
        assert abs(np.corrcoef(M[:, j], X[:, j])[0, 1]) < 5 / np.sqrt(ROWS)
    # Given the score, two columns are independent: within a thin slice their correlation vanishes.
    slice_ = np.abs(score) < 0.1
    assert abs(np.corrcoef(M[slice_, 2], M[slice_, 3])[0, 1]) < 5 / np.sqrt(slice_.sum())
    assert np.corrcoef(M[:, 2], M[:, 3])[0, 1] > 0.2


@pytest.mark.parametrize("strength", [2.0, -1.0])
def test_self_masking_is_logistic_in_the_value(strength):
    X = np.random.RandomState(0).normal(size=(10 * ROWS, 1))
    M = draw(SelfMasking(0.3, strength), X)
    Z = (X[:, 0] - X[:, 0].mean()) / X[:, 0].std()
    centres = np.array([-1.0, 0.0, 1.0])
    near = [np.abs(Z - centre) < 0.05 for centre in centres]
    rates = np.array([M[rows, 0].mean() for rows in near])
    log_odds = np.log(rates / (1 - rates))
    errors = 5 * np.array([1 / np.sqrt(rows.sum() * p * (1 - p)) for rows, p in zip(near, rates, strict=True)])
    assert abs((log_odds[2] - log_odds[0]) / 2 - strength) < np.hypot(errors[0], errors[2]) / 2 + 0.02
    assert abs(log_odds[1] - log_odds.mean()) < errors.max() + 0.02


def test_censoring_hides_the_extremes(X):
    x = X[:, 0]
    high, low, both = (draw(Censoring(0.25, side), X)[:, 0] for side in ("above", "below", "both"))
    assert x[high].min() > x[~high].max()
    assert x[low].max() < x[~low].min()
    assert np.quantile(x, 0.124) <= x[~both].min()
    assert x[~both].max() <= np.quantile(x, 0.876)
    coin = draw(Censoring(0.25, "coin"), np.random.RandomState(3).normal(size=(200, 400)), seed=0)
    observed = np.where(coin, np.nan, np.random.RandomState(3).normal(size=(200, 400)))
    above = np.nanmean(observed, axis=0) < 0
    assert abs(above.mean() - 0.5) < five_errors(0.5, 400)


def test_ties_are_broken_at_random():
    M = draw(Censoring(0.5), np.ones((ROWS, 1)))
    assert M.sum() == ROWS // 2
    assert abs(M[: ROWS // 2].mean() - 0.5) < five_errors(0.5, ROWS // 2)


def test_blocks_are_missing_together():
    X = np.random.RandomState(0).normal(size=(ROWS, 5))
    M = draw(Together(CompletelyAtRandom(0.3), [[0, 1], [3, 4]]), X)
    assert (M[:, 0] == M[:, 1]).all()
    assert (M[:, 3] == M[:, 4]).all()
    assert not M[:, 2].any()
    assert abs(np.corrcoef(M[:, 0], M[:, 3])[0, 1]) < 5 / np.sqrt(ROWS)
    np.testing.assert_allclose(M.mean(axis=0)[[0, 3]], 0.3, atol=five_errors(0.3))
    censored = draw(Together(Censoring(0.3), 2), X)
    assert X[censored[:, 0], :2].sum(axis=1).min() > X[~censored[:, 0], :2].sum(axis=1).max() - 0.05
    assert censored[:, 4].sum() == round(0.3 * ROWS)


def test_composition():
    X = np.random.RandomState(0).normal(size=(ROWS, 3))
    M = draw(Either([Only(Censoring(0.2), [0]), CompletelyAtRandom(0.1)]), X)
    np.testing.assert_allclose(M.mean(axis=0), [1 - 0.8 * 0.9, 0.1, 0.1], atol=five_errors(0.28))
    assert M[X[:, 0] > norm.ppf(0.82), 0].all()


def test_adversarial_keeps_the_patterns_and_hides_large_values():
    X = np.random.RandomState(0).normal(size=(400, 4)) * [1.0, 1.0, 1.0, 1e6]
    inner = Together(CompletelyAtRandom(0.3))
    before, after = draw(inner, X), draw(Adversarial(inner), X)
    np.testing.assert_array_equal(*(np.sort(M @ [8, 4, 2, 1]) for M in (before, after)))
    Z = X / [1.0, 1.0, 1.0, 1e6]
    assert Z[after].mean() > Z[before].mean() + 0.5


def test_values_that_are_missing_already_stay_missing(X):
    holes = X.copy()
    holes[np.random.RandomState(2).uniform(size=X.shape) < 0.2] = np.nan
    holes[:, 0] = X[:, 0]
    gone = np.isnan(holes)
    for mechanism in (
        CompletelyAtRandom(0.3), SelfMasking(0.3), AtRandom(0.3), Censoring(0.3, "both"),
        Together(CompletelyAtRandom(0.3)), Either([Censoring(0.3)]), Only(Censoring(0.3), [1]),
    ):  # fmt: skip
        M = draw(mechanism, holes)
        assert M[gone].all()
        assert M.dtype == bool
        share = M[:, 1][~gone[:, 1]].mean()
        assert share == pytest.approx(0.3, abs=five_errors(0.3, (~gone[:, 1]).sum()))


def test_nothing_is_written_into_the_matrix(X):
    X = X[:300]
    before = X.copy()
    mechanisms = [CompletelyAtRandom(0.3), SelfMasking(0.3), AtRandom(0.3), Censoring(0.3, "coin"),
                  Adversarial(Together(CompletelyAtRandom(0.3), 4))]  # fmt: skip
    for mechanism in mechanisms:
        first, second = draw(mechanism, X), draw(mechanism, X)
        np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(X, before)


@pytest.mark.parametrize("p", [0.0, 0.05, 0.3, 0.8, 1.0])
@pytest.mark.parametrize("strength", [0.0, 2.0, -5.0])
def test_dropout_is_monotone_with_the_stated_rate(X, p, strength):
    M = draw(Dropout(p, strength), X)
    assert (M[:, 1:] >= M[:, :-1]).all()
    # the shares of rows are independent, between 0 and 1
    assert M.mean() == pytest.approx(p, abs=five_errors(p) + 1e-12)
    holes = np.where(np.random.RandomState(2).uniform(size=X.shape) < 0.3, np.nan, X)
    gone = np.isnan(holes)
    assert draw(Dropout(p, strength), holes)[~gone].mean() == pytest.approx(p, abs=1.5 * five_errors(p) + 1e-12)


def test_dropout_depends_on_the_last_value_seen():
    X = np.random.RandomState(0).normal(size=(ROWS, 3))
    M = draw(Dropout(0.4, strength=3.0), X)
    left = M[:, 1] & ~M[:, 0]
    stays = ~M[:, 0]
    assert np.corrcoef(left[stays], X[stays, 0])[0, 1] > 0.3
    assert abs(np.corrcoef(left[stays], X[stays, 1])[0, 1]) < 5 / np.sqrt(stays.sum())


@pytest.mark.parametrize("p", [0.0, 0.05, 0.3, 0.8])
def test_units_leave_a_panel_for_good(X, p):
    M = draw(PanelAttrition(p, waves=5, kept=[0]), X)
    assert not M[:, 0].any()
    gone = M[:, 1].reshape(-1, 5)
    np.testing.assert_array_equal(M[:, 1:], np.repeat(M[:, [1]], 7, axis=1))
    assert not gone[:, 0].any()
    assert (gone[:, 1:] >= gone[:, :-1]).all()
    assert gone.mean() == pytest.approx(p, abs=five_errors(p, ROWS / 5))
    rest = draw(PanelAttrition(0.3, waves=7), X[:100])  # the last unit has two waves
    assert rest[::7].sum() == 0


@pytest.mark.parametrize("p", [0.0, 0.05, 0.3, 1.0])
def test_blocks_are_rectangles(X, p):
    M = draw(Blocks(p, rows=10, columns=3), X)
    cells = M.reshape(-1, 10, 8)
    np.testing.assert_array_equal(cells, np.repeat(cells[:, :1], 10, axis=1))
    for columns in ([0, 1, 2], [3, 4, 5], [6, 7]):
        assert (M[:, columns] == M[:, columns[:1]]).all()
        assert M[:, columns].mean() == pytest.approx(p, abs=five_errors(p, ROWS / 10))


def test_blocks_are_independent():
    """Of those beside them, of those below them and, with the seed alone changed, of an earlier draw."""
    blocks, again = (draw(Blocks(0.3, rows=10, columns=3), np.zeros((ROWS, 8)), seed)[::10, ::3] for seed in (1, 2))
    pairs = [(blocks[:, 0], blocks[:, 1]), (blocks[:, 1], blocks[:, 2]), (blocks[1:, 0], blocks[:-1, 0])]
    for first, second in [*pairs, (blocks[:, 0], again[:, 0])]:
        together = np.mean(first & second)
        assert together == pytest.approx(0.09, abs=five_errors(0.09, ROWS / 10))


def test_quantiles_of_given_columns_decide():
    X = np.random.RandomState(0).normal(size=(ROWS, 4))
    M = draw(QuantileAtRandom(0.2, given=[0, 1], share=0.4), X)
    score = X[:, :2].sum(axis=1)
    low = score < np.quantile(score, 0.6) - 1e-2
    assert not M[low].any()
    assert not M[:, :2].any()
    high = score > np.quantile(score, 0.6) + 1e-2
    assert M[high, 2].mean() == pytest.approx(0.5, abs=five_errors(0.5, high.sum()))
    assert abs(np.corrcoef(M[high, 2], score[high])[0, 1]) < 5 / np.sqrt(high.sum())
    assert draw(QuantileAtRandom(0.4, share=0.4), np.ones((1000, 2))).sum() == 400


def test_factors_behind_the_values_decide():
    rng = np.random.RandomState(0)
    factor = rng.normal(size=ROWS)
    X = factor[:, None] * [1.0, 1.0, -1.0, 2.0] + 0.3 * rng.normal(size=(ROWS, 4))
    M = draw(LatentFactor(0.3, rank=1, strength=3.0), X)
    found = [np.corrcoef(M[:, j], factor)[0, 1] for j in range(4)]
    assert min(np.abs(found)) > 0.4
    assert np.corrcoef(M[:, 0], M[:, 3])[0, 1] * found[0] * found[3] > 0
    # given the factor, columns are independent
    thin = np.abs(factor) < 0.1
    assert abs(np.corrcoef(M[thin, 0], M[thin, 1])[0, 1]) < 5 / np.sqrt(thin.sum()) + 0.05


@pytest.mark.parametrize(
    ("mechanism", "words"),
    [
        (CompletelyAtRandom(1.2), "between 0 and 1"),
        (SelfMasking(-0.1), "between 0 and 1"),
        (Censoring(0.3, "left"), "Unknown side"),
        (AtRandom(0.3, given=[]), "at least one given column"),
        (AtRandom(0.3, given=range(8)), "one that is not given"),
        (AtRandom(0.3, strength=np.nan), "strength must be a finite number"),
        (Only(CompletelyAtRandom(0.3), [8]), "numbers from 0 to 7, or a mask of 8"),
        (Only(CompletelyAtRandom(0.3), [True, False]), "numbers from 0 to 7, or a mask of 8"),
        (Only(CompletelyAtRandom(0.3), [0.5]), "numbers from 0 to 7"),
        (Adversarial(CompletelyAtRandom(0.3)), "a mechanism with fewer patterns"),
        (Together(CompletelyAtRandom(0.3), 0), "at least 1"),
        (Blocks(0.3, rows=0), "rows must be a positive integer"),
        (Blocks(0.3, columns=1.5), "columns must be a positive integer"),
        (Dropout(1.2), "between 0 and 1"),
        (Dropout(0.3, strength=np.inf), "strength must be a finite number"),
        (LatentFactor(0.3, rank=0), "rank must be a positive integer"),
        (LatentFactor(0.3, strength=np.nan), "strength must be a finite number"),
        (PanelAttrition(0.9, waves=5), "At most the share 0.8 of 20000 rows can leave in 5 waves"),
        (QuantileAtRandom(0.6, share=0.5), "fraction must be at most share=0.5"),
        (QuantileAtRandom(0.3, given=range(8)), "one that is not given"),
    ],
)
def test_bad_mechanisms(X, mechanism, words):
    with pytest.raises(ValueError, match=words):
        draw(mechanism, X)


def test_infinities_and_given_columns_with_missing_values_are_refused(X):
    with pytest.raises(ValueError, match="without missing values"):
        draw(AtRandom(0.3, given=[6]), np.where(X == 1, np.nan, X))
    with pytest.raises(ValueError, match="infinity"):
        draw(CompletelyAtRandom(0.3), np.array([[1.0, np.inf], [2.0, 3.0], [0.0, 1.0]]))


BASIC = [CompletelyAtRandom(0.3), AtRandom(0.3), SelfMasking(0.3), Censoring(0.3), Censoring(0.3, "below"),
         Together(Censoring(0.3)), Either([Censoring(0.3), SelfMasking(0.1)]), Only(Censoring(0.3), [1]),
         Blocks(0.3, rows=2, columns=1), Dropout(0.3), LatentFactor(0.3, rank=1), QuantileAtRandom(0.3)]  # fmt: skip


@pytest.mark.parametrize("mechanism", BASIC)
@pytest.mark.parametrize("kind", [np.uint8, np.int32, np.float32, bool, object])
def test_numbers_of_any_type(mechanism, kind):
    X = np.random.RandomState(0).randint(0, 2 if kind is bool else 200, size=(500, 4)).astype(kind)
    np.testing.assert_array_equal(draw(mechanism, X), draw(mechanism, X.astype(float)))


@pytest.mark.parametrize("mechanism", BASIC)
def test_frames_lists_and_seeds(mechanism):
    X = np.random.RandomState(0).normal(size=(100, 3))
    expected = draw(mechanism, X, seed=1)
    for same in (pd.DataFrame(X), pl.DataFrame(X), X.tolist()):
        found = mechanism(same, random_state=1)
        assert type(found) is np.ndarray
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    "mechanism", [mechanism for mechanism in BASIC if not isinstance(mechanism, AtRandom | QuantileAtRandom)]
)
def test_one_row_and_empty_columns(mechanism):
    assert draw(mechanism, np.array([[1.0, 2.0]])).shape == (1, 2)
    M = draw(mechanism, np.column_stack([np.full(50, np.nan), np.arange(50.0)]))
    assert M[:, 0].all()
    if isinstance(mechanism, Censoring | Only | Together):  # rules on quantiles, exact
        assert M[:, 1].sum() == 15
    else:
        assert 0.1 < M[:, 1].mean() < 0.6


def test_masks_name_columns():
    X = np.random.RandomState(0).normal(size=(200, 3))
    for columns in ([2], [False, False, True], -1):
        M = draw(Only(Censoring(0.5), columns), X)
        assert M.sum(axis=0).tolist() == [0, 0, 100]
    np.testing.assert_array_equal(draw(AtRandom(0.3, [0]), X), draw(AtRandom(0.3, [True, False, False]), X))


@pytest.mark.parametrize("unit", [1e-200, 1e-6, 1e200])
def test_units_do_not_matter(unit):
    X = np.random.RandomState(0).normal(size=(500, 3))
    for mechanism in BASIC:
        np.testing.assert_array_equal(draw(mechanism, X * unit), draw(mechanism, X))


def test_an_interrupted_reallocation_is_not_passed_on(monkeypatch):
    interrupted = Certificate(-1.0, -2.0, "interrupted", "HIGHS", "1", 1.0)
    cut_off = Certificate(-1.0, -2.0, "time limit", "HIGHS", "1", 1.0)
    X = np.random.RandomState(0).normal(size=(20, 4))
    mechanism = Adversarial(Together(CompletelyAtRandom(0.3)))
    patched = "admiss.datasets.mechanisms.composed.reallocate"
    monkeypatch.setattr(patched, lambda Z, M: (M, interrupted))
    with pytest.raises(KeyboardInterrupt):
        draw(mechanism, X)
    monkeypatch.setattr(patched, lambda Z, M: (M, cut_off))
    with pytest.warns(UserWarning, match="time limit"):
        draw(mechanism, X)
