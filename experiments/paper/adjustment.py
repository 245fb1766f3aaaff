"""Verdicts on claims, adjusted for the number of claims.

The verdict of :mod:`experiments.paper.claims` at level 1 - a comes from the interval g - t s, g + t s, with t the
1 - a / 2 quantile of Student's distribution. It is decided, one way or the other, if and only if t s <= d, where d is
the distance of g from the nearest end of the values for which the claim is true. The smallest such a,

    p = P(|T| >= d / s),

is the p value of the claim: the verdict of the 95 % interval is decided if and only if p <= 5 %. For the rule "greater"
it is the two-sided p value of 0; for "comparable" and g within the margin it is twice that of the two one-sided tests
of equivalence, since a 95 % interval has 2.5 % on each side.

The m p values of a study are adjusted together (Holm, :func:`admiss.estimates.holm`). The adjusted verdict is
the verdict if the adjusted p is at most 5 %, otherwise "undecided", hence never stronger. Claims without a standard
error, or whose units all agree, have no test; neither they nor claims that were not measured count in m.

A verdict names a side. If a rule has one end, that of level a is wrong with probability a / 2 at most. While at most
m / 2 + 1 claims are decided, Holm's levels are at most 10 % / m, and the probability that any adjusted verdict is wrong
is at most 5 %, however the claims depend on each other. If more are decided, the proof (Shaffer, 1980) needs
independent claims.
"""

from collections.abc import Sequence
from typing import NamedTuple

from scipy.stats import t as student

from admiss.estimates import holm
from experiments.paper.claims import LEVEL, NOT_MEASURED, UNDECIDED, Judged, Measured, true_values

NO_TEST = "no test"


class Adjusted(NamedTuple):
    """An adjusted verdict, with the adjusted p value (``None`` if undefined)."""

    verdict: str
    p: float | None


def adjusted(judged: Sequence[Judged]) -> list[Adjusted]:
    """Adjust the verdicts on the claims of a study."""
    p_values = [
        None if measured is None else p_value(claim.rule, claim.margin, measured) for claim, measured, _ in judged
    ]
    return adjust([each.verdict for each in judged], p_values)


def p_value(rule: str, margin: float, measured: Measured) -> float | None:
    """The smallest level at which a claim is decided, or ``None`` without a positive standard error.

    Examples
    --------
    >>> round(p_value("greater", 0.0, Measured(2.776, 1.0, 5)), 3)
    0.05
    >>> round(p_value("comparable", 4.0, Measured(1.224, 1.0, 5)), 3)
    0.05
    """
    if not measured.error:
        return None
    distance = min(abs(measured.value - end) for end in true_values(rule, margin))
    return 2 * float(student.sf(distance / measured.error, measured.degrees_of_freedom))


def adjust(verdicts: Sequence[str], p_values: Sequence[float | None]) -> list[Adjusted]:
    """Adjust verdicts for their number by Holm's method.

    Parameters
    ----------
    verdicts : sequence of str
        By 95 % intervals.
    p_values : sequence of float or None
        ``None`` for claims without a test.

    Examples
    --------
    >>> for each in adjust(["confirmed", "not confirmed", "undecided"], [0.01, 0.03, None]):
    ...     print(each.verdict, each.p)
    confirmed 0.02
    not confirmed 0.03
    no test None
    """
    tested = {index: p for index, p in enumerate(p_values) if p is not None}
    p_holm = dict(zip(tested, holm(list(tested.values())), strict=True))
    return [
        Adjusted(verdict if p_holm[index] <= 1 - LEVEL else UNDECIDED, p_holm[index])
        if index in p_holm
        else Adjusted(verdict if verdict == NOT_MEASURED else NO_TEST, None)
        for index, verdict in enumerate(verdicts)
    ]
