"""Quantities of the study on real design matrices that decide claims.

Units are data sets: instances of a set are averaged first, on those that all methods of the claim have done. Signals
are linear and NN ones. Changes between designs are paired by set. "Strongest" and "weakest" are the methods with the
largest and smallest average.
"""

from collections.abc import Sequence

import polars as pl

from experiments.paper import numbers as paper_numbers
from experiments.paper.claims import Measure, Measured, combined, jackknife, over_units, picked_lead, relative_gain
from experiments.paper.interpolation import NotCoveredError
from experiments.paper.labels import REFERENCE
from experiments.paper.sets import SIGNALS, TASKS, by_set, of_design, on_common_instances, wins_by_set


def lead(
    ours: Sequence[str],
    rivals: Sequence[str],
    design: str,
    value: str = "score",
    signals: Sequence[str] = SIGNALS,
    tasks: Sequence[str] = TASKS,
) -> Measure:
    """The weakest of ours minus the strongest of the rivals, over sets."""

    def measure(table: pl.DataFrame) -> Measured:
        sets = by_set(of_design(table, design, signals, tasks), [*ours, *rivals], value)
        mine, theirs = ([sets[name].to_numpy() for name in names] for names in (ours, rivals))
        return jackknife(len(sets), lambda units: picked_lead(mine, theirs, units))

    return measure


def change(ours: Sequence[str], rivals: Sequence[str], design: str, base: str) -> Measure:
    """The lead in one design minus that in another, on the sets of both."""

    def measure(table: pl.DataFrame) -> Measured:
        there, before = (by_set(of_design(table, name), [*ours, *rivals]) for name in (design, base))
        there, before = there.join(before, on="dataset", how="semi"), before.join(there, on="dataset", how="semi")
        mine, theirs, mine_before, theirs_before = (
            [sets[name].to_numpy() for name in names] for sets in (there, before) for names in (ours, rivals)
        )
        return jackknife(
            len(there), lambda units: picked_lead(mine, theirs, units) - picked_lead(mine_before, theirs_before, units)
        )

    return measure


def win_change(method: str, design: str, base: str) -> Measure:
    """The win rate against mean imputation in one design minus that in another, on the sets of both."""

    def measure(table: pl.DataFrame) -> Measured:
        there, before = (wins_by_set(of_design(table, name), method, REFERENCE) for name in (design, base))
        both = there.join(before, on="dataset")
        return over_units((both["wins"] - both["wins_right"]).to_numpy())

    return measure


def task_change(method: str) -> Measure:
    """The lead over mean imputation in regression minus that in classification, on different sets."""

    def measure(table: pl.DataFrame) -> Measured:
        regression, classes = (lead([method], [REFERENCE], "real", tasks=[task])(table) for task in TASKS)
        return combined([regression, classes], [1.0, -1.0])

    return measure


def drop_with_missing_features(method: str, rival: str, design: str) -> Measure:
    """The lead where most features of the signal can be missing minus that where none can, set by set."""

    def measure(table: pl.DataFrame) -> Measured:
        both = on_common_instances(of_design(table, design), [method, rival], "score")
        if both.is_empty():
            raise NotCoveredError("No data set has both methods.")
        leads = both.with_columns((pl.col(method) - pl.col(rival)).alias("lead"))
        ends = leads.group_by("dataset").agg(
            pl.col("k_missing").min().alias("fewest"),
            pl.col("k_missing").max().alias("most"),
            pl.col("lead").filter(pl.col("k_missing") == pl.col("k_missing").max()).mean().alias("last"),
            pl.col("lead").filter(pl.col("k_missing") == 0).mean().alias("first"),
        )
        changed = ends.filter(pl.col("fewest") == 0, pl.col("most") > 0).sort("dataset")
        return over_units((changed["last"] - changed["first"]).to_numpy())

    return measure


def less_acute_than_synthetic(ours: str) -> Measure:
    """The authors' change of the lead from MCAR to censoring (linear signals) minus ours from MAR to AM."""
    reference = paper_numbers.synthetic_references()

    def measure(table: pl.DataFrame) -> Measured:
        censored, random = (
            reference[ours, mechanism, "linear"].value - reference[REFERENCE, mechanism, "linear"].value
            for mechanism in ("censoring", "mcar")
        )
        found = change([ours], [REFERENCE], "am", "mar")(table)
        return Measured(censored - random - found.value, found.error, found.units)

    return measure


def gain(
    method: str,
    base: str,
    design: str,
    claimed: float = 0.0,
    value: str = "score",
    sign: int = 1,
    signals: Sequence[str] = SIGNALS,
) -> Measure:
    """``sign`` times (the relative gain of a method over another minus a claimed one)."""

    def measure(table: pl.DataFrame) -> Measured:
        sets = by_set(of_design(table, design, signals), [method, base], value)
        found = relative_gain(sets[method].to_numpy(), sets[base].to_numpy(), claimed)
        return Measured(sign * found.value, found.error, found.units)

    return measure
