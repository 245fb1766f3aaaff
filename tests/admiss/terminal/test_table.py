"""Tables and sentences that fit a terminal."""

import pytest

from admiss.terminal.table import Table, aligned, table_width, wrapped

WIDE = Table(
    method=["greedy", "exact"], cost=[3575.52, 2211.49], bound=[float("nan"), 2211.49], status=["heuristic", "optimal"]
)


def widths(text):
    return [len(line) for line in text.splitlines()]


def test_a_table_that_fits_is_printed_whole():
    assert WIDE.within(80, optional=["bound"]) == repr(WIDE)


def test_optional_columns_are_left_out_first_and_named():
    whole = max(widths(repr(WIDE)))
    text = WIDE.within(whole - 1, optional=["bound", "cost"])
    assert text.splitlines()[0].split() == ["method", "cost", "status"]
    assert text.splitlines()[-1] == "(in a wider terminal also: bound)"


@pytest.mark.parametrize("width", [18, 24, 30])
def test_further_columns_are_below_beside_the_first_one(width):
    text = WIDE.within(width)
    assert max(widths(text)) <= width
    blocks = text.split("\n\n")
    assert [name for block in blocks for name in block.splitlines()[0].split()[1:]] == ["cost", "bound", "status"]
    assert all(block.splitlines()[1].startswith("greedy") for block in blocks)


def test_a_column_that_is_too_wide_is_printed_anyway():
    assert aligned({"name": ["x" * 30], "value": ["1"]}, {"value"}, width=10).count("x") == 30


def test_sentences_are_broken_between_words(monkeypatch):
    monkeypatch.setenv("COLUMNS", "20")
    assert table_width() == 18
    text = wrapped("cross-validation of the trees\n\nanother line")
    assert text.splitlines() == ["cross-validation of", "the trees", "", "another line"]
    assert wrapped("short") == "short"
