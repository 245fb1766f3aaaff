"""Instances that are not dataclasses of the user: a table in a file, rows in memory, a function that makes rows.

Each has a field ``replicate``, which changes the seed and with it the random split, and the numbers that a function
draws.
"""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from admiss.study.plan import instance_seed
from admiss.study.recipe import StudyError, content_hash, sent
from admiss.study.rows import PARTS, Rows, is_rows

# Bytes of rows in memory, which are sent with each cell: a tenth of a second each.
MOST_BYTES = 100_000_000


@dataclass(frozen=True)
class CsvInstance:
    """A table in a CSV or Parquet file, with a target to predict.

    Columns become numbers as in ``admiss compare``: text is one-hot, dates are numbers, IDs and constants are left out;
    missing values stay missing (NaN). Which table it is follows from its name, and whether its content has changed from
    the file: it may be moved.

    Parameters
    ----------
    path : path
        In a file of a study, ``Path(__file__).parent / "data.csv"`` is the one next to it.
    target : str
        Column to predict.
    drop, keep : sequences of str
        Columns to leave out, and columns to use though they look like an ID, a constant or a copy.
    task : {"auto", "regression", "classification"}
        With "auto", text, booleans and integers with few values are class labels.
    dataset : str
        Name in tables; that of the file by default.
    replicate : int
        Number of the random split.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "flats.csv"
    >>> _ = path.write_text("rooms,town,price\\n3,Ulm,510\\n2,NA,300\\n4,Ulm,720.5\\n")
    >>> flats = CsvInstance(path, target="price")
    >>> X, y = flats.make()
    >>> flats.dataset, list(X.columns), y.tolist()
    ('flats', ['rooms', 'town=Ulm'], [510.0, 300.0, 720.5])
    """

    _recipe_kind: ClassVar[str] = "Table"  # keys and seeds of stored cells depend on it
    path: str | Path = field(metadata={"recipe": False})
    target: str
    drop: Sequence[str] = ()
    keep: Sequence[str] = ()
    task: str = "auto"
    dataset: str = ""
    replicate: int = 0

    def __post_init__(self) -> None:
        path = Path(self.path).absolute()
        if not path.is_file():
            raise StudyError(
                f"There is no file {path}: name one that exists (next to the file of a study: Path(__file__).parent / "
                f"{path.name!r})."
            )
        object.__setattr__(self, "path", path)
        object.__setattr__(self, "dataset", self.dataset or path.stem)

    @property
    def files(self) -> tuple[Path, ...]:
        """The file, which the digest of a cell covers."""
        return (Path(self.path),)

    def make(self) -> Any:
        """Features as a data frame (of pandas, else polars), and the target."""
        from admiss.tables import read_table

        table = read_table(self.path, self.target, task=self.task, drop=self.drop, keep=self.keep)
        return _named(table.X, table.names), table.y


def _named(X: Any, names: Sequence[str]) -> Any:
    columns = {name: X[:, j] for j, name in enumerate(names)}
    if find_spec("pandas") is not None:
        return import_module("pandas").DataFrame(columns)
    return import_module("polars").DataFrame(columns)


@dataclass(frozen=True)
class Made:
    """Rows made by a function without arguments, or of the seed of the instance.

    Whether its replicates are fresh draws or splits of one table is seen by the rows, see
    :mod:`admiss.study.shared_rows`.
    """

    name: str
    function: Callable[..., Any]
    replicate: int = 0

    def make(self) -> Any:
        """Call the function."""
        return self.function(instance_seed(self)) if inspect.signature(self.function).parameters else self.function()


@dataclass(frozen=True)
class Given:
    """Rows in memory, which are a data set; ``content`` is their hash."""

    dataset: str
    rows: Any = field(metadata={"recipe": False}, compare=False, repr=False)
    content: str
    replicate: int = 0

    def make(self) -> Any:
        """The rows."""
        return self.rows


def given(name: str, rows: Any) -> Given:
    """An instance of rows in memory."""
    parts = list(rows) if isinstance(rows, tuple | list) else [getattr(rows, part) for part in PARTS]
    arrays: Any = [part if hasattr(part, "to_numpy") or hasattr(part, "tocsr") else np.asarray(part) for part in parts]
    made = tuple(arrays) if isinstance(rows, tuple | list) else Rows(**dict(zip(PARTS, arrays, strict=True)))
    size = len(sent(made))
    if size > MOST_BYTES:
        raise StudyError(
            f"The rows of instance {name!r} have {size / 1e6:,.0f} MB, which would be sent with each cell: save them "
            "to a Parquet file and use CsvInstance, or give a function that loads them."
        )
    content = "".join(content_hash(array, f"instance {name!r}")[:8] for array in arrays)
    return Given(name, made, content)


def named_instance(given_instance: Any) -> Any:
    """An instance of a pair of a name and a function or rows."""
    if isinstance(given_instance, tuple | list) and len(given_instance) == 2 and isinstance(given_instance[0], str):
        name, source = given_instance
        if callable(source):
            return Made(name, source)
        if is_rows(source):
            return given(name, source)
    raise StudyError(
        "An instance must be a dataclass with a method make, a CsvInstance, or a pair of a name and a function that "
        f"makes rows (or the rows X, y), not {given_instance!r:.60}."
    )
