"""Numbers, dates and truth values in a column of text.

A notation reads a text or does not. The distinct texts of a column are offered to all notations, and the one that reads
the most is used (the first of several that read as many), provided that it reads every text, or nearly all of many: the
other words ("unknown", "<5") are then missing values. So a column that contains 31/12/2020 has its days first, and one
that contains 1,5 has decimal commas. A column of texts like 1,234, which may be either, has commas between thousands,
unless semicolons separate the columns of its file.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Literal

import numpy as np

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


@dataclass(frozen=True)
class Reading:
    """How texts are read as numbers.

    Parameters
    ----------
    kind : {"numbers", "truth", "dates", "hours"}
        Dates are days since 1970-01-01, times hours since midnight, truth values 0 and 1.
    notation : int
        Position among the notations of the kind.
    words : bool
        Whether other texts are missing values.
    are_digits : bool
        Whether the numbers are dates such as 20201231.
    """

    kind: Literal["numbers", "truth", "dates", "hours"] = "numbers"
    notation: int = 0
    words: bool = False
    are_digits: bool = False

    @property
    def is_date(self) -> bool:
        """Whether the values are days since 1970-01-01."""
        return self.kind == "dates" or self.are_digits

    def values(self, texts: Sequence[str | None]) -> tuple[FloatArray, list[str]]:
        """The numbers, NaN where there is none, and the texts that cannot be read.

        Examples
        --------
        >>> Reading(notation=3).values(["1.200,50", None, "x"])
        (array([1200.5,    nan,    nan]), ['x'])
        """
        distinct = dict.fromkeys(text for text in texts if text is not None)
        found = _read(_NOTATIONS[self.kind][self.notation], distinct)
        values = np.array([np.nan if text is None else found.get(text, np.nan) for text in texts])
        return values, [] if self.words else [text for text in distinct if text not in found]


def read_texts(
    texts: Sequence[str], *, decimal_comma: bool = False, strict: bool = False
) -> tuple[Reading, dict[str, float], dict[str, str]] | None:
    """Distinct texts as numbers, dates or truth values if they consist of them, with remarks on it, else None.

    Parameters
    ----------
    texts : sequence of str
        Distinct texts, none of which is missing.
    decimal_comma : bool
        Whether 1,234 is a number near one.
    strict : bool
        Whether every text must be read.

    Examples
    --------
    >>> read_texts(["1.200,50", "3,25"])[1]
    {'1.200,50': 1200.5, '3,25': 3.25}
    """
    for kind, notations in _NOTATIONS.items() if texts else ():
        best, found = 0, dict[str, float]()
        for number in (0, 1, 3, 2) if kind == "numbers" and decimal_comma else range(len(notations)):
            values = _read(notations[number], texts)
            if len(values) > len(found):
                best, found = number, values
            if len(found) == len(texts):
                break
        words = [text for text in texts if text not in found]
        few = kind == "truth" or strict or len(found) <= FEW_VALUES or len(words) > WORDS_SHARE * len(texts)
        if not words or not few:
            return Reading(kind, best, bool(words)), found, dict(_remarks(kind, found, words))
    return None


def _read(read: Reader, texts: Iterable[str]) -> dict[str, float]:
    """The texts that can be read, with their numbers."""
    return {text: value for text in texts if (value := read(text)) is not None}


def day_name(days: float) -> str:
    """The date of a number of days since 1970-01-01.

    Examples
    --------
    >>> day_name(-0.5), day_name(366)
    ('1969-12-31', '1971-01-02')
    """
    return str(np.datetime64(int(np.floor(days)), "D"))


def days_of_digits(values: FloatArray) -> FloatArray | None:
    """The days of whole numbers such as 20201231 if all are dates from 1900 to 2100, else None.

    Examples
    --------
    >>> days_of_digits(np.array([19700103.0, np.nan])), days_of_digits(np.array([20200230.0]))
    (array([ 2., nan]), None)
    """
    known = np.isfinite(values)
    digits = np.where(known, values, 19700101.0)
    if not known.any() or (digits != np.round(digits)).any() or digits.min() < 19000101 or digits.max() > 21001231:
        return None
    month, day = np.divmod(digits.astype(np.int64), 100)
    months = (month // 100 * 12 + month % 100 - (1970 * 12 + 1)).astype("datetime64[M]")
    days = months.astype("datetime64[D]") + (day - 1)
    of_a_year = (month % 100 >= 1) & (month % 100 <= 12)
    if not (of_a_year & (days.astype("datetime64[M]") == months)).all():
        return None
    return np.where(known, days.astype(float), np.nan)


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


def _truth(text: str) -> float | None:
    return {"true": 1.0, "false": 0.0}.get(text.casefold())


_NOTATIONS: dict[Literal["truth", "numbers", "dates", "hours"], list[Reader]] = {
    "truth": [_truth],
    "numbers": [
        plain_number,
        _signed_number,
        partial(_marked_number, _THOUSANDS, "."),
        partial(_marked_number, _DECIMAL_COMMA, ","),
    ],
    "dates": [partial(_day, pattern) for pattern in _DATES],
    "hours": [_hours],
}


def _remarks(kind: str, found: dict[str, float], words: list[str]) -> Iterable[tuple[str, str]]:
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
