"""The rules for columns as a transformer of scikit-learn."""

from collections.abc import Iterator, Sequence
from typing import Any, Literal, Self

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from admiss.tables.deciding import Plan, decide
from admiss.tables.frames import eager
from admiss.tables.source import Chunk, Frame, NamedFrames, Place, TableSource
from formulations.arrays import FloatArray


class TableEncoder(TransformerMixin, BaseEstimator):
    """Encode a raw table as numbers, with NaN for what is missing.

    Numbers with marks of missing values, dates, times, time spans, truth values and text become numbers; IDs, constants
    and copies are left out. The rules are those of ``admiss compare`` and ``admiss fit``, see
    :mod:`admiss.tables.rules`. A missing text is one missing feature: its columns are NaN together.

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
    feature_names_in_ : array of str, if X had names
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
        frame = self._frame(X, reset=True)
        if len(frame) < 2:
            raise ValueError(f"The columns of n_samples={len(frame)} are all constant: fit on two rows or more.")
        self.schema_ = decide(_Rows(frame), Plan(drop=self.drop, keep=self.keep, unknown=self.unknown))
        return self

    def transform(self, X: Any) -> FloatArray:
        """The features of rows.

        Parameters
        ----------
        X : data frame, or array of shape (n, d)
            With the columns that are used, in any order.
        """
        check_is_fitted(self)
        return self.schema_.encode(self._frame(X, reset=False), "X")

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the features."""
        check_is_fitted(self)
        return np.array(self.schema_.names, dtype=object)

    def _frame(self, X: Any, *, reset: bool) -> Any:
        """A table that narwhals has taken, or the columns of an array, whose texts are read."""
        if hasattr(X, "columns") or isinstance(nw.from_native(X, pass_through=True), nw.DataFrame | nw.LazyFrame):
            frame = eager(X, "X")
            if reset:
                self.n_features_in_ = len(frame.columns)
                self.feature_names_in_ = np.array(list(frame.columns), dtype=object)
            return frame
        array = np.asarray(X, dtype=object) if isinstance(X, list | tuple) else X
        array = check_array(array, dtype=None, ensure_all_finite=False, input_name="X", estimator=self)
        validate_data(self, array, reset=reset, skip_check_array=True)
        numeric = array.dtype.kind in "fiub"
        columns = {f"x{j}": array[:, j] if numeric else array[:, j].tolist() for j in range(array.shape[1])}
        return _Cells(columns, len(array))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags


class _Cells:
    """The columns of an array as a data frame has them: numbers, or lists of any values."""

    def __init__(self, columns: dict[str, Any], n_rows: int) -> None:
        self.columns, self.n_rows = columns, n_rows

    def __len__(self) -> int:
        return self.n_rows

    def __getitem__(self, name: str) -> Any:
        return self.columns[name]


class _Rows(TableSource):
    """The rows of fit."""

    def __init__(self, frame: Any) -> None:
        self.frame = frame

    def chunks(self) -> Iterator[Chunk]:
        yield Frame("X", Place(), self.schema, self.frame)

    def deciding(self, columns: Sequence[str] | None) -> NamedFrames:
        yield "X", self.frame
