"""Numbers, dates and truth values in a column of text.

A notation reads a text or does not. The distinct texts of a column are offered to all notations, and the one that reads
the most is used (the first of several that read as many), provided that it reads every text, or nearly all of many: the
other words ("unknown", "<5") are then missing values. So a column that contains 31/12/2020 has its days first, and one
that contains 1,5 has decimal commas. A column of texts like 1,234, which may be either, has commas between thousands,
unless semicolons separate the columns of its file.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial

import numpy as np

from admiss.tables.column import Column
from formulations.arrays import FloatArray

# Words beside more than this number of distinct numbers or dates are missing values, if they are at most this share of
# the distinct texts.
FEW_VALUES = 10
WORDS_SHARE = 0.1
# Longer whole numbers are codes: as floating-point numbers, different ones may be equal.
MOST_DIGITS = np.finfo(float).precision

Reader = Callable[[str], float | None]

_SIGNS = re.compile("[$€£¥%]")
_THOUSANDS = re.compile(r"[+-]?([1-9]\d{0,2}([, '\u2019]\d{3})+|\d+)(\.\d*)?")
_DECIMAL_COMMA = re.compile(r"[+-]?([1-9]\d{0,2}([. '\u2019]\d{3})+|\d+)(,\d*)?")
_CLOCK = r"(?P<hour>\d{1,2}):(?P<minute>\d{2})(:(?P<second>\d{2}([.,]\d+)?))?( ?(?P<half>[ap])\.?m\.?)?"
_ZONE = r"( ?(Z|UTC|GMT|(?P<zone>[+-]\d{2}(:?\d{2})?)))?"
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_NAMED_MONTH = rf"(?P<month>({'|'.join(_MONTHS)})[a-z]*)"
_YEAR = r"(?P<year>\d{4}|\d{2})"
_TIME = re.compile(_CLOCK, re.IGNORECASE)
_DATES = tuple(
    re.compile(rf"{date}((T|,? ){_CLOCK}{_ZONE})?", re.IGNORECASE)
    for date in (
        r"(?P<year>\d{4})(?P<mark>[-/.])(?P<month>\d{1,2})(?P=mark)(?P<day>\d{1,2})",
        r"(?P<year>\d{4})[-/](?P<month>\d{2})",
        rf"(?P<day>\d{{1,2}})(?P<mark>[-.])(?P<month>\d{{1,2}})(?P=mark){_YEAR}",
        rf"(?P<month>\d{{1,2}})(?P<mark>[-/])(?P<day>\d{{1,2}})(?P=mark){_YEAR}",
        rf"(?P<day>\d{{1,2}})/(?P<month>\d{{1,2}})/{_YEAR}",
        rf"(?P<day>\d{{1,2}})[-/. ]{_NAMED_MONTH}[-/., ]{{1,2}}{_YEAR}",
        rf"{_NAMED_MONTH}\.? (?P<day>\d{{1,2}}),? (?P<year>\d{{4}})",
    )
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def read_text(column: Column, *, decimal_comma: bool = False, strict: bool = False) -> Column:
    """A column of text as numbers, dates or truth values if it consists of them, else as it is.

    Parameters
    ----------
    column : Column
    decimal_comma : bool
        Whether 1,234 is a number near one.
    strict : bool
        Whether every text must be read.

    Examples
    --------
    >>> from admiss.tables.column import text_column
    >>> read_text(text_column("price", ["1.200,50", "?", "3,25"])).numbers.tolist()
    [1200.5, nan, 3.25]
    """
    if column.kind != "text" or not any(column.texts):
        return column
    numbers = _plain_numbers(column.texts)
    if numbers is not None:
        return replace(column, kind="numbers", numbers=numbers, texts=[])
    texts = list(dict.fromkeys(text for text in column.texts if text is not None))
    if all(text.casefold() in ("true", "false") for text in texts):
        truth = {text: float(text.casefold() == "true") for text in texts}
        return replace(column, kind="truth", numbers=_values(column, truth), texts=[])
    other = [partial(_marked_number, _THOUSANDS, "."), partial(_marked_number, _DECIMAL_COMMA, ",")]
    kinds: dict[str, Iterable[Reader]] = {
        "numbers": [plain_number, _signed_number, *(reversed(other) if decimal_comma else other)],
        "dates": [partial(_day, pattern) for pattern in _DATES],
        "hours": [_hours],
    }
    for kind, notations in kinds.items():
        found = _most_read(notations, texts)
        words = [text for text in texts if text not in found]
        if not words or (not strict and len(found) > FEW_VALUES and len(words) <= WORDS_SHARE * len(texts)):
            remarks = tuple(_remarks(kind, found, words))
            return replace(
                column,
                kind="dates" if kind == "dates" else "numbers",
                numbers=_values(column, found),
                texts=[],
                remarks=remarks,
            )
    return column


def day_name(days: float) -> str:
    """The date of a number of days since 1970-01-01.

    Examples
    --------
    >>> day_name(-0.5), day_name(366)
    ('1969-12-31', '1971-01-02')
    """
    return str(np.datetime64(int(np.floor(days)), "D"))


def dates_without_marks(column: Column) -> Column:
    """A column of many whole numbers that are all dates, such as 20201231, as dates; any other one as it is."""
    values = np.unique(column.numbers[column.observed]) if column.kind == "numbers" else np.empty(0)
    if len(values) <= FEW_VALUES or values[0] < 19000101 or values[-1] > 21001231:
        return column
    days = {}
    for value in values.tolist():
        number = f"{value:.0f}"
        day = _day(_DATES[0], f"{number[:4]}-{number[4:6]}-{number[6:]}")
        if day is None or value != int(value):
            return column
        days[value] = day
    numbers = np.array([days.get(value, np.nan) for value in column.numbers.tolist()])
    example = f"{values[0]:.0f} is {day_name(days[values[0]])}"
    return replace(column, kind="dates", numbers=numbers, remarks=(*column.remarks, ("dates", example)))


def plain_number(text: str) -> float | None:
    """A number in the notation of programs.

    Examples
    --------
    >>> plain_number("-1.5e3"), plain_number("1_000"), plain_number("12345678901234567890")
    (-1500.0, None, None)
    """
    if "_" in text or (len(text) > MOST_DIGITS and text.lstrip("+-").isdecimal()):
        return None
    try:
        return float(text)
    except ValueError:
        return None


def _plain_numbers(texts: list[str | None]) -> FloatArray | None:
    """All numbers at once if every text is plain, else None."""
    try:
        numbers = np.array([np.nan if text is None else float(text) for text in texts])
    except ValueError:
        return None
    large = np.abs(numbers[np.isfinite(numbers)]).max(initial=0) >= 10.0**MOST_DIGITS
    return None if large or "_" in "".join(filter(None, texts)) else numbers


def _marked_number(pattern: re.Pattern[str], point: str, text: str) -> float | None:
    """A number with marks between thousands or a decimal comma, perhaps with a sign such as % or €."""
    number = _SIGNS.sub("", text).strip()
    if not pattern.fullmatch(number):
        return None
    marks = "".join("." if mark == point else mark for mark in number if mark in f"{point}+-" or mark.isdecimal())
    return plain_number(marks)


def _signed_number(text: str) -> float | None:
    """A number with a sign such as % or €."""
    return plain_number(_SIGNS.sub("", text).strip())


def _day(pattern: re.Pattern[str], text: str) -> float | None:
    """Days from 1970-01-01 to a date, in UTC if it has a time zone."""
    match = pattern.fullmatch(text)
    if match is None:
        return None
    part = match.groupdict()
    year, month = int(part["year"]), part["month"].casefold()
    if len(part["year"]) == 2:
        year += 2000 if year < 69 else 1900
    try:
        number = int(month) if month.isdecimal() else _MONTHS.index(month[:3]) + 1
        midnight = datetime(year, number, int(part.get("day") or 1), tzinfo=UTC)
    except ValueError:
        return None
    hours = _hours_of(match) if part["hour"] else 0.0
    if hours is None:
        return None
    zone = (part["zone"] or "+00").replace(":", "")
    ahead = (int(zone[1:3]) + int(zone[3:] or 0) / 60) * (-1 if zone[0] == "-" else 1)
    return (midnight - _EPOCH) / timedelta(days=1) + (hours - ahead) / 24


def _hours(text: str) -> float | None:
    """Hours from midnight to a time of the day."""
    match = _TIME.fullmatch(text)
    return None if match is None else _hours_of(match)


def _hours_of(match: re.Match[str]) -> float | None:
    hour, minute = int(match["hour"]), int(match["minute"])
    second = float((match["second"] or "0").replace(",", "."))
    if match["half"]:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + 12 * (match["half"] in "pP")
    return hour + minute / 60 + second / 3600 if hour <= 24 and minute < 60 and second <= 60 else None


def _most_read(notations: Iterable[Reader], texts: list[str]) -> dict[str, float]:
    """The values of the notation that reads the most texts."""
    best: dict[str, float] = {}
    for read in notations:
        found = {text: value for text in texts if (value := read(text)) is not None}
        if len(found) > len(best):
            best = found
        if len(best) == len(texts):
            break
    return best


def _remarks(kind: str, found: Mapping[str, float], words: list[str]) -> Iterable[tuple[str, str]]:
    """Notes on how numbers were read."""
    marked = next((text for text in found if plain_number(text) is None), None)
    if kind == "hours":
        yield "hours", ""
    elif kind == "dates":
        other = next((text for text in found if not _DATES[0].fullmatch(text)), None)
        if other is not None:
            yield "dates", f"{other} is {day_name(found[other])}"
    elif kind == "numbers" and marked is not None:
        yield "notation", f"{marked} is {found[marked]:.15g}"
    if words:
        shown = ", ".join(repr(word[:20]) for word in words[:3])
        yield "words", f"{shown}, .." if len(words) > 3 else shown


def _values(column: Column, found: Mapping[str, float]) -> FloatArray:
    return np.array([np.nan if text is None else found.get(text, np.nan) for text in column.texts])
