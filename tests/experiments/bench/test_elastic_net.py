"""The benchmark of penalised paths on small workloads, without and with peers."""

import json

import numpy as np
import pytest

from experiments.bench import elastic_net, peers
from experiments.bench.elastic_net import HEADER, Workload, measure, path_sums, report, table_row
from experiments.bench.peers import Adelie, Glmnet, GlmnetRs, PathProblem


def problems(count=4):
    rng = np.random.default_rng(0)
    A = rng.normal(size=(40, 5))
    y = np.where(A[:, 0] + rng.normal(size=40) > 0, 1.0, -1.0)
    return [PathProblem(0, A, y, np.ones(5), 0.5 + 0.1 * k, np.geomspace(0.3, 0.01, 6)) for k in range(count)]


def test_without_peers(monkeypatch):
    monkeypatch.setenv("ADELIE_PYTHON", "no-such-python")
    monkeypatch.setattr(peers.shutil, "which", lambda name: None)
    row = path_sums(problems())
    assert row["paths"] == 4
    assert 0 < row["admiss_slowest"] <= row["admiss"]
    assert "adelie not installed" in peers.python_peer_versions()
    cells = table_row({"name": "affine", "n": 40, "d": 5, **row})
    assert len(cells) == len(HEADER)
    assert cells.count("-") == 11


def test_a_path_that_a_peer_does_not_finish_is_counted(monkeypatch):
    class Peer:
        def loosest(self, guides):
            return 1e-7, 0.0, 1.0

        def seconds(self, sample, tolerance):
            return np.array([np.nan] + [1.0] * (len(sample) - 1))

    monkeypatch.setattr(elastic_net, "logistic_peers", lambda folder: {"adelie": Peer()})
    row = path_sums(problems())
    assert row["adelie"] == pytest.approx(3.0)
    assert row["adelie_unfinished"] == 1
    assert row["adelie_ratio"] > 3.0 / row["admiss"]


@pytest.mark.parametrize(
    ("peer", "loss"), [(Glmnet, "squared"), *((peer, "logistic") for peer in (Glmnet, Adelie, GlmnetRs))]
)
def test_a_peer_receives_the_problem_in_its_terms(tmp_path, monkeypatch, peer, loss):
    """A peer that returns the coefficients of admiss in its own units is exact at its loosest tolerance."""
    problem = problems(1)[0]
    engine = peer(tmp_path, loss)

    def command(jobs, tolerance, coefficients):
        A = np.fromfile(tmp_path / "A0.bin").reshape(jobs[0]["columns"], -1).T
        np.testing.assert_array_equal(A, problem.A)
        b, W = problem.fitted_by_engine(loss, 1e-9)
        if loss == "squared":
            b, W = (b - problem.y.mean()) / problem.y.std(), W / problem.y.std()
        np.column_stack([b, W]).tofile(tmp_path / "w0.bin")
        return ["echo", "0.5"]

    monkeypatch.setattr(engine, "command", command)
    tolerance, error, seconds = engine.loosest([problem])
    assert (tolerance, seconds) == (peer.tolerances[0], 0.5)
    assert error < 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_a_small_workload(loss, monkeypatch):
    monkeypatch.setattr(elastic_net.shutil, "which", lambda name: None)
    small = {"adaptive_penalties": (1.0, 4.0), "n_lambdas": 8, "pairs": 1, "cvxpy_points": 5}
    result = measure(Workload(loss, "affine intercept", 100, 10, **small))
    assert result["cvxpy_difference"] < 1e-6
    assert result["admiss"] < result["cvxpy"]
    assert "glmnet" not in result
    text = report([json.loads(json.dumps(result))])
    assert "glmnet not installed" in text
    assert f"| {loss} | affine intercept | 100 | 10 | 20 |" in text
