"""Figure of the study of shifts: R2 by estimator and case, plain and trained on further deletions."""

from functools import partial
from typing import Any

import polars as pl

from admiss.drawing import BLUE, GREY, ORANGE
from admiss.report.figures import ONE_COLUMN, TWO_COLUMNS, Drawing, legend, method_axis, panels
from admiss.study.report.labels import Labels
from experiments.paper.labels import R2
from experiments.studies.gains import estimated, mean
from experiments.studies.shift.gains import GENERATED, WORDS, gain, scores
from experiments.studies.shift.grid import CASES, STUDY, method_name
from experiments.studies.shift.tables import AUGMENTABLE

LABELS = Labels(
    words={**WORDS, "kind": "rows", "ShiftDraw": "generated", "ShiftSet": "real", "n": "training rows n",
           "dataset": "data set", "score": R2},
    methods=tuple(method_name(name, augmented) for name in AUGMENTABLE for augmented in (False, True)),
    reference=STUDY.reference,
)  # fmt: skip
KINDS = (("plain", BLUE, "o"), ("augmented", ORANGE, "s"))


def shift_drawings(rows: pl.DataFrame) -> list[Drawing]:
    """Draw R2 on generated data."""
    numbers: list[list[Any]] = []
    for case in CASES:
        for name in AUGMENTABLE:
            found = estimated(gain(rows, GENERATED, case, name))
            if found is not None:
                both = [mean(scores(rows, GENERATED, case, method_name(name, each))) for each in (False, True)]
                numbers.append([WORDS[case], name, *both, found.mean, found.low, found.high, found.units])
    if not numbers:
        return []
    title = "R2 under another law of missingness, generated data"
    caption = (
        "Trained under the first law and used under the second. Circles: trained on the rows as they are; squares: "
        "trained on further deletions as well. Means over draws; the last two panels have no shift."
    )
    header = ["case", "estimator", "R2", "augmented", "gain", "low", "high", "draws"]
    wide, narrow = _figure(numbers, TWO_COLUMNS, 4), partial(_figure, numbers, ONE_COLUMN, 1)
    return [Drawing("shifts", title, caption, wide, header, numbers, narrow)]


def _figure(numbers: list[list[Any]], width: float, columns: int) -> Any:
    cases = list(dict.fromkeys(row[0] for row in numbers))
    names = [name for name in AUGMENTABLE if any(row[1] == name for row in numbers)]
    figure, axes = panels(len(cases), height=2.2, width=width, columns=min(columns, len(cases)), sharey=True)
    for ax, case in zip(axes, cases, strict=True):
        for _, name, plain, augmented, *_ in (row for row in numbers if row[0] == case):
            height = names.index(name)
            ax.plot([plain, augmented], [height, height], color=GREY, linewidth=1)
            for (words, colour, marker), value in zip(KINDS, (plain, augmented), strict=True):
                ax.plot([value], [height], marker, color=colour, markersize=3.5, label=words)
        ax.set_title(case.replace(", ", ",\n"))
        ax.set_xlabel("R2")
        method_axis(ax, names)
    legend(figure, axes)
    return figure
