"""Levels of settings on axes and in panels, limits that one mean cannot stretch, and methods on common instances."""

from collections.abc import Callable, Sequence
from textwrap import fill
from typing import Any

import numpy as np
import polars as pl

from admiss.drawing import WHITE, Style
from admiss.study.report.labels import Labels
from formulations.arrays import FloatArray

COMMON = "Means over the instances on which all methods shown are done"


def comparable(rows: pl.DataFrame, methods: Sequence[str]) -> tuple[pl.DataFrame, list[str], str]:
    """Rows of the instances on which all methods are done, these methods, and a note on what was left out.

    A method that is done on less than half of the instances is left out.
    """
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


def draw_line(ax: Any, x: Any, means: Any, bars: Any, style: Style, label: str) -> None:
    """Draw means with bars, None for none, as a line with markers."""
    colour, marker, line = style
    ax.errorbar(
        x,
        means,
        yerr=bars,
        color=colour,
        marker=marker,
        linestyle=line,
        markerfacecolor=WHITE,
        linewidth=1.1,
        elinewidth=0.8,
        capsize=1.5,
        label=label,
    )


def level_axis(ax: Any, name: str, levels: Sequence[Any], labels: Labels) -> tuple[FloatArray, Callable[[Any], Any]]:
    """Put the levels of a setting on the horizontal axis, given in their order.

    Numbers that span a factor of ten are on a logarithmic axis; text has positions. The result are the places of the
    levels, on a scale on which distances can be compared, and a function from such places to values of the axis.
    """
    ax.set_xlabel(fill(labels.word(name), 30), parse_math=False)
    if any(isinstance(level, str | bool) for level in levels):
        # a third of the width of a figure has room for about 36 characters of this size
        names = [fill(labels.word(level), max(8, 36 // len(levels))) for level in levels]
        longest = max(len(line) for name in names for line in name.split("\n"))
        slanted = {"rotation": 30, "ha": "right"} if longest * len(names) > 48 else {}
        ax.set_xticks(range(len(names)), names, parse_math=False, **slanted)
        ax.set_xlim(-0.5, len(names) - 0.5)
        return np.arange(len(names), dtype=float), np.asarray
    is_logarithmic = levels[0] > 0 and (name in labels.logarithmic or levels[-1] >= 10 * levels[0])
    if is_logarithmic:
        ax.set_xscale("log")
        ax.minorticks_off()
    ax.xaxis.set_major_formatter(lambda x, _: f"{x:,.0f}" if x == int(x) and 1 <= abs(x) < 1e6 else f"{x:g}")
    if len(levels) <= 6:
        ax.set_xticks(levels)
    values = np.array(levels, dtype=float)
    return (np.log(values), np.exp) if is_logarithmic else (values, np.asarray)


def fenced_limits(means: Sequence[float], ends: Sequence[float], *always: float) -> tuple[float, float, int]:
    """Limits of an axis for means, the ends of their intervals and numbers always shown; the number of means outside.

    A number far from the others, such as the score of a fit that diverged, would flatten all others: means beyond three
    times the distance of the quartiles from them are outside if they are at most a quarter.

    Examples
    --------
    >>> low, high, outside = fenced_limits([0.1, 0.2, 0.3, 0.2, -9.0], [])
    >>> round(low, 2), round(high, 2), outside
    (0.09, 0.31, 1)
    >>> low, high, _ = fenced_limits([0.87, 0.88], [0.83, 0.91, 0.84, 0.92])
    >>> round(low, 2), round(high, 2)
    (0.82, 0.93)
    >>> fenced_limits([0.0], [], 0.0)
    (-0.06, 0.06, 0)
    """
    lower, upper = np.quantile(means, (0.25, 0.75))
    reach = 3 * (upper - lower)
    inside = [mean for mean in means if lower - reach <= mean <= upper + reach]
    if not reach or 4 * len(inside) < 3 * len(means):
        inside = list(means)
    low = min([*inside, *always])
    high = max([*inside, *always])
    # an interval much longer than the others and than the range of means does not stretch the axis
    spread = float(np.median(np.abs(np.subtract(ends, np.median(ends))))) if len(ends) else 0.0
    room = max(high - low, 3 * spread) or abs(high) or 1.0
    low = max(low - room, min([low, *ends]))
    high = min(high + room, max([high, *ends]))
    margin = 0.06 * ((high - low) or room)
    return low - margin, high + margin, len(means) - len(inside)
