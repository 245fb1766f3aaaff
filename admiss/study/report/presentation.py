"""Presentation of a study: its tables and figures, and the words that they use.

Everything has a default: a study that binds nothing is reported under its own names, with its first metric as value and
the figures of :func:`default_drawings`, and no tables beyond means and comparisons.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import polars as pl

from admiss.report.figures import Drawing, print_style
from admiss.study.plan import Plan
from admiss.study.report.by_setting import default_drawings, main_drawing
from admiss.study.report.comparisons import compared, leaderboard
from admiss.study.report.labels import Labels
from admiss.study.report.sections import Section
from admiss.study.store import Store
from admiss.study.table import Value, metric_rows, read_table, score_value, scored_rows

Setting = tuple[str, ...]


@dataclass(frozen=True)
class ReferenceTable:
    """Means beside published ones: per method and setting the mean here, the published one, and their difference."""

    title: str
    text: str
    source: str
    settings: Sequence[str]
    rows: Sequence[tuple[str, Sequence[float | None]]]

    @classmethod
    def of(
        cls,
        title: str,
        text: str,
        source: str,
        means: Mapping[Any, float],
        published: Mapping[Any, float | None],
        settings: Sequence[Setting],
        labels: Labels,
    ) -> Self:
        """Make the table of means and published numbers by (method, \\*setting)."""
        rows = []
        for method in labels.ordered([key[0] for key in means]):
            cells: list[float | None] = []
            for setting in settings:
                here, there = means.get((method, *setting)), published.get((method, *setting))
                cells += [here, there, here - there if here is not None and there is not None else None]
            rows.append((method, cells))
        return cls(title, text, source, [", ".join(map(labels.word, setting)) for setting in settings], rows)


@dataclass(frozen=True)
class Presentation:
    """A study with everything that presents its numbers and computes none; all but the study has a default."""

    study: Plan
    # From the table of the study to its sections.
    sections: Callable[[pl.DataFrame], Sequence[Section]] = lambda table: ()
    # From the rows that count to tables beside published numbers.
    comparison: Callable[[pl.DataFrame], Sequence[ReferenceTable]] = lambda rows: ()
    # From the rows that count to figures, the main one first, in place of those of default_drawings.
    drawings: Callable[[pl.DataFrame], Sequence[Drawing]] | None = None
    # Words for settings and values, and the order of methods; the reference is that of the study unless given.
    labels: Labels = field(default_factory=Labels)
    # From the table to the expression of the first metric.
    value: Value = score_value
    # From the rows that count to the same rows with other units or settings.
    refine: Callable[[pl.DataFrame], pl.DataFrame] | None = None
    # From the rows that count to a description of their value, in place of the name of the metric.
    score_words: Callable[[pl.DataFrame], str] | None = None
    # Whether the methods are rivals, so that verdicts on their differences make sense.
    compared: bool = True

    def __post_init__(self) -> None:
        if not self.labels.reference:
            object.__setattr__(self, "labels", replace(self.labels, reference=self.study.reference))

    def rows(self, table: pl.DataFrame) -> pl.DataFrame:
        """The rows of a table that count, see :mod:`admiss.study.table`."""
        rows = scored_rows(table, self.study, self.value)
        return self.refine(rows) if self.refine else rows

    def answer(self, store: Store) -> str:
        """The best methods, with their differences to the reference; empty if nothing is compared."""
        rows = self.rows(read_table(store, self.study))
        found = compared(rows, self.study, self.labels, rivals=self.compared)
        return leaderboard(found).text() if found.comparisons else ""

    def figures(self, rows: pl.DataFrame) -> list[Drawing]:
        """The figures of the rows that count, the main one first."""
        if not rows.height:
            return []
        with print_style():
            return list(self.drawings(rows) if self.drawings else default_drawings(rows, self.study, self.labels))

    def further_figures(self, rows: pl.DataFrame) -> list[Drawing]:
        """One figure per further metric."""
        with print_style():
            drawn = [
                main_drawing(mine, self.study, self.labels, metric)
                for metric in self.study.metrics[1:]
                if (mine := metric_rows(rows, self.study, metric)).height
            ]
        return [drawing for drawing in drawn if drawing is not None]


Catalogue = Mapping[str, Presentation]
