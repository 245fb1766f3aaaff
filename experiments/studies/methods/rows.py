"""Training and test rows of the methods of a study."""

from copy import deepcopy
from dataclasses import dataclass, field, fields
from typing import Any, Literal

import numpy as np

from formulations.arrays import FloatArray

Task = Literal["regression", "binary", "multiclass"]


@dataclass(frozen=True)
class StudyRows:
    """Training and test rows.

    Attributes
    ----------
    X_train, X_test : arrays of shape (rows, d)
        Features, NaN where missing.
    y_train, y_test : arrays of shape (rows,)
        Numbers, 0 and 1, or names of classes.
    X_full_train, X_full_test : arrays of shape (rows, d), or None
        The features without missing values, if known.
    task : {"regression", "binary", "multiclass"}
    facts : dict
        Plain values to add to the scores.
    cache : dict
        Results that methods share, such as imputed matrices; not part of the rows.

    Examples
    --------
    >>> X, y = np.array([[1.0], [np.nan], [2.0]]), np.array([1.0, 2.0, 3.0])
    >>> rows = StudyRows(X[:2], y[:2], X[2:], y[2:], None, None, "regression", size_facts(X[:2]))
    >>> rows.facts
    {'n_train': 2, 'd': 1, 'missing': 0.5}
    """

    X_train: FloatArray
    y_train: np.ndarray[Any, Any]
    X_test: FloatArray
    y_test: np.ndarray[Any, Any]
    X_full_train: FloatArray | None
    X_full_test: FloatArray | None
    task: Task
    facts: dict[str, Any] = field(default_factory=dict)
    cache: dict[Any, Any] = field(default_factory=dict, compare=False, repr=False)

    def __deepcopy__(self, memo: dict[int, Any]) -> "StudyRows":
        """Copy the rows; only the cache is shared between methods."""
        own = {part.name: deepcopy(getattr(self, part.name), memo) for part in fields(self) if part.name != "cache"}
        return StudyRows(**own, cache=self.cache)


def size_facts(X_train: FloatArray) -> dict[str, Any]:
    """Rows and columns of a training matrix, and its share of missing values."""
    n, d = X_train.shape
    return {"n_train": n, "d": d, "missing": float(np.isnan(X_train).mean())}
