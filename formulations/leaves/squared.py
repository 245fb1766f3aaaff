"""The cost of a leaf under squared loss, in closed form and with its interval.

A pattern is summarised by its Gram matrix of (1, a, y): Gram matrices add up over patterns, and the cost of a leaf is
the last pivot of one small Cholesky factorisation, see :mod:`formulations.leaves.cholesky`.

*Shift.* b absorbs constants: y, and every column without a 0, are shifted by their means over all rows. A column with
zeros is not, so that it is exactly 0 in leaves where the feature is missing.

*Scale.* Columns are divided by powers of 2, which is exact, so that their sums of squares over all rows are at most 1.
With a_j = unit_j a'_j and y = unit_y y', the ridge of column j becomes ridge d_j / unit_j^2, and costs are multiples of
unit_y^2. The program does not change.

*Interval.* The upper end is the value at the weights w of the leaf's model. With N_j the norm of column j plus that of
its mean, a residual computed in doubles is off by at most

    e = u (k + 8) (N_y + sum_j N_j |w_j|),      u = 2^-53

in norm. If that is not negligible, w is refined, and its value computed, in pairs of doubles
(:mod:`formulations.leaves.double_double`). So is the lower end unless that of the Gram matrix is as close: it resolves
columns that are collinear up to 1e-12 or so. Constant columns are left out, and so are columns that depend exactly on
others, which is shown row by row for coefficients that are small fractions. If neither settles the leaf, its lower end
is 0.
"""

import math
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

import numpy as np
import scipy.linalg

from formulations.arrays import BoolArray, FloatArray, IntArray
from formulations.leaves import double_double
from formulations.leaves.cholesky import BLOCK, ESTIMATE, LOWER, U, leaf_costs, write_grams
from formulations.leaves.cost import LeafCost, LeafModel, PatternRows
from formulations.leaves.subsets import count_sets
from formulations.losses import Squared
from formulations.rounding import UNIT, exact_sum

# Directions with a singular value below this share of the largest are left out of a leaf's model.
COLLINEAR = 1e-13
# A column whose spread in a leaf is below this share of its size does not vary there: that is the rounding of its mean.
CONSTANT = 64.0 * UNIT
# Smallest pivot of columns of norm 1 above which normal equations are accurate enough.
WELL_CONDITIONED = 1e-6
# Bytes of Gram matrices held in memory; with more patterns, matrices are computed from the rows when needed.
MOST_GRAMS = 5 * 10**8
# Bytes of Gram matrices that are added at once: these are temporary, beside those that are held or too many to hold.
ADDED = 10**7
# Widths of an interval that are negligible: relative to the cost, and to y'y.
NEGLIGIBLE, NOTHING = 1e-11, 1e-24
# A ridge above this, in units of a column, makes its weight 0.
OVERWHELMING = 1e100
# Largest denominator of the coefficients by which a column may depend on others.
DENOMINATOR = 12


class SquaredLeafCost(LeafCost):
    """Squared loss, in closed form."""

    def __init__(self, rows: PatternRows, ridge: float, ridge_scale: str = "leaf") -> None:
        super().__init__(rows, Squared(), ridge, ridge_scale)
        n, k = rows.A.shape
        self.size, self.length = k + 2, (k + 2) * (k + 3) // 2
        y, total, root = rows.y[:, 0], rows.s.sum(), np.sqrt(rows.s)[:, None]
        self.centre = np.where((rows.A == 0.0).any(axis=0), 0.0, rows.s @ rows.A / total)
        self.level = float(rows.s @ y / total)
        self.Z = np.empty((n, self.size))
        self.Z[:, 0], self.Z[:, 1:-1], self.Z[:, -1] = 1.0, rows.A - self.centre, y - self.level
        self.Z *= root
        with np.errstate(over="ignore"):
            norms = np.sqrt(np.einsum("ij,ij->j", self.Z, self.Z))
        if not (np.isfinite(norms).all() and (norms[norms > 0] > 1e-140).all()):  # squares overflow or underflow
            norms = np.abs(self.Z).max(axis=0) * np.sqrt(n)
        self.unit = np.ldexp(1.0, np.frexp(norms)[1])  # the next powers of 2 above, 1 for 0
        self.Z /= self.unit
        self._grams: list[FloatArray] = []  # shared by all ridges

    # What was subtracted from y.
    origin = 0.0
    # Error of the matrix of a pattern that does not shrink with it, in units of 2^-52.
    pattern_error = 1.0
    # Whether single patterns can be leaves.
    knows_patterns = True

    @property
    def grams(self) -> FloatArray:
        """The packed Gram matrix of every pattern, computed when first needed; none if they are not held."""
        if not self._grams:
            n_patterns = len(self.rows.patterns)
            held = 8 * n_patterns * self.length <= MOST_GRAMS
            self._grams.append(self._from_rows(np.arange(n_patterns if held else 0)))
        return self._grams[0]

    def _from_rows(self, members: IntArray) -> FloatArray:
        grams = np.empty((len(members), self.length))
        write_grams(self.Z, self.rows.start, members, grams, np.empty(self.length))
        return grams

    def sums_of_grams(self, inside: BoolArray | FloatArray, members: IntArray) -> FloatArray:
        """Sum of the packed Gram matrices of the patterns in each of several sets, without error.

        ``inside[k, i]`` is 1 if pattern ``members[i]`` is in set k, otherwise 0.
        """
        inside, total = np.asarray(inside, dtype=float), np.zeros((len(inside), self.length))
        at_once = max(1, ADDED // (8 * self.length))
        for begin in range(0, len(members), at_once):
            part = members[begin : begin + at_once]
            total += inside[:, begin : begin + at_once] @ (
                self.grams[part] if len(self.grams) else self._from_rows(part)
            )
        return total

    def gram(self, members: IntArray) -> FloatArray:
        """Packed Gram matrix of a leaf, of shape (1, length)."""
        return self.sums_of_grams(np.ones((1, len(members))), np.asarray(members))

    def pattern_grams(self) -> FloatArray:
        """Gram matrix of the shifted rows (1, a, y) of every pattern, in units in which all d_k are 1."""
        grams, unit = [self.Z[a:b].T @ self.Z[a:b] for a, b in pairwise(self.rows.start)], self.unit.copy()
        unit[1:-1] /= np.sqrt(self.ridge_weights)
        return np.asarray(np.array(grams) * np.outer(unit, unit))

    @property
    def scaled_ridge(self) -> FloatArray:
        """Ridge of every column of Z; per sample, it is to be multiplied by the first entry of a Gram matrix."""
        ridge = np.zeros(self.size)
        per = self.unit[0] ** 2 if self.ridge_scale == "sample" else 1.0
        with np.errstate(over="ignore"):
            ridge[1:-1] = np.minimum(self.ridge * self.ridge_weights * per / self.unit[1:-1] ** 2, OVERWHELMING)
        return ridge

    @property
    def share_of_error(self) -> float:
        """m (g + u (m + 12)) of :mod:`formulations.leaves.cholesky`."""
        most_rows = int(np.diff(self.rows.start).max())
        return self.size * U * (BLOCK + most_rows / BLOCK + 8 + self.size + 12)

    @cached_property
    def ranges(self) -> tuple[FloatArray, FloatArray]:
        """Least and largest value of every column in every pattern."""
        A, first = self.rows.A, self.rows.start[:-1]
        return np.minimum.reduceat(A, first), np.maximum.reduceat(A, first)

    def constant(self, members: IntArray) -> BoolArray:
        """Columns of A with a single value in a leaf."""
        least, largest = self.ranges
        return np.asarray(least[members].min(axis=0) == largest[members].max(axis=0))

    def _used(self, members: IntArray) -> BoolArray:
        """Columns of the Gram matrix without those that are constant in a leaf."""
        return np.concatenate([[True], ~self.constant(members), [True]])

    def space_for_sums(self, features: IntArray, depth: int) -> FloatArray:
        """A(0) of :mod:`formulations.leaves.box_grams`, and space for A(U), |U| < depth."""
        A = np.zeros((count_sets(len(features), depth - 1), self.length + 2))
        n_patterns = len(self.rows.patterns)
        A[:1, :-2], A[:1, -2:] = self.gram(np.arange(n_patterns)), (n_patterns, self.rows.n_rows)
        return A

    def constant_sides(self, features: IntArray) -> BoolArray:
        """Whether each column has a single value where m_f is 0, and 1, for each feature f."""
        sides = np.ones((len(features), 2, self.size - 2), dtype=bool)
        for f, missing in np.ndindex(sides.shape[:2]):
            members = np.flatnonzero(self.rows.patterns[:, features[f]] == missing)
            if len(members):
                sides[f, missing] = self.constant(members)
        return sides

    def cost(self, members: IntArray) -> float:
        return float(self.costs_of_grams(self.gram(members))[0])

    def costs_of_grams(self, G: FloatArray) -> FloatArray:
        """Costs from packed Gram matrices, one per row, in floating point."""
        costs = leaf_costs(G, self.size, self.scaled_ridge, self.ridge_scale == "sample", 0.0, ESTIMATE, 0.0)
        return np.asarray(costs * self.unit[-1] ** 2)

    def _side_costs(self, members: IntArray, features: IntArray, missing: BoolArray) -> FloatArray:
        costs, whole = np.empty((2, len(missing))), self.gram(members)
        at_once = max(1, MOST_GRAMS // (16 * self.length))
        for part in np.split(np.arange(len(missing)), range(at_once, len(missing), at_once)):
            G = self.sums_of_grams(missing[part], members)
            costs[:, part] = self.costs_of_grams(np.vstack([whole - G, G])).reshape(2, -1)
        return costs

    def _fit(self, members: IntArray) -> LeafModel:
        Z = self.Z[self.rows.of_patterns(members)]
        weight = float(Z[:, 0] @ Z[:, 0])
        mean = Z[:, 0] @ Z[:, 1:] / weight
        r = self.scaled_ridge[1:-1] * (weight if self.ridge_scale == "sample" else 1.0)
        centred = Z[:, 1:] - Z[:, :1] * mean
        B, z = centred[:, :-1], centred[:, -1]
        size = np.sqrt((centred * centred).sum(axis=0))
        norms = size + 2.0 * np.abs(mean) * math.sqrt(weight)
        size = size[:-1]
        varies = size > CONSTANT * norms[:-1]
        w = np.zeros(B.shape[1])
        if varies.any():
            w[varies] = _ridge_weights(B if varies.all() else B[:, varies], z, r[varies], size[varies])
            w[~np.isfinite(w) | (r >= OVERWHELMING)] = 0.0
        residual = z - B @ w
        with np.errstate(over="ignore", invalid="ignore"):  # of columns that are tiny in this leaf
            penalty = float(r @ (w * w))
            value = float(np.sum(residual * residual)) + penalty
            error = U * (len(w) + 8) * float(norms[-1] + norms[:-1] @ np.abs(w))
            upper = value * (1.0 + 300 * U) + 2.0 * math.sqrt(value) * error + error * error
        upper += U * (len(Z) + 10) * penalty  # the weight of the leaf is rounded
        if not upper - value <= max(NEGLIGIBLE * value, NOTHING):  # or not a number
            w, upper = self._precise_fit(members, w)
        return self._model(members, w, mean, weight, upper)

    def _model(self, members: IntArray, w: FloatArray, mean: FloatArray, weight: float, upper: float) -> LeafModel:
        """The model in the units of the data, from weights, means and weight of the leaf in those of Z.

        An intercept that is off by e adds W(G) e^2 to the cost. It is off by its own rounding and by that of the means,
        which are at most 1 / sqrt(weight) since columns of Z have at most norm 1.
        """
        scale, coefficients = self.unit[-1], w * self.unit[-1] / self.unit[1:-1]
        b = scale / self.unit[0] * (mean[-1] - mean[:-1] @ w)
        intercept = self.origin + self.level + b - self.centre @ coefficients
        cost, of_leaf = upper * scale**2, weight * self.unit[0] ** 2
        of_means = U * (int(np.diff(self.rows.start)[members].sum()) + len(w) + 8) * (1.0 + np.abs(w).sum())
        off = abs(exact_sum(np.array([self.origin, self.level, b, -intercept]), -self.centre, coefficients))
        off += of_means * scale / math.sqrt(of_leaf)
        return LeafModel(np.array([intercept]), coefficients[None, :], cost, float(of_leaf * off**2))

    @cached_property
    def _precise_grams(self) -> FloatArray:
        """Gram matrices of the patterns as pairs of doubles, if they are held."""
        rows = self.rows
        if 16 * len(rows.patterns) * self.length > MOST_GRAMS:
            return np.empty((0, 2, self.length))
        data = (rows.A, rows.y[:, 0], rows.s, self.centre, self.level, self.unit)
        return np.asarray(double_double.precise_grams(*data, rows.start))

    def _precise(self, members: IntArray) -> tuple[FloatArray, FloatArray, float, FloatArray]:
        """Gram matrix of a leaf as pairs of doubles, its ridges, its error m e, and a further error of its diagonal."""
        rows = self.rows
        if len(self._precise_grams):
            G = double_double.sum_of_patterns(self._precise_grams, np.asarray(members))
        else:
            inside = rows.of_patterns(members)
            data = (rows.A[inside], rows.y[inside, 0], rows.s[inside], self.centre, self.level, self.unit)
            G = double_double.precise_grams(*data, np.array([0, len(inside)]))[0]
        ridge = self.scaled_ridge * (G[0, 0] if self.ridge_scale == "sample" else 1.0)
        steps = int(np.diff(rows.start)[members].sum()) + len(members) + 4 * self.size + 32
        return G, ridge, self.size * steps * double_double.UNIT, np.zeros(self.size)

    def _precise_fit(self, members: IntArray, w: FloatArray) -> tuple[FloatArray, float]:
        """Weights at least as good as w, and their value with the best intercept, rounded up."""
        G, ridge, share, slack = self._precise(members)
        used = self._used(members)
        v = np.concatenate([[0.0], -w, [1.0]])
        candidates = [np.where(np.arange(len(v)) == len(v) - 1, 1.0, 0.0), v]
        _, failed, L, pivots = double_double.lowest_pivot(G, ridge, 0.0, used)
        if failed < 0:
            candidates.append(v.copy())
            double_double.refined_minimiser(G, ridge, candidates[-1], L, pivots, used)
        values = [double_double.quadratic_value(G, ridge * (1.0 + 8 * U), v) for v in candidates]
        slacks = [float(slack[1:] @ v[1:] ** 2) + slack[0] * _intercept(G, v) ** 2 for v in candidates]
        uppers = [
            float(max(value, 0.0) * (1.0 + 4 * U) + 4.0 * share * weight + more * (1.0 + 8 * U))
            for (value, weight), more in zip(values, slacks, strict=True)
        ]
        best = int(np.argmin(np.nan_to_num(uppers, nan=np.inf)))
        return -candidates[best][1:-1], uppers[best]

    def quick_end(self, members: IntArray, end: int) -> float:
        by_weight, error = self.ridge_scale == "sample", self.pattern_error * len(members)
        options = self.size, self.scaled_ridge, by_weight, error, end, self.share_of_error
        ends = leaf_costs(self.gram(members), *options)
        return float(ends[0]) * float(self.unit[-1]) ** 2

    def _lower_end(self, members: IntArray) -> float:
        lower, upper = self.quick_end(members, LOWER), self.fit(members).cost
        return lower if upper - lower <= NEGLIGIBLE * upper else max(lower, self._precise_lower_end(members))

    def _precise_lower_end(self, members: IntArray) -> float:
        G, ridge, share, slack = self._precise(members)
        return self._lowest_value(members, G, ridge * (1.0 - 8 * U), share, slack)

    def _lowest_value(
        self, members: IntArray, G: FloatArray, ridge: FloatArray, share: float, slack: FloatArray
    ) -> float:
        """The last pivot of G + ridge with its diagonal lowered by a share and by ``slack``, as a cost."""
        diagonal = np.cumsum(np.arange(1, self.size + 1)) - 1
        high = G[0, diagonal] - slack
        lowered = high - G[0, diagonal]
        G[1, diagonal] += (G[0, diagonal] - (high - lowered)) - (slack + lowered)  # what the difference has rounded off
        G[0, diagonal] = high
        used = self._used(members)
        while True:
            pivot, failed, L, _ = double_double.lowest_pivot(G, ridge, share, used)
            if failed < 0:
                return float(max(pivot, 0.0) * (1.0 - 4 * U) * self.unit[-1] ** 2)
            if failed == 0 or not self._depends(members, L, failed, used):
                return 0.0
            # Without a ridge, which only adds to the cost, a column that depends on others is not needed.
            used[failed], ridge = False, np.zeros_like(ridge)

    def _depends(self, members: IntArray, L: FloatArray, column: int, used: BoolArray) -> bool:
        """Whether a column is exactly a combination of the used columns before it, with small fractions."""
        before = np.flatnonzero(used[:column])
        factor, row = L[np.ix_(before, before)], L[column, before]
        np.fill_diagonal(factor, 1.0)
        beta = scipy.linalg.solve_triangular(factor, row, trans=1, lower=True, unit_diagonal=True)
        beta = beta[1:] * self.unit[column] / self.unit[before[1:]]
        if not np.isfinite(beta).all() or np.abs(beta).max(initial=0.0) > 1e6:
            return False
        fractions = [Fraction(float(b)).limit_denominator(DENOMINATOR) for b in beta]
        multiple = math.lcm(*(f.denominator for f in fractions))
        held = [(j, int(f * multiple)) for j, f in zip(before[1:] - 1, fractions, strict=True) if f]
        columns, factors = [column - 1, *(j for j, _ in held)], [multiple, *(-c for _, c in held)]
        rows = np.unique(self.rows.A[self.rows.of_patterns(members)][:, columns], axis=0)
        return len({_exact_sum(row, factors) for row in rows}) == 1


def _intercept(G: FloatArray, v: FloatArray) -> float:
    """The best first entry of v for the matrix G, rounded up in size."""
    first = np.arange(1, len(v)) * np.arange(2, len(v) + 1) // 2
    return float(
        np.abs(G[0, first] @ v[1:]) / G[0, 0] + 8 * U * len(v) * (np.abs(G[0, first]) @ np.abs(v[1:])) / G[0, 0]
    )


def _exact_sum(values: FloatArray, factors: list[int]) -> Fraction:
    """Sum of products of doubles and whole numbers."""
    return sum((Fraction(float(value)) * c for value, c in zip(values, factors, strict=True)), Fraction(0))


def _ridge_weights(B: FloatArray, z: FloatArray, r: FloatArray, size: FloatArray) -> FloatArray:
    """Minimiser of |z - B w|^2 + sum_j r_j w_j^2: by Cholesky if that is accurate, else by singular values.

    Columns are divided by their norms: their units do not matter.
    """
    B = B / size
    H = B.T @ B
    H[np.diag_indices(len(H))] += r / size**2
    L, failed = scipy.linalg.lapack.dpotrf(H, lower=1)
    if not failed and np.min(np.diag(L)) ** 2 > WELL_CONDITIONED:
        return np.asarray(scipy.linalg.lapack.dpotrs(L, B.T @ z, lower=1)[0]) / size
    padded = np.vstack([B, np.diag(np.sqrt(r) / size)])
    target = np.append(z, np.zeros(len(size)))
    return scipy.linalg.lstsq(padded, target, COLLINEAR, check_finite=False)[0] / size
