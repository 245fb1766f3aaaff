"""The table of a study: one row per cell of a store that has ended, and one per choice among methods.

Columns: those of ``FIXED``, one per metric, one per field of the instances, and one per other score. A value that a row
does not have is null; lists and dicts are JSON text. Cells that the study no longer has at the scales run are left out.

The row of a :class:`~admiss.study.plan.Best` has the scores of the member with the largest ``cv_score`` (the first
among equals), the seconds of all members (``shared_seconds``, work that every member reports, is counted once), and all
their versions, digests and machines (``a + b``). It exists if all members do, and has failed if one has.

``shared_rows`` names the table that an instance has in common with others (:mod:`admiss.study.shared_rows`), and is
``none`` if it has rows of its own; it is null if its rows are not recorded, as in cells of earlier versions, or it has
a field ``dataset``.

Columns that are computed from others are those of the study (:attr:`~admiss.study.plan.Plan.derived`).

Of the table, reports count the rows that are done and have a finite value, with further columns (:func:`scored_rows`):

    value        the score, or what the study is compared by
    instance     a number per recipe, the same for all methods
    unit         what standard errors are over: the data set if there is one, otherwise the instance. A data set is
                 what the field ``dataset`` names, or a table that instances share
    unit_kind    the kind of unit in words
    repetition   instances that differ only in settings have the same one, such as the number of a random split

They are in the order of instances, and of the methods of the study, whatever the order of the table.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any

import polars as pl

from admiss.study.plan import Best, Plan, kind_name
from admiss.study.run import run_grid
from admiss.study.shared_rows import NO_TABLE, SHARED_ROWS, shared_tables
from admiss.study.store import Store

FIXED: dict[str, Any] = {
    "key": pl.String,
    "kind": pl.String,
    "method": pl.String,
    "parameters": pl.String,
    "status": pl.String,
    "reason": pl.String,
    "chosen_method": pl.String,
    "score": pl.Float64,
    "cv_score": pl.Float64,
    "seconds": pl.Float64,
    "elapsed": pl.Float64,
    "version": pl.String,
    "digest": pl.String,
    "machine": pl.String,
    "finished": pl.String,
    SHARED_ROWS: pl.String,
}
COPIED = ("key", "status", "reason", "elapsed", "version", "digest", "machine", "finished")
Row = dict[str, Any]
Value = Callable[[pl.DataFrame], pl.Expr]
# Kinds of units.
INSTANCES, DATA_SETS = "instances", "data sets"


def read_table(store: Store, study: Plan) -> pl.DataFrame:
    """Read the table of a store."""
    stored, recorded = store.rows(), store.sketches()
    keys = {cell.key for cell in run_grid(store, study)}
    rows = [row for row in stored if row["key"] in keys]
    instances = {_text(row["instance"]) for row in rows}
    sketches = {text: sketch for instance, sketch in recorded if (text := _text(instance)) in instances}
    tables = dict.fromkeys(sketches, NO_TABLE) | shared_tables(sketches)
    names = {name for row in rows for name in row["instance"]} - {"kind"}
    rows += best_rows(rows, study.best)
    flat = [{**_flat(row, names), SHARED_ROWS: tables.get(_text(row["instance"]))} for row in rows]
    table = _frame(flat, study.metrics)
    return study.derived(table) if study.derived else table


def _text(instance: Mapping[str, Any]) -> str:
    return json.dumps(instance, sort_keys=True)


def best_rows(rows: Sequence[Row], choices: Sequence[Best]) -> list[Row]:
    """Rows of choices among methods, in the form of the rows of the store."""
    instances: dict[str, dict[str, list[Row]]] = {}
    for row in rows:
        members = instances.setdefault(_text(row["instance"]), {})
        members.setdefault(row["method"]["name"], []).append(row)
    found = []
    for members in instances.values():
        for best in choices:
            if all(name in members for name in best.members):
                found.append(_best_row(best, [row for name in best.members for row in members[name]]))
    return found


def _best_row(best: Best, members: Sequence[Row]) -> Row:
    failures = [f"{row['method']['name']} failed: {row['reason']}" for row in members if row["status"] == "failed"]
    failures += [
        f"{row['method']['name']} has no cv_score"
        for row in members
        if row["status"] == "done" and row["scores"].get("cv_score") is None
    ]
    if len(members) > len(best.members):
        failures.append("two cells of a member have the same name")
    last = max(members, key=lambda row: row["finished"])
    shared = {
        **last,
        **{name: " + ".join(dict.fromkeys(row[name] for row in members)) for name in ("version", "digest", "machine")},
        "key": None,
        "method": {"name": best.name, "parameters": {}},
        "elapsed": sum(row["elapsed"] for row in members),
    }
    if failures:
        return {**shared, "status": "failed", "reason": "; ".join(failures), "scores": {}}
    best_member = max(members, key=lambda row: row["scores"]["cv_score"])  # the first among equals
    times = [row["scores"].get("seconds") for row in members]
    repeated = sum(row["scores"].get("shared_seconds") or 0.0 for row in members if row is not best_member)
    scores = {
        **best_member["scores"],
        "seconds": None if None in times else sum(times) - repeated,
        "chosen_method": best_member["method"]["name"],
    }
    return {**shared, "status": "done", "reason": None, "scores": scores}


def _flat(row: Row, names: set[str]) -> Row:
    """Convert a row of the store to a row of the table; a name already in use gets a prefix."""
    instance: Mapping[str, Any] = row["instance"]
    flat = {name: row[name] for name in COPIED}
    flat.update(kind=instance["kind"], method=row["method"]["name"])
    flat["parameters"] = json.dumps(row["method"].get("parameters", {}))
    for name, value in instance.items():
        if name != "kind":
            flat[f"instance_{name}" if name in FIXED else name] = value
    for name, value in row["scores"].items():
        taken = (name in names and name not in FIXED) or name in COPIED or name in ("kind", "method", "parameters")
        flat[f"score_{name}" if taken else name] = value
    return flat


def _frame(rows: Sequence[Row], metrics: Sequence[str]) -> pl.DataFrame:
    types = {**FIXED, **dict.fromkeys(metrics, pl.Float64)}
    names = list(dict.fromkeys([*types, *(name for row in rows for name in row)]))
    return pl.DataFrame([_column(name, [row.get(name) for row in rows], types) for name in names])


def _column(name: str, values: list[Any], types: Mapping[str, Any]) -> pl.Series:
    dtype = types.get(name) or _type({type(value) for value in values if value is not None})
    if dtype == pl.Float64:
        values = [value if value is None else float(value) for value in values]
    if dtype == pl.String:
        values = [value if value is None or isinstance(value, str) else json.dumps(value) for value in values]
    return pl.Series(name, values, dtype=dtype)


def _type(kinds: set[type]) -> Any:
    """The type that holds values of some kinds; text if no other does."""
    if kinds == {bool}:
        return pl.Boolean
    if kinds == {int}:
        return pl.Int64
    return pl.Float64 if kinds and kinds <= {int, float} else pl.String


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
    recipe = _joined(names)
    texts = done.select(recipe)[:, 0].to_list()
    numbers = {text: number for number, text in enumerate(dict.fromkeys(texts))}
    done = done.with_columns(pl.Series("instance", [numbers[text] for text in texts], dtype=pl.Int64))
    # a setting that is a score, such as the task, holds for all methods of an instance
    others = [name for name in study.settings if name in done.columns and name not in names]
    done = done.with_columns(pl.col(name).max().over("instance") for name in others)
    return _with_units(done, [name for name in names if name not in study.settings])


def _joined(names: Sequence[str]) -> pl.Expr:
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
        repetition = _joined([*columns, *varied]) if varied else repetition
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
