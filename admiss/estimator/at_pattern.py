"""The linear model that a fitted model is at one missingness pattern."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from formulations.arrays import BoolArray, FloatArray

INTERCEPT = "(intercept)"


def read_pattern(pattern: Any, names: list[str]) -> BoolArray:
    """A pattern from 0/1 for each feature, or from the names of the missing features.

    Examples
    --------
    >>> read_pattern(["income"], ["age", "income"]).tolist()
    [False, True]
    """
    values = np.asarray(list(pattern) if isinstance(pattern, set) else pattern)
    if values.ndim != 1:
        raise ValueError(f"A pattern is {len(names)} numbers 0 or 1, or a list of names of missing features.")
    if values.dtype.kind in "UO" or values.size == 0:
        unknown = [str(name) for name in values if name not in names]
        if unknown:
            raise ValueError(f"The pattern names {', '.join(unknown)}, which this model does not have as features.")
        return np.isin(names, values.astype(str))
    if values.shape != (len(names),) or not np.isin(values, (0, 1)).all():
        raise ValueError(f"A pattern is {len(names)} numbers 0 or 1, or a list of names of missing features.")
    return values.astype(bool)


class ModelAtPattern(ABC):
    """Mixin of estimators whose model is linear at every pattern."""

    @abstractmethod
    def _linear_model_at(self, pattern: Any) -> tuple[FloatArray, FloatArray]:
        """Intercept and weights; with more than two classes one row per class."""

    def coef_at(self, pattern: Sequence[int] | Sequence[str] | BoolArray) -> FloatArray:
        """Weights w_j(m) at a pattern, 0 for its missing features.

        Parameters
        ----------
        pattern : sequence
            0/1 for each feature, or the names of the missing features.

        Returns
        -------
        array of shape (n_features_in_,), or (n_classes, n_features_in_) for more than two classes
        """
        return self._linear_model_at(pattern)[1]

    def intercept_at(self, pattern: Sequence[int] | Sequence[str] | BoolArray) -> Any:
        """Intercept b(m) at a pattern; a number, or an array of shape (n_classes,) for more than two classes."""
        intercept = self._linear_model_at(pattern)[0]
        return float(intercept) if intercept.ndim == 0 else intercept
