"""The benchmark of groups: what it reports, and a run on small workloads."""

import pytest

from experiments.bench import groups, records


def test_the_report_compares_the_worst_search_with_its_bar(monkeypatch):
    monkeypatch.setattr(groups, "footer", lambda *names: "versions")
    row = {"groups": 3, "seed": 500, "seconds": 4.0, "gap": 0.0, "status": "optimal"}
    late = {**row, "seconds": 16.0}
    wide = {**row, "seconds": 59.0, "gap": 0.03, "status": "time limit"}
    size = {"n": 1500, "leaf_model": "affine_intercept", "memory": 0.5}
    measured = {
        "compilation": {"seconds": 9.0},
        "proven-30-1500": {**size, "patterns": 30, "rows": [row, {**row, "groups": 2}]},
        "proven-30-600": {**size, "patterns": 30, "rows": [row, late]},
        "limited-60-1500": {**size, "patterns": 60, "rows": [row, wide]},
        "limited-60-10000": {**size, "patterns": 60, "n": 10_000, "rows": [row, wide]},
        "limited-100-1500": {**size, "patterns": 100, "rows": [wide]},
    }
    lines = [line for line in groups.report(measured).splitlines() if line.startswith("| ")][2:]
    assert [line.split(" | ")[2] for line in lines] == [
        "10 s: met", "15 s: met", "15 s: missed", "5 %: met", "2 %: missed", "-",
    ]  # fmt: skip
    assert "| 30 patterns, 2 to 3 groups, n = 1,500, affine intercept | 2 of 2 proven, slowest 4.0 s |" in lines[1]
    assert "gaps 0, 3 %; 4 to 59 s" in lines[3]


@pytest.mark.slow
def test_groups_quickly(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "in_new_process", lambda function: {**function(), "memory": 0.25})
    shown = groups.run(tmp_path, quick=True, seeds=1)
    assert "| compilation | " in shown
    assert "| 8 patterns, 2 to 3 groups, n = 200, static | 2 of 2 proven" in shown
    assert "| 48 patterns, 3 groups, n = 200, affine intercept | gaps " in shown


def test_groups_are_the_same_for_a_seed():
    first, second = (groups.groups_problem(6, 100, 2, 3, "static") for _ in range(2))
    assert (first.gram == second.gram).all()
    assert len(first.rows) == 6


def test_few_patterns_are_compared_with_the_program_over_subsets():
    record = groups.solved(6, 100, "static", (2,), 10.0, 1)
    assert record["rows"][0]["difference"] < 1e-9
    assert "dynamic program over subsets" in groups.report({"proven-6-100-static": {**record, "memory": 0.5}})
