"""What a convex loss l(y, z) provides: its value, derivatives in z, conjugate, and behaviour under changes of units."""

from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass, is_dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from formulations.arrays import FloatArray
from formulations.certificate import plain_value

if TYPE_CHECKING:
    import cvxpy as cp


class Loss(ABC):
    """A convex loss; see the table in :mod:`formulations.losses`.

    A loss of one's own is one of y - z, unless it says ``of_residual = False``: fits centre y, and replace it by
    residuals. It implements ``value``, ``total`` and ``conjugate_inside``, and ``domain`` if the conjugate is not
    finite everywhere. Smooth ones have ``derivative``, ``curvature`` and ``largest_curvature``, or say
    ``smooth = False``.

    Examples
    --------
    >>> class Expectile(Loss):  # squared errors, of which those above z count 4 times
    ...     smooth = False
    ...
    ...     def value(self, y, z):
    ...         return np.where(y > z, 0.8, 0.2) * (y - z) ** 2
    ...
    ...     def total(self, y, z, q):
    ...         import cvxpy as cp
    ...
    ...         return q @ (0.8 * cp.square(cp.pos(y - z)) + 0.2 * cp.square(cp.neg(y - z)))
    ...
    ...     def conjugate_inside(self, y, t):
    ...         return t * y + t**2 / (4 * np.where(t < 0, 0.8, 0.2))
    >>> y, z, t = np.array([[1.0, 2.0], [3.0, 1.0], [-3.2, 0.4]])
    >>> (Expectile().value(y, z) + Expectile().conjugate(y, t) >= t * z).tolist()  # by the definition of l*
    [True, True]
    """

    task: ClassVar[str] = "regression"
    smooth: ClassVar[bool] = True
    # Whether l depends on y - z alone. Otherwise |l'''| <= l'' in z, and the loss has ``dual_slope`` and the like.
    of_residual: ClassVar[bool] = True
    largest_curvature: ClassVar[float] = 2.0
    # The c of a conjugate t y + c t^2 / 2; None if it is not of this form, or not known to be.
    conjugate_curvature: ClassVar[float | None] = None

    @abstractmethod
    def total(self, y: FloatArray, z: "cp.Expression", q: FloatArray) -> "cp.Expression":
        """The risk sum_i q_i l(y_i, z_i) as a cvxpy expression."""

    @abstractmethod
    def value(self, y: FloatArray, z: FloatArray) -> FloatArray:
        """l(y, z), row by row."""

    @abstractmethod
    def conjugate_inside(self, y: FloatArray, t: FloatArray) -> FloatArray:
        """l*(t), row by row, for t within the domain."""

    def conjugate(self, y: FloatArray, t: FloatArray) -> FloatArray:
        """l*(t), row by row; infinite outside its domain."""
        low, high = self.domain(y)
        return np.where((t < low) | (t > high), np.inf, self.conjugate_inside(y, np.clip(t, low, high)))

    def domain(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Smallest and largest t with a finite conjugate."""
        return np.full_like(y, -np.inf), np.full_like(y, np.inf)

    def derivative(self, y: FloatArray, z: FloatArray) -> FloatArray:
        """dl/dz, row by row; smooth losses only."""
        raise TypeError(f"{self} has no derivative everywhere")

    def curvature(self, y: FloatArray, z: FloatArray) -> FloatArray:
        """d2l/dz2, row by row; smooth losses only."""
        raise TypeError(f"{self} has no second derivative everywhere")

    def dual_slope(self, y: FloatArray, t: FloatArray) -> FloatArray:
        """The z with l'(y, z) = t, the derivative of the conjugate, up to rounding."""
        raise TypeError(f"{self} is a function of y - z")

    def dual_curvature(self, y: FloatArray, t: FloatArray) -> FloatArray:
        """The second derivative of the loss at that z, up to rounding."""
        raise TypeError(f"{self} is a function of y - z")

    def conjugate_size(self, y: FloatArray, t: FloatArray) -> FloatArray:
        """What the rounding error of the conjugate is relative to, for y that is rounded too."""
        raise TypeError(f"{self} is a function of y - z")

    def weight_of(self, exposure: FloatArray) -> FloatArray:
        """The factors of the weights in the risk of rows whose targets are per unit of this exposure."""
        raise TypeError(f"{self} takes no exposure")

    def in_units(self, sigma: float) -> tuple["Loss", float]:
        """The loss l' and the factor c with l(sigma y, sigma z) = c l'(y, z)."""
        return (self if sigma == 1.0 else InUnits(self, sigma)), 1.0

    def description(self) -> dict[str, Any]:
        """Name and parameters in plain values.

        Examples
        --------
        >>> from formulations.losses import Huber
        >>> Huber().description()
        {'name': 'Huber', 'delta': 1.0}
        """
        parameters: dict[str, Any] = asdict(self) if is_dataclass(self) else {}
        return {"name": type(self).__name__} | {name: plain_value(value) for name, value in parameters.items()}


@dataclass(frozen=True)
class InUnits(Loss):
    """l(sigma y, sigma z), for losses that do not say how they change with the units of y."""

    loss: Loss
    sigma: float

    @property
    def smooth(self) -> bool:  # type: ignore[override]
        return self.loss.smooth

    @property
    def largest_curvature(self) -> float:  # type: ignore[override]
        return self.sigma**2 * self.loss.largest_curvature

    @property
    def conjugate_curvature(self) -> float | None:  # type: ignore[override]
        c = self.loss.conjugate_curvature
        return None if c is None else c / self.sigma**2

    def total(self, y: FloatArray, z: "cp.Expression", q: FloatArray) -> "cp.Expression":
        return self.loss.total(self.sigma * y, self.sigma * z, q)

    def value(self, y: FloatArray, z: FloatArray) -> FloatArray:
        return self.loss.value(self.sigma * y, self.sigma * z)

    def domain(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        low, high = self.loss.domain(self.sigma * y)
        return self.sigma * low, self.sigma * high

    def conjugate_inside(self, y: FloatArray, t: FloatArray) -> FloatArray:
        return self.loss.conjugate_inside(self.sigma * y, t / self.sigma)

    def derivative(self, y: FloatArray, z: FloatArray) -> FloatArray:
        return self.sigma * self.loss.derivative(self.sigma * y, self.sigma * z)

    def curvature(self, y: FloatArray, z: FloatArray) -> FloatArray:
        return self.sigma**2 * self.loss.curvature(self.sigma * y, self.sigma * z)
