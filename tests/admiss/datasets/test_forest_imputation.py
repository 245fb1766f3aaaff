import io
import sys

import numpy as np
import pytest
from sklearn import datasets
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

from admiss.datasets.paper import forest_imputation
from admiss.datasets.paper.dataset import Dataset, Origin
from admiss.datasets.paper.forest_imputation import forest_size, full_matrix, impute_forest

cached_module = sys.modules["admiss.datasets.paper.storage"]
QUICK = {"n_trees": 10, "max_iterations": 3}


def remove(X, fraction=0.2, seed=0):
    M = np.random.RandomState(seed).uniform(size=X.shape) < fraction
    return np.where(M, np.nan, X), M


def mixed_rows(n=200, seed=0):
    """Two numbers, a category of three levels derived from them, and a number that is never missing."""
    rng = np.random.RandomState(seed)
    x = rng.normal(size=(n, 2))
    level = (x[:, 0] > 0).astype(int) + (x[:, 1] > 0)
    full = np.column_stack([x, np.eye(3)[level], x @ [1.0, 2.0] + 5.0])
    X = full.copy()
    X[rng.uniform(size=n) < 0.3, 0] = np.nan
    X[rng.uniform(size=n) < 0.1, 1] = np.nan
    X[rng.uniform(size=n) < 0.2, 2:5] = np.nan
    return X, full, ["a", "b", "c", "c", "c", "d"]


# The five complete data sets of scikit-learn with more than a hundred rows, cut to save time. With all rows and columns
# and 100 trees the ratios of the errors are .35 to .74.
@pytest.mark.parametrize("load", ["iris", "wine", "diabetes", "breast_cancer", "digits"])
def test_errors_are_well_below_those_of_the_mean(load):
    X = getattr(datasets, f"load_{load}")().data[:200]
    X = X[:, X.std(axis=0) > 0][:, :20]
    observed, M = remove(X)

    def error(filled):
        squares = np.where(M, (filled - X) / X.std(axis=0), 0.0) ** 2
        return np.sqrt(squares.sum(axis=0) / M.sum(axis=0)).mean()

    assert error(impute_forest(observed, **QUICK)) < 0.8 * error(np.nanmean(observed, axis=0))


def test_categories_are_predicted_as_levels():
    X, full, variables = mixed_rows(400)
    filled = impute_forest(X, variables, **QUICK)
    missing = np.isnan(X[:, 2])
    np.testing.assert_array_equal(np.unique(filled[:, 2:5], axis=0), np.eye(3)[::-1])
    right = (filled[missing, 2:5] == full[missing, 2:5]).all(axis=1).mean()
    usual = full[~missing, 2:5].sum(axis=0).argmax()
    assert right > 0.7 > 0.6 > full[missing, 2 + usual].mean()


def two_sides():
    """Averages of values that are all at an end of the range, which rounding can put beyond it."""
    rng = np.random.RandomState(0)
    side = rng.randint(2, size=(60, 1))
    values = rng.uniform(size=(2, 30))
    return remove(np.where(side == 1, values.max(axis=0), values.min(axis=0)), 0.1)[0]


@pytest.mark.parametrize(("X", "variables"), [(mixed_rows()[0], mixed_rows()[2]), (two_sides(), None)])
def test_observed_values_are_unchanged_and_bound_the_imputed_ones(X, variables):
    before = X.copy()
    filled = impute_forest(X, variables, n_trees=3)
    M = np.isnan(X)
    np.testing.assert_array_equal(X.view(np.int64), before.view(np.int64))
    np.testing.assert_array_equal(filled[~M].view(np.int64), X[~M].view(np.int64))
    assert np.isfinite(filled).all()
    assert (filled >= np.nanmin(X, axis=0)).all()
    assert (filled <= np.nanmax(X, axis=0)).all()


def test_a_prediction_is_that_of_the_forest_of_scikit_learn():
    X, _, variables = mixed_rows()
    seed = np.random.RandomState(7).randint(np.iinfo(np.int32).max)
    full = impute_forest(X, variables, n_trees=3)
    for columns, forest in [
        ([0], RandomForestRegressor(10, max_features=2, min_samples_split=6, random_state=seed)),
        ([2, 3, 4], RandomForestClassifier(10, max_features=2, random_state=seed)),
    ]:
        Z = full.copy()
        Z[:, columns] = X[:, columns]
        variable = forest_imputation._incomplete(Z, np.array(columns))
        Z[variable.cells] = 0.5  # must not matter
        found = forest_imputation._predict(Z, variable, forest_size(*Z.shape, 10), np.random.RandomState(7), None)
        missing, others = np.isnan(X[:, columns[0]]), np.delete(full, columns, axis=1)
        if columns == [0]:
            expected = forest.fit(others[~missing], X[~missing, 0]).predict(others[missing])
            np.testing.assert_allclose(found[:, 0], expected)
            continue
        forest.fit(others[~missing], X[~missing, 2:5].argmax(axis=1))
        shares = np.sort(forest.predict_proba(others[missing]), axis=1)
        clear = shares[:, -1] > shares[:, -2] + 1e-9  # with equal shares either level may win
        assert clear.sum() > 20
        np.testing.assert_array_equal(found.argmax(axis=1)[clear], forest.predict(others[missing])[clear])


def test_variables_are_ordered_by_missing_values_and_see_imputed_ones(monkeypatch):
    X, _, variables = mixed_rows()
    seen = []

    def predict(Z, variable, *_):
        assert not np.isnan(Z).any()
        seen.append(variable.columns.tolist())
        return Z[variable.cells]

    monkeypatch.setattr(forest_imputation, "_predict", predict)
    impute_forest(X, variables, max_iterations=1)
    assert seen == [[1], [2, 3, 4], [0]]


@pytest.mark.parametrize(
    ("numbers", "levels", "max_iterations", "expected"),
    [
        ([1.0, 1.5, 3.0], None, 10, 1.5),  # changes 1, .25, 2.25: the iteration before the first increase
        ([1.0, 1.5, 1.6], None, 3, 1.6),  # still decreasing in the last iteration
        ([1.0, 1.0, 1.0], None, 10, 1.0),  # no change twice
        ([1.0, 2.5, 2.5, 4.5], [[1, 1], [1, 0], [1, 1], [0, 0]], 10, 2.5),  # both kinds increase in the fourth only
    ],
)
def test_iterations_end_at_the_first_increase(monkeypatch, numbers, levels, max_iterations, expected):
    X = np.column_stack([[np.nan, -1.0, 1.0, 1.0, -1.0], [0, 1, 1, 0, 0], [1, 0, 0, 1, 1], np.arange(5.0)])
    if levels:
        X[:2, 1:3] = np.nan
    state = {"number": iter(numbers), "level": iter(levels or [])}

    def predict(Z, variable, *_):
        if variable.levels is None:
            return np.array([[next(state["number"])]])
        return variable.levels[next(state["level"])]

    monkeypatch.setattr(forest_imputation, "_predict", predict)
    monkeypatch.setattr(forest_imputation.np, "clip", lambda values, *_: values)
    filled = impute_forest(X, ["x", "c", "c", "z"], max_iterations=max_iterations)
    assert filled[0, 0] == pytest.approx(expected)
    assert next(state["number"], None) is None


def test_any_number_of_threads_gives_the_same_bits():
    X, _, variables = mixed_rows()
    options = {"n_trees": 12, "max_iterations": 2}
    first = impute_forest(X, variables, **options, n_jobs=1)
    np.testing.assert_array_equal(first, impute_forest(X, variables, **options, n_jobs=3))
    assert not np.array_equal(first, impute_forest(X, variables, **options, random_state=1))


def test_units_do_not_matter():
    X, _ = remove(datasets.load_iris().data)
    scale = np.array([2.0**20, 2.0**-20, 1.0, 4.0])  # powers of two avoid rounding
    np.testing.assert_array_equal(impute_forest(X * scale, n_trees=3), impute_forest(X, n_trees=3) * scale)


def test_columns_with_nothing_to_learn():
    X = np.column_stack([[0.1, np.nan, 0.1, 0.1], [np.nan, np.nan, np.nan, 7.0], np.arange(4.0)])
    np.testing.assert_array_equal(impute_forest(X), np.column_stack([[0.1] * 4, [7.0] * 4, np.arange(4.0)]))
    np.testing.assert_array_equal(impute_forest([[1.0], [np.nan], [2.0]]), [[1.0], [1.5], [2.0]])
    one_level = [[1, 0, 5], [np.nan, np.nan, 6], [1, 0, 7]]
    np.testing.assert_array_equal(impute_forest(one_level, ["c", "c", "x"])[1], [1, 0, 6])
    full = np.arange(6.0).reshape(3, 2)
    np.testing.assert_array_equal(impute_forest(full), full)


@pytest.mark.parametrize(
    ("X", "variables", "options", "message"),
    [
        ([[1.0, np.nan], [2.0, np.nan]], None, {}, "Column 1 of X has no observed value"),
        ([[1.0, np.inf], [2.0, np.nan]], None, {}, "infinity"),
        ([1.0, np.nan], None, {}, "Expected 2D array"),
        (np.empty((0, 2)), None, {}, "0 sample"),
        ([[1.0, np.nan], [2.0, 1.0]], ["a"], {}, "one label for each of the 2 columns"),
        ([[1.0, np.nan], [0.0, 1.0]], ["c", "c"], {}, "missing together"),
        ([[1.0, 2.0], [0.0, 1.0]], ["c", "c"], {}, "missing together"),
        ([[1.0, 1.0], [0.0, 1.0]], ["c", "c"], {}, "at most one 1"),
        ([[1.0, np.nan], [2.0, 1.0]], None, {"n_trees": 0}, "n_trees must be a positive integer"),
        ([[1.0, np.nan], [2.0, 1.0]], None, {"max_iterations": 1.5}, "max_iterations must be"),
    ],
)
def test_invalid_input_is_refused(X, variables, options, message):
    with pytest.raises(ValueError, match=message):
        impute_forest(X, variables, **options)


def test_large_matrices_get_less_work():
    assert forest_size(8124, 117) == (100, 10, 8124)
    assert forest_size(58_788, 34) == (50, 5, 10_000)
    assert forest_size(10**6, 100) == (10, 5, 10_000)
    assert forest_size(58_788, 34, 7, 8, 9) == (7, 8, 9)


@pytest.fixture
def cached(monkeypatch, tmp_path):
    """A data set with a missing number and a missing category, and the folder of imputed values."""
    monkeypatch.setenv("ADMISS_CACHE", str(tmp_path / "cache"))
    X, _, _ = mixed_rows(60)
    missing = np.isnan(X[:, 2])
    columns = np.column_stack([X[:, :2], np.nan_to_num(X[:, 2:5]), missing, X[:, 5]])
    kinds = [("a", "number"), ("b", "number"), ("c", "level"), ("c", "level"), ("c", "level"), ("c", "missing")]
    origin = tuple(Origin(variable, kind, str(j)) for j, (variable, kind) in enumerate([*kinds, ("d", "number")]))
    return Dataset("rows", columns, origin, None, None, None), X, tmp_path / "cache" / "imputed"


def fail(*_, **__):
    raise AssertionError("computed again")


def test_a_full_matrix_is_computed_once(cached, monkeypatch):
    dataset, X, folder = cached
    first = full_matrix(dataset, n_trees=3)
    np.testing.assert_array_equal(first, impute_forest(X, ["a", "b", "c", "c", "c", "d"], n_trees=3))
    assert [file.suffix for file in folder.iterdir()] == [".npz"]
    full_matrix(dataset, n_trees=3)[:] = 0
    monkeypatch.setattr(forest_imputation, "impute_forest", fail)
    np.testing.assert_array_equal(full_matrix(dataset, n_trees=3), first)
    np.testing.assert_array_equal(full_matrix(dataset.without_missing_levels(), n_trees=3, n_jobs=2), first)
    changed = dataset.X.copy()
    changed[0, 6] += 1e-9
    others = [(dataset, {"n_trees": 4}), (dataset, {"n_trees": 3, "random_state": 1})]
    others += [(dataset, {"n_trees": 3, "max_rows": 10}), (dataset, {"n_trees": 3, "max_iterations": 2})]
    others += [(Dataset("rows", changed, dataset.origin, None, None, None), {"n_trees": 3})]
    for other, options in others:
        with pytest.raises(AssertionError, match="computed again"):
            full_matrix(other, **options)


def _archive(values):
    buffer = io.BytesIO()
    np.savez(buffer, values=values)
    return buffer.getvalue()


def test_a_damaged_file_is_never_accepted(cached):
    dataset, X, folder = cached
    first = full_matrix(dataset, n_trees=3)
    (file,) = folder.iterdir()
    whole, values = file.read_bytes(), first[np.isnan(X)]
    flipped = [whole[:k] + bytes([whole[k] ^ (1 << k % 8)]) + whole[k + 1 :] for k in range(0, len(whole), 3)]
    cut = [whole[:k] for k in range(0, len(whole), 17)]
    accepted = 0
    for damaged in [*flipped, *cut]:
        file.write_bytes(damaged)
        read = cached_module._read_result(file, values)
        if read is not None:  # the flipped bit is in a date or another field unrelated to the values
            accepted += 1
            np.testing.assert_array_equal(read, values)
    assert accepted < len(flipped) / 4
    for content in [b"", whole[: len(whole) // 2], _archive(values[1:])]:
        file.write_bytes(content)
        np.testing.assert_array_equal(full_matrix(dataset, n_trees=3), first)
        assert file.read_bytes() == whole
    np.savez(file, values=np.array([{"an": "object"}], dtype=object))
    np.testing.assert_array_equal(full_matrix(dataset, n_trees=3), first)


def test_a_cache_that_cannot_be_written_costs_only_the_cache(cached, monkeypatch, tmp_path):
    dataset, _, _ = cached
    first = full_matrix(dataset, n_trees=3)
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("ADMISS_CACHE", str(tmp_path / "file"))
    with pytest.warns(UserWarning, match="could not be stored"):
        np.testing.assert_array_equal(full_matrix(dataset, n_trees=3), first)


def test_nothing_missing_needs_no_cache(cached, monkeypatch):
    dataset, _, folder = cached
    monkeypatch.setattr(forest_imputation, "impute_forest", fail)
    X = np.arange(6.0).reshape(3, 2)
    complete = Dataset("complete", X, (Origin("a", "number"), Origin("b", "number")), None, None, None)
    np.testing.assert_array_equal(full_matrix(complete), X)
    assert not folder.exists()
    with pytest.raises(ValueError, match="whole number"):
        full_matrix(dataset, random_state=None)
