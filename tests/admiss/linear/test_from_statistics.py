"""Fits from row statistics are those from the rows, and are proven."""

import itertools
import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from admiss import AdaptiveRegressor, AdaptiveRegressorCV
from admiss.adaptivity import Adaptivity, BinnedAffine, FusedPatterns
from admiss.linear.design import sums_are_faster
from admiss.linear.folds import folds_of_sums, squared_folds
from admiss.linear.training_sums import TrainingSums
from admiss.streaming import HashFolds, RowStatistics
from formulations.arrays import FloatArray

LINEAR = {"tree_depth": None}
FOLDS = HashFolds(4)


def rows(n: int = 1200, d: int = 5, offset: float = 0.0, seed: int = 0) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Rows whose first third lies elsewhere, with a feature that is never missing and weights."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * 2.0 ** np.arange(d)
    y = X @ rng.normal(size=d) + rng.normal(size=n)
    X[: n // 3, 1] += 20.0
    missing = rng.random((n, d)) < 0.3
    missing[:, 0] = False
    y = y + 2.0 * missing[:, 2]
    return np.where(missing, np.nan, X + offset), y, rng.integers(0, 3, size=n).astype(float)


def in_chunks(data: tuple[FloatArray, FloatArray, FloatArray], n_chunks: int, **settings: Any) -> RowStatistics:
    """Statistics of chunks of different size, merged in a random order."""
    X, y, s = data
    rng = np.random.default_rng(n_chunks)
    cuts = [0, *np.sort(rng.choice(np.arange(1, len(X)), n_chunks - 1, replace=False)).tolist(), len(X)]
    parts = [
        RowStatistics.of(X[a:b], y[a:b], s[a:b], place=(0, 0, a), **LINEAR, **settings)
        for a, b in itertools.pairwise(cuts)
    ]
    order = rng.permutation(n_chunks)
    merged = parts[order[0]]
    for i in order[1:]:
        merged = merged.merge(parts[i])
    return merged


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_chunks_in_any_order_give_the_fit_of_the_rows(offset: float) -> None:
    X, y, s = data = rows(offset=offset)
    cases = [("static", 1.0, 0.0), ("affine_intercept", 1.0, 0.5), ("affine", 10.0, 0.0), ("affine", 50.0, 1.0)]
    for n_chunks in (1, 7, 100):
        statistics = in_chunks(data, n_chunks)
        for adaptivity, lam, l1_ratio in cases:
            model = AdaptiveRegressor(adaptivity, lam=lam, l1_ratio=l1_ratio)
            by_rows, by_sums = clone(model).fit(X, y, s), model.fit_statistics(statistics)
            assert np.max(np.abs(by_rows.predict(X) - by_sums.predict(X))) < 1e-10 * np.std(y)
            assert by_sums.coef_table()["n"] == pytest.approx(by_rows.coef_table()["n"], rel=1e-12)
            assert by_sums.target_range_ == by_rows.target_range_
            assert by_sums.certificate_.status == "optimal"
            assert by_sums.certificate_.objective == pytest.approx(by_rows.certificate_.objective, rel=1e-8)


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_chunks_choose_the_cell_of_the_rows(offset: float) -> None:
    X, y, s = data = rows(600, 4, offset)
    options: dict[str, Any] = {"adaptivity": ["static", "affine_intercept", "affine"], "n_lambdas": 15}
    by_rows = AdaptiveRegressorCV(cv=FOLDS, **options).fit(X, y, s)
    for n_chunks in (1, 7, 100):
        by_sums = AdaptiveRegressorCV(**options).fit_statistics(in_chunks(data, n_chunks, folds=FOLDS))
        assert by_sums.best_index_ == by_rows.best_index_
        loss = by_rows.cv_results_["mean_loss"]
        np.testing.assert_allclose(by_sums.cv_results_["mean_loss"], loss, rtol=1e-9)
        assert np.max(np.abs(by_rows.predict(X) - by_sums.predict(X))) < 1e-10 * np.std(y)


@pytest.mark.parametrize("options", [{"center": False}, {"scale": False}, {"fit_intercept": False}])
def test_options_hold_for_statistics_too(options: dict[str, bool]) -> None:
    X, y, s = data = rows(600, 4)
    statistics = in_chunks(data, 3, folds=FOLDS)
    model = AdaptiveRegressor("affine", lam=2.0, **options)
    expected = clone(model).fit(X, y, s).predict(X)
    np.testing.assert_allclose(model.fit_statistics(statistics).predict(X), expected, rtol=0, atol=1e-10 * np.std(y))
    search = AdaptiveRegressorCV(["static", "affine"], n_lambdas=8, cv=FOLDS, **options)
    chosen = clone(search).fit(X, y, s)
    assert search.fit_statistics(statistics).best_index_ == chosen.best_index_


def test_folds_by_sums_are_those_of_the_rows() -> None:
    """In memory, sums over many rows take the place of columns for every fold."""
    X, y, s = rows(1200, 4)
    search = AdaptiveRegressorCV(["affine_intercept", "affine"], n_lambdas=8, random_state=0)
    classes, _, options = search._read_grid()
    folded = search._read_rows(X, y, s)
    for adaptivity in classes:
        assert not sums_are_faster(folded.X, adaptivity)
        by_rows = squared_folds(folded, adaptivity, options)
        fold = np.zeros(len(folded.X), dtype=np.int64)
        for f, (_, test) in enumerate(folded.splits):
            fold[test] = f
        sums = TrainingSums.of_rows(folded.X, folded.targets[0], folded.s, fold, adaptivity)
        by_sums = folds_of_sums(sums, adaptivity, options)
        for path, lambdas in by_rows.lambdas.items():
            np.testing.assert_allclose(by_sums.lambdas[path], lambdas, rtol=1e-10)
        assert by_sums.weight == pytest.approx(by_rows.weight)
        lambdas = by_rows.lambdas[0, 0.5]
        for one, other in zip(by_sums.paths, by_rows.paths, strict=True):
            np.testing.assert_allclose(*(path(0, 0.5, lambdas, None, 0.0)[0] for path in (one, other)), rtol=1e-9)


class ByCount(Adaptivity):
    """phi = 1, |m|."""

    def basis(self, M: FloatArray) -> FloatArray:
        return np.column_stack([np.ones(len(M)), M.sum(axis=1)])


class TwoCells(Adaptivity):
    """The second feature is missing, or not."""

    cells = True

    def basis(self, M: FloatArray) -> FloatArray:
        return np.column_stack([M[:, 1] == 0, M[:, 1] == 1]).astype(float)


@pytest.mark.parametrize("adaptivity", [ByCount(), TwoCells()])
def test_a_class_of_your_own_works_unchanged(adaptivity: Adaptivity) -> None:
    X, y, s = data = rows(500, 4)
    statistics = in_chunks(data, 5, adaptivity=adaptivity, folds=FOLDS)
    model = AdaptiveRegressor(adaptivity, lam=1.0)
    by_rows = clone(model).fit(X, y, s)
    by_sums = model.fit_statistics(statistics)
    np.testing.assert_allclose(by_sums.coefficients_, by_rows.coefficients_, rtol=0, atol=1e-10)
    np.testing.assert_allclose(by_sums.coef_table()["n"], by_rows.coef_table()["n"])
    search = AdaptiveRegressorCV(adaptivity, n_lambdas=8, cv=FOLDS)
    assert clone(search).fit(X, y, s).best_index_ == search.fit_statistics(statistics).best_index_


def test_constant_features_and_columns_without_rows() -> None:
    """Columns that are 0 or constant are those of the rows; a feature without values is left out, with a warning."""
    X, y, _ = rows(300, 4)
    X[:, 3] = np.where(np.isnan(X[:, 2]), 7.0, X[:, 3])
    missing_together = np.isnan(X[:, 1])
    X[missing_together, 2] = np.nan
    X = np.column_stack([X, np.full(300, 3.0), np.full(300, np.nan)])
    with pytest.warns(UserWarning, match="Never observed"):
        by_rows = AdaptiveRegressor("affine").fit(X, y)
    with pytest.warns(UserWarning, match="Never observed"):
        by_sums = AdaptiveRegressor("affine").fit_statistics(RowStatistics.of(X, y, **LINEAR))
    assert by_rows.design_.pairs.tolist() == by_sums.design_.pairs.tolist()
    np.testing.assert_allclose(by_sums.coefficients_, by_rows.coefficients_, rtol=0, atol=1e-10)


def test_partial_fit_is_solved_when_it_is_used() -> None:
    X, y, s = rows()
    model = AdaptiveRegressor("affine")
    for start in range(0, len(X), 250):
        part = slice(start, start + 250)
        assert model.partial_fit(X[part], y[part], s[part]) is model
    assert "coefficients_" not in vars(model)
    whole = AdaptiveRegressor("affine").fit(X, y, s)
    np.testing.assert_allclose(model.predict(X), whole.predict(X), rtol=0, atol=1e-10)
    assert model.certificate_.status == "optimal"
    model.partial_fit(X, y, s)
    twice = AdaptiveRegressor("affine").fit(X, y, 2.0 * s)
    np.testing.assert_allclose(model.coefficients_, twice.coefficients_, rtol=0, atol=1e-10)
    with pytest.raises(ValueError, match="expecting 5 features"):
        model.partial_fit(X[:, :2], y)
    np.testing.assert_allclose(model.coefficients_, twice.coefficients_, rtol=0, atol=1e-10)
    model.fit(X, y, s)
    with pytest.warns(UserWarning, match="starts anew"):
        model.partial_fit(X[:500], y[:500])
    assert not hasattr(AdaptiveRegressor(loss="absolute"), "partial_fit")
    with pytest.raises(AttributeError, match="partial_fit") as refusal:
        _ = AdaptiveRegressor("fully_adaptive").partial_fit
    assert "learns from the rows" in str(refusal.value.__cause__)


def test_a_proof_from_moments_holds_for_the_rows() -> None:
    from admiss import verify

    X, y, _ = rows(1100, 3)
    for model in (
        AdaptiveRegressor(lam=1.0).fit(X, y),
        AdaptiveRegressor("affine").fit_statistics(RowStatistics.of(X, y, **LINEAR)),
    ):
        assert model.certificate_.status == "optimal"
        assert verify(model, X, y)


def test_dependent_columns_are_proven_with_a_penalty_only() -> None:
    """Columns that differ by 1e-9 of their size are dependent up to the accuracy of their moments."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 3))
    X[:, 1] = X[:, 0] + 1e-9 * rng.normal(size=1500)
    y = X @ np.ones(3) + rng.normal(size=1500)
    statistics = RowStatistics.of(X, y, **LINEAR)
    model = AdaptiveRegressor("static", lam=1e-9).fit_statistics(statistics)
    assert model.certificate_.status == "optimal"
    assert model.certificate_.bound <= AdaptiveRegressor("static", lam=1e-9).fit(X, y).certificate_.objective
    with pytest.raises(ValueError, match="dependent"):
        AdaptiveRegressor("static", lam=0).fit_statistics(statistics)


@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize(
    "adaptivity",
    [
        "static",
        "affine",
        "fully_adaptive",
        "frequent_patterns",
        "shared_patterns",
        "missingness_avoiding",
        "conditional_mean",
    ],
)
def test_patterns_give_the_fit_of_any_class_that_is_linear_in_x(adaptivity: str, offset: float) -> None:
    X, y, s = data = rows(offset=offset)
    statistics = in_chunks(data, 7, adaptivity=None, patterns=True)
    for parameters in ({"lam": 3.0}, {"lam": 20.0, "l1_ratio": 0.7}, {"lam": 1.0, "fit_intercept": offset > 0}):
        model = AdaptiveRegressor(adaptivity, **parameters)
        by_rows, by_sums = clone(model).fit(X, y, s), model.fit_statistics(statistics)
        assert np.max(np.abs(by_rows.predict(X) - by_sums.predict(X))) < 1e-8 * np.std(y)
        assert by_sums.certificate_.objective == pytest.approx(by_rows.certificate_.objective, rel=1e-8)
        rigorous = adaptivity != "conditional_mean"
        assert by_sums.certificate_.status == ("optimal" if rigorous else "solver's bound")


def test_a_structure_is_fitted_from_patterns() -> None:
    X, y, s = data = rows(600, 3)
    model = AdaptiveRegressor(FusedPatterns())
    by_rows = clone(model).fit(X, y, s)
    by_sums = model.fit_statistics(in_chunks(data, 3, adaptivity=None, patterns=True))
    assert by_sums.predict(X) == pytest.approx(by_rows.predict(X), rel=1e-5, abs=1e-5)
    assert by_sums.certificate_.status == "solver's bound"


def test_folds_of_patterns_are_those_of_the_rows() -> None:
    X, y, s = data = rows(800, 4)
    statistics = in_chunks(data, 5, adaptivity=None, patterns=True, folds=FOLDS)
    used = s > 0
    fold = FOLDS.of_places(np.arange(len(X)))[used]
    splits = [(np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in range(FOLDS.n_splits)]
    search = AdaptiveRegressorCV(["fully_adaptive", "affine"], n_lambdas=8, cv=splits)
    by_rows = clone(search).fit(X[used], y[used], s[used])
    by_sums = search.fit_statistics(statistics)
    assert by_sums.cv_results_["mean_loss"] == pytest.approx(by_rows.cv_results_["mean_loss"], rel=1e-8)
    assert by_sums.predict(X) == pytest.approx(by_rows.predict(X), rel=1e-8, abs=1e-8)


def test_what_statistics_do_not_determine_is_refused() -> None:
    X, y, _ = rows(200, 4)
    statistics = RowStatistics.of(X, y, adaptivity="affine_intercept", **LINEAR)
    refused = {
        "do not suffice for Affine": AdaptiveRegressor("affine"),
        "FullyAdaptive learns .* patterns=True": AdaptiveRegressor("fully_adaptive"),
        "ConditionalMean learns .* patterns=True": AdaptiveRegressor("conditional_mean"),
        "BinnedAffine .* not linear in x": AdaptiveRegressor(BinnedAffine()),
        "squared loss only": AdaptiveRegressor(loss="huber"),
        "penalty_weights": AdaptiveRegressor(penalty_weights="authors"),
        "solver='cvxpy'": AdaptiveRegressor(solver="cvxpy"),
        "needs the patterns": AdaptiveRegressor(on_unseen_pattern="error"),
        "needs folds": AdaptiveRegressorCV("static"),
        "FiniteRegressorCV": AdaptiveRegressorCV("finite"),
    }
    for words, model in refused.items():
        with pytest.raises(ValueError, match=words):
            model.fit_statistics(statistics)
        assert not hasattr(model, "n_features_in_")
    with pytest.raises(TypeError, match="fit takes rows"):
        AdaptiveRegressor().fit_statistics(X)
    with pytest.raises(ValueError, match="too large"):
        AdaptiveRegressor().fit_statistics(RowStatistics.of(1e130 * X, y, **LINEAR))
    fitted = AdaptiveRegressor().fit_statistics(statistics)
    assert list(fitted.pattern_report(X)) == ["pattern", "rows"]
    folded = RowStatistics.of(X, y, adaptivity="affine_intercept", folds=FOLDS, **LINEAR)
    assert (
        repr(AdaptiveRegressorCV(n_lambdas=5).fit_statistics(folded).best_params_["adaptivity"]) == "AffineIntercept()"
    )


def test_features_that_are_never_observed_leave_the_mean() -> None:
    X, y = np.full((1200, 2), np.nan), np.arange(1200.0)
    for fit in (lambda m: m.fit(X, y), lambda m: m.fit_statistics(RowStatistics.of(X, y, **LINEAR))):
        with pytest.warns(UserWarning, match="Never observed"):
            model = fit(AdaptiveRegressor())
        assert model.predict(X[:2]) == pytest.approx([599.5, 599.5])
        assert model.certificate_.status == "optimal"


@pytest.mark.slow
def test_odd_tables_in_three_parts() -> None:
    """Units, offsets, copies, constants, rare patterns, weights, more columns than rows, a constant target."""
    proven = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        n, d = int(rng.choice([2, 3, 5, 10, 30, 100, 400])), int(rng.integers(1, 6))
        X = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-3, 4, size=d) + rng.choice([0.0, 1e3, 1e6], size=d)
        X[:, 0] = np.round(X[:, 0]) if rng.random() < 0.3 else X[:, 0]
        X[:, -1] = X[:, 0] if rng.random() < 0.2 else 3.0 if rng.random() < 0.2 else X[:, -1]
        X[rng.random((n, d)) < rng.choice([0.0, 0.1, 0.5, 0.9])] = np.nan
        y = np.full(n, 2.0) if rng.random() < 0.05 else rng.normal(size=n) * 10.0 ** rng.integers(-5, 6)
        s = [np.ones(n), rng.integers(0, 3, n) + 0.0, 10.0 ** rng.uniform(-6, 6, n)][rng.integers(3)]
        s[0] = 1.0
        model = AdaptiveRegressor(
            str(rng.choice(["static", "affine_intercept", "affine"])),
            lam=float(10.0 ** rng.uniform(-3, 3)),
            l1_ratio=float(rng.choice([0.0, 0.5, 1.0])),
            scale=bool(rng.random() < 0.8),
        )
        cuts = [slice(i, i + n // 3 + 1) for i in range(0, n, n // 3 + 1)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of features that are never observed
            statistics = RowStatistics(**LINEAR)
            for cut in cuts:
                statistics = RowStatistics.of(X[cut], y[cut], s[cut], **LINEAR).merge(statistics)
            by_rows, by_sums = clone(model).fit(X, y, s), model.fit_statistics(statistics)
            assert by_sums.design_.pairs.tolist() == by_rows.design_.pairs.tolist(), seed
            optimum, bound = by_rows.certificate_.objective, by_sums.certificate_.bound
            assert bound <= optimum * (1.0 + 1e-9), seed
            proven += by_sums.certificate_.status == "optimal"
            # a feature around 1e6 with a deviation of 1e-3 is known to 1e-7 only
            assert np.max(np.abs(by_rows.predict(X) - by_sums.predict(X))) <= 1e-6 * np.max(np.abs(y)), seed
    assert proven > 200


@pytest.mark.parametrize("options", [{"center": False}, {"fit_intercept": False}, {}])
def test_a_value_that_is_missing_in_one_fold_only_is_its_mean(options: dict[str, bool]) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal([100.0, 0.0], size=(1200, 2))
    y = X @ [1.0, 1.0] + rng.normal(size=1200)
    X[3, 0], X[rng.random(1200) < 0.3, 1] = np.nan, np.nan
    by_sums = AdaptiveRegressorCV("affine_intercept", cv=HashFolds(5), **options).fit(X, y)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("admiss.linear.folds.sums_are_faster", lambda *_: False)
        by_rows = AdaptiveRegressorCV("affine_intercept", cv=HashFolds(5), **options).fit(X, y)
    assert by_sums.best_params_["lam"] == pytest.approx(by_rows.best_params_["lam"], rel=1e-9)
    assert by_sums.best_score_ == pytest.approx(by_rows.best_score_, rel=1e-8)


class Weighted(Adaptivity):
    def __init__(self, weights: Any) -> None:
        self.weights = weights

    def basis(self, M: FloatArray) -> FloatArray:
        return np.column_stack([np.ones(len(M)), M @ np.asarray(self.weights)[: M.shape[1]]])


def test_statistics_of_a_class_with_other_arrays_are_refused() -> None:
    X, y, _ = rows(300, 3)
    first, second = np.arange(2000.0), np.arange(2000.0)
    second[1] = 7.0
    statistics = RowStatistics.of(X, y, adaptivity=Weighted(first), **LINEAR)
    with pytest.raises(ValueError, match="do not suffice"):
        AdaptiveRegressor(Weighted(second)).fit_statistics(statistics)
    with pytest.raises(ValueError, match="other settings"):
        statistics.merge(RowStatistics.of(X, y, adaptivity=Weighted(second), **LINEAR))
