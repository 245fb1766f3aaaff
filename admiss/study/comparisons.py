"""Paired comparisons of methods with a reference: intervals, tests adjusted for their number, and verdicts.

With a_i and b_i the values of a method and of the reference on instance i, and d_u the mean of a_i - b_i over the
instances of unit u, a comparison is the paired t test of d_1, .., d_J, see :mod:`admiss.estimates`. If all
instances are of one data set, the splits are the units and r = n_test / n_train. A data set is what the field
``dataset`` of instances names, or a table that instances share (:mod:`admiss.study.shared_rows`).

The tests of a table are adjusted together. The verdict is "better" or "worse" if the adjusted p is at most 5 %,
otherwise "undecided". A single unit, or differences that are all the same and not 0, have no p value: these are
undecided too.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from admiss.estimates import LEVEL as LEVEL
from admiss.estimates import Estimate as Estimate
from admiss.estimates import Numbers
from admiss.estimates import estimate as estimate
from admiss.estimates import holm as holm

DATA_SETS = "data sets"
BETTER, WORSE, UNDECIDED = "better", "worse", "undecided"
# Relative to the two values, a smaller difference is a tie: sums of 1e4 terms in another order differ by less.
TIE = 1e-12
Group = tuple[Any, ...]


@dataclass(frozen=True)
class Comparison:
    """A method against the reference on some instances.

    Attributes
    ----------
    method : str
    setting : str
        Name of the setting of which one level is compared; empty for all instances.
    level : object
    estimate : Estimate
        Of the differences.
    wins, ties, losses : int
        Numbers of units.
    instances : int
    adjusted : float or None
        Adjusted p value.
    verdict : {"better", "worse", "undecided"}
    """

    method: str
    setting: str
    level: Any
    estimate: Estimate
    wins: int
    ties: int
    losses: int
    instances: int
    adjusted: float | None = None
    verdict: str = UNDECIDED


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


def group_estimates(rows: pl.DataFrame, by: Sequence[str], column: str) -> dict[Group, Estimate]:
    """The estimate of a column in every group of rows."""
    groups: Mapping[Group, pl.DataFrame] = rows.partition_by(list(by), as_dict=True, maintain_order=True)
    return {group: estimate(*by_unit(part, column)) for group, part in groups.items()}


def compare(
    rows: pl.DataFrame, reference: str, methods: Sequence[str], levels: Mapping[str, Sequence[Any]]
) -> list[Comparison]:
    """Compare methods with the reference on all instances, and at some levels of settings.

    Parameters
    ----------
    rows : DataFrame
        The rows that count, see :mod:`admiss.study.report.rows`.
    reference : str
    methods : sequence of str
        In the order of the result; the reference is left out.
    levels : mapping
        From settings to their levels.
    """
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
    return Comparison(**{**vars(each), "adjusted": adjusted, "verdict": verdict})
