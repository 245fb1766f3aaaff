"""Tables of the study of partitions.

A problem counts if none, greedy and exact are all done. Training costs are compared only with proven optima, whose
number is reported. Differences on test rows are paired: exact and greedy have the same rows.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

import numpy as np
import polars as pl

from admiss.study.report.sections import Section

Row = dict[str, Any]
# Costs within this relative difference are equal.
EQUAL = 1e-9
GENERATED, REAL = ("mcar", "censoring", "mcar, nn", "interacting"), ("real target", "mar", "am")
COMPARED = [
    "problems", "greedy above optimum, mean %", "median %", "worst %", "greedy is optimal",
    "test R2, no split", "greedy", "exact", "exact - greedy",
]  # fmt: skip


def partition_sections(table: pl.DataFrame) -> list[Section]:
    """All tables of the study."""
    problems = paired(table.to_dicts())
    fixed = [p for p in problems if not p.tuned]
    generated = [p for p in fixed if p.fields["source"] in GENERATED]
    real = [p for p in fixed if p.fields["source"] in REAL]
    unproven = sum(not p.proven for p in fixed)
    costs = (
        "Training cost of the greedy tree above that of the optimal tree of the same depth (static leaves, ridge 1, "
        "the same fewest rows of a leaf), how often the two costs are equal, and R2 on test rows."
    )
    if unproven:
        costs += f" {unproven} of {len(fixed)} optima are not proven and left out."
    by_depth = _rows(fixed, ("source", "max_depth"), _compared)
    by_n = _rows(generated, ("source", "n", "missing_fraction", "max_depth"), _compared)
    by_dataset = _rows(real, ("source", "dataset", "max_depth"), _compared)
    tuned = _rows([p for p in problems if p.tuned], ("source", "n", "max_depth"), _scored)
    times = _rows(fixed, ("source", "n", "max_depth"), _timed)
    return [
        Section(
            "Greedy against exact, by data and depth",
            f"{costs} Standard errors are over seeds of generated data, and over data sets where data are real.",
            ["data", "depth", *COMPARED], by_depth,
        ),
        Section(
            "Generated patterns, by rows and share of missing values",
            "10 features, leaves of at least 22 rows; mean and standard error over seeds.",
            ["data", "n", "missing", "depth", *COMPARED], by_n,
        ),
        Section(
            "Real patterns, by data set",
            "Leaves of at least 20 rows; mean and standard error over splits, whose rows overlap.",
            ["target", "data set", "depth", *COMPARED], by_dataset,
        ),
        Section(
            "Test R2 where depth, ridge and leaf model are chosen by cross-validation",
            "No split is always a choice. Standard errors as in the first table.",
            ["data", "n", "depth up to", "problems", "test R2, no split", "greedy", "exact", "exact - greedy"], tuned,
        ),
        Section(
            "CPU seconds of a fit",
            "Medians; the first fit of a process also loads compiled code.",
            ["data", "n", "depth", "problems", "no split", "greedy", "exact", "exact, longest"], times,
        ),
    ]  # fmt: skip


class Problem:
    """A problem with its three rows."""

    def __init__(self, rows: dict[str, Row]) -> None:
        self.rows = rows
        self.fields = rows["exact"]

    @property
    def tuned(self) -> bool:
        return bool(self.fields["tuned"])

    @property
    def proven(self) -> bool:
        return str(self.fields["proof"]).startswith("optimal")

    @property
    def unit(self) -> Hashable:
        """The independent unit: a data set, or a seed."""
        return self.fields.get("dataset") or self.fields["replicate"]

    def loss(self) -> float:
        """Relative excess of greedy's training cost over the optimum."""
        greedy, exact = (self.rows[name]["train_cost"] for name in ("greedy", "exact"))
        return 0.0 if greedy <= exact else greedy / exact - 1 if exact > 0 else np.inf


def paired(rows: Iterable[Row]) -> list[Problem]:
    """The problems all of whose three rows are done."""
    fields = ("kind", "source", "dataset", "n", "missing_fraction", "max_rows", "max_depth", "tuned", "replicate")
    problems: dict[Hashable, dict[str, Row]] = {}
    for row in rows:
        if row["status"] == "done":
            problems.setdefault(tuple(row.get(name) for name in fields), {})[row["method"]] = row
    return [Problem(found) for found in problems.values() if {"none", "greedy", "exact"} <= found.keys()]


def _rows(
    problems: Sequence[Problem], names: Sequence[str], summary: Callable[[Sequence[Problem]], list[str]]
) -> list[list[str]]:
    """One row per group of problems with the same values of some fields, in order."""
    groups: dict[tuple[Any, ...], list[Problem]] = {}
    for problem in problems:
        groups.setdefault(tuple(problem.fields.get(name) for name in names), []).append(problem)
    ordered = sorted(groups, key=lambda key: tuple(_order(name, value) for name, value in zip(names, key, strict=True)))
    return [[*map(_word, key), *summary(groups[key])] for key in ordered]


def _word(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _order(name: str, value: Any) -> Any:
    if name == "source":
        return (*GENERATED, *REAL).index(value)
    return (False,) if value is None else (True, value)


def _compared(problems: Sequence[Problem]) -> list[str]:
    losses = np.array([100 * problem.loss() for problem in problems if problem.proven])
    count = f"{len(losses)} of {len(problems)}" if len(losses) < len(problems) else str(len(problems))
    if not len(losses):
        return [count, "-", "-", "-", "-", *_test_scores(problems)]
    optimal = np.mean(losses <= 100 * EQUAL)
    summary = [f"{value:.2f}" for value in (losses.mean(), np.median(losses), losses.max())]
    return [count, *summary, f"{optimal:.0%}", *_test_scores(problems)]


def _scored(problems: Sequence[Problem]) -> list[str]:
    return [str(len(problems)), *_test_scores(problems)]


def _test_scores(problems: Sequence[Problem]) -> list[str]:
    means = [np.mean([p.rows[name]["score"] for p in problems]) for name in ("none", "greedy", "exact")]
    return [*(f"{mean:.3f}" for mean in means), paired_difference(problems)]


def paired_difference(problems: Sequence[Problem]) -> str:
    """Mean difference in test R2, exact minus greedy, with its standard error over units."""
    differences: dict[Hashable, list[float]] = {}
    for problem in problems:
        difference = problem.rows["exact"]["score"] - problem.rows["greedy"]["score"]
        differences.setdefault(problem.unit, []).append(difference)
    if len(differences) == 1 and problems[0].fields.get("dataset"):
        differences = dict(enumerate([value] for value in next(iter(differences.values()))))
    means = np.array([np.mean(values) for values in differences.values()])
    if len(means) == 1:
        return f"{means[0]:+.3f}"
    return f"{means.mean():+.3f} ± {means.std(ddof=1) / len(means) ** 0.5:.3f}"


def _timed(problems: Sequence[Problem]) -> list[str]:
    seconds = {name: [p.rows[name]["seconds"] for p in problems] for name in ("none", "greedy", "exact")}
    medians = [f"{np.median(values):.3f}" for values in seconds.values()]
    return [str(len(problems)), *medians, f"{max(seconds['exact']):.2f}"]
