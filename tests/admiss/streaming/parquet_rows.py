"""Rows of tests, in memory and as Parquet files."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq


def make_rows(n: int = 2000, d: int = 4, seed: int = 0) -> tuple[Any, Any]:
    """Features with offsets of 1e6 and missing values, and a target."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-1, 2, d) + 1e6 * (np.arange(d) == 1)
    M = rng.random((n, d)) < 0.3
    y = (X - [0, 1e6, 0, 0][:d]) @ rng.normal(size=d) + 3 * M[:, 0] + rng.normal(size=n)
    return np.where(M, np.nan, X), y


def write_rows(folder: Path, X: Any, y: Any, files: int, group: int = 70) -> Path:
    """The rows in files, with row groups of some rows, and their numbers as the column ``id``."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, rows in enumerate(np.array_split(np.arange(len(y)), files)):
        columns = {f"x{j}": pa.array(X[rows, j], mask=np.isnan(X[rows, j])) for j in range(X.shape[1])}
        table = pa.table({**columns, "y": y[rows], "id": rows})
        pq.write_table(table, folder / f"{number:04}.parquet", row_group_size=group)
    return folder
