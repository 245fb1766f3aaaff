"""Adaptive linear regression and classification (Sections 2.1 to 2.4 of the paper).

    f(x, m) = sum_j w_j(m) (1 - m_j) x_j,     w_j(m) = sum_k W_jk phi_k(m),     x_0 = 1

with the basis phi of an adaptivity class, fitted by the penalised empirical risk

    (1/S) sum_i s_i l(y_i, f(x_i, m_i)) + sum_k lambda_k [ alpha |w_k| + (1 - alpha) w_k^2 / 2 ].
"""

from numbers import Real
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from admiss.adaptivity import Adaptivity, resolve_adaptivity
from admiss.estimator.evidence import evidence_of, with_evidence
from admiss.estimator.labels import class_probabilities, most_likely, read_class_targets
from admiss.estimator.notices import warn_never_observed
from admiss.estimator.unseen import ON_UNSEEN_PATTERN, treat_unseen
from admiss.estimator.validation import (
    AllowsMissing,
    feature_names,
    read_features,
    read_regression_target,
    read_weights,
    refuse_extremes,
    unchanged_on_error,
)
from admiss.linear.describe import AdaptiveDescription
from admiss.linear.design import fit_design
from admiss.linear.fit import solve_program
from admiss.linear.penalty import PENALTY_WEIGHTS, Penalty, penalty_weights
from admiss.patterns import lookup
from formulations.arrays import FloatArray
from formulations.certificate import total
from formulations.losses import LOSSES, Loss, resolve_loss


class _AdaptiveLinear(AdaptiveDescription, AllowsMissing, BaseEstimator):
    """Parameters, fit and predictions, for both tasks."""

    _task: str

    def __init__(
        self,
        adaptivity: str | Adaptivity = "affine_intercept",
        lam: float = 1.0,
        l1_ratio: float = 0.5,
        adaptive_penalty: float = 1.0,
        penalty_weights: str = "count",
        scale: bool = True,
        fit_intercept: bool = True,
        loss: str | Loss = "squared",
        on_unseen_pattern: str = "nearest",
        solver: str = "auto",
    ) -> None:
        self.adaptivity = adaptivity
        self.lam = lam
        self.l1_ratio = l1_ratio
        self.adaptive_penalty = adaptive_penalty
        self.penalty_weights = penalty_weights
        self.scale = scale
        self.fit_intercept = fit_intercept
        self.loss = loss
        self.on_unseen_pattern = on_unseen_pattern
        self.solver = solver

    def _check_parameters(self) -> tuple[Adaptivity, Loss]:
        for name, largest in (("lam", np.inf), ("l1_ratio", 1.0), ("adaptive_penalty", np.inf)):
            value = getattr(self, name)
            if not isinstance(value, Real) or not 0 <= float(value) <= largest or np.isinf(float(value)):
                kind = "number between 0 and 1" if largest == 1.0 else "non-negative number"
                raise ValueError(f"{name} must be a {kind}, not {value!r}.")
        for name, known in (("penalty_weights", PENALTY_WEIGHTS), ("on_unseen_pattern", ON_UNSEEN_PATTERN)):
            value = getattr(self, name)
            if not isinstance(value, str) or value not in known:
                raise ValueError(f"{name} must be one of {', '.join(map(repr, known))}, not {value!r}.")
        for name in ("scale", "fit_intercept"):
            if not isinstance(getattr(self, name), bool | np.bool_):
                raise ValueError(f"{name} must be True or False, not {getattr(self, name)!r}.")
        if not isinstance(self.solver, str):
            raise ValueError(f"solver must be 'auto', 'cvxpy' or the name of a cvxpy solver, not {self.solver!r}.")
        loss = resolve_loss(self.loss)
        if loss.task != self._task:
            fitting = ", ".join(repr(name) for name, other in LOSSES.items() if other.task == self._task)
            raise ValueError(f"The loss {self.loss!r} is for {loss.task}: {type(self).__name__} takes {fitting}.")
        return resolve_adaptivity(self.adaptivity), loss

    def _fit_targets(
        self, X: FloatArray, targets: list[FloatArray], s: FloatArray, adaptivity: Adaptivity, loss: Loss
    ) -> None:
        """Solve one program per target, over the same design; rows of weight 0 are dropped."""
        used = s > 0
        if not used.all():
            X, s, targets = X[used], s[used], [y[used] for y in targets]
        for y in targets:
            refuse_extremes(y, s)
        design = fit_design(X, s, adaptivity, scale=self.scale, fit_intercept=self.fit_intercept)
        names = feature_names(self)
        warn_never_observed(names, sorted(set(range(len(names))) - set(design.features.tolist())))
        lam, alpha = float(self.lam), float(self.l1_ratio)
        u1, u2 = penalty_weights(
            design,
            X,
            s,
            kind=self.penalty_weights,
            adaptive_penalty=float(self.adaptive_penalty),
            standardise=self.scale,
        )
        penalty = Penalty(alpha * lam, (1.0 - alpha) * lam, u1, u2)
        fits = [solve_program(design, X, y, s, loss, penalty, self.solver) for y in targets]
        coefficients = np.array([w / design.column_scale for w, _ in fits])
        self.design_ = design
        self.coefficients_ = coefficients[0] if len(targets) == 1 else coefficients
        self.certificate_ = total([certificate for _, certificate in fits])
        self.certificate_ = with_evidence(self.certificate_, evidence_of(self), X, np.column_stack(targets), s)

    def _scores(self, X: Any) -> FloatArray:
        """f(x, m), of shape (n,) or (n, classes)."""
        check_is_fitted(self)
        X = read_features(self, X, reset=False)
        design = self.design_
        M = np.isnan(X[:, design.features])
        never_missing = design.features[M.any(axis=0) & ~design.missable]
        treat_unseen(self, never_missing, M, lambda M: lookup(design.patterns.patterns, M) >= 0)
        return design.predictor(X, (self.coefficients_ * design.column_scale).T)


class AdaptiveRegressor(RegressorMixin, _AdaptiveLinear):
    """Linear regression whose weights adapt to the missingness pattern.

    Parameters
    ----------
    adaptivity : str or Adaptivity
        How the weights depend on the pattern: ``"static"``, ``"affine_intercept"``, ``"affine"``, ``"polynomial"``,
        ``"fully_adaptive"``, or an object of :mod:`admiss.adaptivity`.
    lam : float
        Strength lambda of the penalty; column k has lambda / n_k.
    l1_ratio : float
        The paper's alpha: 1 is the lasso, 0 is ridge.
    adaptive_penalty : float
        Multiplies the penalty of the columns that depend on the pattern.
    penalty_weights : {"count", "authors"}
        Weights of the penalty, see :mod:`admiss.linear.penalty`.
    scale : bool
        Divide every feature by the standard deviation of its observed training values. The fit then does not depend on
        the units of X; coefficients are reported in the user's units either way. Features are not centred, since zero
        imputation is part of the model: if a feature is far from 0 (a year, say), missing values are a large step that
        the penalty resists. Centre such features first, for instance with scikit-learn's ``StandardScaler``, which
        keeps NaN.
    fit_intercept : bool
        Add an intercept without penalty. The indicators of missing values do not depend on it.
    loss : str or Loss
        ``"squared"``, ``"absolute"``, ``"huber"``, ``"quantile"``, or an object of :mod:`formulations.losses`.
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
        Coefficients of the design columns in the user's units, in the order of ``coef_table()``.
    design_ : Design
        The fitted map from rows to columns.
    imputation_ : array of shape (n_features_in_,)
        mu_j = b_j / w_j, the constants that the model imputes; for static and affine-intercept classes.
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
            y = read_regression_target(self, y, len(X))
            self._fit_targets(X, [y], read_weights(sample_weight, X), adaptivity, loss)
        return self

    def predict(self, X: Any) -> FloatArray:
        """Predicted target of each row."""
        return self._scores(X)


class AdaptiveClassifier(ClassifierMixin, _AdaptiveLinear):
    """Logistic regression whose weights adapt to the missingness pattern.

    More than two classes are fitted one against the rest.

    Parameters
    ----------
    adaptivity, lam, l1_ratio, adaptive_penalty, penalty_weights, scale, fit_intercept, on_unseen_pattern, solver
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
        l1_ratio: float = 0.5,
        adaptive_penalty: float = 1.0,
        penalty_weights: str = "count",
        scale: bool = True,
        fit_intercept: bool = True,
        loss: str | Loss = "logistic",
        class_weight: Any = None,
        on_unseen_pattern: str = "nearest",
        solver: str = "auto",
    ) -> None:
        super().__init__(
            adaptivity, lam, l1_ratio, adaptive_penalty, penalty_weights, scale, fit_intercept, loss,
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
