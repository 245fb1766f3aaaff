import csv

import numpy as np
import pytest

from admiss.cli.main import main
from admiss.datasets import load_dataset


@pytest.mark.parametrize("width", [80, 200])
def test_list(capsys, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    assert main(["datasets"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:4] == ["name", "n", "d", "patterns"]
    assert len([line for line in lines if line]) == 64 + (width == 80)
    assert max(map(len, lines)) <= width - 2
    assert ("cautions" in lines[0].split()) == (width == 200)


def test_files_can_be_read_back(tmp_path, capsys):
    assert main(["datasets", "MASS-Pima.tr2", "car-Chile", "car-Davis", "--out", str(tmp_path / "new")]) == 0
    assert "300 rows, 7 features, binary: type is Yes" in capsys.readouterr().out
    for name in ("MASS-Pima.tr2", "car-Chile", "car-Davis"):
        data = load_dataset(name)
        with (tmp_path / "new" / f"{name}.csv").open(newline="") as file:
            header, *rows = csv.reader(file)
        assert header[: len(data.feature_names)] == data.feature_names
        X = np.array([[float(cell or "nan") for cell in row[: data.X.shape[1]]] for row in rows])
        np.testing.assert_array_equal(X, data.X)
        if data.y is None:
            assert len(header) == data.X.shape[1]
        else:
            assert [row[-1] for row in rows] == [str(value) for value in data.y]


def test_sentences(capsys, tmp_path, monkeypatch):
    for words, sentence in (
        (["mushrom"], "did you mean 'mushroom'"),
        (["--out", str(tmp_path)], "--out needs the names"),
    ):
        with pytest.raises(SystemExit):
            main(["datasets", *words])
        assert sentence in capsys.readouterr().err


def test_what_cannot_be_loaded_does_not_stop_the_rest(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("ADMISS_DATA", str(tmp_path))
    monkeypatch.setenv("ADMISS_CACHE", str(tmp_path))
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")
    monkeypatch.setattr("admiss.datasets.paper.storage.time.sleep", lambda seconds: None)
    with pytest.raises(SystemExit):
        main(["datasets", "mushroom", "car-Davis"])
    printed = capsys.readouterr()
    assert "Dataset car-Davis" in printed.out
    assert "mushroom could not be loaded: uci/mushroom/agaricus-lepiota.data is needed" in printed.out
    assert "1 of 2 could not be loaded: mushroom." in printed.err
