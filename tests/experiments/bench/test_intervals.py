"""The benchmark of intervals on a small workload."""

import json

import pytest

from experiments.__main__ import main


@pytest.mark.slow
def test_intervals_quickly(tmp_path, capsys):
    assert main(["bench", "intervals", "--quick", "--out", str(tmp_path)]) == 0
    assert "| 200 | 10 |" in capsys.readouterr().out
    assert json.loads((tmp_path / "200-10.json").read_text())["difference"] < 1e-9
