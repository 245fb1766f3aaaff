"""The averages of a study beside the paper's, with their differences: what the page opens with.

On generated data they are the interpolated averages and the authors' over n >= 40
(:mod:`experiments.paper.synthetic.tables`); on real designs plain means over instances beside the printed ones.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from admiss.study.report.rows import OUTSIDE, method_order, words
from admiss.study.study import Study
from experiments.paper.interpolation import mean_and_error
from experiments.paper.numbers import real_design_accuracy, synthetic_references
from experiments.paper.synthetic.tables import LEVELS, MAIN, SETTINGS, grid_means

GRID = (
    "R2 averaged over the paper's grid (n = 40, 60, .., 1000; missing fractions .1 to .8), interpolated from the cells "
    "run, beside the authors' average over the same grid without runs that exploded. An average is empty where the "
    "authors' runs exploded, or where the cells run do not give it."
)
NO_GRID = (
    "The cells run do not reach the ends of the paper's grid with all signals: there is no average to compare yet."
)
DESIGNS = (
    "Plain means over the instances done here (linear and NN signals; R2, or 2 AUC - 1 for classes), the paper's "
    "printed number, and the difference. The paper has 10 splits and more shares of missing features."
)


@dataclass(frozen=True)
class PaperTable:
    """Rows are methods; each setting has three columns: here, paper, difference (None where there is no number)."""

    title: str
    text: str
    settings: list[str]
    rows: list[tuple[str, list[float | None]]]


def paper_tables(rows: pl.DataFrame, study: Study) -> list[PaperTable]:
    """The tables of the paper that belong to a study; one without rows only says why."""
    if not rows.height:
        return []
    if study.name == "synthetic":
        found = {
            (method, *place): grid_means(rows, place, [method]) for method in (*LEVELS, *MAIN) for place in SETTINGS
        }
        means = {key: mean_and_error(each.by_unit[key[0]])[0] for key, each in found.items() if each}
        theirs = {key: each.compared for key, each in synthetic_references().items()}
        return [_table(means, SETTINGS, theirs, "Main table", GRID if means else NO_GRID)]
    if study.name == "real-design":
        printed = {key: number.value for key, number in real_design_accuracy().items()}
        inside = rows.filter(~pl.col("signal").is_in(OUTSIDE["signal"]).fill_null(False))
        groups = inside.group_by("method", "design").agg(pl.col("value").mean()).iter_rows()
        plain = {(method, design): mean for method, design, mean in groups if (method, design) in printed}
        designs = [(design,) for design in ("mar", "nmar", "am", "real")]
        return [_table(plain, designs, printed, "By design", DESIGNS)] if plain else []
    return []


def _table(
    means: Mapping[Any, float],
    places: Sequence[tuple[str, ...]],
    theirs: Mapping[Any, float | None],
    title: str,
    text: str,
) -> PaperTable:
    lines = []
    for method in method_order([key[0] for key in means]):
        cells: list[float | None] = []
        for place in places:
            here, paper = means.get((method, *place)), theirs.get((method, *place))
            cells += [here, paper, here - paper if here is not None and paper is not None else None]
        lines.append((method, cells))
    return PaperTable(title, text, [", ".join(map(words, place)) for place in places], lines)
