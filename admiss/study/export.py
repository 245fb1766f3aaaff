"""Files of a study: its table with provenance, and its sections and figures.

A table is readable without this package. The key-value metadata of a Parquet file hold the study, commands, versions,
machines and digests of the sources as JSON text; those of a CSV file are in a JSON file beside it. Sections are written
as CSV, one file per section, with a README on how they were made. The same table gives the same bytes.
"""

import csv
import io
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from admiss.atomic_write import write_atomically
from admiss.extras import optional_import
from admiss.study.report.presentation import Presentation
from admiss.study.run import grid_keys
from admiss.study.sections import ABSENT, Section, markdown
from admiss.study.store import Store
from admiss.study.study import EngineError, Study
from admiss.study.table import read_table


def write_table(store: Store, study: Study, path: Path) -> int:
    """Write the table of a store; returns the number of rows."""
    if path.suffix not in (".parquet", ".csv"):
        raise EngineError(f"{path} must end in .parquet or .csv.")
    table = read_table(store, study)
    facts = provenance(store, study)
    if path.suffix == ".csv":
        write_atomically(path, table.write_csv().encode())
        write_atomically(path.with_name(f"{path.name}.json"), json.dumps(facts, indent=1).encode())
    else:
        write_atomically(path, _parquet(table, facts))
    return table.height


def provenance(store: Store, study: Study) -> dict[str, Any]:
    """Commands, versions, machines, and digests of the sources with their numbers of cells."""
    keys, runs = grid_keys(store, study), store.runs()
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


def write_results(
    table: pl.DataFrame, presentation: Presentation, folder: Path, command: str, facts: Mapping[str, str] | None = None
) -> list[Path]:
    """Write the sections of a study and a README into a folder.

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

    Returns
    -------
    list of Path
        The files written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    sections = presentation.sections(table)
    written = [_write_csv(section, folder / f"{section.name}.csv") for section in sections]
    readme = folder / "README.md"
    readme.write_text(_readme(table, presentation.study.title, sections, command, facts or {}), encoding="utf-8")
    return [*written, readme]


def _write_csv(section: Section, path: Path) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(section.header)
        writer.writerows([["" if cell == ABSENT else cell for cell in row] for row in section.rows])
    return path


def _readme(
    table: pl.DataFrame, title: str, sections: Sequence[Section], command: str, facts: Mapping[str, str]
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
    lines += [line for section in sections if section.conclusion for line in ("", section.conclusion)]
    return "\n".join(lines) + "\n"


def save_figures(table: pl.DataFrame, presentation: Presentation, folder: Path, form: str = "png") -> list[Path]:
    """Write the figures of a study into a folder as PNG or SVG, and return their paths."""
    with optional_import("A figure", "plots"):
        import matplotlib

    if form not in ("png", "svg"):
        raise ValueError(f"Unknown form {form!r} of figures: choose png or svg.")
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for drawing in presentation.figures(presentation.rows(table)):
        paths.append(folder / f"{drawing.name}.{form}")
        with matplotlib.rc_context({"svg.hashsalt": drawing.name}):
            # no date: the same table gives the same file
            metadata = {"Date": None} if form == "svg" else None
            drawing.figure.savefig(paths[-1], dpi=130, facecolor="white", metadata=metadata)
    if presentation.plot is not None:
        paths.append(folder / f"{presentation.study.name}.{form}")
        presentation.plot(table, paths[-1])
    return paths
