"""Figures with lines: the mean value against a setting, such as the missing fraction or the rows n.

A point is the mean over the instances of a panel at that setting, and its bar the standard error over units. Methods of
a figure are compared on the instances on which all of them are done; a method that is done on less than half of the
instances is left out, as the caption says.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import polars as pl

from admiss.drawing import Style
from admiss.report.figures import ONE_COLUMN, TWO_COLUMNS, Drawing, legend, panels
from admiss.study.report.labels import Labels
from admiss.study.report.levels import (
    COMMON,
    comparable,
    draw_line,
    fenced_limits,
    level_axis,
)
from admiss.study.table import unit_words

MOST_BARS, MOST_PANELS = 12, 8


def panel_values(rows: pl.DataFrame, across: Sequence[str], labels: Labels) -> list[tuple[Any, ...]]:
    """Combinations of values of some columns that occur, in the order of the labels."""
    order = [labels.levels(rows, name) for name in across]
    present = list(rows.select(across).unique().iter_rows())
    return sorted(present, key=lambda values: [at.index(value) for at, value in zip(order, values, strict=True)])


def matches(columns: Sequence[str], values: Sequence[Any]) -> pl.Expr:
    """Whether columns have given values."""
    return pl.all_horizontal(pl.col(column) == value for column, value in zip(columns, values, strict=True))


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
    styles = labels.styles_of(shown)
    parts = {", ".join(map(labels.word, value)): means.filter(matches(across, value)) for value in values[:MOST_PANELS]}
    low, high, outside = mean_limits(means)

    def paint(width: float, columns: int | None) -> Any:
        figure, axes = panels(len(parts), width=width, columns=columns, sharey=True)
        for ax, (heading, panel) in zip(axes, parts.items(), strict=True):
            for method in shown:
                draw_means(ax, panel.filter(pl.col("method") == method), x, styles[method], method)
            set_axis(ax, x, heading, labels)
        for ax in axes if columns == 1 else axes[:: 2 if len(parts) == 4 else len(axes)]:
            ax.set_ylabel("mean score")
        axes[0].set_ylim(low, high)
        legend(figure, axes[:1])
        return figure

    far = f" {outside} of {means.height} means are far from the others and outside the axes." if outside else ""
    caption = f"{COMMON}: {text}. {bar_words(common, x)}{far}"
    header = [*map(labels.word, across), "method", labels.word(x), "mean", "standard error", "cells"]
    numbers = [list(row) for row in means.select(*across, "method", x, "mean", "error", "cells").iter_rows()]
    first = len(across)
    numbers.sort(key=lambda row: (values.index(tuple(row[:first])), shown.index(row[first]), row[first + 1]))
    numbers = [[*map(labels.word, row[:first]), *row[first:]] for row in numbers]
    figure, narrow = paint(TWO_COLUMNS, None), partial(paint, ONE_COLUMN, 1)
    return Drawing(name, title, caption, figure, header, numbers, narrow)


def mean_limits(means: pl.DataFrame) -> tuple[float, float, int]:
    """Limits of an axis for the means of :func:`mean_rows`, and the number of means outside."""
    bars = means.drop_nulls("error")
    ends = [*(bars["mean"] - bars["error"]), *(bars["mean"] + bars["error"])]
    return fenced_limits(means["mean"].to_list(), ends)


def draw_means(ax: Any, means: pl.DataFrame, x: str, style: Style, label: str) -> None:
    """Draw the means of :func:`mean_rows` as a line, with bars if they are few."""
    bars = means["error"].fill_null(0.0).to_list() if means.height <= MOST_BARS else None
    draw_line(ax, means[x].to_list(), means["mean"].to_list(), bars, style, label)


def bar_words(rows: pl.DataFrame, x: str) -> str:
    """Sentence of a caption about standard errors."""
    many, over = rows[x].n_unique() > MOST_BARS, unit_words(rows)
    return f"Standard errors, over {over}, are among the numbers." if many else f"Bars are standard errors over {over}."


def set_axis(ax: Any, x: str, heading: str, labels: Labels) -> None:
    """Set the title and the horizontal axis of a panel."""
    ax.set_title(heading, parse_math=False)
    level_axis(ax, x, sorted({float(value) for line in ax.lines for value in line.get_xdata()}), labels)
