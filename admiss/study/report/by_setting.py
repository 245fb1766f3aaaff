"""The figures of a study that binds none: differences to the reference and scores with 95% intervals, and seconds.

Every setting has a panel with its levels on the horizontal axis: numbers, on a logarithmic axis if they span a factor
of ten, or positions. Without settings, or with more methods than there are styles, every method has a line of its own;
then the panels are all instances, and the levels of the first setting.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from admiss.drawing import BLUE, GREY, ORANGE, REFERENCE, WHITE, Style
from admiss.estimates import Estimate
from admiss.report.figures import ONE_COLUMN, TWO_COLUMNS, Drawing, legend, method_axis, panels
from admiss.study.plan import Plan
from admiss.study.report.comparisons import group_estimates, overlap, paired_differences
from admiss.study.report.labels import Labels
from admiss.study.report.levels import COMMON, comparable, draw_line, fenced_limits, level_axis
from admiss.study.report.sections import file_name
from admiss.study.table import filter_names, unit_words

# Settings that are drawn, levels of text that have places on an axis, and panels of levels beside all instances.
MOST_SETTINGS, MOST_LEVELS, MOST_PANELS = 6, 12, 3
ALL = "all instances"
# From (level, method) to the estimate.
Estimates = Mapping[tuple[Any, ...], Estimate]


@dataclass(frozen=True)
class Quantity:
    """A column of rows that is averaged, with its words; ``baseline`` is the method whose values are all 0."""

    column: str
    name: str
    title: str
    axis: str
    caption: str
    baseline: str = ""
    metric: str = ""


def default_drawings(rows: pl.DataFrame, study: Plan, labels: Labels) -> list[Drawing]:
    """Paired differences to the reference by setting, scores by setting, and seconds."""
    inside = labels.inside(rows)
    drawn = [main_drawing(rows, study, labels)]
    if inside["method"].n_unique() > 1:
        drawn.append(_scores(inside, study, labels))
    drawn.append(time_drawing(rows, labels))
    return [drawing for drawing in drawn if drawing is not None]


def main_drawing(rows: pl.DataFrame, study: Plan, labels: Labels, metric: str = "") -> Drawing | None:
    """Paired differences to the reference by setting; the scores if there is one method only.

    ``metric`` is a further one, of which the rows have the value.
    """
    rows = labels.inside(rows)
    methods = labels.ordered(rows["method"].to_list())
    if len(methods) == 1:
        return _scores(rows, study, labels, metric)
    measure = labels.metric(metric or study.metrics[0])
    reference = labels.reference_among(methods)
    side = "above" if measure.sign > 0 else "below"
    caption = f"Mean difference in {measure.word} to {reference} on the same instance; {side} 0 is better."
    if reference != labels.reference:
        caption += f" The study names no reference: {reference} is its first method."
    quantity = Quantity(
        "difference",
        f"differences{_suffix(metric)}",
        f"Difference in {measure.word} to {reference}",
        f"{measure.word} minus that of {reference}",
        caption,
        baseline=reference,
        metric=metric,
    )
    pairs = paired_differences(rows, reference).with_columns(pl.col("difference") * measure.sign)
    return _draw(pairs, quantity, methods, filter_names(rows, study), labels)


def _scores(rows: pl.DataFrame, study: Plan, labels: Labels, metric: str = "") -> Drawing | None:
    methods = labels.ordered(rows["method"].to_list())
    measure = labels.metric(metric or study.metrics[0])
    common, _, text = comparable(rows.with_columns(pl.col("value") * measure.sign), methods)
    title = f"Mean {measure.word}"
    caption = f"{COMMON}: {text}; {measure.better}."
    quantity = Quantity("value", f"scores{_suffix(metric)}", title, f"mean {measure.word}", caption, metric=metric)
    return _draw(common, quantity, methods, filter_names(rows, study), labels) if common.height else None


def _suffix(metric: str) -> str:
    return f"-{file_name(metric)}" if metric else ""


def _draw(
    rows: pl.DataFrame, quantity: Quantity, methods: Sequence[str], settings: Sequence[str], labels: Labels
) -> Drawing | None:
    """Draw a quantity by settings, or by method; ``methods`` are all of the study, in their order."""
    styles = labels.styles_of(methods)  # of all: a method has one style in all figures
    present = set(rows["method"].to_list())
    styles = {method: style for method, style in styles.items() if method in present}
    methods = [method for method in methods if method in present]
    shown = [name for name in settings if 2 <= rows[name].drop_nulls().n_unique() and _fits(rows[name])]
    if not methods:
        return None
    # more methods than styles would share some
    by_setting = bool(shown) and len({style[:2] for style in styles.values()}) == len(styles)
    if by_setting:
        parts = {name: _estimates(rows, name, quantity, labels) for name in shown[:MOST_SETTINGS]}
        numbers = [
            [labels.word(name), labels.word(level), method, *_numbers(each)]
            for name, estimates in parts.items()
            for (level, method), each in estimates.items()
        ]
    else:
        parts = _by_level(rows, quantity, shown[:1], labels)
        numbers = [
            [part, method, *_numbers(each)]
            for part, estimates in parts.items()
            for (_, method), each in estimates.items()
        ]
    every = [each for estimates in parts.values() for each in estimates.values()]
    ends = [end for each in every for end in (each.low, each.high) if end is not None]
    *limits, outside = fenced_limits([each.mean for each in every], ends, *([0.0] if quantity.baseline else []))

    def paint(width: float, columns: int | None) -> Any:
        if by_setting:
            figure, axes = panels(len(parts), width=width, columns=columns, sharey=True)
            for ax, (name, estimates) in zip(axes, parts.items(), strict=True):
                _panel(ax, name, estimates, {method: styles[method] for method in methods}, labels)
                if quantity.baseline:
                    label = f"{quantity.baseline} (reference)"
                    ax.axhline(0.0, color=REFERENCE, linewidth=0.8, linestyle=":", label=label)
            axes[0].set_ylim(*limits)
            figure.supylabel(quantity.axis, fontsize="medium", parse_math=False)
            legend(figure, axes)
            return figure
        height = 0.17 * len(methods) + 0.55
        figure, axes = panels(len(parts), height, width, columns or len(parts), sharex=True, sharey=columns is None)
        for ax, (heading, estimates) in zip(axes, parts.items(), strict=True):
            _dots(ax, estimates, [method for _, method in parts[ALL]])
            ax.set_title(heading, parse_math=False)
            if quantity.baseline:
                ax.axvline(0.0, color=GREY, linewidth=0.8, linestyle=":")
        axes[0].set_xlim(*limits)
        figure.supxlabel(quantity.axis, fontsize="medium", parse_math=False)
        return figure

    notes = [quantity.caption, interval_words(rows)]
    if any(each.units == 1 for each in every):
        notes.append("A mean over one unit has no interval.")
    if outside:
        notes.append(f"{outside} of {len(every)} means are far from the others and outside the axes: see the numbers.")
    header = [*(["setting", "level"] if by_setting else ["instances"]), "method", "mean", "low", "high", "units"]
    wide, narrow = paint(TWO_COLUMNS, None), partial(paint, ONE_COLUMN, 1)
    return Drawing(quantity.name, quantity.title, " ".join(notes), wide, header, numbers, narrow, quantity.metric)


def _fits(levels: pl.Series) -> bool:
    """Whether levels have places on an axis: text with many does not."""
    return levels.dtype.is_numeric() or levels.drop_nulls().n_unique() <= MOST_LEVELS


def _estimates(rows: pl.DataFrame, name: str, quantity: Quantity, labels: Labels) -> Estimates:
    """Estimates by level and method, in their order."""
    found = group_estimates(rows.drop_nulls(name), [name, "method"], quantity.column)
    methods = labels.ordered(rows["method"].to_list())
    pairs = [(level, method) for level in labels.levels(rows, name) for method in methods]
    return {pair: found[pair] for pair in pairs if pair in found}


def _by_level(rows: pl.DataFrame, quantity: Quantity, setting: Sequence[str], labels: Labels) -> dict[str, Estimates]:
    """Estimates of all instances, from the largest to the smallest, and of each level of a setting with few."""
    overall = {("", method): each for (method,), each in group_estimates(rows, ["method"], quantity.column).items()}
    ordered = sorted(overall, key=lambda key: -overall[key].mean)
    parts: dict[str, Estimates] = {ALL: {key: overall[key] for key in ordered}}
    for name in setting:
        found = _estimates(rows, name, quantity, labels)
        levels = list(dict.fromkeys(level for level, _ in found))
        for level in levels if len(levels) <= MOST_PANELS else ():
            here = {("", method): found[level, method] for _, method in ordered if (level, method) in found}
            parts[labels.heading(name, level)] = here
    return parts


def _panel(ax: Any, name: str, estimates: Estimates, styles: Mapping[str, Style], labels: Labels) -> None:
    """Lines along numbers, or dots at positions; methods are shifted so that their bars do not cover each other."""
    levels = list(dict.fromkeys(level for level, _ in estimates))
    places, to_axis = level_axis(ax, name, levels, labels)
    is_line = not isinstance(levels[0], str | bool)
    gap = float(np.min(np.diff(places))) if len(places) > 1 else 1.0
    # part of the distance to the next level
    spread = (0.15 if is_line else 0.5) * (len(styles) > 1)
    for (method, style), shift in zip(styles.items(), np.linspace(-spread / 2, spread / 2, len(styles)), strict=True):
        present = [index for index, level in enumerate(levels) if (level, method) in estimates]
        mine = [estimates[levels[index], method] for index in present]
        low = [0.0 if each.low is None else each.mean - each.low for each in mine]
        high = [0.0 if each.high is None else each.high - each.mean for each in mine]
        bars = [low, high] if len(levels) <= MOST_LEVELS else None
        line = style if is_line else (*style[:2], "none")
        draw_line(ax, to_axis(places[present] + shift * gap), [each.mean for each in mine], bars, line, method)


def _dots(ax: Any, estimates: Estimates, methods: Sequence[str]) -> None:
    for (_, method), each in estimates.items():
        place = methods.index(method)
        if each.low is not None:
            ax.plot([each.low, each.high], [place, place], color=BLUE, linewidth=1.2)
        ax.plot([each.mean], [place], "o", color=BLUE, markerfacecolor=WHITE)
    method_axis(ax, methods)


def _numbers(each: Estimate) -> list[Any]:
    return [each.mean, each.low, each.high, each.units]


def interval_words(rows: pl.DataFrame) -> str:
    """Sentence on the intervals of means over rows."""
    if overlap(rows):
        return (
            "Bars are 95% intervals (Student's t) over the random splits of the data set, corrected as these share "
            "rows (Nadeau and Bengio, 2003)."
        )
    return f"Bars are 95% intervals (Student's t) over {unit_words(rows)}."


def time_drawing(rows: pl.DataFrame, labels: Labels) -> Drawing | None:
    """Draw CPU seconds by method on a logarithmic axis: median, quartiles, and from 5 to 95%."""
    timed = rows.filter(pl.col("seconds") > 0)
    methods = labels.ordered(timed["method"].to_list())
    if not methods:
        return None
    seconds = {method: timed.filter(pl.col("method") == method)["seconds"].to_numpy() for method in methods}
    cuts = {method: np.quantile(mine, (0.05, 0.25, 0.5, 0.75, 0.95)) for method, mine in seconds.items()}
    methods.sort(key=lambda method: float(cuts[method][2]))
    decades = float(np.log10(max(cut[-1] for cut in cuts.values()) / min(cut[0] for cut in cuts.values())))

    def paint(width: float) -> Any:
        figure, (ax,) = panels(1, height=0.17 * len(methods) + 0.5, width=width)
        for place, method in enumerate(methods):
            low, quarter, median, three_quarters, high = cuts[method]
            ax.plot([low, high], [place, place], color=BLUE, linewidth=1, label="5 to 95%")
            ax.plot([quarter, three_quarters], [place, place], color=BLUE, linewidth=4.5, alpha=0.45, label="quartiles")
            ax.plot([median], [place], "o", color=ORANGE, label="median")
        ax.set_xscale("log")
        # an inch per label, and two labels per decade where they fit
        ax.xaxis.get_major_locator().set_params(subs=(1.0, 3.0) if 2 * decades <= width else (1.0,))
        ax.xaxis.set_major_formatter("{x:g}")
        ax.minorticks_off()
        ax.set_xlabel("CPU seconds of a cell")
        method_axis(ax, methods)
        legend(figure, [ax])
        return figure

    chosen = "; the seconds of a choice among methods are those of all of them" * (timed["key"].null_count() > 0)
    header = ["method", "5%", "25%", "median", "75%", "95%", "cells"]
    numbers = [[method, *map(float, cuts[method]), len(seconds[method])] for method in methods]
    caption = f"Logarithmic axis{chosen}."
    wide, narrow = paint(TWO_COLUMNS), partial(paint, ONE_COLUMN)
    return Drawing("seconds", "CPU seconds by method", caption, wide, header, numbers, narrow)
