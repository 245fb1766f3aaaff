"""Warnings that several estimators give."""

import warnings
from collections.abc import Iterable, Sequence


def tell_never_observed(names: Sequence[str], features: Iterable[int]) -> None:
    """Features that have no place in the model."""
    _tell("Never observed in training, and left out of the model", names, features)


def tell_never_missing(names: Sequence[str], features: Iterable[int]) -> None:
    """Features that are missing now and never were in training."""
    _tell("Never missing in training, and set to the training mean here", names, features)


def _tell(what: str, names: Sequence[str], features: Iterable[int]) -> None:
    listed = ", ".join(names[j] for j in features)
    if listed:
        warnings.warn(f"{what}: {listed}.", stacklevel=6)
