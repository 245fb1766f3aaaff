"""admiss compare: the table, the verdict, the files, and your own data."""

import json
import sys

import numpy as np
import pandas as pd
import pytest

import admiss.cli.user_table
from admiss.cli.main import main
from admiss.cli.user_table import read_table
from admiss.compare.partitions import METHODS, Setting, compare_partitions
from admiss.datasets import make_interacting, make_synthetic


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_default_comparison(here, capsys):
    assert main(["compare", "--rows", "400", "--folds", "3"]) == 0
    shown = capsys.readouterr().out
    assert "interacting patterns: 400 training rows, 10 features, 50% missing" in shown
    assert "MCAR as in the paper" in shown
    for words in ("method", "leaves", "cost", "bound", "gap %", "seconds", "R2 cv", "R2 test", "optimal"):
        assert words in shown
    assert "above the optimum" in shown
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


def test_every_method_by_name():
    data = make_interacting(n=80, d=4, n_test=200, random_state=0)
    setting = Setting(max_depth=2, max_leaves=3, folds=0, min_rows=15, time_limit=20)
    methods = tuple(name for name in METHODS if name != "split-assign")
    compared = compare_partitions(
        data.X_train, data.y_train, data.X_test, data.y_test, methods=methods, setting=setting
    )
    cost = dict(zip(compared.table["method"], compared.table["cost"], strict=True))
    assert cost["groups"] <= cost["boxes"] <= cost["tree"] <= cost["greedy"] <= cost["none"]
    assert cost["tree-mio"] == pytest.approx(cost["tree"], rel=1e-9)
    assert "cv_R2" not in compared.table
    absolute = Setting(max_depth=2, max_leaves=3, folds=0, min_rows=15, loss="absolute", ridge=0.0)
    textbook = compare_partitions(
        data.X_train, data.y_train, methods=("greedy", "tree", "split-assign"), setting=absolute
    ).table
    assert textbook["cost"][2] == pytest.approx(textbook["cost"][1], rel=1e-6)
    assert "test_R2" not in textbook


def test_the_verdict_says_what_came_out():
    data = make_synthetic(n=300, d=4, rank=3, n_active=3, random_state=0)
    one = compare_partitions(data.X_train, data.y_train, setting=Setting(max_depth=1, folds=0))
    assert one.verdict() == "Greedy found the optimal tree."
    assert compare_partitions(data.X_train, data.y_train, methods=("none",), setting=Setting(folds=0)).verdict() == ""
    stopped = compare_partitions(data.X_train, data.y_train, setting=Setting(folds=0, time_limit=0.0))
    assert "not proven optimal (time limit)" in stopped.verdict()
    assert "optimum" not in stopped.curves


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("backend", ["polars", "pandas"])
def test_your_own_file(here, capsys, monkeypatch, ending, backend):
    monkeypatch.setattr(admiss.cli.user_table, "BACKENDS", (backend,))
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
    assert main([*options, "--folds", "0"]) == 0
    shown = capsys.readouterr().out
    assert "houses." in shown
    assert "222 training rows, 6 features" in shown
    assert "town is left out" in shown
    assert "3 rows without price are left out" in shown
    text = json.loads((here / "found.json").read_text())["comparisons"][0]["models"]["tree"]
    assert "age is missing" in text or "height is missing" in text


def test_text_columns_are_encoded(here):
    pd.DataFrame({"a": ["x", None, "y", "z"], "b": [1.0, np.inf, None, 2.0], "y": [1, 2, 3, 4]}).to_csv(
        "t.csv", index=False
    )
    table = read_table("t.csv", "y")
    assert table.names == ["a=x", "a=y", "a=z", "b"]
    np.testing.assert_array_equal(table.X[:, 0], [1, np.nan, 0, 0])
    np.testing.assert_array_equal(table.X[:, 3], [1, np.nan, np.nan, 2])


def test_oddities_of_files(here, capsys):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(120, 4)), columns=["a $^$", "b", "c", "y"])
    frame.loc[rng.uniform(size=120) < 0.4, "a $^$"] = np.nan
    frame.loc[rng.uniform(size=120) < 0.4, "b"] = np.nan
    frame.loc[3, "c"] = np.inf
    frame.to_csv("s.csv", sep=";", index=False)
    options = ["compare", "--data", "s.csv", "--target", "y", "--min-rows", "80", "--max-depth", "1"]
    assert main(options) == 0
    assert "1 infinite values of c are treated as missing" in capsys.readouterr().out
    assert main([*options[:5], "--methods", "boxes", "groups", "--max-leaves", "2", "--folds", "0"]) == 0
    frame.assign(y=1.0).to_csv("constant.csv", index=False)
    assert main(["compare", "--data", "constant.csv", "--target", "y", "--max-depth", "2"]) == 0
    shown = capsys.readouterr().out
    assert "nan %" not in shown
    assert "+nan" not in shown
    assert "Greedy found the optimal tree." in shown


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--data", "nothing.csv", "--target", "y"], "There is no file nothing.csv"),
        (["--data", "t.csv", "--target", "q"], "has no column 'q': it has a, y"),
        (["--data", "t.csv", "--target", "a"], "not a column of numbers"),
        (["--data", "t.txt", "--target", "a"], "neither .csv nor .parquet"),
        (["--data", "t.csv"], "belong together"),
        (["--methods", "split-assign"], "--loss absolute --ridge 0"),
        (["--methods", "groups", "--loss", "absolute"], "groups needs --loss squared"),
        (["--max-depth", "0"], "max_depth must be"),
        (["--min-rows", "100000"], "more than the"),
        (["--folds", "1"], "--folds must be"),
        (["--test-share", "2"], "--test-share must be"),
        (["--ridge", "-1"], "ridge must be"),
        (["--out", "no/such/folder/x"], "no folder"),
        (["--out", "."], "must end with a name"),
    ],
)
def test_bad_options_are_one_sentence(here, capsys, options, words):
    pd.DataFrame({"a": ["u", "v"], "y": [1.0, 2.0]}).to_csv("t.csv", index=False)
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
    monkeypatch.setattr(admiss.cli.user_table, "BACKENDS", ())
    with pytest.raises(SystemExit):
        main(["compare", "--data", "t.csv", "--target", "y"])
    sentence = "error: Reading a file needs polars, pandas or pyarrow: run pip install 'admiss[files]'."
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
    assert "No space left" in shown.err
    assert (here / "admiss-compare.json").read_text() == "old"


def test_an_interrupt_keeps_what_is_there(monkeypatch):
    import admiss.partition.proof

    def interrupted(*arguments, **keywords):
        raise KeyboardInterrupt

    data = make_synthetic(n=300, d=4, rank=3, n_active=3, random_state=0)
    monkeypatch.setattr(admiss.partition.proof, "box_costs", interrupted)
    compared = compare_partitions(data.X_train, data.y_train, methods=("greedy", "tree", "none"))
    assert compared.table["method"].tolist() == ["greedy", "tree"]
    assert compared.table["status"][1] == "interrupted"
    assert compared.interrupted
    assert np.isfinite(compared.table["cv_R2"][0])
    assert np.isnan(compared.table["cv_R2"][1])


def test_help_is_enough(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["compare", "--help"])
    assert stop.value.code == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in METHODS)
    for option in ("--data", "--target", "--methods", "--max-depth", "--max-leaves", "--min-rows", "--ridge", "--out"):
        assert option in shown
    assert "example:" in shown
