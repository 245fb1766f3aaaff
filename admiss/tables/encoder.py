"""The rules for columns as a transformer of scikit-learn."""

from collections.abc import Sequence
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from admiss.tables.csv_rows import Cells
from admiss.tables.deciding import decide
from admiss.tables.frames import eager
from admiss.tables.source import Plan
from formulations.arrays import FloatArray


class TableEncoder(TransformerMixin, BaseEstimator):
    """Encode a raw table as numbers, with NaN for what is missing.

    Numbers with marks of missing values, dates, times, time spans, truth values and text become numbers; IDs, constants
    and copies are left out. The rules are those of ``admiss compare`` and ``admiss fit``, see
    :mod:`admiss.tables.deciding`. A missing text is one missing feature: its columns are NaN together.

    Parameters
    ----------
    drop : sequence of str
        Columns to leave out.
    keep : sequence of str
        Columns to use even if they look like an ID, are constant, missing or copies, or are text with many values.
    unknown : {"missing", "error"}
        Treatment of values of text that fit has not seen and for which there is no column of other values, and of texts
        where fit has seen numbers.

    Attributes
    ----------
    schema_ : Schema
        What becomes of each column, and why; it can be printed.
    n_features_in_ : int
    feature_names_in_ : array of str
        Columns of the table of fit. Others are ignored later, and those that are not used may be absent.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"plan": ["pro", "free", "?"], "day": ["2020-01-03", None, "2020-01-01"]})
    >>> encoder = TableEncoder().fit(table)
    >>> encoder.get_feature_names_out().tolist()
    ['plan=pro', 'day']
    >>> encoder.transform(table)
    array([[ 1.,  2.],
           [ 0., nan],
           [nan,  0.]])
    """

    def __init__(
        self, *, drop: Sequence[str] = (), keep: Sequence[str] = (), unknown: Literal["missing", "error"] = "missing"
    ) -> None:
        self.drop = drop
        self.keep = keep
        self.unknown = unknown

    def fit(self, X: Any, y: Any = None) -> Self:
        """Decide what becomes of each column.

        Parameters
        ----------
        X : data frame, or array of shape (n, d)
            Of pandas, polars or pyarrow; the columns of an array are called x0, x1, ..
        y : ignored
        """
        frame = _frame(X)
        names = list(frame.columns)
        plan = Plan(drop=self.drop, keep=self.keep, unknown=self.unknown)
        self.schema_ = decide(lambda _: [("X", frame)], plan)
        self.n_features_in_ = len(names)
        self.feature_names_in_ = np.array(names, dtype=object)
        return self

    def transform(self, X: Any) -> FloatArray:
        """The features of rows.

        Parameters
        ----------
        X : data frame, or array of shape (n, d)
            With the columns that are used, in any order.
        """
        check_is_fitted(self)
        return self.schema_.encode(_frame(X), "X")

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the features."""
        check_is_fitted(self)
        return np.array(self.schema_.names, dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags


def _frame(X: Any) -> Any:
    """A table that narwhals has taken, or the columns of an array, whose texts are read."""
    if not isinstance(X, np.ndarray | list):
        return eager(X, "X")
    array = np.asarray(X, dtype=None if isinstance(X, np.ndarray) else object)
    if array.ndim != 2:
        raise ValueError(f"X must be a table with rows and columns, not of shape {array.shape}.")
    numeric = array.dtype.kind in "fiub"
    columns: dict[str, Any] = {f"x{j}": array[:, j] if numeric else array[:, j].tolist() for j in range(array.shape[1])}
    return Cells(columns, len(array))
