"""Adaptive linear regression and classification (Sections 2.1 to 2.4 of the paper).

    f(x, m) = sum_j w_j(m) (1 - m_j) (x_j - c_j),     w_j(m) = sum_k W_jk phi_k(m),     x_0 = 1, c_0 = 0

with the basis phi of an adaptivity class and c_j the mean of the observed training values (in the paper, and with
``center=False``, c_j = 0), fitted by the penalised empirical risk

    (1/S) sum_i s_i l(y_i, f(x_i, m_i)) + sum_k lambda_k [ alpha |w_k| + (1 - alpha) w_k^2 / 2 ].
"""

from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin

from admiss.adaptivity import Adaptivity
from admiss.estimator.labels import class_probabilities, most_likely, read_class_targets
from admiss.estimator.validation import (
    is_number,
    read_features,
    read_regression_target,
    read_weights,
    unchanged_on_error,
)
from admiss.linear.base import AdaptiveModel
from admiss.linear.penalty import AUTO
from admiss.linear.streamed import StreamedFit
from formulations.arrays import FloatArray
from formulations.losses import Loss


class AdaptiveRegressor(RegressorMixin, StreamedFit):
    """Linear regression whose weights adapt to the missingness pattern.

    Parameters
    ----------
    adaptivity : str or Adaptivity
        How the weights depend on the pattern: ``"static"``, ``"affine_intercept"``, ``"affine"``, ``"polynomial"``,
        ``"fully_adaptive"``, or an object of :mod:`admiss.adaptivity`.
    lam : float
        Strength lambda of the penalty; column k has lambda / n_k.
    l1_ratio : float
        The paper's alpha: 1 is the lasso, 0 is ridge. With ridge and the squared loss the fit does not depend on the
        units of y either; with other losses ``lam`` belongs to a scale of y.
    adaptive_penalty : float or "auto"
        Multiplies the penalty of the columns that depend on the pattern. "auto" is 1 for intercepts and 8 K for the K
        columns by which the weight of a feature departs from a constant one, so that weights depend on the pattern
        only as far as the rows support it.
    penalty_weights : {"count", "authors"}
        Weights of the penalty, see :mod:`admiss.linear.penalty`.
    center, scale : bool
        Subtract the mean of the observed training values from every feature, so that a missing value stands at the
        mean, and divide by their standard deviation. The fit then depends neither on the origin nor on the units of X;
        coefficients are reported in the user's units. ``center=False, scale=False, adaptive_penalty=1.0`` is the
        program of the paper, with 0 in place of a missing value: if 0 is far from the data (a year, say), it is a large
        step that the penalty resists.
    fit_intercept : bool
        Add an intercept without penalty. The indicators of missing values do not depend on it. Without it features are
        not centred, so that predictions still are 0 at x = 0.
    loss : str or Loss
        ``"squared"``, ``"absolute"``, ``"huber"``, ``"quantile"``, or an object of :mod:`formulations.losses`.
    max_extrapolation : float
        Predictions are kept within the range of y in training, extended on either side by this multiple of its width:
        with heavy-tailed features a linear model can otherwise be off by any amount. Infinity for no limit; ``coef_at``
        and formulas are those of the model without it.
    on_unseen_pattern : {"nearest", "warn", "error"}
        How to treat a pattern that training has not seen: predict (a class with one model per cell takes the cell of
        the nearest pattern), predict and warn, or raise an error.
    solver : str
        ``"auto"`` (the fast engine if it applies, else cvxpy), ``"cvxpy"`` (always the stated program), or the name
        of a cvxpy solver. All give the same model; ``certificate_`` names the solver.

    Attributes
    ----------
    certificate_ : Certificate
        Objective, proven bound and solver of the fit, and the dual point of the bound with one number per row of
        positive weight. It is optimal if the gap is at most 1e-6 of the objective, or of the risk of the best model
        without penalised columns; the bound holds in exact arithmetic, unless the class has a structure.
    coefficients_ : array of shape (p,)
        Coefficients of the design columns in the user's units, in the order of ``coef_table()``; the intercept is that
        of centred features, and ``intercept_at`` has the one at x = 0.
    design_ : Design
        The fitted map from rows to columns.
    imputation_ : array of shape (n_features_in_,)
        mu_j = c_j + b_j / w_j, the constants that the model imputes; for static and affine-intercept classes.
    target_range_ : tuple of float
        Least and largest target in training.
    n_features_in_ : int
    feature_names_in_ : array of str, if X had names

    Examples
    --------
    >>> import numpy as np
    >>> from admiss import AdaptiveRegressor
    >>> X = np.array([[1.0], [2.0], [3.0], [np.nan], [np.nan]])
    >>> y = np.array([1.0, 2.0, 3.0, 5.0, 7.0])
    >>> model = AdaptiveRegressor(lam=0).fit(X, y)
    >>> print(model.predict([[4.0], [np.nan]]).round(6))
    [4. 6.]
    >>> print(model.imputation_.round(6))
    [6.]
    """

    _task = "regression"

    def __init__(
        self,
        adaptivity: str | Adaptivity = "affine_intercept",
        lam: float = 1.0,
        l1_ratio: float = 0.0,
        adaptive_penalty: float | str = AUTO,
        penalty_weights: str = "count",
        center: bool = True,
        scale: bool = True,
        fit_intercept: bool = True,
        loss: str | Loss = "squared",
        max_extrapolation: float = 1.0,
        on_unseen_pattern: str = "nearest",
        solver: str = "auto",
    ) -> None:
        super().__init__(
            adaptivity, lam, l1_ratio, adaptive_penalty, penalty_weights, center, scale, fit_intercept, loss,
            on_unseen_pattern, solver,
        )  # fmt: skip
        self.max_extrapolation = max_extrapolation

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array or data frame of shape (n, d)
            Features, NaN (None, NA, null) if missing.
        y : array of shape (n,)
            Target.
        sample_weight : array of shape (n,), optional
            A weight equals that many copies of the row.
        """
        adaptivity, loss = self._check_parameters()
        with unchanged_on_error(self):
            X = read_features(self, X, reset=True)
            y, s = read_regression_target(self, y, len(X)), read_weights(sample_weight, X)
            self._forget()
            self._fit_rows(X, y, s, adaptivity, loss)
        return self

    def _check_parameters(self) -> tuple[Adaptivity, Loss]:
        unlimited = isinstance(self.max_extrapolation, float) and self.max_extrapolation == np.inf
        if not unlimited and not is_number(self.max_extrapolation):
            raise ValueError(f"max_extrapolation must be a non-negative number, not {self.max_extrapolation!r}.")
        return super()._check_parameters()

    def predict(self, X: Any) -> FloatArray:
        """Predicted target of each row, within the limits of ``max_extrapolation``."""
        scores = self._scores(X)
        if np.isinf(self.max_extrapolation):
            return scores
        low, high = self.target_range_
        margin = self.max_extrapolation * (high - low)
        return np.clip(scores, low - margin, high + margin)


class AdaptiveClassifier(ClassifierMixin, AdaptiveModel):
    """Logistic regression whose weights adapt to the missingness pattern.

    More than two classes are fitted one against the rest.

    Parameters
    ----------
    adaptivity, lam, l1_ratio, adaptive_penalty, penalty_weights, center, scale, fit_intercept, \
on_unseen_pattern, solver
        As in :class:`AdaptiveRegressor`.
    loss : str or Loss
        ``"logistic"``.
    class_weight : dict, "balanced" or None
        Weights of the classes, which multiply the sample weights.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    certificate_, coefficients_, design_, imputation_, n_features_in_, feature_names_in_
        As in :class:`AdaptiveRegressor`, with one row per class if there are more than two. The certificate is then
        that of the sum of all programs, without a dual point.

    Examples
    --------
    >>> import numpy as np
    >>> from admiss import AdaptiveClassifier
    >>> X = np.array([[1.0], [2.0], [3.0], [np.nan], [np.nan], [2.5]])
    >>> model = AdaptiveClassifier(lam=0.1).fit(X, ["no", "no", "yes", "yes", "yes", "no"])
    >>> model.predict([[0.0], [np.nan]]).tolist()
    ['no', 'yes']
    """

    _task = "classification"

    def __init__(
        self,
        adaptivity: str | Adaptivity = "affine_intercept",
        lam: float = 1.0,
        l1_ratio: float = 0.0,
        adaptive_penalty: float | str = AUTO,
        penalty_weights: str = "count",
        center: bool = True,
        scale: bool = True,
        fit_intercept: bool = True,
        loss: str | Loss = "logistic",
        class_weight: Any = None,
        on_unseen_pattern: str = "nearest",
        solver: str = "auto",
    ) -> None:
        super().__init__(
            adaptivity, lam, l1_ratio, adaptive_penalty, penalty_weights, center, scale, fit_intercept, loss,
            on_unseen_pattern, solver,
        )  # fmt: skip
        self.class_weight = class_weight

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model; parameters as in :meth:`AdaptiveRegressor.fit`, with class labels as y."""
        adaptivity, loss = self._check_parameters()
        with unchanged_on_error(self):
            X = read_features(self, X, reset=True)
            self.classes_, _, targets, weights = read_class_targets(self, y, X, sample_weight)
            self._fit_targets(X, targets, weights, adaptivity, loss)
        return self

    def decision_function(self, X: Any) -> FloatArray:
        """Log-odds of the second class, or of each class against the rest."""
        return self._scores(X)

    def predict_proba(self, X: Any) -> FloatArray:
        """Probability of each class; one-against-the-rest probabilities are scaled to sum to 1."""
        return class_probabilities(self._scores(X))

    def predict(self, X: Any) -> Any:
        """Most likely class of each row."""
        codes = most_likely(self._scores(X))
        return self.classes_[codes]
