"""Costs of boxes with at most D literals, from sums over sets of missing features (squared loss).

The rows are not held, so that the Gram matrix of a leaf is known up to rounding: with |E_ij| <= sqrt(D_i D_j), and any
positive t_i,

    |v'E v|  <=  (sum_i |v_i| sqrt(D_i))^2  <=  sum_i s_i v_i^2,      s_i = (sum_j t_j) D_i / t_i.

So the last pivot of the matrix with its diagonal lowered by s is below the cost, and the value at any weights v, raised
by sum_i s_i v_i^2, is above it. The bound is tight for t_i = |v_i| sqrt(D_i), which is taken, at estimated weights and
with a lower limit. Both ends are computed in pairs of doubles. Leaf features that are nearly collinear make the
interval wide; it is settled by the rows of the leaf, if they can be read again: its matrix is then one of pairs of
doubles, as in memory.
"""

from abc import abstractmethod
from collections.abc import Mapping

import numpy as np
import scipy.linalg

from formulations.arrays import BoolArray, FloatArray, IntArray
from formulations.leaves import double_double
from formulations.leaves.cholesky import U
from formulations.leaves.cost import LeafCost, LeafModel, PatternTotals
from formulations.leaves.set_moments import Box, SetMoments, atoms
from formulations.leaves.squared import OVERWHELMING, WELL_CONDITIONED, SquaredLeafCost
from formulations.leaves.subsets import count_sets
from formulations.losses import Squared
from formulations.rounding import PIVOT_TOLERANCE

# Least t_i as a share of their mean.
LEAST_SHARE = 0.25

# The matrix of a settled leaf as pairs of doubles, and its number of rows.
Settled = tuple[FloatArray, int]


class SummedLeafCost(SquaredLeafCost):
    """Squared loss, from sums over rows."""

    rows: PatternTotals

    def __init__(
        self, rows: PatternTotals, ridge: float, ridge_scale: str, squares: FloatArray, shift: FloatArray
    ) -> None:
        """Sums of squares of (1, a, y) - ``shift`` over all rows."""
        LeafCost.__init__(self, rows, Squared(), ridge, ridge_scale)
        self.size = len(squares)
        self.centre, self.level = shift[1:-1], float(shift[-1])
        self.length = self.size * (self.size + 1) // 2
        self.unit = np.ldexp(1.0, np.frexp(np.sqrt(np.maximum(squares, 0.0)))[1])
        self.Z = np.empty((0, self.size))
        self._grams = [np.empty((0, self.length))]
        self.settled: dict[bytes, Settled] = {}

    @abstractmethod
    def matrix(self, members: IntArray) -> tuple[FloatArray, FloatArray]:
        """Gram matrix of a leaf in the columns of the solver, and D_i of its error."""

    def gram(self, members: IntArray) -> FloatArray:
        return self.matrix(members)[0][np.tril_indices(self.size)][None, :]

    @abstractmethod
    def holds(self, members: IntArray, M: BoolArray) -> BoolArray:
        """Whether the pattern of each row lies in a leaf."""

    def square(self, packed: FloatArray) -> FloatArray:
        """Packed matrices as square ones."""
        low = np.tril_indices(self.size)
        full = np.zeros((*packed.shape[:-1], self.size, self.size))
        full[..., low[0], low[1]] = full[..., low[1], low[0]] = packed
        return full

    def settle(self, matrices: Mapping[bytes, Settled]) -> None:
        """Take over matrices of leaves that were computed from their rows in pairs of doubles."""
        self.settled.update(matrices)
        for key in matrices:
            self._known.pop(key, None)
            self._lower_ends.pop(key, None)

    def doubtful(self, tolerance: float) -> list[IntArray]:
        """Leaves whose intervals were asked for and are wider than the tolerance, and that are not settled."""
        wide = [key for key, lower in self._lower_ends.items() if not self._known[key].cost - lower <= tolerance]
        return [np.frombuffer(key, dtype=np.int64) for key in wide if key not in self.settled]

    def _precise(self, members: IntArray) -> tuple[FloatArray, FloatArray, float, FloatArray]:
        key = np.asarray(members).tobytes()
        if key in self.settled:
            G, steps = self.settled[key]
            ridge, slack = self._ridge(G[0, 0]), np.zeros(self.size)
        else:
            matrix, error = self.matrix(members)
            G, steps = np.zeros((2, self.length)), 0
            G[0] = matrix[np.tril_indices(self.size)]
            ridge = self._ridge(matrix[0, 0])
            slack = slack_of(error, self._estimated(matrix, members))
            if self.ridge_scale == "sample":  # the weight of the leaf has an error too
                slack = slack + self.scaled_ridge * error[0]
        return G.copy(), ridge, self.size * (steps + 4 * self.size + 32) * double_double.UNIT, slack * (1.0 + 16 * U)

    def _ridge(self, weight: float) -> FloatArray:
        """Ridges of a leaf of this weight."""
        return self.scaled_ridge * (weight if self.ridge_scale == "sample" else 1.0)

    def _estimated(self, square: FloatArray, members: IntArray) -> FloatArray:
        """The best v of a leaf, with last entry 1, in floating point."""
        weight, first = square[0, 0], square[0, 1:]
        r = self._ridge(weight)[1:-1]
        C = square[1:, 1:] - np.outer(first, first) / weight
        varies = (
            (np.diag(C)[:-1] > PIVOT_TOLERANCE * np.diag(square)[1:-1]) & ~self.constant(members) & (r < OVERWHELMING)
        )
        w = np.zeros(len(r))
        if varies.any():
            used = np.flatnonzero(varies)
            w[varies] = _weights(C[np.ix_(used, used)], C[used, -1], r[varies])
            w[~np.isfinite(w)] = 0.0
        return np.concatenate([[-(first[-1] - first[:-1] @ w) / weight], -w, [1.0]])

    def _fit(self, members: IntArray) -> LeafModel:
        square = self.square(self._precise(members)[0].sum(axis=0))
        weight, first = square[0, 0], square[0, 1:]
        w = -self._estimated(square, members)[1:-1]
        w, upper = self._precise_fit(members, w)
        return self._model(members, w, first / weight, weight, upper)

    def _lower_end(self, members: IntArray) -> float:
        return self._precise_lower_end(members)

    def _depends(self, members: IntArray, L: FloatArray, column: int, used: BoolArray) -> bool:
        return False  # shown by rows only


def first_alike(moments: SetMoments, missing: FloatArray, n_rows: float) -> IntArray:
    """For each feature the first one that is missing in the same rows, if it is missing in some; itself at depth 0."""
    first = np.arange(len(missing))
    for j in np.flatnonzero((missing > 0) & (missing < n_rows) & (moments.sums.depth > 0)):
        for i in np.flatnonzero(missing[:j] == missing[j]):
            if moments.rows([(int(i), True), (int(j), True)]) == missing[j]:
                first[j] = i
                break
    return first


def slack_of(D: FloatArray, v: FloatArray) -> FloatArray:
    """s_i of the module, with t at estimated weights v and a lower limit."""
    t = np.abs(v) * np.sqrt(D)
    t = np.maximum(t, LEAST_SHARE * t.sum() / len(t))
    return np.asarray(t.sum() / t * D) if t.any() else D


def _weights(C: FloatArray, c: FloatArray, r: FloatArray) -> FloatArray:
    """Minimiser of w'C w - 2 c'w + sum_j r_j w_j^2: by Cholesky if that is accurate, else by eigenvalues.

    Columns are divided by their norms: their units do not matter.
    """
    size = np.sqrt(np.diag(C))
    H = C / np.outer(size, size) + np.diag(r / size**2)
    L, failed = scipy.linalg.lapack.dpotrf(H, lower=1)
    if not failed and np.min(np.diag(L)) ** 2 > WELL_CONDITIONED:
        return np.asarray(scipy.linalg.lapack.dpotrs(L, c / size, lower=1)[0]) / size
    values, V = np.linalg.eigh(H)
    kept = values > PIVOT_TOLERANCE * values[-1]
    return np.asarray(V[:, kept] @ ((V[:, kept].T @ (c / size)) / values[kept]) / size)


class SetSumsCost(SummedLeafCost):
    """Costs of the boxes with at most D literals, in place of sets of patterns.

    Its patterns are those of :func:`formulations.leaves.set_moments.atoms`, not those of the data, and the members of a
    leaf must be all of them that lie in a box.

    Parameters
    ----------
    moments : SetMoments
    columns : array of shape (k + 2, 2 d + 2)
        The rows (1, a, y) - ``shift`` are ``columns`` times (1, x, m, y).
    shift : array of shape (k + 2,)
        Shifts that the intercept of a leaf absorbs: 0 for features with structural zeros, and for 1.
    sources : int array of shape (k,)
        What each leaf feature is made of: j for x_j, d + j for m_j.
    ridge_weights, ridge, ridge_scale
        See :mod:`formulations.leaves.cost`.
    rarest : int, optional
        See :attr:`PatternRows.rarest_class`.
    """

    knows_patterns = False

    def __init__(
        self,
        moments: SetMoments,
        columns: FloatArray,
        shift: FloatArray,
        sources: IntArray,
        ridge_weights: FloatArray,
        ridge: float,
        ridge_scale: str = "leaf",
        rarest: int | None = None,
    ) -> None:
        d, n = moments.sums.n_features, moments.rows([])
        missing = np.array([moments.rows([(j, True)]) for j in range(d)])
        root, sizes = moments.box([], columns)
        first = first_alike(moments, missing, n)
        self._features = np.flatnonzero((missing > 0) & (missing < n) & (first == np.arange(d)))
        patterns, counts = atoms(moments, self._features)
        held = np.tile(missing == n, (len(patterns), 1))
        held[:, self._features] = patterns
        held = held[:, first]
        weights = counts.astype(float)
        rows = PatternTotals.of_totals(held, counts, weights, ridge_weights, rarest, complete=False)
        super().__init__(rows, ridge, ridge_scale, np.diag(root), shift)
        self.moments, self.sources, self.columns = moments, sources, columns / self.unit[:, None]
        self.pattern_error = 1.0 + moments.error * float((sizes / self.unit**2).max()) / (2 * U)

    def literals(self, members: IntArray) -> Box:
        """The box of all these patterns.

        Its missing features are missing in all of them; its observed ones are observed in all, unless there are D
        missing ones: then no pattern has more.
        """
        inside = self.rows.patterns[members][:, self._features]
        missing = self._features[inside.all(axis=0)]
        observed = self._features[~inside.any(axis=0)] if len(missing) < self.moments.sums.depth else missing[:0]
        return [(int(j), True) for j in missing] + [(int(j), False) for j in observed]

    def holds(self, members: IntArray, M: BoolArray) -> BoolArray:
        inside = np.ones(len(M), dtype=bool)
        for j, missing in self.literals(members):
            inside &= M[:, j] == missing
        return inside

    def matrix(self, members: IntArray) -> tuple[FloatArray, FloatArray]:
        G, sizes = self.moments.box(self.literals(members), self.columns)
        return G, self.moments.error * sizes

    def constant(self, members: IntArray) -> BoolArray:
        return self._constant_in(self.literals(members))

    def _constant_in(self, box: Box) -> BoolArray:
        """Columns with a single value in a box, from numbers of rows."""
        rows, fixed, d = self.moments.rows(box), dict(box), self.moments.sums.n_features
        missing = [rows * fixed[j] if j in fixed else self.moments.rows([*box, (j, True)]) for j in range(d)]
        never, always = np.array(missing) == 0, np.array(missing) == rows
        return np.concatenate([always, never | always])[self.sources]

    def constant_sides(self, features: IntArray) -> BoolArray:
        return np.array([[self._constant_in([(int(f), side)]) for side in (False, True)] for f in features])

    def _side_costs(self, members: IntArray, features: IntArray, missing: BoolArray) -> FloatArray:
        costs, box, low = np.empty((2, len(features))), self.literals(members), np.tril_indices(self.size)
        whole = self.moments.box(box, self.columns)[0]
        for i, j in enumerate(features):
            side = self.moments.box([*box, (int(j), True)], self.columns)[0]
            costs[:, i] = self.costs_of_grams(np.array([(whole - side)[low], side[low]]))
        return costs

    def space_for_sums(self, features: IntArray, depth: int) -> FloatArray:
        """A(U) for all |U| <= depth.

        The error of a box with O observed ones of its k literals is that of 2^O sets. In place of numbers of patterns,
        3^(D-|U|) have the difference 2^O 3^(D-k) in a box, which is as much or more.
        """
        A = self.moments.packed(features, depth, self.columns)
        for k in range(depth + 1):
            A[count_sets(len(features), k - 1) : count_sets(len(features), k), -2] = 3.0 ** (depth - k)
        return A
