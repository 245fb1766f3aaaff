"""The benchmark of row statistics, on few rows."""

import pytest

from experiments.__main__ import main


@pytest.mark.slow
def test_report(tmp_path, capsys):
    assert main(["bench", "streaming", "--quick", "--out", str(tmp_path)]) == 0
    report = capsys.readouterr().out
    for name in ("5 folds", "from statistics", "Ridge", "glum", "SGDRegressor"):
        assert name in report
