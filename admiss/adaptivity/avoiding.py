"""An affine intercept that avoids features which are often missing.

*Definition.* One linear model with an affine intercept, b_0 + sum_j [ w_j (1 - m_j) x_j + b_j m_j ], and penalties that
grow with the missing rate r_j of a feature:

    minimise  (1/n) sum_i l(y_i, f(x_i, m_i)) + (lambda / n) sum_j (1 + strength r_j) [ |w_j| + c |b_j| / r_j ]

for ``l1_ratio=1``, with c = ``adaptive_penalty`` (1 if "auto"): the basis of `AffineIntercept` with the penalty factors
(1 + strength r_j) (1 - r_j) for w_j, and 1 + strength r_j for b_j. With ``indicators=False`` the intercept is
constant: this is MA-LASSO of the paper, which has the penalties alpha (r_j + beta / n) next to half of the mean squared
error, for strength = n / beta and lambda = 2 alpha beta. strength = 0 leaves the affine intercept with lambda / n
instead of lambda / n_j.

A prediction *relies* on a missing value if w_j or b_j of a missing feature is not 0; :func:`admiss.reliance` is
the share of such rows. Only an l1 penalty makes weights 0: **use l1_ratio=1**. Cross-validation of the prediction error
alone has no reason to avoid anything: choose the strength by the reliance that you accept, among models that are nearly
as accurate as the best.

*p(F)* = 2 d + 1, as for `AffineIntercept`, or d + 1 without indicators.

*What it can express.* What `AffineIntercept` can: it differs in the features that it prefers. Of two features with the
same information it uses the one that is observed.

*Where it loses.* On 36 real sets (``python -m experiments run classes``) strength = 10 takes the reliance from .23 of
the rows to .08, and costs .017 of the score (R2, or 2 AUC - 1; up to .12 on a set); if all features are missing alike,
as in generated data with 30 % missing, there is nothing to avoid: a reliance of .95 instead of .96 for .003 R2.

*Reference.* L. Stempfle, A. Matsson, N. Mwai and F. D. Johansson, Prediction models that learn to avoid missing values,
ICML 2025, arXiv 2505.03393.
"""

from typing import ClassVar, Self

import numpy as np

from admiss.adaptivity.base import from_patterns
from admiss.adaptivity.polynomial import AffineIntercept
from admiss.estimator.validation import require_flags, require_number
from formulations.arrays import BoolArray, FloatArray


class MissingnessAvoiding(AffineIntercept):
    """An affine intercept with penalties that grow with the missing rates of the features.

    Parameters
    ----------
    strength : float
        A feature that is always missing has the penalty of one that never is, times 1 + strength.
    indicators : bool
        Whether the intercept depends on the pattern.

    Examples
    --------
    >>> from admiss import AdaptiveRegressor, reliance
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=300)
    >>> X = np.column_stack([np.where(rng.uniform(size=300) < 0.3, np.nan, x), x + 0.3 * rng.normal(size=300)])
    >>> models = [AdaptiveRegressor(MissingnessAvoiding(s), lam=30, l1_ratio=1.0).fit(X, x) for s in (0, 30)]
    >>> [round(reliance(model, X), 2) for model in models]
    [0.28, 0.0]
    """

    constant_imputation: ClassVar[bool] = True

    def __init__(self, strength: float = 10.0, indicators: bool = True) -> None:
        self.strength = strength
        self.indicators = indicators

    @from_patterns
    def fit(self, X: FloatArray, M: BoolArray) -> Self:
        require_number(self, "strength")
        require_flags(self, "indicators")
        return super().fit(X, M)

    @property
    def degree(self) -> int:  # type: ignore[override]
        """1 if the intercept depends on the pattern, else 0."""
        return int(self.indicators)

    def penalty_factors(self, counts: FloatArray) -> FloatArray:
        """(1 + strength r_j) (1 - r_j) for the weight of feature j, 1 + strength r_j for its indicator."""
        observed = counts[:, 0] / counts[0, 0]
        grown = 1.0 + self.strength * (1.0 - observed)
        factors = np.ones_like(counts)
        factors[:, 0] = grown * observed
        factors[0, 1:] = self.monomials_[1:] @ grown[1:]
        return factors
