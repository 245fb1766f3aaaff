"""Means by method, with filters: what the page holds for the browser, and the same numbers before any click.

Over the instances that pass the filters, for each method: the cells, the mean value and its standard error
(deviation / sqrt(cells), cells taken as independent), the mean difference to a reference method on the instances that
both have, with its standard error, the share of these on which it is better (a tie counts one half), and the mean CPU
seconds. ``script.js`` computes them again, in the same way, whenever a filter changes.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from admiss.study.report.rows import OUTSIDE, REFERENCE, filter_names, levels, method_order, words
from admiss.study.study import Study

# A setting with at most this many values has a box for each; with more, a range (numbers) or a list (text).
MOST_BOXES = 12
# Digits of a value and of seconds that the page holds.
VALUE_DIGITS, SECONDS_DIGITS = 9, 5


@dataclass(frozen=True)
class Filter:
    """A setting, its values, which of them count at first, and the control it has: boxes, range or list."""

    name: str
    levels: list[Any]
    chosen: list[bool]
    control: str


@dataclass(frozen=True)
class Line:
    """The numbers of a method; None where there are none."""

    method: str
    cells: int
    mean: float
    error: float | None
    difference: float | None
    difference_error: float | None
    better: float | None
    seconds: float | None


def make_filters(rows: pl.DataFrame, study: Study) -> list[Filter]:
    """The filters of a page."""
    filters = []
    for name in filter_names(rows, study):
        values = levels(rows, name)
        numeric = not any(isinstance(value, str) for value in values)
        control = "boxes" if len(values) <= MOST_BOXES else "range" if numeric else "list"
        chosen = [control != "boxes" or value not in OUTSIDE.get(name, ()) for value in values]
        filters.append(Filter(name, values, chosen if any(chosen) else [True] * len(values), control))
    return filters


def reference_method(methods: Sequence[str]) -> str:
    """The method that others are compared with at first."""
    return REFERENCE if REFERENCE in methods else methods[0]


def summarise(rows: pl.DataFrame, filters: Sequence[Filter]) -> list[Line]:
    """Means by method over the rows that count at first, for the table before any click."""
    methods = method_order(rows["method"].to_list())
    reference = reference_method(methods)
    kept = rows
    for each in filters:
        values = [value for value, chosen in zip(each.levels, each.chosen, strict=True) if chosen]
        passes = pl.col(each.name).is_in([value for value in values if value is not None])
        kept = kept.filter(passes | pl.col(each.name).is_null() if None in values else passes)
    base = dict(kept.filter(pl.col("method") == reference).select("instance", "value").iter_rows())
    return [
        _line(method, mine, base)
        for method in methods
        if (mine := kept.filter(pl.col("method") == method)).height
    ]  # fmt: skip


def _line(method: str, mine: pl.DataFrame, base: dict[int, float]) -> Line:
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
        standard_error(values),
        float(differences.mean()) if pairs else None,
        standard_error(differences),
        better,
        float(seconds.mean()) if len(seconds) else None,
    )


def standard_error(values: Any) -> float | None:
    """Of a mean; None for fewer than two values."""
    return float(np.std(values, ddof=1) / math.sqrt(len(values))) if len(values) > 1 else None


def embedded_data(rows: pl.DataFrame, filters: Sequence[Filter]) -> str:
    """The cells as JSON that can stand inside a script element.

    Settings are kept once for an instance, as positions among their values: ``instances[s][i]`` is that of setting s in
    instance i.
    """
    methods = method_order(rows["method"].to_list())
    firsts = rows.unique("instance", keep="first", maintain_order=True).sort("instance")
    ordered = rows.sort("instance", maintain_order=True)
    data = {
        "methods": methods,
        "reference": methods.index(reference_method(methods)),
        "settings": [
            {"name": each.name, "levels": [words(value) for value in each.levels], "control": each.control}
            for each in filters
        ],
        "instances": [_positions(firsts[each.name].to_list(), each.levels) for each in filters],
        "cells": {
            "instance": ordered["instance"].to_list(),
            "method": _positions(ordered["method"].to_list(), methods),
            "value": _rounded(ordered["value"].to_list(), VALUE_DIGITS),
            "seconds": _rounded(ordered["seconds"].to_list(), SECONDS_DIGITS),
        },
    }
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    # json.dumps escapes all but ASCII; "<" could end the element
    return text.replace("<", "\\u003c")


def _positions(values: Sequence[Any], among: Sequence[Any]) -> list[int]:
    places = {value: place for place, value in enumerate(among)}
    return [places[value] for value in values]


def _rounded(values: Sequence[float | None], digits: int) -> list[float | None]:
    return [None if value is None or not math.isfinite(value) else float(f"{value:.{digits}g}") for value in values]
