"""Parquet files, row group by row group.

All footers are read first: a file that is truncated, lacks columns, or has another type in them is named before any
work starts. In folders such as ``year=2024`` the part after the name is a column.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from glob import glob
from hashlib import blake2b
from os.path import commonpath
from pathlib import Path
from typing import Any

import narwhals.stable.v2 as nw

from admiss.extras import optional_import
from admiss.tables.column import SourceError, is_numeric, require_columns
from admiss.tables.deciding import decide
from admiss.tables.parsing import plain_number
from admiss.tables.schema import Schema
from admiss.tables.source import Chunk, Place, Plan, Source, batch_rows, common_columns
from admiss.terminal.progress import progress

with optional_import("Reading Parquet files", "files"):
    import pyarrow as pa
    import pyarrow.parquet as pq

SUFFIXES = (".parquet", ".pq")
# A hive folder without a value.
HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True)
class ParquetFile:
    """A file with its number and name in the source, its columns from folders, and what changes with its content."""

    number: int
    path: Path
    name: str
    constants: tuple[tuple[str, str | float | None], ...]
    group_rows: tuple[int, ...]
    kinds: tuple[tuple[str, str], ...]
    status: tuple[int, int]
    digest: str

    def tables(self, group: int, columns: Sequence[str]) -> Iterator[Any]:
        """Read columns of a row group in batches."""
        constants = dict(self.constants)
        stored = [column for column in columns if column not in constants]
        where = self.group_name(group)
        try:
            if _file_status(self.path) != self.status or _metadata(self.path, self.status)[1] != self.digest:
                raise SourceError(f"{where}: the file has changed since the pass started: start again.")
            with pq.ParquetFile(self.path, metadata=_metadata(self.path, self.status)[0]) as file:
                for batch in file.iter_batches(batch_rows(len(columns)), row_groups=[group], columns=stored):
                    table = pa.table(batch)
                    for column in columns:
                        if column in constants:
                            table = table.append_column(column, pa.repeat(constants[column], len(batch)))
                    yield table.select(list(columns))
        except (pa.ArrowException, OSError) as error:
            raise SourceError(f"{where} could not be read ({_words(error)}): write the file again.") from error

    def group_name(self, group: int) -> str:
        """The name of a row group in messages."""
        return f"{self.name}, row group {group}"


@dataclass(frozen=True)
class RowGroup(Chunk):
    """A row group."""

    file: ParquetFile
    group: int
    schema: Schema

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.file.group_name(self.group)

    @property
    def digest(self) -> str:  # type: ignore[override]
        return f"{self.file.digest}-{self.group}"

    @property
    def place(self) -> Place:  # type: ignore[override]
        return Place(self.file.number, self.group)

    def frames(self, columns: Sequence[str]) -> Iterator[Any]:
        require_columns(columns, [name for name, _ in self.file.kinds], self.name)
        for table in self.file.tables(self.group, columns):
            yield nw.from_native(table, eager_only=True)


class ParquetSource(Source):
    """The row groups of Parquet files.

    Parameters
    ----------
    data : str, Path or sequence of these
        Files, folders (searched in depth), or patterns such as ``folder/*.parquet``.
    plan : Plan or Schema
        What the columns are for, or the schema of another source.
    """

    def __init__(self, data: str | Path | Sequence[str | Path], plan: Plan | Schema) -> None:
        self.paths = parquet_paths(data)
        self.files = _opened(self.paths)
        if isinstance(plan, Plan):
            wanted = common_columns([(file.name, [name for name, _ in file.kinds]) for file in self.files], plan)
            _check_kinds(self.files, [*wanted, *plan.roles])
            plan = decide(self._read, plan, wanted)
        for file in self.files:
            require_columns(plan.used, [name for name, _ in file.kinds], file.name)
        self.schema = plan
        self.size = sum(len(file.group_rows) for file in self.files)

    def _read(self, columns: Sequence[str] | None) -> Iterator[tuple[str, Any]]:
        """Some columns of the rows, or all, in frames with names for messages."""
        for file in self.files:
            wanted = [name for name, _ in file.kinds] if columns is None else columns
            for group in range(len(file.group_rows)):
                for table in file.tables(group, wanted):
                    yield file.name, nw.from_native(table, eager_only=True)

    def chunks(self) -> Iterator[Chunk]:
        for file in self.files:
            for group in range(len(file.group_rows)):
                yield RowGroup(file, group, self.schema)


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
            metadata, digest = _metadata(path, status)
            schema = metadata.schema.to_arrow_schema()
        except (pa.ArrowException, OSError) as error:
            raise SourceError(f"{path} is not a complete Parquet file ({_words(error)}): write it again.") from error
        constants = {n: None if v == HIVE_NULL else plain_number(v) if n in numeric else v for n, v in each}
        types = nw.from_native(schema.empty_table(), eager_only=True).schema if _unique(schema.names, path) else {}
        kinds = {column: _kind(dtype) for column, dtype in types.items()}
        kinds |= {n: "numbers" if n in numeric else "text" for n in constants}
        groups = tuple(metadata.row_group(group).num_rows for group in range(metadata.num_row_groups))
        files.append(
            ParquetFile(len(files), path, name, tuple(constants.items()), groups, tuple(kinds.items()), status, digest)
        )
    if not any(sum(file.group_rows) for file in files):
        raise SourceError(f"{paths[0]} has no rows." if len(paths) == 1 else f"The {len(paths):,} files have no rows.")
    return files


def _kind(dtype: Any) -> str:
    """What a type holds, for messages: files may differ in the type of numbers."""
    if dtype == nw.Unknown:
        return "empty"
    if dtype in (nw.Date, nw.Datetime):
        return "dates"
    return "numbers" if is_numeric(dtype) else "text"


def _file_status(path: Path) -> tuple[int, int]:
    """Size of a file and time of writing."""
    status = path.stat()
    return status.st_size, status.st_mtime_ns


@lru_cache(8)
def _metadata(path: Path, status: tuple[int, int]) -> tuple[Any, str]:
    """The footer of a file, and a digest of footer, size and time of writing; files may have thousands of groups."""
    with path.open("rb") as file:
        file.seek(max(0, status[0] - 8))
        length = int.from_bytes(file.read(4), "little")
        file.seek(max(0, status[0] - 8 - length))
        footer = file.read()
    return pq.read_metadata(path), blake2b(footer + repr(status).encode(), digest_size=12).hexdigest()


def _unique(names: Sequence[str], path: Path) -> bool:
    twice = next((name for name in names if list(names).count(name) > 1), None)
    if twice is not None:
        raise SourceError(f"{path} has two columns {twice!r}: give them different names.")
    return True


def _check_kinds(files: Sequence[ParquetFile], names: Sequence[str]) -> None:
    """Refuse files that have columns with another type than others have, and name all of them."""
    kinds = [dict(file.kinds) for file in files]
    for file, found in zip(files, kinds, strict=True):
        differing = []
        for name in names:
            expected = next((other[name] for other in kinds if other.get(name, "empty") != "empty"), "empty")
            if found.get(name, "empty") not in (expected, "empty"):
                differing.append(f"{name!r} does not hold {expected}")
        if differing:
            raise SourceError(
                f"{file.name}: column {', column '.join(differing)}, as in other files: write the same type, or leave "
                "it out with drop (--drop)."
            )


def _words(error: BaseException) -> str:
    return " ".join(str(error).split()).rstrip(".")[:200]
