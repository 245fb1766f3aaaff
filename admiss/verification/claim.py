"""What is claimed about which rows, and the outcome of its verification."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import inf, nextafter
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from admiss.estimator.evidence import data_digest
from admiss.estimator.labels import read_class_targets
from admiss.estimator.validation import read_features, read_regression_target, read_weights
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


@dataclass
class Proof:
    """What has been shown so far."""

    lines: list[str] = field(default_factory=list)
    objective: tuple[float, float] | None = None
    optimum: tuple[float, float] | None = None

    def add(self, line: str) -> None:
        """Add a statement that was proven."""
        self.lines.append(line)


def number(value: float) -> str:
    """A number for a sentence."""
    return f"{value:.10g}"


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


def read_rows(evidence: Mapping[str, Any], X: Any, y: Any, sample_weight: Any) -> Rows:
    """The rows, after a comparison of their digest with that of the certificate, if it has one."""
    program = evidence["program"]
    weights = program.get("class_weight")
    reader = _Reader(dict(weights) if isinstance(weights, list) else weights)
    features = read_features(reader, X, reset=True)
    if program["task"] == "classification":
        _, _, targets, s = read_class_targets(reader, y, features, sample_weight)
        target = np.column_stack(targets)
    else:
        target, s = read_regression_target(reader, y, len(features))[:, None], read_weights(sample_weight, features)
    used = s > 0
    if evidence["kind"] == "stack":  # weights have mean 1, and classes are indicators
        s = s / s[used].mean()
        target = _indicators(target) if program["task"] == "classification" else target
    rows = Rows(features[used], target[used], s[used])
    if "digest" in evidence:
        fits = evidence["digest"] == data_digest(program, rows.X, rows.y, rows.s)
        require(fits, "the data or the settings are not those of the certificate (their digest differs)")
    return rows


def _indicators(y: FloatArray) -> FloatArray:
    """Indicators of the classes from targets -1 and 1; two classes have one target."""
    positive = (y > 0).astype(float)
    return np.column_stack([1.0 - positive, positive]) if y.shape[1] == 1 else positive


def check_scale(X: FloatArray, s: FloatArray, scale: FloatArray, scaled: bool) -> None:
    """Reject scales that are not the standard deviations of the observed values (or 1); rounding is part of them."""
    if not scaled:
        require(bool(np.all(scale == 1.0)), "features are scaled, although the settings say that they are not")
        return
    for x, given in zip(X.T, scale, strict=True):
        observed = ~np.isnan(x)
        if not observed.any():
            continue
        size = float(np.abs(x[observed]).max()) or 1.0
        unit, weight = x[observed] / size, s[observed] / s[observed].sum()
        deviation = float(np.sqrt(weight @ (unit - weight @ unit) ** 2))
        # rounding errors are 1e-16 of the size; next to a constant, they decide whether it is one
        is_deviation = abs(given - size * deviation) <= (1e-9 * deviation + 1e-14) * size and deviation > 1e-13
        close = is_deviation or (deviation < 1e-11 and given == size)
        require(close, "a feature is not scaled by the standard deviation of its observed values")


def check_centre(X: FloatArray, s: FloatArray, centre: FloatArray, centred: bool) -> None:
    """Reject origins that are not the means of the observed values (or 0), up to 1e-9 of the deviation and rounding."""
    if not centred:
        require(bool(np.all(centre == 0.0)), "features are centred, although the settings say that they are not")
        return
    for x, given in zip(X.T, centre, strict=True):
        observed = ~np.isnan(x)
        if not observed.any():
            continue
        size = float(np.abs(x[observed]).max()) or 1.0
        unit, weight = x[observed] / size, s[observed] / s[observed].sum()
        mean = float(weight @ unit)
        deviation = float(np.sqrt(weight @ (unit - mean) ** 2))
        close = abs(given / size - mean) <= 1e-9 * deviation + 1e-14
        require(close, "a feature is not centred at the mean of its observed values")


def check_unit(X: FloatArray, centre: FloatArray, unit: FloatArray) -> None:
    """Reject units that are not powers of two, or by which features cannot be divided exactly."""
    powers = bool(np.all(np.frexp(unit)[0] == 0.5))
    moved = X - centre
    require(powers and np.array_equal(moved / unit * unit, moved, equal_nan=True), "a unit is not a power of two")
