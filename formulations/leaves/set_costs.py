"""Costs of boxes with at most D literals, from sums over sets of missing features (squared loss)."""

from functools import cached_property
from typing import Any

import numpy as np

from formulations.arrays import BoolArray, FloatArray, IntArray
from formulations.leaves.cholesky import U
from formulations.leaves.cost import PatternTotals
from formulations.leaves.set_moments import Box, SetMoments, atoms
from formulations.leaves.summed import SummedLeafCost


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
        patterns, counts = atoms(moments, np.flatnonzero((missing > 0) & (missing < n)))
        held = np.tile(missing == n, (len(patterns), 1))
        held[:, (missing > 0) & (missing < n)] = patterns
        weights = counts.astype(float)
        rows = PatternTotals.of_totals(held, counts, weights, ridge_weights, rarest, complete=False)
        super().__init__(rows, ridge, ridge_scale, np.diag(root), shift)
        self.moments, self.sources, self.columns = moments, sources, columns / self.unit[:, None]
        self.pattern_error = 1.0 + moments.error * float((sizes / self.unit**2).max()) / (2 * U)

    @cached_property
    def _features(self) -> IntArray:
        """Features that may be split on."""
        patterns = self.rows.patterns
        return np.flatnonzero(patterns.any(axis=0) & ~patterns.all(axis=0))

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

    def split_costs(self, members: IntArray, features: IntArray, min_rows: int) -> tuple[FloatArray, FloatArray]:
        costs, held, counts = np.full((2, len(features)), np.inf), self.literals(members), self.rows.counts[members]
        missing = counts @ self.rows.patterns[np.ix_(members, features)]
        whole, low, least = self.moments.box(held, self.columns)[0], np.tril_indices(self.size), max(1, min_rows)
        for i in np.flatnonzero((missing >= least) & (counts.sum() - missing >= least)):
            side = self.moments.box([*held, (int(features[i]), True)], self.columns)[0]
            costs[:, i] = self.costs_of_grams(np.array([(whole - side)[low], side[low]]))
        return costs[0], costs[1]

    def sums_of_sets(self, features: IntArray, data: tuple[Any, ...], depth: int, offsets: IntArray) -> FloatArray:
        """A(U) for all |U| <= depth.

        The error of a box with O observed ones of its k literals is that of 2^O sets. In place of numbers of patterns,
        3^(D-|U|) have the difference 2^O 3^(D-k) in a box, which is as much or more.
        """
        A = self.moments.packed(features, depth, self.columns)
        for k in range(depth + 1):
            A[offsets[k] : offsets[k + 1], -2] = 3.0 ** (depth - k)
        return A
