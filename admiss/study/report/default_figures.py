"""The figures of a study that binds none: differences to the reference, scores, wins, and seconds."""

from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from admiss.study.comparisons import paired_differences
from admiss.study.plan import Plan
from admiss.study.report.by_setting import Quantity, draw_quantity
from admiss.study.report.curves import COMMON, comparable
from admiss.study.report.dots import time_drawing, win_drawing
from admiss.study.report.drawing import Drawing
from admiss.study.report.labels import Labels
from admiss.study.report.rows import filter_names
from admiss.study.sections import file_name

# Panels of wins.
MOST_PANELS = 4


def default_drawings(rows: pl.DataFrame, study: Plan, labels: Labels) -> list[Drawing]:
    """Paired differences to the reference by setting, scores by setting, wins, and seconds."""
    inside = labels.inside(rows)
    settings, methods = filter_names(inside, study), labels.ordered(inside["method"].to_list())
    drawn = [main_drawing(rows, study, labels)]
    if len(methods) > 1:
        drawn.append(_scores(inside, labels.word(study.metrics[0]), methods, settings, labels))
    few = [name for name in settings if inside[name].n_unique() <= MOST_PANELS][:1]
    if not few:
        inside = inside.with_columns(pl.lit("all instances").alias("all"))
    named = replace(labels, reference=labels.reference_among(methods))
    drawn += [win_drawing(inside, methods, few or ["all"], "wins", named), time_drawing(rows, labels)]
    return [drawing for drawing in drawn if drawing is not None]


def main_drawing(rows: pl.DataFrame, study: Plan, labels: Labels, metric: str = "") -> Drawing | None:
    """Paired differences to the reference by setting; the scores if there is one method only.

    ``metric`` is a further one, of which the rows have the value.
    """
    rows, word = labels.inside(rows), labels.word(metric or study.metrics[0])
    methods, settings = labels.ordered(rows["method"].to_list()), filter_names(rows, study)
    if len(methods) == 1:
        return _scores(rows, word, methods, settings, labels, metric)
    reference = labels.reference_among(methods)
    caption = f"Mean difference in {word} to {reference} on the same instance; above 0 is better."
    if reference != labels.reference:
        caption += f" The study names no reference: {reference} is its first method."
    quantity = Quantity(
        "difference",
        f"differences{_suffix(metric)}",
        f"Difference in {word} to {reference}",
        f"{word} minus that of {reference}",
        caption,
        baseline=reference,
        metric=metric,
    )
    return draw_quantity(paired_differences(rows, reference), quantity, methods, settings, labels)


def _scores(
    rows: pl.DataFrame, word: str, methods: Sequence[str], settings: Sequence[str], labels: Labels, metric: str = ""
) -> Drawing | None:
    common, _, text = comparable(rows, methods)
    quantity = Quantity(
        "value", f"scores{_suffix(metric)}", f"Mean {word}", f"mean {word}", f"{COMMON}: {text}.", metric=metric
    )
    return draw_quantity(common, quantity, methods, settings, labels) if common.height else None


def _suffix(metric: str) -> str:
    return f"-{file_name(metric)}" if metric else ""
