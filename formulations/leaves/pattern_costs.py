"""Costs of sets of patterns from the Gram matrix of each pattern (squared loss)."""

from functools import cached_property

import numpy as np

from formulations.arrays import FloatArray, IntArray
from formulations.leaves.cholesky import GRID, U, gram_of_patterns, share_of_error
from formulations.leaves.cost import PatternTotals
from formulations.leaves.summed import SummedLeafCost


class PatternGramsCost(SummedLeafCost):
    """Costs of leaves from the second moments of (1, a, y) of each pattern.

    With e the error of the sums and k_i the distance of their origins, those of a leaf are off by

        e sqrt(N_i N_j),     sqrt(N_i) = sqrt(G_ii) + k_i sqrt(G_00),

    and by 2^-52 for each pattern once they are rounded to the grid of :mod:`formulations.leaves.cholesky`.

    Parameters
    ----------
    rows : PatternTotals
    moments : array of shape (patterns, k + 2, k + 2)
    free : bool array of shape (k,)
        Leaf features that are never missing.
    indicators : bool array of shape (k,)
        Leaf features that are m_j of some feature.
    moved : array of shape (k + 2,)
        k_i.
    error : float
        e.
    """

    def __init__(
        self,
        rows: PatternTotals,
        moments: FloatArray,
        free: FloatArray,
        indicators: FloatArray,
        moved: FloatArray,
        error: float,
        ridge: float,
        ridge_scale: str = "leaf",
    ) -> None:
        root = moments.sum(axis=0)
        shift = np.where(np.concatenate([[False], free, [True]]), root[0] / root[0, 0], 0.0)
        self.centre, self.level = shift[1:-1], float(shift[-1])
        S = np.eye(len(shift))
        S[:, 0] -= shift
        moments = S @ moments @ S.T
        super().__init__(rows, ridge, ridge_scale, moments.sum(axis=0))
        low = np.tril_indices(self.size)
        grams = (moments / np.outer(self.unit, self.unit))[:, low[0], low[1]]
        rounded = np.rint(grams * GRID) / GRID
        diagonal = np.cumsum(np.arange(1, self.size + 1)) - 1
        positive = (rounded[:, diagonal] == 0.0) & (grams[:, diagonal] != 0.0)
        rounded[:, diagonal] = np.where(positive, 1.0 / GRID, rounded[:, diagonal])
        self._grams = [np.ascontiguousarray(rounded)]
        self.error, self.indicators = error, indicators
        self.moved = (moved + np.abs(shift)) * self.unit[0] / self.unit
        heaviest = float(rounded[:, 0].max())
        # N_i <= 2 G_ii + 2 k_i^2 G_00: a share of the diagonal, and an error of every pattern
        self.pattern_error = 1.0 + error * float((self.moved**2).max()) * heaviest / U

    @property
    def share_of_error(self) -> float:
        return share_of_error(self.size, 0) + 2.0 * self.size * self.error

    @cached_property
    def ranges(self) -> tuple[FloatArray, FloatArray]:
        """Least and largest value of every column in every pattern: infinite unless a column is known by the pattern."""
        diagonal = np.cumsum(np.arange(1, self.size + 1)) - 1
        squares, weights = self.grams[:, diagonal[1:-1]], self.grams[:, :1]
        known = np.where(self.indicators, squares > 0.5 * weights * (self.unit[0] / self.unit[1:-1]) ** 2, 0.0)
        varies = ~self.indicators & (squares > 0.0)
        return np.where(varies, -np.inf, known), np.where(varies, np.inf, known)

    def matrix(self, members: IntArray) -> tuple[FloatArray, FloatArray]:
        G = gram_of_patterns(*self.statistics, np.asarray(members), self.length)[0]
        square = np.zeros((self.size, self.size))
        square[np.tril_indices(self.size)] = G
        square += np.tril(square, -1).T
        sizes = (np.sqrt(np.diag(square)) + self.moved * np.sqrt(square[0, 0])) ** 2
        return square, self.size * (self.error * sizes + 2.0 * U * len(members))

    def pattern_grams(self) -> FloatArray:
        grams, unit, low = np.zeros((len(self.grams), self.size, self.size)), self.unit.copy(), np.tril_indices(self.size)
        if self.rows.ridge_weights is not None:
            unit[1:-1] /= np.sqrt(self.rows.ridge_weights)
        grams[:, low[0], low[1]] = grams[:, low[1], low[0]] = self.grams
        return np.asarray(grams * np.outer(unit, unit))
