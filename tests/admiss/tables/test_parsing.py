"""Numbers and dates in text."""

import datetime as dt

import numpy as np
import pytest

from admiss.tables import MISSING_WORDS, read_table

N = 60


@pytest.mark.parametrize(
    "written",
    [
        "%Y-%m-%d", "%Y/%m/%d", "%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%d-%m-%Y", "%d.%m.%y", "%m/%d/%y", "%d %b %Y",
        "%d-%b-%y", "%B %d, %Y", "%Y%m%d", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S.%f", "%Y-%m-%dT%H:%MZ",
        "%Y-%m-%d %H:%M:%S+00:00", "%d/%m/%Y %I:%M %p", "%Y-%m-%d %H:%M:%S UTC",
    ],
)  # fmt: skip
def test_dates(read, note, written):
    rng = np.random.default_rng(1)
    minutes = rng.integers(0, 3_000_000, N)
    moments = [dt.datetime(2018, 3, 5) + dt.timedelta(minutes=int(m)) for m in minutes]
    column = [moment.strftime(written) for moment in moments]
    column[3], column[7] = " NA ", ""
    table = read({"x": column})
    day = np.array([(dt.datetime(m.year, m.month, m.day) - dt.datetime(1970, 1, 1)).days for m in moments], float)
    exact = day + np.array([(m.hour * 60 + m.minute) / 1440 for m in moments]) * ("%M" in written)
    exact[[3, 7]] = np.nan
    np.testing.assert_allclose(table.X[:, 0], exact - np.floor(np.nanmin(exact)), atol=1e-9)
    assert "x (since 20" in note(table, "Dates are used as days")


def test_time_zones_and_times_of_the_day(read, note):
    table = read({"x": ("2020-01-01 12:00+02:00", "2020-01-01T10:00Z", "2020-01-01 05:30 -0430", "2020-01-02")})
    np.testing.assert_allclose(table.X[:4, 0], [10 / 24, 10 / 24, 10 / 24, 1], atol=1e-9)
    hours = read({"x": ("09:30", "12:15 PM", "12:30 am", "23:59:60")})
    np.testing.assert_allclose(hours.X[:4, 0], [9.5, 12.25, 0.5, 24])
    note(hours, "Times are used as hours: x; --drop x leaves it out")


@pytest.mark.parametrize(("first", "read_as"), [("1/2/2020", "2020-01-02"), ("13/2/2020", "2020-02-13")])
def test_the_order_of_day_and_month_is_said(read, note, first, read_as):
    assert f"{first} is {read_as}" in note(read({"x": (first, "3/4/2020", "5/6/2021")}), "Dates")


@pytest.mark.parametrize(
    "texts",
    [
        ("2020-13-01", "2020-01-32"), ("12-12", "1-2"), ("1.2.3", "4.5.6"), ("31/02/2020", "1/1/2020"),
        ("25:00", "1:00"), ("13:00 pm", "1:00 pm"), ("0x10", "0x11"), ("1_000", "2_000"), ("1,23,456", "2,34"),
        ("A1", "B2"), ("1/2", "3/4"),
    ],
)  # fmt: skip
def test_text_that_is_neither(read, texts):
    assert read({"x": texts}).names == [f"x={max(texts)}"]


@pytest.mark.parametrize("missing", [*MISSING_WORDS, "  ", " na ", "n/a", "NAN", "Null"])
def test_missing_words(read, missing):
    table = read({"a": (1.5, missing, 3), "b": ("u", missing, "v"), "c": ("2020-01-01", missing, "2020-01-03")})
    assert table.names == ["a", "b=v", "c"]
    np.testing.assert_array_equal(table.X[:3], [[1.5, 0, 0], [np.nan] * 3, [3, 1, 2]])
    assert not any("'" in text for text in table.notes)


@pytest.mark.parametrize(
    ("texts", "numbers"),
    [
        (("1,5", "-2", "3,25"), (1.5, -2, 3.25)),
        (("1,234", "12", "1,234,567.5"), (1234, 12, 1234567.5)),
        (("1.234,5", "12", "1.234.567"), (1234.5, 12, 1234567)),
        (("1 234", "12", "5"), (1234, 12, 5)),
        (("1'234.5", "12", "5"), (1234.5, 12, 5)),
        (("0,123", "0,234", "5"), (0.123, 0.234, 5)),
        (("12 %", "3.5%", "5%"), (12, 3.5, 5)),
        (("$1,200.50", "-$3", "€ 7"), (1200.5, -3, 7)),
    ],
)  # fmt: skip
def test_numbers_in_other_notations(read, write, note, texts, numbers):
    table = read({"a": texts})
    np.testing.assert_array_equal(table.X[:3, 0], numbers)
    first = next(text for text, number in zip(texts, numbers, strict=True) if text != f"{number:g}")
    assert f"a ({first} is {numbers[texts.index(first)]:.15g}); --drop a" in note(table, "another notation")
    np.testing.assert_array_equal(read_table(write({"t": texts}), "t", task="regression", keep=["y"]).y[:3], numbers)


def test_a_comma_is_decimal_in_files_with_semicolons(write):
    texts = ("1,234", "5,678")
    assert read_table(write({"a": texts}), "y").X[0, 0] == 1234
    assert read_table(write({"a": texts}, sep=";"), "y").X[0, 0] == 1.234
    assert read_table(write({"a": (1.25, 5.5)}, sep=";", decimal=","), "y").X[0, 0] == 1.25


def test_other_words_among_many_numbers(read, write, note):
    texts = ["unknown" if i % 3 == 0 else "<5" if i == 1 else str(i / 4) for i in range(N)]
    table = read({"a": texts})
    assert np.isnan(table.X[:, 0]).sum() == 21
    assert "a ('unknown', '<5'); --drop a" in note(table, "Words among numbers or dates are treated as missing")
    assert len(read({"a": ("1", "2", "3", "unknown")}).names) == 4  # few numbers may be codes
    assert len(read({"a": [f"{i}a" if i % 2 else str(i) for i in range(N)], "b": (1, 2.5)}).names) == 1
    with pytest.raises(ValueError, match="not a column of numbers"):
        read_table(write({"a": texts}), "a", task="regression", keep=["y"])
