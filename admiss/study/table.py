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
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from admiss.study.comparisons import group_estimates, paired_differences
from admiss.study.plan import Best, Plan
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


def read_table(store: Store | str | Path, study: Plan) -> pl.DataFrame:
    """Read the table of a store, given as such or by its folder or file."""
    if not isinstance(store, Store):
        path = Path(store)
        with Store(path if path.is_dir() or not path.suffix else path.parent, study.name) as opened:
            return read_table(opened, study)
    grid = run_grid(store, study)
    stored, sketches = store.rows(), store.sketches()
    keys = {cell.key for cell in grid}
    rows = [row for row in stored if row["key"] in keys]
    instances = {_text(row["instance"]) for row in rows}
    recorded = {text: sketches[text] for text in instances.intersection(sketches)}
    tables = dict.fromkeys(recorded, NO_TABLE) | shared_tables(recorded)
    fields = {name for row in rows for name in row["instance"]} - {"kind"}
    rows += best_rows(rows, study.best)
    flat = [{**_flat(row, fields), SHARED_ROWS: tables.get(_text(row["instance"]))} for row in rows]
    return study.derived(_frame(flat, study.metrics))


def answer(store: Store, presentation: Any, count: int = 3) -> list[str]:
    """Lines with the best methods by mean, and their differences to the reference; none if nothing is compared.

    A mean is that over units, and a difference that of the paired comparison, as in the tables of the study.

    Parameters
    ----------
    store : Store
    presentation : Presentation
    count : int
        Number of methods.
    """
    labels = presentation.labels
    rows = labels.inside(presentation.rows(read_table(store, presentation.study)))
    methods = labels.ordered(rows["method"].to_list())
    if len(methods) < 2 or not presentation.compared:
        return []
    reference = labels.reference_among(methods)
    means = {name: found.mean for (name,), found in group_estimates(rows, ["method"], "value").items()}
    differences = group_estimates(paired_differences(rows, reference), ["method"], "difference")
    best = sorted(means, key=lambda name: -means[name])[:count]
    width = max(map(len, best))
    lines = [f"best mean {presentation.study.metrics[0]}, and the difference to {reference} with its 95 % interval:"]
    for name in best:
        difference = differences.get((name,))
        words = "the reference" if name == reference else "no instance in common with the reference"
        if difference is not None:
            low, high = difference.low, difference.high
            interval = "no interval" if low is None or high is None else f"{low:+.2g} to {high:+.2g}"
            words = f"{difference.mean:+.2g} ({interval})"
        lines.append(f"  {name:<{width}}  {means[name]:.4g}  {words}")
    instances = dict(rows.group_by("method").agg(pl.col("instance").n_unique()).iter_rows())
    if len({instances.get(name) for name in (*best, reference)}) > 1:
        lines.append("Not all of these have a score on every instance: a difference is over those that both have.")
    return lines


def _text(instance: Mapping[str, Any]) -> str:
    """An instance as in the store."""
    return json.dumps(instance)


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


def _flat(row: Row, fields: set[str]) -> Row:
    """Convert a row of the store to a row of the table; a name already in use gets a prefix."""
    instance: Mapping[str, Any] = row["instance"]
    flat = {name: row[name] for name in COPIED}
    flat.update(kind=instance["kind"], method=row["method"]["name"])
    flat["parameters"] = json.dumps(row["method"].get("parameters", {}))
    for name, value in instance.items():
        if name != "kind":
            flat[f"instance_{name}" if name in FIXED else name] = value
    for name, value in row["scores"].items():
        taken = (name in fields and name not in FIXED) or name in COPIED or name in ("kind", "method", "parameters")
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
