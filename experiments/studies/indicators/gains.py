"""Gains by unit: of indicators over none, and of imputers over the mean.

A target is a kind of instances:

    real                         real sets with their targets             units: sets, means over splits
    linear on real features      real sets with linear targets            units: sets, means over splits
    generated linear or nn       generated sets of 200 or 1,000 rows      units: draws

Only instances on which all methods are done count, so that averages over methods are over the same instances.
"""

from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np
import polars as pl

from experiments.studies.gains import Values, mean_of
from experiments.studies.indicators.grid import MECHANISMS, SIGNALS, SIZES, method_name
from experiments.studies.indicators.methods import IMPUTERS, LEARNERS

Mechanism = tuple[str, float]
Target = Mapping[str, object]

REAL, LINEAR = "real", "linear on real features"
TARGETS: dict[str, Target] = {
    REAL: {"kind": "CompleteSet", "signal": "real"},
    LINEAR: {"kind": "CompleteSet", "signal": "linear"},
    **{
        f"generated {signal}, n = {n}": {"kind": "CompleteDraw", "signal": signal, "n": n}
        for signal, n in product(SIGNALS, SIZES)
    },
}
# Parts of a target, which are shown but not judged.
BY_TASK: dict[str, Target] = {
    f"{REAL}, {words}": {**TARGETS[REAL], "task": task}
    for task, words in (("regression", "regression"), ("binary", "classes"))
}
MCAR = tuple(each for each in MECHANISMS if each[0] == "mcar")
(CENSORING,) = (each for each in MECHANISMS if each[0] == "censoring")
METHODS = [method_name(*each) for each in product(IMPUTERS, LEARNERS, (False, True))]
# Imputers that are meant to be more accurate than the mean.
BETTER = IMPUTERS[1:]


def mechanism_words(mechanism: Mechanism) -> str:
    """A mechanism in words.

    Examples
    --------
    >>> mechanism_words(("mcar", 0.2))
    'MCAR 20 %'
    """
    name, fraction = mechanism
    return f"{'MCAR' if name == 'mcar' else name} {100 * fraction:.0f} %"


def by_unit(
    table: pl.DataFrame, target: str, mechanism: Mechanism, value: str = "score"
) -> dict[str, dict[str, float]]:
    """Means of a value by unit and method."""
    where = {**(TARGETS | BY_TASK)[target], "mechanism": mechanism[0], "missing_fraction": mechanism[1]}
    unit, identity = ("dataset", ["dataset", "split"]) if "n" not in where else ("replicate", ["replicate"])
    if not {*where, *identity, value} <= set(table.columns):
        return {}
    done = table.filter(pl.col("status") == "done", *(pl.col(name) == wanted for name, wanted in where.items()))
    numbers = [pl.col(value).filter(pl.col("method") == method).mean().alias(method) for method in METHODS]
    instances = done.group_by(identity).agg(numbers).drop_nulls()
    units = instances.group_by(unit).agg(pl.col(METHODS).mean()).sort(unit)
    return {str(row.pop(unit)): row for row in units.to_dicts()}


def indicator_gain(
    table: pl.DataFrame,
    target: str,
    mechanisms: Sequence[Mechanism],
    imputers: Sequence[str] = IMPUTERS,
    learners: Sequence[str] = LEARNERS,
) -> Values:
    """Score with indicators minus score without, averaged over mechanisms, imputers and learners."""
    pairs = [
        (method_name(imputer, learner, True), method_name(imputer, learner, False))
        for imputer, learner in product(imputers, learners)
    ]
    return _mean_difference(table, target, mechanisms, pairs)


def imputation_gain(
    table: pl.DataFrame,
    target: str,
    mechanisms: Sequence[Mechanism],
    learners: Sequence[str] = LEARNERS,
    indicators: Sequence[bool] = (False,),
    imputers: Sequence[str] = BETTER,
) -> Values:
    """Score with imputers minus score with the mean, averaged over mechanisms, imputers and learners."""
    pairs = [
        (method_name(imputer, learner, each), method_name("mean", learner, each))
        for imputer, learner, each in product(imputers, learners, indicators)
    ]
    return _mean_difference(table, target, mechanisms, pairs)


def _mean_difference(
    table: pl.DataFrame, target: str, mechanisms: Sequence[Mechanism], pairs: Sequence[tuple[str, str]]
) -> Values:
    found = [
        {unit: float(np.mean([row[one] - row[other] for one, other in pairs])) for unit, row in units.items()}
        for units in (by_unit(table, target, mechanism) for mechanism in mechanisms)
    ]
    return mean_of(found)


def by_draw(rows: pl.DataFrame) -> pl.DataFrame:
    """Make draws the units of generated data: the mechanisms share their features and target."""
    if not {"n", "replicate"} <= set(rows.columns):
        return rows
    is_draw = pl.col("kind") == "CompleteDraw"
    draw = pl.format("{}, n = {}, draw {}", "signal", "n", "replicate")
    return rows.with_columns(
        pl.when(is_draw).then(draw).otherwise(pl.col("unit")).alias("unit"),
        pl.when(is_draw).then(pl.lit("draws")).otherwise(pl.col("unit_kind")).alias("unit_kind"),
    )
