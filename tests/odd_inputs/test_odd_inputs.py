"""Odd inputs: a fit with finite predictions that agree with themselves, or one clear sentence."""

import os
from collections.abc import Iterator

import pytest

from tests.odd_inputs.named import NAMED, run_named
from tests.odd_inputs.pool import Pool

BLOCK = 50
QUICK, SLOW = range(0, 250, BLOCK), range(1000, 2000, BLOCK)
# The seeds of the exhaustive run, as START:STOP, so that it can be continued.
START, STOP = map(int, os.environ.get("ADMISS_ODD_INPUTS", "0:10000").split(":"))


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool() as pool:
        yield pool


def check_block(pool, first, last):
    failed = [outcome for outcome in pool.outcomes(range(first, last)) if outcome.status == "failed"]
    assert not failed, "\n".join(map(str, failed))


@pytest.mark.parametrize("first", QUICK)
def test_hundreds(pool, first):
    check_block(pool, first, first + BLOCK)


@pytest.mark.slow
@pytest.mark.parametrize("first", SLOW)
def test_a_thousand(pool, first):
    check_block(pool, first, first + BLOCK)


@pytest.mark.exhaustive
@pytest.mark.parametrize("first", range(START, STOP, BLOCK))
def test_ten_thousand(pool, first):
    check_block(pool, first, min(first + BLOCK, STOP))


def test_named():
    with Pool(run=run_named) as pool:
        failed = [outcome for outcome in pool.outcomes(range(len(NAMED))) if outcome.status == "failed"]
    assert not failed, "\n".join(map(str, failed))
