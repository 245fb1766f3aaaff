"""What was found by attack: a sentence for each file, no remains of a failed fit, nothing that a spreadsheet runs."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from admiss.atomic_write import write_atomically
from admiss.cli.main import main
from admiss.tables.csv_file import escape_formula


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def table(n: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    x = rng.normal(size=n)
    return pd.DataFrame({"x": x, "y": 2 * x + rng.normal(size=n)})


def failure(arguments: list[str], capsys: Any) -> str:
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    error = capsys.readouterr().err
    assert "Traceback" not in error
    return error.splitlines()[-1]


def test_errors_of_the_system_have_no_number(here: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    table().to_csv("t.csv", index=False)

    def refuse(*_: Any, **__: Any) -> None:
        raise PermissionError(13, "Permission denied", "t.csv")

    monkeypatch.setattr(Path, "open", refuse)
    sentence = failure(["fit", "--data", "t.csv", "--target", "y", "--out", "m"], capsys)
    assert sentence.endswith("error: t.csv cannot be used: permission denied.")


@pytest.mark.parametrize(
    ("change", "options"),
    [
        (lambda frame: frame.assign(x=np.where(frame.index == 50, "word", frame.x.astype(str))), []),
        (lambda frame: frame.assign(w=-1.0), ["--weight", "w"]),
        (lambda frame: frame, ["--cv", "0", "--lam", "-1"]),
    ],
)
def test_a_failed_fit_leaves_nothing(
    here: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch, change: Any, options: list[str]
) -> None:
    monkeypatch.setattr("admiss.tables.deciding.DECIDING_ROWS", 40)
    change(table()).to_csv("t.csv", index=False)
    failure(["fit", "--data", "t.csv", "--target", "y", *options, "--out", "m"], capsys)
    assert [path.name for path in here.iterdir()] == ["t.csv"]


def test_cells_that_begin_like_a_formula_are_escaped(here: Path) -> None:
    words = ["=1+1", "@SUM(A1)", "-5", "plain", "+x", "'=1"]
    frame = table().assign(word=[words[i % 6] for i in range(60)])
    frame.to_csv("t.csv", index=False)
    assert main(["fit", "--data", "t.csv", "--target", "y", "--drop", "word", "--cv", "0", "--out", "m"]) == 0
    for out in ("p.csv", "p.parquet"):
        assert main(["predict", "--model", "m", "--data", "t.csv", "--keep", "word", "--out", out]) == 0
    found = pd.read_csv("p.csv", dtype={"word": str})["word"].tolist()
    assert found[:6] == [escape_formula(word) for word in words] == ["'=1+1", "'@SUM(A1)", "-5", "plain", "'+x", "''=1"]
    assert pd.read_parquet("p.parquet")["word"].tolist()[:6] == words


def test_files_are_on_disk_before_they_replace_others(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events = []
    sync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda file: (events.append("sync"), sync(file))[1])
    monkeypatch.setattr(os, "replace", lambda *paths: (events.append("replace"), replace(*paths))[1])
    write_atomically(here / "file", b"content")
    assert events == ["sync", "replace"]
    table().to_csv("t.csv", index=False)
    assert main(["fit", "--data", "t.csv", "--target", "y", "--cv", "0", "--out", "m"]) == 0
    events.clear()
    assert main(["predict", "--model", "m", "--data", "t.csv", "--out", "p.parquet"]) == 0
    assert events == ["sync", "replace"]


def test_class_labels_are_fitted_in_memory_up_to_a_size(
    here: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = table(90)
    frame.assign(y=np.where(frame.y > 0, "yes", "no")).to_csv("t.csv", index=False)
    fit = ["fit", "--data", "t.csv", "--target", "y", "--cv", "0", "--out", "m"]
    assert main(fit) == 0
    assert "y has 2 classes" in " ".join(capsys.readouterr().out.split())
    assert main(["predict", "--model", "m", "--data", "t.csv", "--keep", "y", "--out", "p.csv"]) == 0
    found = pd.read_csv("p.csv")
    assert (found["prediction"] == found["y"]).mean() > 0.7
    monkeypatch.setattr("admiss.cli.fit.MOST_LABELLED", 50)
    assert "The target y has class labels, which are fitted in memory up to 50 rows" in failure(fit, capsys)
    assert "--workers is for targets that are numbers" in failure([*fit, "--workers", "2"], capsys)


def test_all_columns_that_are_absent_are_named(here: Path, capsys: Any) -> None:
    table().to_csv("t.csv", index=False)
    fit = ["fit", "--data", "t.csv", "--target", "z", "--drop", "u", "v", "--out", "m"]
    assert "t.csv has no columns z, u and v: it has x and y." in failure(fit, capsys)
