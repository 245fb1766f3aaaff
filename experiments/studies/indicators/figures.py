"""Figures of the gain of indicators by imputer and learner, with intervals over units."""

from collections.abc import Sequence
from functools import partial
from itertools import product
from typing import Any

import polars as pl

from admiss.drawing import BLUE, GREY, ORANGE
from admiss.report.figures import ONE_COLUMN, TWO_COLUMNS, Drawing, legend, method_axis, panels
from admiss.study.report.labels import Labels
from experiments.paper.labels import R2_OR_AUC
from experiments.studies.gains import estimated
from experiments.studies.indicators.gains import (
    CENSORING,
    LINEAR,
    MCAR,
    METHODS,
    REAL,
    TARGETS,
    Mechanism,
    indicator_gain,
    mechanism_words,
)
from experiments.studies.indicators.grid import SIGNALS, SIZES, STUDY
from experiments.studies.indicators.methods import IMPUTERS, LEARNERS

STYLES = ((BLUE, "o"), (ORANGE, "s"))
SHOWN = (REAL, LINEAR, *(f"generated {signal}, n = {SIZES[-1]}" for signal in SIGNALS))
TITLES = {REAL: "real targets", LINEAR: "linear targets on\nreal features"}
PAIRS = list(product(LEARNERS, IMPUTERS))
LABELS = Labels(
    words={"mcar": "MCAR", "nn": "NN", "kind": "features", "CompleteSet": "real features",
           "CompleteDraw": "generated features", "real": "real target", "missing_fraction": "missing share",
           "n": "training rows n", "dataset": "data set", "score": R2_OR_AUC},
    methods=tuple(METHODS),
    reference=STUDY.reference,
    logarithmic=("n",),
)  # fmt: skip


def indicator_drawings(rows: pl.DataFrame) -> list[Drawing]:
    """Draw gains under MCAR, and under censoring."""
    drawn = [_drawing(rows, "mcar", "MCAR", MCAR), _drawing(rows, "censoring", "censoring", [CENSORING])]
    return [drawing for drawing in drawn if drawing is not None]


def _drawing(rows: pl.DataFrame, name: str, words: str, mechanisms: Sequence[Mechanism]) -> Drawing | None:
    numbers: list[list[Any]] = []
    for target, (learner, imputer), mechanism in product(TARGETS, PAIRS, mechanisms):
        each = estimated(indicator_gain(rows, target, [mechanism], [imputer], [learner]))
        if each is not None:
            case = [target, learner, imputer, mechanism_words(mechanism)]
            numbers.append([*case, each.mean, each.low, each.high, each.units])
    shown = [target for target in SHOWN if any(row[0] == target for row in numbers)]
    if not shown:
        return None
    title = f"Gain of indicators under {words}, by learner and imputer"
    caption = (
        "Score with indicators minus score without them, means and 95 % intervals over sets (real features) or draws "
        "(generated). Right of the line, indicators help."
    )
    header = ["target", "learner", "imputer", "mechanism", "gain", "low", "high", "units"]
    wide, narrow = _figure(numbers, shown, TWO_COLUMNS, 4), partial(_figure, numbers, shown, ONE_COLUMN, 1)
    return Drawing(f"gains-under-{name}", title, caption, wide, header, numbers, narrow)


def _figure(numbers: Sequence[Sequence[Any]], shown: Sequence[str], width: float, columns: int) -> Any:
    figure, axes = panels(len(shown), height=2.6, width=width, columns=min(columns, len(shown)), sharey=True)
    mechanisms = list(dict.fromkeys(row[3] for row in numbers))
    for ax, target in zip(axes, shown, strict=True):
        for _, learner, imputer, words, mean, low, high, _ in (row for row in numbers if row[0] == target):
            index = mechanisms.index(words)
            colour, marker = STYLES[index]
            height = PAIRS.index((learner, imputer)) + 0.3 * (index - (len(mechanisms) - 1) / 2)
            ax.plot([mean], [height], marker, color=colour, markersize=3.5, label=words)
            if low is not None:
                ax.plot([low, high], [height, height], color=colour, linewidth=1)
        ax.axvline(0, color=GREY, linewidth=1, linestyle="--")
        ax.set_title(TITLES.get(target, target.replace(", ", ",\n").replace("nn", "NN")))
        ax.set_xlabel("gain")
        method_axis(ax, [f"{learner} after {imputer}" for learner, imputer in PAIRS])
    legend(figure, axes)
    return figure
