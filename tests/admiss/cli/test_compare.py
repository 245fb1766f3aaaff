"""admiss compare: the table, the verdict, the files, and your own data."""

import json
import re
import sys

import numpy as np
import pandas as pd
import pytest

from admiss import FiniteRegressor
from admiss.cli.compare import _split
from admiss.cli.main import main
from admiss.datasets import make_interacting


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_default_comparison(here, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    assert main(["compare", "--rows", "400", "--folds", "3", "--min-rows", "22"]) == 0
    shown = capsys.readouterr().out
    assert "interacting patterns: 400 training rows, 10 features, 50% missing" in shown
    assert "MCAR as in the paper" in shown
    for words in ("method", "leaves", "cost", "bound", "above %", "seconds", "R2 cv", "R2 test", "optimal"):
        assert words in shown
    assert "above the optimum" in shown
    assert "In brackets: 95% intervals of the differences over folds" in shown.replace("\n", " ")
    assert shown.count("Within 1 % of the optimum:") == shown.count("Best number of leaves at a penalty per leaf:") == 2
    content = json.loads((here / "admiss-compare.json").read_text())
    first = content["comparisons"][0]
    by_method = {row["method"]: row for row in first["methods"]}
    assert by_method["tree"]["cost"] < by_method["greedy"]["cost"] < by_method["none"]["cost"]
    assert by_method["tree"]["test_R2"] > by_method["greedy"]["test_R2"]
    assert by_method["greedy"]["bound"] is None
    assert by_method["tree"]["bound"] is not None
    assert first["curves"]["optimum"][-1] == pytest.approx(by_method["tree"]["cost"], rel=1e-9)
    assert [part["percent"] for part in first["near_optimal"]["within"]] == [1, 2, 5]
    assert first["near_optimal"]["leaf_penalty"][0]["leaves"] == 1
    assert first["curves"]["greedy"][-1] == pytest.approx(by_method["greedy"]["cost"], rel=1e-9)
    picture = (here / "admiss-compare.png").read_bytes()
    assert picture[:4] == b"\x89PNG"
    assert len(picture) > 10_000
    assert sorted(path.name for path in here.iterdir()) == ["admiss-compare.json", "admiss-compare.png"]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_your_own_file(here, capsys, ending):
    data = make_interacting(n=300, d=5, random_state=0)
    frame = pd.DataFrame(data.X_train, columns=["age", "height", "c", "d", "e"])
    frame["price"] = data.y_train
    frame.loc[:2, "price"] = np.nan
    frame["kind"] = np.where(np.arange(300) % 3 == 0, None, np.where(np.arange(300) % 2, "new", "old"))
    frame["town"] = [f"town {i % 50}" for i in range(300)]
    if ending == "csv":
        frame.to_csv("houses.csv", index=False, na_rep="NA")
    else:
        frame.to_parquet("houses.parquet")
    options = ["compare", "--data", f"houses.{ending}", "--target", "price", "--max-depth", "2", "--out", "found"]
    assert main([*options, "--folds", "0", "--min-rows", "36"]) == 0
    shown = capsys.readouterr().out
    assert "houses." in shown
    assert "222 training rows, 17 features" in shown
    assert "town (10 of 50 values)" in shown
    assert "3 rows without price are left out" in shown
    text = json.loads((here / "found.json").read_text())["comparisons"][0]["models"]["tree"]
    leaf = "y = .* ([+-]) [0-9.]+ \\(c [+-] .*"  # the sign of the third column depends on the first two patterns
    lines = [re.sub(leaf, r"y \1 c", line.strip()) for line in text.splitlines()]
    inner = ["if height is missing:", "y {} c", "else:", "y {} c"]
    first, second = " ".join(inner).format("+", "-"), " ".join(inner).format("-", "+")
    assert " ".join(lines) == f"if age is missing: {first} else: {second}"


def test_oddities_of_files(here, capsys):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(120, 4)), columns=["a $^$", "b", "c", "y"])
    frame.loc[rng.uniform(size=120) < 0.4, "a $^$"] = np.nan
    frame.loc[rng.uniform(size=120) < 0.4, "b"] = np.nan
    frame.loc[3, "c"] = np.inf
    frame.to_csv("s.csv", sep=";", index=False)
    options = ["compare", "--data", "s.csv", "--target", "y", "--no-references", "--max-depth", "1"]
    assert main([*options, "--min-rows", "80"]) == 0
    assert "Infinite values are treated as missing: c (1)" in capsys.readouterr().out
    assert main([*options, "--methods", "boxes", "groups", "--max-leaves", "2", "--folds", "0"]) == 0


def test_classes_of_a_file(here, capsys):
    data = make_interacting(n=300, d=4, random_state=0)
    frame = pd.DataFrame(data.X_train, columns=["age", "height", "c", "d"])
    frame["kind"] = np.where(data.y_train > 1, "high", np.where(data.y_train < -1, "low", "middle"))
    frame.loc[:1, "kind"] = "odd"
    frame.to_csv("k.csv", index=False)
    options = ["compare", "--data", "k.csv", "--target", "kind", "--max-depth", "2", "--folds", "3"]
    assert main([*options, "--html", "k.html"]) == 0
    shown = capsys.readouterr().out
    assert "classification" in shown
    assert "225 training rows, 4 features, 50% missing; classes: high " in shown
    for words in ("log-loss cv", "AUC test", "accuracy cv", "mean+indicators+logistic", "HistGradientBoosting"):
        assert words in shown
    assert "R2" not in shown
    content = json.loads((here / "admiss-compare.json").read_text())["comparisons"][0]
    assert content["setting"]["task"] == "classification"
    assert all(0 <= row["cv_AUC"] <= 1 for row in content["methods"])
    assert list(content["references"]) == ["mean + indicators + logistic", "HistGradientBoosting"]
    assert "k.csv" in (here / "k.html").read_text()
    assert max(map(len, shown.splitlines())) <= 80
    assert all(name in shown for name in ("log-loss test", "accuracy test"))  # in a second block
    assert main([*options, "--no-references"]) == 0
    assert "HistGradientBoosting" not in capsys.readouterr().out


def test_test_rows_are_stratified_by_class():
    y = np.array(["a"] * 80 + ["b"] * 19 + ["c"])
    train, test = _split(y, "classification", 0.2, 0)
    assert (y[test] == "b").sum() == 4
    assert sorted([*train, *test]) == list(range(100))
    every = np.array([f"row {i}" for i in range(10)])
    assert len(_split(every, "classification", 0.3, 0)[1]) == 3
    assert len(_split(np.array(["a", "a", "b", "b"]), "classification", 0.25, 0)[1]) == 1
    with pytest.raises(ValueError, match="One row is too few"):
        _split(np.ones(1), "regression", 0.25, 0)


def test_numbers_as_the_estimators_take_them(here, capsys):
    options = ["compare", "--rows", "150", "--folds", "0", "--max-depth", "1", "--no-references", "--methods", "greedy"]
    assert main([*options, "--no-center", "--no-scale", "--loss", "quantile", "--ridge", "2"]) == 0
    setting = json.loads((here / "admiss-compare.json").read_text())["comparisons"][0]["setting"]
    assert (setting["center"], setting["scale"], setting["loss"], setting["ridge"]) == (False, False, "quantile", 2)
    assert main(options) == 0
    setting = json.loads((here / "admiss-compare.json").read_text())["comparisons"][0]["setting"]
    default = FiniteRegressor().get_params()
    shared = ("center", "scale", "loss", "ridge", "ridge_scale", "leaf_model")
    assert {name: setting[name] for name in shared} == {name: default[name] for name in shared}


def test_without_time_the_files_are_written(here, capsys):
    assert main(["compare", "--rows", "200", "--time-limit", "0", "--html", "page.html"]) == 0
    shown = capsys.readouterr().out
    assert shown.count("Not finished within the time limit of 0 s") == 2
    rows = json.loads((here / "admiss-compare.json").read_text())["comparisons"][0]["methods"]
    assert {row["status"] for row in rows} == {"time limit"}
    assert {row["cost"] for row in rows} == {None}
    assert (here / "page.html").exists()
    assert (here / "admiss-compare.png").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--data", "nothing.csv", "--target", "y"], "There are no CSV files at nothing.csv"),
        (["--data", "t.csv", "--target", "q"], "has no column 'q': it has a and y"),
        (["--data", "t.csv", "--target", "a"], "too many for classes"),
        (["--data", "constant.csv", "--target", "y"], "is 1 in every row: there is nothing to predict"),
        (["--data", "t.txt", "--target", "a"], "neither a CSV file"),
        (["--data", "t.csv"], "belong together"),
        (["--task", "classification"], "are for --data FILE"),
        (["--drop", "a"], "are for --data FILE"),
        (["--methods", "split-assign"], "use the absolute loss and ridge 0"),
        (["--loss", "poisson"], "invalid choice: 'poisson' (choose from 'squared', 'absolute', 'huber', 'quantile')"),
        (["--methods", "groups", "--loss", "absolute"], "groups needs the squared loss"),
        (["--time-limit", "-1"], "non-negative number of seconds"),
        (["--max-depth", "0"], "max_depth must be"),
        (["--min-rows", "100000"], "more than the"),
        (["--folds", "1"], "must be 0 or at least 2"),
        (["--data", "nothing.csv", "--target", "y", "--seed", "-1"], "seed must be from 0"),
        (["--test-share", "2"], "--test-share must be"),
        (["--ridge", "-1"], "ridge must be"),
        (["--out", "no/such/folder/x"], "no folder"),
        (["--out", "."], "must end with a name"),
        (["--html", "no/such/folder/x.html"], "no folder no/such/folder for --html"),
    ],
)
def test_bad_options_are_one_sentence(here, capsys, options, words):
    pd.DataFrame({"a": ["u", "v"], "y": [1.0, 2.0]}).to_csv("t.csv", index=False)
    (here / "constant.csv").write_text("a,y\n1,1\n2,1\n")
    (here / "t.txt").write_text("a\n1\n")
    with pytest.raises(SystemExit) as stop:
        main(["compare", *options])
    assert stop.value.code == 2
    assert words in capsys.readouterr().err


def test_without_matplotlib_the_picture_is_left_out_with_a_sentence(here, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    assert main(["compare", "--rows", "200", "--folds", "0", "--max-depth", "1"]) == 0
    assert "no picture: A figure needs matplotlib: run pip install 'admiss[plots]'." in capsys.readouterr().out
    assert not (here / "admiss-compare.png").exists()
    assert (here / "admiss-compare.json").exists()


def test_without_a_library_for_frames_one_sentence_says_so(here, monkeypatch, capsys):
    pd.DataFrame({"a": [1, 2], "y": [1.0, 2.0]}).to_csv("t.csv", index=False)
    monkeypatch.setitem(sys.modules, "pyarrow.csv", None)
    monkeypatch.delitem(sys.modules, "admiss.tables.csv_file", raising=False)
    with pytest.raises(SystemExit):
        main(["compare", "--data", "t.csv", "--target", "y"])
    sentence = "error: Reading a file needs pyarrow: run pip install 'admiss[files]'."
    assert sentence in capsys.readouterr().err


def test_a_full_disk_keeps_the_old_file(here, monkeypatch, capsys):
    (here / "admiss-compare.json").write_text("old")

    def full(descriptor, destination):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(SystemExit) as stop:
        main(["compare", "--rows", "200", "--folds", "0", "--max-depth", "1"])
    assert stop.value.code == 2
    shown = capsys.readouterr()
    assert "no space left" in shown.err
    assert (here / "admiss-compare.json").read_text() == "old"
