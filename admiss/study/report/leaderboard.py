"""The answer of a study: methods by their mean, the difference of each to the reference, and a sentence on the best.

Means and differences are over units, with the intervals of :mod:`admiss.study.comparisons`; verdicts are those of the
table of comparisons, adjusted for all of its tests.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from admiss.report.page import interval, number, signed
from admiss.study.comparisons import UNDECIDED, Comparison, group_estimates
from admiss.study.plan import Plan
from admiss.study.report.labels import Labels
from admiss.study.report.rows import metric_rows, unit_words
from admiss.study.sections import decimals


@dataclass(frozen=True)
class Leaderboard:
    """Methods from the best to the worst.

    Attributes
    ----------
    sentence : str
        The best method, its mean, and its difference to the reference.
    header : list of str
    lines : list of Line
    reference : str
    """

    sentence: str
    header: list[str]
    lines: list["Line"]
    reference: str


@dataclass(frozen=True)
class Line:
    """A method with its mean, the length of its bar in per cent, and further cells as text."""

    method: str
    mean: str
    bar: float
    cells: list[str]


def leaderboard(rows: pl.DataFrame, study: Plan, labels: Labels, found: Sequence[Comparison]) -> Leaderboard:
    """Order the methods by the first metric; ``found`` are their comparisons with the reference, none if not rivals."""
    rows = labels.inside(rows)
    metric, places = labels.metric(study.metrics[0]), metric_decimals(rows["value"])
    means = _means(rows)
    ordered = labels.ordered(rows["method"].to_list())
    reference = labels.reference_among(ordered)
    if found:
        ordered = sorted(ordered, key=lambda method: -means[method])
    compared = {each.method: each for each in found if not each.setting}
    others = [name for name in study.metrics[1:] if metric_rows(rows, study, name).height]
    header = ["Method", metric.word, ""] + [f"Minus {reference}", "Better on"] * bool(compared)
    header += [*(labels.metric(name).word for name in others), "CPU seconds", "Cells"]
    further = {name: metric_rows(rows, study, name) for name in others}
    seconds = dict(rows.group_by("method").agg(pl.col("seconds").cast(pl.Float64).mean()).iter_rows())
    counts = dict(rows.group_by("method").len().iter_rows())
    lines = []
    for method in ordered:
        cells = _difference(compared.get(method), metric.sign, places) if compared else []
        for name, mine in further.items():
            mean = _means(mine).get(method)
            digits = metric_decimals(mine["value"])
            cells.append(number(None if mean is None else labels.metric(name).sign * mean, digits))
        cells += [number(seconds[method]), f"{counts[method]:,}"]
        lines.append(Line(method, number(metric.sign * means[method], places), _length(method, means), cells))
    sentence = _sentence(ordered, means, compared, labels, rows, study) if compared else ""
    return Leaderboard(sentence, header, lines, reference)


def _means(rows: pl.DataFrame) -> dict[str, float]:
    return {method: each.mean for (method,), each in group_estimates(rows, ["method"], "value").items()}


def _length(method: str, means: dict[str, float]) -> float:
    """Length of a bar in per cent: from 0, or of minus an error relative to the largest."""
    largest = max(map(abs, means.values())) or 1.0
    return max(0.0, 100 * means[method] / largest) if max(means.values()) > 0 else 100 * abs(means[method]) / largest


def _difference(each: Comparison | None, sign: int, places: int) -> list[str]:
    """A difference with its interval, and the units on which a method is better."""
    if each is None:
        return ["reference", ""]
    low, high = _ends(each, sign)
    difference = f"{signed(sign * each.estimate.mean, places)} {interval(low, high, places)}".rstrip()
    better = each.wins + each.ties / 2
    return [difference, f"{better:g} of {each.estimate.units:,}"]


def _ends(each: Comparison, sign: int) -> tuple[Any, Any]:
    ends = (each.estimate.low, each.estimate.high)
    return ends if sign > 0 or None in ends else (-each.estimate.high, -each.estimate.low)  # type: ignore[operator]


def _sentence(
    ordered: Sequence[str],
    means: dict[str, float],
    compared: dict[str, Comparison],
    labels: Labels,
    rows: pl.DataFrame,
    study: Plan,
) -> str:
    """The best method by its mean, and its difference to the reference; the second one if that is the best."""
    metric, places = labels.metric(study.metrics[0]), metric_decimals(rows["value"])
    best = ordered[0]
    start = f"{best} is best by its mean: {metric.word} {number(metric.sign * means[best], places)}"
    other = best if best in compared else next(method for method in ordered if method in compared)
    each = compared[other]
    difference, better = _difference(each, metric.sign, places)
    reference = labels.reference_among(labels.ordered(rows["method"].to_list()))
    units = unit_words(rows)
    if other == best:
        said = f"{start}, {difference} compared with {reference}, better on {better} {units}"
    else:
        said = f"{start}; it is the reference. Next is {other} with {difference}, better on {better} {units}"
    doubt = "; this difference is undecided" if each.verdict == UNDECIDED else ""
    return f"{said}{doubt}."


def metric_decimals(values: pl.Series) -> int:
    """Decimals in which a metric is shown."""
    return decimals(values.drop_nulls().cast(pl.Float64).filter(values.drop_nulls().is_finite()).to_list())
