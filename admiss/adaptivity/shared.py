"""Sharing pattern submodels: one shared linear model, and sparse deviations from it at each pattern.

*Definition.* The weights at a pattern m are theta + Delta_m, with Delta_m = 0 at patterns that training has not seen:

    minimise  (1/n) sum_i l(y_i, (theta + Delta_{m_i})'x_i)
              + (lambda_0 / n) |theta|_1 + sum_m (strength / n_m) |Delta_m|_1

where x holds the observed features and the constant 1, n_m is the number of rows with pattern m, and the intercept
theta_0 has no penalty. The basis is (1, 1(m = m') for every pattern m' of the training rows), so that theta is column 0
of W and Delta_m' is the column of m', whose n_k is n_m'. The penalty factors n_j / n turn lambda / n_j, the penalty of
theta_j in other classes, into lambda / n. With the penalty weights "count" this is the program for

    lam = lambda_0,   l1_ratio = 1,   adaptive_penalty = strength / lambda_0,

in the units of the scaled features if the estimator scales. ``adaptive_penalty="auto"`` is strength = lambda_0.

*p(F)* = d 2^(d-1) + 2^d if all patterns occur, as for `FullyAdaptive`, whose functions it shares. n rows have at most
n / min_rows patterns with deviations, each with one coefficient for the intercept and for every observed feature.

*What it can express.* Any dependence on the pattern, and cheaply a linear model that changes in few weights at few
patterns. Unlike in `FullyAdaptive`, rows of all patterns learn the shared weights, which serve unseen patterns too.

*Where it loses.* Test R2 by ``python -m experiments run classes`` (300 rows of 10 features, 6 of ``make_interacting``,
30 % missing or 50 %, means of 10 draws; real sets: R2 or 2 AUC - 1, 36 sets):

================================ ======= ================= ======= ===============
data                             shared  affine intercept  affine  fully adaptive
================================ ======= ================= ======= ===============
``make_interacting``             .430    .312              .308    .089
``make_synthetic``, MCAR         .532    .532              .557    -.512
``make_synthetic``, censoring    .454    .611              .598    .336
real sets                        .618    .626              (fewer sets)
================================ ======= ================= ======= ===============

If being missing tells about the value of a feature, an affine intercept says so with one coefficient for all patterns,
and this class needs one at each: it loses .157 R2 under censoring. It also loses to `FusedPatterns` (.539) and
`Polynomial(2)` (.585) on interacting patterns, where neighbouring patterns have the same weights.

*Many patterns.* Patterns with fewer rows than ``min_rows`` have no deviations, and ``min_rows_`` is the smallest larger
number that leaves at most ``max_columns`` coefficients: the rarest patterns, whose penalty is the largest, go first.

*Reference.* L. Stempfle, A. Panahi and F. D. Johansson, Sharing pattern submodels for prediction with missing values,
AAAI 2023, arXiv 2206.11161. The authors' code leaves the intercepts of patterns without penalty by default, and sums
the mean losses of the patterns, whatever their numbers of rows. Here the loss is the mean over rows, as in the paper,
and intercepts are penalised as all other deviations, since they are not unique otherwise. On patterns of equal size,
where the two losses agree, their algorithm (L-BFGS-B for positive and negative parts) ends 1e-9 to 5e-7 above the
optimum that is proven here, in 10 to 30 times the seconds (31 to 100 patterns, 117 to 622 coefficients).
"""

from collections.abc import Sequence
from typing import ClassVar, Self

import numpy as np
import scipy.sparse as sp

from admiss.adaptivity.base import from_patterns
from admiss.adaptivity.fully_adaptive import FullyAdaptive, coefficients_at_patterns, n_frequent
from admiss.estimator.validation import require_number
from admiss.patterns import lookup
from formulations.arrays import BoolArray, FloatArray


class SharedPatterns(FullyAdaptive):
    """One shared linear model, and deviations from it at each pattern.

    Parameters
    ----------
    min_rows : float
        Patterns with fewer rows use the shared model.
    max_columns : int
        The number of coefficients of all deviations is at most this: the rarest patterns go first.

    Examples
    --------
    >>> from admiss import AdaptiveRegressor
    >>> from admiss.datasets import make_interacting
    >>> data = make_interacting(n=300, d=4, random_state=0)
    >>> model = AdaptiveRegressor(SharedPatterns(), lam=0.3, l1_ratio=1.0).fit(data.X_train, data.y_train)
    >>> round(model.score(data.X_test, data.y_test), 2)
    0.64
    """

    cells: ClassVar[bool] = False
    min_rows_: float

    def __init__(self, min_rows: float = 1, max_columns: int = 1000) -> None:
        self.min_rows = min_rows
        self.max_columns = max_columns

    @from_patterns
    def fit(self, X: FloatArray, M: BoolArray, sample_weight: FloatArray | None = None) -> Self:
        require_number(self, "min_rows")
        require_number(self, "max_columns")
        fitted = super().fit(X, M, sample_weight)
        sizes, total = np.unique(fitted.weights_, return_inverse=True)
        coefficients = np.bincount(total, 1 + (~fitted.patterns_).sum(axis=1))[::-1].cumsum()[::-1]
        enough = sizes[(sizes >= self.min_rows) & (coefficients <= self.max_columns)]
        fitted.min_rows_ = float(enough[0]) if len(enough) and len(fitted.patterns_) > 1 else np.inf
        is_large = fitted.weights_ >= fitted.min_rows_  # a single pattern needs no deviations
        fitted.patterns_, fitted.weights_ = fitted.patterns_[is_large], fitted.weights_[is_large]
        return fitted

    def basis(self, M: FloatArray) -> sp.csr_array:
        cells = lookup(self.patterns_, M.astype(bool))
        rows = np.flatnonzero(cells >= 0)
        deviating = sp.csr_array((np.ones(len(rows)), (rows, cells[rows])), shape=(len(M), len(self.patterns_)))
        return sp.csr_array(sp.hstack([np.ones((len(M), 1)), deviating]))

    def mask(self, d: int) -> BoolArray:
        return np.column_stack([np.ones(d + 1, dtype=bool), super().mask(d)])

    def names(self, feature_names: Sequence[str]) -> list[str]:
        return ["1", *super().names(feature_names)]

    def n_coefficients(self, d: int, n: float) -> int:
        """Those of all patterns, or of as many as n rows can have, up to ``max_columns``, and of the shared model."""
        deviations = coefficients_at_patterns(d, n_frequent(d, n, self.min_rows))
        return min(min(deviations, int(self.max_columns)) + d + 1, coefficients_at_patterns(d, 2**d))

    def penalty_factors(self, counts: FloatArray) -> FloatArray:
        """n_j / n for the shared weights, 1 for deviations."""
        factors = np.ones_like(counts)
        factors[:, 0] = counts[:, 0] / counts[0, 0]
        return factors
