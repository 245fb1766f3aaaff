"""The benchmark of the stack on a small workload."""

import json

import pytest

from experiments.bench import stack as bench


@pytest.mark.slow
def test_stack_quickly(tmp_path, monkeypatch):
    monkeypatch.setattr(bench, "in_new_process", lambda function, *arguments: function(*arguments))
    monkeypatch.setattr(bench, "REPEATS", 1)
    report = bench.run(tmp_path, quick=True)
    assert report.count("| mcar | 200 |") == 1
    record = json.loads((tmp_path / "mcar-200-0.3.json").read_text())
    assert record["stack"] > record["laws"] > 0
