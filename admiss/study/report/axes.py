"""Axes of figures: levels of a setting as numbers or positions, and limits that one mean cannot stretch.

A number far from the others, such as the score of a fit that diverged, would flatten all others: means beyond three
times the distance of the quartiles from them are outside the axes if they are few, and the caption counts them.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from admiss.study.report.labels import Labels

# Levels that span a larger factor are on a logarithmic axis.
WIDE = 20
# So are levels with neighbours closer than this share of the range, if that takes them apart.
CROWDED = 0.08
# With more positions on the horizontal axis, matplotlib chooses the ticks; among many every second is named.
MOST_TICKS, MANY_TICKS = 11, 6
# Names of levels that are longer together are slanted.
LONG_NAMES = 24
FENCE, FEW = 3.0, 0.25


def is_logarithmic(name: str, levels: Sequence[float], labels: Labels) -> bool:
    """Whether the numbers of a setting are on a logarithmic axis.

    Examples
    --------
    >>> is_logarithmic("n", [10, 500], Labels()), is_logarithmic("n", [10, 200], Labels())
    (True, False)
    >>> is_logarithmic("n", [60, 100, 1000], Labels())
    True
    """
    if min(levels) <= 0:
        return False
    crowded = _least_gap(levels) < CROWDED and _least_gap(levels) < _least_gap(np.log(levels))
    return name in labels.logarithmic or max(levels) > WIDE * min(levels) or crowded


def _least_gap(levels: Any) -> float:
    """Smallest distance of neighbours as a share of the range."""
    gaps = np.diff(np.sort(levels))
    return float(gaps.min() / gaps.sum()) if gaps.size else 1.0


def number_axis(ax: Any, levels: Sequence[float], logarithmic: bool) -> None:
    """Scale and ticks of a horizontal axis of numbers, given in order."""
    if logarithmic:
        from matplotlib.ticker import LogLocator, NullLocator

        ax.set_xscale("log")
        ax.xaxis.set_minor_locator(NullLocator())
        if len(levels) > MANY_TICKS:
            subs = (1.0, 2.0, 5.0) if levels[-1] < 100 * levels[0] else (1.0,)
            ax.xaxis.set_major_locator(LogLocator(subs=subs))
            ax.xaxis.set_major_formatter(lambda x, _: _number(x))
            return
    if len(levels) <= MOST_TICKS:
        shown = levels[:: 2 if len(levels) > MANY_TICKS else 1]
        ax.set_xticks(shown, [_number(level) for level in shown])


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) and 1 <= abs(value) < 1e6 else f"{value:g}"


def name_axis(ax: Any, names: Sequence[str]) -> None:
    """Name positions 0, 1, .. on the horizontal axis."""
    slanted = {"rotation": 30, "ha": "right"} if sum(map(len, names)) > LONG_NAMES else {}
    ax.set_xticks(range(len(names)), names, parse_math=False, **slanted)
    ax.set_xlim(-0.5, len(names) - 0.5)


def fenced_limits(means: Sequence[float], ends: Sequence[float], *always: float) -> tuple[float, float, int]:
    """Limits of an axis for means, the ends of their intervals and numbers always shown; the number of means outside.

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
    reach = FENCE * (upper - lower)
    inside = [mean for mean in means if lower - reach <= mean <= upper + reach]
    if len(means) - len(inside) > FEW * len(means) or not reach:
        inside = list(means)
    low, high = min([*inside, *always]), max([*inside, *always])
    # an interval much longer than the others and than the range of means does not stretch the axis further
    room = (high - low) or max(map(abs, ends), default=0.0) or abs(high) or 1.0
    middle = np.median(ends) if ends else low
    spread = FENCE * np.median(np.abs(np.subtract(ends, middle))) if ends else 0.0
    low, high = (
        max(min(low - room, middle - spread), min([low, *ends])),
        min(max(high + room, middle + spread), max([high, *ends])),
    )
    margin = 0.06 * ((high - low) or room)
    return low - margin, high + margin, len(means) - len(inside)
