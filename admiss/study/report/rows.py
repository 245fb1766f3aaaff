"""The rows of a study's table that a report counts.

Columns are added to the rows that are done:

    value        the score, or what the study is compared by
    instance     a number per recipe, the same for all methods
    unit         what standard errors are over: the data set if there is one, otherwise the instance
    unit_kind    the kind of unit in words

Rows that are done but have no finite value are not counted; :func:`scoreless` counts them.
"""

from collections.abc import Callable
from dataclasses import fields

import polars as pl

from admiss.study.study import SCALES, Study

Value = Callable[[pl.DataFrame], pl.Expr]
INSTANCES = "instances"


def score_value(table: pl.DataFrame) -> pl.Expr:
    """The score as the value of a row."""
    return pl.col("score").cast(pl.Float64)


def instance_fields(table: pl.DataFrame, study: Study) -> list[str]:
    """The columns that identify an instance, the kind first."""
    kinds, names = set(table["kind"].unique().to_list()), ["kind"]
    found: set[str] = set()
    for scale in SCALES:
        if kinds <= found:
            break
        types = {type(instance) for product in study.products(scale) for instance in product.instances}
        found |= {kind.__name__ for kind in types}
        names += sorted(field.name for kind in types for field in fields(kind))
    if not kinds <= found:  # kinds that the study no longer has
        names += study.settings
    return [name for name in dict.fromkeys(names) if name in table.columns]


def scored_rows(table: pl.DataFrame, study: Study, value: Value = score_value) -> pl.DataFrame:
    """Rows that are done and have a finite value, with the columns of this module."""
    done = table.with_columns(value(table).alias("value"))
    done = done.filter((pl.col("status") == "done") & pl.col("value").is_finite())
    recipes = done.select(instance_fields(table, study)).unique(maintain_order=True)
    # as text: in a join nulls would not equal nulls
    recipe = pl.concat_str([pl.col(name).cast(pl.String).fill_null("\0") for name in recipes.columns], separator="\1")
    texts = recipes.select(recipe)[:, 0].to_list()
    numbers = dict(zip(texts, range(len(texts)), strict=True))
    instance = pl.Series("instance", [numbers[text] for text in done.select(recipe)[:, 0]], dtype=pl.Int64)
    done = done.with_columns(instance)
    # a setting that is a score, such as the task, holds for all methods of an instance
    others = [name for name in study.settings if name in done.columns and name not in recipes.columns]
    return _with_units(done.with_columns(pl.col(name).max().over("instance") for name in others))


def _with_units(rows: pl.DataFrame) -> pl.DataFrame:
    """Instances of one data set are not independent."""
    unit, kind = pl.concat_str(pl.lit("instance "), pl.col("instance")), pl.lit(INSTANCES)
    if "dataset" in rows.columns:
        real = pl.col("dataset").is_not_null()
        unit = pl.when(real).then(pl.col("dataset")).otherwise(unit)
        kind = pl.when(real).then(pl.lit("data sets")).otherwise(kind)
    return rows.with_columns(unit.alias("unit"), kind.alias("unit_kind"))


def unit_words(rows: pl.DataFrame) -> str:
    """The units of standard errors in words."""
    kinds = set(rows["unit_kind"].to_list())
    return str(kinds.pop()) if len(kinds) == 1 else INSTANCES


def scoreless(table: pl.DataFrame, value: Value = score_value) -> int:
    """Number of rows that are done but have no finite value."""
    finite = value(table).is_finite().fill_null(False)
    return table.filter((pl.col("status") == "done") & ~finite).height


def filter_names(rows: pl.DataFrame, study: Study) -> list[str]:
    """Settings with more than one value, the kind of instance first and the task last."""
    names = dict.fromkeys(("kind", *study.settings, "task"))
    return [name for name in names if name in rows.columns and rows[name].n_unique() > 1]


def repeated(rows: pl.DataFrame) -> int:
    """Number of cells beyond the first of a method on an instance."""
    return rows.height - rows.select("instance", "method").unique().height
