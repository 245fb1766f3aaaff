"""The claims and their verdicts as a table."""

import re
from collections import Counter
from collections.abc import Sequence

from experiments.paper.claims import TWO_TO_TEN, Judged
from experiments.tables import ABSENT, Section, digits, signed

RULES = (
    "A verdict comes from the 95 % interval of the quantity over units (signals, or data sets), by Student's t. "
    "Confirmed: all of the interval fits the rule; not confirmed: none of it does; undecided: the rest. The rule "
    "'greater' asks for more than 0, 'at least' for no less than minus the margin, 'comparable' for no further from 0 "
    "than the margin. Margins are ours. Where the quantity picks the strongest of several methods, or a place, the "
    "pick is part of the standard error (jackknife). There is no correction for the number of claims."
)
CLIPPED = "The verdict uses all scores as they are; beside it is that with scores below -1 set to -1."


def claims_section(judged: Sequence[Judged], clipped: Sequence[Judged] | None = None) -> Section:
    """Claims and verdicts; ``clipped`` are those of the same claims with scores of at least -1."""
    verdicts, text = [[each.verdict] for each in judged], RULES + _readings(judged)
    header = ["place", "claim", "verdict"]
    if clipped is not None:
        header, text = [*header, "clipped at -1"], f"{text} {CLIPPED}"
        verdicts = [[each.verdict, other.verdict] for each, other in zip(judged, clipped, strict=True)]
    header += ["quantity", "value", "s.e.", "95 % interval", "units", "rule", "note"]
    rows = [
        [each.claim.place, each.claim.words, *both, each.claim.quantity, *_numbers(each), _rule(each), each.claim.note]
        for each, both in zip(judged, verdicts, strict=True)
    ]
    return Section("Claims", text, header, rows)


def _numbers(each: Judged) -> list[str]:
    """Value, standard error, interval and units."""
    if each.measured is None:
        return [ABSENT, ABSENT, ABSENT, "0"]
    interval = each.measured.interval()
    ends = " to ".join(signed(end) for end in interval) if interval else ABSENT
    return [signed(each.measured.value), digits(each.measured.error), ends, str(each.measured.units)]


def _rule(each: Judged) -> str:
    return f"{each.claim.rule}, margin {each.claim.margin:g}" if each.claim.margin else each.claim.rule


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
