"""Quantities of the synthetic study that decide claims.

All are of the authors' instances, averaged over the 49 x 8 grid by interpolation, with R2 in their form. Units are
signals: five linear and five NN ones. A quantity over both kinds is the mean of those of the kinds, with the standard
error of a mean over two strata (the kinds are fixed, signals are drawn); one between mechanisms is paired by signal.
"Strongest" and "weakest" are the methods with the largest and smallest average: a claim about all of several methods
is decided by the hardest comparison.
"""

from collections.abc import Callable, Sequence

import numpy as np
import polars as pl

from experiments.paper.claims import Measure, Measured, Units, combined, jackknife, picked_lead, relative_gain
from experiments.paper.interpolation import FRACTIONS, SIGNALS, SIZES, NotCoveredError, Numbers, grid_averages
from experiments.paper.labels import AUTHORS, REFERENCE
from experiments.paper.synthetic.tables import of_kind, of_setting


def lead(
    ours: Sequence[str],
    rivals: Sequence[str],
    mechanism: str,
    signals: Sequence[str],
    value: str = "r2_authors",
    sizes: Sequence[int] = SIZES,
    fractions: Sequence[float] = FRACTIONS,
) -> Measure:
    """The weakest of ours minus the strongest of the rivals."""

    def measure(table: pl.DataFrame) -> Measured:
        return _over_kinds(
            [
                _lead_of(table, ours, rivals, (mechanism, signal), value=value, sizes=sizes, fractions=fractions)
                for signal in signals
            ]
        )

    return measure


Statistic = Callable[[Units], float]


def _over_kinds(statistics: Sequence[Statistic]) -> Measured:
    found = [jackknife(SIGNALS, statistic) for statistic in statistics]
    return found[0] if len(found) == 1 else combined(found, [1 / len(found)] * len(found))


def _lead_of(
    table: pl.DataFrame,
    ours: Sequence[str],
    rivals: Sequence[str],
    setting: tuple[str, str],
    *,
    value: str = "r2_authors",
    sizes: Sequence[int] = SIZES,
    fractions: Sequence[float] = FRACTIONS,
) -> Statistic:
    """The lead at a mechanism and a kind of signal, over the signals that count."""
    by_unit = grid_averages(of_setting(table, AUTHORS, *setting), [*ours, *rivals], value, sizes, fractions).by_unit
    mine, theirs = [by_unit[name] for name in ours], [by_unit[name] for name in rivals]
    return lambda units: picked_lead(mine, theirs, units)


def change(ours: Sequence[str], rivals: Sequence[str], signals: Sequence[str]) -> Measure:
    """The lead under censoring minus that under MCAR, paired by signal."""

    def measure(table: pl.DataFrame) -> Measured:
        return _over_kinds([_change_of(table, ours, rivals, signal) for signal in signals])

    return measure


def _change_of(table: pl.DataFrame, ours: Sequence[str], rivals: Sequence[str], signal: str) -> Statistic:
    censored, random = (_lead_of(table, ours, rivals, (mechanism, signal)) for mechanism in ("censoring", "mcar"))
    return lambda units: censored(units) - random(units)


def level_change(method: str, signals: Sequence[str]) -> Measure:
    """The level under censoring minus that under MCAR, paired by signal."""

    def measure(table: pl.DataFrame) -> Measured:
        return _over_kinds([_mean_of(_level_change(table, method, signal)) for signal in signals])

    return measure


def _level_change(table: pl.DataFrame, method: str, signal: str) -> Numbers:
    censored, random = (
        grid_averages(of_setting(table, AUTHORS, mechanism, signal), [method], "r2_authors").by_unit[method]
        for mechanism in ("censoring", "mcar")
    )
    return np.asarray(censored - random)


def _mean_of(by_signal: Numbers) -> Statistic:
    return lambda units: float(by_signal[units].mean())


def gain(method: str, signal: str, claimed: float = 0.0) -> Measure:
    """The relative gain of a method over mean imputation under censoring, minus a claimed one."""

    def measure(table: pl.DataFrame) -> Measured:
        rows = of_setting(table, AUTHORS, "censoring", signal)
        by_unit = grid_averages(rows, [method, REFERENCE], "r2_authors").by_unit
        return relative_gain(by_unit[method], by_unit[REFERENCE], claimed)

    return measure


def extreme_lead(
    method: str, rival: str, along: str, pick: Callable[[Sequence[float]], float], claimed: float = 0.0
) -> Measure:
    """The largest (``pick=max``) or smallest lead under censoring, linear signals, along p or along n at p = .3."""

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
        setting = ("censoring", "linear")
        leads = [
            _lead_of(table, [method], [rival], setting, sizes=sizes, fractions=fractions)
            for sizes, fractions in targets
        ]
        return jackknife(SIGNALS, lambda units: pick([each(units) for each in leads]) - claimed)

    return measure


def depth_change(mechanism: str) -> Measure:
    """Depth selected for the finite model at n = 40 .. 200 minus that at n = 800 .. 1000, linear, p = .3."""

    def measure(table: pl.DataFrame) -> Measured:
        rows = of_setting(table, AUTHORS, mechanism, "linear")
        few, many = (
            grid_averages(rows, ["Finite"], "selected_depth", sizes, [0.3]).by_unit["Finite"]
            for sizes in (SIZES[:9], SIZES[38:])
        )
        return jackknife(SIGNALS, _mean_of(few - many))

    return measure
