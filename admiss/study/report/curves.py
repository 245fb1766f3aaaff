"""Figures with lines: the value against the missing fraction (of entries, or of features with signal) or the rows n.

A point is the mean over the instances of a panel at that place, and its bar the standard error over units: signals,
data sets, or instances where these are independent. The methods of a figure
are compared on the same instances, those on which each of them is done; a method that is done on less than half of
the instances is left out, and the caption says so.
"""

from collections.abc import Sequence
from typing import Any

import polars as pl

from admiss.study.report.drawing import STYLES, Drawing, Style, legend, looks, panels
from admiss.study.report.rows import ADAPTIVE, MAIN, OUTSIDE, levels, unit_words, words

COMMON = "Means over the instances on which all methods shown are done"
# Means below are outside the axes.
FLOOR = -0.1
# Bars that are longer do not stretch the axes.
LONG_BAR = 0.1
# Lines with more points have no bars, and markers at this share of the diagonal.
MOST_BARS, MARKER_SPACING = 12, 0.1
# Panels that a figure has at most.
MOST_PANELS = 8
# Figures that have more places than this on the horizontal axis leave its ticks to matplotlib.
MOST_TICKS = 11
# Words that are too long for the axis of a panel stand below all of them; of more ticks every second is named.
LONG_LABEL = 30
MANY_TICKS = 6
GROUPS = {"": (MAIN, ""), "adaptive-": (ADAPTIVE, ", by level of adaptivity")}


def curve_drawings(rows: pl.DataFrame) -> list[Drawing]:
    """Every figure with lines for which the rows have the columns."""
    found = []
    for place, kind in enumerate(levels(rows, "kind")):
        mine = rows.filter(pl.col("kind") == kind)
        suffix = f"-{str(kind).lower()}" if place else ""
        for prefix, (methods, group) in GROUPS.items():
            for x in ("missing_fraction", "n"):
                name = f"{prefix}value-by-{x.replace('_', '-')}{suffix}"
                title = f"Score against {words(x)} on {words(kind)}{group}"
                found.append(value_curves(mine, methods, x, ("mechanism", "signal"), name, title))
            inside = mine.filter(~pl.col("signal").is_in(OUTSIDE["signal"])) if "signal" in mine.columns else mine
            if "fraction_missing" in inside.columns:
                inside = inside.with_columns(pl.col("fraction_missing").round(1))
            name = f"{prefix}value-by-fraction-missing{suffix}"
            title = f"Score against the {words('fraction_missing')}{group}"
            found.append(value_curves(inside, methods, "fraction_missing", ("design",), name, title))
        found.append(depth_curves(mine, f"depth-by-n{suffix}"))
    return [drawing for drawing in found if drawing is not None]


def comparable(rows: pl.DataFrame, methods: Sequence[str]) -> tuple[pl.DataFrame, list[str], str]:
    """Rows of the instances on which all methods are done, these methods, and words on what was left out."""
    counts = {name: rows.filter(pl.col("method") == name)["instance"].n_unique() for name in methods}
    counts = {name: count for name, count in counts.items() if count}
    if not counts:
        return rows.clear(), [], ""
    shown = [name for name, count in counts.items() if 2 * count >= max(counts.values())]
    left_out = [name for name in counts if name not in shown]
    mine = rows.filter(pl.col("method").is_in(shown))
    complete = mine.group_by("instance").agg(pl.col("method").n_unique()).filter(pl.col("method") == len(shown))
    kept = mine.filter(pl.col("instance").is_in(complete["instance"].to_list()))
    text = f"{complete.height:,} of {mine['instance'].n_unique():,} instances"
    if left_out:
        text += f" (left out, as done on less than half of them: {', '.join(left_out)})"
    return kept, shown, text


def mean_rows(rows: pl.DataFrame, by: Sequence[str], value: str = "value") -> pl.DataFrame:
    """Mean over the cells of groups, its standard error over units, and the cells.

    With m_u the mean over the cells of unit u, the standard error is sd(m_u) / sqrt(units).
    """
    units = rows.group_by([*by, "unit"]).agg(
        pl.col(value).mean().alias("of unit"), pl.col(value).sum().alias("sum"), pl.len().alias("cells")
    )
    mean = pl.col("sum").sum() / pl.col("cells").sum()
    error = pl.col("of unit").std() / pl.len().cast(pl.Float64).sqrt()
    return units.group_by(by).agg(mean.alias("mean"), error.alias("error"), pl.col("cells").sum())


def value_curves(
    rows: pl.DataFrame, methods: Sequence[str], x: str, across: Sequence[str], name: str, title: str
) -> Drawing | None:
    """The value against x for some methods, a panel for each of the values of ``across``."""
    if not {x, *across} <= set(rows.columns):
        return None
    rows = rows.drop_nulls([x, *across])
    # a panel with one place has no line
    kept, shown, text = comparable(rows.filter(pl.col(x).n_unique().over(across) > 1), methods)
    if len(shown) < 2 or kept[x].n_unique() < 2:
        return None
    means = mean_rows(kept, [*across, "method", x]).sort(x)
    places = _panel_values(kept, across)[:MOST_PANELS]
    figure, axes = panels(len(places), sharey=True)
    style, said = looks(shown), []
    for ax, place in zip(axes, places, strict=True):
        panel = means.filter(pl.all_horizontal(pl.col(c) == v for c, v in zip(across, place, strict=True)))
        heading = ", ".join(map(words, place))
        for method in shown:
            line = panel.filter(pl.col("method") == method)
            draw_line(ax, line[x].to_list(), line["mean"].to_list(), line["error"].to_list(), style[method], method)
        set_axis(ax, x, heading)
        said.append(f"{heading}: {_ends(panel, x)}")
    for ax in axes[:: 2 if len(places) == 4 else len(axes)]:
        ax.set_ylabel("mean score")
    if len(words(x)) > LONG_LABEL:
        figure.supxlabel(words(x), fontsize=10)
    below = _limit(axes, means)
    legend(figure, axes[0])
    caption = f"{COMMON}: {text}. {bar_words(kept, x)}{below}"
    alternative = f"{title}: a line for each of {', '.join(shown)}. " + " ".join(said)
    header = [*map(words, across), "method", words(x), "mean", "standard error", "cells"]
    order = {method: place for place, method in enumerate(shown)}
    numbers = [list(row) for row in means.select(*across, "method", x, "mean", "error", "cells").iter_rows()]
    numbers.sort(
        key=lambda row: (places.index(tuple(row[: len(across)])), order[row[len(across)]], row[len(across) + 1])
    )
    return Drawing(name, title, caption, alternative, figure, header, [[*map(words, r[:-5]), *r[-5:]] for r in numbers])


def _panel_values(rows: pl.DataFrame, across: Sequence[str]) -> list[tuple[Any, ...]]:
    present = set(rows.select(across).unique().iter_rows())
    places: list[tuple[Any, ...]] = [()]
    for name in across:
        places = [(*place, value) for place in places for value in levels(rows, name)]
    return [place for place in places if place in present]


def draw_line(ax: Any, x: list[Any], y: list[float], errors: list[Any], style: Style, label: str) -> None:
    """A line with markers and bars."""
    colour, marker, line = style
    many = len(x) > MOST_BARS
    # where a mean is outside the axes its bar would cross them
    bars = [0.0 if error is None or mean < FLOOR else error for mean, error in zip(y, errors, strict=True)]
    ax.errorbar(
        x,
        y,
        yerr=None if many else bars,
        color=colour,
        marker=marker,
        linestyle=line,
        label=label,
        markevery=MARKER_SPACING if many else 1,
        markersize=5,
        markerfacecolor="white",
        linewidth=1.5,
        elinewidth=0.7,
    )


def bar_words(rows: pl.DataFrame, x: str) -> str:
    """What a caption says of standard errors."""
    many, over = rows[x].n_unique() > MOST_BARS, unit_words(rows)
    return f"Standard errors, over {over}, are among the numbers." if many else f"Bars are standard errors over {over}."


def set_axis(ax: Any, x: str, heading: str) -> None:
    """Title and horizontal axis of a panel; n is on a logarithmic one."""
    ax.set_title(heading, fontsize=10, parse_math=False)
    if len(words(x)) <= LONG_LABEL:
        ax.set_xlabel(words(x))
    places = sorted({float(value) for line in ax.lines for value in line.get_xdata()})
    if x != "n" and len(places) <= MOST_TICKS:
        shown = places[:: 2 if len(places) > MANY_TICKS else 1]
        ax.set_xticks(shown, [f"{place:g}" for place in shown])
    if x == "n":
        ax.set_xscale("log")
        low, high = ax.get_xlim()
        ticks = [n for n in (20, 50, 100, 200, 500, 1000, 2000, 5000, 10000) if low <= n <= high]
        ticks = ticks[::-2] if len(ticks) > 5 else ticks
        ax.set_xticks(ticks, [f"{n:,}" for n in ticks], minor=False)
        ax.minorticks_off()


def _limit(axes: Sequence[Any], means: pl.DataFrame) -> str:
    """Set the axes, and say how many means are outside."""
    axes[0].set_ylim(*value_limits(means["mean"].to_list(), means["error"].to_list()))
    below = means.filter(pl.col("mean") < FLOOR)
    if not below.height:
        return ""
    names = ", ".join(sorted(set(below["method"].to_list())))
    return f" Below {FLOOR} and outside the axes: {below.height} of {means.height} means ({names})."


def value_limits(values: Sequence[float], errors: Sequence[float | None]) -> tuple[float, float]:
    """Limits of an axis: those of the values and of short bars with a margin, and never below FLOOR."""
    bars = [error if error is not None and error <= LONG_BAR else 0.0 for error in errors]
    ends = [value + sign * bar for value, bar in zip(values, bars, strict=True) for sign in (-1, 1)]
    low, high = max(FLOOR, min(ends)), max(FLOOR, *ends)
    margin = 0.06 * (high - low) or 0.05
    return max(FLOOR, low - margin), high + margin


def _ends(panel: pl.DataFrame, x: str) -> str:
    """The best and the worst method at the first and at the last place."""
    texts = []
    places = panel[x].sort().to_list()
    for place in (places[0], places[-1]):
        there = panel.filter(pl.col(x) == place).sort("mean", "method")
        best, worst = there.row(-1, named=True), there.row(0, named=True)
        texts.append(
            f"at {place} the best is {best['method']} with {best['mean']:.3f}, "
            f"the worst {worst['method']} with {worst['mean']:.3f}"
        )
    return "; ".join(texts) + "."


def depth_curves(rows: pl.DataFrame, name: str) -> Drawing | None:
    """The depth limit that cross-validation selects against n: a line a mechanism and signal, a panel a method."""
    across = ("mechanism", "signal")
    if not {"selected_depth", "n", *across} <= set(rows.columns):
        return None
    deep = rows.drop_nulls(["selected_depth", "n", *across]).with_columns(pl.col("selected_depth").cast(pl.Float64))
    methods = [method for method in (*ADAPTIVE[:3], "CART MIA") if method in set(deep["method"].to_list())]
    deep = deep.filter(pl.col("method").is_in(methods))
    if not methods or deep["n"].n_unique() < 2:
        return None
    means = mean_rows(deep, ["method", *across, "n"], "selected_depth").sort("n")
    figure, axes = panels(len(methods), height=3.4)
    said, places = [], _panel_values(deep, across)
    for ax, method in zip(axes, methods, strict=True):
        for place, style in zip(places, STYLES, strict=False):
            is_here = pl.all_horizontal(pl.col(c) == v for c, v in zip(across, place, strict=True))
            line = means.filter((pl.col("method") == method) & is_here)
            if line.height:
                label, y = ", ".join(map(words, place)), line["mean"].to_list()
                draw_line(ax, line["n"].to_list(), y, line["error"].to_list(), style, label)
                said.append(f"{method}, {label}: {y[0]:.2f} at n = {line['n'][0]}, {y[-1]:.2f} at n = {line['n'][-1]}.")
        set_axis(ax, "n", method)
    axes[0].set_ylabel("mean depth selected")
    legend(figure, axes[0])
    kind = rows["kind"][0]
    title = f"Depth that cross-validation selects against {words('n')}, on {words(kind)}"
    caption = f"Means over {deep.height:,} cells. {bar_words(deep, 'n')}"
    header = ["method", *map(words, across), words("n"), "mean depth", "standard error", "cells"]
    numbers = [
        list(row)
        for row in means.select("method", *across, "n", "mean", "error", "cells")
        .sort("method", *across, "n")
        .iter_rows()
    ]
    return Drawing(name, title, caption, f"{title}. " + " ".join(said), figure, header, numbers)
