"""Figures of greedy against exact partitions: scores on test rows, and the excess training cost of greedy.

The loss of greedy on an instance is (cost of greedy) / (cost of exact) - 1, both in training at the same leaf cost.
Only instances with a proven exact cost count, if the rows have a proof.
"""

from typing import Any

import polars as pl

from admiss.drawing import LINE_STYLES
from admiss.report.figures import Drawing, legend, panels
from experiments.paper.curves import draw_means, mean_rows, set_axis, value_curves
from experiments.paper.labels import LABELS

METHODS = ("none", "greedy", "exact")
AGAINST = ("n", "missing_fraction", "max_depth")
word = LABELS.word


def partition_drawings(rows: pl.DataFrame) -> list[Drawing]:
    """The figures; none without both methods."""
    if not {"greedy", "exact"} <= set(rows["method"].to_list()):
        return []
    across = ("source",) if "source" in rows.columns else ("kind",)
    parts = [("", "", rows)]
    if "tuned" in rows.columns:
        parts = [
            ("", ", depth and penalty given", rows.filter(~pl.col("tuned"))),
            ("-tuned", ", tuned by cross-validation", rows.filter(pl.col("tuned"))),
        ]
    drawn = [
        value_curves(mine, METHODS, x, across, f"partitions-by-{x.replace('_', '-')}{suffix}",
                     f"Score on test rows against {word(x)}{text}", LABELS)
        for suffix, text, mine in parts
        for x in AGAINST
        if not (suffix and x != "n")
    ]  # fmt: skip
    drawn.append(loss_drawing(parts[0][2], across[0]))
    return [drawing for drawing in drawn if drawing is not None]


def loss_drawing(rows: pl.DataFrame, lines: str) -> Drawing | None:
    """Draw the mean loss of greedy in percent against what varies, with one line per source of rows."""
    if "train_cost" not in rows.columns:
        return None
    exact = rows.filter((pl.col("method") == "exact") & (pl.col("train_cost") > 0))
    if "proof" in rows.columns:
        exact = exact.filter(pl.col("proof").str.starts_with("optimal"))
    cost = exact.select("instance", pl.col("train_cost").alias("optimum"))
    loss = (100 * (pl.col("train_cost") / pl.col("optimum") - 1)).alias("loss")
    pairs = rows.filter(pl.col("method") == "greedy").join(cost, on="instance").with_columns(loss).drop_nulls("loss")
    varied = [x for x in AGAINST if x in pairs.columns and pairs[x].drop_nulls().n_unique() > 1]
    if not varied:
        return None
    figure, axes = panels(len(varied), height=2.4, sharey=True)
    sources = LABELS.levels(pairs, lines)
    numbers: list[list[Any]] = []
    for ax, x in zip(axes, varied, strict=True):
        means = mean_rows(pairs.drop_nulls(x), [lines, x], "loss").sort(x)
        for index, source in enumerate(sources):
            line = means.filter(pl.col(lines) == source)
            label = word(source)
            draw_means(ax, line, x, LINE_STYLES[index % len(LINE_STYLES)], label)
            numbers += [[word(x), row[x], label, *(row[c] for c in ("mean", "error", "cells"))]
                        for row in line.rows(named=True)]  # fmt: skip
        set_axis(ax, x, f"by {word(x)}", LABELS)
    axes[0].set_ylabel("greedy above optimum, %")
    legend(figure, axes)
    title = "Training cost of the greedy tree above the proven optimum"
    caption = f"Means over {pairs.height:,} instances, with standard errors over instances; 0 where greedy is optimal."
    header = ["against", "value", "source", "mean %", "standard error", "instances"]
    return Drawing("greedy-loss", title, caption, figure, header, numbers)
