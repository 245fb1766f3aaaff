"""The same file gives the same columns by every door, or the same sentence."""

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from admiss import TableEncoder
from admiss.cli.main import main
from admiss.streaming.file_model import load_model
from admiss.study import CsvInstance
from admiss.tables import open_source, read_table
from admiss.tables.column import Column
from admiss.tables.csv_file import CsvFile
from tests.admiss.tables.test_odd_files import as_bytes, columns_of, damaged, hide

KINDS = ("plain", "gz", "comments", "twice", "nul", "quote", "damaged", "parquet")


def odd_file(seed: int) -> str:
    """A file of some kind; its numbers may be in any notation, with IDs, dates, text, constants."""
    rng = np.random.default_rng(seed)
    texts, features = columns_of(rng, 60)
    hide(rng, texts, features)
    texts["PID"] = [str(k) for k in rng.permutation(60) + 7000]
    texts["steady"] = [str(i / 4 + i % 3) for i in range(60)]
    content = as_bytes(rng, texts)
    kind = KINDS[seed % len(KINDS)]
    if kind == "parquet":
        pd.DataFrame(texts).to_parquet("t.parquet")
        return "t.parquet"
    if kind == "gz":
        pd.DataFrame(texts).to_csv("t.csv.gz", index=False)
        return "t.csv.gz"
    if kind == "comments":
        content = b"# made by hand\n#\n" + pd.DataFrame(texts).to_csv(index=False).encode() + b"# end\n"
    elif kind == "twice":
        frame = pd.DataFrame(texts)
        frame.insert(0, "second", frame["y"])
        content = frame.to_csv(index=False).replace("second", "y", 1).encode()
    elif kind == "nul":
        content = pd.DataFrame(texts).to_csv(index=False).encode().replace(b"7001", b"70\x0001")
    elif kind == "quote":
        content = b'"' + pd.DataFrame(texts).to_csv(index=False).encode()
    elif kind == "damaged":
        content = damaged(rng, content)
    Path("t.csv").write_bytes(content)
    return "t.csv"


def in_memory(path: str) -> list[str]:
    return read_table(path, "y", task="regression").names


def in_chunks(path: str) -> list[str]:
    return open_source(path, "y").schema.names


def in_a_study(path: str) -> list[str]:
    return list(CsvInstance(Path(path), "y", task="regression").make()[0].columns)


def by_fit(path: str) -> list[str]:
    main(["fit", "--data", path, "--target", "y", "--task", "regression", "--cv", "0", "--out", "m"])
    return load_model("m").schema.names


def by_predict(path: str) -> list[str]:
    """The columns that a model of the file has when it predicts the same file."""
    names = by_fit(path)
    main(["predict", "--model", "m", "--data", path, "--out", "p.parquet"])
    assert len(pd.read_parquet("p.parquet")) == sum(
        len(batch.X) for chunk in open_source(path, "y").chunks() for batch in chunk.batches()
    )
    return names


def by_compare(path: str) -> list[str]:
    """The columns that the command compares, without the comparison."""
    found = []

    def compared(X: pa.Table, *_: object, **__: object) -> None:
        found.extend(X.column_names)
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("admiss.cli.compare.compare_partitions", compared)
        main(["compare", "--data", path, "--target", "y", "--task", "regression"])
    return found


def outcome(door, path, capsys):
    """The columns, or the sentence without the place."""
    try:
        return door(path)
    except SystemExit:
        sentence = " ".join(capsys.readouterr().err.splitlines()[-1].partition("error: ")[2].split())
    except ValueError as error:
        sentence = str(error)
    assert "Traceback" not in sentence
    assert "olars" not in sentence
    assert "Errno" not in sentence
    return sentence.replace(str(Path(path).absolute()), path)


@pytest.mark.parametrize("seed", range(64))
def test_sixty_odd_files(seed, here, capsys):
    path = odd_file(seed)
    expected = outcome(in_memory, path, capsys)
    for door in (in_chunks, in_a_study, by_fit, by_predict, by_compare):
        assert outcome(door, path, capsys) == expected, door.__name__
    if isinstance(expected, list):
        assert "PID" not in expected or KINDS[seed % len(KINDS)] == "damaged"
        batches = [batch for chunk in open_source(path, "y").chunks() for batch in chunk.batches()]
        table = read_table(path, "y", task="regression")
        X = np.vstack([batch.X[~np.isnan(batch.y)] for batch in batches])
        np.testing.assert_array_equal(X, table.X)
        np.testing.assert_array_equal(np.concatenate([b.y[~np.isnan(b.y)] for b in batches]), table.y)
    kind = KINDS[seed % len(KINDS)]
    if kind in ("twice", "nul", "quote"):
        words = {"twice": "has 2 columns 'y'", "nul": "bytes that are 0", "quote": "quotation marks"}
        assert words[kind] in expected
    elif kind != "damaged":
        assert isinstance(expected, list)


def test_an_encoder_has_the_columns_of_the_file(here):
    for seed in (7, 15, 23):
        path = odd_file(seed)
        frame = pd.read_parquet(path)
        encoder = TableEncoder().fit(frame.drop(columns="y"))
        assert encoder.get_feature_names_out().tolist() == in_memory(path)


def tokenized(path):
    """The notes and every cell of a file, or the sentence."""
    try:
        file = CsvFile(Path(path), ["y"])
        parts = list(file.parts())
        assert all(map(len, parts))
        cells = {n: [c for part in parts for c in pa.array(part[n]).to_pylist()] for n in file.columns}
    except ValueError as error:
        return str(error)
    return cells, file.notes


BY_HAND = {
    "quotes": b'a,y\n"1, ""x""",2\n" 3",4\n',
    "blanks": b'a, y\n 1, 2\n3 ,4\n   \n, \n5,6\n',
    "blanks and quotes": b'a,y\n 1," 2"\n3,4\n',
    "a mark within": b'a,y\n5",2\n3,4\n',
    "a row in two lines": b'a,y\n1,2\n"3\n4",5\n6,7\n',
    "lines of an old Mac": b"a,y\r1,2\r3,4\r",
    "lines of Windows": b"a,y\r\n1,2\r\n\r\n3,4",
    "short rows": b"a,b,y\n1,2,3\n4,5\n6,7,8,\n9,10,11\n",
    "long row": b"a,y\n1,2\n\n3,4,5\n6,7\n",
    "no mark at the end": b'a,y\n1,2\n3,"4\n5,6\n',
    "text behind a mark": b'a,y\n1,2\n"3"x,4\n5,6\n',
    "a part without cells": b"a,y\n1,2\n" + b" ,\n" * 40 + b"3,4\n",
    "one column": b"y\n1\n\n2\n  \n3\n",
    "wide": "a;y\nä€;1,5\n\u2003;2,5\n".encode("utf-16"),
}  # fmt: skip


@pytest.mark.parametrize("characters", [8, 80, 8 * 2**20])
@pytest.mark.parametrize("case", [*BY_HAND, *(seed for seed in range(64) if KINDS[seed % 8] != "parquet")])
def test_cells_do_not_depend_on_what_tokenizes(case, characters, here, monkeypatch):
    path = odd_file(case) if isinstance(case, int) else "t.csv"
    if isinstance(case, str):
        Path(path).write_bytes(BY_HAND[case])
    monkeypatch.setattr("admiss.tables.csv_file.PART_CELLS", characters // 8)
    found = tokenized(path)
    monkeypatch.setattr("admiss.tables.csv_file.PART_CELLS", 2**20)
    monkeypatch.setattr("admiss.tables.csv_file._without_quotes", lambda block, separator: None)
    assert found == tokenized(path)


@pytest.mark.parametrize("case", ["quotes", "blanks and quotes", "lines of Windows", "short rows", "a mark within"])
def test_pyarrow_tokenizes_where_the_cells_are_plain(case, here, monkeypatch):
    Path("t.csv").write_bytes(BY_HAND[case])
    monkeypatch.setattr(CsvFile, "_tokenized", lambda *_: iter(()))
    assert len(list(CsvFile(Path("t.csv"), ["y"]).parts())) == (case in ("quotes", "lines of Windows"))


NUMBERS = ["1", "+1", "-.5e-3", "1.", "1e400", "1e-400", "0.1234567890123456789", "4.35", "2.675e-300"]
OTHERS = ["inf", "nan(1)", "-nan", "1_0", "0x10", " 1", "1 ", "٣", "1d5", "9" * 15, "1" + "0" * 15, "1e", "x"]
MISSING = ["", "NA", " n/A ", "?", ".", "nan", "NaT"]


@pytest.mark.parametrize("text", [*NUMBERS, *OTHERS, *MISSING])
@pytest.mark.parametrize("other", ["2.5", "", "NA"])
def test_numbers_of_pyarrow_are_those_of_python(text, other):
    cells = [text, other, "7"]
    by_pyarrow, by_python = Column("a", "text", cells=pa.array(cells)), Column("a", "text", cells=cells)
    np.testing.assert_equal(by_pyarrow.plain, by_python.plain)
    assert by_pyarrow.texts == by_python.texts
    if text in NUMBERS:
        assert by_python.plain[0] == float(text)


def test_one_number_that_is_not_whole_tells_that_a_column_is_no_id():
    values = np.append(np.arange(10_500.0), 20_000.5)
    frame = pd.DataFrame({"PID": values, "text": values.astype(str)})
    assert TableEncoder().fit(frame[["PID"]]).schema_.names == ["PID"]
    assert TableEncoder().fit(frame[["text"]].rename(columns={"text": "PID"})).schema_.names == ["PID"]
