"""Cached measurements, and measurements in new processes."""

import json

import numpy as np

from experiments.bench.records import cached, in_new_process


def test_finished_measurements_are_not_repeated(tmp_path):
    calls = []
    for _ in range(2):
        cached(tmp_path / "x.json", lambda: calls.append(1) or {"a": 1})
    assert len(calls) == 1
    assert json.loads((tmp_path / "x.json").read_text()) == {"a": 1}


def test_memory_is_that_of_the_process():
    small, large = in_new_process(_allocate, 1), in_new_process(_allocate, 10**8)
    assert 0.6 < large["memory"] - small["memory"] < 0.85


def _allocate(size):
    return {"total": float(np.ones(size).sum())}
