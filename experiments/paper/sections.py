"""Sections shared by the studies of the paper: claims with verdicts, moves of the joint search, chosen members."""

import re
from collections import Counter
from collections.abc import Sequence

import polars as pl

from admiss.study import Best
from admiss.study.report.sections import Section
from admiss.terminal.table import ABSENT, number, signed
from experiments.paper.adjustment import adjusted
from experiments.paper.claims import TWO_TO_TEN, Claim, Judged, Measured, judge

RULES = (
    "A verdict comes from the 95 % interval (low to high) of the quantity over units (signals, or data sets), by "
    "Student's t. "
    "Confirmed: all of the interval fits the rule; not confirmed: none of it does; undecided: the rest. The rule "
    "'greater' asks for more than 0, 'at least' for no less than minus the margin, 'comparable' for no further from 0 "
    "than the margin. Margins are ours. If the quantity picks the strongest of several methods, or a setting, the "
    "pick is part of the standard error (jackknife)."
)
ADJUSTED = (
    "The adjusted verdict corrects for their number: it is the verdict if the p value of the claim, the smallest level "
    "at which its interval decides, is at most 5 % after adjustment with those of all {} claims of this study that "
    "have one (Holm), otherwise undecided. Some adjusted verdict is wrong with probability 5 % at most, as far as each "
    "interval holds its level. Without an interval there is no test."
)
CLIPPED = (
    "Verdicts use all scores as they are; beside them is that with scores below -1 set to -1, not adjusted for the "
    "number of claims."
)
# Scores are also judged with this lower limit: one failed fit on one set can outweigh all others.
LOWEST = -1.0
NEARLY_ALL = 0.99


def claims_section(claims: Sequence[Claim], table: pl.DataFrame, *, clipped: bool = False, places: int = 3) -> Section:
    """Claims with their verdicts, and those adjusted for the number of claims.

    Parameters
    ----------
    claims : sequence of Claim
    table : DataFrame
    clipped : bool
        Add the verdicts on scores of at least -1.
    places : int
        Decimal places of the quantities.
    """
    judged = judge(claims, table)
    corrected = adjusted(judged)
    verdicts = [[each.verdict, other.verdict] for each, other in zip(judged, corrected, strict=True)]
    tests = sum(each.p is not None for each in corrected)
    header, text = ["place", "claim", "verdict", "adjusted"], f"{RULES} {ADJUSTED.format(tests)}{_readings(judged)}"
    if clipped:
        header, text = [*header, "clipped at -1"], f"{text} {CLIPPED}"
        again = judge(claims, table.with_columns(pl.col("score").clip(LOWEST)))
        verdicts = [[*each, other.verdict] for each, other in zip(verdicts, again, strict=True)]
    header += ["quantity", "value", "s.e.", "low", "high", "units", "adjusted p", "rule", "note"]
    rows = [
        [claim.location, claim.words, *mine, claim.quantity, *_numbers(measured, places), number(other.p, 4),
         _rule(claim), claim.note]
        for (claim, measured, _), other, mine in zip(judged, corrected, verdicts, strict=True)
    ]  # fmt: skip
    measured_some = any(each.measured is not None for each in judged)
    return Section("Claims", text, header, rows if measured_some else [], counts(verdicts))


def _numbers(measured: Measured | None, places: int) -> list[str]:
    """Value, standard error, ends of the interval and units."""
    if measured is None:
        return [ABSENT, ABSENT, ABSENT, ABSENT, "0"]
    interval = measured.interval()
    ends = [signed(end, places) for end in interval] if interval else [ABSENT, ABSENT]
    return [signed(measured.value, places), number(measured.error, places), *ends, str(measured.units)]


def _rule(claim: Claim) -> str:
    return f"{claim.rule}, margin {claim.margin:g}" if claim.margin else claim.rule


def _readings(judged: Sequence[Judged]) -> str:
    """Which reading of "2 to 10 %" fits: points or percent, the last word in brackets of its claims."""
    by_reading: dict[str, list[Judged]] = {}
    for each in judged:
        if each.claim.rule == TWO_TO_TEN and each.measured:
            (reading,) = re.findall(r"(points|percent)\)$", each.claim.words)
            by_reading.setdefault(reading, []).append(each)
    if not by_reading:
        return ""
    said = " and ".join(f"{_inside(mine)} of {len(mine)} as {reading}" for reading, mine in by_reading.items())
    return f" '2 to 10 %' may mean points of R2 or percent of mean imputation's R2: the value is inside in {said}."


def _inside(judged: Sequence[Judged]) -> int:
    return sum(0.02 <= each.measured.value <= 0.10 for each in judged if each.measured)


def counts(verdicts: Sequence[Sequence[str]]) -> str:
    """How many claims have each verdict, and each adjusted one, from rows that begin with the two."""
    raw, corrected = (Counter(column) for column in list(zip(*verdicts, strict=True))[:2])
    words = [", ".join(f"{count} {verdict}" for verdict, count in sorted(each.items())) for each in (raw, corrected)]
    return f"{len(verdicts)} claims: {words[0]}; adjusted for their number: {words[1]}."


def moves_section(table: pl.DataFrame) -> list[Section]:
    """How often the joint search left the means unchanged, by predictor; empty if no moves are stored."""
    if "moves" not in table.columns:
        return []
    searched = table.filter(pl.col("status") == "done", pl.col("key").is_not_null(), pl.col("moves").is_not_null())
    if searched.is_empty():
        return []
    moves = pl.col("moves").cast(pl.Float64)
    shares = searched.group_by("method").agg(
        pl.len(), (moves == 0).mean().alias("none"), moves.median().alias("median")
    )
    shares = shares.sort("method")
    rows = [[name, str(count), number(none), number(median, 0)] for name, count, none, median in shares.iter_rows()]
    still = shares.filter(pl.col("none") >= NEARLY_ALL)["method"].to_list()
    text = (
        "The share of cells in which the joint search moved no value from the mean. There the method is mean "
        "imputation followed by its predictor."
    )
    if still:
        text += f" For {' and '.join(still)} that is nearly every cell: read it as mean imputation."
    return [Section("Moves of the joint search", text, ["method", "cells", "moved nothing", "median moves"], rows)]


def choices_section(table: pl.DataFrame, choices: Sequence[Best], settings: Sequence[str]) -> Section:
    """How often each member was selected in each choice among methods, by settings."""
    rows = []
    for best in choices:
        derived = table.filter(pl.col("method") == best.name, pl.col("status") == "done")
        if "chosen_method" not in table.columns or derived.is_empty():
            rows.append([best.name, *[ABSENT] * len(settings), "0", *[ABSENT] * 2])
            continue
        fields = [column for column in settings if column in table.columns]
        for values in derived.select(fields).unique().sort(fields, nulls_last=True).iter_rows():
            here = dict(zip(fields, values, strict=True))
            same = [pl.col(column).eq_missing(value) for column, value in here.items()]
            selected = derived.filter(*same)["chosen_method"].to_list()
            words = [ABSENT if here.get(column) is None else str(here[column]) for column in settings]
            rows += [
                [best.name, *words, str(len(selected)), member, number(selected.count(member) / len(selected))]
                for member in best.members
            ]
    return Section(
        "Chosen members",
        "The share of instances on which each member had the largest score in cross-validation.",
        ["choice", *settings, "instances", "member", "share"],
        rows,
    )
