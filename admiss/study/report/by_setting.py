"""Figures of means with 95 % intervals: by the levels of each setting, or by method.

By setting, every setting has a panel with its levels on the horizontal axis: numbers (on a logarithmic axis if they
span more than a factor of 20) or positions. Without settings, or with more methods than there are styles, every method
has a line of its own; then the panels are all instances, and the levels of the first setting.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from admiss.drawing import BLACK, BLUE, GREY, Style
from admiss.study.comparisons import Estimate, group_estimates, overlap
from admiss.study.report.axes import fenced_limits, is_logarithmic, name_axis, number_axis
from admiss.study.report.drawing import ONE_COLUMN, TWO_COLUMNS, Drawing, legend, panels
from admiss.study.report.labels import LINE_STYLES, Labels
from admiss.study.report.rows import unit_words

# Settings and levels that are drawn, and levels beyond which lines have no bars.
MOST_SETTINGS, MOST_LEVELS, MOST_BARS = 6, 12, 12
# Panels of levels beside the one of all instances.
MOST_BESIDE = 3
# Methods of one level share this part of the distance to the next.
SPREAD = 0.5
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


def draw_quantity(
    rows: pl.DataFrame, quantity: Quantity, methods: Sequence[str], settings: Sequence[str], labels: Labels
) -> Drawing | None:
    """Draw a quantity by settings, or by method; ``methods`` are all of the study, in their order."""
    styles = labels.styles_of(methods)  # of all: a method has one style in all figures
    present = set(rows["method"].unique().to_list())
    methods = [method for method in methods if method in present]
    shown = [name for name in settings if 2 <= rows[name].drop_nulls().n_unique() and _fits(rows[name])]
    if not methods:
        return None
    if shown and len(methods) <= len(LINE_STYLES):
        return _by_setting(
            rows, quantity, {method: styles[method] for method in methods}, shown[:MOST_SETTINGS], labels
        )
    return _by_method(rows, quantity, methods, shown[:1], labels)


def _fits(levels: pl.Series) -> bool:
    """Whether levels have places on an axis: text with many does not."""
    return levels.dtype.is_numeric() or levels.drop_nulls().n_unique() <= MOST_LEVELS


def _by_setting(
    rows: pl.DataFrame, quantity: Quantity, methods: Mapping[str, Style], settings: Sequence[str], labels: Labels
) -> Drawing:
    found = {name: group_estimates(rows.drop_nulls(name), [name, "method"], quantity.column) for name in settings}
    every = [each for estimates in found.values() for each in estimates.values()]

    def paint(width: float, columns: int | None) -> Any:
        figure, axes = panels(len(settings), width=width, columns=columns, sharey=True)
        lines = []
        for ax, (name, estimates) in zip(axes, found.items(), strict=True):
            lines += _panel(ax, name, estimates, methods, labels)
            if quantity.baseline:
                ax.axhline(0.0, color=BLACK, linewidth=0.8, linestyle=":", label=f"{quantity.baseline} (reference)")
        axes[0].set_ylim(*_limits(every, quantity)[:2])
        figure.supylabel(quantity.axis, fontsize="medium", parse_math=False)
        legend(figure, [*lines, *axes])
        return figure

    said, numbers = [], []
    for name, estimates in found.items():
        levels = [level for level in labels.levels(rows, name) if level is not None]
        for level in (levels[0], levels[-1]):
            at = [(method, estimates[level, method]) for method in methods if (level, method) in estimates]
            said.append(f"{labels.word(name)} = {labels.word(level)}: {_words(at)}.")
        numbers += [
            [labels.word(name), labels.word(level), method, *_numbers(estimates[level, method])]
            for level in levels
            for method in methods
            if (level, method) in estimates
        ]
    header = ["setting", "level", "method", "mean", "low", "high", "units"]
    drawing = _drawing(rows, quantity, every, said, header, numbers, paint(TWO_COLUMNS, None))
    return replace(drawing, narrow=paint(ONE_COLUMN, 1))


def _panel(ax: Any, name: str, estimates: Estimates, methods: Mapping[str, Style], labels: Labels) -> list[Any]:
    """Lines along numbers, or dots at positions; methods are shifted so that their bars do not cover each other.

    Returns the panel if it has lines.
    """
    values = {level for level, _ in estimates}
    numeric = not any(isinstance(value, str | bool) for value in values)
    levels: list[Any] = labels.levels(pl.DataFrame({name: sorted(values)}), name)
    logarithmic = numeric and is_logarithmic(name, levels, labels)
    places = np.array(levels if numeric else range(len(levels)), dtype=float)
    places = np.log(places) if logarithmic else places
    gap = float(np.min(np.diff(places))) if len(places) > 1 else 1.0
    for method, shift in zip(methods, _shifts(len(methods), numeric), strict=True):
        present = [index for index, level in enumerate(levels) if (level, method) in estimates]
        mine = [estimates[levels[index], method] for index in present]
        at = places[present] + shift * gap
        colour, marker, line = methods[method]
        bars = [[(e.mean - e.low) if e.low is not None else 0.0, (e.high - e.mean) if e.high is not None else 0.0]
                for e in mine]  # fmt: skip
        ax.errorbar(
            np.exp(at) if logarithmic else at,
            [each.mean for each in mine],
            yerr=np.transpose(bars) if len(levels) <= MOST_BARS and mine else None,
            color=colour,
            marker=marker,
            linestyle=line if numeric else "none",
            markerfacecolor="white",
            linewidth=1.1,
            elinewidth=0.8,
            capsize=1.5,
            label=method,
        )
    if numeric:
        number_axis(ax, [float(level) for level in levels], logarithmic)
    else:
        name_axis(ax, [labels.word(level) for level in levels])
    ax.set_xlabel(labels.word(name), parse_math=False)
    return [ax] if numeric else []


def _shifts(count: int, numeric: bool) -> Sequence[float]:
    spread = SPREAD * (0.3 if numeric else 1.0)
    return [0.0] if count == 1 else [float(shift) for shift in np.linspace(-spread / 2, spread / 2, count)]


def _by_method(
    rows: pl.DataFrame, quantity: Quantity, methods: Sequence[str], setting: Sequence[str], labels: Labels
) -> Drawing:
    overall = {method: each for (method,), each in group_estimates(rows, ["method"], quantity.column).items()}
    ordered = sorted((method for method in methods if method in overall), key=lambda method: -overall[method].mean)
    parts: dict[str, Mapping[str, Estimate]] = {ALL: overall}
    for name in setting:
        levels = [level for level in labels.levels(rows, name) if level is not None]
        estimates = group_estimates(rows.drop_nulls(name), [name, "method"], quantity.column)
        if len(levels) <= MOST_BESIDE:
            for level in levels:
                here = {method: each for (at, method), each in estimates.items() if at == level}
                parts[labels.heading(name, level)] = here
    every = [each for part in parts.values() for method, each in part.items() if method in ordered]

    def paint(width: float, columns: int) -> Any:
        height = 0.17 * len(ordered) + 0.55
        figure, axes = panels(len(parts), height=height, width=width, columns=columns, sharex=True, sharey=columns > 1)
        for ax, (heading, part) in zip(axes, parts.items(), strict=True):
            _dots(ax, part, ordered)
            if len(parts) > 1:
                ax.set_title(heading, parse_math=False)
            if quantity.baseline:
                ax.axvline(0.0, color=GREY, linewidth=0.8, linestyle=":")
        axes[0].set_xlim(*_limits(every, quantity)[:2])
        figure.supxlabel(quantity.axis, fontsize="medium", parse_math=False)
        return figure

    said = [f"{heading}: {_words([(m, part[m]) for m in ordered if m in part])}." for heading, part in parts.items()]
    numbers = [[heading, m, *_numbers(part[m])] for heading, part in parts.items() for m in ordered if m in part]
    header = ["instances", "method", "mean", "low", "high", "units"]
    drawing = _drawing(rows, quantity, every, said, header, numbers, paint(TWO_COLUMNS, len(parts)))
    return replace(drawing, narrow=paint(ONE_COLUMN, 1))


def _dots(ax: Any, part: Mapping[str, Estimate], methods: Sequence[str]) -> None:
    for height, method in enumerate(methods):
        if each := part.get(method):
            if each.low is not None:
                ax.plot([each.low, each.high], [height, height], color=BLUE, linewidth=1.2)
            ax.plot([each.mean], [height], "o", color=BLUE, markerfacecolor="white")
    ax.set_yticks(range(len(methods)), methods, parse_math=False)
    ax.set_ylim(len(methods) - 0.5, -0.5)


def _limits(every: Sequence[Estimate], quantity: Quantity) -> tuple[float, float, int]:
    """Limits of the axis of means, and the number of means outside; the baseline is always inside."""
    ends = [end for each in every for end in (each.low, each.high) if end is not None]
    return fenced_limits([each.mean for each in every], ends, *([0.0] if quantity.baseline else []))


def _numbers(each: Estimate) -> list[Any]:
    return [each.mean, each.low, each.high, each.units]


def _words(estimates: Sequence[tuple[str, Estimate]]) -> str:
    texts = []
    for method, each in estimates:
        interval = f" ({each.low:.3g} to {each.high:.3g})" if each.low is not None else ""
        texts.append(f"{method} {each.mean:.3g}{interval}")
    return ", ".join(texts)


def _drawing(
    rows: pl.DataFrame,
    quantity: Quantity,
    every: Sequence[Estimate],
    said: Sequence[str],
    header: list[str],
    numbers: list[list[Any]],
    figure: Any,
) -> Drawing:
    """Bind the parts, with sentences on the intervals and on what is outside the axes."""
    notes = [quantity.caption, interval_words(rows)]
    if any(each.units == 1 for each in every):
        notes.append("A mean over one unit has no interval.")
    if outside := _limits(every, quantity)[2]:
        notes.append(f"{outside} of {len(every)} means are far from the others and outside the axes: see the numbers.")
    alternative = f"{quantity.title}. {' '.join(said)}"
    caption = " ".join(notes)
    return Drawing(quantity.name, quantity.title, caption, alternative, figure, header, numbers, metric=quantity.metric)


def interval_words(rows: pl.DataFrame) -> str:
    """Sentence on the intervals of means over rows."""
    if overlap(rows):
        return (
            "Bars are 95 % intervals (Student's t) over the random splits of the data set, corrected as these share "
            "rows (Nadeau and Bengio, 2003)."
        )
    return f"Bars are 95 % intervals (Student's t) over {unit_words(rows)}."
