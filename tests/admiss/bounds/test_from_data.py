"""Classes recommended from second moments of rows."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from admiss import AdaptiveRegressor
from admiss.adaptivity import Adaptivity
from admiss.bounds import moment_gain, recommend_from_data


def rows_of(n, d, rng, rate=0.3, noise=0.5):
    """Correlated rows of which values are missing completely at random, and a linear target."""
    C = 0.2 * np.eye(d) + 0.8
    X = rng.normal(size=(n, d)) @ np.linalg.cholesky(C).T
    y = X @ np.linspace(1, 2, d) + noise * rng.normal(size=n)
    return np.where(rng.uniform(size=X.shape) < rate, np.nan, X), y, C


@pytest.mark.slow
def test_risks_are_those_of_the_true_moments():
    rng = np.random.default_rng(0)
    X, y, C = rows_of(20_000, 4, rng)
    found = {ranked.name: ranked for ranked in recommend_from_data(X, y).ranking}
    beta = np.linspace(1, 2, 4)
    for poor, rich in (("static", "affine"), ("affine", "order 2")):
        F = rich if rich == "affine" else ("polynomial", 2)
        gain = moment_gain(poor, F, (np.zeros(4), C), missing=0.3, beta=beta)
        assert found[poor].risk - found[rich].risk == pytest.approx(gain, rel=0.1)
    # least squares has the stated risk
    test, target, _ = rows_of(20_000, 4, rng)
    for name, ranked in found.items():
        model = AdaptiveRegressor(ranked.adaptivity, lam=0).fit(X, y)
        assert np.mean((target - model.predict(test)) ** 2) == pytest.approx(ranked.risk, rel=0.05), name


def test_more_rows_allow_richer_classes():
    names = []
    for n in (60, 10_000):
        X, y, _ = rows_of(n, 5, np.random.default_rng(1), noise=10.0)
        ranking = recommend_from_data(X, y)
        totals = [ranked.total for ranked in ranking.ranking]
        assert totals == sorted(totals)
        assert all(r.total == pytest.approx(r.risk * (1 + ranking.c * r.columns / n)) for r in ranking.ranking)
        names.append(ranking.best.name)
    assert names[0] in ("static", "affine intercept")
    assert names[1] not in ("static", "affine intercept")


def test_columns_are_those_of_the_design():
    X, y, _ = rows_of(300, 5, np.random.default_rng(2))
    X[:, 0] = 1.0 + np.arange(300)  # never missing
    for ranked in recommend_from_data(X, y).ranking:
        assert ranked.columns == ranked.adaptivity.fit(X, np.isnan(X)).mask(5).sum(), ranked.name


def test_a_new_class_is_between_those_that_it_contains_and_that_contain_it():
    class CountAdaptive(Adaptivity):
        def basis(self, M):
            return np.column_stack([np.ones(len(M)), M.sum(axis=1)])

    X, y, _ = rows_of(300, 4, np.random.default_rng(2))
    ranking = recommend_from_data(X, y, ["affine", CountAdaptive(), "static"]).ranking
    ranked = {each.name: each for each in ranking}
    affine, own, static = (ranked[name] for name in ("affine", "CountAdaptive()", "static"))
    assert affine.risk < own.risk < static.risk
    assert (affine.columns, own.columns, static.columns) == (21, 10, 5)
    with pytest.raises(ValueError, match="LowRankAffine.*structure"):
        recommend_from_data(X, y, ["low_rank_affine"])


def test_print_says_what_it_is():
    X, y, _ = rows_of(100, 3, np.random.default_rng(3))
    text = str(recommend_from_data(X, y))
    for words in ("an estimate by second moments", "measured constant", "M depends on X or y", "recommended: "):
        assert words in text


def test_data_frames_and_units():
    X, y, _ = rows_of(200, 3, np.random.default_rng(4))
    first = recommend_from_data(X, y)
    for frame in (pd.DataFrame(X, columns=list("abc")), pl.DataFrame(X, schema=list("abc"), nan_to_null=True)):
        assert recommend_from_data(frame, y).best.name == first.best.name
    scaled = recommend_from_data(1e6 * X + 1e7, 1e-3 * y - 5)
    assert scaled.best.name == first.best.name
    assert [1e6 * r.risk for r in scaled.ranking] == pytest.approx([r.risk for r in first.ranking], rel=1e-4)


@pytest.mark.filterwarnings("error")
def test_odd_rows():
    rng = np.random.default_rng(5)
    X, y, _ = rows_of(30, 6, rng)
    never, constant, copied = X.copy(), X.copy(), np.column_stack([X, X[:, 0]])
    never[:, 2] = np.nan
    constant[:, 1] = 3.0
    wide = np.where(rng.uniform(size=(10, 40)) < 0.2, np.nan, rng.normal(size=(10, 40)))
    for rows, target in (
        (never, y),
        (constant, y),
        (copied, y),
        (np.nan_to_num(X), y),
        (wide, y[:10]),
        (X[:1], y[:1]),
        (X[:2], y[:2]),
        (X[:, :1], y),
        (X, np.zeros(30)),
        (1e150 * X, y),
    ):
        ranking = recommend_from_data(rows, target).ranking
        assert all(np.isfinite([r.risk, r.total]).all() and r.risk >= 0 for r in ranking)
        assert ranking[0].name


def test_invalid_arguments_get_one_sentence():
    X, y, _ = rows_of(30, 3, np.random.default_rng(6))
    with pytest.raises(ValueError, match="give at least one"):
        recommend_from_data(X, y, [])
    with pytest.raises(ValueError, match="X has no observed value"):
        recommend_from_data(np.full((5, 2), np.nan), y[:5])
    with pytest.raises(ValueError, match="c must be a finite non-negative number"):
        recommend_from_data(X, y, c=-1.0)
    with pytest.raises(ValueError, match="Unknown adaptivity"):
        recommend_from_data(X, y, ["cubic"])
