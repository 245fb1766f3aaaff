"""The law of the pattern M, as given by the argument ``missing`` of the bounds."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from admiss.datasets.mechanisms.single import CompletelyAtRandom
from admiss.patterns import PatternTable
from formulations.arrays import FloatArray


@dataclass(frozen=True)
class MissingLaw:
    """A law of M: independent M_j, patterns with their probabilities, or, without either, the worst of all laws.

    Attributes
    ----------
    text : str
        The law in words.
    rates : array of shape (d,), optional
        P(M_j = 1) of independent M_j.
    patterns : array of shape (patterns, d), optional
    probabilities : array of shape (patterns,), optional
        Of the patterns.
    """

    text: str
    rates: FloatArray | None = None
    patterns: FloatArray | None = None
    probabilities: FloatArray | None = None


def read_missing(missing: Any, d: int) -> MissingLaw:
    """The law given by the argument ``missing``.

    Examples
    --------
    >>> read_missing(0.25, 2).rates.tolist()
    [0.25, 0.25]
    >>> read_missing([[0, 1], [0, 1], [0, 0], [1, 1]], 2).probabilities.tolist()
    [0.25, 0.5, 0.25]
    """
    if missing is None:
        return MissingLaw("the worst of all laws")
    if isinstance(missing, CompletelyAtRandom):
        missing = missing.fraction
    if isinstance(missing, tuple) and len(missing) == 2 and callable(missing[0]):
        mechanism, X = missing
        missing = mechanism(X, np.random.RandomState(0))
    elif callable(missing):
        raise ValueError("A mechanism needs features to act on: use missing=(mechanism, X).")
    try:
        values = np.asarray(missing, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"missing must be a 0/1 matrix, probabilities or a mechanism, not {missing!r}.") from error
    if values.ndim == 0:
        values = np.full(d, float(values))
    if values.ndim > 2 or values.shape[-1] != d or values.size == 0:
        raise ValueError(f"missing has shape {values.shape}: give rows of {d} features, or {d} probabilities.")
    if values.ndim == 1:
        if not ((values >= 0) & (values <= 1)).all():
            raise ValueError("The probabilities in missing must be between 0 and 1.")
        return MissingLaw("independent of each other and of X, as given", rates=values)
    if not np.isin(values, (0.0, 1.0)).all():
        raise ValueError("missing must be a matrix of 0 and 1, such as isnan(X).")
    table = PatternTable.of(values)
    text = f"that of the {len(values)} rows, an estimate for others"
    patterns = np.asarray(table.patterns, dtype=float)
    return MissingLaw(text, patterns=patterns, probabilities=table.weights / len(values))
