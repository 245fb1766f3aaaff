"""Figure of wins against a reference method.

A method wins on an instance if its value is larger than that of the reference, and on a data set if the mean of its
differences there is positive; a tie counts one half. Instances of a data set are not independent: the share of data
sets is the one to judge by.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from admiss.drawing import BLUE, GREY, ORANGE
from admiss.report.figures import ONE_COLUMN, TWO_COLUMNS, Drawing, legend, method_axis, panels
from admiss.study.report.labels import Labels
from experiments.paper.curves import matches, panel_values

# Instances of which a share says something.
FEWEST = 5


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
    if max(line[2] for lines in shares.values() for line in lines) < FEWEST:
        return None

    def paint(width: float, columns: int) -> Any:
        height = 0.2 * len(methods) + 0.6
        figure, axes = panels(len(shares), height=height, width=width, columns=columns, sharey=columns > 1)
        for ax, (heading, lines) in zip(axes, shares.items(), strict=True):
            _draw_shares(ax, lines)
            ax.set_title(heading, parse_math=False)
            method_axis(ax, methods)
        legend(figure, axes)
        return figure

    title = f"How often methods are better than {reference}{note}"
    units = (
        "instances, and of the data sets,"
        if any(line[4] for lines in shares.values() for line in lines)
        else "instances"
    )
    caption = f"Share of the {units} on which a method is better than {reference}; a tie counts half."
    header = ["setting", "method", "of instances", "instances", "of data sets", "data sets"]
    numbers: list[list[Any]] = [[heading, *share] for heading, lines in shares.items() for share in lines]
    figure, narrow = paint(TWO_COLUMNS, len(shares)), partial(paint, ONE_COLUMN, 1)
    return Drawing(name, title, caption, figure, header, numbers, narrow)


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
