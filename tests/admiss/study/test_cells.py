"""Outcomes of single cells: scores, failures, limits, deaths."""

import contextlib
import os
import threading
from collections.abc import Iterator

import numpy as np
import pytest
from toy_study import (
    Numbers,
    SlowToRead,
    dying,
    dying_once,
    forking,
    hungry,
    leaving,
    not_finite,
    printing,
    shifted_mean,
    silent_end,
    threads,
    wrong,
)

from admiss.study import pool
from admiss.study.plan import Cell, Method, origin
from admiss.study.pool import CellProcess, outcome_of
from admiss.study.worker import plain_scores


@pytest.fixture(scope="module")
def process() -> Iterator[CellProcess]:
    process = CellProcess(seconds=600, gigabytes=2)
    yield process
    process.close()


def cell(run, n=3, **parameters):
    return Cell(Numbers(n, 0), Method(run.__name__, run, parameters))


def test_scores_are_those_of_the_function(process):
    asked = cell(shifted_mean, shift=2.0)
    outcome = outcome_of(asked, process)
    expected = shifted_mean(asked.instance.make(), asked.seed, shift=2.0)
    assert outcome.status == "done"
    assert outcome.scores == {**expected, "mu": expected["mu"].tolist()}
    assert outcome.pid != os.getpid()
    assert set(outcome.origin) == {"version", "machine"}


def test_what_a_method_writes_into_rows_is_not_seen_by_the_next(process):
    first = outcome_of(cell(shifted_mean, shift=5.0), process).scores["score"]
    second = outcome_of(cell(shifted_mean, shift=5.0), process).scores["score"]
    assert first == second


def test_stray_prints_do_not_disturb(process):
    assert outcome_of(cell(printing), process).scores == {"score": 1.0, "seconds": 0.0}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on Windows")
def test_methods_may_fork_and_find_nothing_to_read():
    with contextlib.closing(CellProcess(seconds=60, gigabytes=2)) as process:
        outcome = outcome_of(cell(forking), process)
    assert (outcome.scores["score"], outcome.scores["read"]) == (3.0, "")


def test_a_worker_has_one_thread(process):
    assert outcome_of(cell(threads), process).scores["score"] == 1.0


@pytest.mark.parametrize(
    ("run", "reason"),
    [
        (wrong, "ValueError: this is wrong"),
        (not_finite, "ValueError: score is nan, not a finite number"),
        (leaving, "SystemExit: 3"),
        (dying, "the worker died (signal 9)"),
        (silent_end, "the worker died (exit code 7)"),
    ],
)
def test_failures_have_a_reason_and_no_number(process, run, reason):
    outcome = outcome_of(cell(run), process)
    assert (outcome.status, outcome.reason, outcome.scores) == ("failed", reason, {})
    assert outcome_of(cell(threads), process).status == "done"


def test_rows_that_cannot_be_made_fail_the_cell(process):
    outcome = outcome_of(cell(shifted_mean, n=0), process)
    assert outcome.reason == "ValueError: no numbers"
    assert "in make" in outcome.details


def test_a_method_that_cannot_be_sent_fails_the_cell(process):
    outcome = outcome_of(Cell(Numbers(3, 0), Method("lambda", lambda rows, seed: {"score": 1.0})), process)
    assert outcome.status == "failed"
    assert "cannot be sent" in outcome.reason


def test_a_worker_that_was_killed_is_replaced_and_the_cell_tried_again(process, tmp_path):
    before = outcome_of(cell(threads), process).scores["pid"]
    outcome = outcome_of(cell(dying_once, marker=str(tmp_path / "marker")), process)
    assert outcome.scores["score"] == 2.0
    assert outcome.pid != before


def test_another_thread_may_continue():
    process = CellProcess(seconds=600, gigabytes=2)
    outcomes = []
    try:
        for _ in range(2):
            thread = threading.Thread(target=lambda: outcomes.append(outcome_of(cell(shifted_mean), process)))
            thread.start()
            thread.join()
    finally:
        process.close()
    assert [outcome.status for outcome in outcomes] == ["done", "done"]


def test_memory_limit(process):
    outcome = outcome_of(cell(hungry, gigabytes=3), process)
    assert (outcome.status, outcome.reason) == ("failed", "memory limit of 2 GB")
    assert outcome_of(cell(hungry, gigabytes=0.1), process).scores["score"] == 1.0


def test_time_limit():
    process = CellProcess(seconds=1, gigabytes=4)
    try:
        outcome = outcome_of(cell(shifted_mean, pause=600.0), process)
        assert (outcome.status, outcome.reason) == ("failed", "time limit of 1 s")
        assert 1 <= outcome.elapsed < 300
        assert outcome_of(cell(shifted_mean), process).status == "done"
    finally:
        process.close()


def test_a_start_that_takes_too_long_is_not_a_time_limit(process, monkeypatch):
    slow = Cell(SlowToRead(600.0), Method("mean", shifted_mean))
    outcome_of(cell(threads), process)  # the process is there
    monkeypatch.setattr(pool, "START_SECONDS", 1.0)
    outcome = outcome_of(slow, process)
    assert (outcome.status, outcome.scores) == ("failed", {})
    assert outcome.reason == "start limit of 1 s: what the cell needs was not imported by then"


def test_failures_have_the_origin_and_the_dependencies_of_the_process(monkeypatch):
    monkeypatch.setattr(pool, "origin", lambda: {"version": "0", "machine": "here"})
    with contextlib.closing(CellProcess(seconds=600, gigabytes=2)) as process:
        dead, done = outcome_of(cell(dying), process), outcome_of(cell(threads), process)
    assert dead.reason == "the worker died (signal 9)"
    assert dead.origin == done.origin == origin()
    assert dead.dependencies == done.dependencies
    assert "toy_study.py" in done.dependencies


def test_scores_are_made_plain():
    scores = {"score": np.float64(0.5), "mu": np.array([1.0, np.inf]), "chosen": {"depth": np.int64(3)}, "none": None}
    assert plain_scores(scores) == {"score": 0.5, "mu": [1.0, None], "chosen": {"depth": 3}, "none": None}


@pytest.mark.parametrize(
    ("scores", "reason"),
    [
        (None, "returned NoneType instead of a dict"),
        ({}, "returned no score"),
        ({"score": None}, "score is None"),
        ({"score": "high"}, "score is 'high'"),
        ({"score": float("inf")}, "score is inf"),
        ({"score": True}, "score is True"),
        ({"score": 1.0, "cv_score": float("nan")}, "cv_score is nan"),
        ({"score": 1.0, "model": object()}, "model is of type object"),
    ],
)
def test_values_that_are_not_scores_are_refused(scores, reason):
    with pytest.raises(ValueError, match=reason):
        plain_scores(scores)
