"""The outcome of a verification."""

from dataclasses import dataclass, field
from fractions import Fraction
from math import inf, nextafter


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
