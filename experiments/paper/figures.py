"""Figures of the paper's studies: scores along the missing fraction and n, scores by design, wins, and seconds."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from admiss.drawing import GREY, LINE_STYLES, WHITE
from admiss.report.figures import Drawing, legend, method_axis, panels
from admiss.study.report.by_setting import time_drawing
from admiss.study.report.levels import COMMON, comparable, fenced_limits
from admiss.study.table import unit_words
from experiments.paper.curves import bar_words, draw_means, matches, mean_rows, panel_values, set_axis, value_curves
from experiments.paper.labels import ADAPTIVE, LABELS
from experiments.paper.numbers import real_design_accuracy
from experiments.paper.wins import win_drawing

MAIN = (
    "AdaptiveStack", "Adaptive LR - best", "Joint - best", "Mean - best", "mice - best", "CART MIA", "RF MIA",
    "XGBoost", "Complete features - best", "Oracle - best",
)  # fmt: skip
# Methods in the figures by design: the paper's adaptive method there is the affine intercept.
BY_DESIGN = ("Affine intercept", *MAIN)
GROUPS = {"": (MAIN, ""), "adaptive-": (ADAPTIVE, ", by level of adaptivity")}
word = LABELS.word


def paper_drawings(rows: pl.DataFrame) -> list[Drawing]:
    """Every figure for which the rows have the columns."""
    inside = LABELS.inside(rows)
    drawn = [*_curves(rows), *_designs(inside), *_wins(inside), time_drawing(rows, LABELS)]
    return [drawing for drawing in drawn if drawing is not None]


def _curves(rows: pl.DataFrame) -> list[Drawing | None]:
    drawn = []
    for index, kind in enumerate(LABELS.levels(rows, "kind")):
        mine = rows.filter(pl.col("kind") == kind)
        suffix = f"-{str(kind).lower()}" if index else ""
        for prefix, (methods, group) in GROUPS.items():
            for x in ("missing_fraction", "n"):
                name = f"{prefix}value-by-{x.replace('_', '-')}{suffix}"
                title = f"Score against {word(x)} on {word(kind)}{group}"
                drawn.append(value_curves(mine, methods, x, ("mechanism", "signal"), name, title, LABELS))
            inside = mine
            if "signal" in mine.columns:
                inside = mine.filter(~pl.col("signal").is_in(list(LABELS.outside["signal"])))
            if "fraction_missing" in inside.columns:
                inside = inside.with_columns(pl.col("fraction_missing").round(1))
            name = f"{prefix}value-by-fraction-missing{suffix}"
            title = f"Score against the {word('fraction_missing')}{group}"
            drawn.append(value_curves(inside, methods, "fraction_missing", ("design",), name, title, LABELS))
        drawn.append(_depths(mine, f"depth-by-n{suffix}"))
    return drawn


def _depths(rows: pl.DataFrame, name: str) -> Drawing | None:
    """The depth that cross-validation selects against n: one line per mechanism and signal, one panel per method."""
    across = ("mechanism", "signal")
    if not {"selected_depth", "n", *across} <= set(rows.columns):
        return None
    deep = rows.drop_nulls(["selected_depth", "n", *across]).with_columns(pl.col("selected_depth").cast(pl.Float64))
    methods = [method for method in (*ADAPTIVE[:3], "CART MIA") if method in set(deep["method"].to_list())]
    deep = deep.filter(pl.col("method").is_in(methods))
    if not methods or deep["n"].n_unique() < 2:
        return None
    means = mean_rows(deep, ["method", *across, "n"], "selected_depth").sort("n")
    figure, axes = panels(len(methods), height=2.4)
    settings = panel_values(deep, across, LABELS)
    for ax, method in zip(axes, methods, strict=True):
        for setting, style in zip(settings, LINE_STYLES, strict=False):
            line = means.filter((pl.col("method") == method) & matches(across, setting))
            if line.height:
                draw_means(ax, line, "n", style, ", ".join(map(word, setting)))
        set_axis(ax, "n", method, LABELS)
    axes[0].set_ylabel("mean depth selected")
    legend(figure, axes[:1])
    title = f"Depth that cross-validation selects against {word('n')}, on {word(rows['kind'][0])}"
    caption = f"Means over {deep.height:,} cells. {bar_words(deep, 'n')}"
    header = ["method", *map(word, across), word("n"), "mean depth", "standard error", "cells"]
    columns = means.select("method", *across, "n", "mean", "error", "cells")
    numbers = [list(row) for row in columns.sort("method", *across, "n").iter_rows()]
    return Drawing(name, title, caption, figure, header, numbers)


def _tasks(rows: pl.DataFrame) -> list[tuple[str, str, pl.DataFrame]]:
    """All rows, and those of each task if there are several: suffix of names, words, rows."""
    parts = [("", "", rows)]
    if "task" in rows.columns and rows["task"].drop_nulls().n_unique() > 1:
        for task in rows["task"].drop_nulls().unique().sort().to_list():
            parts.append((f"-{task}", f", {task}", rows.filter(pl.col("task") == task)))
    return parts


def _designs(rows: pl.DataFrame) -> list[Drawing]:
    """Mean value by design, one panel per design, for all tasks and for each."""
    if "design" not in rows.columns:
        return []
    drawn = []
    for suffix, task, mine in _tasks(rows):
        mine = mine.drop_nulls("design")
        # real targets have no oracle: each design has its own methods
        designs = LABELS.levels(mine, "design")
        parts = {design: comparable(mine.filter(pl.col("design") == design), BY_DESIGN) for design in designs}
        parts = {design: part for design, part in parts.items() if len(part[1]) > 1}
        if not parts:
            continue
        methods = LABELS.ordered([method for _, shown, _ in parts.values() for method in shown])
        figure, axes = panels(
            len(parts), height=0.19 * len(methods) + 0.6, columns=len(parts), sharex=True, sharey=True
        )
        # the paper has no numbers by task
        printed = real_design_accuracy() if not task else {}
        numbers, captions, heights, ends = [], [], [], []
        for ax, (design, (common, _, text)) in zip(axes, parts.items(), strict=True):
            means = mean_rows(common, ["method"])
            paper = {method: number.value for (method, setting), number in printed.items() if setting == design}
            paper = {method: value for method, value in paper.items() if method in methods}
            _draw_dots(ax, means, methods, paper)
            heights += [*means["mean"].to_list(), *paper.values()]
            known = means.drop_nulls("error")
            ends += [*(known["mean"] - known["error"]), *(known["mean"] + known["error"])]
            ax.set_title(word(design), parse_math=False)
            ax.set_xlabel("mean score")
            ranked = means.sort("mean", descending=True).rows(named=True)
            captions.append(f"{word(design)}, {text}")
            numbers += [
                [word(design), *(row[c] for c in ("method", "mean", "error", "cells")), paper.get(row["method"])]
                for row in ranked
            ]
        axes[0].set_xlim(*fenced_limits(heights, ends)[:2])
        title = f"Mean score by design{task}"
        strokes = "Grey strokes are the numbers of the paper, over all its instances. " if printed else ""
        caption = f"Bars are standard errors over {unit_words(mine)}. {strokes}{COMMON}: {'; '.join(captions)}."
        header = ["design", "method", "mean", "standard error", "cells", "paper"]
        drawn.append(Drawing(f"designs{suffix}", title, caption, figure, header, numbers))
    return drawn


def _draw_dots(ax: Any, means: pl.DataFrame, methods: Sequence[str], paper: Mapping[str, float]) -> None:
    styles = LABELS.styles_of(methods)
    for method, value in paper.items():
        ax.plot([value], [methods.index(method)], "|", color=GREY, markersize=11, markeredgewidth=1.5)
    for row in means.rows(named=True):
        colour, marker, _ = styles[row["method"]]
        ax.errorbar([row["mean"]], [methods.index(row["method"])], xerr=[row["error"] or 0.0], color=colour,
                    marker=marker, markersize=5, markerfacecolor=WHITE, markeredgewidth=1.2, elinewidth=1.0,
                    linestyle="none")  # fmt: skip
    method_axis(ax, methods)


def _wins(rows: pl.DataFrame) -> list[Drawing | None]:
    """Wins against mean imputation, by design or by mechanism and signal; for all tasks and for each."""
    across = ("design",) if "design" in rows.columns else ("mechanism", "signal")
    names = set(rows["method"].to_list())
    methods = [name for name in names if name in BY_DESIGN or "- best" in name]
    return [win_drawing(mine, methods, across, f"wins{suffix}", LABELS, task) for suffix, task, mine in _tasks(rows)]
