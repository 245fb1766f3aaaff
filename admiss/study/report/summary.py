"""Means by method, with filters: the data of the page for the browser, and the same numbers before any click.

For each method, over the instances that pass the filters: the cells, the mean value and its standard error (deviation
times sqrt(1 / cells + r), cells taken as independent with r = 0; if all are random splits of one data set, r is
n_test / n_train as in :mod:`admiss.study.comparisons`), the mean difference to a reference method on the instances of
both, with its standard error, the share of these on which it is better (a tie counts one half), and the mean CPU
seconds. ``script.js`` computes the same whenever a filter or the metric changes; cells without the metric do not count.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from admiss.study.comparisons import overlap
from admiss.study.plan import Plan
from admiss.study.report.labels import Labels
from admiss.study.report.rows import filter_names, metric_column
from admiss.study.sections import decimals

# A setting with at most this many values has one box per value; with more, a range (numbers) or a list (text).
MOST_BOXES = 12
# Significant digits of values and of seconds in the page.
VALUE_DIGITS, SECONDS_DIGITS = 9, 5


@dataclass(frozen=True)
class Filter:
    """A setting with its values, both also in words, the values selected at first, and boxes, a range or a list."""

    name: str
    title: str
    levels: list[Any]
    words: list[str]
    selected: list[bool]
    control: str


@dataclass(frozen=True)
class Line:
    """The numbers of a method, None if undefined."""

    method: str
    cells: int
    mean: float
    error: float | None
    difference: float | None
    difference_error: float | None
    better: float | None
    seconds: float | None


def make_filters(rows: pl.DataFrame, study: Plan, labels: Labels) -> list[Filter]:
    """Make the filters of a page."""
    filters = []
    for name in filter_names(rows, study):
        values = labels.levels(rows, name)
        numeric = not any(isinstance(value, str) for value in values)
        control = "boxes" if len(values) <= MOST_BOXES else "range" if numeric else "list"
        inside = [control != "boxes" or value not in labels.outside.get(name, ()) for value in values]
        selected = inside if any(inside) else [True] * len(values)
        filters.append(Filter(name, labels.word(name), values, list(map(labels.word, values)), selected, control))
    return filters


def summarise(rows: pl.DataFrame, filters: Sequence[Filter], labels: Labels) -> list[Line]:
    """Means by method over the rows selected at first, for the table before any click."""
    methods, ratio = labels.ordered(rows["method"].to_list()), overlap(rows)
    for each in filters:
        values = [value for value, selected in zip(each.levels, each.selected, strict=True) if selected]
        passes = pl.col(each.name).is_in([value for value in values if value is not None])
        rows = rows.filter(passes | pl.col(each.name).is_null() if None in values else passes)
    base = dict(
        rows.filter(pl.col("method") == labels.reference_among(methods)).select("instance", "value").iter_rows()
    )
    return [
        _line(method, mine, base, ratio)
        for method in methods
        if (mine := rows.filter(pl.col("method") == method)).height
    ]  # fmt: skip


def _line(method: str, mine: pl.DataFrame, base: dict[int, float], ratio: float) -> Line:
    values, seconds = mine["value"].to_numpy(), mine["seconds"].drop_nulls().to_numpy()
    pairs = [
        value - base[instance] for instance, value in mine.select("instance", "value").iter_rows() if instance in base
    ]
    differences = np.array(pairs)
    better = float(np.mean((differences > 0) + 0.5 * (differences == 0))) if pairs else None
    return Line(
        method,
        len(values),
        float(values.mean()),
        standard_error(values, ratio),
        float(differences.mean()) if pairs else None,
        standard_error(differences, ratio),
        better,
        float(seconds.mean()) if len(seconds) else None,
    )


def standard_error(values: Any, ratio: float = 0.0) -> float | None:
    """Standard error of a mean, or None for fewer than two values."""
    return float(np.std(values, ddof=1) * math.sqrt(1 / len(values) + ratio)) if len(values) > 1 else None


def embedded_data(rows: pl.DataFrame, filters: Sequence[Filter], study: Plan, labels: Labels) -> str:
    """Encode the cells as JSON that can be embedded in a script element.

    Settings are stored once per instance, as positions among their values: ``instances[s][i]`` is the position of
    setting s in instance i. ``values[k][c]`` is metric k of cell c.
    """
    methods = labels.ordered(rows["method"].to_list())
    firsts = rows.unique("instance", keep="first", maintain_order=True).sort("instance")
    ordered = rows.sort("instance", maintain_order=True)
    columns = shown_metrics(rows, study)
    values = {name: ordered[column].cast(pl.Float64).to_list() for name, column in columns.items()}
    data = {
        "methods": methods,
        "overlap": overlap(rows),
        "reference": methods.index(labels.reference_among(methods)),
        "metrics": [
            {"name": labels.word(name), "decimals": metric_decimals(ordered[column])}
            for name, column in columns.items()
        ],
        "settings": [{"name": each.name, "levels": each.words, "control": each.control} for each in filters],
        "instances": [_positions(firsts[each.name].to_list(), each.levels) for each in filters],
        "cells": {
            "instance": ordered["instance"].to_list(),
            "method": _positions(ordered["method"].to_list(), methods),
            "values": [_rounded(each, VALUE_DIGITS) for each in values.values()],
            "seconds": _rounded(ordered["seconds"].to_list(), SECONDS_DIGITS),
        },
    }
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    # json.dumps escapes all but ASCII; "<" could end the element
    return text.replace("<", "\\u003c")


def shown_metrics(rows: pl.DataFrame, study: Plan) -> dict[str, str]:
    """The metrics that some row has, with their columns, the first metric first."""
    columns = {metric: metric_column(rows, study, metric) for metric in study.metrics}
    return {
        metric: column
        for metric, column in columns.items()
        if column is not None and rows[column].dtype.is_numeric() and rows[column].null_count() < rows.height
    }


def metric_decimals(values: pl.Series) -> int:
    """Decimals in which a metric is shown."""
    return decimals([float(value) for value in values.drop_nulls() if math.isfinite(value)])


def _positions(values: Sequence[Any], among: Sequence[Any]) -> list[int]:
    positions = {value: position for position, value in enumerate(among)}
    return [positions[value] for value in values]


def _rounded(values: Sequence[float | None], digits: int) -> list[float | None]:
    return [None if value is None or not math.isfinite(value) else float(f"{value:.{digits}g}") for value in values]
