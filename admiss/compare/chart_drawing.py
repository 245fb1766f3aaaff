"""Charts of a comparison as SVG: training cost against leaves, and the number of trees close to the optimum.

Colours are classes of the page's style sheet; markers and dashes repeat the distinction. Every point carries its
numbers, which browsers show at the pointer.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from math import ceil, floor, inf, isfinite, log10, nan

from admiss.compare.comparison import Comparison
from admiss.compare.near_optimal import NearOptimal
from admiss.compare.setting import METHODS
from admiss.web_page.markup import NOTHING, details, plain_table, text

WIDTH, HEIGHT, TOP, RIGHT, BOTTOM = 480, 310, 14, 18, 48
# Width of a character of a tick label; the distance of the axis from its name.
CHARACTER, NAME = 8, 32
# Beyond so many points they are small.
MANY = 30
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


@dataclass(frozen=True)
class Axes:
    """Two scales, and their ticks, on the area of a chart."""

    x_ticks: list[float]
    y_ticks: list[float]
    x_range: Point
    y_range: Point
    log: bool = False
    left: float = field(init=False)

    def __post_init__(self) -> None:
        longest = max(map(len, self.y_words()))
        object.__setattr__(self, "left", NAME + CHARACTER * longest)

    def y_words(self) -> list[str]:
        """Labels of the ticks of y."""
        return [_power(v) for v in self.y_ticks] if self.log else tick_words(self.y_ticks)

    def x(self, value: float) -> float:
        """Position of a value of x."""
        low, high = self.x_range
        return round(self.left + (value - low) / (high - low) * (WIDTH - self.left - RIGHT), 1)

    def y(self, value: float) -> float:
        """Position of a value of y."""
        low, high, value = (log10(v) if self.log else v for v in (*self.y_range, value))
        return round(HEIGHT - BOTTOM - (value - low) / (high - low) * (HEIGHT - BOTTOM - TOP), 1)

    def path(self, points: Iterable[Point]) -> str:
        """Commands of a line through points."""
        return "M" + "L".join(f"{self.x(x)} {self.y(y)}" for x, y in points)


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
    axes = Axes(x_ticks, y_ticks, (1, last), (y_ticks[0], y_ticks[-1]))
    lines = [curve for curve in curves if curve.joined and len(curve.points) > 1]
    body = ""
    if len(lines) > 1:
        body += f'<path class="loss" d="{axes.path([*lines[0].points, *reversed(lines[1].points)])}Z"/>'
    body += "".join(f'<path class="line {curve.kind}" d="{axes.path(curve.points)}"/>' for curve in reversed(lines))
    small = max(len(curve.points) for curve in curves) > MANY
    for curve in reversed(curves):  # greedy above all, where it is the optimum
        for (x, y), words in zip(curve.points, curve.words, strict=True):
            body += _point(axes.x(x), axes.y(y), curve.kind, words, small)
    return _chart(axes, body, x_name, y_name, label)


def _near_svg(near: NearOptimal, x_name: str, y_name: str, label: str) -> str:
    """Number of trees (a band where only bounds are known) against the cost above the optimum, with greedy's cost."""
    points = [(percent, max(1.0, b.least), max(1.0, b.most)) for percent, b in near.curve if isfinite(b.most)]
    decades = max(1, ceil(log10(max(most for _, _, most in points))))
    y_ticks = [10.0**k for k in range(0, decades + 1, ceil(decades / 6))]
    last = points[-1][0]
    axes = Axes([v for v in ticks(0, last, 8) if v <= last], y_ticks, (0, last), (0.8, 10.0**decades), log=True)
    upper, lower = [(x, most) for x, _, most in points], [(x, least) for x, least, _ in points]
    body = f'<path class="loss exact" d="{axes.path([*upper, *reversed(lower)])}Z"/>'
    body += f'<path class="line exact" d="{axes.path(upper)}"/>'
    for x, least, most in points:
        number = f"{most:,.0f}" if most == least else f"{least:,.0f} to {most:,.0f}"
        body += _point(axes.x(x), axes.y(most), "exact", f"at most {x:.3g} % above the optimum: {number} trees", True)
    if near.better.least and near.greedy_percent <= last:
        x = axes.x(near.greedy_percent)
        words = f"greedy tree: {near.greedy_percent:.3g} % above the optimum"
        body += f'<g class="point greedy"><title>{text(words)}</title><path class="line greedy" '
        body += f'd="M{x} {TOP}V{HEIGHT - BOTTOM}"/></g>'
    return _chart(axes, body, x_name, y_name, label)


def _swatch(kind: str) -> str:
    """The line and marker of a curve, for a legend."""
    line = "" if kind == "other" else f'<path class="line {kind}" d="M1 7H31"/>'
    return f'<svg class="swatch" width="32" height="14" aria-hidden="true">{line}{_marker(16, 7, kind, 4)}</svg>'


def _chart(axes: Axes, body: str, x_name: str, y_name: str, label: str) -> str:
    """Grid, ticks and names of the axes around a body."""
    bottom, parts = HEIGHT - BOTTOM, []
    for value, words in zip(axes.y_ticks, axes.y_words(), strict=True):
        y = axes.y(value)
        parts.append(f'<path class="grid" d="M{axes.left} {y}H{WIDTH - RIGHT}"/>')
        parts.append(f'<text class="tick" x="{axes.left - 7}" y="{y + 4}" text-anchor="end">{words}</text>')
    for value, words in zip(axes.x_ticks, tick_words(axes.x_ticks), strict=True):
        parts.append(f'<text class="tick" x="{axes.x(value)}" y="{bottom + 18}" text-anchor="middle">{words}</text>')
    middle_x, middle_y = (axes.left + WIDTH - RIGHT) / 2, (TOP + bottom) / 2
    parts.append(f'<path class="axis" d="M{axes.left} {bottom}H{WIDTH - RIGHT}"/>')
    parts.append(f'<text x="{middle_x}" y="{HEIGHT - 8}" text-anchor="middle">{text(x_name)}</text>')
    parts.append(f'<text transform="translate(13 {middle_y}) rotate(-90)" text-anchor="middle">{text(y_name)}</text>')
    return (
        f'<svg class="chart" role="img" aria-label="{text(label)}" viewBox="0 0 {WIDTH} {HEIGHT}">'
        f"{''.join(parts)}{body}</svg>"
    )


def _point(x: float, y: float, kind: str, words: str, small: bool) -> str:
    """A marker with a larger area that reacts to the pointer."""
    area = f'<circle class="area" cx="{x}" cy="{y}" r="11"/>'
    marker = _marker(x, y, kind, 0 if small else 4)
    return f'<g class="point {kind}"><title>{text(words)}</title>{area}{marker}</g>'


def _marker(x: float, y: float, kind: str, r: float) -> str:
    if kind == "greedy":
        return f'<rect class="marker greedy" x="{x - r}" y="{y - r}" width="{2 * r}" height="{2 * r}"/>'
    if kind == "other":
        r += 2
        return f'<path class="marker other" d="M{x} {y - r}l{r} {r}l-{r} {r}l-{r} -{r}Z"/>'
    return f'<circle class="marker {kind}" cx="{x}" cy="{y}" r="{r}"/>'


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
