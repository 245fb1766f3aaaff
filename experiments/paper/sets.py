"""Averages over data sets: instances of one set are averaged first, and sets are the units.

Methods are compared on their common instances. The standard error of a mean, or of a difference between methods, is the
standard deviation over sets of the set's mean, or mean difference, divided by the square root of the number of sets:
instances of one set share its rows and are not independent.
"""

from collections.abc import Sequence

import polars as pl

DESIGNS = ("mar", "nmar", "am", "real")
# Signals of the paper's averages, which exclude "tree".
SIGNALS = ("linear", "nn")
TASKS = ("regression", "binary")
INSTANCE = ("kind", "dataset", "design", "signal", "k_missing", "split", "max_rows")


def of_design(
    table: pl.DataFrame, design: str, signals: Sequence[str] = SIGNALS, tasks: Sequence[str] = TASKS
) -> pl.DataFrame:
    """Rows of a design: ``"mar"``, ``"nmar"``, ``"am"``, all three as ``"synthetic"``, or ``"real"`` targets."""
    if design == "real":
        return _where(_where(table, "kind", ["RealTarget"]), "task", tasks)
    rows = _where(_where(table, "kind", ["SemiSynthetic"]), "signal", signals)
    return rows if design == "synthetic" else _where(rows, "design", [design])


def _where(rows: pl.DataFrame, column: str, values: Sequence[str]) -> pl.DataFrame:
    return rows.filter(pl.col(column).is_in(list(values))) if column in rows.columns else rows.clear()


def on_common_instances(rows: pl.DataFrame, methods: Sequence[str], value: str) -> pl.DataFrame:
    """One row per instance on which all methods are done, with one column per method."""
    if "dataset" not in rows.columns:  # no cell has ended
        rows = rows.with_columns(pl.lit(None, pl.String).alias("dataset"))
    identity = [column for column in INSTANCE if column in rows.columns]
    names = list(dict.fromkeys(methods))
    if value not in rows.columns:
        rows = rows.with_columns(pl.lit(None, pl.Float64).alias(value))
    number = pl.col(value).cast(pl.Float64)
    done = rows.filter(pl.col("method").is_in(names), pl.col("status") == "done", number.is_finite())
    by_method = [number.filter(pl.col("method") == name).mean().alias(name) for name in names]
    return done.group_by(identity).agg(by_method).drop_nulls(names).sort(identity)


def by_set(rows: pl.DataFrame, methods: Sequence[str], value: str = "score") -> pl.DataFrame:
    """The mean of each method on each data set, over the instances on which all methods are done."""
    names = list(dict.fromkeys(methods))
    return on_common_instances(rows, names, value).group_by("dataset").agg(pl.col(names).mean()).sort("dataset")


def wins_by_set(rows: pl.DataFrame, method: str, reference: str) -> pl.DataFrame:
    """The share of instances of each data set on which a method scores above the reference; a tie counts half."""
    above = (pl.col(method) > pl.col(reference)).cast(pl.Float64) + 0.5 * (pl.col(method) == pl.col(reference))
    instances = on_common_instances(rows, [method, reference], "score")
    return instances.group_by("dataset").agg(above.mean().alias("wins")).sort("dataset")
