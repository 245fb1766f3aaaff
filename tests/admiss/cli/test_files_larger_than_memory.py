"""``admiss fit``, ``admiss predict`` and ``admiss compare`` on folders of Parquet files."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from admiss import AdaptiveRegressorCV
from admiss.cli.main import main
from admiss.streaming import HashFolds
from tests.admiss.streaming.parquet_rows import make_rows, write_rows

X, Y = make_rows(1200)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return write_rows(tmp_path / "rows", X, Y, 3, group=90)


def test_fit_and_predict_agree_with_rows_in_memory(folder: Path, capsys: Any) -> None:
    fit = ["fit", "--data", "rows/*.parquet", "--target", "y", "--folds-key", "id", "--out", "model.joblib"]
    assert main([*fit, "--cv", "4"]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"R2 in cross-validation: 0\.\d{3}\n", shown)
    assert re.search(r"selected: .*\blam\s\S{1,9}(,|\n)", shown, re.DOTALL)
    assert max(len(word) for word in re.findall(r"\d[\d.e+-]*", shown)) <= 9  # no digits that say nothing
    assert main(["predict", "--model", "model.joblib", "--data", "rows", "--keep", "id", "--out", "p.parquet"]) == 0
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(4)])
    model = AdaptiveRegressorCV("affine_intercept", cv=HashFolds(4, key=np.arange(len(Y)))).fit(frame, Y)
    found = pq.read_table("p.parquet")
    assert found["id"].to_pylist() == list(range(len(Y)))
    np.testing.assert_allclose(found["prediction"].to_numpy(), model.predict(frame), rtol=0, atol=1e-10)


def test_a_tree_and_its_patterns(folder: Path, capsys: Any) -> None:
    fit = ["fit", "--data", "rows", "--target", "y", "--drop", "id", "--model", "tree", "--max-depth", "2"]
    assert main([*fit, "--cv", "0", "--settle", "--out", "tree.joblib"]) == 0
    assert "status     optimal" in capsys.readouterr().out
    assert main(["predict", "--model", "tree.joblib", "--data", "rows", "--patterns", "--out", "p.parquet"]) == 0
    assert "nothing missing" in capsys.readouterr().out


@pytest.mark.slow
def test_compare_reads_a_folder_once(folder: Path, capsys: Any) -> None:
    options = ["--target", "y", "--drop", "id", "--max-depth", "2", "--min-rows", "50", "--out", "found"]
    assert main(["compare", "--data", "rows/*.parquet", *options]) == 0
    assert "without test rows" in capsys.readouterr().out
    table = json.loads(Path("found.json").read_text())["comparisons"][0]
    assert "mean + indicators + ridge" in json.dumps(table)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["fit", "--data", "rows", "--target", "z", "--out", "m"], "0000.parquet has no column 'z'"),
        (["fit", "--data", "rows", "--target", "y", "--cv", "1", "--out", "m"], "--cv must be 0, or from 2 to 1,000"),
        (["fit", "--data", "rows", "--target", "y", "--out", "none/m"], "--out must be a file in a folder that exists"),
        (["fit", "--data", "rows", "--target", "y", "--workers", "0", "--out", "m"], "--workers must be at least 1"),
        (["fit", "--data", "rows", "--target", "y", "--scheduler", "x", "--out", "m"], "not the address of a Dask"),
        (["fit", "--data", "none.csv", "--target", "y", "--out", "m"], "There are no CSV files at none.csv"),
        (["predict", "--model", "none", "--data", "rows", "--out", "p"], "There is no file none"),
        (["compare", "--data", "rows", "--target", "y", "--task", "classification"], "need all rows"),
        (["compare", "--workers", "2"], "are for --data FILE"),
    ],
)
def test_errors_are_one_sentence(folder: Path, capsys: Any, arguments: list[str], words: str) -> None:
    with pytest.raises(SystemExit):
        main(arguments)
    error = capsys.readouterr().err
    assert words in error.splitlines()[-1]
    assert "Traceback" not in error
