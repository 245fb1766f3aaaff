"""Figures of the bounds: over the rows n for several classes, and bias against estimation over the order t.

Both have logarithmic axes. The shaded region above sigma^2 + 4 L^2 is reached by truncation alone: a bound there is
vacuous, and its curve is dotted. Curves differ by colour, line and marker.
"""

import math
from collections.abc import Iterable, Sequence
from itertools import combinations
from numbers import Real
from textwrap import fill
from typing import Any

import numpy as np

from admiss.bounds.bias import Bias
from admiss.bounds.counts import ClassLike, class_name, read_class
from admiss.bounds.crossovers import LARGEST_ORDER, Biases, crossover, one_for_each
from admiss.bounds.theorem import AS_PRINTED, Bound, generalization_bound, short
from admiss.bounds.two_sided import first_exact_order
from admiss.drawing import BLACK, BLUE, GREY, ORANGE, STYLES, pyplot
from formulations.arrays import FloatArray

# Points of a curve, and the number of its markers.
POINTS, MARKED = 241, 8
SHADE = "#EEEEEE"
# The parts of a bound are shown within these factors of sigma^2 + 4 L^2.
BELOW, ABOVE = 1e6, 1e3
# matplotlib overflows beyond this.
HUGE = 1e100


def plot_bounds(
    d: int,
    sigma2: float,
    L: float,
    classes: Sequence[ClassLike] | None = None,
    n: tuple[float, float] | None = None,
    c: float = 1.0,
    *,
    bias: Biases = "proved",
    constant: str | float = "proved",
    count: str = "effective",
    missing: Any = None,
    adaptive_intercept: bool = True,
    moments: Any = None,
    beta: Any = None,
    ax: Any = None,
) -> Any:
    """Plot the bounds of several classes over the rows n, and mark where the class with the smallest bound changes.

    Changes at which the smallest bound is vacuous are not marked, as the bounds do not distinguish the classes there. A
    class whose printed b(F) exceeds the largest float has no curve, only its entry in the legend.

    Parameters
    ----------
    classes : sequence of classes, optional
        At most seven; static, affine, the orders 2 to 5 (below d) and fully adaptive by default.
    n : pair of float, optional
        The smallest and the largest n; by default from 10 to beyond the last change.
    bias : {"proved", "paper", "moments"}, float, Estimate, or a sequence of these
        b(F), one for all or one for each of ``classes``. With a number or an estimate the curve is a bound given that
        b(F), as stated in the label of the axis.
    d, sigma2, L, c, constant, count, missing, adaptive_intercept, moments, beta
        As in ``generalization_bound``.
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> ax = plot_bounds(5, sigma2=0.2, L=1.0, missing=0.05)
    >>> ax.get_xlabel()
    'training rows n'
    """
    plt = pyplot()
    shown = [read_class(F, d) for F in _read_classes(classes, d)]
    if not 1 <= len(shown) <= len(STYLES):
        raise ValueError(f"The figure can show 1 to {len(STYLES)} classes, not {len(shown)}: select some.")
    rules = one_for_each(bias, len(shown))
    first = [
        generalization_bound(1, d, F, sigma2, L, c, rule, constant, count, missing,
                             adaptive_intercept=adaptive_intercept, moments=moments, beta=beta)
        for F, rule in zip(shown, rules, strict=True)
    ]  # fmt: skip
    ceiling = first[0].noise + 4 * first[0].L ** 2
    biases = [bound.b for bound in first]  # b(F) does not depend on n

    def totals(rows: float) -> list[float]:
        return [
            generalization_bound(rows, d, F, sigma2, L, c, b, constant, count).total if b < math.inf else math.inf
            for F, b in zip(shown, biases, strict=True)
        ]

    changes = []
    for i, j in combinations([k for k, b in enumerate(biases) if b < math.inf], 2):
        pair = (biases[i], biases[j])
        rows = crossover(shown[i], shown[j], d, sigma2, L, c, bias=pair, constant=constant, count=count)
        if rows is not None and 1 < rows < math.inf:
            there = totals(rows)
            if min(there) <= ceiling and there[i] <= min(there) * (1 + 1e-9):
                changes.append((rows, min(there)))
    low, high = _read_range(n, [rows for rows, _ in changes])
    grid = np.geomspace(low, high, POINTS)
    curves = list(zip(*map(totals, grid), strict=True))

    own_figure = ax is None
    ax = plt.figure(figsize=(6.4, 4.4), layout="constrained").gca() if own_figure else ax
    for k, (F, curve) in enumerate(zip(shown, curves, strict=True)):
        _curve(ax, grid, np.array(curve), ceiling, STYLES[k], class_name(F), (k + 0.5) / len(shown))
    ax.set_xscale("log")
    ax.set_xlim(low, high)
    lowest = min(ceiling, *map(min, curves))
    floor = min(0.6 * lowest, 0.5 * sigma2 if sigma2 else lowest)
    # in the user's axes the legend is on the right
    _finish(ax, (floor, 4 * ceiling), ceiling, "right" if own_figure else "left")
    _mark_changes(ax, sorted(change for change in changes if low <= change[0] <= high), floor)
    if sigma2 > 0:
        ax.axhline(sigma2, color=GREY, linewidth=0.8, zorder=1)
        ax.annotate("noise $\\sigma^2$", (0, sigma2), xycoords=("axes fraction", "data"), xytext=(4, 3),
                    textcoords="offset points", fontsize=8, color=GREY)  # fmt: skip
    ax.set_xlabel("training rows n")
    claim = _claim(first, [*rules, constant])
    # short lines, to fit into low axes
    ax.set_ylabel(f"bound on the risk, c = {c:g}" + (f"\n{fill(f'({claim})', 26)}" if claim else ""))
    # beside the axes if there is room: the user's axes may have a neighbour
    beside = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)} if own_figure else {"loc": "upper right", "ncols": 2}
    ax.legend(fontsize=8, frameon=False, handlelength=3.6, **beside)
    return ax


def _read_classes(classes: Any, d: int) -> list[ClassLike]:
    if classes is not None:
        one = isinstance(classes, tuple) and len(classes) == 2 and classes[0] == "polynomial" != classes[1]
        if one or isinstance(classes, str) or not isinstance(classes, Iterable):
            raise ValueError(f"classes must be a list of classes, such as ['static', 'affine'], not {classes!r}.")
        return list(classes)
    read_class("static", d)  # checks d
    orders: list[ClassLike] = [("polynomial", t) for t in range(2, min(d - 1, 5) + 1)]
    return ["static", "affine", *orders, "fully_adaptive"]


def _read_range(n: tuple[float, float] | None, changes: list[float]) -> tuple[float, float]:
    if n is None:
        return 10.0, min(max(1e5, 10 * max(changes, default=1.0)), 1e12)
    pair = list(n) if isinstance(n, Iterable) else []
    if len(pair) != 2 or not all(isinstance(rows, Real) for rows in pair) or not 1 <= pair[0] < pair[1] <= HUGE:
        raise ValueError(f"n must be a pair of a smallest and a largest number of rows, between 1 and {HUGE:g}.")
    return float(pair[0]), float(pair[1])


def _claim(bounds: list[Bound], rules: list[Any]) -> str:
    """The reason why the numbers are not bounds; empty if they are."""
    if any(isinstance(rule, str) and rule == "paper" for rule in rules):
        return AS_PRINTED
    *biases, _ = rules
    if any(rule == "moments" for rule in biases):
        return "b(F) by second moments, M independent of (X, y)"
    if not all(isinstance(rule, str) for rule in biases):
        return "given b(F)"
    return next((bound.caveat for bound in bounds if bound.caveat), "")


def _curve(
    ax: Any, x: FloatArray, y: FloatArray, ceiling: float, style: tuple[str, str, Any], label: str, start: float
) -> None:
    """A curve, dotted if vacuous; markers of different curves are at different positions."""
    colour, marker, line = style
    vacuous = y > ceiling
    ax.plot(x, np.where(vacuous & (y < HUGE), y, np.nan), ":", color=colour, linewidth=1.2, zorder=2)
    step = max(1, len(x) // MARKED)
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


def plot_bias_estimation(
    n: float,
    d: int,
    sigma2: float,
    L: float,
    c: float = 1.0,
    *,
    bias: Bias = "proved",
    constant: str | float = "proved",
    count: str = "effective",
    missing: Any = None,
    adaptive_intercept: bool = True,
    moments: Any = None,
    beta: Any = None,
    ax: Any = None,
) -> Any:
    """Plot the parts of the bound at n rows over the order t of the weights: 8 b(F), estimation, and the total.

    Parameters
    ----------
    n, d, sigma2, L, c, bias, constant, count, missing, adaptive_intercept, moments, beta
        As in ``generalization_bound``.
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> ax = plot_bias_estimation(10_000, 6, sigma2=0.2, L=1.0, missing=0.05)
    >>> ax.get_xlabel()
    'order t of the weights (0 static, 1 affine, 6 fully adaptive)'
    """
    read_class("static", d)  # checks d
    full = first_exact_order(d, adaptive_intercept)
    orders = np.arange(min(full, LARGEST_ORDER) + 1)
    bounds = [
        generalization_bound(n, d, ("polynomial", int(t)), sigma2, L, c, bias, constant, count, missing,
                             adaptive_intercept=adaptive_intercept, moments=moments, beta=beta)
        for t in orders
    ]  # fmt: skip
    ax = pyplot().figure(figsize=(6.4, 4.4), layout="constrained").gca() if ax is None else ax
    total = np.array([bound.total for bound in bounds])
    claims = [_claim(bounds, [bias, constant]), *(AS_PRINTED if rule == "paper" else "" for rule in (bias, constant))]
    parts = (
        ("total", total, BLACK, "o", "-"),
        ("bias part 8 b(F)", np.array([bound.bias for bound in bounds]), ORANGE, "s", "--"),
        ("estimation part", np.array([bound.estimation for bound in bounds]), BLUE, "^", "-."),
    )
    ceiling = bounds[0].noise + 4 * bounds[0].L ** 2
    everything = np.concatenate([values for _, values, *_ in parts])
    inside = everything[(everything > ceiling / BELOW) & (everything < ceiling * ABOVE)]
    floor = inside.min(initial=ceiling) / 4
    for (part, values, colour, marker, line), claim in zip(parts, claims, strict=True):
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
    ax.set_ylabel(f"parts of the bound, c = {c:g}\n(n = {_number(n)})")
    ax.legend(fontsize=8, frameon=False)
    return ax
