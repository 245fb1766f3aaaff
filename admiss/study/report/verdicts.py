"""The table of comparisons of a study and its means, for the page and as numbers for files."""

from collections.abc import Sequence
from typing import Any

import polars as pl

from admiss.report.page import signed
from admiss.study.comparisons import DATA_SETS, UNDECIDED, Comparison, compare, group_estimates, overlap
from admiss.study.plan import Plan
from admiss.study.report.labels import Labels
from admiss.study.report.rows import filter_names, metric_column, unit_words, unrecorded
from admiss.study.sections import ABSENT, Section, decimals, digits

# Levels at which methods are compared: those of the first settings, as long as they are no more together.
MOST_LEVELS = 8
# Smaller p values are shown as such.
SMALLEST = 0.001
ALL = "all"
COMPARISON_HEADER = (
    "method", "reference", "metric", "setting", "level", "mean_difference", "low", "high", "wins", "ties", "losses",
    "units", "instances", "p", "p_holm", "verdict",
)  # fmt: skip
MEANS_HEADER = ("metric", "setting", "level", "method", "mean", "low", "high", "units", "cells", "seconds")


def compared(rows: pl.DataFrame, study: Plan, labels: Labels) -> list[Comparison]:
    """Compare all methods with the reference on the rows that averages count."""
    rows = labels.inside(rows)
    methods = labels.ordered(rows["method"].to_list())
    if not methods:
        return []
    reference = labels.reference_among(methods)
    overall = compare(rows, reference, methods, {})
    if all(each.estimate.p is None for each in overall):  # nor have parts of the units one
        return overall
    levels: dict[str, list[Any]] = {}
    for name in filter_names(rows, study):
        found = [level for level in labels.levels(rows, name) if level is not None]
        if sum(map(len, levels.values())) + len(found) > MOST_LEVELS:
            break
        levels[name] = found
    return compare(rows, reference, methods, levels)


def comparison_section(rows: pl.DataFrame, study: Plan, labels: Labels) -> Section:
    """The table of comparisons in words; without rows if there is nothing to compare."""
    found = compared(rows, study, labels)
    # one digit less than differences alone would have
    places = max(decimals(rows["value"].to_list()), decimals([each.estimate.mean for each in found]) - 1)
    shown = [
        [
            each.method,
            f"{labels.word(each.setting)} = {labels.word(each.level)}" if each.setting else ALL,
            each.verdict,
            signed(each.estimate.mean, places),
            _interval(each, places),
            f"{each.wins} / {each.ties} / {each.losses}",
            str(each.estimate.units),
            _p(each.estimate.p),
            _p(each.adjusted),
        ]
        for each in found
    ]
    header = ["method", "instances", "verdict", "difference", "95 % interval", "wins / ties / losses", "units",
              "p", "p (Holm)"]  # fmt: skip
    return Section("Comparisons", _words(found, labels.inside(rows), labels) if found else "", header, shown)


def undecided_words(found: Sequence[Comparison]) -> str:
    """One sentence for all comparisons that are undecided."""
    undecided = [each for each in found if each.verdict == UNDECIDED]
    overall = [each.method for each in undecided if not each.setting]
    parts = [f"{', '.join(overall)} over all instances"] if overall else []
    if count := len(undecided) - len(overall):
        parts.append(f"{count} at single levels of settings")
    verb = "is" if len(undecided) == 1 else "are"
    return f"{len(undecided)} of {len(found)} comparisons {verb} undecided: {', and '.join(parts)}."


def _interval(each: Comparison, places: int) -> str:
    if each.estimate.low is None or each.estimate.high is None:
        return "same on all units" if each.estimate.identical else ABSENT
    return f"{signed(each.estimate.low, places)} to {signed(each.estimate.high, places)}"


def _p(p: float | None) -> str:
    return ABSENT if p is None else f"< {SMALLEST}" if p < SMALLEST else digits(p)


def _words(found: Sequence[Comparison], rows: pl.DataFrame, labels: Labels) -> str:
    """How many comparisons were made and adjusted, and how to read them."""
    reference = labels.reference_among(labels.ordered(rows["method"].to_list()))
    tested = sum(each.estimate.p is not None for each in found)
    counts = f"{len(found)} comparison{'s' * (len(found) != 1)} with {reference}"
    named = "" if labels.reference == reference else f" (the study names no reference: {reference} is its first method)"
    text = f"{counts}{named}; the {tested} p values are adjusted together by Holm's method."
    if not tested:
        text = f"{counts}{named}; none has a p value, as each has one unit, or the same difference on all units."
    elif tested < len(found):
        text += f" {len(found) - tested} without a p value have one unit, or the same difference on all units."
    over = unit_words(rows)
    text += (
        f" The difference is that of the method minus that of {reference} on the same instance, averaged over the "
        f"instances of each unit and then over units ({over}), with the interval and p value of the paired t test over "
        "units. A verdict is better or worse if the adjusted p value is at most 5 %: all such verdicts are right with "
        "probability 95 % or more. Undecided does not mean equal. Intervals and p are not adjusted."
    )
    if overlap(rows):
        text += (
            " Units are the random splits of the data set; these share rows, so that the variance is multiplied by "
            "1/J + n_test/n_train for J splits (Nadeau and Bengio, 2003)."
        )
    elif over == DATA_SETS and {"n_train", "n_test"} <= set(rows.columns):
        text += " Within one data set, units are its random splits, with the variance of Nadeau and Bengio (2003)."
    if count := unrecorded(rows):
        text += (
            f" The rows of {count} instance{'s' * (count != 1)} are not recorded, as in cells of earlier versions: "
            "these count as independent, even if they are splits of one table."
        )
    return text


def comparison_numbers(rows: pl.DataFrame, study: Plan, labels: Labels) -> list[Sequence[Any]]:
    """Rows of ``COMPARISON_HEADER``."""
    reference = labels.reference_among(labels.ordered(labels.inside(rows)["method"].to_list()))
    lines: list[Sequence[Any]] = []
    for each in compared(rows, study, labels):
        mean, low, high, p = each.estimate.mean, each.estimate.low, each.estimate.high, each.estimate.p
        signs = (each.wins, each.ties, each.losses, each.estimate.units, each.instances)
        where = (each.setting, "" if each.level is None else each.level)
        lines.append((each.method, reference, study.metrics[0], *where, mean, low, high, *signs, p, each.adjusted,
                      each.verdict))  # fmt: skip
    return lines


def mean_numbers(rows: pl.DataFrame, study: Plan, labels: Labels) -> list[Sequence[Any]]:
    """Rows of ``MEANS_HEADER``: all metrics, over all instances that count and by each setting."""
    rows, lines = labels.inside(rows), list[Sequence[Any]]()
    methods = labels.ordered(rows["method"].to_list())
    for metric in study.metrics:
        column = metric_column(rows, study, metric)
        if column is None:
            continue
        known = rows.filter(pl.col(column).is_finite())
        for setting in ("", *filter_names(rows, study)):
            part = known.drop_nulls(setting) if setting else known.with_columns(pl.lit("").alias(setting))
            by = [setting, "method"]
            facts = {(level, method): (cells, seconds) for level, method, cells, seconds in part.group_by(by).agg(
                pl.len().alias("cells"), pl.col("seconds").mean().alias("mean seconds")).iter_rows()}  # fmt: skip
            estimates = group_estimates(part, by, column)
            for level in labels.levels(part, setting):
                for method in methods:
                    if each := estimates.get((level, method)):
                        cells, seconds = facts[level, method]
                        numbers = (each.mean, each.low, each.high, each.units, cells, seconds)
                        lines.append((metric, setting, level, method, *numbers))
    return lines
