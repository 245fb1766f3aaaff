"""The benchmark of joint impute-then-regress on small workloads."""

import pytest

from experiments.__main__ import main
from experiments.bench import joint, records


@pytest.mark.slow
def test_joint_quickly(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(records, "in_new_process", lambda function: function())
    assert main(["bench", "joint", "--quick", "--out", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    for words in (
        "plain / accelerated",
        "affine intercept by least squares",
        "| censoring | tree |",
        "Tuning a forest",
    ):
        assert words in shown
    main(["bench", "joint", "--quick", "--out", str(tmp_path)])
    assert "measuring" not in capsys.readouterr().out


def test_a_grid_is_read_as_it_is_fitted():
    row = joint.forest_tuning(80, {"n_estimators": [3, 6], "max_depth": [1, 3]})
    assert row["cells"] == 4
    assert row["fits"] == 6
    assert row["difference"] < 1e-9
    assert row["same choice"]
