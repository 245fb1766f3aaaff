"""Mechanisms that make values missing.

A mechanism is called with a full matrix and a random state and returns the 0/1 matrix M of what is missing. It never
sees the target.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from admiss.patterns import BoolArray, FloatArray

Mechanism = Callable[[FloatArray, np.random.RandomState], BoolArray]


@dataclass(frozen=True)
class CompletelyAtRandom:
    """M_ij ~ Bernoulli(fraction), independently (MCAR)."""

    fraction: float

    def __call__(self, X: FloatArray, random_state: np.random.RandomState) -> BoolArray:
        return random_state.uniform(size=X.shape) < self.fraction


@dataclass(frozen=True)
class Censoring:
    """M_ij = 1 where X_ij is among the largest values of its column, a share ``fraction`` of them (NMAR)."""

    fraction: float

    def __call__(self, X: FloatArray, random_state: np.random.RandomState) -> BoolArray:
        limit = np.quantile(X, 1.0 - self.fraction, axis=0)
        return np.asarray(X > limit)


MECHANISMS: dict[str, type[CompletelyAtRandom] | type[Censoring]] = {
    "mcar": CompletelyAtRandom,
    "censoring": Censoring,
}


def resolve_mechanism(mechanism: str | Mechanism, fraction: float) -> Mechanism:
    """The mechanism of a name at a missing fraction, or the callable itself.

    Examples
    --------
    >>> resolve_mechanism("mcar", 0.3)
    CompletelyAtRandom(fraction=0.3)
    """
    if not isinstance(mechanism, str):
        return mechanism
    if mechanism not in MECHANISMS:
        known = ", ".join(map(repr, MECHANISMS))
        raise ValueError(f"Unknown mechanism {mechanism!r}: choose one of {known}, or pass a callable.")
    if not 0 <= fraction <= 1:
        raise ValueError(f"missing_fraction must be between 0 and 1, not {fraction!r}.")
    return MECHANISMS[mechanism](fraction)
