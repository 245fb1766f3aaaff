"""The exact tree that ``admiss compare`` shows, by ``admiss fit`` and by Python: one model, equal predictions."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest

from admiss import FiniteRegressor
from admiss.cli.main import build_parser, main
from admiss.compare.setting import Setting
from admiss.partition import OptimalTree
from admiss.tables import read_table
from tests.admiss.tables.test_features import customers


@pytest.mark.parametrize("most_bytes", [None, 0])
def test_three_doors_to_one_tree(tmp_path, monkeypatch, capsys, most_bytes):
    """Also from the rows of each pattern, where sums over sets of many features would be too large."""
    if most_bytes is not None:
        monkeypatch.setattr("admiss.statistics.missing_sets.MOST_BYTES", most_bytes)
    monkeypatch.chdir(tmp_path)
    customers().to_csv("t.csv", sep=";", decimal=",", index=False)
    table = ["--data", "t.csv", "--target", "y", "--max-depth", "2", "--min-rows", "30"]
    alone = ["--test-share", "0", "--folds", "0", "--no-references", "--methods", "tree"]
    assert main(["compare", *table, *alone]) == 0
    assert main(["fit", *table, "--model", "tree", "--cv", "0", "--out", "m.joblib"]) == 0
    assert main(["predict", "--model", "m.joblib", "--data", "t.csv", "--out", "p.parquet"]) == 0
    read = read_table("t.csv", "y")
    model = FiniteRegressor(OptimalTree(2, min_rows=30)).fit(read.features(), read.y)
    (compared,) = json.loads((tmp_path / "admiss-compare.json").read_text())["comparisons"]
    assert model.n_leaves_ > 1
    assert compared["models"]["tree"] == model.to_text()
    assert compared["methods"][0]["cost"] == pytest.approx(model.certificate_.objective, rel=1e-12)
    predicted = pq.read_table("p.parquet")["prediction"].to_numpy()
    np.testing.assert_allclose(predicted, model.predict(read.features()), rtol=1e-9)


def test_defaults_of_trees_are_those_of_python():
    options = build_parser(["fit"]).parse_args(["fit", "--data", "t.csv", "--target", "y", "--out", "m"])
    assert (options.ridge, options.max_depth) == (FiniteRegressor().ridge, Setting().max_depth)
    assert (options.max_leaves, options.min_rows) == (Setting().max_leaves, Setting().min_rows)
