"""Cross-validation of adaptive linear models: an exhaustive search with the stated program, folds, ties, bad grids."""

import numpy as np
import pytest

from admiss import AdaptiveClassifier, AdaptiveClassifierCV, AdaptiveRegressor, AdaptiveRegressorCV
from admiss.adaptivity import Affine, FullyAdaptive, Polynomial
from admiss.datasets import make_synthetic
from admiss.estimator.cross_validation import FoldedRows, make_folds, pattern_strata, sample_rows
from admiss.linear.design import DesignOptions
from admiss.linear.folds import ClassFolds, GridOptions
from admiss.linear.grid_paths import best_cell, grid_tasks, joined, path_cells, tasks_without_a_fit
from admiss.terminal.table import Table

SMALL_GRID = {"l1_ratios": [0.3, 1.0], "n_lambdas": 6, "adaptive_penalties": [1.0, 5.0], "cv": 3, "random_state": 0}


@pytest.mark.parametrize("task", ["regression", "classification", "three classes"])
def test_same_cell_as_an_exhaustive_search_with_cvxpy(task, make_rows):
    """Every cell of the grid fitted by the stated program on every fold; classes that learn from the rows included."""
    X, y = make_rows(n=90, d=3)
    classes = [Affine(), FullyAdaptive()]
    regression = task == "regression"
    if not regression:
        y = y + np.random.default_rng(0).normal(size=90)
        y = np.digitize(y, [2.5] if task == "classification" else [1.0, 3.5])
    grid = {"l1_ratios": [0.3, 1.0], "adaptive_penalties": [1.0, 5.0]}
    if task == "three classes":
        grid = {"l1_ratios": [0.3], "adaptive_penalties": [1.0]}
    cells = 2 * len(grid["l1_ratios"]) * len(grid["adaptive_penalties"]) * 3
    estimator = AdaptiveRegressorCV if regression else AdaptiveClassifierCV
    search = estimator(classes, n_lambdas=3, eps=0.03, cv=2, random_state=0, **grid).fit(X, y)
    single = AdaptiveRegressor if regression else AdaptiveClassifier
    folds = make_folds(X, y, None if regression else y, np.ones(90), 2, 0)
    results = search.cv_results_
    assert results.n_rows == cells
    losses = []
    for row in range(results.n_rows):
        params = {name: float(results[name][row]) for name in ("lam", "l1_ratio", "adaptive_penalty")}
        total = 0.0
        for train, test in folds:
            model = single(classes[results["class_index"][row]], solver="cvxpy", **params).fit(X[train], y[train])
            if regression:
                total += np.sum((y[test] - model.predict(X[test])) ** 2)
            else:
                z = np.atleast_2d(model.decision_function(X[test]).T)
                labels = model.classes_ if len(model.classes_) > 2 else model.classes_[1:]
                for label, scores in zip(labels, z, strict=True):
                    total += np.sum(np.logaddexp(0, -np.where(y[test] == label, 1, -1) * scores))
        losses.append(total / 90)
    np.testing.assert_allclose(results["mean_loss"], losses, rtol=1e-6 if regression else 1e-4)
    assert losses[search.best_index_] == pytest.approx(min(losses), rel=1e-9 if regression else 1e-4)
    assert search.best_score_ == pytest.approx(-min(losses), rel=1e-4)
    refit = single(**search.best_params_).fit(X, y)
    np.testing.assert_allclose(search.best_estimator_.coefficients_, refit.coefficients_)


def test_stopping_early_leaves_the_choice(make_rows):
    X, y = make_rows(n=60, d=4)
    y = y + 5 * np.random.default_rng(1).normal(size=60)
    grid = {**SMALL_GRID, "n_lambdas": 60, "adaptivity": "polynomial"}
    whole, early = AdaptiveRegressorCV(**grid).fit(X, y), AdaptiveRegressorCV(**grid, stop_early=True).fit(X, y)
    left_out = np.isnan(early.cv_results_["mean_loss"])
    assert left_out.any()
    np.testing.assert_allclose(
        early.cv_results_["mean_loss"][~left_out], whole.cv_results_["mean_loss"][~left_out], rtol=1e-8
    )
    assert whole.best_index_ == early.best_index_


def test_ties_go_to_the_simpler_model():
    table = Table(
        columns=[9, 5, 5, 5, 5],
        adaptive_penalty=[1.0, 1.0, 2.0, 2.0, 2.0],
        l1_ratio=[1.0, 0.5, 0.5, 1.0, 1.0],
        lam=[9.0, 3.0, 3.0, 3.0, 2.0],
        mean_loss=[1.0, 1.0, 1.0 + 1e-12, 1.0, 1.0],
    )
    assert best_cell(table) == 3


def test_folds_keep_patterns_and_classes_together():
    rng = np.random.default_rng(0)
    M = rng.uniform(size=(300, 2)) < 0.3
    M = np.column_stack([M, rng.uniform(size=(300, 4)) < 0.02])
    labels = (rng.uniform(size=300) < 0.2).astype(int)
    X = np.where(M, np.nan, 1.0)
    for classes in (None, labels):
        strata = pattern_strata(M, classes, 5)
        assert np.bincount(strata)[np.unique(strata)].min() >= 5
        folds = make_folds(X, labels, classes, np.ones(300), 5, 0)
        assert sorted(np.concatenate([test for _, test in folds])) == list(range(300))
        common = ~M[:, 2:].any(axis=1) & ~M[:, 0] & ~M[:, 1]
        shares = [common[test].mean() for _, test in folds]
        assert np.ptp(shares) < 0.05
        if classes is not None:
            assert np.ptp([labels[test].mean() for _, test in folds]) < 0.05


@pytest.mark.parametrize("estimator", [AdaptiveRegressorCV, AdaptiveClassifierCV])
def test_columns_that_vanish_in_a_fold(estimator, make_rows):
    """A feature that is missing only in two rows, and one that is 0 but for two rows."""
    X, y = make_rows(n=60)
    y = y if estimator is AdaptiveRegressorCV else y > 2
    rare = np.where(np.arange(60) < 2, np.nan, np.linspace(-1, 1, 60))
    X = np.column_stack([X, rare, np.where(np.arange(60) < 2, 1.0, 0.0)])
    folds = [(np.arange(2, 60), np.arange(2)), (np.arange(40), np.arange(40, 60))]
    model = estimator(["affine", "polynomial"], **{**SMALL_GRID, "cv": folds})
    with np.errstate(all="raise"):
        model.fit(X, y)
    assert np.isfinite(model.cv_results_["mean_loss"]).all()
    assert model.certificate_.status == "optimal"


@pytest.mark.parametrize("estimator", [AdaptiveRegressorCV, AdaptiveClassifierCV])
@pytest.mark.parametrize("size", [1e-320, 1e-200])
def test_a_column_of_traces_in_a_fold(estimator, size, make_rows):
    """Next to the value in the other fold they are 0; those below the normal numbers cannot even be a divisor."""
    X, y = make_rows(n=60)
    y = y if estimator is AdaptiveRegressorCV else y > 2
    X[:, 0] = np.where(np.arange(60) == 0, 1.5, size * np.random.default_rng(0).normal(size=60))
    folds = [(np.arange(30), np.arange(30, 60)), (np.arange(30, 60), np.arange(30))]
    model = estimator(["affine_intercept", "affine"], **{**SMALL_GRID, "cv": folds})
    with np.errstate(all="raise", under="ignore"):
        model.fit(X, y)
    zero = estimator(["affine_intercept", "affine"], **{**SMALL_GRID, "cv": folds})
    zero.fit(np.where(np.abs(X) < 1e-100, 0.0, X), y)
    np.testing.assert_allclose(model.cv_results_["mean_loss"], zero.cv_results_["mean_loss"], rtol=1e-9)


@pytest.mark.parametrize("kind", ["bootstrap", "overlap", "weights"])
def test_folds_that_are_no_complements(kind, make_rows):
    """Against refits on the very rows of the folds."""
    X, y = make_rows(n=60)
    rng, s = np.random.default_rng(0), np.ones(60)
    folds = {
        "bootstrap": [(rng.integers(0, 40, size=40), np.arange(40, 60))],
        "overlap": [(np.arange(40), np.arange(20, 40))],
        "weights": [(np.arange(30), np.arange(30, 60)), (np.arange(20, 60), np.arange(20))],
    }[kind]
    if kind == "weights":
        s[:10] = 0.0
    search = AdaptiveRegressorCV("affine_intercept", l1_ratios=[0.5], adaptive_penalties=[1.0], n_lambdas=5, cv=folds)
    search.fit(X, y, sample_weight=s)
    for lam, found in zip(search.cv_results_["lam"], search.cv_results_["mean_loss"], strict=True):
        total = 0.0
        for train, test in folds:
            model = AdaptiveRegressor(lam=lam, l1_ratio=0.5).fit(X[train], y[train], sample_weight=s[train])
            total += s[test] @ (y[test] - model.predict(X[test])) ** 2
        assert found == pytest.approx(total / sum(s[test].sum() for _, test in folds), rel=1e-7)


def test_cells_without_a_best_fit_cannot_win():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    y = X[:, 0] + rng.normal(size=80) > 0
    X[y & (rng.uniform(size=80) < 0.4), 0] = np.nan  # a missing value implies the class
    grid = {"adaptivity": "affine_intercept", "l1_ratios": [0.5], "n_lambdas": 5, "random_state": 0}
    search = AdaptiveClassifierCV(adaptive_penalties=[0.0, 1.0], **grid).fit(X, y)
    assert search.best_params_["adaptive_penalty"] == 1.0
    assert np.isinf(search.cv_results_["mean_loss"]).sum() == 5
    with pytest.raises(ValueError, match="linearly separable"):
        AdaptiveClassifierCV(adaptive_penalties=[0.0], **grid).fit(X, y)


def test_units_do_not_matter_without_scaling(make_rows):
    X, y = make_rows(n=200)
    units = np.array([1.0, 1e6, 1e-3])
    model = AdaptiveClassifierCV("static", scale=False, l1_ratios=[0.0], eps=1e-12, n_lambdas=30, random_state=0)
    model.fit(np.nan_to_num(X) * units, y > 2)
    refit = AdaptiveClassifier("static", scale=False, l1_ratio=0.0, lam=model.best_params_["lam"], solver="cvxpy")
    refit.fit(np.nan_to_num(X) * units, y > 2)
    assert model.cv_results_["violation"].max() < 1e-5
    np.testing.assert_allclose(
        model.predict_proba(np.nan_to_num(X) * units), refit.predict_proba(np.nan_to_num(X) * units), atol=1e-4
    )


def test_a_constant_target_has_no_weights(make_rows):
    X, _ = make_rows()
    for value in (3.0, 0.1, 1e6 + 0.1):
        model = AdaptiveRegressorCV(random_state=0, n_lambdas=5).fit(X, np.full(len(X), value))
        assert not model.coef_at([0, 0, 0]).any()
        assert model.certificate_.status == "optimal"
        assert model.best_params_["lam"] == model.cv_results_["lam"].max()


def test_classes_with_few_rows(make_rows):
    X, _ = make_rows(n=12)
    model = AdaptiveClassifierCV("static", n_lambdas=5, cv=3, random_state=0).fit(X, np.arange(12) % 6)
    assert model.predict_proba(X).shape == (12, 6)
    for bad in ([(np.arange(6), np.array([], dtype=int))], [(np.array([], dtype=int), np.arange(6))]):
        with pytest.raises(ValueError, match="Fold 1 of cv has no rows"):
            AdaptiveRegressorCV(cv=bad).fit(X, np.arange(12.0))


@pytest.mark.parametrize(
    ("bad", "sentence"),
    [
        ({"adaptivity": []}, "adaptivity is empty"),
        ({"adaptivity": ["afine"]}, "Unknown adaptivity"),
        ({"l1_ratios": [2.0]}, "l1_ratios"),
        ({"eps": 2}, "eps"),
        ({"cv": 1}, "cv must be between 2 and"),
        ({"cv": []}, "cv has no folds"),
        ({"adaptivity": Polynomial(5, max_columns=10**6)}, "columns"),
    ],
)
def test_bad_grids(bad, sentence):
    rng = np.random.default_rng(0)
    X = np.where(rng.uniform(size=(300, 13)) < 0.5, np.nan, rng.normal(size=(300, 13)))
    model = AdaptiveRegressorCV(**bad)
    with pytest.raises(ValueError, match=sentence):
        model.fit(X, np.arange(300.0))
    assert not hasattr(model, "best_estimator_")


def test_a_class_with_structure_is_sent_to_grid_search(make_rows):
    class Structured(Affine):
        def structure(self, W):
            return 0.0, []

    X, y = make_rows()
    with pytest.raises(ValueError, match="search over its parameters with scikit-learn's GridSearchCV"):
        AdaptiveRegressorCV(Structured()).fit(X, y)


def test_imputed_values_are_those_of_the_selected_model(make_rows):
    model = AdaptiveRegressorCV("affine_intercept", **SMALL_GRID).fit(*make_rows())
    np.testing.assert_array_equal(model.imputation_, model.best_estimator_.imputation_)


def _many_rows(n):
    data = make_synthetic(n=n, d=5, random_state=3)
    return data.X_train, np.digitize(data.y_train, np.quantile(data.y_train, [0.5, 0.995]))


def test_a_sample_keeps_every_label_its_weight_and_the_folds():
    X, labels = _many_rows(4000)
    X[:, 0] = np.arange(4000)
    s = np.random.default_rng(0).uniform(0.5, 2.0, 4000)
    targets = [np.where(labels == c, 1.0, -1.0) for c in range(3)]
    splits = make_folds(X, labels, labels, s, 4, 0)
    rows = FoldedRows(X, targets, s, splits, list("abcde"), [s * (1 + f) for f in range(4)])
    sample = sample_rows(rows, 600, 7)
    again = sample_rows(rows, 600, 7)
    np.testing.assert_array_equal(sample.X, again.X)
    assert 600 <= len(sample.X) <= 700
    sizes = [int((target > 0).sum()) for target in sample.targets]
    assert sizes[2] == (labels == 2).sum() == 20
    assert abs(sizes[0] - 300) <= 1
    for target, own in zip(targets, sample.targets, strict=True):
        assert sample.s[own > 0].sum() == pytest.approx(s[target > 0].sum())
    shares = [np.isnan(part).mean(axis=0) for part in (X, sample.X)]
    np.testing.assert_allclose(*shares, atol=0.02)
    # each row keeps its fold and its weight there
    original = sample.X[:, 0].astype(int)
    for f, (train, test) in enumerate(sample.splits):
        assert set(original[test]) <= set(splits[f][1])
        assert set(original[train]) <= set(splits[f][0])
        np.testing.assert_allclose(sample.fold_weights[f], sample.s * (1 + f))


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_lambda_is_selected_on_all_rows_and_the_rest_on_a_sample(n_jobs):
    X, labels = _many_rows(900)
    grid = {"adaptivity": ["static", "affine_intercept"], "l1_ratios": [0.2, 1.0], "adaptive_penalties": [1.0, 4.0]}
    grid |= {"n_lambdas": 10, "cv": 3, "random_state": 0, "n_jobs": n_jobs}
    search = AdaptiveClassifierCV(search_rows=300, **grid).fit(X, labels)
    assert search.sample_results_.n_rows == 80
    assert search.cv_results_.n_rows == 20
    assert set(search.classes_) == {0, 1, 2}
    for k in range(2):
        cells = search.cv_results_["class_index"] == k
        tried = search.sample_results_["class_index"] == k
        least = search.sample_results_["mean_loss"][tried].min()
        for name in ("l1_ratio", "adaptive_penalty"):
            (value,) = set(search.cv_results_[name][cells])
            tried &= search.sample_results_[name] == value
        assert search.sample_results_["mean_loss"][tried].min() == pytest.approx(least, rel=1e-9)
    selected = {name: [search.best_params_[name]] for name in ("adaptivity", "l1_ratio", "adaptive_penalty")}
    names = {"adaptivity": "adaptivity", "l1_ratio": "l1_ratios", "adaptive_penalty": "adaptive_penalties"}
    alone = AdaptiveClassifierCV(search_rows=None, **grid | {names[key]: value for key, value in selected.items()})
    alone.fit(X, labels)
    assert alone.sample_results_ is None
    assert alone.best_params_ == search.best_params_
    assert alone.best_score_ == pytest.approx(search.best_score_, rel=1e-9)
    serial = AdaptiveClassifierCV(search_rows=300, **grid | {"n_jobs": None}).fit(X, labels)
    np.testing.assert_array_equal(serial.cv_results_["mean_loss"], search.cv_results_["mean_loss"])


def test_without_more_rows_than_a_sample_all_are_searched():
    X, labels = _many_rows(200)
    grid = {"adaptivity": "static", "n_lambdas": 5, "cv": 3, "random_state": 0}
    search = AdaptiveClassifierCV(search_rows=200, **grid).fit(X, labels)
    assert search.sample_results_ is None
    assert search.cv_results_.n_rows == 3 * 3 * 5
    for bad in (0, 2.5, True, "all"):
        with pytest.raises(ValueError, match="search_rows must be a positive integer or None"):
            AdaptiveClassifierCV(search_rows=bad, **grid).fit(X, labels)
    # folds that the sample does not reach
    folds = [(np.arange(199), np.array([199]))]
    few = AdaptiveClassifierCV(**grid | {"cv": folds}, search_rows=20).fit(X, labels)
    assert np.isfinite(few.best_score_)


@pytest.mark.parametrize("stop_early", [False, True])
def test_what_is_solved_again_begins_with_its_path(stop_early, monkeypatch):
    """Losses with two minima: solved exactly, a lambda behind a peak is the best."""
    lambdas = np.geomspace(1.0, 1e-4, 40)

    def path(penalty, alpha, some, state, tolerance):
        done = 0 if state is None else state
        loss = np.where(np.arange(40) == 5, 1.000003, 1.5) if alpha == 1.0 else np.full(40, 2.0)
        if alpha < 1.0:
            loss[[9, 10, 29]] = 1.000008, 1.05, 1.000005 if tolerance > 1e-9 else 0.99
        part = slice(done, done + len(some))
        np.testing.assert_array_equal(some, lambdas[part])
        return loss[part], np.zeros(len(some)), done + len(some)

    folds = ClassFolds("x", 3, {(0, alpha): lambdas for alpha in (0.5, 1.0)}, [path], 1.0, False)
    chosen = []
    for tolerance in (5e-6, 1e-10):
        monkeypatch.setattr("admiss.linear.grid_paths.PATH_TOLERANCE", tolerance)
        options = GridOptions([0.5, 1.0], [1.0], 40, 1e-4, "count", DesignOptions(), stop_early)
        cells = joined(path_cells([folds], grid_tasks(1, options), options, 1))
        chosen.append((cells["l1_ratio"][best_cell(cells)], cells["lam"][best_cell(cells)]))
    assert chosen[0] == chosen[1]


@pytest.mark.slow
def test_classifiers_choose_as_if_all_paths_were_exact(monkeypatch):
    """On 50 problems the choice, its loss included, equals that of a search whose paths are all solved to 1e-10."""
    grid = {"l1_ratios": [0.2, 0.5, 1.0], "adaptive_penalties": [1.0, 4.0, 12.0], "n_lambdas": 40, "cv": 3}
    for seed in range(50):
        data = make_synthetic(n=(60, 120)[seed % 2], d=(5, 7)[seed // 2 % 2], random_state=seed)
        X, y = data.X_train, data.y_train > np.median(data.y_train)
        search = AdaptiveClassifierCV(["affine_intercept", "affine"], random_state=seed, **grid)
        found = search.fit(X, y)
        chosen = found.best_index_, found.best_score_
        with monkeypatch.context() as patch:
            patch.setattr("admiss.linear.grid_paths.PATH_TOLERANCE", 1e-10)
            exact = search.fit(X, y)
        assert chosen == (exact.best_index_, exact.best_score_), seed


def test_classes_without_a_fit_on_the_best_paths_of_a_sample_follow_their_others():
    tasks = [(k, c, alpha) for k in range(2) for c in range(2) for alpha in (0.0, 1.0)]
    parts = [{"class_index": 0, "mean_loss": np.full(3, np.inf)}, {"class_index": 1, "mean_loss": np.ones(3)}]
    followed = [(0, 0, 1.0), (1, 1, 0.0)]
    others = tasks_without_a_fit(followed, parts, tasks)
    assert others == [(0, 0, 0.0), (0, 1, 0.0), (0, 1, 1.0)]


def test_folds_that_lose_a_label_are_left_out_of_a_sample():
    n = 4000
    y = np.where(np.arange(n) % 2, 1.0, -1.0)
    y[:1000] = -1.0
    y[500] = 1.0
    splits = [(np.arange(1000), np.arange(1000, 2000)), (np.arange(3000), np.arange(3000, n))]
    rows = FoldedRows(np.zeros((n, 1)), [y], np.ones(n), splits, ["x"], [np.ones(n), np.ones(n)])
    seeds = [sample_rows(rows, 40, seed) for seed in range(20)]
    for sample in seeds:
        for train, _ in sample.splits:
            assert set(sample.targets[0][train]) == {-1.0, 1.0}
    assert {len(sample.splits) for sample in seeds} == {1}
