"""Figure of the study of intervals: coverage over all rows and of the feature with the lowest, by method and case."""

from functools import partial
from typing import Any

import polars as pl

from admiss.drawing import BLUE, GREY, ORANGE
from admiss.report.figures import ONE_COLUMN, TWO_COLUMNS, Drawing, legend, method_axis, panels
from admiss.study.report.labels import Labels
from experiments.studies.intervals.grid import STUDY
from experiments.studies.intervals.methods import LEVEL, METHODS
from experiments.studies.intervals.tables import MECHANISMS, by_case, case_words

LABELS = Labels(
    words={**MECHANISMS, "kind": "rows", "ConformalDraw": "generated", "ConformalSet": "real",
           "n": "calibration rows n", "dataset": "data set", "score": "coverage"},
    methods=tuple(METHODS),
    reference=STUDY.reference,
    logarithmic=("n",),
)  # fmt: skip
KINDS = (("all rows", BLUE, "o"), ("lowest feature", ORANGE, "s"))


def interval_drawings(rows: pl.DataFrame) -> list[Drawing]:
    """Draw the coverage at the largest number of calibration rows."""
    found = by_case(rows)
    if not found:
        return []
    n = max(key[2] for key in found)
    numbers: list[list[Any]] = [
        [case_words(mechanism, shift), method, each.coverage, each.lowest_feature[1] if each.lowest_feature else None]
        for (mechanism, shift, size, method), each in found.items()
        if size == n
    ]
    title = f"Coverage at level 90 % with {n:,} calibration rows"
    caption = (
        "Circles: over all test rows; squares: given that a feature is missing or observed, the lowest coverage of a "
        "feature (pooled over draws). * The guarantee of (1, m) does not include the shift."
    )
    header = ["case", "method", "coverage", "lowest feature"]
    wide, narrow = _figure(numbers, TWO_COLUMNS, 4), partial(_figure, numbers, ONE_COLUMN, 1)
    return [Drawing("coverage", title, caption, wide, header, numbers, narrow)]


def _figure(numbers: list[list[Any]], width: float, columns: int) -> Any:
    cases, methods = (list(dict.fromkeys(row[k] for row in numbers)) for k in (0, 1))
    figure, axes = panels(len(cases), height=2.0, width=width, columns=min(columns, len(cases)), sharey=True)
    for ax, case in zip(axes, cases, strict=True):
        for _, method, *values in (row for row in numbers if row[0] == case):
            for (words, colour, marker), value in zip(KINDS, values, strict=True):
                if value is not None:
                    ax.plot([value], [methods.index(method)], marker, color=colour, label=words)
        ax.axvline(LEVEL, color=GREY, linewidth=1, linestyle="--")
        ax.set_title(case.replace(", ", ",\n"))
        ax.set_xlabel("coverage")
        method_axis(ax, methods)
    legend(figure, axes)
    return figure
