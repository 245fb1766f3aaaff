"""The comparison with the paper as text, and as files to keep.

``compare_paper`` is what ``python -m experiments compare-paper STUDY`` prints. ``write_results`` writes the same
tables as CSV, one file a table, with a README that says how they were made. The same table gives the same bytes.
"""

import csv
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import polars as pl

from admiss.study.study import Study
from experiments.bench.records import markdown
from experiments.paper.claims import Judged, claims_of, judge
from experiments.paper.claims_table import claims_section, count_words
from experiments.tables import ABSENT, Section, comparison_sections

# Scores are also judged without anything below: one failed fit on one set can outweigh all others.
LOWEST = -1.0


def compare_paper(table: pl.DataFrame, study: Study) -> str:
    """All tables and claims of a study as markdown."""
    sections, judged = all_sections(table, study)
    lines = [f"# {study.title}", ""]
    for section in sections:
        lines += [f"## {section.title}", "", section.text, ""]
        lines += [*markdown(section.header, section.rows), ""] if section.rows else []
    if judged:
        lines += [count_words(judged), ""]
    if not sections:
        lines += ["The paper has no tables to compare this study with.", ""]
    return "\n".join(lines)


def all_sections(table: pl.DataFrame, study: Study) -> tuple[list[Section], list[Judged]]:
    """The tables of a study, that of the claims last, and the claims."""
    sections, claims = comparison_sections(table, study), claims_of(study.name)
    if not claims:
        return sections, []
    judged, clipped = judge(claims, table), None
    if study.name == "real-design":
        clipped = judge(claims, table.with_columns(pl.col("score").clip(LOWEST)))
    return [*sections, claims_section(judged, clipped)], judged


def write_results(
    table: pl.DataFrame, study: Study, folder: Path, command: str, facts: Mapping[str, str] | None = None
) -> list[Path]:
    """Write the tables, ``claims.csv`` and a README into a folder.

    Parameters
    ----------
    table : DataFrame
    study : Study
    folder : Path
        Made where it is not there; other files in it are left alone.
    command : str
        What made the table.
    facts : dict, optional
        What else the README says: versions, what was run.

    Returns
    -------
    list of Path
        The files written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    sections, judged = all_sections(table, study)
    written = [_write_csv(section, folder / f"{section.name}.csv") for section in sections]
    readme = folder / "README.md"
    readme.write_text(_readme(table, study, sections, judged, command, facts or {}), encoding="utf-8")
    return [*written, readme]


def _write_csv(section: Section, path: Path) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(section.header)
        writer.writerows([["" if cell == ABSENT else cell for cell in row] for row in section.rows])
    return path


def _readme(
    table: pl.DataFrame,
    study: Study,
    sections: list[Section],
    judged: list[Judged],
    command: str,
    facts: Mapping[str, str],
) -> str:
    cells = table.filter(pl.col("key").is_not_null())  # choices among methods are no cells
    status = dict(sorted(Counter(cells["status"].to_list()).items()))
    lines = [f"# {study.title}", "", "Made by", "", *(f"    {line}" for line in command.splitlines()), ""]
    lines += [f"* cells: {', '.join(f'{count} {name}' for name, count in status.items()) or 'none'}"]
    lines += [
        f"* {column}: {', '.join(sorted(map(str, cells[column].drop_nulls().unique().to_list()))) or ABSENT}"
        for column in ("version", "digest", "machine")
    ]
    lines += [f"* {name}: {fact}" for name, fact in facts.items()]
    lines += ["", "An empty cell was not measured.", ""]
    lines += markdown(["file", "what"], [[f"`{section.name}.csv`", section.text] for section in sections])
    if judged:
        lines += ["", count_words(judged)]
    return "\n".join(lines) + "\n"
