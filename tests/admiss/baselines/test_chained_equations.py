"""Chained equations: against a plain version, against the posterior, and on data with a known distribution."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import ks_2samp, kstest
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline

from admiss.baselines.chained_equations import (
    KAPPA,
    ChainedEquations,
    _nearest,
    _row_keys,
    _uniforms,
    complete_transductive,
    match,
)
from admiss.baselines.complete_features import CompleteFeatures

CORRELATION = 0.6


def correlated(n, d=4, seed=0):
    """Standard normal columns, all with the same correlation."""
    rng = np.random.default_rng(seed)
    return np.sqrt(CORRELATION) * rng.normal(size=(n, 1)) + np.sqrt(1 - CORRELATION) * rng.normal(size=(n, d))


def missing_at_random(X, fraction=0.3, seed=1):
    return np.where(np.random.default_rng(seed).uniform(size=X.shape) < fraction, np.nan, X)


def mean_imputed(X):
    return np.where(np.isnan(X), np.nanmean(X, axis=0), X)


# Against a plain version


def plain_nearest(predictions, target, rank, tie_chance):
    """All distances, sorted; equal predictions are one class, from which one is drawn."""
    distances = np.abs(predictions - target)
    order = np.lexsort((-predictions, distances))
    same = np.flatnonzero(predictions == predictions[order[rank]])
    return same[int(tie_chance * len(same))]


@given(
    st.lists(st.integers(-4, 4), min_size=1, max_size=12),
    st.lists(st.tuples(st.integers(-9, 9), st.integers(0, 11), st.floats(0, 0.999)), min_size=1, max_size=6),
)
@settings(max_examples=100, deadline=None)
def test_donors_are_those_of_all_distances(predictions, targets):
    predictions = np.sort(np.array(predictions, dtype=float))
    target = np.array([t / 2 for t, _, _ in targets])
    rank = np.array([min(r, len(predictions) - 1) for _, r, _ in targets])
    chance = np.array([u for _, _, u in targets])
    expected = [plain_nearest(predictions, *one) for one in zip(target, rank, chance, strict=True)]
    np.testing.assert_array_equal(_nearest(predictions, target, rank, chance), expected)


def plain_chained_equations(X, n_donors, n_sweeps, rng):
    """The same sweeps in raw units: least squares with the ridge as further rows, and n x n distances."""
    observed = ~np.isnan(X)
    X = X.copy()
    incomplete = [j for j in range(X.shape[1]) if not observed[:, j].all()]
    for j in incomplete:
        values = X[observed[:, j], j]
        X[~observed[:, j], j] = values[rng.randint(len(values), size=(~observed[:, j]).sum())]
    for _ in range(n_sweeps):
        for j in incomplete:
            O, others = observed[:, j], [k for k in range(X.shape[1]) if k != j]
            n, y = O.sum(), X[O, j]
            A = X[:, others] - X[O][:, others].mean(axis=0)
            A = A / np.linalg.norm(A[O], axis=0)
            ridge = np.sqrt(KAPPA) * np.eye(len(others))
            gamma = np.linalg.lstsq(np.vstack([A[O], ridge]), np.append(y - y.mean(), 0 * ridge[0]), rcond=None)[0]
            residual = y - y.mean() - A[O] @ gamma
            sigma = np.sqrt(residual @ residual / rng.chisquare(n - X.shape[1]))
            z = np.delete(rng.normal(size=X.shape[1]), j)
            root = np.linalg.inv(np.linalg.cholesky(A[O].T @ A[O] + ridge**2)).T
            drawn = gamma + sigma * root @ z
            targets = y.mean() + sigma * rng.normal() / np.sqrt(n) + A[~O] @ drawn
            distances = np.abs((y.mean() + A[O] @ gamma)[None, :] - targets[:, None])
            rank = (rng.uniform(size=len(targets)) * n_donors).astype(int)
            rng.uniform(size=len(targets))  # for ties, which do not occur
            X[~O, j] = y[np.argsort(distances, axis=1)[np.arange(len(targets)), rank]]
    return X


def test_the_sweeps_are_those_of_the_plain_version():
    full = correlated(150) * [1e-3, 1.0, 50.0, 1e4] + [0.0, 7.0, -300.0, 1e5]
    X = missing_at_random(full)
    X[:, 2] = full[:, 2]  # never missing: no two predictions are equal
    found = ChainedEquations(n_donors=5, n_sweeps=4, random_state=3).fit_transform(X)
    np.testing.assert_array_equal(found, plain_chained_equations(X, 5, 4, np.random.RandomState(3)))


def test_transductive_completion_is_two_runs_of_the_plain_version():
    X = missing_at_random(correlated(200))
    rng = np.random.RandomState(3)
    train = plain_chained_equations(X[:120], 5, 3, rng)
    both = plain_chained_equations(np.vstack([train, X[120:]]), 5, 3, rng)
    found = complete_transductive(X[:120], X[120:], n_sweeps=3, random_state=3)
    np.testing.assert_array_equal(np.vstack(found), both)


def test_the_regression_is_least_squares_and_its_draws_have_the_posterior_moments():
    """The posterior of the coefficients is a multivariate t around the estimate; bounds of five standard errors."""
    rng = np.random.RandomState(0)
    Z = correlated(60, d=3, seed=2)
    observed = np.arange(60) < 45
    design = np.column_stack([np.ones(45), Z[:45, [0, 2]]])
    estimate, squares, *_ = np.linalg.lstsq(design, Z[:45, 1], rcond=None)
    matchings = [match(Z, Z[:, 1], observed, 1, rng) for _ in range(4000)]

    order = np.argsort(design @ estimate)
    np.testing.assert_allclose(matchings[0].predictions, (design @ estimate)[order], atol=1e-4)
    np.testing.assert_array_equal(matchings[0].values, Z[:45, 1][order])
    assert all(m.coefficients[1] == 0 for m in matchings)

    draws = np.array([[m.intercept, *m.coefficients[[0, 2]]] for m in matchings])
    degrees = 45 - 3
    covariance = squares[0] / (degrees - 2) * np.linalg.inv(design.T @ design)
    deviation = np.sqrt(np.diag(covariance))
    assert np.all(np.abs(draws.mean(axis=0) - estimate) < 5 * deviation / np.sqrt(4000) + 1e-4)
    # An entry of a covariance of N normal draws, in units of the deviations, has a standard error of at most sqrt(2/N),
    # with the tails of this t sqrt(2.5/N).
    scaled = (np.cov(draws.T) - covariance) / np.outer(deviation, deviation)
    assert np.abs(scaled).max() < 5 * np.sqrt(2.5 / 4000)


def test_equal_predictions_are_drawn_equally_for_new_rows():
    """Three of the five donors are equal; the last column, constant in training, only distinguishes the new rows."""
    x = np.append([0.0, 0.0], np.arange(20.0))
    X = np.column_stack([10 * x + [-0.001, 0.001, *np.zeros(20)], x, np.ones(22)])
    n = 6000
    new = np.column_stack([np.full(n, np.nan), np.zeros(n), np.arange(n)])
    filled = ChainedEquations(random_state=0).fit(X).transform(new)[:, 0]
    values, counts = np.unique(filled, return_counts=True)
    np.testing.assert_array_equal(values, [-0.001, 0, 0.001, 10, 20])
    assert np.all(np.abs(counts - n / 5) < 5 * np.sqrt(n * 4 / 25))


def test_without_predictors_all_observed_values_are_drawn():
    x = np.append(np.arange(100.0), np.full(3000, np.nan))[:, None]
    filled = ChainedEquations(random_state=0).fit_transform(x)[100:, 0]
    # Each value 30 times, up to five standard deviations of a binomial.
    assert np.all(np.abs(np.bincount(filled.astype(int), minlength=100) - 30) < 5 * np.sqrt(30))


# On data with a known distribution


@pytest.fixture(scope="module")
def gaussian():
    full = correlated(4000)
    X = missing_at_random(full)
    imputer = ChainedEquations(random_state=0)
    fresh = missing_at_random(correlated(4000, seed=10), seed=11)
    return full, X, imputer.fit_transform(X), fresh, imputer.transform(fresh)


def test_imputed_values_are_observed_values_and_observed_values_stay(gaussian):
    _, X, completed, fresh, completed_fresh = gaussian
    for given_rows, result in ((X, completed), (fresh, completed_fresh)):
        M = np.isnan(given_rows)
        np.testing.assert_array_equal(result[~M], given_rows[~M])
        for j in range(4):
            assert np.isin(result[M[:, j], j], X[:, j]).all()


@pytest.mark.parametrize("rows", ["training", "new"])
def test_correlations_and_variances_are_preserved(gaussian, rows):
    """Standard errors of correlations are those of the .49 n rows where both columns are observed."""
    _, X, completed, fresh, completed_fresh = gaussian
    result, given_rows = (completed, X) if rows == "training" else (completed_fresh, fresh)
    pairs = np.triu_indices(4, 1)
    bound = 5 * (1 - CORRELATION**2) / np.sqrt(0.49 * len(X))
    assert np.abs(np.corrcoef(result.T)[pairs] - CORRELATION).max() < bound
    assert np.abs(np.corrcoef(mean_imputed(given_rows).T)[pairs] - CORRELATION).min() > bound
    bound = 5 * np.sqrt(2 / (0.7 * len(X)))
    assert np.abs(result.var(axis=0) - 1).max() < bound
    assert np.abs(mean_imputed(given_rows).var(axis=0) - 1).min() > bound


def test_the_marginal_distribution_is_preserved(gaussian):
    """Imputed against true values of the missing cells; a KS distance exceeds 2.5 sqrt(2/n) once in 100,000 times."""
    full, X, completed, *_ = gaussian
    for j in range(4):
        M = np.isnan(X[:, j])
        bound = 2.5 * np.sqrt(2 / M.sum())
        assert ks_2samp(completed[M, j], full[M, j]).statistic < bound
        assert ks_2samp(mean_imputed(X)[M, j], full[M, j]).statistic > bound


def test_the_variance_between_seeds_is_the_residual_variance():
    """Given the row, a cell has the residual variance; five fixed donors would vary by 4/5 of it."""
    full = correlated(1500, seed=4)
    X = full.copy()
    X[:300, 0] = np.nan
    draws = np.array([ChainedEquations(n_sweeps=1, random_state=s).fit_transform(X)[:300, 0] for s in range(40)])
    design = np.column_stack([np.ones(1200), full[300:, 1:]])
    residual = np.linalg.lstsq(design, full[300:, 0], rcond=None)[1][0] / 1196
    assert 0.7 * residual < draws.var(axis=0, ddof=1).mean() < 1.15 * residual
    # The mean is right up to the errors of the regression and of the 300 rows.
    assert abs(np.mean(draws - full[:300, 0])) < 5 * np.sqrt(residual * (1 / 300 + 1 / 1200))


def test_two_values_that_are_missing_together_are_related():
    """Only the sweeps relate them, since the other column is independent; bounds of five standard errors."""
    X = np.column_stack([correlated(3000, d=2, seed=7), np.random.default_rng(8).normal(size=3000)])
    X[:1500, :2] = np.nan
    imputer = ChainedEquations(random_state=0)
    results = [
        imputer.fit_transform(X)[:1500],
        imputer.transform(X[:1500]),
        complete_transductive(X[1500:], X[:1500], random_state=0)[1],
    ]
    for result in results:
        found = np.corrcoef(result[:, 0], result[:, 1])[0, 1]
        assert abs(found - CORRELATION) < 5 * (1 - CORRELATION**2) * np.sqrt(2 / 1500)


def test_means_are_unbiased_if_missingness_depends_on_an_observed_column():
    """Bounds are five standard errors of the mean of the observed values."""
    full = correlated(4000, d=2, seed=5)
    X = full.copy()
    X[(full[:, 0] > 0) & (np.random.default_rng(6).uniform(size=4000) < 0.8), 1] = np.nan
    bound = 5 / np.sqrt((~np.isnan(X[:, 1])).sum())
    completed = ChainedEquations(random_state=0).fit_transform(X)
    assert abs(completed[:, 1].mean() - full[:, 1].mean()) < bound
    assert abs(mean_imputed(X)[:, 1].mean() - full[:, 1].mean()) > 2 * bound
    _, transductive = complete_transductive(X[:2000], X[2000:], random_state=0)
    assert abs(transductive[:, 1].mean() - full[2000:, 1].mean()) < bound
    fresh = ChainedEquations(random_state=0).fit(X[:2000]).transform(X[2000:])
    assert abs(fresh[:, 1].mean() - full[2000:, 1].mean()) < bound


# New rows


def test_a_new_row_is_completed_alone_as_with_others(gaussian):
    _, X, _, fresh, completed = gaussian
    imputer = ChainedEquations(random_state=0).fit(X)
    np.testing.assert_array_equal(imputer.transform(fresh), completed)
    order = np.random.default_rng(0).permutation(len(fresh))
    np.testing.assert_array_equal(imputer.transform(fresh[order]), completed[order])
    for i in range(20):
        np.testing.assert_array_equal(imputer.transform(fresh[i : i + 1]), completed[i : i + 1])
    other = ChainedEquations(random_state=1).fit(X).transform(fresh)
    assert np.mean(other != completed) > 0.2


def test_the_sign_of_zero_cannot_matter(make_rows):
    zeros = np.array([[0.0, np.nan, 1.0], [-0.0, np.nan, 1.0]])
    found = ChainedEquations(random_state=0).fit(make_rows()[0]).transform(zeros)
    assert np.ptp(found, axis=0).tolist() == [0, 0, 0]


def test_random_numbers_of_rows_are_uniform_and_unrelated():
    """Also for similar rows; a KS distance exceeds 2.5/sqrt(n) once in 100,000 times."""
    n = 20_000
    X = np.column_stack([np.arange(n) % 200, np.arange(n) // 200, np.full(n, np.nan)])
    keys = _row_keys(X, 5)
    assert len(np.unique(keys)) == n
    draws = np.array([_uniforms(keys, step, column) for step in range(3) for column in range(3)])
    for draw in draws:
        assert kstest(draw, "uniform").statistic < 2.5 / np.sqrt(n)
        assert draw.min() >= 0
        assert draw.max() < 1
    neighbours = np.vstack([draws, draws[0, np.r_[1:n, 0]], _uniforms(_row_keys(X, 6), 0, 0)])
    off_diagonal = np.corrcoef(neighbours)[np.triu_indices(len(neighbours), 1)]
    assert np.abs(off_diagonal).max() < 5 / np.sqrt(n)


def test_missing_for_the_first_time_in_a_new_row():
    X = correlated(500)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        completed = ChainedEquations(random_state=0).fit(X).transform(missing_at_random(X))
    assert np.abs(np.corrcoef(completed.T) - np.corrcoef(X.T)).max() < 5 * (1 - CORRELATION**2) / np.sqrt(0.49 * 500)


def test_in_transductive_completion_training_rows_come_first_and_test_rows_are_donors():
    X = missing_at_random(correlated(400))
    train, test = complete_transductive(X[:200], X[200:], random_state=0)
    np.testing.assert_array_equal(train, ChainedEquations(random_state=0).fit_transform(X[:200]))
    M = np.isnan(X[200:])
    np.testing.assert_array_equal(test[~M], X[200:][~M])
    for j in range(4):
        filled = test[M[:, j], j]
        assert np.isin(filled, X[:, j]).all()
        assert 0 < np.isin(filled, X[200:, j]).mean() < 1
        assert np.isin(ChainedEquations(random_state=0).fit(X[:200]).transform(X[200:])[M[:, j], j], X[:200, j]).all()


# Odd data


def test_columns_that_are_never_observed_are_zero_with_a_warning():
    X = np.insert(missing_at_random(correlated(100)), 2, np.nan, axis=1)
    new = np.insert(correlated(10), 2, 3.0, axis=1)  # observed now, and ignored
    with pytest.warns(UserWarning, match="Never observed in training, and set to 0 throughout: x2"):
        imputer = ChainedEquations(random_state=0).fit(X)
    with pytest.warns(UserWarning, match="set to 0 throughout: x2"):
        train, test = complete_transductive(X, new, random_state=0)
    for completed in (imputer.transform(new), train, test):
        assert np.all(completed[:, 2] == 0)


def odd_tables():
    X = missing_at_random(np.column_stack([correlated(300, d=2), np.full(300, 2.5)]))
    few = np.array([[1.0, np.nan], [2.0, 5.0], [np.nan, 6.0], [4.0, np.nan]])
    return {
        "constant, collinear and large": np.column_stack(
            [X, X[:, 0], 3 * X[:, 1] - 1, X[:, 0] * 1e300, X[:, 1] * 1e-300]
        ),
        "more columns than rows": missing_at_random(correlated(30, d=60)),
        "few values": few,
        "a single row": np.array([[1.0, 2.0]]),
    }


@pytest.mark.parametrize("name", odd_tables())
def test_values_of_odd_tables_are_observed_ones(name):
    X = odd_tables()[name]
    imputer = ChainedEquations(random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for result in (
            imputer.fit_transform(X),
            imputer.transform(X),
            imputer.transform(np.full((2, X.shape[1]), np.nan)),
        ):
            assert np.isfinite(result).all()
            for j in range(X.shape[1]):
                assert np.isin(result[:, j], X[:, j]).all()


def test_a_column_that_is_constant_if_another_is_observed_does_not_predict_it():
    X = correlated(200, d=3)
    X[:100, 0] = np.nan
    X[100:, 1] = 4.0
    imputer = ChainedEquations(random_state=0).fit(X)
    assert imputer.matchings_[0].coefficients[1] == 0
    assert imputer.matchings_[0].coefficients[2] != 0


def test_rank_five_in_ten_columns():
    """As in the authors' data, five observed entries determine the others, and donors are near them."""
    rng = np.random.default_rng(0)
    full = rng.normal(size=(1500, 5)) @ rng.normal(size=(5, 10)) + rng.normal(size=10)
    X = missing_at_random(full, fraction=0.1)
    M = np.isnan(X)
    completed = ChainedEquations(random_state=0).fit_transform(X)
    explained = 1 - np.mean((completed - full)[M] ** 2) / np.mean((mean_imputed(X) - full)[M] ** 2)
    assert explained > 0.95


def test_errors_are_one_sentence():
    X = missing_at_random(correlated(50))
    bad = X.copy()
    bad[3, 1] = np.inf
    with pytest.raises(ValueError, match="infinity in column 1"):
        complete_transductive(X, bad)
    for wrong in ({"n_donors": 0}, {"n_sweeps": 2.5}, {"n_donors": True}):
        with pytest.raises(ValueError, match=r"n_(donors|sweeps) of \w+ must be an integer from 1"):
            complete_transductive(X, X, **wrong)


# Complete features


def test_complete_features_are_selected():
    X = correlated(50)
    X[::7, 1] = np.nan
    selector = CompleteFeatures().fit(X)
    assert selector.features_.tolist() == [0, 2, 3]
    np.testing.assert_array_equal(selector.transform(X), X[:, [0, 2, 3]])


def test_without_complete_features_a_model_predicts_the_mean():
    X, y = np.array([[1.0, np.nan], [np.nan, 2.0], [3.0, 4.0]]), np.array([1.0, 2.0, 6.0])
    with pytest.warns(UserWarning, match="Every feature has missing values in training"):
        model = make_pipeline(CompleteFeatures(), LinearRegression()).fit(X, y)
    np.testing.assert_allclose(model.predict(np.full((2, 2), np.nan)), 3.0)
    assert model[0].get_feature_names_out().tolist() == ["constant"]
