import math

import pytest

from formulations.certificate import SOLVERS_BOUND, Certificate, certify, clock, total


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


@pytest.mark.parametrize(
    ("objective", "bound", "tolerance", "rigorous", "status"),
    [
        (2.0, 2.0, 0.0, True, "optimal"),
        (2.0, 1.9, 0.1000001, True, "optimal"),
        (2.0, 1.9, 0.05, True, "time limit"),
        (2.0, 2.0, 0.1, False, SOLVERS_BOUND),
        (2.0, 1.5, 0.1, False, "time limit"),
        (2.0, 2.5, 0.1, True, "not proven: the bound contradicts the solution"),
        (math.nan, 0.0, 1.0, True, "not proven: the objective is not a finite number"),
        (math.inf, 0.0, math.inf, True, "not proven: the objective is not a finite number"),
        (5.0, 0.0, math.inf, True, "not proven: the objective is not a finite number"),
        (5.0, math.nan, 1.0, True, "not proven: the objective is not a finite number"),
    ],
)
def test_optimal_is_said_only_of_a_closed_gap(objective, bound, tolerance, rigorous, status):
    start = clock()
    found = certify(objective, bound, tolerance, "time limit", "", "", start, rigorous=rigorous)
    assert found.status == status
    assert not found.bound > objective
    assert found.bound == -math.inf or not status.startswith("not proven")
