"""Results of a study to be kept: its page, and a folder of tables and figures for print.

The files of a folder are made in memory before any is written: a figure that cannot be drawn leaves no part of them. A
folder may hold other files, which are left alone. The same table gives the same bytes, in any order of its rows.
"""

import csv
import io
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from admiss.atomic_write import EngineError, NamedFile, check_outputs, write_atomically
from admiss.report.figures import Drawing
from admiss.study.export import provenance
from admiss.study.report.comparisons import Compared, compared, group_estimates, leaderboard
from admiss.study.report.page import write_report
from admiss.study.report.presentation import Presentation
from admiss.study.report.sections import Section, markdown
from admiss.study.run import study_files
from admiss.study.store import Store
from admiss.study.table import filter_names, metric_column, read_table
from admiss.tables.csv_file import escape_formula
from admiss.terminal.table import ABSENT

COMPARISON_HEADER = (
    "method", "reference", "metric", "setting", "level", "mean_difference", "low", "high", "wins", "ties", "losses",
    "units", "instances", "p", "p_holm", "verdict",
)  # fmt: skip
MEANS_HEADER = ("metric", "setting", "level", "method", "mean", "low", "high", "units", "cells", "seconds")
GROUPED = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d+)?")
MEANS = "Means of every metric over all instances and by setting, with 95% intervals over units."
COMPARISONS = (
    "Paired differences to the reference with 95% intervals, p values adjusted by Holm's method, and verdicts."
)


def write_results(
    table: pl.DataFrame,
    presentation: Presentation,
    folder: Path,
    command: str,
    facts: Mapping[str, str] | None = None,
    inputs: Sequence[NamedFile] = (),
) -> list[Path]:
    """Write tables, figures and a README into a folder, and return the paths; other files in it are left alone.

    ``command`` are the commands that made the table, one per line, ``facts`` further lines of the README, and
    ``inputs`` files that must not be overwritten.
    """
    study, rows = presentation.study, presentation.rows(table)
    sections = [section for section in presentation.sections(table) if section.rows]
    drawings = presentation.figures(rows) + presentation.further_figures(rows)
    if rows.height:
        found = compared(rows, study, presentation.labels, rivals=presentation.compared)
        sections.append(Section("means", MEANS, MEANS_HEADER, _precise(mean_numbers(found))))
        if presentation.compared:
            sections.append(Section("comparisons", COMPARISONS, COMPARISON_HEADER, _precise(comparison_numbers(found))))
    files = {f"{section.name}.csv": _csv(section) for section in sections}
    files |= {f"{section.name}.tex": latex(section).encode() for section in sections}
    if rows.height:
        board = leaderboard(found)
        header = [name for name in board.header if name]  # without the bars
        lines = [[line.method, line.mean, *line.cells] for line in board.lines]
        files["leaderboard.tex"] = latex(Section("leaderboard", board.sentence, header, lines)).encode()
    for drawing in drawings:
        files |= drawing.files()
    files["README.md"] = _readme(table, study.title, sections, drawings, command, facts or {}).encode()
    check_outputs([("FOLDER", folder / name) for name in files], inputs)
    try:
        for name, content in files.items():
            write_atomically(folder / name, content)
    except OSError as error:
        raise EngineError(
            f"The results cannot be written to {folder} ({error.strerror}): name another folder."
        ) from None
    return [folder / name for name in files]


def _precise(rows: Sequence[Sequence[Any]]) -> list[list[object]]:
    return [
        [f"{cell:.6g}" if isinstance(cell, float) else "" if cell is None else cell for cell in row] for row in rows
    ]


def _csv(section: Section) -> bytes:
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    for row in (section.header, *section.rows):
        writer.writerow([_plain(cell) if isinstance(cell, str) else cell for cell in row])
    return out.getvalue().encode()


def _plain(cell: str) -> str:
    """A text for a program: nothing for what was not measured, and no separators of thousands.

    Examples
    --------
    >>> _plain("-"), _plain("-1,634.5"), _plain("1, 634"), _plain("=1")
    ('', '-1634.5', '1, 634', "'=1")
    """
    if cell == ABSENT:
        return ""
    return cell.replace(",", "") if GROUPED.fullmatch(cell) else escape_formula(cell)


def _readme(
    table: pl.DataFrame,
    title: str,
    sections: Sequence[Section],
    drawings: Sequence[Drawing],
    command: str,
    facts: Mapping[str, str],
) -> str:
    cells = table.filter(pl.col("key").is_not_null())  # choices among methods are not cells
    status = dict(sorted(Counter(cells["status"].to_list()).items()))
    lines = [f"# {title}", "", "Made by", "", *(f"    {line}" for line in command.splitlines()), ""]
    lines += [f"* cells: {', '.join(f'{count} {name}' for name, count in status.items()) or 'none'}"]
    lines += [
        f"* {column}: {', '.join(sorted(map(str, cells[column].drop_nulls().unique().to_list()))) or ABSENT}"
        for column in ("version", "digest", "machine")
    ]
    lines += [f"* {name}: {fact}" for name, fact in facts.items()]
    if sections:
        forms = "Tables as CSV, and as LaTeX (.tex) with booktabs; `leaderboard.tex` is that of the page."
        lines += ["", f"{forms} An empty cell was not measured.", ""]
        lines += markdown(["file", "what"], [[f"`{section.name}.csv`", section.text] for section in sections])
    if drawings:
        lines += ["", "Figures as SVG, PDF and PNG, and in one column as SVG and PDF.", ""]
        shown = [[f"`{drawing.name}`", f"{drawing.title}. {drawing.caption}"] for drawing in drawings]
        lines += markdown(["figure", "what"], shown)
    lines += [line for section in sections if section.conclusion for line in ("", section.conclusion)]
    return "\n".join(lines) + "\n"


def write_page(store: Store, presentation: Presentation, path: Path | None) -> Path:
    """Write the page of a study, by default into the folder of the store, and return its path."""
    study = presentation.study
    path = store.folder / "report.html" if path is None else path
    check_outputs([("--html", path)], study_files(store, study))
    return write_report(read_table(store, study), presentation, path, facts=provenance(store, study))


def write_files(store: Store, presentation: Presentation, folder: Path) -> list[Path]:
    """Write tables and figures to be kept, and return their paths."""
    table, facts = read_table(store, presentation.study), provenance(store, presentation.study)
    words = {"versions": ", ".join(f"{name} {version}" for name, version in facts["versions"].items())}
    inputs = study_files(store, presentation.study)
    return write_results(table, presentation, folder, "\n".join(facts["command"]), words, inputs)


def comparison_numbers(found: Compared) -> list[Sequence[Any]]:
    """Rows of ``COMPARISON_HEADER``."""
    metric = found.study.metrics[0]
    lines: list[Sequence[Any]] = []
    for each in found.comparisons:
        level = "" if each.level is None else each.level
        where = (each.method, found.reference, metric, each.setting, level)
        difference = (each.estimate.mean, each.estimate.low, each.estimate.high)
        signs = (each.wins, each.ties, each.losses, each.estimate.units, each.instances)
        lines.append((*where, *difference, *signs, each.estimate.p, each.adjusted, each.verdict))
    return lines


def mean_numbers(found: Compared) -> list[Sequence[Any]]:
    """Rows of ``MEANS_HEADER``: all metrics, over all instances that count and by each setting."""
    rows, study, lines = found.rows, found.study, list[Sequence[Any]]()
    for metric in study.metrics:
        column = metric_column(rows, study, metric)
        if column is None:
            continue
        known = rows.filter(pl.col(column).is_finite())
        for setting in ("", *filter_names(rows, study)):
            part = known.drop_nulls(setting) if setting else known.with_columns(pl.lit("").alias(setting))
            by = [setting, "method"]
            facts = {(level, method): (cells, seconds) for level, method, cells, seconds in part.group_by(by).agg(
                pl.len().alias("cells"), pl.col("seconds").mean().alias("mean seconds")).iter_rows()}  # fmt: skip
            estimates = group_estimates(part, by, column)
            for level in found.labels.levels(part, setting):
                for method in found.methods:
                    if each := estimates.get((level, method)):
                        numbers = (each.mean, each.low, each.high, each.units)
                        lines.append((metric, setting, level, method, *numbers, *facts[level, method]))
    return lines


# Characters that LaTeX does not take as they are.
SPECIAL = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "²": r"\textsuperscript{2}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        **{letter: f"\\{letter}" for letter in "&%$#_{}"},
    }
)


# The sign of a number, which is longer than a hyphen.
MINUS = re.compile(r"(?<![\w.)])-(?=\d)")


def latex(section: Section) -> str:
    r"""A section as a tabular with the rules of booktabs: the first column is on the left, the others on the right.

    Examples
    --------
    >>> print(latex(Section("Means", "", ["method", "R²"], [["a & b_1", "0.50"]])))
    % Means
    \begin{tabular}{lr}
    \toprule
    method & R\textsuperscript{2} \\
    \midrule
    a \& b\_1 & 0.50 \\
    \bottomrule
    \end{tabular}
    <BLANKLINE>
    """
    lines = [f"% {' '.join(section.title.split())}", rf"\begin{{tabular}}{{l{'r' * (len(section.header) - 1)}}}"]
    lines += [r"\toprule", _line(section.header), r"\midrule", *map(_line, section.rows), r"\bottomrule"]
    return "\n".join([*lines, r"\end{tabular}", ""])


def _line(cells: Sequence[object]) -> str:
    words = [" ".join(str(cell).translate(SPECIAL).split()) for cell in cells]
    return " & ".join(MINUS.sub("$-$", word) for word in words) + r" \\"
