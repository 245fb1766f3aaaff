"""Odd tables, targets, weights and values of parameters; all but the last are made from ordinary ones."""

import datetime
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import scipy.sparse as sp

from admiss.partition import Greedy

Container = Callable[[Any], Any]


def _names(X: Any) -> list[str]:
    return [f"column {j}" for j in range(X.shape[1])]


def _objects(missing: Any) -> Container:
    return lambda X: np.where(np.isnan(X), missing, X.astype(object))


def _columns(X: Any) -> dict[str, list[float | None]]:
    return {name: [None if np.isnan(v) else float(v) for v in X[:, j]] for j, name in enumerate(_names(X))}


def _polars(X: Any) -> pl.DataFrame:
    return pl.DataFrame(_columns(X), schema=dict.fromkeys(_names(X), pl.Float64))


def _whole(X: Any) -> Any:
    """Numbers rounded and cut to those of 64-bit integers."""
    return np.clip(np.round(np.nan_to_num(X, posinf=9, neginf=-9)), -(2.0**62), 2.0**62)


def _replaced(value: Any) -> Container:
    """Objects with one unusual entry."""

    def container(X: Any) -> Any:
        objects = _objects(None)(X)
        if objects.size:
            objects.flat[0] = value
        return objects

    return container


# Things that are no table, or an unusual one.
TABLES: dict[str, Container] = {
    "row": lambda X: X[0] if len(X) else X.ravel(),
    "cube": lambda X: X[:, :, None],
    "scalar": lambda X: 3.0,
    "nothing": lambda X: None,
    "text": lambda X: "table",
    "generator": lambda X: iter(X.tolist()),
    "dictionary": lambda X: _columns(X),
    "ragged": lambda X: [row[: 1 + i % 2] for i, row in enumerate(X.tolist())],
    "sparse": lambda X: sp.csr_array(np.nan_to_num(X, posinf=0, neginf=0)),
    "sparse_matrix": lambda X: sp.coo_matrix(np.nan_to_num(X, posinf=0, neginf=0)),
    "complex": lambda X: X + 1j,
    "strings": lambda X: X.astype(str),
    "bytes": lambda X: X.astype("S8"),
    "dates": lambda X: np.full(X.shape, np.datetime64("2024-01-01")),
    "lengths_of_time": lambda X: np.full(X.shape, np.timedelta64(5, "D")),
    "records": lambda X: np.zeros(len(X), dtype=[("a", float), ("b", int)]),
    "a_string": _replaced("seven"),
    "a_number_as_text": _replaced("7"),
    "a_date": _replaced(datetime.date(2024, 1, 1)),
    "a_huge_integer": _replaced(10**400),
    "a_large_integer": _replaced(10**20),
    "a_fraction": _replaced(Fraction(1, 3)),
    "a_huge_fraction": _replaced(Fraction(10**400, 3)),
    "a_decimal": _replaced(Decimal("1.5")),
    "a_huge_decimal": _replaced(Decimal("1e999")),
    "a_signaling_decimal": _replaced(Decimal("sNaN")),
    "a_list": _replaced([1.0]),
    "a_dictionary": _replaced({}),
    "an_object": _replaced(object),
    "a_complex": _replaced(1j),
    "huge_integers": lambda X: [[10**400 for _ in row] for row in X],
    "categorical": lambda X: pd.DataFrame(X.astype(str), columns=_names(X)).astype("category"),
    "numeric_categories": lambda X: pd.DataFrame(_whole(X), columns=_names(X)).astype("category"),
    "pandas_dates": lambda X: pd.DataFrame({"when": pd.date_range("2024-01-01", periods=len(X)), "x": X[:, :1].sum(1)}),
    "pandas_lengths": lambda X: pd.DataFrame({"how long": pd.to_timedelta(np.arange(len(X)), unit="D")}),
    "pandas_strings": lambda X: pd.DataFrame(X.astype(str), columns=_names(X)),
    "pandas_complex": lambda X: pd.DataFrame(X + 1j, columns=_names(X)),
    "pandas_huge": lambda X: pd.DataFrame({"x": [10**400] * len(X)}, dtype=object),
    "pandas_sparse": lambda X: pd.DataFrame({"x": pd.arrays.SparseArray(np.zeros(len(X)))}),
    "pandas_periods": lambda X: pd.DataFrame({"x": pd.period_range("2024-01", periods=len(X), freq="M")}),
    "duplicate_names": lambda X: pd.DataFrame(X, columns=["same"] * X.shape[1]),
    "mixed_names": lambda X: pd.DataFrame(X, columns=[(j if j % 2 else f"x{j}") for j in range(X.shape[1])]),
    "nested_names": lambda X: pd.DataFrame(
        X, columns=pd.MultiIndex.from_tuples([("a", j) for j in range(X.shape[1])]) if X.shape[1] else None
    ),
    "missing_names": lambda X: pd.DataFrame(X, columns=[None, *range(1, X.shape[1])][: X.shape[1]]),
    "series": lambda X: pd.Series(X[:, 0] if X.shape[1] else []),
    "polars_strings": lambda X: _polars(X).cast(pl.String),
    "polars_nulls": lambda X: pl.DataFrame({"x": [None] * len(X)}),
    "polars_lists": lambda X: pl.DataFrame({"x": [[1.0]] * len(X)}),
    "polars_decimals": lambda X: pl.DataFrame({"x": [Decimal("1.5"), *[None] * max(0, len(X) - 1)][: len(X)]}),
    "polars_categories": lambda X: pl.DataFrame({"x": ["a"] * len(X)}, schema={"x": pl.Categorical}),
    "polars_lazy": lambda X: _polars(X).lazy(),
    "polars_series": lambda X: pl.Series([1.0] * len(X)),
    "arrow_strings": lambda X: pa.table({"x": pa.array(["a"] * len(X))}),
    "arrow_nulls": lambda X: pa.table({"x": pa.nulls(len(X))}),
    "arrow_array": lambda X: pa.array([1.0] * len(X)),
}

# What is no target, or an unusual one.
TARGETS: dict[str, Container] = {
    "two_columns": lambda y: np.column_stack([y, y]),
    "nothing": lambda y: None,
    "scalar": lambda y: 1.0,
    "short": lambda y: y[1:],
    "complex": lambda y: y + 1j,
    "texts": lambda y: np.array([f"v{v}" for v in y], dtype=object),
    "mixed": lambda y: np.array([("one" if i % 2 else 1) for i in range(len(y))], dtype=object),
    "mixed_numbers": lambda y: np.array([(True if i % 2 else 2.5) for i in range(len(y))], dtype=object),
    "some_none": lambda y: np.array([(None if i % 2 else 1) for i in range(len(y))], dtype=object),
    "some_na": lambda y: pd.Series([pd.NA, *[1] * (len(y) - 1)][: len(y)], dtype="Int64"),
    "some_nan": lambda y: np.array([(np.nan if i % 3 == 0 else "a") for i in range(len(y))], dtype=object),
    "huge_integers": lambda y: [10**400] * len(y),
    "dates": lambda y: np.full(len(y), np.datetime64("2024-01-01")) + np.arange(len(y)) % 2,
    "continuous": lambda y: np.asarray(y, dtype=float) + 0.25,
    "infinite": lambda y: np.where(np.arange(len(y)) % 2, np.inf, 1.0),
    "tuples": lambda y: [(1, 2) for _ in y],
    "objects": lambda y: np.array([object] * len(y), dtype=object),
    "bytes": lambda y: np.array([b"a" if v else b"b" for v in y], dtype=object),
}

# Weights, from those of ordinary rows.
WEIGHTS: dict[str, Container] = {
    "zeros": np.zeros_like,
    "one_positive": lambda s: np.eye(len(s))[0],
    "tiny": lambda s: s * 1e-155,
    "huge": lambda s: s * 1e155,
    "denormal": lambda s: s * 1e-320,
    "many_decades": lambda s: s * 10.0 ** (np.arange(len(s)) % 25 - 12),
    "negative": lambda s: s - 1.0,
    "nan": lambda s: np.where(np.arange(len(s)) % 3, s, np.nan),
    "infinite": lambda s: np.where(np.arange(len(s)) % 3, s, np.inf),
    "short": lambda s: s[:-1],
    "matrix": lambda s: np.ones((len(s), 2)),
    "text": lambda s: ["a"] * len(s),
}

# Values of any parameter: most make no sense, others are extreme.
PARAMETERS: tuple[Any, ...] = (
    None, -1, -1.5, 0, np.nan, np.inf, -np.inf, True, "nonsense", "", b"auto", [], [1.0], (), {}, object, 1j, 10**400,
    np.array([1.0, 2.0]), np.array("auto"), 0.5, 3, 1e300, 1e-300, [None], ["nonsense"], [-1.0], [np.nan], lambda x: x,
    Greedy(), "auto", "squared", "logistic", 2.5, 10**9, 5e-324, 1e-14, 1e14, 1e155, np.float32(0.5), 2**70,
    {0: -1.0, 1: 1.0}, {0: 1e300, 1: 1.0}, {"none": 1.0},
)  # fmt: skip
