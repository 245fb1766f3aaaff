"""Figures with one line per method: wins against a reference method, seconds, and failures.

A method wins on an instance if its value is larger than that of the reference, and on a data set if the mean of its
differences there is positive; a tie counts one half. Instances of a data set are not independent: the share of data
sets is the one to judge by.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from admiss.drawing import BLUE, GREY, ORANGE
from admiss.study.report.curves import matches, panel_values
from admiss.study.report.drawing import ONE_COLUMN, TWO_COLUMNS, Drawing, legend, panels
from admiss.study.report.labels import Labels


def method_axis(ax: Any, methods: Sequence[str]) -> None:
    """Name methods on the vertical axis, the first one on top."""
    ax.set_yticks(range(len(methods)), methods, parse_math=False)
    ax.set_ylim(len(methods) - 0.5, -0.5)


def win_drawing(
    rows: pl.DataFrame, methods: Sequence[str], across: Sequence[str], name: str, labels: Labels, note: str = ""
) -> Drawing | None:
    """Draw the share of wins of methods against the reference, with one panel per combination of ``across``."""
    reference = labels.reference
    if reference not in set(rows["method"].to_list()) or not set(across) <= set(rows.columns):
        return None
    base = rows.filter(pl.col("method") == reference).select("instance", pl.col("value").alias("base"))
    pairs = rows.filter(pl.col("method") != reference).drop_nulls(list(across)).join(base, on="instance")
    methods = [method for method in labels.ordered(pairs["method"].to_list()) if method in methods]
    pairs = pairs.filter(pl.col("method").is_in(methods)).with_columns((pl.col("value") - pl.col("base")).alias("gain"))
    settings = panel_values(pairs, across, labels)
    if not settings:
        return None
    shares = {}
    for setting in settings:
        here = pairs.filter(matches(across, setting))
        heading = ", ".join(map(labels.heading, across, setting))
        shares[heading] = [(method, *_shares(here.filter(pl.col("method") == method))) for method in methods]

    def paint(width: float, columns: int) -> Any:
        height = 0.2 * len(methods) + 0.6
        figure, axes = panels(len(shares), height=height, width=width, columns=columns, sharey=columns > 1)
        for ax, (heading, lines) in zip(axes, shares.items(), strict=True):
            _draw_shares(ax, lines)
            ax.set_title(heading, parse_math=False)
            method_axis(ax, methods)
        legend(figure, axes)
        return figure

    said = [
        f"{heading}: " + ", ".join(f"{m} {share:.2f}" for m, share, *_ in lines if share is not None) + "."
        for heading, lines in shares.items()
    ]
    title = f"How often methods are better than {reference}{note}"
    units = (
        "instances, and of the data sets,"
        if any(line[4] for lines in shares.values() for line in lines)
        else "instances"
    )
    caption = f"Share of the {units} on which a method is better than {reference}; a tie counts half."
    header = ["setting", "method", "of instances", "instances", "of data sets", "data sets"]
    alternative = f"{title}: shares of instances. " + " ".join(said)
    numbers: list[list[Any]] = [[heading, *share] for heading, lines in shares.items() for share in lines]
    figure, narrow = paint(TWO_COLUMNS, len(shares)), paint(ONE_COLUMN, 1)
    return Drawing(name, title, caption, alternative, figure, header, numbers, narrow)


def _draw_shares(ax: Any, lines: Sequence[tuple[str, float | None, int, float | None, int]]) -> None:
    for height, (_, instances, _, sets, _) in enumerate(lines):
        if instances is not None:
            ax.plot([instances], [height], "o", color=BLUE, markersize=5, label="of instances")
        if sets is not None:
            ax.plot([sets], [height], "D", color=ORANGE, markersize=5, markerfacecolor="none", markeredgewidth=1.2,
                    label="of data sets")  # fmt: skip
    ax.axvline(0.5, color=GREY, linewidth=1, linestyle="--")
    ax.set_xlim(-0.04, 1.04)
    ax.set_xticks([0, 0.5, 1], ["0", "½", "1"])
    ax.set_xlabel("share of wins")


def _shares(pairs: pl.DataFrame) -> tuple[float | None, int, float | None, int]:
    """Share of instances won, instances, share of data sets won, data sets; without the last two if there is one."""
    gains = pairs["gain"].to_numpy()
    sets: Any = np.zeros(0)
    if "dataset" in pairs.columns and pairs["dataset"].drop_nulls().n_unique() > 1:
        sets = pairs.drop_nulls("dataset").group_by("dataset").agg(pl.col("gain").mean())["gain"].to_numpy()
    return _won(gains), len(gains), _won(sets), len(sets)


def _won(gains: Any) -> float | None:
    return float(np.mean((gains > 0) + 0.5 * (gains == 0))) if len(gains) else None


def time_drawing(rows: pl.DataFrame, labels: Labels) -> Drawing | None:
    """Draw CPU seconds by method on a logarithmic axis: median, quartiles, and from 5 to 95 %."""
    timed = rows.filter(pl.col("seconds") > 0)
    methods = labels.ordered(timed["method"].to_list())
    if not methods:
        return None
    cuts = {m: np.quantile(timed.filter(pl.col("method") == m)["seconds"].to_numpy(), (0.05, 0.25, 0.5, 0.75, 0.95))
            for m in methods}  # fmt: skip
    methods.sort(key=lambda method: float(cuts[method][2]))

    def paint(width: float) -> Any:
        figure, (ax,) = panels(1, height=0.17 * len(methods) + 0.5, width=width)
        for height, method in enumerate(methods):
            low, quarter, median, three_quarters, high = cuts[method]
            ax.plot([low, high], [height, height], color=BLUE, linewidth=1, label="5 to 95 %")
            ax.plot([quarter, three_quarters], [height, height], color=BLUE, linewidth=4.5, alpha=0.45,
                    label="quartiles", solid_capstyle="butt")  # fmt: skip
            ax.plot([median], [height], "o", color=ORANGE, label="median")
        ax.set_xscale("log")
        ax.xaxis.set_major_formatter("{x:g}")
        ax.xaxis.set_minor_formatter("")
        ax.set_xlabel("CPU seconds of a cell")
        method_axis(ax, methods)
        legend(figure, [ax])
        return figure

    title, chosen = "CPU seconds by method", timed["key"].null_count() > 0
    said = ", ".join(f"{method} {cuts[method][2]:.3g}" for method in methods)
    numbers = [[m, *map(float, cuts[m]), timed.filter(pl.col("method") == m).height] for m in methods]
    return Drawing(
        "seconds",
        title,
        f"Logarithmic axis{'; the seconds of a choice among methods are those of all of them' * chosen}.",
        f"{title}, medians from the fastest to the slowest: {said}.",
        paint(TWO_COLUMNS),
        ["method", "5 %", "25 %", "median", "75 %", "95 %", "cells"],
        numbers,
        paint(ONE_COLUMN),
    )


def failure_drawing(table: pl.DataFrame, labels: Labels) -> Drawing | None:
    """Draw the number of failed cells by method; None if no cell failed."""
    cells = table.filter(pl.col("key").is_not_null())
    counts = cells.group_by("method").agg((pl.col("status") == "failed").sum().alias("failed"), pl.len().alias("cells"))
    found = {method: (failed, every) for method, failed, every in counts.iter_rows() if failed}
    if not found:
        return None
    methods = sorted(labels.ordered(sorted(found)), key=lambda method: -found[method][0])

    def paint(width: float) -> Any:
        figure, (ax,) = panels(1, height=0.17 * len(methods) + 0.5, width=width)
        for height, method in enumerate(methods):
            failed, every = found[method]
            ax.barh([height], [failed], height=0.6, color=ORANGE)
            ax.annotate(f"{failed:,} of {every:,}", (failed, height), xytext=(4, 0), textcoords="offset points",
                        va="center", fontsize="small")  # fmt: skip
        ax.margins(x=0.25)
        ax.set_xlim(left=0)
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.set_xlabel("failed cells")
        method_axis(ax, methods)
        return figure

    said = ", ".join(f"{method} {found[method][0]} of {found[method][1]}" for method in methods)
    numbers: list[list[Any]] = [[method, *found[method]] for method in methods]
    title = "Failed cells by method"
    caption = "Means are over the cells that are done."
    header = ["method", "failed", "cells"]
    figure, narrow = paint(TWO_COLUMNS), paint(ONE_COLUMN)
    return Drawing("failures", title, caption, f"{title}: {said}.", figure, header, numbers, narrow)
