"""Sums over paths of the logistic loss, without and with a peer."""

import sys

import numpy as np
import pytest

from experiments.bench import adelie, logistic_paths
from experiments.bench.logistic_paths import HEADER, path_sums, table_row
from experiments.bench.path_problem import PathProblem


def problems(count=4):
    rng = np.random.default_rng(0)
    A = rng.normal(size=(40, 5))
    y = np.where(A[:, 0] + rng.normal(size=40) > 0, 1.0, -1.0)
    return [PathProblem(0, A, y, np.ones(5), 0.5 + 0.1 * k, np.geomspace(0.3, 0.01, 6)) for k in range(count)]


def test_without_peers(monkeypatch):
    monkeypatch.setenv("ADELIE_PYTHON", "no-such-python")
    monkeypatch.setattr(logistic_paths.shutil, "which", lambda name: None)
    row = path_sums(problems())
    assert row["paths"] == 4
    assert 0 < row["admiss_slowest"] <= row["admiss"]
    assert "adelie not installed" in adelie.adelie_version()
    cells = table_row({"name": "affine", "n": 40, "d": 5, **row})
    assert len(cells) == len(HEADER)
    assert cells.count("-") == 7


def test_a_path_that_a_peer_does_not_finish_is_counted(monkeypatch):
    class Peer:
        def __init__(self, folder, python):
            pass

        def loosest(self, guides):
            return 1e-7, 0.0, 1.0

        def seconds(self, sample, tolerance):
            return np.array([np.nan] + [1.0] * (len(sample) - 1))

    monkeypatch.setattr(logistic_paths, "Adelie", Peer)
    monkeypatch.setattr(logistic_paths, "adelie_python", lambda: sys.executable)
    monkeypatch.setattr(logistic_paths.shutil, "which", lambda name: None)
    row = path_sums(problems())
    assert row["adelie"] == pytest.approx(3.0)
    assert row["adelie_unfinished"] == 1
    assert row["adelie_ratio"] > 3.0 / row["admiss"]
