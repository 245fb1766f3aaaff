"""Every benchmark at its smallest workloads through the command, and records of measurements."""

import json

import numpy as np
import pytest

from experiments.__main__ import TOPICS, build_parser, main
from experiments.bench import adversary, joint, records

# Words of the report of each topic; those of elastic-net and groups have tests of their own.
WORDS = {
    "partitions": ("exact tree, d = 8", "mixed-integer program", "exact logistic tree", "0.25 GB"),
    "joint": ("plain / accelerated", "affine intercept by least squares", "| censoring | tree |", "Tuning a forest"),
    "waits": ("| FiniteRegressorCV, wide | 60 | 15 |", "| AdaptiveClassifierCV, long | 5000 | 5 |", "| linear |"),
    "adversary": ("| 200 | 50 |",),
    "streaming": ("5 folds", "from statistics", "Ridge", "glum", "SGDRegressor"),
    "intervals": ("| 200 | 10 |",),
    "streaming-files": ("plain scan", "one pass", "affine intercept", "exact tree of depth 4", "SGDRegressor", "glum"),
}


@pytest.mark.slow
@pytest.mark.parametrize("topic", WORDS)
def test_a_quick_run_is_reported(topic, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(records, "in_new_process", lambda function: {**function(), "memory": 0.25})
    scratch = ["--scratch", str(tmp_path / "scratch")] if topic == "streaming-files" else []
    assert main(["bench", topic, "--quick", "--out", str(tmp_path / "out"), *scratch]) == 0
    report = capsys.readouterr().out
    for words in WORDS[topic]:
        assert words in report
    assert not scratch or not list((tmp_path / "scratch").iterdir())
    measured = [json.loads(path.read_text()) for path in (tmp_path / "out").glob("*.json")]
    assert measured
    for record in measured:  # scores of forests read from one fit may differ a little, the choice does not
        assert record["same choice"] if "same choice" in record else (record.get("difference") or 0.0) < 1e-6


def test_every_topic_has_a_test_and_help(capsys):
    assert set(WORDS) | {"elastic-net", "groups"} == set(TOPICS)
    with pytest.raises(SystemExit) as stop:
        build_parser().parse_args(["bench", "elastic-net", "--help"])
    assert stop.value.code == 0
    assert "--out" in capsys.readouterr().out


def test_both_optima_are_the_same():
    row = adversary.measure(60, 7)
    assert row["difference"] < 1e-12
    assert row["gap"] < 1e-12


def test_a_grid_is_read_as_it_is_fitted():
    row = joint.forest_tuning(80, {"n_estimators": [3, 6], "max_depth": [1, 3]})
    assert (row["cells"], row["fits"], row["same choice"]) == (4, 6, True)
    assert row["difference"] < 1e-9


def test_finished_measurements_are_not_repeated(tmp_path):
    calls = []
    for _ in range(2):
        records.cached(tmp_path / "x.json", lambda: calls.append(1) or {"a": 1})
    assert len(calls) == 1
    assert json.loads((tmp_path / "x.json").read_text()) == {"a": 1}


def test_tables_of_a_report_are_stored(tmp_path):
    report = "\n".join(["words", records.table(["n", "s"], [["1,000", "~2.5"]], "last"), records.table(["a"], [["b"]])])
    records.write_tables(report, tmp_path, "topic")
    assert (tmp_path / "topic.csv").read_text() == 'n,s\n"1,000",~2.5\n'
    assert (tmp_path / "topic-2.csv").read_text() == "a\nb\n"


def test_memory_is_that_of_the_process():
    small, large = records.in_new_process(_allocate, 1), records.in_new_process(_allocate, 10**8)
    assert 0.6 < large["memory"] - small["memory"] < 0.85


def _allocate(size):
    return {"total": float(np.ones(size).sum())}
