"""The claims and their verdicts as a table."""

import re
from collections import Counter
from collections.abc import Sequence

from experiments.compare.claims import TWO_TO_TEN, Judged
from experiments.compare.tables import ABSENT, Section, digits, signed

RULES = (
    "A verdict comes from the 95 % interval of the quantity over units (signals, or data sets), by Student's t. "
    "Confirmed: all of the interval fits the rule; not confirmed: none of it does; undecided: the rest. The rule "
    "'greater' asks for more than 0, 'at least' for no less than minus the margin, 'comparable' for no further from 0 "
    "than the margin. Margins are ours. Where the quantity picks the strongest of several methods, or a place, the "
    "pick is part of the standard error (jackknife). There is no correction for the number of claims."
)
CLIPPED = "The last verdict is that with scores below -1 set to -1; the others use all scores as they are."


def claims_section(judged: Sequence[Judged], clipped: Sequence[Judged] | None = None) -> Section:
    """Claims and verdicts; ``clipped`` are those of the same claims with scores of at least -1."""
    header = ["place", "claim", "quantity", "value", "s.e.", "95 % interval", "units", "rule", "verdict"]
    rows = [_row(each) for each in judged]
    text = RULES + _readings(judged)
    if clipped is not None:
        header, text = [*header, "clipped at -1"], f"{text} {CLIPPED}"
        rows = [[*row, other.verdict] for row, other in zip(rows, clipped, strict=True)]
    return Section(
        "Claims", text, [*header, "note"], [[*row, each.claim.note] for row, each in zip(rows, judged, strict=True)]
    )


def _row(each: Judged) -> list[str]:
    claim, measured = each.claim, each.measured
    rule = f"{claim.rule}, margin {claim.margin:g}" if claim.margin else claim.rule
    numbers = [ABSENT, ABSENT, ABSENT, "0"]
    if measured:
        interval = measured.interval()
        ends = " to ".join(signed(end) for end in interval) if interval else ABSENT
        numbers = [signed(measured.value), digits(measured.error), ends, str(measured.units)]
    return [claim.place, claim.words, claim.quantity, *numbers, rule, each.verdict]


def _readings(judged: Sequence[Judged]) -> str:
    """Which reading of "2 to 10 %" fits: points or percent, the last word of such a claim in brackets."""
    found: dict[str, list[Judged]] = {}
    for each in judged:
        if each.claim.rule == TWO_TO_TEN and each.measured:
            (reading,) = re.findall(r"(points|percent)\)$", each.claim.words)
            found.setdefault(reading, []).append(each)
    if not found:
        return ""
    said = " and ".join(f"{_inside(mine)} of {len(mine)} as {reading}" for reading, mine in found.items())
    return f" '2 to 10 %' may mean points of R2 or percent of mean imputation's R2: the value is inside in {said}."


def _inside(judged: Sequence[Judged]) -> int:
    return sum(0.02 <= each.measured.value <= 0.10 for each in judged if each.measured)


def count_words(judged: Sequence[Judged]) -> str:
    """How many claims have each verdict."""
    counts = Counter(each.verdict for each in judged)
    return f"{len(judged)} claims: {', '.join(f'{count} {verdict}' for verdict, count in sorted(counts.items()))}."
