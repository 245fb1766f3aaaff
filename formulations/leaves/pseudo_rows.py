"""Leaf costs of rows that are known by pseudo-rows with about the same moments (squared loss).

Over the rows of a leaf, which are not held, let Q(v) = sum s ((1, a, y)'v)^2, and P(v) the same sum over their
pseudo-rows. N_i are the norms of the columns (1, a, y) of the pseudo-rows, and W is the weight of the rows that they
replace. With e, l_i and h_i given,

    sqrt(P(v)) - F  <=  sqrt(Q(v) + g)  <=  sqrt(P(v)) + F,     F = sum_i |v_i| (e N_i + sqrt(W) l_i),
    |g| <= H^2,                                                 H = sum_i |v_i| sqrt(W) h_i.

*Lower end.* For 0 < t < 1,  (p - q)^2 >= (1 - t) p^2 - (1/t - 1) q^2.  So the cost is at least 1 - t times

    min over v of   P(v) + ridge - F^2 / t - H^2 / (1 - t),

a cost whose matrix is off by D_i = (e N_i + sqrt(W) l_i)^2 / t + W h_i^2 / (1 - t) as in
:mod:`formulations.leaves.set_costs`. The best t is F / sqrt(P) at the minimiser; it is taken at the weights of the
leaf's model. The error enters by its ratio to the residual: columns that are collinear to 1e-8 lose 8 digits of the
cost, where sums of products lose all 16.

*Upper end.* The value of a model is at most (sqrt(P) + F)^2 + H^2.

*Gram matrices.* As sqrt(P) <= sum_i |v_i| N_i, the two sums differ by at most

    4 e (sum_i |v_i| N_i)^2  +  W (2 + 1/e) (sum_i |v_i| l_i)^2  +  H^2 :

a share of the diagonal, and an error of every pattern.

*Shift.* Columns of the solver are shifted by their means c_i, so that N_i is at most their norm plus |c_i| sqrt(W), and
|v_0| is raised by the sum of |v_i c_i|.
"""

import math
from typing import NamedTuple

import numpy as np

from formulations.arrays import BoolArray, FloatArray, IntArray
from formulations.leaves.cholesky import U
from formulations.leaves.cost import LeafModel, PatternTotals
from formulations.leaves.set_costs import slack_of
from formulations.leaves.squared import SquaredLeafCost


class RowError(NamedTuple):
    """e, h_i and l_i of the module, and whether the rows of each pattern are held, without error."""

    rounding: float
    of_sums: FloatArray
    lost: FloatArray
    is_exact: BoolArray


class PseudoRowsCost(SquaredLeafCost):
    """Squared loss, from pseudo-rows whose targets are y minus ``origin``."""

    def __init__(
        self, rows: PatternTotals, error: RowError, origin: float, ridge: float, ridge_scale: str = "leaf"
    ) -> None:
        super().__init__(rows, ridge, ridge_scale)
        self.origin, self.rounding = origin, error.rounding
        shift = np.abs(np.concatenate([[0.0], self.centre, [self.level]]))
        # in the columns of the solver, for rows of weight 1
        self._shift = 2.0 * shift / self.unit
        self._of_sums = (error.of_sums + shift * error.of_sums[0]) / self.unit
        self._lost = error.lost / self.unit
        self._weights = np.where(error.is_exact, 0.0, rows.weights)
        squares = 8.0 * error.rounding * self._shift**2
        squares += (2.0 + 1.0 / error.rounding) * self._lost**2 + self._of_sums**2
        self.pattern_error = 1.0 + float(self._weights.max() * squares.max()) / (2.0 * U)

    @property
    def share_of_error(self) -> float:
        return super().share_of_error + 8.0 * self.rounding * self.size

    def _errors(self, members: IntArray) -> tuple[FloatArray, FloatArray]:
        """e N_i + sqrt(W) l_i and sqrt(W) h_i of a leaf in the columns of the solver; 0 if its rows are held."""
        root = math.sqrt(self._weights[members].sum())
        if root == 0.0:
            return np.zeros(self.size), np.zeros(self.size)
        squares = self.gram(members)[0, np.cumsum(np.arange(1, self.size + 1)) - 1]
        norms = np.sqrt(squares + 2.0 * U * len(members)) + self._shift * root
        rounded = 1.0 + self.share_of_error + 2.0 * U * len(self._weights)
        return rounded * (self.rounding * norms + root * self._lost), rounded * root * self._of_sums

    def _model(self, members: IntArray, w: FloatArray, mean: FloatArray, weight: float, upper: float) -> LeafModel:
        errors, of_sums = self._errors(members)
        v = np.abs(np.concatenate([[mean[-1] - mean[:-1] @ w], w, [1.0]]))
        value = (math.sqrt(upper) + errors @ v) ** 2 + (of_sums @ v) ** 2
        return super()._model(members, w, mean, weight, float(value * (1.0 + 4 * len(v) * U)))

    def _precise_lower_end(self, members: IntArray) -> float:
        G, ridge, share, slack = self._precise(members)
        errors, of_sums = self._errors(members)
        t = 0.0
        if errors.any():
            v = self._estimated(members)
            root = math.sqrt(self.fit(members).cost) / self.unit[-1]
            t = min(0.5, float(errors @ np.abs(v)) / root) if root > 0.0 else 0.5
            slack = slack_of(errors**2 / t + of_sums**2 / (1.0 - t), v) * (1.0 + 16 * U)
        return self._lowest_value(members, G, ridge * (1.0 - 8 * U), share, slack) * (1.0 - t)

    def _estimated(self, members: IntArray) -> FloatArray:
        """v of the leaf's model in the columns of the solver."""
        model = self.fit(members)
        w = model.weights[0] * self.unit[1:-1] / self.unit[-1]
        b = (model.intercept[0] - self.origin - self.level + self.centre @ model.weights[0]) * self.unit[0]
        return np.concatenate([[-b / self.unit[-1]], -w, [1.0]])

    def _depends(self, members: IntArray, L: FloatArray, column: int, used: BoolArray) -> bool:
        return not self._weights[members].any() and super()._depends(members, L, column, used)
