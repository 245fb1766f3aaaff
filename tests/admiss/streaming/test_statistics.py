"""Row statistics: sums that add up in any order, on one file, with folds that are the same everywhere."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from admiss.adaptivity import Adaptivity
from admiss.statistics.product_moments import ProductMoments
from admiss.statistics.saved import load_arrays, save_arrays
from admiss.streaming import HashFolds, RowStatistics
from formulations.arrays import FloatArray

LINEAR = {"tree_depth": None}


def rows(n: int = 400, d: int = 4, offset: float = 0.0, seed: int = 0) -> tuple[FloatArray, FloatArray, FloatArray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.arange(1, d + 1)
    y = X @ np.ones(d) + rng.normal(size=n)
    X[: n // 3, 0] += 5.0  # the anchors of the first rows are not the means
    X = np.where(rng.random((n, d)) < 0.3, np.nan, X) + offset
    return X, y + offset, rng.integers(0, 3, size=n).astype(float)


class ByCount(Adaptivity):
    """phi = 1, |m|."""

    def basis(self, M: FloatArray) -> FloatArray:
        return np.column_stack([np.ones(len(M)), M.sum(axis=1)])


class Learner(ByCount):
    """A class that reads the rows."""

    def fit(self, X, M):  # type: ignore[no-untyped-def]
        return self


def long_double_moments(part: ProductMoments, X: FloatArray, y: FloatArray, s: FloatArray) -> FloatArray:
    """The matrix G by definition, in extended precision."""
    M, columns = np.isnan(X), part.columns
    Z = np.where(M, 0.0, X.astype(np.longdouble) - part.anchor[:-1])
    if columns.sets is not None:
        psi = np.column_stack([M[:, list(J)].all(axis=1) for J in columns.sets]).astype(np.longdouble)
        phi = psi
    else:
        phi = columns.adaptivity.basis(M.astype(float)).astype(np.longdouble)
        observed = [phi[:, k] * ~M[:, j] for j, k in columns.pairs]
        psi = np.column_stack([np.ones(len(X)), phi, *observed])
    values = [Z[:, j] * phi[:, k] for j, k in columns.pairs]
    U = np.column_stack([psi, *values, y.astype(np.longdouble) - part.anchor[-1]])
    return np.asarray((U.T * s) @ U)


@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("adaptivity", ["affine_intercept", "affine", ByCount()])
def test_moments_are_those_of_the_definition(adaptivity: object, offset: float) -> None:
    X, y, s = rows(offset=offset)
    statistics = RowStatistics.of(X, y, s, adaptivity=adaptivity, **LINEAR)
    (part,) = statistics._moments()
    G, exact = part.moments(np.arange(1)), long_double_moments(part, X, y, s)
    size = np.sqrt(np.diag(exact))
    assert np.max(np.abs(G - exact) / np.outer(size, size)) < 1e-14


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_parts_in_any_order_add_up_to_the_whole(offset: float) -> None:
    X, y, s = rows(offset=offset)
    settings = {"adaptivity": ["affine", ByCount()], "folds": HashFolds(3), **LINEAR}
    whole = RowStatistics.of(X, y, s, **settings)
    for size in (400, 130, 7):
        parts = [
            RowStatistics.of(X[i : i + size], y[i : i + size], s[i : i + size], place=(0, 0, i), **settings)
            for i in range(0, len(X), size)
        ]
        order = np.random.default_rng(size).permutation(len(parts))
        merged = parts[order[0]]
        for i in order[1:]:
            merged = merged.merge(parts[i])
        assert merged.n_rows == whole.n_rows == int((s > 0).sum())
        assert merged.n_seen == len(X)
        for name in ("mean", "deviation", "low", "high"):
            np.testing.assert_allclose(
                getattr(merged.summary(), name), getattr(whole.summary(), name), rtol=1e-13, err_msg=name
            )
        for one, other in zip(merged._moments(), whole._moments(), strict=True):
            T = one.centring(other.anchor)
            D = other.sizes(np.arange(3))
            error = np.abs(T @ (T @ one.moments(np.arange(3))).T - other.moments(np.arange(3)))
            assert np.max(error / np.outer(D, D)) < 1e-13
            for f in range(3):  # the folds are those of the whole too
                np.testing.assert_allclose(one.moments(np.array([f]))[0, 0], other.moments(np.array([f]))[0, 0])


def test_deviations_under_wide_weights_are_accurate() -> None:
    X, y, s = np.array([[1.0, 1.0, 1.0, 3.0, np.nan]]).T, np.arange(5.0), np.array([1.0, 1.0, 1.0, 1e-12, 1.0])
    exact = np.sqrt(12e-12) / (3.0 + 1e-12)  # three rows at 1, and one of weight e at 3
    assert RowStatistics.of(X, y, s, **LINEAR).summary().deviation[0] == pytest.approx(exact, rel=1e-9)


def test_summary_is_that_of_the_observed_values() -> None:
    X, y, s = rows()
    found = RowStatistics.of(X, y, s, **LINEAR).summary()
    for j in range(X.shape[1]):
        seen = ~np.isnan(X[:, j]) & (s > 0)
        mean = np.average(X[seen, j], weights=s[seen])
        assert found.n_observed[j] == seen.sum()
        assert found.mean[j] == pytest.approx(mean, rel=1e-14)
        assert found.deviation[j] == pytest.approx(np.sqrt(np.average((X[seen, j] - mean) ** 2, weights=s[seen])))
        assert (found.low[j], found.high[j]) == (X[seen, j].min(), X[seen, j].max())


def test_a_file_holds_everything(tmp_path: Path) -> None:
    X, y, s = rows()
    frame = pd.DataFrame(X, columns=list("abcd"))
    path = tmp_path / "statistics.npz"
    statistics = RowStatistics.of(frame, y, s, folds=HashFolds(3), **LINEAR)
    statistics.save(path)
    loaded = RowStatistics.load(path)
    assert list(loaded.feature_names_in_) == list("abcd")
    assert loaded.settings() == statistics.settings()
    for name, part in statistics.parts.items():
        for key, array in part.arrays().items():
            np.testing.assert_array_equal(array, loaded.parts[name].arrays()[key])
    both = loaded.update(frame, y, s).merge(statistics)
    assert both.n_rows == 3 * statistics.n_rows

    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match="damaged"):
        RowStatistics.load(path)


def test_a_class_of_your_own_is_given_when_a_file_is_read(tmp_path: Path) -> None:
    X, y, _ = rows()
    path = tmp_path / "statistics.npz"
    RowStatistics.of(X, y, adaptivity=ByCount(), **LINEAR).save(path)
    with pytest.raises(ValueError, match="ByCount"):
        RowStatistics.load(path)
    assert RowStatistics.load(path, adaptivity=ByCount()).n_rows == len(X)


def test_what_cannot_be_merged_is_refused() -> None:
    X, y, _ = rows()
    one = RowStatistics.of(X, y, **LINEAR)
    with pytest.raises(ValueError, match="other settings"):
        one.merge(RowStatistics.of(X, y, adaptivity="static", **LINEAR))
    with pytest.raises(ValueError, match="other settings"):
        one.merge(RowStatistics.of(X, y, folds=HashFolds(3), **LINEAR))
    with pytest.raises(ValueError, match="other features"):
        one.merge(RowStatistics.of(pd.DataFrame(X, columns=list("abcd")), y, **LINEAR))
    with pytest.raises(ValueError, match="expecting 4 features"):
        one.update(X[:, :2], y)
    with pytest.raises(ValueError, match="learns from the rows"):
        RowStatistics.of(X, y, adaptivity=Learner(), **LINEAR)
    with pytest.raises(ValueError, match="conditional_mean|ConditionalMean"):
        RowStatistics.of(X, y, adaptivity="conditional_mean", **LINEAR)
    with pytest.raises(ValueError, match="more than 5,000"):
        RowStatistics.of(np.ones((3, 200)), np.arange(3.0), **LINEAR)


def test_rows_of_weight_zero_and_statistics_without_rows() -> None:
    X, y, _ = rows()
    empty = RowStatistics(**LINEAR)
    assert empty.n_rows == 0
    one = RowStatistics.of(X, y, np.zeros(len(X)), **LINEAR)
    assert (one.n_rows, one.n_seen) == (0, len(X))
    assert empty.merge(RowStatistics.of(X, y, **LINEAR)).n_rows == len(X)
    with pytest.raises(ValueError, match="no rows yet"):
        empty.summary()


class Fragile(ByCount):
    """A basis that fails on rows without missing values."""

    def basis(self, M: FloatArray) -> FloatArray:
        if len(M) > 1 and not M.any():
            raise RuntimeError("no missing values")
        return super().basis(M)


def test_an_update_that_fails_leaves_no_plausible_numbers() -> None:
    X, y, _ = rows()
    statistics = RowStatistics.of(X, y, adaptivity=Fragile(), **LINEAR)
    with pytest.raises(RuntimeError):
        statistics.update(np.nan_to_num(X), y)
    for use in (statistics.summary, lambda: statistics.update(X, y), lambda: statistics.merge(statistics)):
        with pytest.raises(ValueError, match="saved copy"):
            use()


def splitmix64(z: int) -> int:
    """The hash in whole numbers of any size."""
    z = (z + 0x9E3779B97F4A7C15) % 2**64
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
    return z ^ (z >> 31)


def fnv1a(text: str) -> int:
    found = 0xCBF29CE484222325
    for byte in text.encode():
        found = (found ^ byte) * 0x100000001B3 % 2**64
    return found


def test_hashes_are_the_same_everywhere() -> None:
    """The values are fixed too: another rule would move rows of stored statistics to other folds."""
    folds = HashFolds(7)
    places = folds.of_places(np.arange(8), group=3, file=2).tolist()
    assert (
        places == [splitmix64(splitmix64(splitmix64(2) ^ 3) ^ row) % 7 for row in range(8)] == [3, 0, 4, 0, 3, 4, 6, 5]
    )
    numbers = [0, 1, -1, 2**40]
    assert folds.of_keys(np.array(numbers)).tolist() == [splitmix64(k % 2**64) % 7 for k in numbers] == [2, 2, 0, 5]
    texts = ["", "a", "München", "x" * 50]
    assert folds.of_keys(texts).tolist() == [splitmix64(fnv1a(text)) % 7 for text in texts] == [4, 1, 1, 5]
    assert folds.of_keys([b"a"]).tolist() == folds.of_keys(np.array(["a"])).tolist() == [1]
    assert folds.of_keys(np.array([3.0])).tolist() == folds.of_keys([3]).tolist()


def test_folds_by_a_hash_are_about_equal_and_hold_keys_together() -> None:
    sizes = np.bincount(HashFolds(5).of_places(np.arange(100_000)))
    assert abs(sizes - 20_000).max() < 5 * np.sqrt(20_000)
    keys = np.repeat(np.arange(200), 3)
    for train, test in HashFolds(4, key=keys).split(np.zeros((600, 1))):
        assert not set(keys[train]) & set(keys[test])
    X, y, _ = rows(600, 2)
    by_key = RowStatistics.of(X, y, keys=keys, folds=HashFolds(4, key="id"), **LINEAR)
    assert [by_key.summary(np.array([f])).n_rows for f in range(4)] == [
        len(test) for _, test in HashFolds(4, key=keys).split(X)
    ]


def test_folds_that_cannot_be_made_are_refused() -> None:
    X, y, _ = rows(20, 2)
    with pytest.raises(ValueError, match="n_splits"):
        HashFolds(1)
    with pytest.raises(ValueError, match="no rows"):
        next(HashFolds(5).split(X[:3]))
    with pytest.raises(ValueError, match="values of its key"):
        next(HashFolds(2, key="id").split(X))
    with pytest.raises(ValueError, match="give its values"):
        RowStatistics.of(X, y, folds=HashFolds(2, key="id"), **LINEAR)
    with pytest.raises(ValueError, match="whole numbers or texts"):
        HashFolds(2).of_keys([0.5, None])
    with pytest.raises(ValueError, match="one for each"):
        RowStatistics.of(X, y, keys=[1, 2], folds=HashFolds(2, key="id"), **LINEAR)
    with pytest.raises(ValueError, match="have no key"):
        RowStatistics.of(X, y, keys=np.arange(20), folds=HashFolds(2), **LINEAR)
    with pytest.raises(ValueError, match="Name the key"):
        RowStatistics(folds=HashFolds(2, key=np.arange(20)))


@pytest.mark.parametrize("adaptivity", ["static", "affine"])
def test_sums_of_features_follow_from_those_of_products(adaptivity: str) -> None:
    X, y, s = rows()
    statistics = RowStatistics.of(X, y, s, adaptivity=adaptivity, folds=HashFolds(3), **LINEAR)
    (products,) = statistics._moments()
    np.testing.assert_allclose(products.feature_sums(), statistics.features.sums.value, rtol=1e-12, atol=1e-10)


@pytest.mark.parametrize("lost", ["settings", "n_features", "n_seen", "folds", "arrays"])
def test_a_forged_header_ends_in_a_sentence(tmp_path, lost):
    """The checksums are right, and something that a file of statistics has is not there."""
    path = tmp_path / "s.npz"
    RowStatistics.of(np.arange(12.0).reshape(6, 2), np.arange(6.0)).save(path)
    header, arrays = load_arrays(path, "row statistics")
    if lost == "folds":
        header["settings"]["folds"] = 7
    elif lost == "arrays":
        arrays = {}
    else:
        del header[lost]
    save_arrays(path, "row statistics", {k: v for k, v in header.items() if k not in ("kind", "format")}, arrays)
    with pytest.raises(ValueError, match=r"s.npz is not a file of row statistics, or it is damaged\."):
        RowStatistics.load(path)
