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


def from_origin(name: str, origin: float, spread: float, precision: int = 4) -> str:
    """A feature minus its origin in words, to a hundredth of its spread at a precision of 4 digits.

    Examples
    --------
    >>> from_origin("year", 2001.31, 9.5), from_origin("depth", -3.0, 0.7), from_origin("x", 0.0, 1.0)
    ('(year - 2001.31)', '(depth + 3)', 'x')
    """
    if origin == 0:
        return name
    return f"({name} {'-' if origin > 0 else '+'} {in_digits(abs(origin), spread, precision)})"


def in_digits(value: float, spread: float, precision: int = 4) -> str:
    """A value of a feature in words, to a hundredth of its spread at a precision of 4 digits.

    Examples
    --------
    >>> in_digits(1234567.891, 30.0), in_digits(0.0, 1.0), in_digits(2001.31456, 9.5, precision=6)
    ('1234567.9', '0', '2001.3146')
    """
    before = int(np.floor(np.log10(abs(value)))) - int(np.floor(np.log10(spread))) if value else 0
    return f"{value:.{min(max(before + precision - 1, 1), 17)}g}"


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


def names_of_outputs(classes: Any) -> list[str]:
    """What the formulas of a model are of: the target, or the log-odds of class labels.

    Examples
    --------
    >>> names_of_outputs(None), names_of_outputs(["no", "yes"])
    (['y'], ['log-odds of yes'])
    """
    if classes is None:
        return ["y"]
    if len(classes) == 2:
        return [f"log-odds of {classes[1]}"]
    return [f"log-odds of {label} against the rest" for label in classes]
