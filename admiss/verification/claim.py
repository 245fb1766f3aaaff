"""What is claimed about which rows, what is computed again for it, and the outcome of the comparison."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import inf, nextafter
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from admiss.estimator.validation import read_samples
from formulations.arrays import FloatArray


class NotCoveredError(Exception):
    """A claim that is outside what can be re-proven here; the message says why."""


class RejectedError(Exception):
    """A claim that is false or does not fit the data; the message says which."""


@dataclass(frozen=True)
class Verification:
    """Whether everything that a certificate states has been proven again.

    Attributes
    ----------
    verified : bool
    lines : tuple of str
        The statements that were proven, in words.
    reason : str
        Why the certificate is not verified; empty if it is.
    objective : (float, float), optional
        Enclosure of the objective of the model, rounded to floats.
    optimum : (float, float), optional
        Enclosure of the optimum as far as it was proven.
    seconds : float

    Examples
    --------
    >>> print(Verification(False, ("the model costs 2",), "the bound 3 is above the optimum", (2.0, 2.0), None, 0.1))
    not verified: the bound 3 is above the optimum
      the model costs 2
      0.1 s
    """

    verified: bool
    lines: tuple[str, ...]
    reason: str = ""
    objective: tuple[float, float] | None = None
    optimum: tuple[float, float] | None = None
    seconds: float = 0.0

    def __bool__(self) -> bool:
        return self.verified

    def __str__(self) -> str:
        head = "verified" if self.verified else f"not verified: {self.reason}"
        return "\n  ".join([head, *self.lines, f"{self.seconds:.2g} s"])


@dataclass(frozen=True)
class Recomputed:
    """Primal and dual of the program of a certificate, computed again.

    Attributes
    ----------
    value : (Fraction, Fraction)
        Enclosure of the value of the solution.
    below, above : Fraction
        By how much a stated objective may leave the enclosure.
    gap : Fraction
        Largest gap of an optimal solution.
    optimum : callable
        A proven lower bound on the optimum, for a stated one: it need not be above that.
    lines : tuple of str
        What else was proven.
    """

    value: tuple[Fraction, Fraction]
    below: Fraction
    above: Fraction
    gap: Fraction
    optimum: Callable[[Fraction], Fraction]
    lines: tuple[str, ...]


def require(holds: bool, otherwise: str) -> None:
    """Reject the claim if a condition fails.

    Examples
    --------
    >>> require(1 < 2, "1 is not less than 2")
    """
    if not holds:
        raise RejectedError(otherwise)


def as_float(value: Fraction, upwards: bool = False) -> float:
    """The float next to a rational number, not above it (or not below it).

    Examples
    --------
    >>> as_float(Fraction(1, 3)) < Fraction(1, 3) < as_float(Fraction(1, 3), upwards=True)
    True
    """
    near = float(value)
    if upwards:
        return near if Fraction(near) >= value else nextafter(near, inf)
    return near if Fraction(near) <= value else nextafter(near, -inf)


@dataclass(frozen=True)
class Rows:
    """Rows of positive weight: features with NaN, targets of shape (n, outputs), weights."""

    X: FloatArray
    y: FloatArray
    s: FloatArray


class _Reader(BaseEstimator):
    """Stands for the estimator in messages about the data."""

    def __init__(self, class_weight: Any = None) -> None:
        self.class_weight = class_weight


def read_rows(program: Mapping[str, Any], X: Any, y: Any, sample_weight: Any) -> Rows:
    """The rows of positive weight, as the fit has read them."""
    weights = program.get("class_weight")
    reader = _Reader(dict(weights) if isinstance(weights, list) else weights)
    samples = read_samples(reader, X, y, sample_weight, task=program["task"]).of_positive_weight()
    return Rows(samples.X, np.column_stack(samples.targets), samples.s)


def check_coordinates(rows: Rows, centre: FloatArray, scale: FloatArray, centred: bool, scaled: bool) -> FloatArray:
    """Reject origins that are not the means of the observed values (or 0), and scales that are not their deviations.

    Rounding errors are 1e-16 of the size of a feature; next to a constant, they decide whether it is one. Returned are
    the deviations, or the sizes of features that are all but constant.
    """
    require(scale.shape == centre.shape == (rows.X.shape[1],), "the number of features is not that of the model")
    require(centred or bool(np.all(centre == 0.0)), "features are centred, although the settings say that they are not")
    require(scaled or bool(np.all(scale == 1.0)), "features are scaled, although the settings say that they are not")
    spread = np.ones(len(scale))
    for j, (x, origin, divisor) in enumerate(zip(rows.X.T, centre, scale, strict=True)):
        observed = ~np.isnan(x)
        if not observed.any():
            continue
        size = float(np.abs(x[observed]).max()) or 1.0
        unit = x[observed] / size
        weight = rows.s[observed] / rows.s[observed].sum()
        mean = float(weight @ unit)
        deviation = float(np.sqrt(weight @ (unit - mean) ** 2))
        is_mean = abs(origin / size - mean) <= 1e-9 * deviation + 1e-14
        require(not centred or is_mean, "a feature is not centred at the mean of its observed values")
        is_deviation = abs(divisor / size - deviation) <= 1e-9 * deviation + 1e-14 and deviation > 1e-13
        is_scale = is_deviation or (deviation < 1e-11 and divisor == size)
        require(not scaled or is_scale, "a feature is not scaled by the standard deviation of its observed values")
        spread[j] = size * (deviation if deviation > 1e-12 else 1.0)
    return spread
