"""Losses in balls: value, conjugate, domain of the conjugate, derivative (for a dual point), room inside the domain.

=========== =============================== ============================ ===================
loss        l(y, z), r = y - z              l*(t)                        domain of t
=========== =============================== ============================ ===================
Squared     r^2                             t y + t^2 / 4                all numbers
Huber       r^2, 2 delta |r| - delta^2      t y + t^2 / 4                [-2 delta, 2 delta]
Absolute    |r|                             t y                          [-1, 1]
Quantile    max{tau r, (tau - 1) r}         t y                          [-tau, 1 - tau]
Logistic    log(1 + exp(-y z))              u log u + (1-u) log(1-u)     u = -y t in [0, 1]
=========== =============================== ============================ ===================
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from flint import arb
from scipy.special import expit

from admiss.verification.result import NotCoveredError
from formulations.arrays import FloatArray
from formulations.losses import LOSSES


@dataclass(frozen=True)
class LossInBalls:
    """One loss of the table; ``parameter`` is delta or tau."""

    name: str
    parameter: float = 0.0

    @classmethod
    def of(cls, description: Mapping[str, Any]) -> "LossInBalls":
        """The loss of a name and its parameter."""
        if description["name"].lower() not in LOSSES:
            raise NotCoveredError(f"models with the loss {description['name']} are not verified")
        return cls(description["name"], float(description.get("delta", description.get("level", 0.0))))

    def value(self, y: float, z: arb) -> arb:
        """l(y, z)."""
        if self.name == "Logistic":
            return (1 + (-y * z).exp()).log()
        r, p = y - z, arb(self.parameter)
        if self.name == "Squared":
            return r * r
        if self.name == "Absolute":
            return abs(r)
        if self.name == "Quantile":
            return (p * r).max((p - 1) * r)
        inside = abs(r).min(p)  # Huber: inside^2 + 2 delta (|r| - inside)
        return inside * inside + 2 * p * (abs(r) - inside)

    def conjugate(self, y: float, t: arb) -> arb:
        """l*(t), infinite if t may lie outside the domain."""
        if self.name == "Logistic":
            u = -y * t
            return _entropy(u) + _entropy(1 - u)
        if self.name == "Squared":
            return t * (y + t / 4)
        low, high = (float(end[0]) for end in self.domain(np.array([y])))
        if not arb(low) <= t <= arb(high):
            return arb.pos_inf()
        return t * (y + t / 4) if self.name == "Huber" else t * y

    def domain(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Smallest and largest t with a finite conjugate."""
        if self.name == "Logistic":
            return np.minimum(-y, 0.0), np.maximum(-y, 0.0)
        p = self.parameter
        low, high = {"Absolute": (-1.0, 1.0), "Huber": (-2 * p, 2 * p), "Quantile": (-p, 1 - p)}.get(
            self.name, (-np.inf, np.inf)
        )
        return np.full_like(y, low), np.full_like(y, high)

    def room(self, y: FloatArray, t: FloatArray) -> FloatArray:
        """Weights with which t may be moved: 0 at the edges of the domain."""
        low, high = self.domain(y)
        return np.ones_like(t) if self.name == "Squared" else (t - low) * (high - t)

    def derivative(self, y: FloatArray, z: FloatArray) -> FloatArray | None:
        """dl/dz; None if it does not exist everywhere."""
        if self.name == "Logistic":
            return np.asarray(-y * expit(-y * z))
        if self.name == "Squared":
            return 2.0 * (z - y)
        return np.asarray(2.0 * np.clip(z - y, -self.parameter, self.parameter)) if self.name == "Huber" else None


def _entropy(u: arb) -> arb:
    if u.is_zero():
        return arb(0)
    return u * u.log() if u > 0 else arb.pos_inf()
