"""The answer of a study: methods compared with the reference, and the leaderboard.

With a_i and b_i the values of a method and of the reference on instance i, and d_u the mean of a_i - b_i over the
instances of unit u, a comparison is the paired t test of d_1, .., d_J, see :mod:`admiss.estimates`. If all
instances are of one data set, the splits are the units and r = n_test / n_train. A data set is what the field
``dataset`` of instances names, or a table that instances share (:mod:`admiss.study.shared_rows`).

All methods are compared on all instances, and at the levels of the first settings. These tests are adjusted together.
The verdict is "better" or "worse" if the adjusted p is at most 5%, otherwise "undecided". A single unit, or
differences that are all the same and not 0, have no p value: these are undecided too.

The leaderboard has the methods by their mean, and the difference of each to the reference on all instances.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from admiss.estimates import LEVEL, Estimate, Numbers, estimate, holm
from admiss.study.plan import Plan
from admiss.study.report.labels import Labels, Metric
from admiss.study.table import DATA_SETS, filter_names, metric_rows, unit_words
from admiss.terminal.table import aligned, decimals, interval, number, signed, table_width, wrapped

BETTER, WORSE, UNDECIDED = "better", "worse", "undecided"
# Relative to the two values, a smaller difference is a tie: sums of 1e4 terms in another order differ by less.
TIE = 1e-12
# Levels at which methods are compared: those of the first settings, as long as they are no more together.
MOST_LEVELS = 8
NO_INSTANCE = "no instance in common"


@dataclass(frozen=True)
class Comparison:
    """A method against the reference on some instances."""

    method: str
    setting: str  # of which one level is compared; empty for all instances
    level: Any
    estimate: Estimate  # of the differences
    wins: int  # of units, as ties and losses
    ties: int
    losses: int
    instances: int
    adjusted: float | None = None  # p value
    verdict: str = UNDECIDED


@dataclass(frozen=True)
class Compared:
    """The rows that averages count, and their methods compared with the reference."""

    rows: pl.DataFrame
    study: Plan
    labels: Labels
    methods: list[str]  # in their order
    reference: str
    comparisons: list[Comparison]  # none if there are no others, or if they are not rivals

    @property
    def metric(self) -> Metric:
        """The metric that is compared."""
        return self.labels.metric(self.study.metrics[0])

    @cached_property
    def places(self) -> int:
        """The decimals in which it is shown."""
        return metric_decimals(self.rows["value"])

    @property
    def overall(self) -> dict[str, Comparison]:
        """The comparisons on all instances, by method."""
        return {each.method: each for each in self.comparisons if not each.setting}


def compared(rows: pl.DataFrame, study: Plan, labels: Labels, *, rivals: bool = True) -> Compared:
    """Compare all methods with the reference on the rows that averages count."""
    rows = labels.inside(rows)
    methods = labels.ordered(rows["method"].to_list())
    reference = labels.reference_among(methods) if methods else ""
    found = Compared(rows, study, labels, methods, reference, [])
    if not rivals or not methods:
        return found
    overall = compare(rows, reference, methods, {})
    if all(each.estimate.p is None for each in overall):  # nor have parts of the units one
        return replace(found, comparisons=overall)
    levels: dict[str, list[Any]] = {}
    for name in filter_names(rows, study):
        present = [level for level in labels.levels(rows, name) if level is not None]
        if sum(map(len, levels.values())) + len(present) > MOST_LEVELS:
            break
        levels[name] = present
    return replace(found, comparisons=compare(rows, reference, methods, levels))


def compare(
    rows: pl.DataFrame, reference: str, methods: Sequence[str], levels: Mapping[str, Sequence[Any]]
) -> list[Comparison]:
    """Compare methods with the reference, on all instances of the rows that count and at some levels of settings."""
    pairs = paired_differences(rows, reference)
    parts = [("", None, pairs)]
    parts += [(name, level, pairs.filter(pl.col(name).eq_missing(level))) for name in levels for level in levels[name]]
    found = [
        _comparison(method, name, level, mine)
        for name, level, part in parts
        for method in methods
        if (mine := part.filter(pl.col("method") == method)).height
    ]
    tested = [index for index, each in enumerate(found) if each.estimate.p is not None]
    adjusted = dict(zip(tested, holm([found[index].estimate.p or 0.0 for index in tested]), strict=True))
    return [_judged(each, adjusted.get(index)) for index, each in enumerate(found)]


def _comparison(method: str, setting: str, level: Any, pairs: pl.DataFrame) -> Comparison:
    values, ratio = by_unit(pairs, "difference")
    signs = (int(np.sum(values > 0)), int(np.sum(values == 0)), int(np.sum(values < 0)))
    return Comparison(method, setting, level, estimate(values, ratio), *signs, pairs["instance"].n_unique())


def _judged(each: Comparison, adjusted: float | None) -> Comparison:
    decided = adjusted is not None and adjusted <= 1 - LEVEL
    verdict = UNDECIDED if not decided else BETTER if each.estimate.mean > 0 else WORSE
    return replace(each, adjusted=adjusted, verdict=verdict)


def paired_differences(rows: pl.DataFrame, reference: str) -> pl.DataFrame:
    """Rows of the other methods on instances that the reference has too, with the column ``difference``."""
    base = rows.filter(pl.col("method") == reference).group_by("instance").agg(pl.col("value").mean().alias("base"))
    at = pl.col("instance").replace_strict(base["instance"], base["base"], default=None, return_dtype=pl.Float64)
    pairs = rows.filter(pl.col("method") != reference).with_columns(at.alias("base")).drop_nulls("base")
    gap, size = pl.col("value") - pl.col("base"), pl.max_horizontal(pl.col("value").abs(), pl.col("base").abs())
    tie = gap.abs() <= TIE * size
    return pairs.with_columns(pl.when(tie).then(0.0).otherwise(gap).alias("difference"))


def overlap(rows: pl.DataFrame) -> float:
    """The ratio n_test / n_train if all rows are of one data set that was split several times, otherwise 0."""
    if not {"unit_kind", "n_train", "n_test"} <= set(rows.columns) or set(rows["unit_kind"]) != {DATA_SETS}:
        return 0.0
    if rows["unit"].n_unique() != 1 or rows["repetition"].n_unique() < 2:
        return 0.0
    ratio = rows.select((pl.col("n_test") / pl.col("n_train")).mean()).item()
    return 0.0 if ratio is None else float(ratio)


def by_unit(rows: pl.DataFrame, column: str) -> tuple[Numbers, float]:
    """Means of a column over the rows of each unit, and the overlap of units."""
    ratio = overlap(rows)
    means = rows.group_by("repetition" if ratio else "unit", maintain_order=True).agg(pl.col(column).mean())
    return means[column].to_numpy(), ratio


def group_estimates(rows: pl.DataFrame, by: Sequence[str], column: str) -> dict[tuple[Any, ...], Estimate]:
    """The estimate of a column in every group of rows."""
    groups: Mapping[tuple[Any, ...], pl.DataFrame] = rows.partition_by(list(by), as_dict=True, maintain_order=True)
    return {group: estimate(*by_unit(part, column)) for group, part in groups.items()}


@dataclass(frozen=True)
class Leaderboard:
    """Methods from the best to the worst, with a sentence on the best one."""

    sentence: str
    header: list[str]
    lines: list["Line"]
    reference: str

    def text(self, count: int = 3) -> str:
        """The sentence, and the first methods with their means and differences."""
        best = self.lines[:count]
        columns = [[line.method, line.mean, *line.cells[:2]] for line in best]
        named = dict(zip([*self.header[:2], *self.header[3:5]], map(list, zip(*columns, strict=True)), strict=True))
        return f"{wrapped(self.sentence)}\n{aligned(named, {self.header[1]}, table_width())}"


@dataclass(frozen=True)
class Line:
    """A method with its mean, the length of its bar in per cent, and further cells as text."""

    method: str
    mean: str
    bar: float
    cells: list[str]


def leaderboard(found: Compared) -> Leaderboard:
    """Order the methods by the first metric; those that are not rivals stay in their order."""
    rows, metric, overall = found.rows, found.metric, found.overall
    means = _means(rows)
    methods = sorted(found.methods, key=lambda method: -means[method]) if overall else found.methods
    columns: list[tuple[str, list[str]]] = []
    if overall:
        alone = {method: ("reference" if method == found.reference else NO_INSTANCE, "") for method in methods}
        pairs = alone | {method: _difference(each, found) for method, each in overall.items()}
        columns.append((f"Minus {found.reference}", [pairs[method][0] for method in methods]))
        columns.append(("Better on", [pairs[method][1] for method in methods]))
    for name in found.study.metrics[1:]:
        further = metric_rows(rows, found.study, name)
        if further.height:
            other = found.labels.metric(name)
            columns.append((other.word, _column(further, methods, other.sign)))
    seconds = dict(rows.group_by("method").agg(pl.col("seconds").cast(pl.Float64).mean()).iter_rows())
    counts = dict(rows.group_by("method").len().iter_rows())
    columns.append(("CPU seconds", [number(seconds[method]) for method in methods]))
    columns.append(("Cells", [f"{counts[method]:,}" for method in methods]))
    shown = _column(rows, methods, metric.sign)
    lines = [
        Line(method, mean, _length(method, means), [cells[place] for _, cells in columns])
        for place, (method, mean) in enumerate(zip(methods, shown, strict=True))
    ]
    names = [metric.word, "", *(name for name, _ in columns)]
    header = ["Method", *(name[:1].upper() + name[1:] if " " in name else name for name in names)]
    return Leaderboard(_sentence(methods, means, found) if overall else "", header, lines, found.reference)


def _column(rows: pl.DataFrame, methods: Sequence[str], sign: int) -> list[str]:
    """The means of methods as text."""
    means, places = _means(rows), metric_decimals(rows["value"])
    return [number(sign * means[method] if method in means else None, places) for method in methods]


def _means(rows: pl.DataFrame) -> dict[str, float]:
    return {method: each.mean for (method,), each in group_estimates(rows, ["method"], "value").items()}


def _length(method: str, means: dict[str, float]) -> float:
    """Length of a bar in per cent: from 0, or of minus an error relative to the largest."""
    largest = max(map(abs, means.values())) or 1.0
    return max(0.0, 100 * means[method] / largest) if max(means.values()) > 0 else 100 * abs(means[method]) / largest


def _difference(each: Comparison, found: Compared) -> tuple[str, str]:
    """A difference with its interval, and the units on which a method is better."""
    mean, low, high = shown_difference(each, found.metric)
    difference = f"{signed(mean, found.places)} {interval(low, high, found.places)}".rstrip()
    better = each.wins + each.ties / 2
    return difference, f"{better:g} of {each.estimate.units:,}"


def shown_difference(each: Comparison, metric: Metric) -> tuple[float, float | None, float | None]:
    """The mean difference and the ends of its interval in the sign that a metric is shown with."""
    mean, low, high = each.estimate.mean, each.estimate.low, each.estimate.high
    if metric.sign > 0 or low is None or high is None:
        return metric.sign * mean, low, high
    return -mean, -high, -low


def _sentence(ordered: Sequence[str], means: Mapping[str, float], found: Compared) -> str:
    """The best method by its mean, and its difference to the reference; the second one if that is the best."""
    rows, overall, reference, metric = found.rows, found.overall, found.reference, found.metric
    best = ordered[0]
    other = best if best in overall else next(method for method in ordered if method in overall)
    difference, better = _difference(overall[other], found)
    units = "splits" if overlap(rows) else unit_words(rows)
    words = f"{best} is best by its mean: {metric.word} {number(metric.sign * means[best], found.places)}"
    if best == reference:
        words += f"; it is the reference. Next is {other}"
    elif best != other:
        words += f"; it has {NO_INSTANCE} with {reference}. Next is {other}"
    words += f", {difference} compared with {reference}, better on {better} {units}"
    if overall[other].verdict == UNDECIDED:
        words += "; this difference is undecided"
    if rows.group_by("method").agg(pl.col("instance").n_unique())["instance"].n_unique() > 1:
        words += ". Not all methods have a score on every instance: a difference is over those that both have"
    return f"{words}."


def metric_decimals(values: pl.Series) -> int:
    """Decimals in which a metric is shown."""
    return decimals(values.drop_nulls().cast(pl.Float64).filter(values.drop_nulls().is_finite()).to_list())
