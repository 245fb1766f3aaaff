"""A data set in memory, as returned by ``load_dataset``.

A column of X is a number or the indicator of one level of a categorical variable. A missing number is NaN; a missing
category is an additional level, the column ``variable=missing``. ``without_missing_levels`` gives the other common
form, without that column and with NaN in all indicators of a missing category.
"""

from dataclasses import dataclass, replace
from typing import Any, Literal

import narwhals.stable.v2 as nw
import numpy as np

from formulations.arrays import BoolArray, FloatArray


@dataclass(frozen=True)
class Origin:
    """Origin of a column of X.

    Attributes
    ----------
    variable : str
        The variable in the source.
    kind : {"number", "level", "missing"}
        The variable itself, the indicator of one of its levels, or the indicator that its category is missing.
    level : str or None
        The level, if the column is the indicator of one.

    Examples
    --------
    >>> Origin("heating", "level", "gas").column
    'heating=gas'
    """

    variable: str
    kind: str
    level: str | None = None

    @property
    def column(self) -> str:
        """The name of the column: ``variable``, ``variable=level`` or ``variable=missing``."""
        if self.kind == "number":
            return self.variable
        return f"{self.variable}={self.level if self.kind == 'level' else 'missing'}"


@dataclass(frozen=True, repr=False)
class Dataset:
    """A data set with missing values.

    Attributes
    ----------
    name : str
        Its name in the registry.
    X : array of shape (n, d)
        Features after one-hot encoding; NaN where a number is missing.
    origin : tuple of Origin
        The origin of each column.
    y : array of shape (n,), or None
        The target: numbers, 0 and 1, or names of classes; None if the data set has no target.
    task : {"regression", "binary", "multiclass", None}
    target : str or None
        Description of y.
    encoding : {"clean", "authors"}
    cautions : tuple of str
        Caveats to know before using the data.
    hidden : bool array of shape (n, number of columns without missing levels), or None
        The missing values, if they cannot be derived from X (in the authors' encoding).
    """

    name: str
    X: FloatArray
    origin: tuple[Origin, ...]
    y: np.ndarray[Any, Any] | None
    task: str | None
    target: str | None
    encoding: str = "clean"
    cautions: tuple[str, ...] = ()
    hidden: BoolArray | None = None

    def __repr__(self) -> str:
        target = f"{self.task}: {self.target}" if self.task else "no target"
        n, d = self.X.shape
        return f"Dataset {self.name} ({self.encoding}): {n:,} rows, {d:,} features, {target}"

    @property
    def feature_names(self) -> list[str]:
        """The names of the columns of X."""
        return [origin.column for origin in self.origin]

    @property
    def M(self) -> BoolArray:
        """The missing values of the columns other than missing levels, a bool array."""
        if self.hidden is not None:
            return self.hidden
        M = np.isnan(self.X)
        for j, origin in enumerate(self.origin):
            if origin.kind == "missing":
                levels = [(o.kind, o.variable) == ("level", origin.variable) for o in self.origin]
                M[np.ix_(self.X[:, j] == 1, levels)] = True
        return M[:, self.is_feature]

    def to_frame(self, backend: Literal["pandas", "polars", "pyarrow"] = "pandas") -> Any:
        """X as a data frame of pandas, polars or pyarrow."""
        columns = dict(zip(self.feature_names, self.X.T, strict=True))
        return nw.from_dict(columns, backend=backend).to_native()

    def without_missing_levels(self) -> "Dataset":
        """The same data with NaN in all indicators of a missing category instead of a level for it."""
        X = np.where(self.M, np.nan, self.X[:, self.is_feature])
        return replace(self, X=X, origin=tuple(origin for origin in self.origin if origin.kind != "missing"))

    @property
    def is_feature(self) -> BoolArray:
        """Which columns of X are not missing levels."""
        return np.array([origin.kind != "missing" for origin in self.origin])
