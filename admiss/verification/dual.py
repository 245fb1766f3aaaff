"""Value and dual bound of a penalised empirical risk, enclosed in balls.

    P(w) = sum_i q_i l(y_i, a_i'w) + sum_k l1_k |w_k| + l2_k w_k^2 / 2,         q_i = s_i / sum s

For every t in the domain of the conjugate l* with  v_k = sum_i q_i t_i a_ik = 0  for the columns without penalty,

    min P  >=  - sum_i q_i l*(y_i, t_i) - sum_k (|v_k| - l1_k)_+^2 / (2 l2_k),

where l2_k = 0 requires |v_k| <= l1_k. This is the bound of :mod:`formulations.erm.dual_bound` with theta_i = q_i t_i,
and so is the feasible point: tau (t - d (A_J c)), where  (A_J' Q D A_J) c = A_J' Q t - v_J  gives the columns J the
values v_J, and tau <= 1 is as large as the conditions of the others and the domain allow. The weights d_i are 1, or
u (1 - u) for the logistic loss, and 0 where t_i = 0. First J has the columns without penalty, then also those whose
penalty is too weak for the rounding of t. There Delta = d (A_J c) is bounded; here c is solved for in balls, which hold
the exact solution, so that the equations hold exactly for a point in the balls. A v_k that is that of an optimum up to
the rounding of t is sought as such. Columns of J that depend on those before them in the rows with t_i != 0, over the
integers, are left out: one without penalty has the value 0 as they do.

Integers: A = N 2^-e by columns, t = T 2^-e_t, d = D 2^-e_d, s = R 2^-e_s. With C the solution of
N_J' diag(R D) N_J C = N_J' diag(R) T - (the values v_J), the point is 2^-e_t (T - D (N_J C)).

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

from admiss.verification.claim import NotCoveredError
from admiss.verification.exact import PRECISION, Integers, ends_of, independent_columns, integers_of
from formulations.arrays import BoolArray, FloatArray, IntArray
from formulations.erm.dual_bound import lacks_room
from formulations.erm.dual_rows import Rows
from formulations.erm.risk import EmpiricalRisk
from formulations.log_link import LogLink
from formulations.losses import LOSSES, Absolute, Huber, Logistic, Loss, Quantile, Squared


def stated_loss(description: Mapping[str, Any]) -> Loss:
    """The loss of a name and its parameters."""
    if description["name"].lower() not in LOSSES or issubclass(LOSSES[description["name"].lower()], LogLink):
        raise NotCoveredError(f"models with the loss {description['name']} are not verified")
    return LOSSES[description["name"].lower()](**{key: part for key, part in description.items() if key != "name"})


@dataclass(frozen=True)
class PenalisedRisk:
    """Data of the program in doubles, which count as exact."""

    A: FloatArray
    y: FloatArray
    s: FloatArray
    l1: FloatArray
    l2: FloatArray
    loss: Loss

    @property
    def risk(self) -> EmpiricalRisk:
        """The risk up to the rounding of q."""
        return EmpiricalRisk(self.A, self.y, self.s / self.s.sum(), self.loss)

    @property
    def is_free(self) -> BoolArray:
        """Columns without penalty."""
        return np.asarray((self.l1 == 0) & (self.l2 == 0))

    @cached_property
    def _integers(self) -> Integers:
        return integers_of(self.A)

    def _columns(self, chosen: IntArray, weights: list[int]) -> fmpz_mat:
        """Some columns as integers, times a number per row."""
        n, width = self._integers.shape
        indices = chosen.tolist()
        numbers = self._integers.numbers
        entries = [numbers[i * width + j] * weights[i] for i in range(n) for j in indices]
        return fmpz_mat(n, len(indices), entries)

    def value(self, w: FloatArray) -> tuple[Fraction, Fraction]:
        """Enclosure of P(w)."""
        with flint.ctx.workprec(PRECISION):
            scaled = [arb(v) * _power(-e) for v, e in zip(w.tolist(), self._integers.exponents, strict=True)]
            z = [arb(0)] * len(self.y)
            if len(w):
                z = (arb_mat(self._integers.matrix()) * arb_mat(len(w), 1, scaled)).entries()
            losses = [_value(self.loss, y, part) for y, part in zip(self.y.tolist(), z, strict=True)]
            total = _weighted_mean(losses, integers_of(self.s[:, None]))
            for a, b, v in zip(self.l1.tolist(), self.l2.tolist(), w.tolist(), strict=True):
                total += arb(a) * abs(arb(v)) + arb(b) * arb(v) ** 2 / 2
            return ends_of(total)

    def bound(self, t: FloatArray, w: FloatArray, least_scale: float, objective: float | None = None) -> Fraction:
        """A lower bound on min P from a point t next to an optimal one; 0, as no loss is negative, if it gives none.

        ``w`` tells the values v_k at the optimum. J has the columns without penalty and, if the objective is given,
        those whose penalty is too weak for the rounding of t. A tau below ``least_scale`` is not allowed.
        """
        t = np.clip(t, *self.loss.domain(self.y))
        rows = Rows.of(self.risk)
        theta = rows.q * t
        u, error = self.A.T @ theta, rows.product_error(theta)
        met = self.is_free
        if objective is not None:
            met = met | lacks_room(u, error, self.l1, self.l2, objective)
        values = _values_to_meet(u, error, self.l1 + self.l2 * np.abs(w), w)
        with flint.ctx.workprec(PRECISION):
            try:
                bound = self._dual_value(t, np.where(met, values, np.nan), least_scale)
            except ZeroDivisionError:  # a singular system
                return Fraction(0)
            return max(Fraction(0), ends_of(bound)[0]) if bound.is_finite() else Fraction(0)

    def _dual_value(self, t: FloatArray, sought: FloatArray, least_scale: float) -> arb:
        """The bound of the module for t moved to the values sought, NaN for columns that are not in J."""
        R, T = integers_of(self.s[:, None]), integers_of(t[:, None])
        J = self._independent(t, sought)
        point = self._moved(t, sought, J, R, T)
        weighted = arb_mat(len(point), 1, [r * p for r, p in zip(R.numbers, point, strict=True)])
        products = (arb_mat(self._integers.matrix()).transpose() * weighted).entries() if len(sought) else []
        total = sum(R.numbers)
        v = [abs(part) * _power(-e) / total for part, e in zip(products, self._integers.exponents, strict=True)]
        for k in J.tolist():
            v[k] = arb(abs(float(sought[k])))
        for k in np.flatnonzero(self.is_free).tolist():
            v[k] = arb(0)
        penalties = list(zip(v, self.l1.tolist(), self.l2.tolist(), strict=True))
        hard = [(part, arb(a)) for part, a, b in penalties if b == 0]
        tau = _scale_within(hard + [_in_domain(self.loss, part) for part in point])
        if tau < least_scale:
            return arb.neg_inf()
        conjugates = [_conjugate(self.loss, y, tau * part) for y, part in zip(self.y.tolist(), point, strict=True)]
        bound = -_weighted_mean(conjugates, R)
        for part, a, b in penalties:
            if b > 0:
                excess = (tau * part - arb(a)).upper()
                if excess > 0:
                    bound -= excess**2 / (2 * arb(b))
        return bound

    def _independent(self, t: FloatArray, sought: FloatArray) -> IntArray:
        """Columns of J of which the others are combinations where t is not 0; those without penalty come first."""
        is_sought = ~np.isnan(sought)
        J = np.concatenate([np.flatnonzero(self.is_free), np.flatnonzero(is_sought & ~self.is_free)])
        if not len(J):
            return J
        N = self._columns(J, (t != 0).astype(int).tolist())
        return J[independent_columns(N.transpose() * N)]

    def _moved(self, t: FloatArray, sought: FloatArray, J: IntArray, R: Integers, T: Integers) -> list[arb]:
        """The point with the values sought."""
        unit = _power(-T.exponents[0])
        if not len(J):
            return [arb(number) * unit for number in T.numbers]
        ones = [1] * len(t)
        d = np.abs(t) * (1.0 - np.abs(t)) if isinstance(self.loss, Logistic) else (t != 0).astype(float)
        D = integers_of(d[:, None])
        rows = self._columns(J, ones)
        left = self._columns(J, [r * n for r, n in zip(R.numbers, D.numbers, strict=True)])
        right = fmpz_mat(len(t), 1, [r * n for r, n in zip(R.numbers, T.numbers, strict=True)])
        total, e = sum(R.numbers), self._integers.exponents
        values = [arb(float(sought[k])) * total * _power(e[k] + T.exponents[0]) for k in J.tolist()]
        difference = arb_mat(rows.transpose() * right) - arb_mat(len(values), 1, values)
        moves = (arb_mat(rows) * arb_mat(left.transpose() * rows).solve(difference)).entries()
        return [(arb(a) - b * m) * unit for a, b, m in zip(T.numbers, D.numbers, moves, strict=True)]


def _values_to_meet(u: FloatArray, error: FloatArray, limits: FloatArray, w: FloatArray) -> FloatArray:
    """The v_k of columns of J: u_k within its limits, or what it is at the optimum if u_k is that up to its error."""
    at_optimum = -np.sign(w) * limits
    is_near = (w != 0) & (np.abs(u - at_optimum) <= error)
    return np.where(is_near, at_optimum, np.clip(u, -limits, limits))


def _value(loss: Loss, y: float, z: arb) -> arb:
    """l(y, z)."""
    r = y - z
    if isinstance(loss, Logistic):
        return (1 + (-y * z).exp()).log()
    if isinstance(loss, Squared):
        return r * r
    if isinstance(loss, Absolute):
        return abs(r)
    if isinstance(loss, Quantile):
        return (arb(loss.level) * r).max((arb(loss.level) - 1) * r)
    assert isinstance(loss, Huber)
    inside = abs(r).min(arb(loss.delta))  # inside^2 + 2 delta (|r| - inside)
    return inside * inside + 2 * arb(loss.delta) * (abs(r) - inside)


def _conjugate(loss: Loss, y: float, t: arb) -> arb:
    """l*(t) for t in the domain; infinite if u may lie outside of it."""
    if isinstance(loss, Logistic):
        return _entropy(-y * t) + _entropy(1 + y * t)
    return t * (y + t / 4) if isinstance(loss, Squared | Huber) else t * y


def _entropy(u: arb) -> arb:
    if u.is_zero():
        return arb(0)
    return u * u.log() if u > 0 else arb.pos_inf()


def _in_domain(loss: Loss, t: arb) -> tuple[arb, arb]:
    """|t|, and the end of the domain on its side, if the domain of the loss has two."""
    if isinstance(loss, Absolute):
        return abs(t), arb(1)
    if isinstance(loss, Huber):
        return abs(t), 2 * arb(loss.delta)
    if isinstance(loss, Quantile):
        level = arb(loss.level)
        end = 1 - level if t > 0 else level if t < 0 else level.min(1 - level)
        return abs(t), end
    return arb(0), arb(1)


def _scale_within(parts: list[tuple[arb, arb]]) -> float:
    """A tau <= 1 with tau times each part at most its limit; 0 if a part is not finite."""
    tau = 1.0
    for part, limit in parts:
        if not part.is_finite():
            return 0.0
        while not tau * part <= limit:
            tau = min(np.nextafter(tau, 0.0), float(np.nextafter(float((limit / part.upper()).lower()), 0.0)))
    return tau


def _power(exponent: int) -> arb:
    return arb((1, exponent))


def _weighted_mean(parts: list[arb], R: Integers) -> arb:
    return sum((part * r for part, r in zip(parts, R.numbers, strict=True)), arb(0)) / sum(R.numbers)
