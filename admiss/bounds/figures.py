"""Figures of the bounds: over the rows n for several classes, and bias against estimation over the order t.

Both are on logarithmic axes. Shaded is what is above sigma^2 + 4 L^2, which truncation alone ensures: there a bound is
vacuous, and its curve is dotted. Colours are those of Okabe and Ito; every curve has its own line and marker too.
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
from admiss.bounds.crossovers import LARGEST_ORDER, Biases, crossover
from admiss.bounds.theorem import AS_PRINTED, Bound, generalization_bound, short
from admiss.drawing import BLACK, BLUE, GREY, ORANGE, STYLES, pyplot
from formulations.arrays import FloatArray

# Points of a curve, and how many of them have a marker.
POINTS, MARKED = 241, 8
SHADE = "#EEEEEE"
# Parts of a bound are shown from this many times below sigma^2 + 4 L^2 to that many times above.
BELOW, ABOVE = 1e6, 1e3
# Beyond this matplotlib overflows.
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
    ax: Any = None,
) -> Any:
    """Draw the bounds of several classes over the rows n, and mark where the class with the smallest one changes.

    Changes at which the smallest bound is vacuous are not marked: there the bounds do not tell the classes apart. A
    class whose b(F) as printed is beyond the largest float has no curve, only its entry in the legend.

    Parameters
    ----------
    classes : sequence of classes, optional
        At most seven; static, affine, the orders 2 to 5 (below d - 1) and fully adaptive by default.
    n : pair of float, optional
        The smallest and the largest n; by default from 10 to beyond the last change.
    bias : {"proved", "paper"}, float, Estimate, or a sequence of these
        b(F), one for all or one for each of ``classes``. With a number or an estimate the curve is a bound given that
        b(F), and the label of the axis says so.
    d, sigma2, L, c, constant, count, missing
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
    chosen = [read_class(F, d) for F in _read_classes(classes, d)]
    if not 1 <= len(chosen) <= len(STYLES):
        raise ValueError(f"The figure tells from 1 to {len(STYLES)} classes apart, not {len(chosen)}: choose some.")
    given: list[Any] = list(bias) if isinstance(bias, list | tuple | np.ndarray) else [bias] * len(chosen)
    if len(given) != len(chosen):
        raise ValueError(f"bias has {len(given)} entries for {len(chosen)} classes: give one for each, or one for all.")
    first = [
        generalization_bound(1, d, F, sigma2, L, c, rule, constant, count, missing)
        for F, rule in zip(chosen, given, strict=True)
    ]
    ceiling = first[0].noise + 4 * first[0].L ** 2
    # b(F) does not depend on n
    biases = [bound.b for bound in first]

    def totals(rows: float) -> list[float]:
        return [
            generalization_bound(rows, d, F, sigma2, L, c, b, constant, count).total if b < math.inf else math.inf
            for F, b in zip(chosen, biases, strict=True)
        ]

    changes = []
    for i, j in combinations([k for k, b in enumerate(biases) if b < math.inf], 2):
        where = crossover(
            chosen[i], chosen[j], d, sigma2, L, c, bias=(biases[i], biases[j]), constant=constant, count=count
        )
        if where is not None and 1 < where < math.inf:
            there = totals(where)
            if min(there) <= ceiling and there[i] <= min(there) * (1 + 1e-9):
                changes.append((where, min(there)))
    low, high = _read_range(n, [where for where, _ in changes])
    rows = np.geomspace(low, high, POINTS)
    curves = list(zip(*map(totals, rows), strict=True))

    own_figure = ax is None
    ax = plt.figure(figsize=(6.4, 4.4), layout="constrained").gca() if own_figure else ax
    for k, (F, curve) in enumerate(zip(chosen, curves, strict=True)):
        _curve(ax, rows, np.array(curve), ceiling, STYLES[k], class_name(F), (k + 0.5) / len(chosen))
    ax.set_xscale("log")
    ax.set_xlim(low, high)
    lowest = min(ceiling, *map(min, curves))
    floor = min(0.6 * lowest, 0.5 * sigma2 if sigma2 else lowest)
    # in a user's axes the legend is on the right
    _finish(ax, (floor, 4 * ceiling), ceiling, "right" if own_figure else "left")
    for k, (where, total) in enumerate(sorted(change for change in changes if low <= change[0] <= high)):
        ax.plot([where, where], [floor, total], color=GREY, linewidth=0.8, linestyle=(0, (1, 2)), zorder=1)
        ax.plot(where, total, "o", markersize=9, markerfacecolor="none", markeredgecolor=GREY, zorder=4)
        side, shift = ("right", -3) if where > high / (high / low) ** 0.15 else ("left", 3)
        ax.annotate(f"n = {_number(where)}", (where, floor), xytext=(shift, 4 + 11 * (k % 3)), ha=side,
                    textcoords="offset points", fontsize=8, color=GREY,
                    bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5})  # fmt: skip
    if sigma2 > 0:
        ax.axhline(sigma2, color=GREY, linewidth=0.8, zorder=1)
        ax.annotate("noise $\\sigma^2$", (0, sigma2), xycoords=("axes fraction", "data"), xytext=(4, 3),
                    textcoords="offset points", fontsize=8, color=GREY)  # fmt: skip
    ax.set_xlabel("training rows n")
    claim = _claim(first, [*given, constant])
    # short lines, to fit into low axes
    ax.set_ylabel(f"bound on the risk, c = {c:g}" + (f"\n{fill(f'({claim})', 26)}" if claim else ""))
    # Beside the axes where there is room for it: in the axes of a user's figure there may be a neighbour.
    beside = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)} if own_figure else {"loc": "upper right", "ncols": 2}
    ax.legend(fontsize=8, frameon=False, handlelength=3.6, **beside)
    return ax


def _read_classes(classes: Any, d: int) -> list[ClassLike]:
    if classes is not None:
        one = isinstance(classes, tuple) and len(classes) == 2 and classes[0] == "polynomial" != classes[1]
        if one or isinstance(classes, str) or not isinstance(classes, Iterable):
            raise ValueError(f"classes must be a list of classes, such as ['static', 'affine'], not {classes!r}.")
        return list(classes)
    read_class("static", d)  # looks at d
    orders: list[ClassLike] = [("polynomial", t) for t in range(2, min(d - 2, 5) + 1)]
    return ["static", "affine", *orders, "fully_adaptive"]


def _read_range(n: tuple[float, float] | None, changes: list[float]) -> tuple[float, float]:
    if n is None:
        return 10.0, min(max(1e5, 10 * max(changes, default=1.0)), 1e12)
    pair = list(n) if isinstance(n, Iterable) else []
    if len(pair) != 2 or not all(isinstance(rows, Real) for rows in pair) or not 1 <= pair[0] < pair[1] <= HUGE:
        raise ValueError(f"n must be a pair of a smallest and a largest number of rows, between 1 and {HUGE:g}.")
    return float(pair[0]), float(pair[1])


def _claim(bounds: list[Bound], rules: list[Any]) -> str:
    """What keeps the numbers from being bounds, in words; nothing where they are."""
    if any(isinstance(rule, str) and rule == "paper" for rule in rules):
        return AS_PRINTED
    *biases, _ = rules
    if not all(isinstance(rule, str) for rule in biases):
        return "given b(F)"
    return next((bound.caveat for bound in bounds if bound.caveat), "")


def _curve(
    ax: Any, x: FloatArray, y: FloatArray, ceiling: float, style: tuple[str, str, Any], label: str, start: float
) -> None:
    """A curve, dotted where it is vacuous; markers of different curves stand at different places."""
    colour, marker, line = style
    vacuous = y > ceiling
    ax.plot(x, np.where(vacuous & (y < HUGE), y, np.nan), ":", color=colour, linewidth=1.2, zorder=2)
    step = max(1, len(x) // MARKED)
    kept = np.arange(int(start * step), len(x), step)
    kept = kept[~vacuous[kept]].tolist()
    ax.plot(x, np.where(vacuous, np.nan, y), color=colour, linestyle=line, marker=marker, markevery=kept,
            markersize=5, linewidth=1.5, label=f"{label} (vacuous)" if vacuous.all() else label, zorder=3)  # fmt: skip


def _finish(ax: Any, limits: tuple[float, float], ceiling: float, side: str) -> None:
    """Logarithmic height, and the shade of what is vacuous, named on one side."""
    ax.set_yscale("log")
    ax.set_ylim(*limits)
    ax.axhspan(ceiling, limits[1], color=SHADE, linewidth=0, zorder=0)
    place, shift = (1, -4) if side == "right" else (0, 4)
    ax.annotate("vacuous: above $\\sigma^2 + 4 L^2$", (place, ceiling), xycoords=("axes fraction", "data"),
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
    ax: Any = None,
) -> Any:
    """Draw the parts of the bound at n rows over the order t of the weights: 8 b(F), estimation, and the total.

    Parameters
    ----------
    n, d, sigma2, L, c, bias, constant, count, missing
        As in ``generalization_bound``.
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> ax = plot_bias_estimation(10_000, 6, sigma2=0.2, L=1.0, missing=0.05)
    >>> ax.get_xlabel()
    'order t of the weights (0 static, 1 affine, 5 fully adaptive)'
    """
    read_class("static", d)  # looks at d
    orders = np.arange(min(d - 1, LARGEST_ORDER) + 1)
    bounds = [
        generalization_bound(n, d, ("polynomial", int(t)), sigma2, L, c, bias, constant, count, missing) for t in orders
    ]
    ax = pyplot().figure(figsize=(6.4, 4.4), layout="constrained").gca() if ax is None else ax
    total = np.array([bound.total for bound in bounds])
    claims = [_claim(bounds, [bias, constant]), *(AS_PRINTED if rule == "paper" else "" for rule in (bias, constant))]
    labels = [
        f"{part} ({claim})" if claim else part
        for part, claim in zip(("total", "bias part 8 b(F)", "estimation part"), claims, strict=True)
    ]
    parts = (
        (labels[0], total, BLACK, "o", "-"),
        (labels[1], np.array([bound.bias for bound in bounds]), ORANGE, "s", "--"),
        (labels[2], np.array([bound.estimation for bound in bounds]), BLUE, "^", "-."),
    )
    ceiling = bounds[0].noise + 4 * bounds[0].L ** 2
    everything = np.concatenate([values for _, values, *_ in parts])
    inside = everything[(everything > ceiling / BELOW) & (everything < ceiling * ABOVE)]
    floor = inside.min(initial=ceiling) / 4
    for label, values, colour, marker, line in parts:
        shown = (values > 0) & (values < HUGE)
        ax.plot(orders[shown], values[shown], line, marker=marker, color=colour, markersize=5.5, label=label)
        # zero has no place on a logarithmic axis
        for t in orders[values == 0]:
            box = {"boxstyle": "circle,pad=0.15", "facecolor": "white", "edgecolor": colour}
            ax.annotate("0", (t, floor), xytext=(0, 3), textcoords="offset points", ha="center", fontsize=9,
                        color=colour, bbox=box)  # fmt: skip
    best = int(np.argmin(total))
    if total[best] < HUGE:
        ax.plot(best, total[best], "o", markersize=12, markerfacecolor="none", markeredgecolor=GREY)
        side = "left" if best == 0 else "right" if best == orders[-1] else "center"
        # below the curve at its left end, and where the name of the shade is above
        below = best == 0 or ceiling / 4 < total[best] <= ceiling
        ax.annotate(f"smallest: t = {best}", (best, total[best]), xytext=(0, -19 if below else 11), ha=side,
                    textcoords="offset points", fontsize=8, color=GREY)  # fmt: skip
    _finish(ax, (floor, 4 * inside.max(initial=ceiling)), ceiling, "right")
    ax.set_xticks(orders)
    last = f", {d - 1} fully adaptive" if d - 1 <= LARGEST_ORDER and d > 2 else ""
    ax.set_xlabel(f"order t of the weights (0 static, 1 affine{last})")
    ax.set_ylabel(f"parts of the bound, c = {c:g}\n(n = {_number(n)})")
    ax.legend(fontsize=8, frameon=False)
    return ax
