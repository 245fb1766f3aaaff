"""Figures with lines: the mean value against a setting, such as the missing fraction or the rows n.

A point is the mean over the instances of a panel at that setting, and its bar the standard error over units. Methods of
a figure are compared on the instances on which all of them are done; a method that is done on less than half of the
instances is left out, as the caption says.
"""

import math
from collections.abc import Sequence
from textwrap import fill
from typing import Any

import polars as pl

from admiss.drawing import Style
from admiss.study.report.axes import is_logarithmic, number_axis
from admiss.study.report.drawing import ONE_COLUMN, TWO_COLUMNS, Drawing, legend, panels
from admiss.study.report.labels import Labels
from admiss.study.report.rows import unit_words

COMMON = "Means over the instances on which all methods shown are done"
# Bars longer than this share of the range of means do not stretch the axes.
LONG_BAR = 0.15
# Lines with more points have no bars, and markers at this share of the diagonal.
MOST_BARS, MARKER_SPACING = 12, 0.1
MOST_PANELS = 8
# Longer labels have several lines.
LONG_LABEL = 30


def comparable(rows: pl.DataFrame, methods: Sequence[str]) -> tuple[pl.DataFrame, list[str], str]:
    """Rows of the instances on which all methods are done, these methods, and a note on what was left out."""
    counts = {name: rows.filter(pl.col("method") == name)["instance"].n_unique() for name in methods}
    counts = {name: count for name, count in counts.items() if count}
    if not counts:
        return rows.clear(), [], ""
    shown = [name for name, count in counts.items() if 2 * count >= max(counts.values())]
    left_out = [name for name in counts if name not in shown]
    mine = rows.filter(pl.col("method").is_in(shown))
    complete = mine.group_by("instance").agg(pl.col("method").n_unique()).filter(pl.col("method") == len(shown))
    common = mine.filter(pl.col("instance").is_in(complete["instance"].to_list()))
    text = f"{complete.height:,} of {mine['instance'].n_unique():,} instances"
    if left_out:
        text += f" (left out, as done on less than half of them: {', '.join(left_out)})"
    return common, shown, text


def mean_rows(rows: pl.DataFrame, by: Sequence[str], value: str = "value") -> pl.DataFrame:
    """Mean over the cells of each group, its standard error over units, and the number of cells.

    With m_u the mean over the cells of unit u, the standard error is sd(m_u) / sqrt(units).
    """
    units = rows.group_by([*by, "unit"]).agg(
        pl.col(value).mean().alias("of unit"), pl.col(value).sum().alias("sum"), pl.len().alias("cells")
    )
    mean = pl.col("sum").sum() / pl.col("cells").sum()
    error = pl.col("of unit").std() / pl.len().cast(pl.Float64).sqrt()
    return units.group_by(by).agg(mean.alias("mean"), error.alias("error"), pl.col("cells").sum())


def value_curves(
    rows: pl.DataFrame, methods: Sequence[str], x: str, across: Sequence[str], name: str, title: str, labels: Labels
) -> Drawing | None:
    """Draw the value against x for some methods, with one panel per combination of values of ``across``."""
    if not {x, *across} <= set(rows.columns):
        return None
    rows = rows.drop_nulls([x, *across])
    # a panel with one position has no line
    common, shown, text = comparable(rows.filter(pl.col(x).n_unique().over(across) > 1), methods)
    if len(shown) < 2 or common[x].n_unique() < 2:
        return None
    means = mean_rows(common, [*across, "method", x]).sort(x)
    values = panel_values(common, across, labels)
    styles, floor = labels.styles_of(shown), _floor(means["mean"].to_list(), labels)
    parts = {", ".join(map(labels.word, value)): means.filter(matches(across, value)) for value in values[:MOST_PANELS]}

    def paint(width: float, columns: int | None) -> Any:
        figure, axes = panels(len(parts), width=width, columns=columns, sharey=True)
        for ax, (heading, panel) in zip(axes, parts.items(), strict=True):
            for method in shown:
                draw_line(ax, panel.filter(pl.col("method") == method), x, styles[method], method, floor)
            set_axis(ax, x, heading, labels)
        for ax in axes if columns == 1 else axes[:: 2 if len(parts) == 4 else len(axes)]:
            ax.set_ylabel("mean score")
        axes[0].set_ylim(*value_limits(means["mean"].to_list(), means["error"].to_list(), labels))
        legend(figure, axes[:1])
        return figure

    said = [f"{heading}: {_ends(panel, x)}" for heading, panel in parts.items()]
    below = _below(means, labels)
    caption = f"{COMMON}: {text}. {bar_words(common, x)}{below}"
    alternative = f"{title}: a line for each of {', '.join(shown)}. " + " ".join(said)
    header = [*map(labels.word, across), "method", labels.word(x), "mean", "standard error", "cells"]
    numbers = [list(row) for row in means.select(*across, "method", x, "mean", "error", "cells").iter_rows()]
    first = len(across)
    numbers.sort(key=lambda row: (values.index(tuple(row[:first])), shown.index(row[first]), row[first + 1]))
    numbers = [[*map(labels.word, row[:first]), *row[first:]] for row in numbers]
    figure, narrow = paint(TWO_COLUMNS, None), paint(ONE_COLUMN, 1)
    return Drawing(name, title, caption, alternative, figure, header, numbers, narrow)


def panel_values(rows: pl.DataFrame, across: Sequence[str], labels: Labels) -> list[tuple[Any, ...]]:
    """Combinations of values of some columns that occur, in the order of the labels."""
    order = [labels.levels(rows, name) for name in across]
    present = list(rows.select(across).unique().iter_rows())
    return sorted(present, key=lambda values: [at.index(value) for at, value in zip(order, values, strict=True)])


def matches(columns: Sequence[str], values: Sequence[Any]) -> pl.Expr:
    """Whether columns have given values."""
    return pl.all_horizontal(pl.col(column) == value for column, value in zip(columns, values, strict=True))


def draw_line(ax: Any, means: pl.DataFrame, x: str, style: Style, label: str, floor: float = -math.inf) -> None:
    """Draw the means of :func:`mean_rows` as a line with markers and bars."""
    colour, marker, line = style
    many = means.height > MOST_BARS
    # the bar of a mean outside the axes would cross them
    pairs = means.select("mean", "error").iter_rows()
    bars = [0.0 if error is None or mean < floor else error for mean, error in pairs]
    ax.errorbar(
        means[x].to_list(),
        means["mean"].to_list(),
        yerr=None if many else bars,
        color=colour,
        marker=marker,
        linestyle=line,
        label=label,
        markevery=MARKER_SPACING if many else 1,
        markerfacecolor="white",
        linewidth=1.2,
        elinewidth=0.6,
    )


def bar_words(rows: pl.DataFrame, x: str) -> str:
    """Sentence of a caption about standard errors."""
    many, over = rows[x].n_unique() > MOST_BARS, unit_words(rows)
    return f"Standard errors, over {over}, are among the numbers." if many else f"Bars are standard errors over {over}."


def set_axis(ax: Any, x: str, heading: str, labels: Labels) -> None:
    """Set the title and the horizontal axis of a panel."""
    ax.set_title(heading, parse_math=False)
    ax.set_xlabel(fill(labels.word(x), LONG_LABEL))
    levels = sorted({float(value) for line in ax.lines for value in line.get_xdata()})
    number_axis(ax, levels, is_logarithmic(x, levels, labels))


def _below(means: pl.DataFrame, labels: Labels) -> str:
    """A sentence about the means outside the axes."""
    below = means.filter(pl.col("mean") < _floor(means["mean"].to_list(), labels))
    if not below.height:
        return ""
    names = ", ".join(sorted(set(below["method"].to_list())))
    return f" Below {labels.floor} and outside the axes: {below.height} of {means.height} means ({names})."


def value_limits(values: Sequence[float], errors: Sequence[float | None], labels: Labels) -> tuple[float, float]:
    """Limits of an axis: those of the values and of short bars with a margin, not below the floor."""
    floor = _floor(values, labels)
    shown = [value for value in values if value >= floor]
    longest = LONG_BAR * (max(shown) - min(shown))
    bars = [error if error is not None and error <= longest else 0.0 for error in errors]
    ends = [value + sign * bar for value, bar in zip(values, bars, strict=True) for sign in (-1, 1)]
    low, high = max(floor, min(ends)), max(floor, *ends)
    margin = 0.06 * (high - low) or 0.05
    return max(floor, low - margin), high + margin


def _floor(values: Sequence[float], labels: Labels) -> float:
    """The lowest value shown; scores that are all below it, such as minus an error, have no floor."""
    return -math.inf if labels.floor is None or max(values, default=0.0) < labels.floor else labels.floor


def _ends(panel: pl.DataFrame, x: str) -> str:
    """The best and the worst method at the first and at the last position."""
    texts = []
    positions = panel[x].sort().to_list()
    for position in (positions[0], positions[-1]):
        there = panel.filter(pl.col(x) == position).sort("mean", "method")
        best, worst = there.row(-1, named=True), there.row(0, named=True)
        texts.append(
            f"at {position} the best is {best['method']} with {best['mean']:.3f}, "
            f"the worst {worst['method']} with {worst['mean']:.3f}"
        )
    return "; ".join(texts) + "."
