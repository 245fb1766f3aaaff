from collections import Counter
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linear_sum_assignment

from admiss.datasets.paper import forest_imputation
from admiss.datasets.paper.dataset import Dataset, Origin
from admiss.datasets.paper.forest_imputation import ForestSize, full_matrix
from admiss.datasets.paper.semi_synthetic import semi_synthetic

CAN_BE_MISSING = [0, 2, 4, 6, 8]


@pytest.fixture(autouse=True, scope="module")
def cache(tmp_path_factory):
    """A cache for these tests; small forests fill it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(forest_imputation, "forest_size", lambda n, d, *_: ForestSize(5, 2, n))
        folder = tmp_path_factory.mktemp("cache")
        patch.setenv("ADMISS_CACHE", str(folder))
        yield folder


def numbers(n=300, d=12, seed=0, units=True):
    """Features in different units, of which every second of the first ten can be missing, and the full matrix."""
    rng = np.random.RandomState(seed)
    full = rng.normal(size=(n, d)) @ rng.normal(size=(d, d))
    if units:
        full = 10.0 ** np.arange(d - 6, -6, -1) * (full + 3.0)
    M = np.zeros((n, d), dtype=bool)
    M[:, CAN_BE_MISSING] = rng.uniform(size=(n, len(CAN_BE_MISSING))) < 0.3
    return np.where(M, np.nan, full), full


def with_category(n=80, seed=0):
    """A number and a category of three levels that can be missing, a category and a number that cannot."""
    rng = np.random.RandomState(seed)
    level = rng.randint(4, size=n)  # the last is missing
    age = np.where(rng.uniform(size=n) < 0.3, np.nan, 40 + 10 * rng.normal(size=n))
    X = np.column_stack([age, np.eye(4)[level], np.eye(2)[rng.randint(2, size=n)], rng.normal(size=n)])
    kinds = [("age", "number", None), *(("size", "level", name) for name in "SML"), ("size", "missing", None)]
    kinds += [("sex", "level", "f"), ("sex", "level", "m"), ("weight", "number", None)]
    return Dataset("people", X, tuple(Origin(*kind) for kind in kinds), np.arange(n), "regression", "y")


def whole(data):
    """Training and test rows together, sorted by the columns of the full matrix."""
    pairs = [("X_train", "X_test"), ("X_full_train", "X_full_test"), ("signal_train", "signal_test")]
    X, full, f, y = (np.concatenate([getattr(data, a), getattr(data, b)]) for a, b in [*pairs, ("y_train", "y_test")])
    order = np.lexsort(full.T)
    return X[order], full[order], f[order], y[order]


def standardise(full):
    return (full - full.mean(axis=0)) / full.std(axis=0)


def weights_of(f, *blocks):
    """Least-squares weights of a signal without noise, and its largest residual."""
    A = np.column_stack([np.ones(len(f)), *blocks])
    w = np.linalg.lstsq(A, f, rcond=None)[0]
    return w[1:], np.abs(A @ w - f).max()


@pytest.mark.parametrize("design", ["mar", "am"])
@pytest.mark.parametrize("k_missing", [0, 1, 4, 5, None])
def test_the_signal_is_one_of_k_features_of_which_k_missing_can_be_missing(design, k_missing):
    X, full = numbers()
    data = semi_synthetic(X, design, k=6, k_missing=k_missing, random_state=1, X_full=full)
    _, rows, f, _ = whole(data)
    w, residual = weights_of(f, standardise(rows))
    assert residual < 1e-9
    used = np.flatnonzero(np.abs(w) > 1e-7)
    np.testing.assert_array_equal(used, data.active)
    assert len(used) == 6
    assert len(set(used) & set(CAN_BE_MISSING)) == (5 if k_missing is None else k_missing)
    assert np.abs(w).max() <= 1 + 1e-9
    assert data.active_indicators.size == 0


def test_nmar_uses_the_indicators_of_its_missing_features():
    X, full = numbers()
    data = semi_synthetic(X, "nmar", k=6, k_missing=3, random_state=1, X_full=full)
    seen, rows, f, _ = whole(data)
    M, Z = np.isnan(seen).astype(float), standardise(rows)
    assert weights_of(f, Z)[1] > 0.01
    w, residual = weights_of(f, Z, M[:, CAN_BE_MISSING])
    assert residual < 1e-9
    np.testing.assert_array_equal(np.flatnonzero(np.abs(w[:12]) > 1e-7), data.active)
    indicators = np.array(CAN_BE_MISSING)[np.abs(w[12:]) > 1e-7]
    np.testing.assert_array_equal(indicators, data.active_indicators)
    np.testing.assert_array_equal(indicators, np.intersect1d(data.active, CAN_BE_MISSING))


@pytest.mark.parametrize("signal", ["linear", "nn", "tree"])
def test_missingness_matters_under_nmar_only(signal):
    X, full = numbers()
    M = np.isnan(X)[::-1]  # other rows, the same columns
    other = np.where(M, np.nan, full)
    for design in ("mar", "nmar", "am"):
        first, second = (whole(semi_synthetic(A, design, signal, random_state=3, X_full=full))[2] for A in (X, other))
        assert np.array_equal(first, second) == (design != "nmar")


def test_the_adversary_hides_the_largest_values_and_leaves_the_target():
    X, full = numbers(n=120)
    mar, am = (semi_synthetic(X, design, random_state=5, X_full=full) for design in ("mar", "am"))
    for name in ("y_train", "y_test", "signal_train", "X_full_train", "X_full_test", "active"):
        np.testing.assert_array_equal(getattr(mar, name), getattr(am, name))
    (before, rows, _, _), (after, _, _, _) = whole(mar), whole(am)
    M, moved, Z = np.isnan(before), np.isnan(after), standardise(rows)
    assert Counter(map(tuple, M.tolist())) == Counter(map(tuple, moved.tolist()))
    np.testing.assert_array_equal(after[~moved], rows[~moved])
    gain = Z @ M.T.astype(float)  # of row i with the pattern of row k
    best = gain[linear_sum_assignment(gain, maximize=True)].sum()
    assert Z[moved].sum() == pytest.approx(best, rel=1e-9)
    assert best > Z[M].sum() + 10
    # Hidden values are high relative to their own feature, whatever its unit.
    assert all(Z[moved[:, j], j].mean() > 0.1 for j in CAN_BE_MISSING)


def test_the_noise_has_the_ratio_and_the_ceiling():
    X, full = numbers(n=8000)
    for signal in ("linear", "nn", "tree"):
        data = semi_synthetic(X, "nmar", signal, snr=3.0, random_state=2, X_full=full)
        _, _, f, y = whole(data)
        # The variance of 8,000 normal draws has a relative standard error of sqrt(2 / 8000) = .016.
        assert f.var() / (y - f).var() == pytest.approx(3.0, rel=5 * 0.016)
        assert data.ceiling == 0.75
        assert 1 - (y - f).var() / y.var() == pytest.approx(0.75, abs=0.03)


def test_rows_are_split_at_random_and_all_used():
    X, full = numbers(n=101)
    names = [f"v{j}" for j in range(12)]
    data = semi_synthetic(pd.DataFrame(X, columns=names), random_state=0, X_full=full)
    assert len(data.X_test) == len(data.y_test) == len(data.signal_test) == 30
    assert len(data.X_train) == len(data.y_train) == len(data.X_full_train) == 71
    seen, rows, _, _ = whole(data)
    order = np.lexsort(full.T)
    np.testing.assert_array_equal(rows, full[order])
    np.testing.assert_array_equal(seen, X[order])
    assert not np.array_equal(data.X_full_test, full[:30])
    assert data.feature_names == names


def test_the_same_seed_gives_the_same_data():
    X, full = numbers(n=100)
    for design in ("mar", "nmar", "am"):
        first, second, third = (
            semi_synthetic(X, design, "nn", random_state=seed, X_full=full) for seed in (4, np.random.RandomState(4), 5)
        )
        np.testing.assert_array_equal(first.X_train, second.X_train)
        np.testing.assert_array_equal(first.y_test, second.y_test)
        assert not np.array_equal(first.y_test, third.y_test)
        assert not np.array_equal(first.X_full_test, third.X_full_test)


@pytest.mark.parametrize("design", ["mar", "nmar", "am"])
def test_categories_are_missing_together(design, monkeypatch):
    dataset = with_category()
    monkeypatch.setattr("admiss.datasets.paper.semi_synthetic.load_dataset", lambda name: {"people": dataset}[name])
    np.random.seed(0)
    state = np.random.get_state()[1].copy()
    data = semi_synthetic("people", design, k=6, k_missing=3, random_state=0)
    np.testing.assert_array_equal(np.random.get_state()[1], state)
    assert data.feature_names == ["age", "size=S", "size=M", "size=L", "sex=f", "sex=m", "weight"]
    assert (data.active < 4).sum() == 3
    seen, rows, _, _ = whole(data)
    M = np.isnan(seen)
    assert M[:, 1].any()
    np.testing.assert_array_equal(M[:, 1:4], M[:, [1, 1, 1]])
    assert not M[:, 4:].any()
    assert M.sum() == dataset.M.sum()
    np.testing.assert_array_equal(rows[:, 1:4].sum(axis=1), 1)
    if design != "am":
        order = np.lexsort(full_matrix(dataset).T)
        np.testing.assert_array_equal(M, dataset.M[order])
        np.testing.assert_array_equal(rows, full_matrix(dataset)[order])


def test_all_instances_share_one_full_matrix(cache):
    X = with_category(seed=1)
    matrices = [
        whole(semi_synthetic(X, design, signal, random_state=seed))[1]
        for seed, (design, signal) in enumerate([("mar", "linear"), ("nmar", "tree"), ("am", "nn")])
    ]
    for matrix in matrices:
        np.testing.assert_array_equal(matrix, matrices[0])
    before = len(list((cache / "imputed").iterdir()))
    semi_synthetic(replace(X, name="other", y=None), random_state=9)
    assert len(list((cache / "imputed").iterdir())) == before


def test_few_features_and_constant_ones():
    X, full = numbers(d=9)
    full[:, [0, 1]] = 7.0
    X = np.where(np.isnan(X), np.nan, full)
    data = semi_synthetic(X, "nmar", random_state=0, X_full=full)
    np.testing.assert_array_equal(data.active, np.arange(2, 9))
    np.testing.assert_array_equal(data.active_indicators, [2, 4, 6, 8])
    complete = semi_synthetic(full, "am", random_state=0)
    assert not np.isnan(complete.X_train).any()
    assert complete.active_indicators.size == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"design": "mcar"}, "Unknown design 'mcar': choose one of 'mar', 'nmar', 'am'"),
        ({"signal": "cubic"}, "Unknown signal"),
        ({"snr": 0.0}, "snr must be"),
        ({"k": 0}, "k must be a positive integer, not 0"),
        ({"k": 6, "k_missing": 6}, "k_missing must be a whole number from 0 to 5, not 6"),
        ({"k": 10, "k_missing": 2}, "from 3 to 5, not 2"),
        ({"k": 10, "k_missing": 3.5}, "from 3 to 5, not 3.5"),
        ({"test_fraction": 0.0}, "test_fraction must be"),
        ({"test_fraction": 0.001}, "leave training and test rows"),
        ({"X_full": np.zeros((300, 12))}, "X_full must be"),
        ({"X_full": np.zeros((3, 12))}, "X_full must be"),
        ({"dataset": [["a", "b"]]}, "number"),
        ({"dataset": [1.0, 2.0]}, "Expected 2D array"),
        ({"dataset": [[1.0, np.inf], [2.0, 3.0]]}, "infinity"),
        ({"dataset": [[1.0, np.nan], [2.0, np.nan]]}, "no observed value"),
        ({"dataset": np.ones((20, 2)), "X_full": None}, "Every feature is constant"),
    ],
)
def test_bad_arguments_are_refused_before_any_work(options, message, monkeypatch):
    forbidden = "admiss.datasets.paper.semi_synthetic.full_matrix"
    monkeypatch.setattr(forbidden, lambda dataset: pytest.fail("work was done"))
    X, full = numbers()
    arguments = {"dataset": X, "X_full": full, "random_state": 0} | options
    with pytest.raises(ValueError, match=message):
        semi_synthetic(**arguments)


def test_patterns_are_reallocated_once(cache, monkeypatch):
    X, full = numbers()
    first = semi_synthetic(X, "am", random_state=0, X_full=full)
    monkeypatch.setattr(
        "admiss.datasets.paper.semi_synthetic.reallocated", lambda *_: pytest.fail("it was computed again")
    )
    second = semi_synthetic(X, "am", "nn", random_state=0, X_full=full)
    assert np.isnan(first.X_train).sum() + np.isnan(first.X_test).sum() == np.isnan(X).sum()
    assert np.isnan(second.X_train).sum() + np.isnan(second.X_test).sum() == np.isnan(X).sum()


def test_the_authors_encoding_is_refused_with_advice():
    with pytest.raises(ValueError, match="load it as 'clean'"):
        semi_synthetic(replace(with_category(), encoding="authors"), random_state=0)
