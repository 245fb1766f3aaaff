r"""Results of a study to be kept: its table as a file, and a folder of tables and figures for print.

A table is readable without this package. The key-value metadata of a Parquet file hold the study, commands, versions,
machines and digests of the dependencies as JSON text; those of a CSV file are in a JSON file next to it. The files of a
folder are made in memory before any is written: a figure that cannot be drawn leaves no part of them. A folder may hold
other files, which are left alone. The same table gives the same bytes, in any order of its rows.

Spreadsheets run cells that begin with ``=``, ``+``, ``-`` or ``@`` (also in their wide forms), even after spaces, tabs,
line ends and quotes. Such a text gets an apostrophe in front, unless it is a number; numbers stay as they are. A reader
who wants the text itself removes the first apostrophe of cells that match ``^'([\s'"]*[=+\-@]|[\t\r\n])``.
"""

import csv
import io
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from admiss.atomic_write import EngineError, NamedFile, check_outputs, write_atomically
from admiss.extras import optional_import
from admiss.study.plan import Plan
from admiss.study.report.drawing import Drawing, figure_files
from admiss.study.report.presentation import Presentation
from admiss.study.report.verdicts import COMPARISON_HEADER, MEANS_HEADER, comparison_numbers, mean_numbers
from admiss.study.run import run_grid, study_files
from admiss.study.sections import ABSENT, Section, markdown
from admiss.study.stale import stale_cells
from admiss.study.store import Store
from admiss.study.table import read_table
from admiss.tables.csv_file import FORMULA, NUMBER, escape_formula

MEANS = "Means of every metric over all instances and by setting, with 95 % intervals over units."
COMPARISONS = (
    "Paired differences to the reference with 95 % intervals, p values adjusted by Holm's method, and verdicts."
)


def write_results(
    table: pl.DataFrame,
    presentation: Presentation,
    folder: Path,
    command: str,
    facts: Mapping[str, str] | None = None,
    inputs: Sequence[NamedFile] = (),
) -> list[Path]:
    """Write the tables and figures of a study and a README into a folder.

    Parameters
    ----------
    table : DataFrame
    presentation : Presentation
    folder : Path
        Created if it does not exist; other files in it are left alone.
    command : str
        The commands that made the table, one per line.
    facts : dict, optional
        Further lines of the README, such as versions.
    inputs : sequence of (name, Path)
        Files that must not be overwritten.

    Returns
    -------
    list of Path
        The files written.
    """
    study, rows = presentation.study, presentation.rows(table)
    sections = [section for section in presentation.sections(table) if section.rows]
    drawings = presentation.figures(rows) + presentation.further_figures(table, rows)
    if rows.height:
        means = mean_numbers(rows, study, presentation.labels)
        sections.append(Section("means", MEANS, MEANS_HEADER, _precise(means)))
    if rows.height and presentation.compared:
        compared = comparison_numbers(rows, study, presentation.labels)
        sections.append(Section("comparisons", COMPARISONS, COMPARISON_HEADER, _precise(compared)))
    files = {f"{section.name}.csv": _csv(section) for section in sections}
    for drawing in drawings:
        files |= figure_files(drawing)
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
        writer.writerow(
            ["" if cell == ABSENT else escape_formula(cell) if isinstance(cell, str) else cell for cell in row]
        )
    return out.getvalue().encode()


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
        lines += ["", "An empty cell was not measured.", ""]
        lines += markdown(["file", "what"], [[f"`{section.name}.csv`", section.text] for section in sections])
    if drawings:
        lines += ["", "Figures as SVG, PDF and PNG, and in one column as SVG and PDF.", ""]
        shown = [[f"`{drawing.name}`", f"{drawing.title}. {drawing.caption}"] for drawing in drawings]
        lines += markdown(["figure", "what"], shown)
    lines += [line for section in sections if section.conclusion for line in ("", section.conclusion)]
    return "\n".join(lines) + "\n"


def write_table(store: Store, study: Plan, path: Path) -> int:
    """Write the table of a store; returns the number of rows."""
    if path.suffix not in (".parquet", ".csv"):
        raise EngineError(f"{path} must end in .parquet or .csv.")
    facts_path = path.with_name(f"{path.name}.json")
    check_outputs([("FILE", path), ("FILE", facts_path)], study_files(store, study))
    table = read_table(store, study)
    facts = provenance(store, study)
    try:
        if path.suffix == ".csv":
            write_atomically(path, escape_formulas(table).write_csv().encode())
            write_atomically(facts_path, json.dumps(facts, indent=1).encode())
        else:
            write_atomically(path, _parquet(table, facts))
    except OSError as error:
        raise EngineError(f"The table cannot be written to {path} ({error.strerror}): name another file.") from error
    return table.height


def provenance(store: Store, study: Plan) -> dict[str, Any]:
    """Commands, versions, machines, digests of the dependencies with their numbers of cells, and numbers of cells."""
    grid, runs = run_grid(store, study), store.runs()
    keys = {cell.key for cell in grid}
    cells = [row for row in store.rows() if row["key"] in keys]
    done = sum(row["status"] == "done" for row in cells)
    return {
        "study": study.name,
        "scale": ", ".join(store.scales()),
        "command": list(dict.fromkeys(run["command"] for run in runs)),
        "versions": _versions(runs),
        "machine": "; ".join(sorted({row["machine"] for row in cells})),
        "digests": Counter(row["digest"] for row in cells).most_common(),
        "done": done,
        "failed": len(cells) - done,
        "pending": len(keys) - len(cells),
        "stale": len(stale_cells(grid, {row["key"]: row for row in cells}, store.dependencies())),
    }


def _versions(runs: Sequence[dict[str, Any]]) -> dict[str, str]:
    """Versions by name; several if runs had different ones."""
    found: dict[str, dict[str, None]] = {}
    for run in runs:
        for name, number in run["versions"].items():
            found.setdefault(name, {})[number] = None
    return {name: " and ".join(numbers) for name, numbers in found.items()}


def _parquet(table: pl.DataFrame, facts: dict[str, Any]) -> bytes:
    """Encode by pyarrow: only recent versions of polars write metadata."""
    with optional_import("A Parquet file", "study"):
        import pyarrow.parquet as pq
    arrow = table.to_arrow()
    # Readers rely on the metadata that the schema already has; ours have keys of their own.
    metadata = {**(arrow.schema.metadata or {}), **{f"admiss.{name}": json.dumps(fact) for name, fact in facts.items()}}
    content = io.BytesIO()
    pq.write_table(arrow.replace_schema_metadata(metadata), content)
    return content.getvalue()


def escape_formulas(table: pl.DataFrame) -> pl.DataFrame:
    """The table with text and names of columns for a CSV file."""
    texts = pl.col(pl.String)
    risky = texts.str.contains(FORMULA) & ~texts.str.contains(NUMBER)
    return table.with_columns(pl.when(risky).then("'" + texts).otherwise(texts).name.keep()).rename(escape_formula)
