"""The paper's claims, one by one, and what a table says about each.

A claim has a quantity g that is measured on units (signals in the synthetic study, data sets in the other), with its
standard error s over units, and a rule:

    greater      the paper says g > 0:          confirmed if g > 2 s,          not confirmed if g < -2 s
    at least     the paper says g >= 0, about:  confirmed if g >= -margin,     not confirmed if g + 2 s < -margin
    comparable   the paper says g = 0, about:   confirmed if |g| <= margin,    not confirmed if |g| - 2 s > margin

and undecided between, or where one unit leaves no standard error. A claim whose methods were not run, or whose cells
do not give the average that it is about, is not measured.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from experiments.compare.interpolation import NotCoveredError, Numbers, mean_and_error
from experiments.compare.tables import Section, digits, signed

CONFIRMED, NOT_CONFIRMED, UNDECIDED, NOT_MEASURED = "confirmed", "not confirmed", "undecided", "not measured"


@dataclass(frozen=True)
class Measured:
    """A quantity with its standard error over units."""

    value: float
    error: float | None
    units: int


@dataclass(frozen=True)
class Claim:
    """What the paper says, where, and the quantity that decides it.

    Attributes
    ----------
    place, words, quantity : str
        Where the paper says it, what it says, and what is measured, in words.
    rule : {"greater", "at least", "comparable"}
    measure : callable
        From the table to the quantity; raises ``NotCoveredError`` where the table does not give it.
    margin : float
        Of the rules that have one.
    """

    place: str
    words: str
    quantity: str
    rule: str
    measure: Callable[[pl.DataFrame], Measured]
    margin: float = 0.0


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
    >>> verdict("greater", 0.0, Measured(0.03, 0.01, 5)), verdict("greater", 0.0, Measured(0.01, 0.01, 5))
    ('confirmed', 'undecided')
    >>> verdict("at least", 0.02, Measured(-0.01, 0.01, 5)), verdict("comparable", 0.02, Measured(0.05, 0.01, 5))
    ('confirmed', 'not confirmed')
    """
    if measured.error is None:
        return UNDECIDED
    g, twice = measured.value, 2 * measured.error
    confirmed, refuted = {
        "greater": (g > twice, g < -twice),
        "at least": (g >= -margin, g + twice < -margin),
        "comparable": (abs(g) <= margin, abs(g) - twice > margin),
    }[rule]
    return CONFIRMED if confirmed else NOT_CONFIRMED if refuted else UNDECIDED


def over_units(by_unit: Numbers) -> Measured:
    """The mean over units."""
    if len(by_unit) == 0:
        raise NotCoveredError("No unit has all of the methods.")
    return Measured(*mean_and_error(by_unit), len(by_unit))


def relative_gain(ours: Numbers, base: Numbers, less: float = 0.0) -> Measured:
    """mean(ours) / mean(base) - 1 - less, with the jackknife's standard error over units."""
    units = len(ours)
    if units == 0 or base.mean() == 0:
        raise NotCoveredError("No unit has both of the methods.")
    value = float(ours.mean() / base.mean() - 1 - less)
    if units == 1:
        return Measured(value, None, 1)
    without = (ours.sum() - ours) / (base.sum() - base)  # ratio of the means over all units but one
    error = math.sqrt((units - 1) / units * float(np.sum((without - without.mean()) ** 2)))
    return Measured(value, error, units)


def claims_of(study: str) -> list[Claim]:
    """The claims that a study decides."""
    from experiments.compare.real_design_claims import REAL_DESIGN_CLAIMS
    from experiments.compare.synthetic_claims import SYNTHETIC_CLAIMS

    return {"synthetic": SYNTHETIC_CLAIMS, "real-design": REAL_DESIGN_CLAIMS}.get(study, [])


def claims_section(judged: Sequence[Judged]) -> Section:
    """Claims and verdicts as a table."""
    rows = []
    for each in judged:
        claim, measured = each.claim, each.measured
        rule = claim.rule if claim.rule == "greater" else f"{claim.rule}, margin {claim.margin:g}"
        value, error = (signed(measured.value, 4), digits(measured.error, 4)) if measured else ("-", "-")
        units = str(measured.units) if measured else "0"
        rows.append([claim.place, claim.words, claim.quantity, value, error, units, rule, each.verdict])
    text = (
        "Paired differences with standard errors over units (signals, or data sets). 'greater': confirmed above "
        "2 s.e., not confirmed below -2 s.e. 'at least' and 'comparable': confirmed within the margin, not confirmed "
        "if outside by more than 2 s.e. Otherwise undecided."
    )
    header = ["place", "claim", "quantity", "value", "s.e.", "units", "rule", "verdict"]
    return Section("Claims", text, header, rows)
