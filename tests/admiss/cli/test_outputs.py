"""No command writes over a file that it reads, under whatever name, nor writes one file twice."""

import os
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from admiss.atomic_write import OverwriteError, check_outputs
from admiss.cli.main import main
from admiss.streaming import open_source, predict_to_parquet
from admiss.streaming.file_model import load_model
from tests.admiss.cli.test_study import empty_folder, flats  # noqa: F401
from tests.admiss.streaming.parquet_rows import make_rows, write_rows

X, Y = make_rows(120)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A CSV file with a symbolic and a hard link, a folder of Parquet files, and a model."""
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])]).assign(y=Y)
    frame.to_csv("d.csv", index=False)
    Path("soft.csv").symlink_to("d.csv")
    os.link("d.csv", "hard.csv")
    os.mkfifo("pipe")
    write_rows(tmp_path / "rows", X, Y, 2)
    Path("link").symlink_to("rows")
    return tmp_path


def fitted() -> None:
    assert main(["fit", "--data", "d.csv", "--target", "y", "--cv", "0", "--out", "model"]) == 0


def content(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


FIT = ["fit", "--target", "y", "--cv", "0"]
COMPARE = ["compare", "--target", "y", "--folds", "0", "--no-references"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([*FIT, "--data", "d.csv", "--out", "d.csv"], "--out d.csv is a file that is read (--data)"),
        ([*FIT, "--data", "d.csv", "--out", "soft.csv"], "--out soft.csv is a file that is read (--data)"),
        ([*FIT, "--data", "d.csv", "--out", "pipe"], "--out pipe is a device or a pipe"),
        ([*FIT, "--data", "soft.csv", "--out", "d.csv"], "--out d.csv is a file that is read (--data)"),
        ([*FIT, "--data", "d.csv", "--out", "hard.csv"], "--out hard.csv is a file that is read (--data)"),
        ([*FIT, "--data", "d*.csv", "--out", "hard.csv"], "--out hard.csv is a file that is read (--data)"),
        ([*FIT, "--data", "rows", "--out", "link/0001.parquet"], "is a file that is read (--data)"),
        ([*FIT, "--data", "rows/*.parquet", "--out", "rows/0000.parquet"], "is a file that is read (--data)"),
        (["predict", "--model", "model", "--data", "d.csv", "--out", "d.csv"], "is a file that is read (--data)"),
        (["predict", "--model", "model", "--data", "d.csv", "--out", "hard.csv"], "is a file that is read (--data)"),
        (["predict", "--model", "model", "--data", "d.csv", "--out", "model"], "--out model is a file that is read"),
        ([*COMPARE, "--data", "d.csv", "--html", "d.csv"], "--html d.csv is a file that is read (--data)"),
        ([*COMPARE, "--data", "soft.csv", "--html", "hard.csv"], "--html hard.csv is a file that is read (--data)"),
        ([*COMPARE, "--data", "rows", "--html", "rows/0000.parquet"], "is a file that is read (--data)"),
        ([*COMPARE, "--data", "d.csv", "--out", "a", "--html", "rows/../a.json"], "is the file that --out writes too"),
        (["compare", "--rows", "60", "--out", "a", "--html", "a.png"], "is the file that --out writes too"),
    ],
)
def test_outputs_that_are_inputs_are_refused_before_any_work(
    here: Path, capsys: Any, arguments: list[str], words: str
) -> None:
    if arguments[0] == "predict":
        fitted()
    before = content(here)
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    printed = capsys.readouterr()
    assert words in printed.err.splitlines()[-1]
    assert not printed.out
    assert content(here) == before


def test_predictions_in_python_do_not_replace_their_source(here: Path) -> None:
    fitted()
    model = load_model("model")
    before = content(here)
    for name in ("d.csv", "soft.csv", "hard.csv"):
        source = open_source("d.csv", schema=model.schema.without_target())
        with pytest.raises(OverwriteError, match=f"path {name} is a file that is read"):
            predict_to_parquet(model.estimator, source, name)
    assert content(here) == before


def test_other_files_of_a_folder_of_data_may_be_written_again(here: Path) -> None:
    for _ in range(2):
        assert main([*FIT, "--data", "rows", "--drop", "id", "--out", "rows/model.joblib"]) == 0


def test_raw_files_of_data_sets_are_not_replaced(here: Path, monkeypatch: Any, capsys: Any) -> None:
    raw = here / "raw" / "Davis.csv"
    raw.parent.mkdir()
    raw.write_text("raw")
    (here / "car-Davis.csv").symlink_to(raw)
    monkeypatch.setenv("ADMISS_DATA", str(raw.parent))
    with pytest.raises(SystemExit):
        main(["datasets", "car-Davis", "--out", "."])
    assert "car-Davis.csv is a file that is read (a raw file)" in capsys.readouterr().err
    assert raw.read_text() == "raw"


STUDY = """\
from pathlib import Path
from sklearn.tree import DecisionTreeRegressor
from admiss.study import CsvInstance, Study
TABLE = CsvInstance(Path(__file__).parent / 'flats.csv', target='price')
STUDY = Study('own_kept', instances=[TABLE], methods={'tree': DecisionTreeRegressor()})
"""


def test_reports_do_not_replace_what_a_study_reads(empty_folder: Path, capsys: Any) -> None:  # noqa: F811
    flats(empty_folder / "flats.csv")
    Path("own_kept.py").write_text(STUDY)
    assert main(["study", "run", "own_kept.py", "--workers", "1"]) == 0
    for path in ("flats.csv", "runs/own_kept/cells.sqlite"):
        os.link(path, f"hard-{Path(path).stem}.csv")
    Path("results").mkdir()
    Path("results", "README.md").symlink_to("../own_kept.py")
    before = {path: path.read_bytes() for path in (Path("own_kept.py"), Path("flats.csv"))}
    for arguments, words in (
        (["report", "own_kept.py", "--html", "flats.csv"], "(a table of the study)"),
        (["report", "own_kept.py", "--html", "own_kept.py"], "(a module that is in use)"),
        (["report", "own_kept.py", "--html", "runs/own_kept/cells.sqlite"], "(the store of the study)"),
        (["export", "own_kept.py", "flats.csv"], "(a table of the study)"),
        (["export", "own_kept.py", "hard-flats.csv"], "(a table of the study)"),
        (["export", "own_kept.py", "hard-cells.csv"], "(the store of the study)"),
        (["results", "own_kept.py", "results"], "(a module that is in use)"),
    ):
        capsys.readouterr()
        assert main(["study", *arguments]) == 2, arguments
        assert words in capsys.readouterr().err
    assert {path: path.read_bytes() for path in before} == before
    assert [path.name for path in Path("results").iterdir()] == ["README.md"]


def test_paths_without_files_are_compared_as_they_resolve(tmp_path: Path) -> None:
    (tmp_path / "later").symlink_to(tmp_path / "new")
    with pytest.raises(OverwriteError, match="is the file that --out writes too"):
        check_outputs([("--out", tmp_path / "new"), ("--html", tmp_path / "later")])
    with pytest.raises(OverwriteError, match="is a file that is read"):
        check_outputs([("--out", tmp_path / "later")], [("--data", tmp_path / "new")])
    check_outputs([("--out", tmp_path / "a"), ("--html", tmp_path / "b")], [("--data", tmp_path / "c")])
