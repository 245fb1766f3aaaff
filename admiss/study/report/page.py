"""One HTML page per study: answer, leaderboard, figures, comparisons, means under filters, failures, provenance.

Parts without content have neither a heading nor a link.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from admiss.report.page import write_page
from admiss.study.plan import EngineError, Plan
from admiss.study.report.comparisons import (
    UNDECIDED,
    Compared,
    Comparison,
    compared,
    leaderboard,
    metric_decimals,
    overlap,
    shown_difference,
)
from admiss.study.report.labels import Labels
from admiss.study.report.presentation import Presentation, ReferenceTable
from admiss.study.report.sections import Section
from admiss.study.table import (
    DATA_SETS,
    filter_names,
    instance_fields,
    metric_column,
    repeated,
    scoreless,
    unit_words,
    unrecorded,
)
from admiss.terminal.table import ABSENT, decimals, number, signed

# Failed cells and digests that are listed one by one.
MOST_FAILED, MOST_DIGESTS = 500, 12
# Methods that a sentence names.
MOST_NAMES = 5
# Smaller p values are shown as such.
SMALLEST = 0.001
HEADINGS = {
    "figures": "Figures",
    "comparison": "Comparisons",
    "means": "Means under filters",
    "failed": "Failures",
    "provenance": "Provenance",
}


@dataclass(frozen=True)
class Filter:
    """A setting with its values, both also in words, and the values selected at first."""

    name: str
    title: str
    levels: list[Any]
    words: list[str]
    selected: list[bool]


def write_report(table: pl.DataFrame, presentation: Presentation, path: Path, *, facts: Mapping[str, Any]) -> Path:
    """Write the page of a study with the facts of ``provenance``, and return its path."""
    rows, study = presentation.rows(table), presentation.study
    content = _content(table, rows, presentation)
    parts = {
        "figures": content["figures"] or content["further"],
        "comparison": content["decided"] or content["undecided"] or content["published"] or content["sections"],
        "means": content["filters"] is not None,
        "failed": content["failed"],
        "provenance": True,
    }
    headings = {name: heading for name, heading in HEADINGS.items() if parts[name]}
    warnings = _warnings(rows, scoreless(table, presentation.value), facts)
    try:
        write_page(
            "study.html",
            path,
            title=study.title,
            description=study.description,
            headings=headings,
            warnings=warnings,
            facts=_facts(facts),
            **content,
        )
    except OSError as error:
        raise EngineError(
            f"The report cannot be written to {path} ({error.strerror}): name another file with --html."
        ) from None
    return path


def _content(table: pl.DataFrame, rows: pl.DataFrame, presentation: Presentation) -> dict[str, Any]:
    """What the template shows."""
    study, labels = presentation.study, presentation.labels
    # those that conclude something, such as claims, first
    sections = sorted(presentation.sections(table), key=lambda section: not section.conclusion)
    content: dict[str, Any] = {
        "answer": None,
        "figures": presentation.figures(rows),
        "further": [],
        "reading": "",
        "header": [],
        "decided": [],
        "undecided": [],
        "published": [],
        "sections": [section for section in sections if section.rows],
        "failed": _failed(table, presentation),
        "filters": None,
        "data": "null",
    }
    if not rows.height:
        return content
    found = compared(rows, study, labels, rivals=presentation.compared)
    if found.comparisons:
        section = comparison_section(found)
        content |= {"reading": section.text, "header": section.header}
        content["decided"] = [row for row in section.rows if row[2] != UNDECIDED]
        content["undecided"] = [row for row in section.rows if row[2] == UNDECIDED]
        content["undecided_words"] = undecided_words(found.comparisons)
    filters = make_filters(rows, study, labels)
    methods = labels.ordered(rows["method"].to_list())
    metrics = [labels.metric(metric).word for metric in shown_metrics(rows, study)]
    return content | {
        "answer": leaderboard(found),
        "further": presentation.further_figures(rows),
        "published": [_published(each) for each in presentation.comparison(rows) if each.rows],
        "filters": filters,
        "methods": methods,
        "metrics": metrics,
        "reference": labels.reference_among(methods),
        "score_words": presentation.score_words(rows) if presentation.score_words else ", ".join(metrics),
        "is_corrected": bool(overlap(rows)),
        "data": embedded_data(rows, filters, study, labels),
    }


def _published(table: ReferenceTable) -> dict[str, Any]:
    """Means beside published ones, with three columns per setting."""
    rows = [
        (method, [signed(value) if column % 3 == 2 else value for column, value in enumerate(cells)])
        for method, cells in table.rows
    ]
    return {"title": table.title, "text": table.text, "source": table.source, "settings": table.settings, "rows": rows}


def _warnings(rows: pl.DataFrame, without_score: int, facts: Mapping[str, Any]) -> list[str]:
    found = []
    if not rows.height:
        found.append("No cell is done yet.")
    if facts["stale"]:
        found.append(
            f"{facts['stale']:,} cells are stale: what computed them has changed. Recompute them with run --stale "
            "before comparing."
        )
    if facts["pending"]:
        found.append(f"{facts['pending']:,} cells of this scale are not computed yet: means are over the others.")
    if facts["failed"]:
        found.append(f"{facts['failed']:,} cells failed: means are over the others.")
    if without_score:
        found.append(f"{without_score:,} rows are done and have no finite score: no mean counts them.")
    if count := repeated(rows):
        found.append(
            f"{count:,} cells repeat a method on an instance with other parameters, as scales have them: means count "
            "each."
        )
    return found


def _facts(facts: Mapping[str, Any]) -> dict[str, list[str]]:
    digests = [f"{digest} ({count:,} cells)" for digest, count in facts["digests"]]
    if len(digests) > MOST_DIGESTS:
        digests[MOST_DIGESTS:] = [f"and {len(digests) - MOST_DIGESTS:,} others"]
    return {
        "Scale": [facts["scale"]],
        "Cells": [", ".join(f"{facts[name]:,} {name}" for name in ("done", "failed", "pending"))],
        "Commands": facts["command"],
        "Machine": [facts["machine"]],
        "Versions": [", ".join(f"{name} {version}" for name, version in facts["versions"].items())],
        "Digests of the sources": digests,
    }


def _failed(table: pl.DataFrame, presentation: Presentation) -> dict[str, Any] | None:
    """Failed cells by reason, with the methods, and each of them; None if no cell failed."""
    labels = presentation.labels
    failed = table.filter(pl.col("status") == "failed").with_columns(pl.col("reason").fill_null("no reason is known"))
    if not failed.height:
        return None
    cells = failed.filter(pl.col("key").is_not_null())
    counts = cells.group_by("reason").agg(pl.len().alias("cells"), pl.col("method").value_counts(sort=True))
    grouped = [
        [reason, count, ", ".join(f"{each['method']} {each['count']}" for each in methods)]
        for reason, count, methods in counts.sort(["cells", "reason"], descending=[True, False]).iter_rows()
    ]
    fields = [name for name in instance_fields(table, presentation.study) if name != "kind"]
    listed = [
        [row["method"], _describe(row, fields, labels), row["reason"]]
        for row in cells.head(MOST_FAILED).iter_rows(named=True)
    ]
    return {"grouped": grouped, "listed": listed, "cells": cells.height, "choices": failed.height - cells.height}


def _describe(row: Mapping[str, Any], fields: Sequence[str], labels: Labels) -> str:
    values = [f"{name} {labels.word(row[name])}" for name in fields if row[name] is not None]
    return f"{row['kind']}: {', '.join(values)}"


def make_filters(rows: pl.DataFrame, study: Plan, labels: Labels) -> list[Filter]:
    """Make the filters of a page."""
    filters = []
    for name in filter_names(rows, study):
        values = labels.levels(rows, name)
        inside = [value not in labels.outside.get(name, ()) for value in values]
        selected = inside if any(inside) else [True] * len(values)
        filters.append(Filter(name, labels.word(name), values, list(map(labels.word, values)), selected))
    return filters


def shown_metrics(rows: pl.DataFrame, study: Plan) -> dict[str, str]:
    """The metrics that some row has, with their columns, the first metric first."""
    columns = {metric: metric_column(rows, study, metric) for metric in study.metrics}
    return {
        metric: column
        for metric, column in columns.items()
        if column is not None and rows[column].dtype.is_numeric() and rows[column].null_count() < rows.height
    }


def embedded_data(rows: pl.DataFrame, filters: Sequence[Filter], study: Plan, labels: Labels) -> str:
    """Encode the cells as JSON that can be embedded in a script element.

    Every list has one entry per cell: ``settings[s]`` the position of its value of setting s among all, ``values[k]``
    metric k as it is shown.
    """
    methods = labels.ordered(rows["method"].to_list())
    metrics = [
        (labels.metric(name).sign, rows[column].cast(pl.Float64)) for name, column in shown_metrics(rows, study).items()
    ]
    data = {
        "methods": methods,
        "overlap": overlap(rows),
        "metrics": [{"sign": sign, "decimals": metric_decimals(values)} for sign, values in metrics],
        "instance": rows["instance"].to_list(),
        "method": _positions(rows["method"], methods),
        "settings": [_positions(rows[each.name], each.levels) for each in filters],
        "values": [_rounded(sign * values, 9) for sign, values in metrics],
        "seconds": _rounded(rows["seconds"].cast(pl.Float64), 5),
    }
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    # json.dumps escapes all but ASCII; "<" could end the element
    return text.replace("<", "\\u003c")


def _positions(values: pl.Series, among: Sequence[Any]) -> list[int]:
    positions = {value: position for position, value in enumerate(among)}
    return [positions[value] for value in values]


def _rounded(values: pl.Series, digits: int) -> list[float | None]:
    return [None if value is None or not math.isfinite(value) else float(f"{value:.{digits}g}") for value in values]


def comparison_section(found: Compared) -> Section:
    """The table of comparisons in words; without rows if there is nothing to compare."""
    comparisons, labels = found.comparisons, found.labels
    # one digit less than differences alone would have
    places = max(found.places, decimals([each.estimate.mean for each in comparisons]) - 1)
    shown = []
    for each in comparisons:
        where = f"{labels.word(each.setting)} = {labels.word(each.level)}" if each.setting else "all"
        mean, low, high = shown_difference(each, found.metric)
        ends = f"{signed(low, places)} to {signed(high, places)}"
        if low is None or high is None:
            ends = "same on all units" if each.estimate.identical else ABSENT
        signs = f"{each.wins} / {each.ties} / {each.losses}"
        tests = [_p(each.estimate.p), _p(each.adjusted)]
        shown.append(
            [each.method, where, each.verdict, signed(mean, places), ends, signs, str(each.estimate.units), *tests]
        )
    header = ["method", "instances", "verdict", "difference", "95% interval", "wins / ties / losses", "units",
              "p", "p (Holm)"]  # fmt: skip
    return Section("Comparisons", _words(found) if comparisons else "", header, shown)


def undecided_words(found: Sequence[Comparison]) -> str:
    """One sentence for all comparisons that are undecided."""
    undecided = [each for each in found if each.verdict == UNDECIDED]
    overall = [each.method for each in undecided if not each.setting]
    methods = ", ".join(overall) if len(overall) <= MOST_NAMES else f"{len(overall)} methods"
    parts = [f"{methods} over all instances"] if overall else []
    if count := len(undecided) - len(overall):
        parts.append(f"{count} at single levels of settings")
    verb = "is" if len(undecided) == 1 else "are"
    return f"{len(undecided)} of {len(found)} comparisons {verb} undecided: {', and '.join(parts)}."


def _p(p: float | None) -> str:
    return ABSENT if p is None else f"< {SMALLEST}" if p < SMALLEST else number(p)


def _words(found: Compared) -> str:
    """How many comparisons were made and adjusted, and how to read them."""
    comparisons, rows, reference = found.comparisons, found.rows, found.reference
    tested = sum(each.estimate.p is not None for each in comparisons)
    counts = f"{len(comparisons)} comparison{'s' * (len(comparisons) != 1)} with {reference}"
    named = (
        ""
        if found.labels.reference == reference
        else f" (the study names no reference: {reference} is its first method)"
    )
    text = f"{counts}{named}; the {tested} p values are adjusted together by Holm's method."
    if not tested:
        text = f"{counts}{named}; none has a p value, as each has one unit, or the same difference on all units."
    elif tested < len(comparisons):
        text += f" {len(comparisons) - tested} without a p value have one unit, or the same difference on all units."
    over = unit_words(rows)
    text += (
        f" The difference is that of the method minus that of {reference} on the same instance, averaged over the "
        f"instances of each unit and then over units ({over}), with the interval and p value of the paired t test over "
        "units. A verdict is better or worse if the adjusted p value is at most 5%: all such verdicts are right with "
        "probability 95% or more. Undecided does not mean equal. Intervals and p are not adjusted."
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
