"""Quantities of the synthetic study that claims are decided by.

All are of the authors' instances, averaged over the 49 x 8 grid by interpolation, with R2 in their form. Units are
signals: five linear and five NN ones. A quantity over both kinds is the mean of those of the kinds, with the standard
error of a mean over two strata (the kinds are fixed, signals are drawn); one between mechanisms is paired by signal.
"Strongest" and "weakest" are the methods with the largest and smallest average: a claim about all of several methods
is decided by the hardest comparison.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np
import polars as pl

from experiments.compare.claims import Measured, over_units, relative_gain
from experiments.compare.interpolation import FRACTIONS, SIZES, NotCoveredError, Numbers, grid_averages
from experiments.compare.synthetic_tables import AUTHORS, REFERENCE, of_kind, of_setting

Measure = Callable[[pl.DataFrame], Measured]


def lead(
    ours: Sequence[str],
    rivals: Sequence[str],
    mechanism: str,
    signals: Sequence[str],
    value: str = "r2_authors",
    sizes: Sequence[int] = SIZES,
    fractions: Sequence[float] = FRACTIONS,
) -> Measure:
    """The weakest of ours less the strongest of the rivals, signal by signal."""

    def measure(table: pl.DataFrame) -> Measured:
        by_kind = [
            _lead_by_signal(table, ours, rivals, (mechanism, signal), value, sizes, fractions) for signal in signals
        ]
        return _over_kinds(by_kind)

    return measure


def _over_kinds(by_kind: Sequence[Numbers]) -> Measured:
    found = [over_units(by_signal) for by_signal in by_kind]
    value = sum(each.value for each in found) / len(found)
    error = math.hypot(*(each.error or 0.0 for each in found)) / len(found)  # five signals of a kind: there is an error
    return Measured(value, error, sum(each.units for each in found))


def _lead_by_signal(
    table: pl.DataFrame,
    ours: Sequence[str],
    rivals: Sequence[str],
    place: tuple[str, str],
    value: str = "r2_authors",
    sizes: Sequence[int] = SIZES,
    fractions: Sequence[float] = FRACTIONS,
) -> Numbers:
    by_unit = grid_averages(of_setting(table, AUTHORS, *place), [*ours, *rivals], value, sizes, fractions).by_unit
    weakest = min(ours, key=lambda name: by_unit[name].mean())
    strongest = max(rivals, key=lambda name: by_unit[name].mean())
    return np.asarray(by_unit[weakest] - by_unit[strongest])


def change(ours: Sequence[str], rivals: Sequence[str], signals: Sequence[str]) -> Measure:
    """The lead under censoring less that under MCAR, paired by signal."""

    def measure(table: pl.DataFrame) -> Measured:
        return _over_kinds(
            [
                _lead_by_signal(table, ours, rivals, ("censoring", signal))
                - _lead_by_signal(table, ours, rivals, ("mcar", signal))
                for signal in signals
            ]
        )

    return measure


def level_change(method: str, signals: Sequence[str]) -> Measure:
    """The level under censoring less that under MCAR, paired by signal."""

    def measure(table: pl.DataFrame) -> Measured:
        by_kind = []
        for signal in signals:
            censored, random = (
                grid_averages(of_setting(table, AUTHORS, mechanism, signal), [method], "r2_authors").by_unit[method]
                for mechanism in ("censoring", "mcar")
            )
            by_kind.append(censored - random)
        return _over_kinds(by_kind)

    return measure


def gain(method: str, less: float, signal: str) -> Measure:
    """The relative gain of a method over mean imputation under censoring, less a claimed one."""

    def measure(table: pl.DataFrame) -> Measured:
        rows = of_setting(table, AUTHORS, "censoring", signal)
        by_unit = grid_averages(rows, [method, REFERENCE], "r2_authors").by_unit
        return relative_gain(by_unit[method], by_unit[REFERENCE], less)

    return measure


def extreme_lead(method: str, rival: str, along: str, pick: Callable[..., Measured], less: float = 0.0) -> Measure:
    """The largest (``pick=max``) or smallest lead under censoring, linear signals, along p, or along n at p = .3."""

    def measure(table: pl.DataFrame) -> Measured:
        targets: list[tuple[Sequence[int], Sequence[float]]]
        if along == "p":
            targets = [(SIZES, [p]) for p in FRACTIONS]
        else:
            rows = of_kind(table, AUTHORS)
            run = rows["n"].unique().sort().to_list() if len(rows) else []
            targets = [([n], [0.3]) for n in run if SIZES[0] <= n <= SIZES[-1]]
            if len(targets) < 2:
                raise NotCoveredError("Two sizes are needed.")
        place = ("censoring", "linear")
        leads = [
            over_units(_lead_by_signal(table, [method], [rival], place, "r2_authors", sizes, fractions) - less)
            for sizes, fractions in targets
        ]
        return pick(leads, key=lambda found: found.value)

    return measure


def depth_change(mechanism: str) -> Measure:
    """Depth of the finite model at n = 40 .. 200 less that at n = 800 .. 1000, linear signals, p = .3."""

    def measure(table: pl.DataFrame) -> Measured:
        rows = of_setting(table, AUTHORS, mechanism, "linear")
        few, many = (
            grid_averages(rows, ["Finite"], "depth", sizes, [0.3]).by_unit["Finite"]
            for sizes in (SIZES[:9], SIZES[38:])
        )
        return over_units(few - many)

    return measure
