"""Tables of the study on real design matrices beside the paper's.

Averages by design are given twice: over instances, as the paper does (a data set with many features that can be
missing counts more often), and over data sets, each counted once. Standard errors are over sets
(:mod:`experiments.paper.sets`). Tree signals have a table of their own and enter no average.
"""

from collections.abc import Sequence

import numpy as np
import polars as pl

from admiss.study import Best
from admiss.study.report.presentation import ReferenceTable
from admiss.study.report.sections import Section
from admiss.terminal.table import ABSENT, number, signed
from experiments.paper import numbers as paper_numbers
from experiments.paper.interpolation import mean_and_error
from experiments.paper.labels import LABELS, PAPER_METHODS, REFERENCE
from experiments.paper.sections import choices_section, moves_section
from experiments.paper.sets import DESIGNS, TASKS, by_set, of_design, on_common_instances, wins_by_set

IN_FIGURES = tuple(dict.fromkeys(method for method, _ in paper_numbers.real_design_accuracy()))
BY_DESIGN = (
    "Plain means over the instances done here (linear and NN signals; R2, or 2 AUC - 1 for classes), the paper's "
    "printed number, and the difference. The paper has 10 splits and more shares of missing features."
)


def real_design_comparison(rows: pl.DataFrame) -> list[ReferenceTable]:
    """Means over instances by design, beside the printed ones."""
    printed = {key: number.value for key, number in paper_numbers.real_design_accuracy().items()}
    inside = rows.filter(~pl.col("signal").is_in(list(LABELS.outside["signal"])).fill_null(False))
    groups = inside.group_by("method", "design").agg(pl.col("value").mean()).iter_rows()
    means = {(method, design): mean for method, design, mean in groups if (method, design) in printed}
    designs = [(design,) for design in DESIGNS]
    return [ReferenceTable.of("By design", BY_DESIGN, "paper", means, printed, designs, LABELS)] if means else []


def real_design_sections(table: pl.DataFrame, choices: Sequence[Best]) -> list[Section]:
    """All tables of the study."""
    methods = [name for name in PAPER_METHODS if name in IN_FIGURES or name in table["method"].unique().to_list()]
    return [
        _accuracy(table, methods),
        _differences(table, methods),
        _by_missing_features(table),
        _tree_signals(table, methods),
        _real_targets_by_task(table, methods),
        _win_rates(table),
        _seconds(table, methods),
        *moves_section(_with_design(table)),
        choices_section(_with_design(table), choices, ["design"]),
    ]


def _with_design(table: pl.DataFrame) -> pl.DataFrame:
    """The rows that averages count; the design of real targets is ``"real"``."""
    named = [of_design(table, name).with_columns(pl.lit(name).alias("design")) for name in DESIGNS]
    return pl.concat(named, how="diagonal_relaxed")


def _accuracy(table: pl.DataFrame, methods: list[str]) -> Section:
    printed = paper_numbers.real_design_accuracy()
    rows = []
    for method in methods:
        for design in DESIGNS:
            paper = printed.get((method, design))
            counts, over_instances, over_sets, error = _levels(of_design(table, design), method)
            difference = over_instances - paper.value if paper and over_instances is not None else None
            ours = [
                number(over_instances),
                number(over_sets),
                number(error),
                *_robust(of_design(table, design), method),
            ]
            theirs = [number(paper.value), number(paper.error)] if paper else [ABSENT, ABSENT]
            rows.append([method, design, *counts, *ours, *theirs, signed(difference)])
    text = (
        "R2, or 2 AUC - 1 for classes, by design; linear and NN signals. The paper averages over instances, with "
        "10 splits and every number of missing features; the difference is that of the mean over instances. The "
        "standard error is that of the mean over sets. A few fits far below 0 can rule a mean: beside it are the "
        "median over sets and the share of instances below -1."
    )
    header = ["method", "design", "sets", "instances", "over instances", "over sets", "s.e.", "median of sets"]
    header += ["below -1"]
    return Section("Accuracy by design", text, [*header, "printed", "printed s.e.", "difference"], rows)


def _levels(rows: pl.DataFrame, method: str) -> tuple[list[str], float | None, float | None, float | None]:
    """Counts of sets and instances, mean over instances, mean over sets and its standard error."""
    instances, sets = on_common_instances(rows, [method], "score"), by_set(rows, [method])
    counts = [str(len(sets)), str(len(instances))]
    if sets.is_empty():
        return counts, None, None, None
    return counts, float(instances[method].to_numpy().mean()), *mean_and_error(sets[method].to_numpy())


def _robust(rows: pl.DataFrame, method: str) -> list[str]:
    """The median over sets, and the share of instances below -1."""
    instances, sets = on_common_instances(rows, [method], "score"), by_set(rows, [method])
    if sets.is_empty():
        return [ABSENT, ABSENT]
    return [
        number(float(np.median(sets[method].to_numpy()))),
        number(float((instances[method].to_numpy() < -1).mean())),
    ]


def _differences(table: pl.DataFrame, methods: list[str]) -> Section:
    printed = paper_numbers.real_design_accuracy()
    rows = []
    for method in methods:
        for design in DESIGNS if method != REFERENCE else ():
            paper, base = printed.get((method, design)), printed[REFERENCE, design]
            count, difference, error = _difference(of_design(table, design), method)
            theirs = paper.value - base.value if paper else None
            rows.append([method, design, count, signed(difference), number(error), signed(theirs)])
    text = (
        f"Accuracy minus that of {REFERENCE} on the same instances, averaged over sets, with standard errors over sets."
    )
    return Section(
        "Differences by design", text, ["method", "design", "sets", "difference", "s.e.", "difference of printed"], rows
    )


def _difference(rows: pl.DataFrame, method: str) -> tuple[str, float | None, float | None]:
    sets = by_set(rows, [method, REFERENCE])
    if sets.is_empty():
        return "0", None, None
    return str(len(sets)), *mean_and_error((sets[method] - sets[REFERENCE]).to_numpy())


def _by_missing_features(table: pl.DataFrame) -> Section:
    printed = paper_numbers.semi_synthetic_by_fraction()
    rows = []
    for design in DESIGNS[:3] if "fraction_missing" in table.columns else ():
        rounded = (10 * pl.col("fraction_missing")).round().cast(pl.Int64)
        instances = of_design(table, design).with_columns(rounded.alias("tenth"))
        for tenth in instances["tenth"].drop_nulls().unique().sort().to_list():
            for method in IN_FIGURES:
                counts, over_instances, _, error = _levels(instances.filter(pl.col("tenth") == tenth), method)
                if over_instances is None:
                    continue
                paper = printed.get((method, design, tenth))
                difference = over_instances - paper.value if paper else None
                theirs = [number(paper.value if paper else None), signed(difference)]
                rows.append(
                    [design, number(tenth / 10, 1), method, *counts, number(over_instances), number(error), *theirs]
                )
    text = (
        "R2 by the share of the signal's features that can be missing (k_missing / k, rounded to a tenth, as in the "
        "paper's figure); linear and NN signals. Sets with few such features have few of the shares."
    )
    header = ["design", "share", "method", "sets", "instances", "R2", "s.e.", "printed", "difference"]
    return Section("R2 by missing features", text, header, rows)


def _tree_signals(table: pl.DataFrame, methods: list[str]) -> Section:
    rows = []
    for method in methods:
        for design in DESIGNS[:3]:
            counts, over_instances, over_sets, error = _levels(of_design(table, design, ["tree"]), method)
            rows.append([method, design, *counts, number(over_instances), number(over_sets), number(error)])
    text = "R2 with tree signals, which no other table or average has."
    header = ["method", "design", "sets", "instances", "over instances", "over sets", "s.e."]
    return Section("Tree signals", text, header, rows)


def _real_targets_by_task(table: pl.DataFrame, methods: list[str]) -> Section:
    rows = []
    for method in methods:
        for task in TASKS:
            instances = of_design(table, "real", tasks=[task])
            counts, _, over_sets, error = _levels(instances, method)
            _, difference, paired = _difference(instances, method) if method != REFERENCE else ("", None, None)
            rows.append([method, task, *counts, number(over_sets), number(error), signed(difference), number(paired)])
    text = f"R2 (regression) and 2 AUC - 1 (binary) on real targets, over sets, and differences from {REFERENCE}."
    header = ["method", "task", "sets", "instances", "accuracy", "s.e.", "difference", "s.e. of difference"]
    return Section("Real targets by task", text, header, rows)


def _win_rates(table: pl.DataFrame) -> Section:
    rows = []
    cases = [(design, of_design(table, design)) for design in DESIGNS]
    cases += [(f"real, {task}", of_design(table, "real", tasks=[task])) for task in TASKS]
    for method in ("Affine intercept", "Adaptive LR - best", "Joint - linear", "Joint - XGBoost", "Joint - best"):
        for name, instances in cases:
            wins = wins_by_set(instances, method, REFERENCE)
            sets = by_set(instances, [method, REFERENCE])
            rate, error = mean_and_error(wins["wins"].to_numpy()) if len(wins) else (None, None)
            better = float((sets[method] > sets[REFERENCE]).to_numpy().mean()) if len(sets) else None
            rows.append([method, name, str(len(wins)), number(rate), number(error), number(better)])
    text = (
        f"How often a method scores above {REFERENCE}: the share of a set's instances (ties count half), averaged over "
        "sets, with its standard error over sets; and the share of sets on whose average it does."
    )
    header = ["method", "design", "sets", "win rate", "s.e.", "share of sets"]
    return Section("Win rates", text, header, rows)


def _seconds(table: pl.DataFrame, methods: list[str]) -> Section:
    rows = []
    for method in methods:
        for design in DESIGNS:
            sets = by_set(of_design(table, design), [method], "seconds")
            mean, error = mean_and_error(sets[method].to_numpy()) if len(sets) else (None, None)
            rows.append([method, design, str(len(sets)), number(mean, 2), number(error, 2)])
    text = (
        "CPU seconds of one thread for a fit with its search, over sets; linear and NN signals, with our reduced grids "
        "and engine. The seconds of a choice are those of all its members. The paper has figures of its seconds and no "
        "numbers."
    )
    return Section("Seconds by design", text, ["method", "design", "sets", "seconds", "s.e."], rows)
