"""The benchmarks of partitions measure what they say, on small workloads."""

import numpy as np

from experiments.__main__ import main
from experiments.bench import partitions
from experiments.bench.records import in_new_process


def test_partitions_quickly(tmp_path, capsys):
    assert main(["bench", "partitions", "--quick", "--out", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    for words in ("exact tree, d = 8", "mixed-integer program", "exact logistic tree", "groups of 8 patterns", "GB"):
        assert words in shown
    assert "2 of 2 proven" in shown or "6 of 6 proven" in shown
    main(["bench", "partitions", "--quick", "--out", str(tmp_path)])
    assert "measuring" not in capsys.readouterr().out


def test_memory_is_that_of_the_process():
    small, large = in_new_process(_allocate, 1), in_new_process(_allocate, 10**8)
    assert 0.6 < large["memory"] - small["memory"] < 0.85


def _allocate(size):
    return {"total": float(np.ones(size).sum())}


def test_groups_are_the_same_for_a_seed():
    first, second = (partitions.groups_problem(6, 100, 2, 3) for _ in range(2))
    assert (first.gram == second.gram).all()
    assert len(first.rows) == 6
