"""Figures with a dot for each method: scores by design, wins against mean imputation, and seconds.

A method wins on an instance where its value is larger than that of the reference, and on a data set where the mean of
its differences there is positive; a tie counts one half. Instances of a data set are not independent, so that the share
of data sets is the one to judge by.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from admiss.drawing import BLUE, GREY, ORANGE
from admiss.study.report.curves import COMMON, comparable, mean_rows, value_limits
from admiss.study.report.drawing import Drawing, looks, panels
from admiss.study.report.rows import MAIN, OUTSIDE, REFERENCE, levels, method_order, unit_words, words
from experiments.paper.numbers import real_design_accuracy

# Methods beside MAIN in the figures by design: the paper's adaptive method there is the affine intercept.
BY_DESIGN = ("Affine intercept", *MAIN)


def dot_drawings(rows: pl.DataFrame) -> list[Drawing]:
    """Every figure with dots for which the rows have the columns."""
    inside = _inside(rows)
    found = [*design_drawings(inside), *win_drawings(inside), time_drawing(rows)]
    return [drawing for drawing in found if drawing is not None]


def _inside(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows without the levels that averages leave out, where others are there."""
    for name, values in OUTSIDE.items():
        if name in rows.columns:
            kept = rows.filter(~pl.col(name).is_in(values).fill_null(False))
            rows = kept if kept.height else rows
    return rows


def _tasks(rows: pl.DataFrame) -> list[tuple[str, str, pl.DataFrame]]:
    """All rows, and where there are several tasks those of each: a suffix of names, words, rows."""
    parts = [("", "", rows)]
    if "task" in rows.columns and rows["task"].drop_nulls().n_unique() > 1:
        for task in rows["task"].drop_nulls().unique().sort().to_list():
            parts.append((f"-{task}", f", {task}", rows.filter(pl.col("task") == task)))
    return parts


def design_drawings(rows: pl.DataFrame) -> list[Drawing]:
    """Mean value by design, a panel for each, methods below each other; for all tasks and for each."""
    if "design" not in rows.columns:
        return []
    found = []
    for suffix, task, mine in _tasks(rows):
        mine = mine.drop_nulls("design")
        designs = levels(mine, "design")
        # an oracle has no place where the target is real, so that each design has its own methods
        parts = {design: comparable(mine.filter(pl.col("design") == design), BY_DESIGN) for design in designs}
        parts = {design: part for design, part in parts.items() if len(part[1]) > 1}
        if not parts:
            continue
        methods = method_order([method for _, shown, _ in parts.values() for method in shown])
        figure, axes = panels(
            len(parts), height=0.32 * len(methods) + 1.0, columns=len(parts), sharex=True, sharey=True
        )
        # the paper has no numbers by task
        printed = real_design_accuracy() if not task else {}
        said, numbers, captions, heights, bars = [], [], [], [], []
        for ax, (design, (kept, _, text)) in zip(axes, parts.items(), strict=True):
            means = mean_rows(kept, ["method"])
            paper = {method: number.value for (method, setting), number in printed.items() if setting == design}
            paper = {method: value for method, value in paper.items() if method in methods}
            _draw_dots(ax, means, methods, paper)
            heights += [*means["mean"].to_list(), *paper.values()]
            bars += [*means["error"].to_list(), *(None for _ in paper)]
            ax.set_title(words(design), fontsize=10, parse_math=False)
            ax.set_xlabel("mean score")
            ranked = means.sort("mean", descending=True).rows(named=True)
            said.append(f"{words(design)}: " + ", ".join(f"{row['method']} {row['mean']:.3f}" for row in ranked) + ".")
            captions.append(f"{words(design)}, {text}")
            numbers += [
                [words(design), *(row[c] for c in ("method", "mean", "error", "cells")), paper.get(row["method"])]
                for row in ranked
            ]
        axes[0].set_xlim(*value_limits(heights, bars))
        title = f"Mean score by design{task}"
        strokes = "Grey strokes are the numbers of the paper, over all its instances. " if printed else ""
        caption = f"Bars are standard errors over {unit_words(mine)}. {strokes}{COMMON}: {'; '.join(captions)}."
        header = ["design", "method", "mean", "standard error", "cells", "paper"]
        found.append(
            Drawing(f"designs{suffix}", title, caption, f"{title}. " + " ".join(said), figure, header, numbers)
        )
    return found


def _draw_dots(ax: Any, means: pl.DataFrame, methods: Sequence[str], paper: Mapping[str, float]) -> None:
    style = looks(methods)
    for method, value in paper.items():
        ax.plot([value], [methods.index(method)], "|", color=GREY, markersize=15, markeredgewidth=2)
    for row in means.rows(named=True):
        colour, marker, _ = style[row["method"]]
        ax.errorbar([row["mean"]], [methods.index(row["method"])], xerr=[row["error"] or 0.0], color=colour,
                    marker=marker, markersize=7, markerfacecolor="white", markeredgewidth=1.6, elinewidth=1.4,
                    linestyle="none")  # fmt: skip
    _method_axis(ax, methods)


def _method_axis(ax: Any, methods: Sequence[str]) -> None:
    ax.set_yticks(range(len(methods)), methods, fontsize=9)
    ax.set_ylim(len(methods) - 0.5, -0.5)


def win_drawings(rows: pl.DataFrame) -> list[Drawing]:
    """Share of wins against the reference, by design or by mechanism and signal; for all tasks and for each."""
    if REFERENCE not in set(rows["method"].to_list()):
        return []
    across = ("design",) if "design" in rows.columns else ("mechanism", "signal")
    if not set(across) <= set(rows.columns):
        return []
    found = [_wins(mine, across, f"wins{suffix}", task) for suffix, task, mine in _tasks(rows)]
    return [drawing for drawing in found if drawing is not None]


def _wins(rows: pl.DataFrame, across: Sequence[str], name: str, task: str) -> Drawing | None:
    base = rows.filter(pl.col("method") == REFERENCE).select("instance", pl.col("value").alias("base"))
    pairs = rows.filter(pl.col("method") != REFERENCE).drop_nulls(list(across)).join(base, on="instance")
    methods = [
        method for method in method_order(pairs["method"].to_list()) if method in BY_DESIGN or "- best" in method
    ]
    pairs = pairs.filter(pl.col("method").is_in(methods)).with_columns((pl.col("value") - pl.col("base")).alias("gain"))
    places = _places(pairs, across)
    if not places:
        return None
    figure, axes = panels(len(places), height=0.34 * len(methods) + 1.0, columns=len(places), sharey=True)
    said, numbers = [], []
    for ax, place in zip(axes, places, strict=True):
        here = pairs.filter(pl.all_horizontal(pl.col(c) == v for c, v in zip(across, place, strict=True)))
        heading = ", ".join(map(words, place))
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
        _method_axis(ax, methods)
        said.append(
            f"{heading}: " + ", ".join(f"{m} {share:.2f}" for m, share, *_ in shares if share is not None) + "."
        )
        numbers += [[heading, *share] for share in shares]
    _unique_legend(figure, axes)
    title = f"How often methods are better than {REFERENCE}{task}"
    units = "instances, and of the data sets," if "dataset" in pairs.columns else "instances"
    caption = f"Share of the {units} on which a method is better than {REFERENCE}; a tie counts half."
    header = ["setting", "method", "of instances", "instances", "of data sets", "data sets"]
    alternative = f"{title}: shares of instances. " + " ".join(said)
    return Drawing(name, title, caption, alternative, figure, header, numbers)


def _places(rows: pl.DataFrame, across: Sequence[str]) -> list[tuple[Any, ...]]:
    order = [levels(rows, name) for name in across]
    present = list(rows.select(across).unique().iter_rows())
    return sorted(present, key=lambda place: [values.index(value) for values, value in zip(order, place, strict=True)])


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


def time_drawing(rows: pl.DataFrame) -> Drawing | None:
    """CPU seconds by method on a logarithmic axis: median, quartiles, and from 5 to 95 %."""
    timed = rows.filter(pl.col("seconds") > 0)
    methods = method_order(timed["method"].to_list())
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
    _method_axis(ax, methods)
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
