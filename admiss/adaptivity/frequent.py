"""One linear model for each frequent pattern, and one for all rare patterns together.

*Definition.* The cells are the patterns with at least ``min_rows`` training rows, each with its own weights of its
observed features and its own free intercept, and one cell of all other patterns, with one linear model in which missing
values are 0 (the mean of centred features). Unseen patterns belong to that cell. If the rare patterns have fewer than
``min_rows`` rows in all, too few for a model, they and unseen ones belong to the cell of the nearest frequent pattern,
as in `FullyAdaptive`.

*p(F)* = sum over the cells of 1 + the number of observed features, d + 1 for the cell of rare patterns: with n rows at
most n / min_rows patterns are frequent, and p(F) is at most (d + 1) (1 + n / min_rows), while that of `FullyAdaptive`
does not depend on n.

*What it can express.* Any dependence on the pattern where there are enough rows to learn it. With ``min_rows = 1`` it
is `FullyAdaptive`; if no pattern is frequent it is `Static`.

*Where it loses.* With many patterns few are frequent: in ``python -m experiments run classes`` (300 rows of 10
features, 30 % missing, 10 draws) it is next to static on generated data, .532 R2 under MCAR (affine .557) and .378
under censoring (affine intercept .611). On 36 real sets it scores .610 and the affine intercept .626 (R2, or 2 AUC -
1): rows of rare patterns learn nothing from the others. `SharedPatterns` lets them.

*Reference.* A. Ayme, C. Boyer, A. Dieuleveut and E. Scornet, Near-optimal rate of consistency for linear models with
missing values, ICML 2022, arXiv 2202.01463: least squares at each pattern whose share of the rows exceeds a threshold,
for bounds that depend on the law of the patterns and not on 2^d. There rare patterns have the prediction 0.
"""

from collections.abc import Sequence
from typing import Self

import numpy as np
import scipy.sparse as sp

from admiss.adaptivity.base import from_patterns
from admiss.adaptivity.fully_adaptive import FullyAdaptive, coefficients_at_patterns, n_frequent
from admiss.estimator.validation import require_number
from admiss.patterns import lookup, nearest
from formulations.arrays import BoolArray, FloatArray


class FrequentPatterns(FullyAdaptive):
    """One linear model for each frequent pattern, and one for all others.

    Parameters
    ----------
    min_rows : float, optional
        Rows of a frequent pattern at least; 2 (d + 1) by default, twice the number of coefficients.

    Examples
    --------
    >>> M = np.array([[0, 0], [0, 0], [0, 0], [0, 1], [1, 0], [1, 1]], dtype=bool)
    >>> FrequentPatterns(min_rows=3).fit(np.zeros((6, 2)), M).names(["a", "b"])
    ['nothing missing', 'any other pattern']
    """

    # Whether the rare patterns are a cell.
    has_rare_: bool

    def __init__(self, min_rows: float | None = None) -> None:
        self.min_rows = min_rows

    @from_patterns
    def fit(self, X: FloatArray, M: BoolArray, sample_weight: FloatArray | None = None) -> Self:
        if self.min_rows is not None:
            require_number(self, "min_rows", "a non-negative number or None")
        fitted, least = super().fit(X, M, sample_weight), self._least(M.shape[1])
        frequent = fitted.weights_ >= least
        rare = fitted.weights_[~frequent]
        fitted.has_rare_ = bool(len(rare) and (not frequent.any() or rare.sum() >= least))
        fitted.patterns_, fitted.weights_ = fitted.patterns_[frequent], fitted.weights_[frequent]
        return fitted

    def _least(self, d: int) -> float:
        return 2 * (d + 1) if self.min_rows is None else self.min_rows

    def basis(self, M: FloatArray) -> sp.csr_array:
        patterns, P = M.astype(bool), len(self.patterns_)
        if self.has_rare_:
            cells = lookup(self.patterns_, patterns)
            cells[cells < 0] = P
        else:
            cells = nearest(self.patterns_, self.weights_, patterns)
        return sp.csr_array((np.ones(len(M)), (np.arange(len(M)), cells)), shape=(len(M), P + self.has_rare_))

    def mask(self, d: int) -> BoolArray:
        return np.column_stack([super().mask(d), np.ones((d + 1, int(self.has_rare_)), dtype=bool)])

    def names(self, feature_names: Sequence[str]) -> list[str]:
        return super().names(feature_names) + ["any other pattern"] * self.has_rare_

    def n_coefficients(self, d: int, n: float) -> int:
        """Those of as many frequent patterns as n rows can have, and of the cell of the others."""
        every = coefficients_at_patterns(d, 2**d)
        return min(coefficients_at_patterns(d, n_frequent(d, n, max(self._least(d), 1))) + d + 1, every)
