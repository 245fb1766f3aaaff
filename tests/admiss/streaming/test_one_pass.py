"""A pass over a source: the statistics of rows in memory."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from admiss import AdaptiveRegressor, AdaptiveRegressorCV, FiniteRegressor
from admiss.partition import OptimalTree
from admiss.streaming import HashFolds, RowStatistics, SourceRows, accumulate, open_source
from admiss.tables.column import SourceError
from tests.admiss.streaming.parquet_rows import make_rows, write_rows

X, Y = make_rows()
EMPTY = RowStatistics("affine_intercept", tree_depth=None, folds=HashFolds(3, key="id"))


def predictions(statistics: RowStatistics) -> Any:
    return AdaptiveRegressor(lam=0.1).fit_statistics(statistics).predict(pd.DataFrame(X, columns=list(names(4))))


def names(d: int) -> Iterator[str]:
    return (f"x{j}" for j in range(d))


@pytest.mark.parametrize("files", [1, 7, 100])
def test_files_give_what_rows_in_memory_give(tmp_path: Path, files: int) -> None:
    source = open_source(write_rows(tmp_path / "rows", X, Y, files), "y", key="id")
    found = accumulate(source, EMPTY)
    frame = pd.DataFrame(X, columns=list(names(4)))
    expected = RowStatistics.of(frame, Y, keys=np.arange(len(Y)), **EMPTY.get_params(deep=False))
    assert found.n_rows == expected.n_rows == len(Y)
    np.testing.assert_allclose(found.summary().mean, expected.summary().mean, rtol=1e-14)
    np.testing.assert_allclose(predictions(found), predictions(expected), rtol=0, atol=1e-10)
    search = AdaptiveRegressorCV("affine_intercept").fit_statistics(found)
    folds = HashFolds(3, key=np.arange(len(Y)))
    in_memory = AdaptiveRegressorCV("affine_intercept", cv=folds).fit(frame, Y)
    assert search.best_index_ == in_memory.best_index_
    np.testing.assert_allclose(search.predict(frame), in_memory.predict(frame), rtol=0, atol=1e-10)


def test_rows_without_a_target_are_left_out_and_the_others_keep_their_folds(tmp_path: Path) -> None:
    y = np.where(np.arange(len(Y)) % 5 == 0, np.nan, Y)
    folds = HashFolds(3)
    empty = RowStatistics("static", tree_depth=None, folds=folds)
    found = accumulate(open_source(X, y), empty)
    seen = ~np.isnan(y)
    fold = folds.of_places(np.arange(len(y)))
    assert found.n_rows == seen.sum()
    for f in range(3):
        assert found.summary(np.array([f])).n_rows == (seen & (fold == f)).sum()


def test_infinite_values_are_missing(tmp_path: Path) -> None:
    """As they are in memory; those of arrays are refused, as estimators refuse them."""
    last = np.arange(2000)[:, None] == 1999
    found = []
    for name, value in (("infinite", -np.inf), ("missing", np.nan)):
        folder = write_rows(tmp_path / name, np.where(last, value, X), Y, 3)
        found.append(accumulate(open_source(folder, "y", key="id"), EMPTY).summary())
    np.testing.assert_array_equal(found[0].n_observed, found[1].n_observed)
    assert found[0].n_rows == found[1].n_rows == 2000
    with pytest.raises(SourceError, match=r"^rows 0 to 1,999: column x0, x1, x2, x3 contains infinity"):
        accumulate(open_source(np.where(last, np.inf, X), Y), RowStatistics("static", tree_depth=None))


def test_sources_without_a_target(tmp_path: Path) -> None:
    folder = write_rows(tmp_path / "rows", X, Y, 3)
    with pytest.raises(SourceError, match="no target: name the column"):
        accumulate(open_source(folder, key="id"), EMPTY)
    with pytest.raises(SourceError, match="no rows with a target"):
        accumulate(open_source(X, np.full(len(Y), np.nan)), RowStatistics("static", tree_depth=None))


def test_rows_are_read_again_to_settle_leaves_that_sums_cannot_prove(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(600, 3))
    Z[:, 1] = Z[:, 0] + 1e-5 * rng.normal(size=600)
    y = 1e5 * (Z[:, 1] - Z[:, 0]) + Z[:, 2] + rng.normal(size=600)
    Z[rng.random(600) < 0.3, 2] = np.nan
    source = open_source(write_rows(tmp_path / "rows", Z, y, 2), "y", drop=["id"])
    statistics = accumulate(source, RowStatistics([], tree_depth=1))
    model = FiniteRegressor(OptimalTree(max_depth=1), ridge=1e-12)
    with pytest.warns(UserWarning, match="ill-conditioned"):
        assert model.fit_statistics(statistics).certificate_.status != "optimal"
    model.fit_statistics(statistics, settle=SourceRows(source))
    frame = pd.DataFrame(Z, columns=list(names(3)))
    memory = FiniteRegressor(OptimalTree(max_depth=1), ridge=1e-12).fit(frame, y)
    assert model.certificate_.status == memory.certificate_.status == "optimal"
    np.testing.assert_allclose(model.certificate_.objective, memory.certificate_.objective, rtol=1e-9)


def test_the_key_of_the_folds_is_that_of_the_source() -> None:
    frames = [pd.DataFrame({"x": np.arange(10.0), "k": np.arange(10), "y": np.arange(10.0)})]
    with pytest.raises(SourceError, match="The key of the source is 'k', and that of the folds 'j'"):
        accumulate(open_source(frames, "y", key="k"), RowStatistics("static", folds=HashFolds(2, key="j")))
