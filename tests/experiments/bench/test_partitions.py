"""The benchmarks of partitions on small workloads."""

import pytest

from experiments.__main__ import main
from experiments.bench import partitions


@pytest.mark.slow
def test_partitions_quickly(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(partitions, "in_new_process", lambda function: {**function(), "memory": 0.25})
    assert main(["bench", "partitions", "--quick", "--out", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    for words in ("exact tree, d = 8", "mixed-integer program", "exact logistic tree", "0.25 GB"):
        assert words in shown
    # two numbers of groups and one, three seeds each
    assert "| groups of 8 patterns, 2 to 3 groups, n = 200 | 6 of 6 proven" in shown
    assert "| groups of 10 patterns, 3 groups, n = 200 | 3 of 3 proven" in shown
    main(["bench", "partitions", "--quick", "--out", str(tmp_path)])
    assert "measuring" not in capsys.readouterr().out


def test_groups_are_the_same_for_a_seed():
    first, second = (partitions.groups_problem(6, 100, 2, 3) for _ in range(2))
    assert (first.gram == second.gram).all()
    assert len(first.rows) == 6
