"""Raw tables, whose columns are not all numbers, for estimators that contain a pipeline which reads them."""

from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import validate_data

from admiss.estimator.validation import numeric_column, read_features
from formulations.arrays import FloatArray


class TableRows:
    """Rows of a raw table, which a pipeline reads itself; as an array, NaN where a value is missing and 0 elsewhere.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = TableRows(nw.from_native(pd.DataFrame({"plan": ["pro", None], "age": [30.0, float("nan")]})))
    >>> np.isnan(rows).tolist(), rows[np.array([0])].shape
    ([[False, False], [True, True]], (1, 2))
    """

    def __init__(self, frame: Any) -> None:
        self.frame = frame
        self.shape = frame.shape

    def __len__(self) -> int:
        return int(self.shape[0])

    def __getitem__(self, rows: Any) -> "TableRows":
        return TableRows(self.frame[np.asarray(rows)])

    def __array__(self, dtype: Any = None, copy: Any = None) -> FloatArray:
        missing = [
            (series.is_null() | series.is_nan() if series.dtype.is_float() else series.is_null()).to_numpy()
            for series in self.frame.iter_columns()
        ]
        return np.where(np.column_stack(missing).astype(bool), np.nan, 0.0)


def takes_raw_table(estimator: Any, X: Any) -> bool:
    """Whether an estimator is a pipeline, and X a data frame with other columns than numbers, which it reads itself."""
    parts = estimator if isinstance(estimator, list | tuple) else [estimator]
    if not all(isinstance(part, Pipeline) for part in parts):
        return False
    try:
        frame = nw.from_native(X, pass_through=True)
    except nw.exceptions.DuplicateError:  # read_features says so
        return False
    return isinstance(frame, nw.DataFrame) and any(numeric_column(series) is None for series in frame.iter_columns())


class GivesFrames:
    """Mixin of estimators that read a table and give its rows to another estimator."""

    estimator: Any
    library_: Any

    def _read_table(self, X: Any, *, reset: bool) -> Any:
        """Features, or the rows of a raw table for a pipeline."""
        if not takes_raw_table(self.estimator, X):
            return read_features(self, X, reset=reset)
        method = getattr(self, "method", "class")
        if method != "class":
            raise ValueError(f"method={method!r} deletes values of numbers: use method='class' for raw tables.")
        validate_data(self, X, reset=reset, skip_check_array=True)
        return TableRows(nw.from_native(X, eager_only=True))

    def _remember_frame(self, X: Any) -> None:
        """Remember the library of a data frame, in which the estimator is given its rows."""
        frame = nw.from_native(X, pass_through=True)
        self.library_ = str(frame.implementation) if isinstance(frame, nw.DataFrame) else ""

    def _given(self, X: FloatArray | TableRows) -> Any:
        """Rows as the estimator sees them: with the names of the columns, if they had names."""
        if isinstance(X, TableRows):
            return X.frame.to_native()
        if self.library_ in ("pandas", "polars") and hasattr(self, "feature_names_in_"):
            return nw.from_numpy(X, schema=list(self.feature_names_in_), backend=self.library_).to_native()
        return X
