"""Adaptive linear models with adaptivity class and penalty chosen by cross-validation (Section 2.4 of the paper).

Adaptivity classes, l1_ratio (the paper's alpha), adaptive penalty and lambda are chosen at once, by the held-out loss
(squared error, or the logistic loss) over all folds. Ties, to a relative 1e-9, go to the simpler model: fewer columns,
then larger lambda, larger adaptive penalty, larger l1_ratio. The chosen model is fitted on all rows.

Finite models can be candidates on the same folds: that is "Adaptive LR - best" of the paper.
"""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from admiss.adaptivity import Adaptivity, resolve_adaptivity
from admiss.estimator.folds import make_folds
from admiss.estimator.labels import read_class_targets
from admiss.estimator.searched import SearchedClassifier, SearchedModel
from admiss.estimator.validation import (
    feature_names,
    read_features,
    read_regression_target,
    read_weights,
    unchanged_on_error,
)
from admiss.finite.cv import FiniteClassifierCV, FiniteRegressorCV
from admiss.finite.search import HeldOut
from admiss.linear.estimators import AdaptiveClassifier, AdaptiveRegressor
from admiss.linear.fold_paths import ClassFolds, GridOptions, logistic_folds, path_errors, squared_folds
from admiss.terminal.progress import progress
from admiss.terminal.table import Table
from formulations.arrays import FloatArray
from formulations.losses import Logistic, Squared

DEFAULT_CLASSES = ("affine_intercept", "affine")
DEFAULT_L1_RATIOS = (0.0, 0.5, 1.0)
DEFAULT_ADAPTIVE_PENALTIES = (0.25, 1.0, 4.0)
TIE = 1e-9
FINITE = "finite"


class _AdaptiveCV(SearchedModel, BaseEstimator):
    """What the two estimators share: the grid, the choice, and the model behind."""

    adaptivity: Any
    l1_ratios: Sequence[float]
    n_lambdas: int
    eps: float | None
    adaptive_penalties: Sequence[float]
    cv: Any
    penalty_weights: str
    scale: bool
    fit_intercept: bool
    on_unseen_pattern: str
    stop_early: bool
    solver: str
    random_state: Any
    n_jobs: int | None

    _finite_type: type

    def _read_grid(self) -> tuple[list[Adaptivity], list[Any], GridOptions]:
        """Adaptivity classes, finite candidates, and the grid."""
        single = isinstance(self.adaptivity, str | Adaptivity | self._finite_type)
        listed = [self.adaptivity] if single else list(self.adaptivity)
        if not listed:
            raise ValueError("adaptivity is empty: name at least one class.")
        finite = [self._finite_type() if item == FINITE else item for item in listed if self._is_finite(item)]
        for candidate in finite:
            if not isinstance(candidate._read_grid(candidate._estimator()), Squared | Logistic):
                raise ValueError(f"A finite candidate must have the loss of the others, not {candidate.loss!r}.")
        classes = [resolve_adaptivity(adaptivity) for adaptivity in listed if not self._is_finite(adaptivity)]
        for adaptivity in classes:
            if adaptivity.has_structure():
                raise ValueError(
                    f"{type(adaptivity).__name__} has a structure of its own, which the fast paths do not know: "
                    "search over its parameters with scikit-learn's GridSearchCV."
                )
        for name, largest in (("l1_ratios", 1.0), ("adaptive_penalties", np.inf)):
            values = np.asarray(getattr(self, name), dtype=float)
            if (
                values.ndim != 1
                or not len(values)
                or not np.all((values >= 0) & (values <= largest) & (values < np.inf))
            ):
                limits = "between 0 and 1" if largest == 1.0 else "from 0 on"
                raise ValueError(f"{name} must be a list of numbers {limits}, not {getattr(self, name)!r}.")
        if not isinstance(self.n_lambdas, int | np.integer) or self.n_lambdas < 1:
            raise ValueError(f"n_lambdas must be a whole number from 1 on, not {self.n_lambdas!r}.")
        if self.eps is not None and not 0 < self.eps < 1:
            raise ValueError(f"eps must be between 0 and 1, not {self.eps!r}.")
        return (
            classes,
            finite,
            GridOptions(
                [float(alpha) for alpha in self.l1_ratios],
                [float(c) for c in self.adaptive_penalties],
                int(self.n_lambdas),
                self.eps,
                self.penalty_weights,
                bool(self.scale),
                bool(self.fit_intercept),
                bool(self.stop_early),
            ),
        )

    def _is_finite(self, item: Any) -> bool:
        return isinstance(item, self._finite_type) or (isinstance(item, str) and item == FINITE)

    def _search(
        self,
        classes: list[Adaptivity],
        by_class: list[ClassFolds],
        options: GridOptions,
        finite: list[Any],
        finite_results: list[HeldOut],
        rounding: float,
    ) -> tuple[Any, dict[str, Any]]:
        """Fill ``cv_results_`` and return the best cell: its finite candidate or None, and its parameters."""
        tasks = [
            (k, c, alpha)
            for k in range(len(classes))
            for c in range(len(options.adaptive_penalties))
            for alpha in options.l1_ratios
        ]
        runs = Parallel(n_jobs=self.n_jobs, prefer="threads", return_as="generator")(
            delayed(path_errors)(by_class[k], c, alpha, options) for k, c, alpha in tasks
        )
        columns: dict[str, list[Any]] = {name: [] for name in RESULT_COLUMNS}
        for (k, c, alpha), (lambdas, errors, violations) in zip(
            tasks, progress(runs, len(tasks), "cross-validation: paths"), strict=True
        ):
            mean = errors.sum(axis=0) / by_class[k].weight
            count = len(lambdas)
            columns["class_index"] += [k] * count
            columns["adaptivity"] += [repr(classes[k])] * count
            columns["columns"] += [by_class[k].n_columns] * count
            columns["adaptive_penalty"] += [options.adaptive_penalties[c]] * count
            columns["l1_ratio"] += [alpha] * count
            columns["lam"] += lambdas.tolist()
            columns["mean_loss"] += mean.tolist()
            columns["violation"] += violations.tolist()
        for k, (candidate, results) in enumerate(zip(finite, finite_results, strict=True), start=len(classes)):
            candidate.append_cells(columns, results, k)
        self.cv_results_ = Table(**columns)
        if not np.isfinite(self.cv_results_["mean_loss"]).any():
            raise ValueError(
                "No cell of the grid has a best fit: the classes are linearly separable by columns without penalty, so "
                "use adaptive_penalties > 0."
            )
        best = _best_cell(self.cv_results_, rounding)
        chosen = int(self.cv_results_["class_index"][best]) - len(classes)
        if chosen >= 0:  # the candidate has its own rule for the choice among its cells
            cell, parameters = finite[chosen].best_parameters(finite_results[chosen])
            best = int(np.flatnonzero(self.cv_results_["class_index"] == len(classes) + chosen)[cell])
        self.best_index_ = best
        self.best_score_ = -float(self.cv_results_["mean_loss"][best])
        if chosen >= 0:
            return finite[chosen], parameters
        return None, {
            "adaptivity": classes[self.cv_results_["class_index"][best]],
            "adaptive_penalty": float(self.cv_results_["adaptive_penalty"][best]),
            "l1_ratio": float(self.cv_results_["l1_ratio"][best]),
            "lam": float(self.cv_results_["lam"][best]),
        }

    def _shared_parameters(self) -> dict[str, Any]:
        names = ("penalty_weights", "scale", "fit_intercept", "on_unseen_pattern", "solver")
        return {name: getattr(self, name) for name in names}

    def _adopt(self, estimator: Any, X: Any, y: Any, sample_weight: Any, best: dict[str, Any]) -> None:
        self.best_params_ = best
        self._take_over(estimator.fit(X, y, sample_weight))

    @property
    def imputation_(self) -> FloatArray:
        """The values that the chosen model imputes, see :attr:`AdaptiveRegressor.imputation_`."""
        return self._model().imputation_


RESULT_COLUMNS = (
    "class_index", "adaptivity", "columns", "adaptive_penalty", "l1_ratio", "lam", "mean_loss", "violation",
)  # fmt: skip


def _best_cell(results: Table, rounding: float = 0.0) -> int:
    """The smallest loss; among ties, and losses that are rounding, the simpler model."""
    loss = results["mean_loss"]
    smallest = np.nanmin(loss)
    tied = np.flatnonzero(loss <= smallest + TIE * abs(smallest) + rounding)
    order = np.lexsort(
        [
            -np.nan_to_num(results["l1_ratio"][tied]),
            -np.nan_to_num(results["adaptive_penalty"][tied]),
            -results["lam"][tied],
            results["columns"][tied],
        ]
    )
    return int(tied[order[0]])


class AdaptiveRegressorCV(RegressorMixin, _AdaptiveCV):
    """Adaptive linear regression with everything chosen by cross-validation.

    Parameters
    ----------
    adaptivity : str, Adaptivity or list of them
        Candidate classes. "finite", or a :class:`FiniteRegressorCV` with the grid and the partitioner that are wanted,
        adds finite models on the same folds.
    l1_ratios : sequence of float
        Candidates for the paper's alpha.
    n_lambdas : int
        Length of each path.
    eps : float, optional
        Smallest lambda as a share of the largest; by default 1e-4, and 1e-2 where there are more columns than rows.
    adaptive_penalties : sequence of float
        Candidates for the factor on the penalty of the columns that depend on the pattern.
    cv : int, splitter or iterable
        Number of folds, stratified by pattern, or anything that scikit-learn takes.
    penalty_weights, scale, fit_intercept, on_unseen_pattern, solver
        As in :class:`AdaptiveRegressor`.
    stop_early : bool
        Leave a path once its loss is clearly past the minimum; what was left out is NaN in ``cv_results_``.
    random_state : int, RandomState or None
        Seed of the folds.
    n_jobs : int, optional
        Threads. The result does not depend on it.

    Attributes
    ----------
    best_estimator_ : AdaptiveRegressor or FiniteRegressor
        The chosen model, fitted on all rows.
    best_params_ : dict
        Its class, ``adaptive_penalty``, ``l1_ratio`` and ``lam``; of a finite model partitioner, ridge and leaf model.
    best_score_ : float
        Minus its held-out loss.
    best_index_ : int
        Its row in ``cv_results_``.
    cv_results_ : Table
        Every cell with its held-out loss (infinite where a fold has no best fit) and the largest violation of the
        optimality conditions in its fits. Of a finite model ``columns`` is the mean over the folds, ``lam`` the ridge.
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

    _finite_type = FiniteRegressorCV

    def __init__(
        self,
        adaptivity: Any = DEFAULT_CLASSES,
        l1_ratios: Sequence[float] = DEFAULT_L1_RATIOS,
        n_lambdas: int = 100,
        eps: float | None = None,
        adaptive_penalties: Sequence[float] = DEFAULT_ADAPTIVE_PENALTIES,
        cv: Any = 5,
        penalty_weights: str = "count",
        scale: bool = True,
        fit_intercept: bool = True,
        on_unseen_pattern: str = "nearest",
        stop_early: bool = False,
        solver: str = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.adaptivity = adaptivity
        self.l1_ratios = l1_ratios
        self.n_lambdas = n_lambdas
        self.eps = eps
        self.adaptive_penalties = adaptive_penalties
        self.cv = cv
        self.penalty_weights = penalty_weights
        self.scale = scale
        self.fit_intercept = fit_intercept
        self.on_unseen_pattern = on_unseen_pattern
        self.stop_early = stop_early
        self.solver = solver
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose and fit the model; parameters as in :meth:`AdaptiveRegressor.fit`."""
        classes, finite, options = self._read_grid()
        shared = self._shared_parameters()
        AdaptiveRegressor(**shared)._check_parameters()
        with unchanged_on_error(self):
            rows = read_features(self, X, reset=True)
            target = read_regression_target(self, y, len(rows))
            s = read_weights(sample_weight, rows)
            used = s > 0
            splits = make_folds(rows, target, None, s, self.cv, self.random_state)
            by_class = [squared_folds(rows[used], target[used], s[used], a, splits, options) for a in classes]
            rounding = 1e-14 * float(s @ target**2 / s.sum())
            names = feature_names(self)
            tables = [c.search(rows[used], target[used], s[used], splits, Squared(), names) for c in finite]
            chosen, best = self._search(classes, by_class, options, finite, tables, rounding)
            estimator = (
                AdaptiveRegressor(**best, **shared) if chosen is None else chosen._estimator().set_params(**best)
            )
            self._adopt(estimator, X, y, sample_weight, best)
        return self


class AdaptiveClassifierCV(ClassifierMixin, SearchedClassifier, _AdaptiveCV):
    """Adaptive logistic regression with everything chosen by cross-validation.

    Folds are stratified by pattern and class. More than two classes are fitted one against the rest with one choice for
    all, by the sum of their logistic losses.

    Parameters
    ----------
    adaptivity, l1_ratios, n_lambdas, eps, adaptive_penalties, cv, penalty_weights, scale, fit_intercept, \
on_unseen_pattern, stop_early, solver, random_state, n_jobs
        As in :class:`AdaptiveRegressorCV`.
    class_weight : dict, "balanced" or None
        As in :class:`AdaptiveClassifier`; it weighs the held-out loss too.

    Attributes
    ----------
    best_estimator_ : AdaptiveClassifier or FiniteClassifier
        The chosen model, fitted on all rows.
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

    _finite_type = FiniteClassifierCV

    def __init__(
        self,
        adaptivity: Any = DEFAULT_CLASSES,
        l1_ratios: Sequence[float] = DEFAULT_L1_RATIOS,
        n_lambdas: int = 100,
        eps: float | None = None,
        adaptive_penalties: Sequence[float] = DEFAULT_ADAPTIVE_PENALTIES,
        cv: Any = 5,
        penalty_weights: str = "count",
        scale: bool = True,
        fit_intercept: bool = True,
        class_weight: Any = None,
        on_unseen_pattern: str = "nearest",
        stop_early: bool = False,
        solver: str = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.adaptivity = adaptivity
        self.l1_ratios = l1_ratios
        self.n_lambdas = n_lambdas
        self.eps = eps
        self.adaptive_penalties = adaptive_penalties
        self.cv = cv
        self.penalty_weights = penalty_weights
        self.scale = scale
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.on_unseen_pattern = on_unseen_pattern
        self.stop_early = stop_early
        self.solver = solver
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose and fit the model; parameters as in :meth:`AdaptiveClassifier.fit`."""
        classes, finite, options = self._read_grid()
        shared = {**self._shared_parameters(), "class_weight": self.class_weight}
        AdaptiveClassifier(**shared)._check_parameters()
        with unchanged_on_error(self):
            rows = read_features(self, X, reset=True)
            _, codes, all_targets, s = read_class_targets(self, y, rows, sample_weight)
            used = s > 0
            splits = make_folds(rows, codes, codes, s, self.cv, self.random_state)
            targets = [target[used] for target in all_targets]
            by_class = [logistic_folds(rows[used], targets, s[used], a, splits, options) for a in classes]
            names, stacked = feature_names(self), np.column_stack(targets)
            tables = [c.search(rows[used], stacked, s[used], splits, Logistic(), names) for c in finite]
            chosen, best = self._search(classes, by_class, options, finite, tables, 0.0)
            if chosen is None:
                self._adopt(AdaptiveClassifier(**best, **shared), X, y, sample_weight, best)
            else:
                estimator = chosen._estimator().set_params(**best, class_weight=self.class_weight)
                self._adopt(estimator, X, y, sample_weight, best)
        return self
