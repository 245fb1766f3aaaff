"""The benchmark of the reallocation on small workloads."""

import pytest

from experiments.__main__ import main
from experiments.bench import adversary


@pytest.mark.slow
def test_adversary_quickly(tmp_path, capsys):
    assert main(["bench", "adversary", "--quick", "--out", str(tmp_path)]) == 0
    assert "| 200 | 50 |" in capsys.readouterr().out
    main(["bench", "adversary", "--quick", "--out", str(tmp_path)])
    assert "measuring" not in capsys.readouterr().out


def test_both_optima_are_the_same():
    row = adversary.measure(60, 7)
    assert row["difference"] < 1e-12
    assert row["gap"] < 1e-12
