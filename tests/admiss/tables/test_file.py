"""Files: encodings, separators, headers, rows of unequal length, types of Parquet, and the three libraries."""

import datetime as dt
import decimal
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest

from admiss.tables import read_table

PLAIN = "größe,y,b\n1.5,0.5,u\n2.5,3.5,v\n?,1.25,w\n"
X = [[1.5, 1, 0, 0], [2.5, 0, 1, 0], [np.nan, 0, 0, 1]]


def same_as_plain(path):
    table = read_table(path, "y")
    assert table.names == ["größe", "b=u", "b=v", "b=w"]
    np.testing.assert_array_equal(table.X, X)
    np.testing.assert_array_equal(table.y, [0.5, 3.5, 1.25])
    return table


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1", "cp1252"])
def test_encodings(here, encoding):
    (here / "t.csv").write_bytes(PLAIN.encode(encoding))
    table = same_as_plain("t.csv")
    assert any("is not UTF-8" in text for text in table.notes) == (encoding in ("latin-1", "cp1252"))


@pytest.mark.parametrize(
    "content",
    [
        PLAIN.replace(",", ";"),
        PLAIN.replace(",", "\t"),
        PLAIN.replace(",", "|"),
        PLAIN.replace(",", ";").replace(".", ","),
        "sep=;\n" + PLAIN.replace(",", ";"),
        PLAIN.replace("\n", "\r\n"),
        PLAIN.replace("\n", "\r"),
        PLAIN.rstrip("\n"),
        PLAIN.replace("\n", "\n\n") + "\n , ,\n",
        PLAIN.replace(",", " , "),
        PLAIN.replace("\n", ",,\n"),
        PLAIN.replace("\n", ",\n").replace(",b,", ",b"),
        '"größe","y","b"\n"1.5","0.5","u"\n"2.5","3.5", "v"\n"?","1.25","w"\n',
        PLAIN.replace("u", '" u\n"'),
        PLAIN.replace("?,1.25,w", "?,1.25,w,  "),
    ],
)
def test_variants_of_csv(here, content):
    (here / "t.csv").write_bytes(content.encode())
    same_as_plain("t.csv")


def test_a_tab_separated_file_and_upper_case(here):
    for name in ("t.tsv", "T.CSV"):
        (here / name).write_text(PLAIN.replace(",", "\t"))
        same_as_plain(name)


def test_names_of_rows_as_r_writes_them(here):
    lines = [f'"{i}",{i / 4},{i % 7}' for i in range(30)]
    (here / "t.csv").write_text("\n".join(["y,a", *lines]))
    table = read_table("t.csv", "y")
    assert table.names == ["a"]
    assert table.y[:2].tolist() == [0, 0.25]
    assert any("as an ID" in text and "column_1" in text for text in table.notes)


def test_headers(here, note):
    (here / "t.csv").write_text("a,a,,  two  words ,a_2,y,\n1.5,2.5,3,4,5,6.5,9\n2.5,5.5,7,1,3,2.5,8\n")
    table = read_table("t.csv", "y")
    assert table.names == ["a", "a_3", "column_3", "two words", "a_2", "column_7"]
    note(table, "Columns with the name of an earlier one get a number: a_3")
    note(table, "Columns without a name are called by their position: column_3 and column_7")


def test_short_rows_are_filled(here, note):
    (here / "t.csv").write_text("a,y,b,c\n1.5,2.5,3,4\n2.5,3.5\n4.5,1.25,6\n")
    table = read_table("t.csv", "y")
    np.testing.assert_array_equal(table.X, [[1.5, 3, 4], [2.5, np.nan, np.nan], [4.5, 6, np.nan]])
    note(table, "2 rows of t.csv have fewer cells than the header; the rest is missing.")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "t.csv has no content."),
        (b"\n\n  \n", "t.csv has no content."),
        (b"a,y\n", "t.csv has no rows below the header."),
        (b"a,y\n1,2\n1,2,3\n", "row 3 has 3 cells and the header has 2: put cells with ',' inside into"),
        (b'a,y\n"1,2\n3,4\n', "could not be read as CSV, check the quotation marks: unexpected end of data."),
        (b"PK\x03\x04\x00\x00\x00y", "is not a text file, as it has bytes that are 0: save the table as CSV"),
        (b"1,2\n3,4\n5,6\n", "has no column 'y': it has 1 and 2. The first line must have the names of the columns."),
        (b"a,y\n" + 20_000 * b"1,2\n" + b"\0,3\n", "is not a text file"),
        (b"y,y,a\n1,2,3\n", "has 2 columns 'y'"),
        (b"aaa,Y\n1,2\n3,4\n", "has no column 'y': it has aaa and Y."),
        (b"y\n1\n2.5\n", "t.csv has no features to predict y from."),
        (b"a,y\n1,2\n" + b'x' * 200_000 + b",3\n", "could not be read as CSV"),
    ],
)  # fmt: skip
def test_files_that_cannot_be_read(here, content, sentence):
    (here / "t.csv").write_bytes(content)
    with pytest.raises(ValueError) as error:  # noqa: PT011
        read_table("t.csv", "y")
    assert sentence in str(error.value)
    assert "\n" not in str(error.value)


def test_other_files(here):
    (here / "t.parquet").write_bytes(b"no Parquet")
    (here / "t.xlsx").write_bytes(b"")
    (here / "folder.csv").mkdir()
    for name, sentence in (
        ("t.parquet", "is not a complete Parquet file"),
        ("t.xlsx", "is neither a CSV file"),
        ("no.csv", "There are no CSV files at no.csv."),
        ("folder.csv", "There is no file folder.csv."),
    ):
        with pytest.raises(ValueError, match=sentence):
            read_table(name, "y")
    pd.DataFrame({"a": [], "y": []}).to_parquet("t.parquet")
    with pytest.raises(ValueError, match="t.parquet has no rows"):
        read_table("t.parquet", "y")


def test_types_of_parquet(here):
    n = 30
    moments = [None if i == 1 else dt.datetime(2020, 1, 1, 6) + dt.timedelta(days=i) for i in range(n)]
    columns = {
        "whole": pl.Series([None if i == 1 else i % 7 for i in range(n)], dtype=pl.Int16),
        "exact": pl.Series([None if i == 1 else decimal.Decimal(i % 7) / 4 for i in range(n)], dtype=pl.Decimal(10, 2)),
        "truth": pl.Series([None if i == 1 else i % 2 == 0 for i in range(n)]),
        "single": pl.Series([None if i == 1 else i / 4 for i in range(n)], dtype=pl.Float32),
        "date": pl.Series(moments).dt.date(),
        "moment": pl.Series(moments).dt.replace_time_zone("UTC"),
        "zone": pl.Series(moments).dt.replace_time_zone("UTC").dt.convert_time_zone("Asia/Tokyo"),
        "time": pl.Series([None if i == 1 else dt.time(i % 24, 30) for i in range(n)]),
        "span": pl.Series([None if i == 1 else dt.timedelta(hours=12 * i) for i in range(n)]),
        "category": pl.Series([None if i == 1 else "uvw"[i % 3] for i in range(n)], dtype=pl.Categorical),
        "level": pl.Series([None if i == 1 else "uvwx"[i % 4] for i in range(n)], dtype=pl.Enum(list("uvwx"))),
        "digits": pl.Series([None if i == 1 else f" {i % 7} " for i in range(n)]),
        "nothing": pl.Series([None] * n, dtype=pl.Null),
        "long": pl.Series([2**60 + i for i in range(n)]),
        "list": pl.Series([None if i == 1 else [i % 2] for i in range(n)]),
        "bytes": pl.Series([f"{i}".encode() for i in range(n)]),
        "y": pl.Series(np.arange(n) / 4),
    }  # fmt: skip
    pl.DataFrame(columns).write_parquet("t.parquet")
    table = read_table("t.parquet", "y")
    i = np.arange(n)
    exact = {
        "whole": i % 7, "exact": i % 7 / 4, "truth": 1 - i % 2, "single": i / 4, "date": i, "moment": i + 0.25,
        "time": i % 24 + 0.5, "span": i / 2, "category=u": i % 3 == 0, "category=v": i % 3 == 1,
        "category=w": i % 3 == 2, "level=u": i % 4 == 0, "level=v": i % 4 == 1, "level=w": i % 4 == 2,
        "level=x": i % 4 == 3, "list=[1]": i % 2,
    }  # fmt: skip
    assert table.names == list(exact)
    np.testing.assert_allclose(table.X, np.where((i == 1)[:, None], np.nan, np.column_stack(list(exact.values()))))
    shown = " ".join(table.notes)
    for words in (
        "Left out, as every value is missing: nothing",
        "zone (of moment) and digits (of whole)",
        "all texts are different: long and bytes",
        "Durations are used as days: span",
        "Times are used as hours: time",
    ):
        assert words in shown


def test_without_a_library_for_parquet_one_sentence_says_so(here, monkeypatch):
    pd.DataFrame({"a": [1, 2], "y": [1.0, 2.0]}).to_parquet("t.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    monkeypatch.delitem(sys.modules, "admiss.tables.parquet", raising=False)
    with pytest.raises(ImportError, match="Reading Parquet files needs pyarrow"):
        read_table("t.parquet", "y")
