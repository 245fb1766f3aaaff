"""The claims of the paper, and their verdicts on a table of results.

A claim has a quantity g that is measured on units (signals in the synthetic study, data sets in the other), and a rule
that gives the values of g for which the claim is true:

    greater            g > 0
    at least           g >= -margin               (the paper says g >= 0, about)
    comparable         |g| <= margin              (the paper says g = 0, about)
    2 to 10 %          .02 <= g <= .10

The verdict comes from the 95 % interval g - t s, g + t s, with s the standard error over units and t the quantile of
Student's distribution with units - 1 degrees of freedom (Welch's if two strata are averaged): confirmed if all of the
interval satisfies the rule, not confirmed if none of it does, undecided otherwise or if a single unit gives no standard
error. A claim whose methods were not run, or whose average the cells do not determine, is not measured.

Standard errors are the jackknife's (:func:`jackknife`): g is computed without each unit in turn. For a mean this is the
usual standard error; if g is a ratio or picks the strongest of several methods, the pick is repeated each time.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy.stats import t as student

from experiments.paper.interpolation import NotCoveredError, Numbers

CONFIRMED, NOT_CONFIRMED, UNDECIDED, NOT_MEASURED = "confirmed", "not confirmed", "undecided", "not measured"
LEVEL = 0.95
TWO_TO_TEN = "2 to 10 %"
Units = npt.NDArray[np.int_]


@dataclass(frozen=True)
class Measured:
    """A quantity with its standard error over units; ``freedom`` is units - 1 by default."""

    value: float
    error: float | None
    units: int
    freedom: float | None = None

    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval, or ``None`` without a standard error.

        Examples
        --------
        >>> low, high = Measured(0.0, 1.0, 5).interval()
        >>> round(low, 3), round(high, 3)
        (-2.776, 2.776)
        """
        if self.error is None:
            return None
        half = float(student.ppf((1 + LEVEL) / 2, self.degrees_of_freedom)) * self.error
        return self.value - half, self.value + half

    @property
    def degrees_of_freedom(self) -> float:
        """Degrees of freedom of Student's distribution."""
        return self.units - 1 if self.freedom is None else self.freedom


Measure = Callable[[pl.DataFrame], Measured]


@dataclass(frozen=True)
class Claim:
    """A statement of the paper, and the quantity that decides it.

    Attributes
    ----------
    location, words, quantity : str
        Location in the paper, the statement, and the quantity in words.
    rule : {"greater", "at least", "comparable", "2 to 10 %"}
    measure : callable
        From the table to the quantity; raises ``NotCoveredError`` if the table does not determine it.
    margin : float
        Margin of the rules that have one.
    note : str
        Caution about the verdict.
    """

    location: str
    words: str
    quantity: str
    rule: str
    measure: Measure
    margin: float = 0.0
    note: str = ""


class Judged(NamedTuple):
    """A claim with its measured quantity and verdict."""

    claim: Claim
    measured: Measured | None
    verdict: str


def judge(claims: Sequence[Claim], table: pl.DataFrame) -> list[Judged]:
    """Measure and judge each claim."""
    judged = []
    for claim in claims:
        try:
            measured = claim.measure(table)
        except NotCoveredError:
            judged.append(Judged(claim, None, NOT_MEASURED))
        else:
            judged.append(Judged(claim, measured, verdict(claim.rule, claim.margin, measured)))
    return judged


def verdict(rule: str, margin: float, measured: Measured) -> str:
    """Verdict on a claim from its measured quantity.

    Examples
    --------
    >>> verdict("greater", 0.0, Measured(0.03, 0.01, 5)), verdict("greater", 0.0, Measured(0.02, 0.01, 5))
    ('confirmed', 'undecided')
    >>> verdict("at least", 0.02, Measured(-0.01, 0.001, 5)), verdict("comparable", 0.02, Measured(0.05, 0.01, 5))
    ('confirmed', 'not confirmed')
    """
    interval = measured.interval()
    if interval is None:
        return UNDECIDED
    smallest, largest = true_values(rule, margin)
    low, high = interval
    if smallest <= low and high <= largest:
        return CONFIRMED
    return NOT_CONFIRMED if high < smallest or low > largest else UNDECIDED


def true_values(rule: str, margin: float) -> tuple[float, float]:
    """Smallest and largest value of the quantity for which a claim is true.

    Examples
    --------
    >>> true_values("at least", 0.02), true_values("comparable", 0.02)
    ((-0.02, inf), (-0.02, 0.02))
    """
    return {
        "greater": (math.ulp(0.0), math.inf),
        "at least": (-margin, math.inf),
        "comparable": (-margin, margin),
        TWO_TO_TEN: (0.02, 0.10),
    }[rule]


def jackknife(units: int, statistic: Callable[[Units], float]) -> Measured:
    """A statistic of some units, with the jackknife's standard error.

    Parameters
    ----------
    units : int
    statistic : callable
        From the indices of the units that count to the number.
    """
    if units == 0:
        raise NotCoveredError("No unit has all of the methods.")
    everyone = np.arange(units)
    value = float(statistic(everyone))
    if units == 1:
        return Measured(value, None, 1)
    without = np.array([statistic(np.delete(everyone, unit)) for unit in everyone])
    error = math.sqrt((units - 1) / units * float(np.sum((without - without.mean()) ** 2)))
    return Measured(value, error, units)


def over_units(by_unit: Numbers) -> Measured:
    """The mean over units."""
    return jackknife(len(by_unit), lambda units: float(by_unit[units].mean()))


def picked_lead(ours: Sequence[Numbers], rivals: Sequence[Numbers], units: Units) -> float:
    """The smallest mean of ours minus the largest mean of the rivals, over some units."""
    return min(float(each[units].mean()) for each in ours) - max(float(each[units].mean()) for each in rivals)


def relative_gain(ours: Numbers, base: Numbers, claimed: float = 0.0) -> Measured:
    """mean(ours) / mean(base) - 1 - claimed."""
    if len(base) and base.mean() == 0:
        raise NotCoveredError("A gain over zero has no percentage.")
    return jackknife(len(ours), lambda units: float(ours[units].mean() / base[units].mean() - 1 - claimed))


def combined(parts: Sequence[Measured], weights: Sequence[float]) -> Measured:
    """A weighted sum of quantities on different units, with the degrees of freedom of Welch and Satterthwaite."""
    value = sum(weight * part.value for weight, part in zip(weights, parts, strict=True))
    units = sum(part.units for part in parts)
    errors = [part.error for part in parts if part.error is not None]
    if len(errors) < len(parts):
        return Measured(value, None, units)
    variances = [(weight * error) ** 2 for weight, error in zip(weights, errors, strict=True)]
    total = sum(variances)
    below = sum(variance**2 / (part.units - 1) for variance, part in zip(variances, parts, strict=True))
    freedom = total**2 / below if below > 0 else float(units - len(parts))
    return Measured(value, math.sqrt(total), units, freedom)
