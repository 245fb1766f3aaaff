"""Value and dual bound of a penalised empirical risk, enclosed in balls.

    P(w) = sum_i q_i l(y_i, a_i'w) + sum_k l1_k |w_k| + l2_k w_k^2 / 2,         q_i = s_i / sum s

For every t in the domain of the conjugate l* with  sum_i q_i t_i a_ik = 0  for the columns k in F without penalty,

    min P  >=  - sum_i q_i l*(y_i, t_i) - sum_k (|v_k| - l1_k)_+^2 / (2 l2_k),      v_k = sum_i q_i t_i a_ik,

where l2_k = 0 requires |v_k| <= l1_k. A given t is made feasible: with weights d_i >= 0 that are 0 at the edges of the
domain, t - d (A_F c) satisfies the equations if (A_F' Q D A_F) c = A_F' Q t. The exact solution c lies in the balls of
python-flint, so the equations hold exactly for a point inside the balls of t - d (A_F c). The same equations move v_k
to other values, such as l1_k for columns with l2_k = 0 and w_k != 0. The point is then multiplied by tau <= 1 for the
conditions |v_k| <= l1_k of the others.

Integers: A = N 2^-e by columns, t = T 2^-e_t, d = D 2^-e_d, s = R 2^-e_s. With C the solution of
N_F' diag(R D) N_F C = N_F' diag(R) T - (the values sought), the feasible point is 2^-e_t (T - D (N_F C)).

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
from fractions import Fraction
from functools import cached_property
from typing import Any

import flint
import numpy as np
from flint import arb, arb_mat, fmpz_mat
from scipy.special import expit

from admiss.verification.integers import Integers, integers_of
from admiss.verification.leaf_costs import independent_columns
from admiss.verification.result import NotCoveredError, RejectedError
from formulations.arrays import FloatArray, IntArray
from formulations.losses import LOSSES

# Binary digits of balls, tried in turn until a bound is accurate to ACCURATE of them.
PRECISIONS = (320, 1280)
ACCURATE = 80
# Share of an l1 penalty next to which a value is sought: far above the rounding of the point, below all tolerances.
WEAK = 1e-9


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


@dataclass(frozen=True)
class PenalisedRisk:
    """Data of the program in doubles, which count as exact."""

    A: FloatArray
    y: FloatArray
    s: FloatArray
    l1: FloatArray
    l2: FloatArray
    loss: LossInBalls

    @cached_property
    def _integers(self) -> Integers:
        return integers_of(self.A)

    @cached_property
    def _matrix(self) -> fmpz_mat:
        return self._integers.matrix()

    def _columns(self, chosen: IntArray, weights: list[int] | None = None) -> fmpz_mat:
        """Some columns as integers, times a number per row."""
        if np.array_equal(chosen, np.arange(self.A.shape[1])) and (weights is None or set(weights) == {1}):
            return self._matrix
        (n, width), indices, numbers = self._integers.shape, chosen.tolist(), self._integers.numbers
        if indices != list(range(width)):
            numbers = [numbers[first + j] for first in range(0, n * width, width) for j in indices]
        if weights is not None:
            repeated = (weight for weight in weights for _ in indices)
            numbers = [number * weight for number, weight in zip(numbers, repeated, strict=True)]
        return fmpz_mat(n, len(indices), numbers)

    def value(self, w: FloatArray) -> tuple[Fraction, Fraction]:
        """Enclosure of P(w)."""
        with flint.ctx.workprec(PRECISIONS[0]):
            R = integers_of(self.s[:, None])
            scaled = [arb(v) * _power(-e) for v, e in zip(w.tolist(), self._integers.exponents, strict=True)]
            z = (arb_mat(self._matrix) * arb_mat(len(w), 1, scaled)).entries() if len(w) else [arb(0)] * len(self.y)
            risk = _weighted_mean([self.loss.value(y, part) for y, part in zip(self.y.tolist(), z, strict=True)], R)
            penalty = sum(
                (arb(a) * abs(arb(v)) + arb(b) * arb(v) ** 2 / 2 for a, b, v in zip(self.l1, self.l2, w, strict=True)),
                arb(0),
            )
            return _ends(risk + penalty)

    def bound(self, t: FloatArray, w: FloatArray, closely: bool = False) -> Fraction:
        """A lower bound on min P from a point that is made feasible.

        ``w`` tells which values v_k = -l1_k sign(w_k) - l2_k w_k an optimum would have. They are sought for columns
        with an l1 penalty only, or ``closely`` for all columns in use. Raises :class:`RejectedError` if the point
        cannot be made feasible.
        """
        in_use = (w != 0) & ((self.l1 > 0) | (self.l2 > 0)) & (closely | (self.l2 == 0))
        unpenalised = np.where((self.l1 == 0) & (self.l2 == 0), 0.0, np.nan)
        if in_use.any():
            try:
                return self._bound(t, np.where(in_use, -np.sign(w) * self.l1 - self.l2 * w, unpenalised))
            except RejectedError:
                pass
        return self._bound(t, unpenalised)

    def bound_of_weak(self, t: FloatArray, w: FloatArray) -> Fraction:
        """A lower bound on min P as :mod:`formulations.erm.dual_bound` has it, for columns whose penalty is weak.

        Sought are the values that these columns have, clipped to those of an optimum: with a small l2_k, or next to
        l1_k, their last digits would cost most of the bound.
        """
        v = self.A.T @ (self.s / self.s.sum() * t)
        limits = self.l1 + self.l2 * np.abs(w)
        clipped = np.clip(v, -limits, limits)
        is_free = limits == 0
        is_weak = ~is_free & (np.abs(v) > np.where(self.l2 == 0, self.l1 * (1.0 - WEAK), limits))
        # free columns come first: one that is left out depends on free ones, and has the value 0 as they have
        chosen = np.concatenate([np.flatnonzero(is_free), np.flatnonzero(is_weak)])
        N = self._columns(chosen)
        independent = chosen[independent_columns(N.transpose() * N)]
        sought = np.full(len(v), np.nan)
        sought[independent] = clipped[independent]
        return self._bound(t, sought)

    def _bound(self, t: FloatArray, sought: FloatArray) -> Fraction:
        """The bound from the point moved to given values v_k; NaN for those that are not given."""
        t = np.clip(t, *self.loss.domain(self.y))
        for precision in PRECISIONS:
            with flint.ctx.workprec(precision):
                try:
                    bound = self._dual_value(t, sought)
                except ZeroDivisionError:  # regular or not, more digits may tell
                    continue
                if not bound.is_finite() or bound.rel_accuracy_bits() >= ACCURATE or precision == PRECISIONS[-1]:
                    return _ends(bound)[0]
        raise RejectedError("the dual point cannot be made orthogonal to the columns without penalty")

    def _dual_value(self, t: FloatArray, sought: FloatArray) -> arb:
        R, T = integers_of(self.s[:, None]), integers_of(t[:, None])
        point = self._moved(t, sought, R, T)
        weighted = arb_mat(len(point), 1, [r * p for r, p in zip(R.numbers, point, strict=True)])
        products = (arb_mat(self._matrix.transpose()) * weighted).entries() if len(sought) else []
        unit, total = _power(-T.exponents[0]), sum(R.numbers)
        v = [
            abs(part) * _power(-e) * unit / total if np.isnan(value) else arb(abs(value))
            for part, e, value in zip(products, self._integers.exponents, sought.tolist(), strict=True)
        ]
        tau = self._shrink(v, sought)
        bound = -_weighted_mean(
            [self.loss.conjugate(y, tau * unit * p) for y, p in zip(self.y.tolist(), point, strict=True)], R
        )
        for part, a, b in zip(v, self.l1.tolist(), self.l2.tolist(), strict=True):
            if b > 0:
                excess = (tau * part - arb(a)).upper()
                if excess > 0:
                    bound -= excess**2 / (2 * arb(b))
        return bound

    def _moved(self, t: FloatArray, sought: FloatArray, R: Integers, T: Integers) -> list[arb]:
        """The point with the values sought, in units of T."""
        D = integers_of(self.loss.room(self.y, t)[:, None])
        chosen = self._movable(np.flatnonzero(~np.isnan(sought)), sought, D, T)
        if not len(chosen):
            return [arb(number) for number in T.numbers]
        rows = self._columns(chosen)
        left = self._columns(chosen, [r * n for r, n in zip(R.numbers, D.numbers, strict=True)])
        right = fmpz_mat(len(t), 1, [r * n for r, n in zip(R.numbers, T.numbers, strict=True)])
        total, e = sum(R.numbers), self._integers.exponents
        values = [arb(float(sought[k])) * total * _power(e[k] + T.exponents[0]) for k in chosen.tolist()]
        difference = arb_mat(rows.transpose() * right) - arb_mat(len(values), 1, values)
        moves = (arb_mat(rows) * arb_mat(left.transpose() * rows).solve(difference)).entries()
        return [arb(a) - b * m for a, b, m in zip(T.numbers, D.numbers, moves, strict=True)]

    def _movable(self, chosen: IntArray, sought: FloatArray, D: Integers, T: Integers) -> IntArray:
        """Columns whose values are to be reached; those that have them, or depend on others with value 0, are left out.

        A column that is 0 wherever the point can be moved has its value if the point is 0 there.
        """
        fixed = np.array([number == 0 for number in D.numbers])
        still = np.array([number == 0 for number in T.numbers]) & fixed
        settled = (sought[chosen] == 0) & ~np.any(self.A[~still][:, chosen] != 0, axis=0)
        chosen = chosen[~settled]
        if not len(chosen) or np.any(sought[chosen] != 0):
            return chosen
        N = self._columns(chosen)
        return chosen[independent_columns(N.transpose() * N)]

    def _shrink(self, v: list[arb], sought: FloatArray) -> arb:
        """A tau <= 1 that satisfies the conditions of columns with an l1 penalty only whose values are not given."""
        tau = 1.0
        hard = (self.l1 > 0) & (self.l2 == 0) & np.isnan(sought)
        for k in np.flatnonzero(hard).tolist():
            part, a = v[k], float(self.l1[k])
            if not part.is_finite():
                raise RejectedError("the dual point is not finite")
            while not tau * part <= arb(a):
                tau = min(np.nextafter(tau, 0.0), float(np.nextafter(float((arb(a) / part.upper()).lower()), 0.0)))
        return arb(tau)


def _power(exponent: int) -> arb:
    return arb((1, exponent))


def _weighted_mean(parts: list[arb], R: Integers) -> arb:
    return sum((part * r for part, r in zip(parts, R.numbers, strict=True)), arb(0)) / sum(R.numbers)


def _ends(ball: arb) -> tuple[Fraction, Fraction]:
    if not ball.is_finite():
        raise RejectedError("the dual point lies outside the domain of the conjugate loss")
    ends = []
    for end in (ball.lower(), ball.upper()):
        mantissa, exponent = (int(part) for part in end.man_exp())
        ends.append(Fraction(mantissa) * (Fraction(2) ** exponent))
    return ends[0], ends[1]


def _entropy(u: arb) -> arb:
    if u.is_zero():
        return arb(0)
    return u * u.log() if u > 0 else arb.pos_inf()
