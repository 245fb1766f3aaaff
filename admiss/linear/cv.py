"""Adaptive linear models with adaptivity class and penalty selected by cross-validation (Section 2.4 of the paper).

Adaptivity class, l1_ratio (the paper's alpha), adaptive penalty and lambda are selected jointly, by the held-out loss
(squared error or logistic loss) over all folds. Ties, to a relative 1e-9, go to the simpler model: fewer columns, then
larger lambda, larger adaptive penalty, larger l1_ratio. The selected model is fitted on all rows.

Finite models can be candidates on the same folds: this is "Adaptive LR - best" of the paper.
"""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from admiss.estimator.folds import FoldedRows
from admiss.estimator.searched import SearchedClassifier, SearchedRegressor
from admiss.estimator.validation import unchanged_on_error
from admiss.finite.cv import FiniteClassifierCV, FiniteRegressorCV
from admiss.linear.cv_base import (
    AUTO,
    DEFAULT_ADAPTIVE_PENALTIES,
    DEFAULT_L1_RATIOS,
    AdaptiveSearch,
    Grid,
    few_affine_columns,
)
from admiss.linear.estimators import AdaptiveClassifier, AdaptiveRegressor
from admiss.linear.fold_paths import logistic_folds
from admiss.linear.fold_sums import folds_of_rows, folds_of_sums
from admiss.linear.grid_paths import path_cells
from admiss.linear.streamed import read_statistics, training_sums
from admiss.statistics.row_statistics import RowStatistics
from formulations.losses import Logistic, Squared

# Squared errors below this share of the mean square of y are rounding.
ROUNDING = 1e-14


class AdaptiveRegressorCV(SearchedRegressor, AdaptiveSearch):
    """Adaptive linear regression with all parameters selected by cross-validation.

    Parameters
    ----------
    adaptivity : str, Adaptivity or list
        Candidate classes. "auto" are affine intercepts, and affine weights if they have at most about 300 coefficients
        (with more their paths would take minutes) and about as many rows (otherwise they are often selected by chance).
        "finite", or a :class:`FiniteRegressorCV` with its own grid and partitioner, adds finite models on the
        same folds.
    l1_ratios : sequence of float
        Candidates for the paper's alpha.
    n_lambdas : int
        Length of each path.
    eps : float, "auto" or "glmnet"
        Smallest lambda as a share of the largest. The largest is the least lambda without penalised coefficients, and
        for ridge, which has none, 1e2 times the lambda at which the penalty equals the curvature of the risk. "auto" is
        1e-4, or 1e-2 if there are more columns than rows, and 1e-8 for ridge. "glmnet" is the rule of that package: as
        "auto", with the largest lambda of ridge as if l1_ratio were 1e-3, which depends on the units of y.
    adaptive_penalties : sequence of float
        Candidates for the factor on the penalty of the columns that depend on the pattern.
    cv : int, splitter or iterable
        Number of folds, stratified by pattern, or anything that scikit-learn accepts.
    penalty_weights, center, scale, fit_intercept, max_extrapolation, on_unseen_pattern, solver
        As in :class:`AdaptiveRegressor`.
    stop_early : bool
        Stop a path once its loss is clearly past the minimum; the rest is NaN in ``cv_results_``.
    random_state : int, RandomState or None
        Seed of the folds.
    n_jobs : int, optional
        Threads. The result does not depend on it.

    Attributes
    ----------
    best_estimator_ : AdaptiveRegressor or FiniteRegressor
        The selected model, fitted on all rows.
    best_params_ : dict
        Its class, ``adaptive_penalty``, ``l1_ratio`` and ``lam``; or partitioner, ridge and leaf model if it is finite.
    best_score_ : float
        Minus its held-out loss.
    best_index_ : int
        Its row in ``cv_results_``.
    cv_results_ : Table
        Every cell with its held-out loss (infinite if a fold has no best fit) and the largest violation of the
        optimality conditions in its fits. For finite models ``columns`` is the mean over the folds, ``lam`` the ridge.
    certificate_, imputation_, n_features_in_, feature_names_in_
        As in :class:`AdaptiveRegressor`.

    Examples
    --------
    >>> from admiss import AdaptiveRegressorCV
    >>> from admiss.datasets import make_synthetic
    >>> data = make_synthetic(n=200, mechanism="censoring", random_state=0)
    >>> model = AdaptiveRegressorCV(["static", "affine_intercept"], random_state=0).fit(data.X_train, data.y_train)
    >>> model.best_params_["adaptivity"]
    AffineIntercept()
    """

    _single = AdaptiveRegressor
    _finite_type = FiniteRegressorCV
    _loss = Squared()
    _class_folds = staticmethod(folds_of_rows)

    def __init__(
        self,
        adaptivity: Any = AUTO,
        l1_ratios: Sequence[float] = DEFAULT_L1_RATIOS,
        n_lambdas: int = 100,
        eps: float | str = "auto",
        adaptive_penalties: Sequence[float] = DEFAULT_ADAPTIVE_PENALTIES,
        cv: Any = 5,
        penalty_weights: str = "count",
        center: bool = True,
        scale: bool = True,
        fit_intercept: bool = True,
        max_extrapolation: float = 1.0,
        on_unseen_pattern: str = "nearest",
        stop_early: bool = False,
        solver: str = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(
            adaptivity, l1_ratios, n_lambdas, eps, adaptive_penalties, cv, penalty_weights, center, scale,
            fit_intercept, on_unseen_pattern, stop_early, solver, random_state, n_jobs,
        )  # fmt: skip
        self.max_extrapolation = max_extrapolation

    def fit_statistics(self, statistics: RowStatistics) -> Self:
        """Select a model by cross-validation and fit it, from statistics with folds, as :meth:`fit` does from rows.

        Parameters
        ----------
        statistics : RowStatistics
            With moments of the classes and with folds, which take the place of ``cv``. Of the classes of "auto", those
            whose moments are there are searched.
        """
        classes, finite, options = self._read_grid()
        if finite:
            raise ValueError("Finite candidates need the rows: search them with FiniteRegressorCV, or fit in memory.")
        with unchanged_on_error(self):
            read_statistics(self, statistics)
            if statistics.folds is None:
                raise ValueError("Cross-validation needs folds: collect with RowStatistics(folds=HashFolds(5)).")
            found = statistics.summary()
            missable = int(np.sum(found.n_observed < found.n_rows))
            if self._is_auto():
                many = not few_affine_columns(len(found.n_observed), missable, found.n_rows)
                classes = [c for c in (classes[:1] if many else classes) if statistics.serves(c)] or classes[:1]
            folds = [folds_of_sums(training_sums(statistics, c), c, options) for c in classes]
            rounding = ROUNDING * float(found.mean[-1] ** 2 + found.deviation[-1] ** 2)
            chosen = self._chosen(classes, *self._best(path_cells(folds, options, self.n_jobs), rounding))
            self.best_estimator_ = chosen.fit_statistics(statistics)
        return self

    def _rounding(self, rows: FoldedRows) -> float:
        return ROUNDING * float(rows.s @ rows.targets[0] ** 2 / rows.s.sum())


class AdaptiveClassifierCV(SearchedClassifier, AdaptiveSearch):
    """Adaptive logistic regression with all parameters selected by cross-validation.

    Folds are stratified by pattern and class. More than two classes are fitted one against the rest with the same
    parameters, selected by the sum of their logistic losses.

    Parameters
    ----------
    adaptivity, l1_ratios, n_lambdas, eps, adaptive_penalties, cv, penalty_weights, center, scale, \
fit_intercept, on_unseen_pattern, stop_early, solver, random_state, n_jobs
        As in :class:`AdaptiveRegressorCV`.
    class_weight : dict, "balanced" or None
        As in :class:`AdaptiveClassifier`; it weights the held-out loss too.

    Attributes
    ----------
    best_estimator_ : AdaptiveClassifier or FiniteClassifier
        The selected model, fitted on all rows.
    classes_ : array of shape (n_classes,)
    best_params_, best_score_, best_index_, cv_results_, certificate_, n_features_in_, feature_names_in_
        As in :class:`AdaptiveRegressorCV`.

    Examples
    --------
    >>> from admiss import AdaptiveClassifierCV
    >>> from admiss.datasets import make_synthetic
    >>> data = make_synthetic(n=200, mechanism="censoring", random_state=0)
    >>> model = AdaptiveClassifierCV("affine_intercept", n_lambdas=20, random_state=0)
    >>> model.fit(data.X_train, data.y_train > 0).score(data.X_test, data.y_test > 0) > 0.7
    True
    """

    _single = AdaptiveClassifier
    _finite_type = FiniteClassifierCV
    _loss = Logistic()
    _class_folds = staticmethod(logistic_folds)

    def __init__(
        self,
        adaptivity: Any = AUTO,
        l1_ratios: Sequence[float] = DEFAULT_L1_RATIOS,
        n_lambdas: int = 100,
        eps: float | str = "auto",
        adaptive_penalties: Sequence[float] = DEFAULT_ADAPTIVE_PENALTIES,
        cv: Any = 5,
        penalty_weights: str = "count",
        center: bool = True,
        scale: bool = True,
        fit_intercept: bool = True,
        class_weight: Any = None,
        on_unseen_pattern: str = "nearest",
        stop_early: bool = False,
        solver: str = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(
            adaptivity, l1_ratios, n_lambdas, eps, adaptive_penalties, cv, penalty_weights, center, scale,
            fit_intercept, on_unseen_pattern, stop_early, solver, random_state, n_jobs,
        )  # fmt: skip
        self.class_weight = class_weight

    def _select(self, rows: FoldedRows, grid: Grid) -> Any:
        return super()._select(rows, grid).set_params(class_weight=self.class_weight)
