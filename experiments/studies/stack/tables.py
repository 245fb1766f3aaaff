"""Gains of a stack over each method, and its loss to the best model in hindsight.

Generated data: means over sizes, fractions and signals by setting. The units are the five signals, which are used at
every size and fraction: standard errors are over signals (with so few units, two standard errors leave p = .12). The
stack was developed on the first two signals; a second table has the other three.

Real data: splits of a set are averaged first, and sets are the units. The gap to hindsight is the difference between
the largest score on the test rows and that of the stack: over its own candidates, or over all methods of the study; by
set (mean over splits, then the largest) and by split.
"""

from collections.abc import Sequence

import numpy as np
import polars as pl

from admiss.study.report.sections import Section
from admiss.terminal.table import number, signed
from experiments.paper.sets import by_set
from experiments.studies.stack.grid import STACK
from experiments.studies.synthetic.grid import SETTINGS

SIGNALS = 5
# The first signals, on which the stack was developed.
DEVELOPED = 2
PREFIX = "score of "
CAUTION = "The features are Gaussian of rank 5, which favours models of the conditional law."


def stack_sections(table: pl.DataFrame) -> list[Section]:
    """The tables of the study."""
    done = table.filter(pl.col("status") == "done")
    found = []
    generated, real = (_generated, _other_signals, _hindsight), (_real, _real_hindsight)
    for column, tables in (("mechanism", generated), ("dataset", real)):
        rows = done.filter(pl.col(column).is_not_null()) if column in done.columns else done.clear()
        if STACK in rows["method"]:
            found += [make(rows) for make in tables]
    return found


def _methods(rows: pl.DataFrame) -> list[str]:
    """The stack, then the others from the best to the worst."""
    means = rows.group_by("method").agg(pl.col("score").mean()).sort("score", "method", descending=[True, False])
    return [STACK, *(name for name in means["method"] if name != STACK)]


def _generated(rows: pl.DataFrame) -> Section:
    places = [(f"{m} / {s}", rows.filter(pl.col("mechanism") == m, pl.col("signal") == s)) for m, s in SETTINGS]
    lines = []
    for method in _methods(rows):
        line = [method]
        for _, here in places:
            pair = _paired(here, STACK, method)
            line.append(number(float(np.mean([own for _, own in pair.values()])) if pair else None))
            line.append("-" if method == STACK or not pair else _difference(pair))
        lines.append(line)
    header = ["method", *(word for name, _ in places for word in (name, f"stack - method, {name}"))]
    text = "R2, and the gain of the stack with its standard error over signals. " + CAUTION
    return Section("Generated data", text, header, lines)


def _other_signals(rows: pl.DataFrame) -> Section:
    same = _generated(rows.filter((pl.col("replicate") - 1) % SIGNALS >= DEVELOPED))
    return Section("Generated data, signals 3 to 5", same.text, same.header, same.rows)


def _paired(rows: pl.DataFrame, first: str, second: str) -> dict[int, tuple[float, float]]:
    """By signal the mean scores of two methods over the instances that both have."""
    keys = ["n", "missing_fraction", "replicate"]
    one, other = (rows.filter(pl.col("method") == name).select(*keys, "score") for name in (first, second))
    both = one.join(other, on=keys, suffix="_other").with_columns(((pl.col("replicate") - 1) % SIGNALS).alias("unit"))
    means = both.group_by("unit").agg(pl.col("score", "score_other").mean()).sort("unit")
    return {unit: (a, b) for unit, a, b in means.iter_rows()}


def _difference(pair: dict[int, tuple[float, float]]) -> str:
    gains = np.array([a - b for a, b in pair.values()])
    return _with_error(gains)


def _with_error(values: Sequence[float] | np.ndarray) -> str:
    values = np.asarray(values, dtype=float)
    if len(values) < 2:
        return signed(float(values.mean())) if len(values) else "-"
    return f"{signed(float(values.mean()))} ± {number(float(values.std(ddof=1)) / len(values) ** 0.5)}"


def _hindsight(rows: pl.DataFrame) -> Section:
    lines = []
    for m, s in [*SETTINGS, (None, None)]:
        here = rows.filter(pl.col("method") == STACK)
        if m is not None:
            here = here.filter(pl.col("mechanism") == m, pl.col("signal") == s)
        loss = (here["hindsight"].cast(pl.Float64) - here["score"]).to_numpy()
        if len(loss):
            numbers = [loss.mean(), np.quantile(loss, 0.95), loss.max()]
            lines.append([f"{m} / {s}" if m else "all", str(len(loss)), *(signed(float(x)) for x in numbers)])
    text = "R2 of the candidate that is best on the test rows minus R2 of the stack."
    return Section("Loss to hindsight, generated data", text, ["setting", "instances", "mean", "95 %", "worst"], lines)


def _real(rows: pl.DataFrame) -> Section:
    lines = []
    for method in _methods(rows):
        sets = by_set(rows, [STACK, method])
        if sets.is_empty():
            continue
        gains = (sets[STACK] - sets[method]).to_numpy()
        kinds = {
            task: by_set(rows.filter(pl.col("task") == task), [STACK, method]) for task in ("regression", "binary")
        }
        means = [number(float(each[method].to_numpy().mean())) if each.height else "-" for each in kinds.values()]
        mean = float(sets[method].to_numpy().mean())
        lines.append([method, str(sets.height), number(mean), *means, "-" if method == STACK else _with_error(gains)])
    text = "R2, or 2 AUC - 1 for classes; sets are the units, each the mean over its splits."
    header = ["method", "sets", "mean", "regression", "classes", "stack - method"]
    return Section("Real targets", text, header, lines)


def _real_hindsight(rows: pl.DataFrame) -> Section:
    here = rows.filter(pl.col("method") == STACK)
    identity = ["dataset", "split"]
    columns = [name for name in here.columns if name.startswith(PREFIX)]
    own = here.select(*identity, "score", *(pl.col(name).cast(pl.Float64) for name in columns))
    others = [name for name in _methods(rows) if name != STACK]
    by_method = [pl.col("score").filter(pl.col("method") == name).mean().alias(name) for name in others]
    every = here.select(*identity, "score").join(rows.group_by(identity).agg(by_method), on=identity)
    lines = []
    # affine weights are not a candidate on wide sets; an instance that lacks a method does not count
    for against, table, names in (("its candidates", own, columns), ("all methods", every.drop_nulls(), others)):
        if table.is_empty():
            continue
        of_sets = table.group_by("dataset", maintain_order=True).agg(pl.col("score", *names).mean())
        for unit, each in (("set", of_sets), ("split", table)):
            gap = (each.select(pl.max_horizontal(names) - pl.col("score")).to_series()).to_numpy()
            worst = each["dataset"][int(gap.argmax())]
            numbers = [gap.mean(), np.quantile(gap, 0.95), gap.max()]
            lines.append([against, unit, str(len(gap)), *(signed(float(x)) for x in numbers), worst])
    text = "The best score on the test rows minus that of the stack."
    header = ["best of", "by", "units", "mean", "95 %", "worst", "worst set"]
    return Section("Gap to hindsight, real targets", text, header, lines)
