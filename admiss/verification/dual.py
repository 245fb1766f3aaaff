"""Value and dual bound of a penalised empirical risk, enclosed in balls.

    P(w) = sum_i q_i l(y_i, a_i'w) + sum_k l1_k |w_k| + l2_k w_k^2 / 2,         q_i = s_i / sum s

For every t in the domain of the conjugate l* with  sum_i q_i t_i a_ik = 0  for the columns k in F without penalty,

    min P  >=  - sum_i q_i l*(y_i, t_i) - sum_k (|v_k| - l1_k)_+^2 / (2 l2_k),      v_k = sum_i q_i t_i a_ik,

where l2_k = 0 requires |v_k| <= l1_k. A given t is made feasible: with weights d_i >= 0 that are 0 at the edges of the
domain, t - d (A_F c) satisfies the equations if (A_F' Q D A_F) c = A_F' Q t. The exact solution c lies in the balls of
python-flint, so the equations hold exactly for a point inside the balls of t - d (A_F c). It is then multiplied by
tau <= 1 for the conditions |v_k| <= l1_k.

Integers: A = N 2^-e by columns, t = T 2^-e_t, d = D 2^-e_d, s = R 2^-e_s. With C the solution of
N_F' diag(R D) N_F C = N_F' diag(R) T, the feasible point is 2^-e_t (T - D (N_F C)).
"""

from dataclasses import dataclass
from fractions import Fraction

import flint
import numpy as np
from flint import arb, arb_mat, fmpz_mat

from admiss.verification.integers import Integers, integers_of
from admiss.verification.leaf_costs import independent_columns
from admiss.verification.losses import LossInBalls
from admiss.verification.result import RejectedError
from formulations.arrays import FloatArray, IntArray

PRECISION = 320


@dataclass(frozen=True)
class PenalisedRisk:
    """Data of the program in doubles, which count as exact."""

    A: FloatArray
    y: FloatArray
    s: FloatArray
    l1: FloatArray
    l2: FloatArray
    loss: LossInBalls

    def value(self, w: FloatArray) -> tuple[Fraction, Fraction]:
        """Enclosure of P(w)."""
        with flint.ctx.workprec(PRECISION):
            N, R = integers_of(self.A), integers_of(self.s[:, None])
            scaled = [arb(v) * _power(-e) for v, e in zip(w.tolist(), N.exponents, strict=True)]
            z = (arb_mat(N.matrix()) * arb_mat(len(w), 1, scaled)).entries() if len(w) else [arb(0)] * len(self.y)
            risk = _weighted_mean([self.loss.value(y, part) for y, part in zip(self.y.tolist(), z, strict=True)], R)
            penalty = sum(
                (arb(a) * abs(arb(v)) + arb(b) * arb(v) ** 2 / 2 for a, b, v in zip(self.l1, self.l2, w, strict=True)),
                arb(0),
            )
            return _ends(risk + penalty)

    def bound(self, t: FloatArray) -> Fraction:
        """A lower bound on min P from a point that is made feasible."""
        with flint.ctx.workprec(PRECISION):
            t = np.clip(t, *self.loss.domain(self.y))
            N, R, T = integers_of(self.A), integers_of(self.s[:, None]), integers_of(t[:, None])
            point = self._feasible(t, N, R, T)
            weighted = arb_mat(len(point), 1, [r * p for r, p in zip(R.numbers, point, strict=True)])
            products = (arb_mat(N.matrix().transpose()) * weighted).entries() if N.shape[1] else []
            unit, total = _power(-T.exponents[0]), sum(R.numbers)
            v = [abs(part) * _power(-e) * unit / total for part, e in zip(products, N.exponents, strict=True)]
            tau = self._shrink(v)
            conjugates = [self.loss.conjugate(y, tau * unit * p) for y, p in zip(self.y.tolist(), point, strict=True)]
            bound = -_weighted_mean(conjugates, R)
            for part, a, b in zip(v, self.l1.tolist(), self.l2.tolist(), strict=True):
                if b > 0:
                    excess = (tau * part - arb(a)).upper()
                    if excess > 0:
                        bound -= excess**2 / (2 * arb(b))
            return _ends(bound)[0]

    def _feasible(self, t: FloatArray, N: Integers, R: Integers, T: Integers) -> list[arb]:
        """The point that is orthogonal to the columns without penalty, in units of T."""
        unpenalised = np.flatnonzero((self.l1 == 0) & (self.l2 == 0))
        if not len(unpenalised):
            return [arb(number) for number in T.numbers]
        d = self.loss.room(self.y, t)
        chosen = self._independent(unpenalised, N, R)
        rows, D = fmpz_mat(*_columns(N, chosen)), integers_of(d[:, None])
        left = fmpz_mat(*_columns(N, chosen, [r * n for r, n in zip(R.numbers, D.numbers, strict=True)]))
        right = fmpz_mat(len(t), 1, [r * n for r, n in zip(R.numbers, T.numbers, strict=True)])
        try:
            C = arb_mat(left.transpose() * rows).solve(arb_mat(rows.transpose() * right))
        except ZeroDivisionError as error:
            raise RejectedError("the dual point cannot be made orthogonal to the columns without penalty") from error
        moved = (arb_mat(rows) * C).entries()
        return [arb(a) - b * m for a, b, m in zip(T.numbers, D.numbers, moved, strict=True)]

    def _independent(self, columns: IntArray, N: Integers, R: Integers) -> IntArray:
        """Columns on which the others depend on all rows."""
        everything = fmpz_mat(*_columns(N, columns, with_zero=True))
        weighted = fmpz_mat(*_columns(N, columns, R.numbers, with_zero=True))
        return columns[independent_columns(weighted.transpose() * everything)]

    def _shrink(self, v: list[arb]) -> arb:
        """The largest known tau <= 1 that satisfies the conditions of columns with an l1 penalty only."""
        tau = 1.0
        for part, a, b in zip(v, self.l1.tolist(), self.l2.tolist(), strict=True):
            while a > 0 and b == 0 and not tau * part <= arb(a):
                tau = min(np.nextafter(tau, 0.0), float(np.nextafter(float((arb(a) / part.upper()).lower()), 0.0)))
        return arb(tau)


def _columns(
    N: Integers, columns: IntArray, weights: list[int] | None = None, with_zero: bool = False
) -> tuple[int, int, list[int]]:
    """Shape and numbers of some columns, times a number per row, and possibly a column of zeros after them."""
    (n, width), chosen = N.shape, columns.tolist()
    factors = [1] * n if weights is None else weights
    zero = [0] if with_zero else []
    numbers = [number for i in range(n) for number in [*(N.numbers[i * width + j] * factors[i] for j in chosen), *zero]]
    return n, len(chosen) + len(zero), numbers


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
