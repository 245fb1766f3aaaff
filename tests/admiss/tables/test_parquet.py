"""Parquet files as a source: the same rows as in memory, and one sentence for everything that is wrong with them."""

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from admiss.tables import open_source
from admiss.tables.column import SourceError
from admiss.tables.parquet import parquet_paths
from admiss.tables.source import Source


def write(path: Path, n: int = 10, group: int = 4, **columns: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    table = {"a": np.arange(n, dtype="f4"), "b": [None if i % 3 == 0 else i for i in range(n)], "y": np.arange(n) / 2}
    pq.write_table(pa.table({**table, **columns}), path, row_group_size=group)
    return path


def rows(source: Source) -> np.ndarray:
    return np.vstack([batch.X for chunk in source.chunks() for batch in chunk.batches()])


def test_rows_in_order_with_their_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("admiss.tables.source.BATCH_ROWS", 3)
    write(tmp_path / "2.parquet", 5)
    write(tmp_path / "1.parquet", 10)
    source = open_source(tmp_path, "y")
    assert source.schema.names == ["a", "b"]
    assert source.size == 5
    X = rows(source)
    assert X[:, 0].tolist() == [*range(10), *range(5)]
    assert np.flatnonzero(np.isnan(X[:, 1])).tolist() == [0, 3, 6, 9, 10, 13]
    places = [tuple(batch.place) for chunk in source.chunks() for batch in chunk.batches()]
    assert places == [(0, 0, 0), (0, 0, 3), (0, 1, 0), (0, 1, 3), (0, 2, 0), (1, 0, 0), (1, 0, 3), (1, 1, 0)]
    targets = [batch.y for chunk in source.chunks() for batch in chunk.batches()]
    assert np.concatenate([y for y in targets if y is not None]).tolist() == [i / 2 for i in [*range(10), *range(5)]]


def test_text_dates_truth_values_and_partition_folders(tmp_path: Path) -> None:
    day = datetime.date(1970, 1, 3)
    for year, plans in ((2023, ["pro", None, "free"]), (2024, ["team", " pro ", "n/a"])):
        columns = {"plan": plans, "day": [day, None, day], "ok": [True, None, False]}
        write(tmp_path / f"year={year}" / "part.parquet", 3, **columns)
    write(tmp_path / "_spark" / "x.parquet")  # not part of a data set
    source = open_source(tmp_path, "y", drop=["a", "b"])
    assert source.schema.names == ["plan=free", "plan=pro", "plan=team", "day", "ok", "year"]
    X = rows(source)
    nan = np.nan
    np.testing.assert_array_equal(
        X,
        [
            [0, 1, 0, 0, 1, 2023],
            [nan, nan, nan, nan, nan, 2023],
            [1, 0, 0, 0, 0, 2023],
            [0, 0, 1, 0, 1, 2024],
            [0, 1, 0, nan, nan, 2024],
            [nan, nan, nan, 0, 0, 2024],
        ],
    )


def test_unknown_values_are_refused_or_missing(tmp_path: Path) -> None:
    write(tmp_path / "1.parquet", 8, plan=["a", "b"] * 4)
    write(tmp_path / "2.parquet", 8, plan=["a", "b", "a", "b", "a", "z", "b", "a"])
    given = {"categories": {"plan": ["a", "b"]}}
    with pytest.raises(SourceError, match=r"^2.parquet, row group 1: column 'plan' holds 'z', which is not one .*\.$"):
        rows(open_source(tmp_path, "y", **given))
    X = rows(open_source(tmp_path, "y", unknown="missing", **given))
    assert np.flatnonzero(np.isnan(X[:, 2])).tolist() == [13]
    assert open_source(tmp_path, "y").schema.names == ["a", "b", "plan=a", "plan=b", "plan=z"]


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (
            {"b": ["text"] * 10, "y": ["text"] * 10},
            r"2.parquet: column 'b' does not hold numbers, column 'y' does not hold",
        ),
        ({"z": [1] * 10, "v": [1] * 10}, r"1.parquet has no columns 'z', 'v', which other files have"),
        (None, r"2.parquet is not a complete Parquet file"),
    ],
)
def test_a_file_that_differs_is_named_before_any_work(tmp_path: Path, columns: Any, words: str) -> None:
    write(tmp_path / "1.parquet")
    second = write(tmp_path / "2.parquet", **(columns or {}))
    if columns is None:
        second.write_bytes(second.read_bytes()[:-20])
    with pytest.raises(SourceError, match=words):
        open_source(tmp_path, "y")


def test_numbers_of_different_types_are_the_same_numbers(tmp_path: Path) -> None:
    write(tmp_path / "1.parquet", 4, b=pa.array([1, 2, None, 4], pa.int32()))
    write(tmp_path / "2.parquet", 4, b=pa.array([1.5, None, 3, 4], pa.float64()))
    write(tmp_path / "3.parquet", 4, b=pa.nulls(4))
    expected = [1, 2, np.nan, 4, 1.5, np.nan, 3, 4, *[np.nan] * 4]
    np.testing.assert_array_equal(rows(open_source(tmp_path, "y"))[:, 1], expected)


def test_damage_inside_a_file_and_a_file_written_again(tmp_path: Path) -> None:
    path = write(tmp_path / "1.parquet", 4000, 1000)
    source = open_source(path, "y", keep=["a"])
    chunks = list(source.chunks())
    next(chunks[1].batches())
    group = pq.read_metadata(path).row_group(2).column(0)
    start = group.dictionary_page_offset or group.data_page_offset
    content = bytearray(path.read_bytes())
    content[start : start + 60] = b"\xff" * 60
    path.write_bytes(bytes(content))
    with pytest.raises(SourceError, match=r"1.parquet, row group 2: the file has changed"):
        next(chunks[2].batches())
    damaged = list(open_source(path, schema=source.schema).chunks())
    with pytest.raises(SourceError, match=r"^1.parquet, row group 2 could not be read: write the file again\.$"):
        list(damaged[2].batches())


def test_paths(tmp_path: Path) -> None:
    files = [write(tmp_path / name) for name in ("b/1.parquet", "a/2.pq")]
    assert parquet_paths(tmp_path) == sorted(files)
    assert parquet_paths([tmp_path / "b", str(tmp_path / "*" / "*.p*")]) == sorted(files)
    with pytest.raises(SourceError, match="There are no Parquet files at .*nowhere: name"):
        parquet_paths(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"target": "z"}, r"1.parquet has no column 'z': it has a, b and y\."),
        ({"target": "y", "weight": "y"}, "must be different columns"),
        ({"target": "y", "features": ["y"]}, "cannot be both"),
        ({"target": "y", "features": ["a"], "drop": ["a"]}, "has no features to predict y from"),
        ({"target": "y", "drop": "a"}, "are lists of columns"),
        ({"target": "y", "unknown": "skip"}, "unknown must be"),
    ],
)
def test_wrong_columns_are_refused_in_a_sentence(tmp_path: Path, options: dict[str, object], words: str) -> None:
    write(tmp_path / "1.parquet")
    with pytest.raises(ValueError, match=words):
        open_source(tmp_path, **options)


def test_many_values_lists_and_equal_names(tmp_path: Path) -> None:
    path = write(tmp_path / "1.parquet", 60, id=[f"u{i}" for i in range(60)], items=[[1], [2, 3]] * 30)
    source = open_source(path, "y", drop=["a"])
    assert source.schema.names == ["b", "items=[2, 3]"]
    assert any("Left out as an ID" in note and "id" in note for note in source.schema.notes)
    pq.write_table(pa.table([pa.array([1.0]), pa.array([2.0])], names=["a", "a"]), path)
    with pytest.raises(SourceError, match="two columns 'a'"):
        open_source(path)


def test_large_integers_are_codes_and_equal_names_get_a_number(tmp_path: Path) -> None:
    large = 1_700_000_000_000_000_001
    columns = {"x": [large, large + 1, None], "a": ["u", "v", "w"], "a=u": [1.0, 2.0, 3.0], "y": [1.0, 2.0, 3.0]}
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    assert open_source(tmp_path, "y").schema.names == [f"x={large + 1}", "a=u", "a=v", "a=w", "a=u (2)"]


def test_values_that_come_late_are_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Text, constants and missing values of the rows that decide may be others later; numbers are as they were."""
    monkeypatch.setattr("admiss.tables.deciding.DECIDING_ROWS", 40)
    n = 400
    late = np.arange(n) >= 200
    columns = {
        "level": np.where(late, "late", "early"),
        "constant": late.astype(float),
        "empty": [None if not gone else 1.5 for gone in late],
        "both": [2.5] * n,
        "x": np.random.default_rng(0).normal(size=n),
    }
    pq.write_table(pa.table({**columns, "y": np.arange(n) / 2}), tmp_path / "a.parquet", row_group_size=50)
    source = open_source(tmp_path, "y")
    assert source.schema.names == ["level=late", "constant", "empty", "x"]
    assert np.nansum(rows(source)[:, :2]) == 400
    assert any("all values are equal: both" in note for note in source.schema.notes)
