"""The benchmark of penalised paths on a small workload, without its optional peer."""

import json

import pytest

from experiments.__main__ import build_parser
from experiments.bench import elastic_net
from experiments.bench.elastic_net import Workload, measure, report


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


def test_help(capsys):
    with pytest.raises(SystemExit) as stop:
        build_parser().parse_args(["bench", "elastic-net", "--help"])
    assert stop.value.code == 0
    assert "--out" in capsys.readouterr().out
