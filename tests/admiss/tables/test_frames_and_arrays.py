"""Data frames and arrays as sources."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from admiss.tables import open_source, read_table
from admiss.tables.column import SourceError
from admiss.tables.source import Source

FRAMES = [{"a": [1.0, None], "s": ["u", "v"], "y": [1.0, 2.0]}, {"a": [3.0], "s": [None], "y": [3.0]}]
EXPECTED = [[1, 0], [np.nan, 1], [3, np.nan]]


def rows(source: Source) -> Any:
    return np.vstack([batch.X for chunk in source.chunks() for batch in chunk.batches()])


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_frames_of_every_library(make: Any) -> None:
    source = open_source(lambda: map(make, FRAMES), "y")
    assert source.schema.names == ["a", "s=v"]
    for _ in range(2):
        np.testing.assert_array_equal(rows(source), EXPECTED)


def test_nullable_types_of_pandas() -> None:
    whole, truth = pd.array([3, 2, None], "Int64"), pd.array([True, None, False], "boolean")
    frame = pd.DataFrame({"a": whole, "b": truth, "y": [0.0, 1.0, 2.0]})
    np.testing.assert_array_equal(rows(open_source(frame, "y")), [[3, 1], [2, np.nan], [np.nan, 0]])


def test_an_iterator_is_read_once() -> None:
    source = open_source(iter([pd.DataFrame(FRAMES[0])]), "y")
    rows(source)
    with pytest.raises(SourceError, match="used up: give a function"):
        rows(source)


def test_a_lazy_frame_and_a_csv_file(tmp_path: Path) -> None:
    frame = pl.DataFrame({"a": [1.0, None, 3.0], "s": ["u", "v", None], "y": [1.0, 2.0, 3.0]})
    np.testing.assert_array_equal(rows(open_source(frame.lazy(), "y")), EXPECTED)
    (tmp_path / "t.csv").write_text("a,s,y\n1,u,1\nNA,v,2\n3,?,3\n")
    np.testing.assert_array_equal(rows(open_source(tmp_path / "t.csv", "y")), EXPECTED)


def test_frames_that_differ_are_named() -> None:
    second = {"a": ["x"], "s": ["u"], "y": [1.0]}
    with pytest.raises(SourceError, match="^the frames, frame 1: column 'a' holds text, and numbers elsewhere"):
        rows(open_source([pd.DataFrame(FRAMES[0]), pd.DataFrame(second)], "y"))
    with pytest.raises(SourceError, match="^the frames, frame 1 has no column 's'"):
        rows(open_source([pd.DataFrame(FRAMES[0]), pd.DataFrame({"a": [1.0], "y": [0.0]})], "y"))
    with pytest.raises(SourceError, match="frame 1: int is not a usable data frame"):
        rows(open_source([pd.DataFrame(FRAMES[0]), 5], "y"))
    with pytest.raises(SourceError, match="Data frames or a function"):
        open_source(5, "y")


def test_slices_of_mapped_arrays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("admiss.tables.source.BATCH_ROWS", 3)
    X = np.random.default_rng(0).normal(size=(10, 2)).astype(np.float32)
    np.save(tmp_path / "X.npy", X)
    y = X.sum(axis=1)
    mapped = open_source(np.load(tmp_path / "X.npy", mmap_mode="r"), y, features=["u", "v"])
    np.testing.assert_array_equal(rows(mapped), X.astype(float))
    assert [batch.place.row for chunk in mapped.chunks() for batch in chunk.batches()] == [0, 3, 6, 9]
    assert mapped.schema.names == ["u", "v"]
    with pytest.raises(ValueError, match="not for an array"):
        read_table(X, "y")
    with pytest.raises(SourceError, match="one value for each of the 10 rows"):
        open_source(X, y[:-1])
    with pytest.raises(SourceError, match="2 columns, and there are 1 names"):
        open_source(X, y, features=["u"])
