"""The weights implied by a Gaussian law of the features.

*Definition.* Features are Gaussian with mean mu and covariance Sigma, and the truth is linear, f(x) = beta_0 + beta'x.
Missing values are then best replaced by their conditional means, x^ = E[x | x_obs], and

    f(x, m) = beta_0 + beta'x^ + sum_j b_j m_j,

    w(m) = beta_o + Sigma_oo^+ Sigma_om beta_m
    b(m) = beta_0 + beta_m'(mu_m - Sigma_mo Sigma_oo^+ mu_o) + sum_j b_j m_j

for observed features o and missing ones m. mu and Sigma are fitted to the training rows by EM (``admiss/laws``), beta
and b by regression. b_j is an affine intercept for values that are not missing at random.

*p(F)* = 2 d + 1 for a given law; the law adds O(d^2) parameters, which are learned without y.

*What it can express.* Fully adaptive weights with the parameters of one covariance: for Gaussian features that are
missing at random and a linear truth it contains the best predictor. With ``law="censored"`` missing values lie beyond
the extreme observed ones and x^ is the mean of a truncated Gaussian: it is not linear in x at a pattern, so there is no
``coef_at``. The data do not identify the law with certainty; cross-validation selects it.

*Where it loses.* If features are far from Gaussian, or hardly correlated (it is then the affine intercept with more
parameters to learn); if the pattern itself carries the signal, beyond an affine intercept; if weights depend on the
pattern for other reasons than correlation, which `Affine` can represent and this class cannot. On values that are
missing completely at random the censored law loses all that the Gaussian one gains: R2 .56 against .66 on generated
data of the paper (MCAR, linear signals, n = 200 and 800, 30 % and 60 % missing). Weights of rows count as copies: the
prior is in rows.

*Reference.* Le Morvan, Prost, Josse, Scornet and Varoquaux, *Linear predictor on linearly-generated data with missing
values: non consistency and solutions*, AISTATS 2020.
"""

from collections.abc import Sequence
from typing import ClassVar, Self

import numpy as np

from admiss.adaptivity.polynomial import AffineIntercept
from admiss.laws import DEFAULT_PRIOR, Law, check_law, fit_law
from formulations.arrays import BoolArray, FloatArray


class ConditionalMean(AffineIntercept):
    """One linear model of the conditional means of the features, and an affine intercept.

    Parameters
    ----------
    law : {"gaussian", "censored"}
        Whether missing values follow the Gaussian law of the others, or lie beyond the extreme observed values.
    prior : float
        Strength of the shrinkage towards uncorrelated features, in rows; 0 is maximum likelihood, which does not exist
        if features are linearly dependent.

    Examples
    --------
    >>> from admiss import AdaptiveRegressor
    >>> X = np.array([[1.0, 2.0], [2.0, 4.0], [3.0, 6.0], [4.0, 8.0], [5.0, np.nan]])
    >>> model = AdaptiveRegressor(ConditionalMean(prior=1e-3), lam=1e-3).fit(X, X[:, 0])
    >>> print(model.coef_at([0, 1]).round(1), model.predict([[8.0, np.nan]]).round(1))
    [1. 0.] [8.]
    """

    constant_imputation: ClassVar[bool] = False
    law_: Law

    def __init__(self, law: str = "gaussian", prior: float = DEFAULT_PRIOR) -> None:
        self.law = law
        self.prior = prior

    def fit(self, X: FloatArray, M: BoolArray, sample_weight: FloatArray | None = None) -> Self:
        check_law(self.law, self.prior)
        fitted = super().fit(X, M)
        weights = np.ones(len(X)) if sample_weight is None else sample_weight
        fitted.law_ = fit_law(X, weights, self.law, self.prior)
        return fitted

    def columns(self, X: FloatArray, M: BoolArray) -> FloatArray:
        return np.hstack([self.basis(M.astype(float)), self.law_.expect(np.where(M, np.nan, X))])

    def counts(self, patterns: BoolArray, weights: FloatArray) -> FloatArray:
        """As for an affine intercept, but every row contributes to the weight of every feature."""
        counts = super().counts(patterns, weights)
        counts[1:, 0] = weights.sum()
        return counts

    def feature_words(self, feature_names: Sequence[str]) -> list[str]:
        return [f"E[{name}]" for name in feature_names]

    def linear_at_patterns(self) -> bool:
        return self.law == "gaussian"
