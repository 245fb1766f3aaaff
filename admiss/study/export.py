"""The table in a file that can be read without this package, with what made it.

In a Parquet file the key-value metadata has the study, the commands, versions, machines and digests of the sources, all
as JSON text; beside a CSV file, which has no place for them, they are in a JSON file.
"""

import io
import json
from collections import Counter
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import polars as pl

from admiss.atomic_write import write_atomically
from admiss.study.errors import EngineError
from admiss.study.run import grid_keys
from admiss.study.store import Store
from admiss.study.study import Study
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
    """What made a store: commands, versions, machines, digests of the sources with their numbers of cells."""
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
    """By name; several where runs had different ones."""
    found: dict[str, dict[str, None]] = {}
    for run in runs:
        for name, number in run["versions"].items():
            found.setdefault(name, {})[number] = None
    return {name: " and ".join(numbers) for name, numbers in found.items()}


def _parquet(table: pl.DataFrame, facts: dict[str, Any]) -> bytes:
    """By pyarrow: polars writes metadata in recent versions only."""
    try:
        pq = import_module("pyarrow.parquet")
    except ImportError:
        raise EngineError("A Parquet file needs pyarrow: pip install pyarrow, or export to .csv.") from None
    arrow = table.to_arrow()
    # Readers expect what the file already says about itself, under keys of its own.
    metadata = {**(arrow.schema.metadata or {}), **{f"admiss.{name}": json.dumps(fact) for name, fact in facts.items()}}
    content = io.BytesIO()
    pq.write_table(arrow.replace_schema_metadata(metadata), content)
    return content.getvalue()
