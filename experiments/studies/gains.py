"""Values by unit of a study: on common units, their mean with its interval, and verdicts adjusted for their number."""

from collections.abc import Callable, Sequence

import numpy as np
import polars as pl

from admiss.estimates import LEVEL, Estimate, estimate, holm
from admiss.study.report.comparisons import BETTER, UNDECIDED, WORSE
from admiss.terminal.table import ABSENT, signed
from experiments.paper.claims import Measure, over_units

Values = dict[str, float]
Quantity = Callable[[pl.DataFrame], Values]


def difference(first: Values, second: Values) -> Values:
    """Differences on common units.

    Examples
    --------
    >>> difference({"a": 3.0, "b": 1.0}, {"a": 1.0})
    {'a': 2.0}
    """
    return {unit: first[unit] - second[unit] for unit in first if unit in second}


def mean_of(found: Sequence[Values]) -> Values:
    """Means of the units that all have.

    Examples
    --------
    >>> mean_of([{"a": 1.0, "b": 2.0}, {"a": 3.0}])
    {'a': 2.0}
    """
    common = [unit for unit in found[0] if all(unit in each for each in found)] if found else []
    return {unit: float(np.mean([each[unit] for each in found])) for unit in common}


def mean(values: Values) -> float | None:
    """Mean over units, None without any."""
    return float(np.mean(list(values.values()))) if values else None


def estimated(values: Values) -> Estimate | None:
    """Mean and interval over units, None without any."""
    return estimate(np.array(list(values.values()))) if values else None


def with_interval(each: Estimate | None, places: int = 3) -> list[str]:
    """Mean, low and high as text."""
    return [ABSENT] * 3 if each is None else [signed(number, places) for number in (each.mean, each.low, each.high)]


def adjusted(found: Sequence[Estimate | None]) -> list[float | None]:
    """The p values, adjusted together (Holm); None without a test."""
    p_values = {index: each.p for index, each in enumerate(found) if each is not None and each.p is not None}
    corrected = dict(zip(p_values, holm(list(p_values.values())), strict=True))
    return [corrected.get(index) for index in range(len(found))]


def verdict(each: Estimate, p: float | None, words: tuple[str, str] = (BETTER, WORSE)) -> str:
    """The first word for a gain, the second for a loss, if the adjusted p value is at most 5 %."""
    if p is None or p > 1 - LEVEL:
        return UNDECIDED
    return words[0] if each.mean > 0 else words[1]


def measure(quantity: Quantity) -> Measure:
    """The mean over units of a quantity, for a claim."""
    return lambda table: over_units(np.array(list(quantity(table).values())))
