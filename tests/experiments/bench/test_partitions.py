"""The benchmarks of partitions on small workloads."""

import pytest

from experiments.__main__ import main
from experiments.bench import records


@pytest.mark.slow
def test_partitions_quickly(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(records, "in_new_process", lambda function: {**function(), "memory": 0.25})
    assert main(["bench", "partitions", "--quick", "--out", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    for words in ("exact tree, d = 8", "mixed-integer program", "exact logistic tree", "0.25 GB"):
        assert words in shown
    main(["bench", "partitions", "--quick", "--out", str(tmp_path)])
    assert "measuring" not in capsys.readouterr().out
