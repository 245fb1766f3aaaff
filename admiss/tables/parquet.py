"""Parquet files, row group by row group.

All footers are read first: a file that is truncated, lacks columns, or has another type in them is named before any
work starts. In folders such as ``year=2024`` the part after the name is a column.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from glob import glob
from os.path import commonpath
from pathlib import Path
from typing import Any

import narwhals.stable.v2 as nw

from admiss.extras import optional_import
from admiss.tables.column import SourceError, is_numeric, require_columns
from admiss.tables.frames import eager
from admiss.tables.parsing import plain_number
from admiss.tables.source import NamedFrames, Place, TableChunk, TableSource, batch_rows
from admiss.terminal.progress import progress

with optional_import("Reading Parquet files", "files"):
    import pyarrow as pa
    import pyarrow.parquet as pq

SUFFIXES = (".parquet", ".pq")
# A hive folder without a value.
HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True)
class ParquetFile:
    """A file with its number and name in the source, its columns from folders, and its status when it was opened."""

    number: int
    path: Path
    name: str
    constants: tuple[tuple[str, str | float | None], ...]
    group_rows: tuple[int, ...]
    kinds: tuple[tuple[str, str], ...]
    status: tuple[int, int]

    def tables(self, group: int, columns: Sequence[str], where: str) -> Iterator[Any]:
        """Read columns of a row group, whose name is ``where``, in batches."""
        constants = dict(self.constants)
        stored = [column for column in columns if column not in constants]
        try:
            if _file_status(self.path) != self.status:
                raise SourceError(f"{where}: the file has changed since the pass started: start again.")
            with pq.ParquetFile(self.path, metadata=_metadata(self.path, self.status)) as file:
                for batch in file.iter_batches(batch_rows(len(columns)), row_groups=[group], columns=stored):
                    table = pa.table(batch)
                    for column in columns:
                        if column in constants:
                            table = table.append_column(column, pa.repeat(constants[column], len(batch)))
                    yield table.select(list(columns))
        except (pa.ArrowException, OSError) as error:
            _raise_if_refused(error)
            raise SourceError(f"{where} could not be read: write the file again.") from error


@dataclass(frozen=True)
class RowGroup(TableChunk):
    """A row group."""

    file: ParquetFile

    def frames(self, columns: Sequence[str]) -> Iterator[Any]:
        """Some columns, in batches."""
        require_columns(columns, [name for name, _ in self.file.kinds], self.name)
        for table in self.file.tables(self.place.group, columns, self.name):
            yield nw.from_native(table, eager_only=True)


class ParquetSource(TableSource):
    """The row groups of Parquet files.

    Parameters
    ----------
    data : str, Path or sequence of these
        Files, folders (searched in depth), or patterns such as ``folder/*.parquet``.
    """

    def __init__(self, data: str | Path | Sequence[str | Path]) -> None:
        self.paths = parquet_paths(data)
        self.files = _opened(self.paths)
        self.size = sum(len(file.group_rows) for file in self.files)
        self.kinds = {file.name: dict(file.kinds) for file in self.files}

    def chunks(self) -> Iterator[RowGroup]:
        """The row groups."""
        for file in self.files:
            for group in range(len(file.group_rows)):
                name = f"{file.name}, row group {group}"
                yield RowGroup(name, Place(file.number, group), self.schema, file)

    def deciding(self, columns: Sequence[str] | None) -> NamedFrames:
        """The rows with the names of their row groups."""
        for chunk in self.chunks():
            for frame in chunk.frames([name for name, _ in chunk.file.kinds] if columns is None else columns):
                yield chunk.name, frame


def parquet_paths(data: str | Path | Sequence[str | Path]) -> list[Path]:
    """The files that paths, folders and patterns stand for, sorted, each once."""
    given = [data] if isinstance(data, str | Path) else list(data)
    found: list[Path] = []
    for each in given:
        path = Path(each).expanduser()
        if path.is_dir():
            files = [file for file in path.rglob("*") if file.suffix.lower() in SUFFIXES and not _hidden(file, path)]
        elif path.is_file():
            files = [path]
        else:
            files = [file for file in map(Path, glob(str(path), recursive=True)) if file.is_file()]
        if not files:
            raise SourceError(f"There are no Parquet files at {each}: name a file, a folder, or a pattern in quotes.")
        found += files
    return sorted({file.resolve() for file in found})


def _hidden(file: Path, folder: Path) -> bool:
    return any(part.startswith((".", "_")) for part in file.relative_to(folder).parts)


def _opened(paths: Sequence[Path]) -> list[ParquetFile]:
    """The footers of all files."""
    root = Path(commonpath([path.parent for path in paths]))
    pairs = [[part.partition("=")[::2] for part in path.relative_to(root).parts[:-1] if "=" in part] for path in paths]
    values: dict[str, set[str]] = {}
    for name, value in (pair for each in pairs for pair in each):
        values.setdefault(name, set()).add(value)
    numeric = {name for name, texts in values.items() if all(plain_number(t) is not None for t in texts - {HIVE_NULL})}
    files: list[ParquetFile] = []
    for path, each in progress(list(zip(paths, pairs, strict=True)), len(paths), "reading footers"):
        name = path.relative_to(root).as_posix()
        try:
            status = _file_status(path)
            metadata = _metadata(path, status)
            schema = metadata.schema.to_arrow_schema()
        except (pa.ArrowException, OSError) as error:
            _raise_if_refused(error)
            if path.suffix.lower() not in SUFFIXES:
                raise SourceError(f"{path} is neither a CSV file (.csv, .tsv, .csv.gz) nor a Parquet file.") from error
            raise SourceError(f"{path} is not a complete Parquet file: write it again.") from error
        constants = {n: None if v == HIVE_NULL else plain_number(v) if n in numeric else v for n, v in each}
        columns = eager(schema.empty_table(), f"{path}").schema.items()
        kinds = {column: _kind(dtype) for column, dtype in columns}
        kinds |= {n: "numbers" if n in numeric else "text" for n in constants}
        groups = tuple(metadata.row_group(group).num_rows for group in range(metadata.num_row_groups))
        files.append(
            ParquetFile(len(files), path, name, tuple(constants.items()), groups, tuple(kinds.items()), status)
        )
    if not any(sum(file.group_rows) for file in files):
        raise SourceError(f"{paths[0]} has no rows." if len(paths) == 1 else f"The {len(paths):,} files have no rows.")
    return files


def _kind(dtype: Any) -> str:
    """What a type holds, for messages: files may differ in the type of numbers."""
    if dtype == nw.Unknown:
        return ""
    if dtype in (nw.Date, nw.Datetime):
        return "dates"
    return "numbers" if is_numeric(dtype) else "text"


def _file_status(path: Path) -> tuple[int, int]:
    """Size of a file and time of writing."""
    status = path.stat()
    return status.st_size, status.st_mtime_ns


@lru_cache(8)
def _metadata(path: Path, status: tuple[int, int]) -> Any:
    """The footer of a file of this status; files may have thousands of groups."""
    return pq.read_metadata(path)


def _raise_if_refused(error: Exception) -> None:
    """Raise what the system says of a file again; errors of its content have no number."""
    if isinstance(error, OSError) and error.errno is not None:
        raise error
