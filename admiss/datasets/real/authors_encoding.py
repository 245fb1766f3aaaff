"""The authors' encoding of the real data sets, which reproduces the tables of Appendix B.2.

It differs from the clean encoding as follows.

* Categorical variables are called CC, CC_1, CC_2, .., their indicators CC_1_level, and the indicators of a variable
  are found by *prefix*: if CC is missing, all indicators count as missing; if CC_1 is missing, so are those of CC_10,
  and also CC_1 itself, the level 1 of CC.
* Indicators are joined to the rows by an id. Rows with the same id get the maximum of their indicators, also of the
  target.
* A word in a variable of numbers is neither a number nor missing: NaN in X, False in M.
* A target with at most 5 values is 1 for the alphabetically first level and 0 otherwise, also if missing; one with more
  values, not all numbers, is 1 for the most frequent level (ties: the alphabetically first); any other is a number.
  Rows without a target are dropped from the data sets from R only.

``real_target_rows`` is the filter of their experiments with real targets.
"""

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np

from admiss.datasets.dataset import Dataset, Origin
from admiss.datasets.real.encoding import has_few_values, make_dataset, one_hot, set_missing, take_rows
from admiss.datasets.real.raw_tables import Column, RawTable, as_numbers, is_missing, labels
from admiss.datasets.real.registry import Encoding, Record
from admiss.patterns import PatternTable
from formulations.arrays import BoolArray, FloatArray


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
    table = _retained_rows(record, encoding, set_missing(table, encoding.imputed_where))
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
    y, task, target = _target(encoding, table)
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


def _retained_rows(record: Record, encoding: Encoding, table: RawTable) -> RawTable:
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
    listed = [name for name in encoding.features if name in encoding.categorical]
    others = [name for name in encoding.features if name not in encoding.categorical]
    called = {
        name: prefix if k == 0 else f"{prefix}_{k}"
        for prefix, names in (("CC", listed), ("CN", others))
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


def _target(encoding: Encoding, table: RawTable) -> tuple[Column | None, str | None, str | None]:
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
