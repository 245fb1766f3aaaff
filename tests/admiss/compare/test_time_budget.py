"""Shares of the time, and blocks that end when it is up."""

import signal
import threading
import time

import numpy as np
import pytest

from admiss.compare.time_budget import TimeBudget, TimeIsUpError, TimeLimit


def test_a_step_gets_its_share_of_what_is_left():
    budget = TimeBudget(100.0, [1, 1, 2])
    assert budget.share(1) == pytest.approx(25, abs=1)
    assert budget.share(1) == pytest.approx(100 / 3, abs=1)  # nothing was used
    assert budget.share(2) == pytest.approx(100, abs=1)
    many = TimeBudget(100.0, [1] * 50)
    assert many.share(1) == pytest.approx(25, abs=1)
    assert TimeBudget(0.0, [1]).share(1) == 0
    assert TimeBudget(None, [1]).share(1) is None


def limited(seconds, block):
    with TimeLimit(seconds):
        block()


def endless():
    while True:
        np.ones(10).sum()


def test_a_loop_is_ended():
    before, start = signal.getsignal(signal.SIGINT), time.monotonic()
    with pytest.raises(TimeIsUpError):
        limited(0.1, endless)
    assert time.monotonic() - start < 5
    assert signal.getsignal(signal.SIGINT) is before


def test_an_end_that_is_swallowed_is_repeated():
    swallowed = []

    def swallows():
        while True:
            try:
                endless()
            except TimeIsUpError:
                swallowed.append(time.monotonic())
                if len(swallowed) > 2:
                    raise

    with pytest.raises(TimeIsUpError):
        limited(0.05, swallows)
    assert len(swallowed) == 3


def test_an_end_inside_compiled_code_is_found_behind_another_error():
    def compiled():
        try:
            raise TimeIsUpError
        except TimeIsUpError as error:
            raise SystemError("returned a result with an exception set") from error

    with pytest.raises(TimeIsUpError):
        limited(10.0, compiled)


def test_in_time_nothing_happens():
    before = signal.getsignal(signal.SIGINT)
    for _ in range(200):
        with TimeLimit(100.0):
            pass
    with TimeLimit(None):
        pass
    assert signal.getsignal(signal.SIGINT) is before
    with pytest.raises(TimeIsUpError), TimeLimit(0.0):
        pytest.fail("no time is left")


def test_blocks_that_end_at_the_limit_leave_nothing_behind():
    before = signal.getsignal(signal.SIGINT)
    for k in range(60):
        try:
            with TimeLimit(0.003):
                end = time.monotonic() + 0.002 + 0.00003 * k
                while time.monotonic() < end:
                    pass
        except TimeIsUpError:
            pass
    time.sleep(0.05)
    assert signal.getsignal(signal.SIGINT) is before
    assert threading.active_count() < 20


def test_an_interrupt_by_the_user_stays_one():
    with pytest.raises(KeyboardInterrupt):
        limited(100.0, lambda: signal.raise_signal(signal.SIGINT))


def test_other_threads_are_not_interrupted():
    found = []

    def work():
        with TimeLimit(0.01):
            time.sleep(0.1)
        found.append("done")

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == ["done"]
