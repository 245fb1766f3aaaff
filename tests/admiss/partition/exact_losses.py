"""Leaf costs of the absolute, quantile and Huber losses, enclosed between a primal and a dual value.

They are  l(e) = max over t in [u, v] of  t e - m t^2 / 2,  e = y - z,  with m = 0, 0 and 1/2. With m > 0 such a loss is
differentiable, l'(e) = t(e) = clip(e / m, u, v), and the minimiser of

    F(b, w) = sum_i s_i l(y_i - b - w'a_i) + sum_k r_k w_k^2

solves linear equations once it is known which rows lie inside, u < e / m < v. Newton's method with exact line search
finds these rows for a large m and follows them to a tiny m; the equations are then solved in fractions. The t_i of the
solution are feasible for the dual of the original loss without any rounding, and give

    sum_i s_i (t_i y_i - m t_i^2 / 2) - sum_k r_k w_k^2  <=  c  <=  F(b, w)

with the m of the original loss on both sides.
"""

import numpy as np
from flint import arb, ctx, fmpq, fmpq_mat

from tests.admiss.partition.exact_leaves import LeafRows, fraction

# The last m, as a share of the spread of y, and the factor between two.
SHARPEST = fmpq(1, 1 << 150)
SHARPER = fmpq(1, 1 << 8)
# Bits to which iterates are rounded.
WORKING_BITS = 350


def column(values):
    return fmpq_mat([[value] for value in values])


class PiecewiseLeaves(LeafRows):
    """Costs of a loss that is linear beyond the slopes u and v; ``m`` is as in the module docstring."""

    slopes = fmpq(-1), fmpq(1)
    m = fmpq(0)

    def size_of_costs(self):
        total = sum((fraction(s) for s in self.s), fmpq(0))
        return total * (fraction(np.ptp(self.y)) or fmpq(1))

    def enclosed(self, mask):
        with ctx.workprec(WORKING_BITS):
            low, high = PiecewiseLeaf(self, mask).enclosure()
        unit = fmpq(2) ** self.shift
        return int((low * unit).floor()), int((high * unit).ceil())


class AbsoluteLeaves(PiecewiseLeaves):
    """|e|."""


class QuantileLeaves(PiecewiseLeaves):
    """max{e / 2, -e / 2}."""

    slopes = fmpq(-1, 2), fmpq(1, 2)


class HuberLeaves(PiecewiseLeaves):
    """e^2 up to 1, then 2 |e| - 1."""

    slopes = fmpq(-2), fmpq(2)
    m = fmpq(1, 2)


class PiecewiseLeaf:
    """One leaf: rows as fractions, independent columns only if there is no ridge."""

    def __init__(self, leaves, mask):
        rows = leaves.rows_of(mask)
        Z = fmpq_mat([[fmpq(1), *map(fraction, row)] for row in leaves.A[rows]])
        self.s = [fraction(s) for s in leaves.s[rows]]
        self.y = [fraction(y) for y in leaves.y[rows]]
        self.r = [fraction(ridge) * (sum(self.s) if leaves.per_sample else 1) for ridge in leaves.ridges]
        if not any(self.r):
            Z = _independent(Z)
            self.r = self.r[: Z.ncols() - 1]
        self.Z, self.n, self.k = Z, Z.nrows(), Z.ncols()
        (self.u, self.v), self.m = leaves.slopes, leaves.m
        weighted = fmpq_mat([[s * Z[i, j] for j in range(self.k)] for i, s in enumerate(self.s)])
        self.gram = weighted.transpose() * Z
        self.spread = max(self.y) - min(self.y)

    def enclosure(self):
        """Lower and upper end of the cost."""
        if not self.spread:
            return fmpq(0), fmpq(0)
        m, sharpest = max(self.m, self.spread), self.m or self.spread * SHARPEST
        beta = column([fmpq(0)] * self.k)
        while True:
            beta = self.minimise(m, beta)
            sides = self.sides(m, beta)
            exact = self.solve(sharpest, sides, beta)
            if exact is not None and self.fits(sharpest, exact, sides):
                return self.values(sharpest, exact)
            assert m > sharpest, "the minimiser was not found"
            m = max(m * SHARPER, sharpest)

    def residuals(self, beta):
        fit = self.Z * beta
        return [y - fit[i, 0] for i, y in enumerate(self.y)]

    def sides(self, m, beta):
        """Rows inside, and the slope of each other row."""
        inside, outer = [], {}
        for i, e in enumerate(self.residuals(beta)):
            if self.u * m < e < self.v * m:
                inside.append(i)
            else:
                outer[i] = self.v if e > 0 else self.u
        return inside, outer

    def fits(self, m, beta, sides):
        """Whether all rows are on these sides, or between two of them."""
        e, (inside, outer) = self.residuals(beta), sides
        return all(self.u * m <= e[i] <= self.v * m for i in inside) and all(
            e[i] >= self.v * m if t == self.v else e[i] <= self.u * m for i, t in outer.items()
        )

    def equations(self, m, sides):
        """Matrix and right-hand side of the equations for the minimiser, given the sides."""
        inside, outer = sides
        H, g = fmpq_mat(self.k, self.k), fmpq_mat(self.k, 1)
        if inside:
            Z = fmpq_mat([[self.Z[i, j] for j in range(self.k)] for i in inside])
            weighted = fmpq_mat([[self.s[i] / m * self.Z[i, j] for j in range(self.k)] for i in inside])
            H, g = weighted.transpose() * Z, weighted.transpose() * column([self.y[i] for i in inside])
        if outer:
            Z = fmpq_mat([[self.Z[i, j] for j in range(self.k)] for i in outer])
            g += Z.transpose() * column([self.s[i] * t for i, t in outer.items()])
        for j in range(1, self.k):
            H[j, j] += 2 * self.r[j - 1]
        return H, g

    def solve(self, m, sides, near):
        """The solution of the equations, near a point if there are several; None if there is none."""
        H, g = self.equations(m, sides)
        if H.det() != 0:
            return H.solve(g)
        slope = g - H * near
        R, rank = fmpq_mat([[*(H[i, j] for j in range(self.k)), slope[i, 0]] for i in range(self.k)]).rref()
        pivots = [next(j for j in range(self.k + 1) if R[i, j]) for i in range(rank)]
        if self.k in pivots:
            return None
        step = dict(zip(pivots, (R[i, self.k] for i in range(rank)), strict=True))
        return near + column([step.get(j, fmpq(0)) for j in range(self.k)])

    def minimise(self, m, beta):
        """The minimiser for this m, by Newton's method; a little short of it where iterates repeat by rounding."""
        seen = set()
        while tuple(beta.entries()) not in seen:
            seen.add(tuple(beta.entries()))
            sides = self.sides(m, beta)
            target = self.solve(m, sides, beta)
            if target is not None and self.fits(m, target, sides):
                return target
            step = self.flat_descent(m, sides) if target is None else target - beta
            beta = self.line_search(m, beta, step)
        return beta

    def flat_descent(self, m, sides):
        """The steepest descent among directions without curvature: no row inside leaves it, others may come inside."""
        H, g = self.equations(m, sides)
        R, rank = H.rref()
        pivots = [next(j for j in range(self.k) if R[i, j]) for i in range(rank)]
        free = [j for j in range(self.k) if j not in pivots]
        N = fmpq_mat(self.k, len(free))
        for c, j in enumerate(free):
            N[j, c] = 1
            for i, pivot in enumerate(pivots):
                N[pivot, c] = -R[i, j]
        return N * (N.transpose() * self.gram * N).solve(N.transpose() * g)

    def line_search(self, m, beta, step):
        """The minimiser on a line, in working precision: the derivative is piecewise linear and increasing."""
        e, q = map(working, self.residuals(beta)), map(working, (self.Z * step).entries())
        w, p = map(working, beta.entries()[1:]), list(map(working, step.entries()[1:]))
        r, (m, u, v) = [working(2 * ridge) for ridge in self.r], map(working, (m, self.u, self.v))
        square = sum((a * x * x for a, x in zip(r, p, strict=True)), arb(0))
        product = sum((a * x * z for a, x, z in zip(r, w, p, strict=True)), arb(0))
        rows = [(working(s) * b, a / m, b / m) for s, a, b in zip(self.s, e, q, strict=True) if b != 0]

        def derivative(alpha):
            value = product + alpha * square
            for size, a, b in rows:
                value -= size * min(max((a - alpha * b).mid(), u), v)
            return value.mid()

        at = sorted(((a - bound) / b).mid() for _, a, b in rows for bound in (u, v))
        at = [arb(0), *(alpha for alpha in at if alpha > 0)]
        first, last = 0, len(at)
        while last - first > 1:  # derivative(at[first]) <= 0 < derivative(at[last])
            middle = (first + last) // 2
            first, last = (middle, last) if derivative(at[middle]) <= 0 else (first, middle)
        end = at[last] if last < len(at) else at[first] + 1
        slope, next_slope = derivative(at[first]), derivative(end)
        alpha = at[first] if next_slope == slope else at[first] - slope * (end - at[first]) / (next_slope - slope)
        numerator, exponent = alpha.mid().man_exp()
        alpha = fmpq(numerator) * fmpq(2) ** int(exponent)
        return column([rounded(b + alpha * p) for b, p in zip(beta.entries(), step.entries(), strict=True)])

    def values(self, m, beta):
        """Dual and primal value."""
        penalty = sum((r * w * w for r, w in zip(self.r, beta.entries()[1:], strict=True)), fmpq(0))
        low, high = -penalty, penalty
        for s, y, e in zip(self.s, self.y, self.residuals(beta), strict=True):
            t = min(max(e / m, self.u), self.v)
            low += s * (t * y - self.m * t * t / 2)
            best = min(max(e / self.m, self.u), self.v) if self.m else (self.v if e > 0 else self.u)
            high += s * (best * e - self.m * best * best / 2)
        return low, high


def working(value):
    """A fraction as a number in working precision, without a radius."""
    return arb(value).mid()


def rounded(value):
    """A fraction to the working precision, as a fraction."""
    shift = WORKING_BITS - (int(value.p).bit_length() - int(value.q).bit_length())
    unit = fmpq(2) ** shift
    return fmpq((value * unit).floor()) / unit


def _independent(Z):
    """The leading independent columns."""
    R, rank = Z.rref()
    pivots = [next(j for j in range(Z.ncols()) if R[i, j]) for i in range(rank)]
    return fmpq_mat([[Z[i, j] for j in pivots] for i in range(Z.nrows())])
