"""Plain means of a study beside the numbers that the paper prints, with their differences.

The paper averages over its whole grid; where only some of it was run, plain means are over other instances than the
paper's, and the interpolated averages of :mod:`experiments.compare` are the ones to compare.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from experiments.compare.paper_numbers import real_design_accuracy, synthetic_r2
from experiments.report.rows import AUTHORS, OUTSIDE, method_order, words
from experiments.study import Study

PLAIN = "Plain means of the cells done here, the paper's printed number, and the difference"


@dataclass(frozen=True)
class PaperTable:
    """Rows are methods; each setting has three columns: here, paper, difference (None where there is no number)."""

    title: str
    text: str
    settings: list[str]
    rows: list[tuple[str, list[float | None]]]


def paper_tables(rows: pl.DataFrame, study: Study) -> list[PaperTable]:
    """The tables of the paper that belong to a study."""
    if not rows.height:
        return []
    if study.name == "synthetic":
        printed: dict[tuple[str, ...], float] = {key: number.value for key, number in synthetic_r2().items()}
        places = [(mechanism, signal) for mechanism in ("mcar", "censoring") for signal in ("linear", "nn")]
        text = f"{PLAIN}, on the authors' instances. The paper averages its whole grid of n and missing fractions."
        return _table(
            rows.filter(pl.col("kind") == AUTHORS), ("mechanism", "signal"), places, printed, "Main table", text
        )
    if study.name == "real-design":
        printed = {key: number.value for key, number in real_design_accuracy().items()}
        inside = rows.filter(~pl.col("signal").is_in(OUTSIDE["signal"]).fill_null(False))
        designs = [(design,) for design in ("mar", "nmar", "am", "real")]
        text = f"{PLAIN}: synthetic targets are averaged over data sets, linear and NN signals, and k_missing."
        return _table(inside, ("design",), designs, printed, "By design", text)
    return []


def _table(
    rows: pl.DataFrame, across: tuple[str, ...], places: list[Any], printed: Mapping[Any, float], title: str, text: str
) -> list[PaperTable]:
    groups = rows.group_by("method", *across).agg(pl.col("value").mean()).iter_rows()
    means = {tuple(group[:-1]): group[-1] for group in groups}
    if not means:
        return []
    lines = []
    for method in method_order([key[0] for key in means]):
        cells: list[float | None] = []
        for place in places:
            here, paper = means.get((method, *place)), printed.get((method, *place))
            cells += [here, paper, here - paper if here is not None and paper is not None else None]
        lines.append((method, cells))
    return [PaperTable(title, text, [", ".join(map(words, place)) for place in places], lines)]
