"""Figures of the bounds: over the rows n for several classes, and bias against estimation over the order t.

Both have logarithmic axes. The shaded region above sigma^2 + 4 L^2 is reached by truncation alone: a bound there is
vacuous, and its curve is dotted. Curves differ by colour, line and marker.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from numbers import Real
from textwrap import fill
from typing import Any

import numpy as np

from admiss.adaptivity import Adaptivity, AffineIntercept
from admiss.bounds.bias import AS_PRINTED, first_exact_order
from admiss.bounds.counts import ClassLike, hierarchy, read_class
from admiss.bounds.setting import BoundSetting, takes_setting
from admiss.bounds.theorem import LARGEST_ORDER, Bound, crossover, generalization_bound, short
from admiss.drawing import BLACK, BLUE, GREY, ORANGE, STYLES, pyplot
from formulations.arrays import FloatArray

SHADE = "#EEEEEE"
# matplotlib overflows beyond this.
HUGE = 1e100


@takes_setting("d", "sigma2", "L", "classes", "n", "c")
def plot_bounds(
    setting: BoundSetting,
    classes: Sequence[ClassLike] | None = None,
    n: tuple[float, float] | None = None,
    *,
    ax: Any = None,
) -> Any:
    """Plot the bounds of several classes over the rows n, and mark where the class with the smallest bound changes.

    Changes at which the smallest bound is vacuous are not marked, as the bounds do not distinguish the classes there. A
    class whose printed b(F) exceeds the largest float has no curve, only its entry in the legend.

    Parameters
    ----------
    setting : BoundSetting
        As in ``generalization_bound``; its ``bias`` may have one entry for each of ``classes``. With a number or an
        estimate the curve is a bound given that b(F), as stated in the label of the axis.
    classes : sequence of classes, optional
        At most seven; static, affine, the orders 2 to 5 (below d) and fully adaptive by default.
    n : pair of float, optional
        The smallest and the largest n; by default from 10 to beyond the last change.
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> ax = plot_bounds(BoundSetting(d=5, sigma2=0.2, L=1.0, missing=0.05))
    >>> ax.get_xlabel()
    'training rows n'
    """
    plt = pyplot()
    candidates = _read_classes(classes, setting.d)
    if not 1 <= len(candidates) <= len(STYLES):
        raise ValueError(f"The figure can show 1 to {len(STYLES)} classes, not {len(candidates)}: select some.")
    first = [
        generalization_bound(own, 1, F) for own, F in zip(setting.for_each(len(candidates)), candidates, strict=True)
    ]
    biases = [bound.b for bound in first]  # b(F) does not depend on n
    totals = partial(_totals, setting, candidates, biases)
    changes = _changes(setting, candidates, biases)
    low, high = _read_range(n, [rows for rows, _ in changes])
    grid = np.geomspace(low, high, 241)
    curves = list(zip(*map(totals, grid), strict=True))

    own_figure = ax is None
    ax = plt.figure(figsize=(6.4, 4.4), layout="constrained").gca() if own_figure else ax
    for k, (bound, curve) in enumerate(zip(first, curves, strict=True)):
        _curve(ax, grid, np.array(curve), setting.truncation, STYLES[k], bound.name, (k + 0.5) / len(first))
    ax.set_xscale("log")
    ax.set_xlim(low, high)
    lowest = min(setting.truncation, *map(min, curves))
    floor = min(0.6 * lowest, 0.5 * setting.sigma2 or lowest)
    # in the user's axes the legend is on the right
    _finish(ax, (floor, 4 * setting.truncation), setting.truncation, "right" if own_figure else "left")
    _mark_changes(ax, sorted(change for change in changes if low <= change[0] <= high), floor)
    if setting.sigma2 > 0:
        ax.axhline(setting.sigma2, color=GREY, linewidth=0.8, zorder=1)
        ax.annotate("noise $\\sigma^2$", (0, setting.sigma2), xycoords=("axes fraction", "data"), xytext=(4, 3),
                    textcoords="offset points", fontsize=8, color=GREY)  # fmt: skip
    ax.set_xlabel("training rows n")
    claim = _claim(first)
    # short lines, to fit into low axes
    ax.set_ylabel(f"bound on the risk, c = {setting.c:g}" + (f"\n{fill(f'({claim})', 26)}" if claim else ""))
    # beside the axes if there is room: the user's axes may have a neighbour
    beside = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)} if own_figure else {"loc": "upper right", "ncols": 2}
    ax.legend(fontsize=8, frameon=False, handlelength=3.6, **beside)
    return ax


def _totals(setting: BoundSetting, classes: list[Adaptivity], biases: list[float], n: float) -> list[float]:
    """The bound of each class at n rows, infinite if its b(F) is."""
    return [
        generalization_bound(replace(setting, bias=b), n, F).total if b < math.inf else math.inf
        for F, b in zip(classes, biases, strict=True)
    ]


def _changes(setting: BoundSetting, classes: list[Adaptivity], biases: list[float]) -> list[tuple[float, float]]:
    """The rows n at which the class with the smallest bound changes, unless all are vacuous there, and that bound."""
    changes = []
    for i, j in combinations([k for k, b in enumerate(biases) if b < math.inf], 2):
        n = crossover(replace(setting, bias=(biases[i], biases[j])), classes[i], classes[j])
        if n is None or not 1 < n < math.inf:
            continue
        totals = _totals(setting, classes, biases, n)
        if min(totals) <= setting.truncation and totals[i] <= min(totals) * (1 + 1e-9):
            changes.append((n, min(totals)))
    return changes


def _read_classes(classes: Any, d: int) -> list[Adaptivity]:
    if classes is None:
        return [F for F in hierarchy(d, min(d - 1, 5)) if not isinstance(F, AffineIntercept)]
    one = isinstance(classes, tuple) and len(classes) == 2 and classes[0] == "polynomial" != classes[1]
    if one or isinstance(classes, str) or not isinstance(classes, Iterable):
        raise ValueError(f"classes must be a list of classes, such as ['static', 'affine'], not {classes!r}.")
    return [read_class(F, d) for F in classes]


def _read_range(n: tuple[float, float] | None, changes: list[float]) -> tuple[float, float]:
    if n is None:
        return 10.0, min(max(1e5, 10 * max(changes, default=1.0)), 1e12)
    pair = list(n) if isinstance(n, Iterable) else []
    if len(pair) != 2 or not all(isinstance(rows, Real) for rows in pair) or not 1 <= pair[0] < pair[1] <= HUGE:
        raise ValueError(f"n must be a pair of a smallest and a largest number of rows, between 1 and {HUGE:g}.")
    return float(pair[0]), float(pair[1])


def _claim(bounds: list[Bound]) -> str:
    """The reason why the numbers are not bounds; empty if they are."""
    return next((bound.caveat for bound in bounds if bound.caveat), "")


def _curve(
    ax: Any, x: FloatArray, y: FloatArray, ceiling: float, style: tuple[str, str, Any], label: str, start: float
) -> None:
    """A curve, dotted if vacuous; markers of different curves are at different positions."""
    colour, marker, line = style
    vacuous = y > ceiling
    ax.plot(x, np.where(vacuous & (y < HUGE), y, np.nan), ":", color=colour, linewidth=1.2, zorder=2)
    step = max(1, len(x) // 8)
    marked = np.arange(int(start * step), len(x), step)
    marked = marked[~vacuous[marked]].tolist()
    ax.plot(x, np.where(vacuous, np.nan, y), color=colour, linestyle=line, marker=marker, markevery=marked,
            markersize=5, linewidth=1.5, label=f"{label} (vacuous)" if vacuous.all() else label, zorder=3)  # fmt: skip


def _mark_changes(ax: Any, changes: list[tuple[float, float]], floor: float) -> None:
    """Circles where the class with the smallest bound changes, and the rows n at the bottom."""
    low, high = ax.get_xlim()
    for k, (rows, total) in enumerate(changes):
        ax.plot([rows, rows], [floor, total], color=GREY, linewidth=0.8, linestyle=(0, (1, 2)), zorder=1)
        ax.plot(rows, total, "o", markersize=9, markerfacecolor="none", markeredgecolor=GREY, zorder=4)
        side, shift = ("right", -3) if rows > high / (high / low) ** 0.15 else ("left", 3)
        ax.annotate(f"n = {_number(rows)}", (rows, floor), xytext=(shift, 4 + 11 * (k % 3)), ha=side,
                    textcoords="offset points", fontsize=8, color=GREY,
                    bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5})  # fmt: skip


def _finish(ax: Any, limits: tuple[float, float], ceiling: float, side: str) -> None:
    """Logarithmic scale, and the shaded region of vacuous bounds with its label on one side."""
    ax.set_yscale("log")
    ax.set_ylim(*limits)
    ax.axhspan(ceiling, limits[1], color=SHADE, linewidth=0, zorder=0)
    x, shift = (1, -4) if side == "right" else (0, 4)
    ax.annotate("vacuous: above $\\sigma^2 + 4 L^2$", (x, ceiling), xycoords=("axes fraction", "data"),
                xytext=(shift, 4), textcoords="offset points", ha=side, fontsize=8, color=GREY,
                bbox={"facecolor": SHADE, "edgecolor": "none", "pad": 1.0})  # fmt: skip
    ax.spines[["top", "right"]].set_visible(False)


def _number(value: float) -> str:
    if value >= HUGE:
        return short(value)
    return f"{value:,.0f}" if value < 1e6 else f"{value:.1e}"


@takes_setting("n", "d", "sigma2", "L", "c")
def plot_bias_estimation(setting: BoundSetting, n: float, *, ax: Any = None) -> Any:
    """Plot the parts of the bound at n rows over the order t of the weights: 8 b(F), estimation, and the total.

    Parameters
    ----------
    setting : BoundSetting
        As in ``generalization_bound``.
    n : float
        Rows, at least 1.
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> ax = plot_bias_estimation(BoundSetting(d=6, sigma2=0.2, L=1.0, missing=0.05), 10_000)
    >>> ax.get_xlabel()
    'order t of the weights (0 static, 1 affine, 6 fully adaptive)'
    """
    full = first_exact_order(setting)
    orders = np.arange(min(full, LARGEST_ORDER) + 1)
    bounds = [generalization_bound(setting, n, ("polynomial", int(t))) for t in orders]
    ax = pyplot().figure(figsize=(6.4, 4.4), layout="constrained").gca() if ax is None else ax
    total = np.array([bound.total for bound in bounds])
    printed = [AS_PRINTED if AS_PRINTED in rule else "" for rule in (bounds[0].bias_rule, bounds[0].constant_rule)]
    parts = (
        ("total", total, BLACK, "o", "-"),
        ("bias part 8 b(F)", np.array([bound.bias for bound in bounds]), ORANGE, "s", "--"),
        ("estimation part", np.array([bound.estimation for bound in bounds]), BLUE, "^", "-."),
    )
    ceiling = setting.truncation
    everything = np.concatenate([values for _, values, *_ in parts])
    # tiny and huge parts are outside of the figure
    inside = everything[(everything > 1e-6 * ceiling) & (everything < 1e3 * ceiling)]
    floor = inside.min(initial=ceiling) / 4
    for (part, values, colour, marker, line), claim in zip(parts, [_claim(bounds), *printed], strict=True):
        label = f"{part} ({claim})" if claim else part
        shown = (values > 0) & (values < HUGE)
        ax.plot(orders[shown], values[shown], line, marker=marker, color=colour, markersize=5.5, label=label)
        # zero is not on a logarithmic axis
        for t in orders[values == 0]:
            box = {"boxstyle": "circle,pad=0.15", "facecolor": "white", "edgecolor": colour}
            ax.annotate("0", (t, floor), xytext=(0, 3), textcoords="offset points", ha="center", fontsize=9,
                        color=colour, bbox=box)  # fmt: skip
    best = int(np.argmin(total))
    if total[best] < HUGE:
        ax.plot(best, total[best], "o", markersize=12, markerfacecolor="none", markeredgecolor=GREY)
        side = "left" if best == 0 else "right" if best == orders[-1] else "center"
        # below the curve at its left end, and if the label of the shaded region is above
        below = best == 0 or ceiling / 4 < total[best] <= ceiling
        ax.annotate(f"smallest: t = {best}", (best, total[best]), xytext=(0, -19 if below else 11), ha=side,
                    textcoords="offset points", fontsize=8, color=GREY)  # fmt: skip
    _finish(ax, (floor, 4 * inside.max(initial=ceiling)), ceiling, "right")
    ax.set_xticks(orders)
    last = f", {full} fully adaptive" if 1 < full <= LARGEST_ORDER else ""
    ax.set_xlabel(f"order t of the weights (0 static, 1 affine{last})")
    ax.set_ylabel(f"parts of the bound, c = {setting.c:g}\n(n = {_number(n)})")
    ax.legend(fontsize=8, frameon=False)
    return ax
