"""The benchmark of the stack on a small workload."""

import json

import pytest

from experiments.bench import records
from experiments.bench import stack as bench


@pytest.mark.slow
def test_stack_quickly(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "in_new_process", lambda function: function())
    report = bench.run(tmp_path, quick=True, repeats=1)
    assert report.count("| mcar | 200 |") == 1
    record = json.loads((tmp_path / "mcar-200-0.3.json").read_text())
    assert record["stack"] > record["laws"] > 0
