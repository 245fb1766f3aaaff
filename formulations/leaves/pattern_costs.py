"""Costs of sets of patterns from the Gram matrix of each pattern (squared loss)."""

from functools import cached_property

import numpy as np

from formulations.arrays import BoolArray, FloatArray, IntArray
from formulations.leaves.cholesky import GRID, U, share_of_error
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
    grams : array of shape (patterns, (k + 2) (k + 3) / 2)
        Second moments of (1, a, y) - ``shift``, packed by rows of the lower triangle.
    shift : array of shape (k + 2,)
        Shifts that the intercept of a leaf absorbs: 0 for features with structural zeros, and for 1.
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
        grams: FloatArray,
        shift: FloatArray,
        indicators: BoolArray,
        moved: FloatArray,
        error: float,
        ridge: float,
        ridge_scale: str = "leaf",
    ) -> None:
        diagonal = np.cumsum(np.arange(1, len(shift) + 1)) - 1
        super().__init__(rows, ridge, ridge_scale, grams[:, diagonal].sum(axis=0), shift)
        low = np.tril_indices(self.size)
        grams = grams / np.outer(self.unit, self.unit)[low]
        rounded = np.rint(grams * GRID) / GRID
        positive = (rounded[:, diagonal] == 0.0) & (grams[:, diagonal] != 0.0)
        rounded[:, diagonal] = np.where(positive, 1.0 / GRID, rounded[:, diagonal])
        self._grams = [np.ascontiguousarray(rounded)]
        self.error, self.indicators = error, indicators
        self.moved = moved * self.unit[0] / self.unit
        heaviest = float(rounded[:, 0].max())
        # N_i <= 2 G_ii + 2 k_i^2 G_00: a share of the diagonal, and an error of every pattern
        self.pattern_error = 1.0 + error * float((self.moved**2).max()) * heaviest / U

    @property
    def share_of_error(self) -> float:
        return share_of_error(self.size, 0) + 2.0 * self.size * self.error

    @cached_property
    def ranges(self) -> tuple[FloatArray, FloatArray]:
        """Least and largest value of every column in every pattern, infinite if the pattern does not tell."""
        diagonal = np.cumsum(np.arange(1, self.size + 1)) - 1
        squares, weights = self.grams[:, diagonal[1:-1]], self.grams[:, :1]
        known = np.where(self.indicators, squares > 0.5 * weights * (self.unit[0] / self.unit[1:-1]) ** 2, 0.0)
        varies = ~self.indicators & (squares > 0.0)
        return np.where(varies, -np.inf, known), np.where(varies, np.inf, known)

    def holds(self, members: IntArray, M: BoolArray) -> BoolArray:
        keys = {self.rows.patterns[p].tobytes() for p in members}
        return np.fromiter((row.tobytes() in keys for row in np.ascontiguousarray(M)), dtype=bool, count=len(M))

    def matrix(self, members: IntArray) -> tuple[FloatArray, FloatArray]:
        G = self.sums_of_grams(np.ones((1, len(members))), np.asarray(members))[0]
        square = self.square(G)
        sizes = (np.sqrt(np.diag(square)) + self.moved * np.sqrt(square[0, 0])) ** 2
        return square, self.error * sizes + 2.0 * U * len(members)

    def pattern_grams(self) -> FloatArray:
        unit = self.unit.copy()
        if self.rows.ridge_weights is not None:
            unit[1:-1] /= np.sqrt(self.rows.ridge_weights)
        return np.asarray(self.square(self.grams) * np.outer(unit, unit))
