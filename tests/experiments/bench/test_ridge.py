"""The benchmark of searches with ridge branches, on small workloads."""

import pytest

from experiments.__main__ import main


@pytest.mark.slow
def test_report(tmp_path, capsys):
    assert main(["bench", "ridge", "--quick", "--out", str(tmp_path)]) == 0
    report = capsys.readouterr().out
    for name in ("LassoCV", "LogisticRegressionCV", "JointImputeClassifier"):
        assert name in report
