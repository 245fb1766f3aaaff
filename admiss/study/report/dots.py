"""Figures with one dot per method: wins against a reference method, and seconds.

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
from admiss.study.report.drawing import Drawing, panels
from admiss.study.report.labels import Labels


def method_axis(ax: Any, methods: Sequence[str]) -> None:
    """Name methods on the vertical axis, the first one on top."""
    ax.set_yticks(range(len(methods)), methods, fontsize=9)
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
    figure, axes = panels(len(settings), height=0.34 * len(methods) + 1.0, columns=len(settings), sharey=True)
    said, numbers = [], []
    for ax, setting in zip(axes, settings, strict=True):
        here = pairs.filter(matches(across, setting))
        heading = ", ".join(map(labels.word, setting))
        shares = [(method, *_shares(here.filter(pl.col("method") == method))) for method in methods]
        for height, (_, instances, _, sets, _) in enumerate(shares):
            if instances is not None:
                ax.plot([instances], [height], "o", color=BLUE, markersize=7, label="of instances")
            if sets is not None:
                ax.plot([sets], [height], "D", color=ORANGE, markersize=7, markerfacecolor="none", markeredgewidth=1.6,
                        label="of data sets")  # fmt: skip
        ax.axvline(0.5, color=GREY, linewidth=1, linestyle="--")
        ax.set_xlim(-0.04, 1.04)
        ax.set_xticks([0, 0.5, 1], ["0", "½", "1"])
        ax.set_title(heading, fontsize=10, parse_math=False)
        ax.set_xlabel("share of wins")
        method_axis(ax, methods)
        said.append(
            f"{heading}: " + ", ".join(f"{m} {share:.2f}" for m, share, *_ in shares if share is not None) + "."
        )
        numbers += [[heading, *share] for share in shares]
    _unique_legend(figure, axes)
    title = f"How often methods are better than {reference}{note}"
    units = "instances, and of the data sets," if "dataset" in pairs.columns else "instances"
    caption = f"Share of the {units} on which a method is better than {reference}; a tie counts half."
    header = ["setting", "method", "of instances", "instances", "of data sets", "data sets"]
    alternative = f"{title}: shares of instances. " + " ".join(said)
    return Drawing(name, title, caption, alternative, figure, header, numbers)


def _shares(pairs: pl.DataFrame) -> tuple[float | None, int, float | None, int]:
    """Share of instances won, instances, share of data sets won, data sets."""
    gains = pairs["gain"].to_numpy()
    sets: Any = np.zeros(0)
    if "dataset" in pairs.columns:
        sets = pairs.drop_nulls("dataset").group_by("dataset").agg(pl.col("gain").mean())["gain"].to_numpy()
    return _won(gains), len(gains), _won(sets), len(sets)


def _won(gains: Any) -> float | None:
    return float(np.mean((gains > 0) + 0.5 * (gains == 0))) if len(gains) else None


def _unique_legend(figure: Any, axes: Sequence[Any]) -> None:
    entries = {label: handle for ax in axes for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)}
    figure.legend(entries.values(), entries.keys(), loc="outside lower center", ncols=2, frameon=False, fontsize=9)


def time_drawing(rows: pl.DataFrame, labels: Labels) -> Drawing | None:
    """Draw CPU seconds by method on a logarithmic axis: median, quartiles, and from 5 to 95 %."""
    timed = rows.filter(pl.col("seconds") > 0)
    methods = labels.ordered(timed["method"].to_list())
    if not methods:
        return None
    cuts = {m: np.quantile(timed.filter(pl.col("method") == m)["seconds"].to_numpy(), (0.05, 0.25, 0.5, 0.75, 0.95))
            for m in methods}  # fmt: skip
    methods.sort(key=lambda method: float(cuts[method][2]))
    figure, (ax,) = panels(1, height=0.27 * len(methods) + 0.8)
    for height, method in enumerate(methods):
        low, quarter, median, three_quarters, high = cuts[method]
        ax.plot([low, high], [height, height], color=BLUE, linewidth=1, label="5 to 95 %")
        ax.plot([quarter, three_quarters], [height, height], color=BLUE, linewidth=6, alpha=0.45, label="quartiles",
                solid_capstyle="butt")  # fmt: skip
        ax.plot([median], [height], "o", color=ORANGE, markersize=6, label="median")
    ax.set_xscale("log")
    ax.xaxis.set_major_formatter("{x:g}")
    ax.set_xlabel("CPU seconds of a cell")
    method_axis(ax, methods)
    _unique_legend(figure, [ax])
    title = "CPU seconds by method"
    said = ", ".join(f"{method} {cuts[method][2]:.3g}" for method in methods)
    numbers = [[m, *map(float, cuts[m]), timed.filter(pl.col("method") == m).height] for m in methods]
    return Drawing(
        "seconds",
        title,
        "Logarithmic axis; the seconds of a choice among methods are those of all of them.",
        f"{title}, medians from the fastest to the slowest: {said}.",
        figure,
        ["method", "5 %", "25 %", "median", "75 %", "95 %", "cells"],
        numbers,
    )
