r"""The table of a study as a file, readable without this package.

The key-value metadata of a Parquet file hold the study, commands, versions, machines and digests of the dependencies as
JSON text; those of a CSV file are in a JSON file next to it.

Spreadsheets run cells that begin with ``=``, ``+``, ``-`` or ``@`` (also in their wide forms), even after spaces, tabs,
line ends and quotes. Such a text gets an apostrophe in front, unless it is a number; numbers stay as they are. A reader
who wants the text itself removes the first apostrophe of cells that match ``^'([\s'"]*[=+\-@]|[\t\r\n])``.
"""

import io
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from admiss.atomic_write import check_outputs, write_atomically
from admiss.extras import optional_import
from admiss.study.plan import EngineError, Plan
from admiss.study.run import run_grid, study_files
from admiss.study.stale import stale_cells
from admiss.study.store import Store
from admiss.study.table import read_table
from admiss.tables.csv_file import FORMULA, NUMBER, escape_formula


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
        "stale": len(stale_cells(grid, store)),
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
