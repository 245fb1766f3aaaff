"""The same file gives the same columns by every door, or the same sentence."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from admiss import TableEncoder
from admiss.cli.main import main
from admiss.streaming.file_model import load_model
from admiss.study import CsvInstance
from admiss.tables import open_source, read_table
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


def by_the_command(path: str) -> list[str]:
    main(["fit", "--data", path, "--target", "y", "--task", "regression", "--cv", "0", "--out", "m"])
    return load_model("m").schema.names


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
    for door in (in_chunks, in_a_study, by_the_command):
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
