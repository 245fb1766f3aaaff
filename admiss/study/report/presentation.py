"""Presentation of a study: its tables and figures, and the words that they use.

Everything has a default: a study that binds nothing is reported under its own names, with its score as the value,
figures against its numeric settings, and no tables beyond the means by method.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import polars as pl

from admiss.study.report.curves import value_curves
from admiss.study.report.dots import time_drawing, win_drawing
from admiss.study.report.drawing import Drawing
from admiss.study.report.labels import LINE_STYLES, Labels
from admiss.study.report.rows import Value, score_value, scored_rows
from admiss.study.sections import Section
from admiss.study.study import Study

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
    """A study with everything that presents its numbers and computes none.

    Attributes
    ----------
    study : Study
    sections : callable
        From the table of the study to its sections.
    comparison : callable
        From the rows that count to tables beside published numbers, with which the page opens.
    drawings : callable, optional
        From the rows that count to figures; by default those of :func:`default_drawings`.
    plot : callable, optional
        ``plot(table, path)`` draws one further figure into a file.
    labels : Labels
        Words for settings and values, and the order of methods.
    value : callable
        From the table to the expression that is compared; by default the score.
    refine : callable
        From the rows that count to the same rows with other units or settings.
    score_words : callable
        From the rows that count to a description of their value.
    """

    study: Study
    sections: Callable[[pl.DataFrame], Sequence[Section]] = lambda table: ()
    comparison: Callable[[pl.DataFrame], Sequence[ReferenceTable]] = lambda rows: ()
    drawings: Callable[[pl.DataFrame], Sequence[Drawing]] | None = None
    plot: Callable[[pl.DataFrame, Path], None] | None = None
    labels: Labels = field(default_factory=Labels)
    value: Value = score_value
    refine: Callable[[pl.DataFrame], pl.DataFrame] = lambda rows: rows
    score_words: Callable[[pl.DataFrame], str] = lambda rows: "as the study defines it"

    def rows(self, table: pl.DataFrame) -> pl.DataFrame:
        """The rows of a table that count, see :mod:`admiss.study.report.rows`."""
        return self.refine(scored_rows(table, self.study, self.value))

    def figures(self, rows: pl.DataFrame) -> list[Drawing]:
        """The figures of the rows that count."""
        if not rows.height:
            return []
        return list(self.drawings(rows) if self.drawings else default_drawings(rows, self.study.settings, self.labels))


Catalogue = Mapping[str, Presentation]


def default_drawings(rows: pl.DataFrame, settings: Sequence[str], labels: Labels) -> list[Drawing]:
    """The value against every numeric setting, wins against the reference method if there is one, and seconds."""
    methods = labels.ordered(rows["method"].to_list())
    drawn = [
        value_curves(rows, methods[: len(LINE_STYLES)], x, ("kind",), f"value-by-{x.replace('_', '-')}",
                     f"Score against {labels.word(x)}", labels)
        for x in settings
        if x in rows.columns and rows[x].dtype.is_numeric()
    ]  # fmt: skip
    drawn += [win_drawing(rows, methods, ("kind",), "wins", labels), time_drawing(rows, labels)]
    return [drawing for drawing in drawn if drawing is not None]
