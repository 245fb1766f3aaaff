"""The paper's claims, one by one, and what a table says about each.

A claim has a quantity g that is measured on units (signals in the synthetic study, data sets in the other), and a rule
that gives the values of g for which the claim is true:

    greater            g > 0
    at least           g >= -margin               (the paper says g >= 0, about)
    comparable         |g| <= margin              (the paper says g = 0, about)
    2 to 10 %          .02 <= g <= .10

The verdict comes from the 95 % interval g - t s, g + t s, with s the standard error over units and t the quantile of
Student's distribution with units - 1 degrees of freedom (Welch's where two strata are averaged): confirmed where all
of the interval is in the values of the rule, not confirmed where none of it is, undecided otherwise or where one unit
leaves no standard error. A claim whose methods were not run, or whose cells do not give the average that it is about,
is not measured.

Standard errors are the jackknife's (:func:`jackknife`): g is computed without each unit in turn. For a mean this is the
usual standard error; where g is a ratio, or picks the strongest of several methods, the pick is made anew each time.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

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
    """A quantity with its standard error over units; ``freedom`` is units - 1 where it is not given."""

    value: float
    error: float | None
    units: int
    freedom: float | None = None

    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval, or ``None`` where there is no standard error.

        Examples
        --------
        >>> low, high = Measured(0.0, 1.0, 5).interval()
        >>> round(low, 3), round(high, 3)
        (-2.776, 2.776)
        """
        if self.error is None:
            return None
        freedom = self.units - 1 if self.freedom is None else self.freedom
        half = float(student.ppf((1 + LEVEL) / 2, freedom)) * self.error
        return self.value - half, self.value + half


Measure = Callable[[pl.DataFrame], Measured]


@dataclass(frozen=True)
class Claim:
    """What the paper says, where, and the quantity that decides it.

    Attributes
    ----------
    place, words, quantity : str
        Where the paper says it, what it says, and what is measured, in words.
    rule : {"greater", "at least", "comparable", "2 to 10 %"}
    measure : callable
        From the table to the quantity; raises ``NotCoveredError`` where the table does not give it.
    margin : float
        Of the rules that have one.
    note : str
        What to know when reading the verdict.
    """

    place: str
    words: str
    quantity: str
    rule: str
    measure: Measure
    margin: float = 0.0
    note: str = ""


@dataclass(frozen=True)
class Judged:
    """A claim with what was measured."""

    claim: Claim
    measured: Measured | None
    verdict: str


def judge(claims: Sequence[Claim], table: pl.DataFrame) -> list[Judged]:
    """Each claim with its verdict."""
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
    """What a measured quantity says about a claim.

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
    smallest, largest = {
        "greater": (math.ulp(0.0), math.inf),
        "at least": (-margin, math.inf),
        "comparable": (-margin, margin),
        TWO_TO_TEN: (0.02, 0.10),
    }[rule]
    low, high = interval
    if smallest <= low and high <= largest:
        return CONFIRMED
    return NOT_CONFIRMED if high < smallest or low > largest else UNDECIDED


def jackknife(units: int, statistic: Callable[[Units], float]) -> Measured:
    """A statistic of some units, with the jackknife's standard error.

    Parameters
    ----------
    units : int
    statistic : callable
        From the places of the units that count to the number.
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
    return jackknife(len(by_unit), lambda kept: float(by_unit[kept].mean()))


def picked_lead(ours: Sequence[Numbers], rivals: Sequence[Numbers], kept: Units) -> float:
    """The smallest mean of ours less the largest mean of the rivals, over some units."""
    return min(float(each[kept].mean()) for each in ours) - max(float(each[kept].mean()) for each in rivals)


def relative_gain(ours: Numbers, base: Numbers, less: float = 0.0) -> Measured:
    """mean(ours) / mean(base) - 1 - less."""
    if len(base) and base.mean() == 0:
        raise NotCoveredError("A gain over zero has no percentage.")
    return jackknife(len(ours), lambda kept: float(ours[kept].mean() / base[kept].mean() - 1 - less))


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


def claims_of(study: str) -> list[Claim]:
    """The claims that a study decides."""
    from experiments.paper.real_design.claims import REAL_DESIGN_CLAIMS
    from experiments.paper.synthetic.appendix_claims import APPENDIX_CLAIMS
    from experiments.paper.synthetic.claims import SYNTHETIC_CLAIMS

    return {"synthetic": [*SYNTHETIC_CLAIMS, *APPENDIX_CLAIMS], "real-design": REAL_DESIGN_CLAIMS}.get(study, [])
