"""Tables of the study of recommendations: loss to cross-validation, and the calibration of the constant."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from admiss.bounds.from_data import MEASURED
from admiss.study.report.sections import Section
from experiments.studies.bounds.measures import plain
from experiments.studies.recommendation.methods import CLASSES

# Constants that are tried.
CONSTANTS = np.round(np.arange(0.0, 1.51, 0.1), 1)
# A loss of R2 within which two classes are equally good.
CLOSE = 0.01


@dataclass(frozen=True)
class Case:
    """An instance: test R2 and held-out loss of each class, and the recommendation's risks and columns."""

    group: str
    n: int
    r2: Sequence[float]
    held_out: Sequence[float]
    risks: Sequence[float]
    columns: Sequence[int]

    def recommended(self, c: float = MEASURED) -> int:
        """The index of the class that is recommended with a constant."""
        totals = [risk * (1 + c * p / self.n) for risk, p in zip(self.risks, self.columns, strict=True)]
        return int(np.argmin(totals))

    @property
    def chosen(self) -> int:
        """The index of the class that cross-validation chooses."""
        return int(np.argmin(self.held_out))


def read_cases(table: pl.DataFrame) -> list[Case]:
    """The instances that are done, in an order independent of the table."""
    cases = [
        Case(
            "paper, MCAR" if row["kind"] == "AuthorsInstance" else f"{row['half']} laws",
            int(row["n_train"]),
            *(plain(row[name]) for name in ("r2", "held_out", "risks", "columns")),
        )
        for row in table.filter(pl.col("status") == "done").to_dicts()
    ]
    return sorted(cases, key=str)


def recommendation_sections(table: pl.DataFrame) -> list[Section]:
    """The tables, if any instance is done."""
    cases = read_cases(table)
    if not cases:
        return []
    judged = [case for case in cases if not case.group.startswith("calibration")]
    sections = []
    if judged:
        words = (
            "Mean test R2 of ridge regressions of the recommended class, of the class chosen by cross-validation, of "
            f"the best class in hindsight and of one class for all; in brackets the share of instances at most {CLOSE} "
            "below the class of cross-validation."
        )
        sections.append(Section("Recommended against chosen classes", words, *_comparison(judged)))
    calibration = [case for case in cases if case.group.startswith("calibration")]
    if calibration:
        means = [np.mean([case.r2[case.recommended(c)] for case in calibration]) for c in CONSTANTS]
        best = CONSTANTS[int(np.argmax(means))]
        words = (
            f"Mean test R2 of the recommended class on the {len(calibration)} calibration instances by the constant c "
            f"of the estimation term; the best is c = {best:g}, and the default is {MEASURED:g}."
        )
        rows = [[f"{c:g}", f"{mean:.4f}"] for c, mean in zip(CONSTANTS, means, strict=True)]
        sections.append(Section("The constant of the estimation term", words, ["c", "mean R2"], rows))
    return sections


def _comparison(cases: list[Case]) -> tuple[list[str], list[list[str]]]:
    groups = {group: [case for case in cases if case.group == group] for group in sorted({c.group for c in cases})}
    for n in sorted({case.n for case in cases}):
        groups[f"n = {n}"] = [case for case in cases if case.n == n]
    groups["all"] = cases
    table = []
    for name, group in groups.items():
        r2 = np.array([case.r2 for case in group])
        indices = np.arange(len(group))
        by_cv = r2[indices, [case.chosen for case in group]]

        def words(values: Any, by_cv: Any = by_cv) -> str:
            return f"{values.mean():.4f} ({np.mean(values >= by_cv - CLOSE):.0%})"

        recommended = r2[indices, [case.recommended() for case in group]]
        constants = [words(r2[:, k]) for k in range(len(CLASSES))]
        row = [name, str(len(group)), words(recommended), f"{by_cv.mean():.4f}", f"{r2.max(axis=1).mean():.4f}"]
        table.append([*row, *constants])
    return ["instances", "number", "recommended", "cross-validation", "hindsight", *CLASSES], table
