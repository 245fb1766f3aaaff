"""Steps of each feature and indicators of missing values: a sparse additive model that is not linear in x.

*Definition.* With thresholds t_j1 < .. < t_jB between the quantiles of the observed training values of feature j,

    f(x, m) = b_0 + sum_j b_j m_j + sum_j (1 - m_j) sum_q W_jq 1(x_j > t_jq),

each feature has its own step function, and an own constant if it is missing. An l1 penalty (``l1_ratio=1``) makes few
steps: |W_jq| is the height of a step, so sum_q |W_jq| is the total variation of the step function. A threshold lies in
the middle between two neighbouring values, such that the share of rows below it is at least q / n_bins; values that are
tied are never separated, so a feature with few values has fewer steps, and a constant one none. Steps have no units:
nothing is centred or scaled, and any increasing transformation of a feature gives the same model on the training rows.
The penalty of W_jq is lambda / n_j with n_j the rows in which x_j is observed, and that of b_j as in `AffineIntercept`.

*p(F)* = 1 + d + d (n_bins - 1) at most, given the thresholds, fewer if features have fewer values.

*What it can express.* Additive functions of the features, monotone or not, saturated or with thresholds, and values
that are missing for a reason of their own. It is not linear in x, so there is no ``coef_at``; ``to_text`` prints every
step.

*Where it loses.* Steps are a poor stand-in for a line: .455 R2 under MCAR and .570 under censoring, if the truth is
linear, where the affine intercept has .532 and .611 (``python -m experiments run classes``, 300 rows, 10 draws); on a
neural network .373 and .367, on 36 real sets .620 and .626, from -.27 to +.17 on single sets. An l1 penalty shrinks the
steps that it keeps. With few of them, l0 is better: on 1,000 rows of 10 features, the solver of M-GAM (fastsparsegams
0.2.0, logistic loss, the same columns) has a test AUC of .70, .79 and .71 with 3 to 4 steps where l1 has .66, .68 and
.69 with 3 to 6, and .77, .83 and .77 with 13 to 18 where l1 has .77, .81 and .76 with 14 to 19; a fit takes 30 to 36 ms
there and about 20 ms here.

*Reference.* H. McTavish, J. Donnelly, M. Seltzer and C. Rudin, Interpretable generalized additive models for datasets
with missing values, NeurIPS 2024, arXiv 2412.02646 (M-GAM): bins, indicators and, optionally, their products, under an
l0 penalty. Here without products, and with l1, whose optimum is proven.
"""

from collections.abc import Sequence
from typing import ClassVar, Self

import numpy as np

from admiss.adaptivity.polynomial import AffineIntercept
from admiss.estimator.validation import require_integer
from formulations.arrays import BoolArray, FloatArray, IntArray


class BinnedAffine(AffineIntercept):
    """Step functions of the features, and an affine intercept.

    Parameters
    ----------
    n_bins : int
        Bins of each feature at most; there are n_bins - 1 steps.

    Examples
    --------
    >>> from admiss import AdaptiveRegressor
    >>> x = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, np.nan, np.nan])
    >>> model = AdaptiveRegressor(BinnedAffine(n_bins=3), lam=0.01, l1_ratio=1.0)
    >>> print(model.fit(x[:, None], [0, 0, 2, 2, 9, 9, 5, 5]).to_text(precision=2))
    y =
        +0.013
        +5 [x0 missing]
        +2 [x0 > 2.5]
        +7 [x0 > 4.5]
    """

    constant_imputation: ClassVar[bool] = False
    linear_in_x: ClassVar[bool] = False
    # Threshold of each step, in the order of the features, and its feature.
    thresholds_: FloatArray
    features_: IntArray

    def __init__(self, n_bins: int = 8) -> None:
        self.n_bins = n_bins

    def fit(self, X: FloatArray, M: BoolArray, sample_weight: FloatArray | None = None) -> Self:
        require_integer(self, "n_bins", 1)
        fitted, s = super().fit(X, M), np.ones(len(X)) if sample_weight is None else sample_weight
        each = [_thresholds(x[~m], s[~m], int(self.n_bins)) for x, m in zip(X.T, M.T, strict=True)]
        fitted.thresholds_ = np.concatenate([np.empty(0), *each])
        fitted.features_ = np.repeat(np.arange(len(each)), [len(t) for t in each])
        return fitted

    def basis(self, M: FloatArray) -> FloatArray:
        """1 and the indicators, and 1 for each step, which is a column of its own feature only."""
        return np.hstack([super().basis(M), np.ones((len(M), len(self.thresholds_)))])

    def mask(self, d: int) -> BoolArray:
        own = self.features_ == np.arange(-1, d)[:, None]
        return np.hstack([np.arange(d + 1)[:, None] == np.zeros(len(self.monomials_)), own])

    def names(self, feature_names: Sequence[str]) -> list[str]:
        of_step = [feature_names[j] for j in self.features_.tolist()]
        for digits in range(4, 18):  # as few as tell the steps apart
            steps = [f"{name} > {t:.{digits}g}" for name, t in zip(of_step, self.thresholds_, strict=True)]
            if len(set(steps)) == len(steps):
                break
        return [*super().names(feature_names), *steps]

    def columns(self, X: FloatArray, M: BoolArray) -> FloatArray:
        steps = np.where(M, -np.inf, X)[:, self.features_] > self.thresholds_
        return np.hstack([super().basis(M.astype(float)), steps])

    def n_coefficients(self, d: int, n: float) -> int:
        """The constant, an indicator and the steps of each feature."""
        return 1 + d + d * int(min(self.n_bins, max(n, 1)) - 1)


def _thresholds(x: FloatArray, s: FloatArray, n_bins: int) -> FloatArray:
    """Thresholds between the distinct values of x, near the quantiles q / n_bins of rows of weights s."""
    values, codes = np.unique(x, return_inverse=True)
    below = np.cumsum(np.bincount(codes, s, len(values)))
    quantiles = np.floor_divide(below[:-1] * n_bins, below[-1:])  # how many q / n_bins are reached at each value
    lower = np.flatnonzero(np.diff(np.minimum(quantiles, n_bins - 1), prepend=0.0))
    return np.unique(values[lower] + (values[lower + 1] - values[lower]) / 2)
