"""The rows of a study's table that a report counts.

Columns are added to the rows that are done:

    value        the score, or what the study is compared by
    instance     a number per recipe, the same for all methods
    unit         what standard errors are over: the data set if there is one, otherwise the instance. A data set is
                 what the field ``dataset`` names, or a table that instances share (``shared_rows``)
    unit_kind    the kind of unit in words
    repetition   instances that differ only in settings have the same one, such as the number of a random split

Rows are in the order of instances, and of the methods of the study, whatever the order of the table.

Rows that are done but have no finite value are not counted; :func:`scoreless` counts them.
"""

from collections.abc import Callable, Sequence
from dataclasses import fields

import polars as pl

from admiss.study.comparisons import DATA_SETS
from admiss.study.plan import Plan, kind_name
from admiss.study.shared_rows import NO_TABLE, SHARED_ROWS

Value = Callable[[pl.DataFrame], pl.Expr]
INSTANCES = "instances"


def score_value(table: pl.DataFrame) -> pl.Expr:
    """The score as the value of a row."""
    return pl.col("score").cast(pl.Float64)


def instance_fields(table: pl.DataFrame, study: Plan) -> list[str]:
    """The columns that identify an instance, the kind first."""
    return _listed(table, study)[0]


def _listed(table: pl.DataFrame, study: Plan) -> tuple[list[str], list[str]]:
    """The columns that identify an instance, and the methods in the order of the study."""
    kinds, methods = set(table["kind"].unique().to_list()), set(table["method"].unique().to_list())
    names, found, order = ["kind"], set[str](), list[str]()
    for scale in study.scales:
        if kinds <= found and methods <= {*order, *(best.name for best in study.best)}:
            break
        products = study.products(scale)
        types = {type(instance) for product in products for instance in product.instances}
        found |= {kind_name(kind) for kind in types}
        names += sorted(field.name for kind in types for field in fields(kind))
        order += [method.name for product in products for method in product.methods]
    if not kinds <= found:  # kinds that the study no longer has
        names += study.settings
    order += [*(best.name for best in study.best), *sorted(methods)]
    return [name for name in dict.fromkeys(names) if name in table.columns], list(dict.fromkeys(order))


def scored_rows(table: pl.DataFrame, study: Plan, value: Value = score_value) -> pl.DataFrame:
    """Rows that are done and have a finite value, with the columns of this module."""
    done = table.with_columns(value(table).alias("value"))
    done = done.filter((pl.col("status") == "done") & pl.col("value").is_finite())
    names, methods = _listed(table, study)
    rank = pl.col("method").replace_strict({name: index for index, name in enumerate(methods)}, return_dtype=pl.Int64)
    done = done.sort(*names, rank, "value", "seconds")
    recipe = _text(names)
    texts = done.select(recipe)[:, 0].to_list()
    numbers = {text: number for number, text in enumerate(dict.fromkeys(texts))}
    done = done.with_columns(pl.Series("instance", [numbers[text] for text in texts], dtype=pl.Int64))
    # a setting that is a score, such as the task, holds for all methods of an instance
    others = [name for name in study.settings if name in done.columns and name not in names]
    done = done.with_columns(pl.col(name).max().over("instance") for name in others)
    return _with_units(done, [name for name in names if name not in study.settings])


def _text(names: Sequence[str]) -> pl.Expr:
    """Columns as one text: in a join nulls would not equal nulls."""
    return pl.concat_str([pl.col(name).cast(pl.String).fill_null("\0") for name in names], separator="\1")


def _with_units(rows: pl.DataFrame, others: Sequence[str]) -> pl.DataFrame:
    """Instances of one data set are not independent."""
    unit, kind = pl.concat_str(pl.lit("instance "), pl.col("instance")), pl.lit(INSTANCES)
    repetition = unit
    known = [pl.col("dataset")] if "dataset" in rows.columns else []
    if SHARED_ROWS in rows.columns:
        known.append(pl.when(pl.col(SHARED_ROWS) != NO_TABLE).then(pl.col(SHARED_ROWS)))
    if known:
        data_set = pl.coalesce(known)
        unit = pl.coalesce(data_set, unit)
        kind = pl.when(data_set.is_not_null()).then(pl.lit(DATA_SETS)).otherwise(kind)
        # splits may be among the settings
        varied = [name for name in others if name not in ("kind", "dataset") and rows[name].n_unique() > 1]
        columns = [name for name in ("dataset", SHARED_ROWS) if name in rows.columns]
        repetition = _text([*columns, *varied]) if varied else repetition
    return rows.with_columns(unit.alias("unit"), kind.alias("unit_kind"), repetition.alias("repetition"))


def unrecorded(rows: pl.DataFrame) -> int:
    """Number of instances that count as independent because their cells do not record the rows."""
    if SHARED_ROWS not in rows.columns:
        return 0
    independent = pl.col("unit_kind") == INSTANCES
    return rows.filter(independent & pl.col(SHARED_ROWS).is_null())["instance"].n_unique()


def unit_words(rows: pl.DataFrame) -> str:
    """The units of standard errors in words."""
    kinds = set(rows["unit_kind"].to_list())
    return str(kinds.pop()) if len(kinds) == 1 else INSTANCES


def scoreless(table: pl.DataFrame, value: Value = score_value) -> int:
    """Number of rows that are done but have no finite value."""
    finite = value(table).is_finite().fill_null(False)
    return table.filter((pl.col("status") == "done") & ~finite).height


def filter_names(rows: pl.DataFrame, study: Plan) -> list[str]:
    """Settings with more than one value, the kind of instance first."""
    names = dict.fromkeys(("kind", *study.settings))
    return [name for name in names if name in rows.columns and rows[name].n_unique() > 1]


def repeated(rows: pl.DataFrame) -> int:
    """Number of cells beyond the first of a method on an instance."""
    return rows.height - rows.select("instance", "method").unique().height


def metric_column(rows: pl.DataFrame, study: Plan, metric: str) -> str | None:
    """The column of a metric, which is the value for the first one; None if no method reports it."""
    if metric == study.metrics[0]:
        return "value"
    # the table gives a score that has the name of a field a prefix
    return next((name for name in (f"score_{metric}", metric) if name in rows.columns), None)


def metric_rows(rows: pl.DataFrame, study: Plan, metric: str) -> pl.DataFrame:
    """The rows that have a finite metric, with it as their value."""
    column = metric_column(rows, study, metric)
    if column is None:
        return rows.clear()
    return rows.with_columns(pl.col(column).cast(pl.Float64).alias("value")).filter(pl.col("value").is_finite())
