"""Adaptive linear regression and classification (Sections 2.1 to 2.4 of the paper).

    f(x, m) = sum_j w_j(m) (1 - m_j) (x_j - c_j),     w_j(m) = sum_k W_jk phi_k(m),     x_0 = 1, c_0 = 0

with the basis phi of an adaptivity class and c_j the mean of the observed training values (in the paper, and with
``center=False``, c_j = 0), fitted by the penalised empirical risk

    (1/S) sum_i s_i l(y_i, f(x_i, m_i)) + sum_k lambda_k [ alpha |w_k| + (1 - alpha) w_k^2 / 2 ].
"""

from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.metaestimators import available_if

from admiss.adaptivity import Adaptivity
from admiss.estimator.exposure import deviance_explained, read_exposure
from admiss.estimator.labels import LogOddsClassifier
from admiss.estimator.notices import warn
from admiss.estimator.validation import read_features, refuse_arguments, unchanged_on_error
from admiss.linear.base import STATISTICS, AdaptiveModel
from admiss.linear.design import Design
from admiss.linear.fit import solve_moments
from admiss.linear.logistic import clipped
from admiss.linear.penalty import AUTO
from admiss.linear.stated_program import Fit
from admiss.linear.training_patterns import TrainingPatterns, solve_patterns
from admiss.linear.training_sums import TrainingSums
from admiss.statistics.product_columns import refuse_learners
from admiss.statistics.row_statistics import RowStatistics, adopt_features, require_squared
from formulations.arrays import FloatArray
from formulations.log_link import LogLink
from formulations.losses import Loss, resolve_loss


class _SolvedOnUse:
    """An attribute of a fit that :meth:`AdaptiveRegressor.partial_fit` leaves to be computed when it is used first."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, model: "AdaptiveRegressor | None", owner: type) -> Any:
        statistics = None if model is None else vars(model).get(STATISTICS)
        if model is None or statistics is None:
            raise AttributeError(f"{owner.__name__!r} object has no attribute {self.name!r}")
        adaptivity, _ = model._check_parameters()
        model._fit_sums(TrainingSums.of_statistics(statistics, adaptivity), adaptivity)
        return vars(model)[self.name]


def read_statistics(estimator: Any, statistics: Any) -> None:
    """Store number and names of the features, or raise an error if there is nothing to fit."""
    adopt_features(estimator, statistics)
    if estimator.on_unseen_pattern != "nearest" and not len(statistics.pattern_table().patterns):
        raise ValueError(
            f"on_unseen_pattern={estimator.on_unseen_pattern!r} needs the patterns of the training rows: collect them "
            "with RowStatistics(patterns=True)."
        )
    if estimator.solver != "auto":
        raise ValueError(f"solver={estimator.solver!r} needs the rows, not only their statistics: use solver='auto'.")
    if estimator.constraints is not None or estimator.monotonic_cst is not None:
        raise ValueError("constraints and monotonic_cst need the rows, not only their statistics: use fit.")


def training_of(statistics: RowStatistics, adaptivity: Adaptivity) -> TrainingSums | TrainingPatterns:
    """The rows of statistics for a class: by its moments if they are there, else by patterns."""
    by_patterns = statistics.patterns and adaptivity.linear_at_patterns() and not statistics.serves(adaptivity)
    if by_patterns:
        return TrainingPatterns(statistics, np.arange(statistics.n_folds))
    return TrainingSums.of_statistics(statistics, adaptivity)


def _adds_rows(model: "AdaptiveRegressor") -> bool:
    """Whether rows can be added: the loss must be squared, and the basis of the class fixed."""
    try:
        adaptivity, loss = model._check_parameters()
        require_squared(loss)
        refuse_learners(adaptivity)
    except ValueError as error:
        raise AttributeError(f"There is no partial_fit here: {error}") from error
    return True


class AdaptiveRegressor(RegressorMixin, AdaptiveModel):
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
        ``"squared"``, ``"absolute"``, ``"huber"``, ``"quantile"``, or ``"poisson"`` for counts, ``"gamma"`` for amounts
        and ``"tweedie"`` for sums of amounts, or an object of :mod:`formulations.losses` with parameters of its own,
        such as ``Quantile(0.9)`` or ``Tweedie(1.3)``. The last three are half the deviance of a model of the log of the
        mean: coefficients add up to that, and ``score`` is the fraction of the deviance explained.
    max_extrapolation : float
        Predictions are kept within the range of y in training, extended on either side by this multiple of its width:
        with heavy-tailed features a linear model can otherwise be off by any amount. With a log link it is the range of
        the log of the predicted mean, without the exposure. Infinity for no limit; ``coef_at`` and formulas are those
        of the model without it.
    on_unseen_pattern : {"nearest", "warn", "error"}
        How to treat a pattern that training has not seen: predict (a class with one model per cell takes the cell of
        the nearest pattern), predict and warn, or raise an error.
    solver : str
        ``"auto"`` (the fast engine if it applies, else cvxpy), ``"cvxpy"`` (always the stated program), or the name
        of a cvxpy solver. All give the same model; ``certificate_`` names the solver.
    constraints : callable, optional
        A function of the :class:`~admiss.linear.program.AdaptiveProgram` that returns a list of cvxpy constraints, such
        as ``lambda program: [program.largest_step("income") <= 2.0]``.
    monotonic_cst : dict or array of shape (d,), optional
        1 (its weight is never negative) or -1 (never positive) for a feature, by name or for all of them, 0 for none.
        The sign holds at every pattern, for classes whose weights are static, affine, or separate per cell. With
        constraints cvxpy solves the program, and the bound of the certificate is the solver's.

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
        Least and largest target in training; targets are per unit of exposure if there is one.
    predictor_range_ : tuple of float
        Least and largest log of the predicted mean in training, with a log link.
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

    design_ = _SolvedOnUse()
    coefficients_ = _SolvedOnUse()
    certificate_ = _SolvedOnUse()
    target_range_ = _SolvedOnUse()
    _task = "regression"
    _numbers = (*AdaptiveModel._numbers, "max_extrapolation")
    _printed = AdaptiveModel._printed | {"max_extrapolation": np.inf}

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
        constraints: Any = None,
        monotonic_cst: Any = None,
    ) -> None:
        self.adaptivity = adaptivity
        self.lam = lam
        self.l1_ratio = l1_ratio
        self.adaptive_penalty = adaptive_penalty
        self.penalty_weights = penalty_weights
        self.center = center
        self.scale = scale
        self.fit_intercept = fit_intercept
        self.loss = loss
        self.max_extrapolation = max_extrapolation
        self.on_unseen_pattern = on_unseen_pattern
        self.solver = solver
        self.constraints = constraints
        self.monotonic_cst = monotonic_cst

    def fit(self, X: Any, y: Any, sample_weight: Any = None, exposure: Any = None, **unknown: Any) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array or data frame of shape (n, d)
            Features, NaN (None, NA, null) if missing.
        y : array of shape (n,)
            Target.
        sample_weight : array of shape (n,), optional
            A weight equals that many copies of the row.
        exposure : array of shape (n,), optional
            The time, number or area for which y was counted, with a log link: its log is added to that of the mean.
        **unknown
            Refused.
        """
        if unknown:
            refuse_arguments(self, unknown)
        return self._fit(X, y, sample_weight, exposure)

    def predict(self, X: Any, exposure: Any = None) -> FloatArray:
        """Predicted target of each row, within the limits of ``max_extrapolation``.

        Parameters
        ----------
        X : array or data frame of shape (n, d)
            Features, NaN (None, NA, null) if missing.
        exposure : array of shape (n,), optional
            As in :meth:`fit`; predictions are for one unit of it by default.
        """
        scores, loss = self._scores(X), resolve_loss(self.loss)
        e = read_exposure(exposure, loss, len(scores))
        if isinstance(loss, LogLink):
            z = clipped(scores, np.array(self.predictor_range_), float(self.max_extrapolation))
            return np.exp(z) if e is None else e * np.exp(z)
        if float(self.max_extrapolation) == np.inf:
            return scores
        low, high = self.target_range_
        margin = float(self.max_extrapolation) * (high - low)
        return np.clip(scores, low - margin, high + margin)

    def score(self, X: Any, y: Any, sample_weight: Any = None, exposure: Any = None) -> float:
        """R^2, or with a log link D^2, the fraction of the deviance explained.

        Parameters
        ----------
        X : array or data frame of shape (n, d)
            Features, NaN (None, NA, null) if missing.
        y : array of shape (n,)
            Target.
        sample_weight : array of shape (n,), optional
            Weights of the rows.
        exposure : array of shape (n,), optional
            As in :meth:`fit`.
        """
        loss, predictions = resolve_loss(self.loss), self.predict(X, exposure)
        if not isinstance(loss, LogLink):
            return float(r2_score(y, predictions, sample_weight=sample_weight))
        return deviance_explained(loss, y, predictions, sample_weight, exposure)

    def fit_statistics(self, statistics: RowStatistics) -> Self:
        """Fit the model from statistics of the rows, as :meth:`fit` does from the rows.

        Parameters
        ----------
        statistics : RowStatistics
            With the moments of this adaptivity class, or, for any class that is linear in x at every pattern, of each
            pattern. The certificate is proven from them alone, and has no dual point.
        """
        adaptivity, loss = self._check_parameters()
        require_squared(loss)
        with unchanged_on_error(self):
            self.__dict__.pop(STATISTICS, None)
            read_statistics(self, statistics)
            self._fit_sums(training_of(statistics, adaptivity), adaptivity)
        return self

    @available_if(_adds_rows)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Add rows; the model of all rows so far is fitted when it is used first.

        The fit is that of :meth:`fit_statistics`, whatever the order and size of the blocks. It does not continue a
        ``fit``, which keeps no statistics, and exists for the squared loss and classes whose basis is fixed.
        """
        adaptivity, _ = self._check_parameters()
        with unchanged_on_error(self):
            statistics = vars(self).get(STATISTICS)
            if statistics is None:
                if "coefficients_" in vars(self):
                    warn("fit has not kept its rows, so partial_fit starts anew.")
                statistics = RowStatistics(adaptivity, tree_depth=None)
            read_features(self, X, reset=not statistics.parts)
            block = RowStatistics(adaptivity, tree_depth=None)
            statistics = statistics.merge(block.update(X, y, sample_weight))
            for name in ("design_", "coefficients_", "certificate_", "target_range_"):
                self.__dict__.pop(name, None)
            self._statistics = statistics
            read_statistics(self, statistics)
        return self

    def _fit_sums(self, rows: TrainingSums | TrainingPatterns, adaptivity: Adaptivity) -> None:
        design, fit = self._solved(rows, adaptivity)
        if fit is None:
            raise ValueError(
                "The columns are dependent up to the accuracy of their moments: use a larger lam, or fit in memory."
            )
        self._adopt(design, *fit)
        self.target_range_ = rows.target_range

    def _solved(self, rows: TrainingSums | TrainingPatterns, adaptivity: Adaptivity) -> tuple[Design, Fit | None]:
        """The design and the fit by sums; None if there is none."""
        design = rows.design(adaptivity, self._design_options())
        penalty = self._penalty(design)
        if isinstance(rows, TrainingPatterns):
            return design, solve_patterns(rows, design, penalty)
        return design, solve_moments(rows, design, penalty)


class AdaptiveClassifier(LogOddsClassifier, AdaptiveModel):
    """Logistic regression whose weights adapt to the missingness pattern.

    More than two classes are fitted one against the rest.

    Parameters
    ----------
    adaptivity, lam, l1_ratio, adaptive_penalty, penalty_weights, center, scale, fit_intercept, \
on_unseen_pattern, solver, constraints, monotonic_cst
        As in :class:`AdaptiveRegressor`; constraints are about the log-odds, of two classes.
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
        constraints: Any = None,
        monotonic_cst: Any = None,
    ) -> None:
        self.adaptivity = adaptivity
        self.lam = lam
        self.l1_ratio = l1_ratio
        self.adaptive_penalty = adaptive_penalty
        self.penalty_weights = penalty_weights
        self.center = center
        self.scale = scale
        self.fit_intercept = fit_intercept
        self.loss = loss
        self.class_weight = class_weight
        self.on_unseen_pattern = on_unseen_pattern
        self.solver = solver
        self.constraints = constraints
        self.monotonic_cst = monotonic_cst
