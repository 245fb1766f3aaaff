"""Drawings of a comparison as SVG: training cost against leaves, the number of trees close to the optimum, and trees.

Colours are classes of the page's style sheet; markers and dashes repeat the distinction. Every point and every box
carries its numbers, which browsers show at the pointer.

A tree has its root on the left and its leaves on the right, below each other in their order, so that many leaves make a
drawing high and not small. Every split has two branches, a solid one for observed and a dashed one for missing values;
the bar of a leaf is its share of the rows.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from math import ceil, floor, inf, isfinite, log10, nan
from typing import Any

from admiss.compare.comparison import Comparison
from admiss.compare.near_optimal import NearOptimal
from admiss.compare.setting import EXACT_TREES, METHODS
from admiss.estimator.validation import feature_names
from admiss.web_page.markup import NOTHING, details, element, plain_table, scrolling, text
from formulations.trees.dynamic_program import Tree, leaves_of

SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
# Class and name of each curve.
FRONTIER = {"greedy": ("greedy", "greedy tree"), "optimum": ("exact", "best tree (proven bound)")}

Point = tuple[float, float]


@dataclass(frozen=True)
class Curve:
    """Points with their numbers in words, joined by a line or not; ``kind`` is a class of the style sheet."""

    kind: str
    name: str
    points: Sequence[Point]
    words: list[str]
    joined: bool = True


class Chart:
    """Two scales with their ticks, and what is drawn on them; sizes are those of the view box."""

    width, height = 480, 310
    top, right, bottom = 14, 462, 262

    def __init__(
        self, x_ticks: list[float], y_ticks: list[float], x_range: Point, y_range: Point, log: bool = False
    ) -> None:
        self.x_ticks, self.y_ticks, self.log = x_ticks, y_ticks, log
        self.x_range, self.y_range = x_range, y_range
        self.y_words = [_power(v) for v in y_ticks] if log else tick_words(y_ticks)
        self.left = 32 + 8 * max(map(len, self.y_words))  # the name of the axis, and 8 for each character
        self.parts: list[str] = []

    def x(self, value: float) -> float:
        """Position of a value of x."""
        low, high = self.x_range
        return round(self.left + (value - low) / (high - low) * (self.right - self.left), 1)

    def y(self, value: float) -> float:
        """Position of a value of y."""
        low, high, value = (log10(v) if self.log else v for v in (*self.y_range, value))
        return round(self.bottom - (value - low) / (high - low) * (self.bottom - self.top), 1)

    def add_path(self, kind: str, points: Iterable[Point], end: str = "") -> None:
        """Draw a line through points; ``end`` "Z" closes it to an area."""
        self.parts.append(
            element("path", kind=kind, d="M" + "L".join(f"{self.x(x)} {self.y(y)}" for x, y in points) + end)
        )

    def add_point(self, point: Point, kind: str, words: str, small: bool) -> None:
        """Draw a marker with a larger area that reacts to the pointer."""
        x, y = self.x(point[0]), self.y(point[1])
        area = element("circle", kind="area", cx=x, cy=y, r=11)
        marker = _marker(x, y, kind, 0 if small else 4)
        self.parts.append(element("g", f"<title>{text(words)}</title>{area}{marker}", kind=f"point {kind}"))

    def svg(self, x_name: str, y_name: str, label: str) -> str:
        """Grid, ticks and names of the axes around what was drawn."""
        parts = []
        for value, words in zip(self.y_ticks, self.y_words, strict=True):
            y = self.y(value)
            parts.append(element("path", kind="grid", d=f"M{self.left} {y}H{self.right}"))
            parts.append(element("text", words, kind="tick", x=self.left - 7, y=y + 4, text_anchor="end"))
        for value, words in zip(self.x_ticks, tick_words(self.x_ticks), strict=True):
            x = self.x(value)
            parts.append(element("text", words, kind="tick", x=x, y=self.bottom + 18, text_anchor="middle"))
        middle_x, middle_y = (self.left + self.right) / 2, (self.top + self.bottom) / 2
        parts.append(element("path", kind="axis", d=f"M{self.left} {self.bottom}H{self.right}"))
        parts.append(element("text", text(x_name), x=middle_x, y=self.height - 8, text_anchor="middle"))
        turned = f"translate(13 {middle_y}) rotate(-90)"
        parts.append(element("text", text(y_name), transform=turned, text_anchor="middle"))
        box = f"0 0 {self.width} {self.height}"
        return element("svg", "".join(parts + self.parts), kind="chart", role="img", aria_label=label, viewBox=box)


def chart_figures(comparison: Comparison) -> str:
    """Cost against leaves, and the number of trees close to the optimum."""
    figures = []
    costs = {
        name: [(q, c) for q, c in enumerate(values, 1) if isfinite(c)] for name, values in comparison.curves.items()
    }
    curves = [
        Curve(*FRONTIER.get(name, ("other", name)), points, [f"{q} leaves: {name} {c:.6g}" for q, c in points])
        for name, points in costs.items()
        if points
    ]
    for method, model in comparison.models.items():
        if method in ("boxes", "groups") and curves and isfinite(model.certificate_.objective):
            point, title = (model.n_leaves_, float(model.certificate_.objective)), METHODS[method][1].split(",")[0]
            curves.append(Curve("other", title, [point], [f"{point[0]} leaves: {title} {point[1]:.6g}"], joined=False))
    if curves:
        label = "Training cost against the largest number of leaves: " + ", ".join(curve.name for curve in curves)
        svg = _frontier_svg(curves, "leaves, at most", f"training cost ({comparison.setting.loss_name} loss)", label)
        by_leaves = zip_longest(*comparison.curves.values(), fillvalue=nan)
        rows = [
            [str(q), *(f"{c:.6g}" if isfinite(c) else NOTHING for c in each)] for q, each in enumerate(by_leaves, 1)
        ]
        table = plain_table("Training cost by number of leaves", ["leaves", *comparison.curves], rows)
        numbers = details("Numbers", table)
        lost = len(costs) > 1 and any(a > b * (1 + 1e-6) for a, b in zip(*comparison.curves.values(), strict=False))
        caption = "Cost and leaves." + " The shaded area is the loss of greedy splitting." * lost
        figures.append(_figure(caption, svg, [(curve.kind, curve.name) for curve in curves], numbers))
    if comparison.near:
        figures.append(_near_figure(comparison.near))
    return f'<div class="pair">{"".join(figures)}</div>' if figures else ""


def _near_figure(near: NearOptimal) -> str:
    """Trees that cost little more than the best one: how many, and the greedy tree among them."""
    words = "".join(f"<p>{text(line)}</p>" for line in near.lines())
    title = "Trees close to the optimum."
    if sum(isfinite(number.most) for _, number in near.curve) < 2:
        return _figure(title, "", [], words)
    label = "Number of trees against their cost above the optimum, on a logarithmic scale"
    svg = _near_svg(near, "cost above the optimum, at most, %", "number of trees", label)
    legend = [("exact", "trees")] + [("greedy", "greedy tree")] * bool(near.better.least)
    return _figure(title, svg, legend, words)


def _figure(caption: str, svg: str, legend: Iterable[tuple[str, str]], below: str) -> str:
    entries = "".join(f"<li>{_swatch(kind)}{text(name)}</li>" for kind, name in legend)
    return f'<figure><figcaption>{text(caption)}</figcaption><ul class="legend">{entries}</ul>{svg}{below}</figure>'


def _frontier_svg(curves: Sequence[Curve], x_name: str, y_name: str, label: str) -> str:
    """Curves over whole numbers; the area between the first two is what the first one loses."""
    highest = max(y for curve in curves for _, y in curve.points)
    y_ticks = ticks(0.0, max(highest, 1e-12), 6)
    last = max(2.0, *(x for curve in curves for x, _ in curve.points))
    x_ticks = sorted({1.0, *(v for v in ticks(1, last, 9, whole=True) if 1 <= v <= last)})
    chart = Chart(x_ticks, y_ticks, (1, last), (y_ticks[0], y_ticks[-1]))
    lines = [curve for curve in curves if curve.joined and len(curve.points) > 1]
    if len(lines) > 1:
        chart.add_path("loss", [*lines[0].points, *reversed(lines[1].points)], "Z")
    for curve in reversed(lines):
        chart.add_path(f"line {curve.kind}", curve.points)
    small = max(len(curve.points) for curve in curves) > 30
    for curve in reversed(curves):  # greedy above all, where it is the optimum
        for point, words in zip(curve.points, curve.words, strict=True):
            chart.add_point(point, curve.kind, words, small)
    return chart.svg(x_name, y_name, label)


def _near_svg(near: NearOptimal, x_name: str, y_name: str, label: str) -> str:
    """Number of trees (a band where only bounds are known) against the cost above the optimum, with greedy's cost."""
    points = [(percent, max(1.0, b.least), max(1.0, b.most)) for percent, b in near.curve if isfinite(b.most)]
    decades = max(1, ceil(log10(max(most for _, _, most in points))))
    y_ticks = [10.0**k for k in range(0, decades + 1, ceil(decades / 6))]
    last = points[-1][0]
    chart = Chart([v for v in ticks(0, last, 8) if v <= last], y_ticks, (0, last), (0.8, 10.0**decades), log=True)
    upper, lower = [(x, most) for x, _, most in points], [(x, least) for x, least, _ in points]
    chart.add_path("loss exact", [*upper, *reversed(lower)], "Z")
    chart.add_path("line exact", upper)
    for x, least, most in points:
        count = f"{most:,.0f}" if most == least else f"{least:,.0f} to {most:,.0f}"
        chart.add_point((x, most), "exact", f"at most {x:.3g} % above the optimum: {count} trees", True)
    if near.better.least and near.greedy_percent <= last:
        words = f"greedy tree: {near.greedy_percent:.3g} % above the optimum"
        line = element("path", kind="line greedy", d=f"M{chart.x(near.greedy_percent)} {chart.top}V{chart.bottom}")
        chart.parts.append(element("g", f"<title>{text(words)}</title>{line}", kind="point greedy"))
    return chart.svg(x_name, y_name, label)


def _swatch(kind: str) -> str:
    """The line and marker of a curve, for a legend."""
    line = "" if kind == "other" else element("path", kind=f"line {kind}", d="M1 7H31")
    return element("svg", line + _marker(16, 7, kind, 4), kind="swatch", width=32, height=14, aria_hidden="true")


def _marker(x: float, y: float, kind: str, r: float) -> str:
    if kind == "greedy":
        return element("rect", kind="marker greedy", x=x - r, y=y - r, width=2 * r, height=2 * r)
    if kind == "other":
        r += 2
        return element("path", kind="marker other", d=f"M{x} {y - r}l{r} {r}l-{r} {r}l-{r} -{r}Z")
    return element("circle", kind=f"marker {kind}", cx=x, cy=y, r=r)


def ticks(low: float, high: float, most: int, whole: bool = False) -> list[float]:
    """At most about ``most`` round numbers that span an interval, its ends included.

    Examples
    --------
    >>> ticks(0, 9.3, 6), ticks(1, 8, 9, whole=True)[-1], ticks(101.2, 101.9, 5)
    ([0.0, 2.0, 4.0, 6.0, 8.0, 10.0], 8.0, [101.2, 101.4, 101.6, 101.8, 102.0])
    """
    rough = (high - low) / (most - 1)
    power = 10.0 ** floor(log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10, inf) if factor * power >= rough * (1 - 1e-9))
    step = max(1.0, step) if whole else step
    first, last = floor(low / step + 1e-9), ceil(high / step - 1e-9)
    return [float(f"{k * step:.12g}") for k in range(first, last + 1)]


def tick_words(values: Sequence[float]) -> list[str]:
    """Labels with as many decimals as the steps need; powers of ten if numbers are very large or small.

    Examples
    --------
    >>> tick_words([0.0, 0.5, 1.0]), tick_words([0.0, 8e13, 1e14, 1.2e14])
    (['0.0', '0.5', '1.0'], ['0', '8e+13', '1e+14', '1.2e+14'])
    """
    largest = max(map(abs, values))
    step = values[-1] - values[-2] if len(values) > 1 else largest or 1.0
    decimals = max(0, -floor(log10(step) + 1e-9))
    if largest < 1e7 and decimals <= 4:
        return [f"{v:,.{decimals}f}" for v in values]
    digits = max(1, floor(log10(largest) + 1e-9) - floor(log10(step) + 1e-9) + 1)
    return [f"{v:.{digits}g}" for v in values]


def _power(value: float) -> str:
    """A power of ten: itself up to a thousand."""
    return f"{value:,.0f}" if value <= 1000 else "10" + str(round(log10(value))).translate(SUPERSCRIPTS)


def tree_figures(comparison: Comparison) -> str:
    """The greedy and the exact tree; leaves that hold the same patterns in both are grey."""
    exact = next((name for name in EXACT_TREES if name in comparison.models), None)
    names = [name for name in ("greedy", exact) if name in comparison.models]
    if not names:
        return ""
    models = [comparison.models[name] for name in names]
    same = len(models) == 2 and models[0].partition_.tree == models[1].partition_.tree
    names, models = (names[1:], models[1:]) if same else (names, models)
    leaves = [[frozenset(m.partition_.members(q).tolist()) for q in range(m.partition_.n_leaves)] for m in models]
    common = set(leaves[0]).intersection(*leaves[1:]) if len(leaves) > 1 else set()
    figures, widths = "", []
    for name, model, held in zip(names, models, leaves, strict=True):
        tree = METHODS[name][1].split(",")[0].capitalize()
        title = f"<strong>{tree}</strong>, {leaf_count(model)}, cost {model.certificate_.objective:.6g}"
        shared = {q for q, patterns in enumerate(held) if patterns in common}
        drawing = _TreeDrawing(model, "greedy" if name == "greedy" else "exact", shared)
        widths.append(drawing.least_width)
        figures += f"<figure><figcaption>{title}</figcaption>{scrolling(tree, drawing.svg(tree), 'picture')}</figure>"
    words = "Branches: solid where the feature is observed, dashed where it is missing. Bars are shares of the rows."
    if same:
        words += " Greedy found the same tree."
    elif common:
        words += " Grey leaves hold the same patterns in both trees."
    style = f'style="--least: {max(widths) + 40:.0f}px"'
    return f'<h3>Trees</h3><p class="soft">{words}</p><div class="pair trees" {style}>{figures}</div>'


def leaf_count(model: Any) -> str:
    """Number of leaves in words."""
    count = model.partition_.n_leaves
    return f"{count:,} {'leaf' if count == 1 else 'leaves'}"


class _TreeDrawing:
    """The tree of a fitted finite model; ``colour`` is the class of the leaves that no other tree shares."""

    # a split, the gap behind it, a leaf; the height of both, and of the row of a leaf; the margin around
    split, gap, leaf = 104, 56, 172
    box, row, margin = 40, 52, 4
    smallest = 0.85  # the scale below which text is too small to read: the drawing scrolls

    def __init__(self, model: Any, colour: str, shared: set[int]) -> None:
        self.model, self.colour, self.shared = model, colour, shared
        self.names = feature_names(model)
        self.leaf_x = self.margin + model.partition_.depth * (self.split + self.gap)
        self.width = self.leaf_x + self.leaf + self.margin
        self.least_width = self.smallest * self.width
        self.branches: list[str] = []
        self.boxes: list[str] = []

    def svg(self, name: str) -> str:
        """The drawing, ``name`` is the tree in words."""
        partition = self.model.partition_
        self._draw(partition.tree, 0, 0)
        height = self.row * partition.n_leaves + 2 * self.margin
        first = f", first split on {self.names[partition.tree[0]]}" if partition.tree else ""
        label = f"{name}: {partition.n_leaves} leaves{first}; its leaves are listed below"
        size = {"viewBox": f"0 0 {self.width} {height}", "width": self.width, "height": height}
        style = f"min-width:{self.least_width:.0f}px"
        parts = "".join(self.branches + self.boxes)
        return element("svg", parts, kind="tree", role="img", aria_label=label, **size, style=style)

    def _draw(self, tree: Tree, depth: int, first: int) -> Point:
        """Draw a subtree whose first leaf is given, and return the middle of the left side of its root."""
        if tree is None:
            y = self.margin + self.row * (first + 0.5)
            self._draw_leaf(first, y)
            return self.leaf_x, y
        j, observed, missing = tree
        ends = self._draw(observed, depth + 1, first), self._draw(missing, depth + 1, first + len(leaves_of(observed)))
        x, y = self.margin + depth * (self.split + self.gap), (ends[0][1] + ends[1][1]) / 2
        for end, word in zip(ends, ("observed", "missing"), strict=True):
            self._draw_branch(x + self.split, y, end, word)
        self._draw_split(self.names[j], x, y)
        return x, y

    def _draw_split(self, name: str, x: float, y: float) -> None:
        """The box of a split with the name of its feature, in full at the pointer."""
        lines, line_height = name_lines(name), 14
        start = y + 4 - line_height / 2 * (len(lines) - 1)
        parts = f"<title>Is {text(name)} missing?</title>"
        parts += element("rect", x=x, y=y - self.box / 2, width=self.split, height=self.box, rx=4)
        for i, line in enumerate(lines):
            middle = x + self.split / 2
            parts += element("text", text(line), x=middle, y=start + line_height * i, text_anchor="middle")
        self.boxes.append(element("g", parts, kind="split"))

    def _draw_leaf(self, leaf: int, y: float) -> None:
        """The box of a leaf with its number, cost, rows and their share."""
        model, x, top = self.model, self.leaf_x, y - self.box / 2
        rows = int(model.leaf_rows_[leaf])
        share, cost = rows / max(1, int(model.leaf_rows_.sum())), f"cost {model.leaf_costs_[leaf]:.4g}"
        left, right, end = x + 10, x + self.leaf - 10, {"text_anchor": "end"}
        parts = f"<title>Leaf {leaf}: {text(model.leaf_name(leaf))}\n{rows:,} rows, {cost}</title>"
        parts += element("rect", x=x, y=top, width=self.leaf, height=self.box, rx=10)
        parts += element("rect", kind="bar", x=left, y=top + self.box - 6, width=(right - left) * share, height=3)
        parts += element("text", f"leaf {leaf}", kind="name", x=left, y=top + 15)
        parts += element("text", cost, x=right, y=top + 15, **end)
        parts += element("text", f"{rows:,} rows", kind="soft", x=left, y=top + 29)
        parts += element("text", f"{100 * share:.0f} %", kind="soft", x=right, y=top + 29, **end)
        self.boxes.append(element("g", parts, kind=f"leaf {'shared' if leaf in self.shared else self.colour}"))

    def _draw_branch(self, x: float, y: float, end: Point, word: str) -> None:
        """A curve to the box below, which its word stands at: above a branch that rises, below one that falls."""
        middle, joint, (end_x, end_y) = x + self.gap / 2, x + self.gap, end
        curve = f"M{x} {y}C{middle} {y} {middle} {end_y} {joint} {end_y}H{end_x}"
        word_y = end_y - 5 if end_y < y else end_y + 12
        self.branches.append(element("path", kind=f"branch {word}", d=curve))
        self.branches.append(element("text", word, kind="word", x=joint - 3, y=word_y, text_anchor="end"))


def name_lines(name: str, most: int = 13) -> list[str]:
    """A name in one or two lines of so many average characters, which fit into a split, abridged if it is longer.

    Examples
    --------
    >>> name_lines("age"), name_lines("household_income_total"), name_lines("x" * 40)
    (['age'], ['household_', 'income_total'], ['xxxxxxxxxxxxx', 'xxxxxxxxxxxx…'])
    """
    name = " ".join(name.split()) or "(no name)"
    if _width(name) <= most:
        return [name]
    head = _start(name, most)
    ends = [match.end() for match in re.finditer(r"[ _./-]", head)]
    cut = ends[-1] if ends and ends[-1] > most // 3 else len(head)
    rest = name[cut:]
    return [name[:cut], rest if _width(rest) <= most else _start(rest, most - 1) + "…"]


def _width(name: str) -> float:
    """Estimated width in average characters."""
    return sum(map(_letter_width, name))


def _letter_width(letter: str) -> float:
    if unicodedata.combining(letter):
        return 0.0
    if unicodedata.east_asian_width(letter) in "WF":
        return 2.0
    return 1.3 if letter.isupper() or letter in "mw@%—" else 1.0


def _start(name: str, width: float) -> str:
    """The longest start of a name that has a width."""
    end = 0
    while end < len(name) and _width(name[: end + 1]) <= width:
        end += 1
    return name[:end]
