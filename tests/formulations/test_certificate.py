import math

from formulations.certificate import Certificate, total


def make(objective, bound, status="optimal"):
    return Certificate(objective, bound, status, "HIGHS", "1.8", 1.0)


def test_gap():
    assert make(3.0, 1.0).gap == 2.0
    assert make(4.0, 1.0).relative_gap == 0.75
    assert make(0.0, 0.0).relative_gap == 0.0
    assert make(0.0, -1.0).relative_gap == math.inf
    assert make(1.0, 1.0 + 1e-16).gap == 0.0


def test_total_adds_up_and_reports_what_is_not_proven():
    whole = total([make(3.0, 3.0), make(2.0, 1.0, "time limit")])
    assert (whole.objective, whole.bound, whole.status, whole.seconds) == (5.0, 4.0, "time limit", 2.0)
    assert total([make(3.0, 3.0), make(2.0, 2.0)]).status == "optimal"
