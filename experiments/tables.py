"""The tables that stand beside the paper's, for any study.

A section is a table of text: numbers with fixed digits, and ``-`` where something was not measured. Studies that have
tables of their own give them as a function ``sections(table)`` of their module.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec

import polars as pl

from admiss.study.study import Study

ABSENT = "-"
NEARLY_ALL = 0.99


@dataclass(frozen=True)
class Section:
    """A table with its title and what to know when reading it."""

    title: str
    text: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]

    @property
    def name(self) -> str:
        """The title as the name of a file.

        Examples
        --------
        >>> Section("R2 by n", "", [], []).name
        'r2-by-n'
        """
        return re.sub(r"[^a-z0-9]+", "-", self.title.lower()).strip("-")


def comparison_sections(table: pl.DataFrame, study: Study) -> list[Section]:
    """The tables of a study."""
    from experiments.paper.real_design.tables import real_design_sections
    from experiments.paper.synthetic.tables import synthetic_sections

    if study.name == "synthetic":
        return synthetic_sections(table, study)
    if study.name == "real-design":
        return real_design_sections(table, study)
    module = f"experiments.studies.{study.name.replace('-', '_')}"
    if find_spec(module) is None:
        return []
    sections: list[Section] = getattr(import_module(module), "sections", lambda _: [])(table)
    return sections


def digits(number: float | None, places: int = 3) -> str:
    """A number with fixed digits.

    Examples
    --------
    >>> digits(0.5), digits(None), digits(-0.0001)
    ('0.500', '-', '0.000')
    """
    if number is None:
        return ABSENT
    text = f"{number:.{places}f}"
    return text.lstrip("-") if float(text) == 0 else text


def signed(number: float | None, places: int = 3) -> str:
    """A difference with its sign."""
    text = digits(number, places)
    return text if number is None or number <= 0 or float(text) == 0 else f"+{text}"


def choices_section(table: pl.DataFrame, study: Study, settings: Sequence[str]) -> Section:
    """How often each member was taken in each choice among methods."""
    rows = []
    for best in study.best:
        derived = table.filter(pl.col("method") == best.name, pl.col("status") == "done")
        if "chosen_method" not in table.columns or derived.is_empty():
            rows.append([best.name, *[ABSENT] * len(settings), "0", *[ABSENT] * 2])
            continue
        fields = [column for column in settings if column in table.columns]
        for place in derived.select(fields).unique().sort(fields, nulls_last=True).iter_rows():
            same = [pl.col(column).eq_missing(value) for column, value in zip(fields, place, strict=True)]
            chosen = derived.filter(*same)["chosen_method"].to_list()
            there = dict(zip(fields, place, strict=True))
            words = [str(there[column]) if there.get(column) is not None else ABSENT for column in settings]
            rows += [
                [best.name, *words, str(len(chosen)), member, digits(chosen.count(member) / len(chosen))]
                for member in best.members
            ]
    return Section(
        "Chosen members",
        "The share of instances on which each member had the largest score in cross-validation.",
        ["choice", *settings, "instances", "member", "share"],
        rows,
    )


def moves_section(table: pl.DataFrame) -> list[Section]:
    """How often the joint search left the means where they were, by predictor; none where no moves are stored."""
    if "moves" not in table.columns:
        return []
    searched = table.filter(pl.col("status") == "done", pl.col("key").is_not_null(), pl.col("moves").is_not_null())
    if searched.is_empty():
        return []
    moves = pl.col("moves").cast(pl.Float64)
    found = searched.group_by("method").agg(pl.len(), (moves == 0).mean().alias("none"), moves.median().alias("median"))
    found = found.sort("method")
    rows = [[name, str(count), digits(none), digits(median, 0)] for name, count, none, median in found.iter_rows()]
    still = found.filter(pl.col("none") >= NEARLY_ALL)["method"].to_list()
    text = (
        "The share of cells in which the joint search moved no value from the mean. There the method is mean "
        "imputation followed by its predictor."
    )
    if still:
        text += f" For {' and '.join(still)} that is nearly every cell: read it as mean imputation."
    return [Section("Moves of the joint search", text, ["method", "cells", "moved nothing", "median moves"], rows)]
