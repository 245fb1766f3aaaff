"""Small files with a target and columns to read."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from admiss.tables import TableFile, read_table

ROWS = 60


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def write(here) -> Callable[..., str]:
    """Write columns beside a target y; a tuple of values is repeated."""

    def writer(columns: dict[str, Any], **options: Any) -> str:
        full = {
            name: [v[i % len(v)] for i in range(ROWS)] if isinstance(v, tuple) else v for name, v in columns.items()
        }
        frame = pd.DataFrame({"y": np.linspace(0.5, 9.25, ROWS), **full})
        frame.to_csv("t.csv", index=False, **options)
        return "t.csv"

    return writer


@pytest.fixture
def read(write) -> Callable[..., TableFile]:
    """Write columns and read them back."""
    return lambda columns, **options: read_table(write(columns), "y", **options)


@pytest.fixture
def note() -> Callable[[TableFile, str], str]:
    """The only note with some words."""

    def only(table: TableFile, words: str) -> str:
        found = [text for text in table.notes if words in text]
        assert len(found) == 1, table.notes
        assert "\n" not in found[0]
        assert found[0].endswith(".")
        return found[0]

    return only
