"""Scores and paired differences by unit: draws of generated data, or real sets (means over splits).

Differences are over the units that both methods have. A case in which a group of test rows is too small has no value.
"""

import polars as pl

from experiments.studies.gains import Values, difference
from experiments.studies.shift.grid import CASES, method_name
from experiments.studies.shift.instances import WITHOUT_SHIFT

GENERATED, REAL = "generated", "real"
KINDS = {GENERATED: ("ShiftDraw", "replicate"), REAL: ("ShiftSet", "dataset")}
SHIFTS = tuple(case for case in CASES if case not in WITHOUT_SHIFT)
WORDS = {
    "mcar 10-50": "MCAR 10 -> 50 %",
    "mcar 30-60": "MCAR 30 -> 60 %",
    "mcar 30-10": "MCAR 30 -> 10 %",
    "mcar-censoring": "MCAR -> censoring",
    "censoring-mcar": "censoring -> MCAR",
    "censoring 10-40": "censoring 10 -> 40 %",
    "one gone": "one feature gone",
    "two gone": "two features gone",
    "new patterns": "new patterns",
    "mcar 30-30": "MCAR 30 %, no shift",
    "censoring 20-20": "censoring 20 %, no shift",
}


def scores(table: pl.DataFrame, kind: str, case: str, method: str, value: str = "score") -> Values:
    """The value of a method by unit."""
    name, unit = KINDS[kind]
    if not {"case", "kind", unit, value} <= set(table.columns):
        return {}
    rows = table.filter(
        pl.col("status") == "done", pl.col("kind") == name, pl.col("case") == case, pl.col("method") == method
    ).drop_nulls(value)
    means = rows.group_by(unit).agg(pl.col(value).cast(pl.Float64).mean()).sort(unit)
    return {str(key): number for key, number in means.iter_rows()}


def gain(table: pl.DataFrame, kind: str, case: str, estimator: str, value: str = "score") -> Values:
    """Augmented minus plain, by unit."""
    plain, augmented = (scores(table, kind, case, method_name(estimator, each), value) for each in (False, True))
    return difference(augmented, plain)
