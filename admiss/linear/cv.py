"""Adaptive linear models with adaptivity class and penalty selected by cross-validation (Section 2.4 of the paper).

Adaptivity class, l1_ratio (the paper's alpha), adaptive penalty and lambda are selected jointly, by the held-out loss
(that of the fit) over all folds; of a classifier with many rows in two steps. Ties, to a relative 1e-9,
go to the simpler model: fewer columns, then larger lambda, larger adaptive penalty, larger l1_ratio. The selected model
is fitted on all rows.

Finite models can be candidates on the same folds: this is "Adaptive LR - best" of the paper.
"""

from collections.abc import Callable, Sequence
from functools import partial
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np

from admiss.adaptivity import Adaptivity, resolve_adaptivity
from admiss.estimator.cross_validation import (
    FoldedRows,
    SearchedClassifier,
    SearchedModel,
    SearchedRegressor,
    sample_rows,
)
from admiss.estimator.validation import unchanged_on_error
from admiss.finite.cv import FiniteClassifierCV, FiniteRegressorCV
from admiss.linear.design import DesignOptions
from admiss.linear.estimators import AdaptiveClassifier, AdaptiveRegressor, read_statistics, training_of
from admiss.linear.folds import (
    EPS_RULES,
    ClassFolds,
    GridOptions,
    folds_of_sums,
    logistic_folds,
    piecewise_folds,
    squared_folds,
)
from admiss.linear.grid_paths import Task, best_cell, best_tasks, cell_parameters, grid_cells, grid_tasks, joined
from admiss.linear.piecewise import PIECEWISE
from admiss.patterns import missing_once
from admiss.statistics.row_statistics import RowStatistics, require_squared
from admiss.terminal.table import Table
from formulations.arrays import FloatArray
from formulations.log_link import LogLink
from formulations.losses import Loss, Squared, resolve_loss

# Squared errors below this share of the mean square of y are rounding.
ZERO_LOSS = 1e-14
AUTO, AUTO_CLASSES = "auto", ("affine_intercept", "affine")
# Affine weights are left out of the default classes if they have more coefficients than this, since their paths would
# take minutes, or than rows, since cross-validation then finds them by chance.
AFFINE_COLUMNS = 300
DEFAULT_L1_RATIOS = (0.0, 0.5, 1.0)
DEFAULT_ADAPTIVE_PENALTIES = (0.25, 1.0, 4.0)
FINITE = "finite"
# Rows of the sample on which a classifier compares l1_ratios and adaptive penalties: with 6,000 the AUC on 20,000 x 8,
# 30,000 x 30 and 100,000 x 20 rows was within 0.0003 of that of the full search, in 0.2 to 0.45 of its time.
SEARCH_ROWS = 6_000
MOST_LAMBDAS = 10_000

# Folds of a class, ready for paths.
MakeFolds = Callable[[FoldedRows, Adaptivity, GridOptions], ClassFolds]
# Adaptivity classes, finite candidates, and the grid of the classes.
Grid = tuple[list[Adaptivity], list[Any], GridOptions]


class AdaptiveSearch(SearchedModel):
    """Grid and selection, for both tasks."""

    _finite_type: type
    # Parameters with which the programs are those of the paper.
    _printed: ClassVar[dict[str, Any]] = {"center": False, "scale": False, "adaptive_penalties": (1.0,)}

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
        on_unseen_pattern: str = "nearest",
        stop_early: bool = False,
        solver: str = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
        constraints: Any = None,
        monotonic_cst: Any = None,
    ) -> None:
        self.adaptivity = adaptivity
        self.l1_ratios = l1_ratios
        self.n_lambdas = n_lambdas
        self.eps = eps
        self.adaptive_penalties = adaptive_penalties
        self.cv = cv
        self.penalty_weights = penalty_weights
        self.center = center
        self.scale = scale
        self.fit_intercept = fit_intercept
        self.on_unseen_pattern = on_unseen_pattern
        self.stop_early = stop_early
        self.solver = solver
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.constraints = constraints
        self.monotonic_cst = monotonic_cst

    @classmethod
    def paper(cls, **parameters: Any) -> Self:
        """The program of Section 2.4 of the paper as it is printed, with lambda and alpha by 5-fold cross-validation.

        For what differs by default, and why, see :meth:`admiss.AdaptiveRegressor.paper`; ``adaptive_penalties`` are
        searched by default, and 1 here.

        Parameters
        ----------
        **parameters
            Of the estimator, such as ``adaptivity`` and ``l1_ratios``; those given replace the printed ones.
        """
        return cls(**(cls._printed | parameters))

    def _read_grid(self) -> Grid:
        single = isinstance(self.adaptivity, str | Adaptivity | self._finite_type) or np.ndim(self.adaptivity) == 0
        candidates = [self.adaptivity] if single else list(self.adaptivity)
        candidates = list(AUTO_CLASSES) if self._is_auto() else candidates
        if not candidates:
            raise ValueError("adaptivity is empty: name at least one class.")
        finite = [self._finite_type() if item == FINITE else item for item in candidates if self._is_finite(item)]
        for candidate in finite:
            if candidate._read_grid() != self._loss():
                raise ValueError(f"A finite candidate must have the loss of the others, not {candidate.loss!r}.")
        classes = [resolve_adaptivity(adaptivity) for adaptivity in candidates if not self._is_finite(adaptivity)]
        for adaptivity in classes:
            if adaptivity.has_structure():
                raise ValueError(
                    f"{type(adaptivity).__name__} has a structure of its own, which the fast paths do not support: "
                    "search over its parameters with scikit-learn's GridSearchCV."
                )
        for name, largest in (("l1_ratios", 1.0), ("adaptive_penalties", np.inf)):
            listed_values = getattr(self, name)
            values = np.asarray(listed_values) if np.ndim(listed_values) == 1 else np.empty(0)
            is_number = values.dtype.kind in "iuf"
            if not len(values) or not is_number or not np.all((values >= 0) & (values <= largest) & (values < np.inf)):
                limits = "numbers between 0 and 1" if largest == 1.0 else "non-negative numbers"
                raise ValueError(f"{name} must be a list of {limits}, not {getattr(self, name)!r}.")
        if not isinstance(self.n_lambdas, int | np.integer) or not 1 <= self.n_lambdas <= MOST_LAMBDAS:
            raise ValueError(f"n_lambdas must be a whole number from 1 to {MOST_LAMBDAS:,}, not {self.n_lambdas!r}.")
        if not isinstance(self.stop_early, bool | np.bool_):
            raise ValueError(f"stop_early must be True or False, not {self.stop_early!r}.")
        is_share = isinstance(self.eps, Real) and 0 < self.eps < 1
        if not is_share and not (isinstance(self.eps, str) and self.eps in EPS_RULES):
            raise ValueError(f"eps must be between 0 and 1, 'auto' or 'glmnet', not {self.eps!r}.")
        self._estimator("adaptivity")._check_parameters()
        options = GridOptions(
            l1_ratios=[float(alpha) for alpha in self.l1_ratios],
            adaptive_penalties=[float(c) for c in self.adaptive_penalties],
            n_lambdas=int(self.n_lambdas),
            eps=self.eps,
            penalty_weights=self.penalty_weights,
            of_design=DesignOptions(bool(self.center), bool(self.scale), bool(self.fit_intercept)),
            stop_early=bool(self.stop_early),
        )
        return classes, finite, options

    def _loss(self) -> Loss:
        """The loss of the candidates."""
        return resolve_loss(getattr(self, "loss", "logistic"))

    def _class_folds(self) -> MakeFolds:
        """How the folds of a class are made."""
        return partial(logistic_folds, loss=self._loss())

    def _is_auto(self) -> bool:
        return isinstance(self.adaptivity, str) and self.adaptivity == AUTO

    def _is_finite(self, item: Any) -> bool:
        return isinstance(item, self._finite_type) or (isinstance(item, str) and item == FINITE)

    def _select(self, rows: FoldedRows, grid: Grid) -> Any:
        if self.constraints is None and self.monotonic_cst is None:
            return self._select_on(self._class_folds(), rows, grid)
        if grid[1]:
            raise ValueError("Finite candidates take no constraints or monotonic_cst: leave them out.")
        from admiss.linear.program_folds import program_folds

        model = self._estimator("adaptivity")
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self, name):
                setattr(model, name, getattr(self, name))
        return self._select_on(partial(program_folds, model, self._class_folds()), rows, grid)

    def _select_on(self, class_folds: MakeFolds, rows: FoldedRows, grid: Grid) -> Any:
        """Select on the folds that ``class_folds`` makes of each class."""
        classes, finite, options = grid
        rounding, missable = self._rounding(rows), len(missing_once(np.isnan(rows.X)))
        if self._is_auto() and not few_affine_columns(rows.X.shape[1], missable, len(rows.X)):
            classes = classes[:1]
        promising = self._promising(class_folds, rows, classes, options)
        folds = [class_folds(rows, adaptivity, options) for adaptivity in classes]
        parts = grid_cells(folds, options, self.n_jobs, promising)
        held_out = [candidate.search(rows, self._loss()) for candidate in finite]
        for k, (candidate, losses) in enumerate(zip(finite, held_out, strict=True), start=len(classes)):
            parts.append({"class_index": k, **candidate.cells(losses)})
        results = joined(parts)
        best = best_cell(results, rounding)
        k = int(results["class_index"][best])
        if k < len(classes):
            return self._chosen(results, best, cell_parameters(classes[k], results, best))
        candidate = finite[k - len(classes)]
        # by its own rule for the choice among its cells
        cell, parameters = candidate.best_parameters(held_out[k - len(classes)])
        return self._chosen(results, int(np.flatnonzero(results["class_index"] == k)[cell]), parameters, candidate)

    def _promising(
        self, class_folds: MakeFolds, rows: FoldedRows, classes: list[Adaptivity], options: GridOptions
    ) -> list[Task] | None:
        """The paths that are followed on all rows; None for all."""
        return None

    def _rounding(self, rows: FoldedRows) -> float:
        """Losses below this are rounding."""
        return 0.0

    @property
    def imputation_(self) -> FloatArray:
        """The values that the selected model imputes, see :attr:`AdaptiveRegressor.imputation_`."""
        model = self._model()
        if not hasattr(model, "design_"):
            raise AttributeError("A finite model is not imputation by constants: imputation_ exists for adaptive ones.")
        return model.imputation_


def few_affine_columns(d: int, missable: int, rows: int = AFFINE_COLUMNS) -> bool:
    """Whether affine weights of d features, ``missable`` of which can be missing, are searched by default."""
    return (d + 1) * (missable + 1) <= min(AFFINE_COLUMNS, rows)


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
        1e-4, or 1e-2 * l1_ratio, at least 1e-4, if a fold trains on fewer rows than there are columns, and 1e-8 for
        ridge. "glmnet" is the rule of that package: 1e-4 or 1e-2, with the largest lambda of ridge as if l1_ratio were
        1e-3, which depends on the units of y.
    adaptive_penalties : sequence of float
        Candidates for the factor on the penalty of the columns that depend on the pattern.
    cv : int, splitter or iterable
        Number of folds, stratified by pattern, or anything that scikit-learn accepts.
    penalty_weights, center, scale, fit_intercept, max_extrapolation, on_unseen_pattern, solver, constraints, \
monotonic_cst
        As in :class:`AdaptiveRegressor`. With constraints every cell of the grid is solved by cvxpy, some milliseconds
        each: fewer ``n_lambdas`` and candidates then save time.
    stop_early : bool
        Stop a path once its loss is clearly past the minimum; the rest is NaN in ``cv_results_``.
    random_state : int, RandomState or None
        Seed of the folds.
    n_jobs : int, optional
        Threads. The result does not depend on it.
    loss : str or Loss
        As in :class:`AdaptiveRegressor`: squared, absolute, Huber, quantile, Poisson, Gamma or Tweedie. It is the
        held-out loss, too. Finite candidates must have the same.

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
    _printed = AdaptiveSearch._printed | {"max_extrapolation": np.inf}
    _finite_type = FiniteRegressorCV

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
        constraints: Any = None,
        monotonic_cst: Any = None,
        loss: str | Loss = "squared",
    ) -> None:
        super().__init__(
            adaptivity, l1_ratios, n_lambdas, eps, adaptive_penalties, cv, penalty_weights, center, scale,
            fit_intercept, on_unseen_pattern, stop_early, solver, random_state, n_jobs,
            constraints, monotonic_cst,
        )  # fmt: skip
        self.max_extrapolation = max_extrapolation
        self.loss = loss

    def _class_folds(self) -> MakeFolds:
        loss = self._loss()
        if isinstance(loss, Squared):
            return squared_folds
        if isinstance(loss, LogLink):
            return partial(logistic_folds, loss=loss, max_extrapolation=float(self.max_extrapolation))
        if isinstance(loss, PIECEWISE):
            return partial(piecewise_folds, loss=loss)
        raise ValueError(
            f"AdaptiveRegressorCV has no paths for the loss {loss}: search with scikit-learn's GridSearchCV over "
            "AdaptiveRegressor."
        )

    def fit(self, X: Any, y: Any, sample_weight: Any = None, exposure: Any = None, **params: Any) -> Self:
        """Select a model by cross-validation and fit it on all rows.

        Parameters
        ----------
        X : array or data frame of shape (n, d)
            Features, NaN (None, NA, null) if missing.
        y : array of shape (n,)
            Target.
        sample_weight : array of shape (n,), optional
            A weight equals that many copies of the row.
        exposure : array of shape (n,), optional
            As in :meth:`AdaptiveRegressor.fit`.
        **params
            Passed to the splitter ``cv``: ``groups`` of the rows for ``GroupKFold`` and the like. With metadata routing
            of scikit-learn, whatever the splitter requests.
        """
        of_split = self._split_parameters(sample_weight, params)
        return self._fit(X, y, sample_weight, of_split, **({} if exposure is None else {"exposure": exposure}))

    def predict(self, X: Any, exposure: Any = None) -> FloatArray:
        """Predictions of the selected model, see :meth:`AdaptiveRegressor.predict`."""
        return self._model().predict(X, **({} if exposure is None else {"exposure": exposure}))

    def score(self, X: Any, y: Any, sample_weight: Any = None, exposure: Any = None) -> float:
        """The score of the selected model, see :meth:`AdaptiveRegressor.score`."""
        others = {} if exposure is None else {"exposure": exposure}
        return float(self._model().score(X, y, sample_weight, **others))

    def fit_statistics(self, statistics: RowStatistics) -> Self:
        """Select a model by cross-validation and fit it, from statistics with folds, as :meth:`fit` does from rows.

        Parameters
        ----------
        statistics : RowStatistics
            With moments of the classes, or of each pattern, and with folds, which take the place of ``cv``. Of the
            classes of "auto", those whose moments are there are searched.
        """
        classes, finite, options = self._read_grid()
        require_squared(self._loss())
        if self.constraints is not None or self.monotonic_cst is not None:
            raise ValueError("constraints and monotonic_cst need the rows, not only their statistics: use fit.")
        if finite:
            raise ValueError("Finite candidates need the rows: search them with FiniteRegressorCV, or fit in memory.")
        with unchanged_on_error(self):
            read_statistics(self, statistics)
            if statistics.folds is None:
                raise ValueError("Cross-validation needs folds: collect with RowStatistics(folds=HashFolds(5)).")
            summary = statistics.summary()
            missable = int(summary.missing_once.sum())
            if self._is_auto():
                many = not few_affine_columns(len(summary.n_observed), missable, summary.n_rows)
                classes = [c for c in (classes[:1] if many else classes) if statistics.serves(c)] or classes[:1]
            folds = [folds_of_sums(training_of(statistics, c), c, options) for c in classes]
            results = joined(grid_cells(folds, options, self.n_jobs))
            best = best_cell(results, ZERO_LOSS * float(summary.mean[-1] ** 2 + summary.deviation[-1] ** 2))
            parameters = cell_parameters(classes[int(results["class_index"][best])], results, best)
            self.best_estimator_ = self._chosen(results, best, parameters).fit_statistics(statistics)
        return self

    def _rounding(self, rows: FoldedRows) -> float:
        if not isinstance(self._loss(), Squared):
            return 0.0
        return ZERO_LOSS * float(rows.s @ rows.targets[0] ** 2 / rows.s.sum())


class AdaptiveClassifierCV(SearchedClassifier, AdaptiveSearch):
    """Adaptive logistic regression with all parameters selected by cross-validation.

    Folds are stratified by pattern and class. More than two classes are fitted one against the rest with the same
    parameters, selected by the sum of their logistic losses.

    With more than ``search_rows`` rows the search has two steps. On a sample of that many rows, in the same folds, all
    cells of the grid are compared, and each adaptivity class keeps its best l1_ratio and adaptive penalty. With these,
    lambda and the adaptivity class are selected on all rows. The sample is drawn at random (``random_state``), evenly
    over class labels and patterns; of a rare label it has more rows than its share, with weights that make up for it.

    Parameters
    ----------
    adaptivity, l1_ratios, n_lambdas, eps, adaptive_penalties, cv, penalty_weights, center, scale, \
fit_intercept, on_unseen_pattern, stop_early, solver, random_state, n_jobs, constraints, monotonic_cst
        As in :class:`AdaptiveRegressorCV`.
    class_weight : dict, "balanced" or None
        As in :class:`AdaptiveClassifier`; it weights the held-out loss too.
    search_rows : int or None
        Rows of the sample on which l1_ratio and adaptive penalty are selected, up to half as many more if labels are
        rare; None selects them on all rows too.
        Finite candidates are always compared on all rows.

    Attributes
    ----------
    best_estimator_ : AdaptiveClassifier or FiniteClassifier
        The selected model, fitted on all rows.
    classes_ : array of shape (n_classes,)
    sample_results_ : Table or None
        Every cell of the grid, as in ``cv_results_``, on the sample of the rows; None if there was no sample. With one,
        ``cv_results_`` has the cells that were compared on all rows.
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
        constraints: Any = None,
        monotonic_cst: Any = None,
        search_rows: int | None = SEARCH_ROWS,
    ) -> None:
        super().__init__(
            adaptivity, l1_ratios, n_lambdas, eps, adaptive_penalties, cv, penalty_weights, center, scale,
            fit_intercept, on_unseen_pattern, stop_early, solver, random_state, n_jobs,
            constraints, monotonic_cst,
        )  # fmt: skip
        self.class_weight = class_weight
        self.search_rows = search_rows

    def _read_grid(self) -> Grid:
        is_count = isinstance(self.search_rows, int | np.integer) and not isinstance(self.search_rows, bool)
        if self.search_rows is not None and not (is_count and self.search_rows > 0):
            raise ValueError(f"search_rows must be a positive integer or None, not {self.search_rows!r}.")
        return super()._read_grid()

    def _promising(
        self, class_folds: MakeFolds, rows: FoldedRows, classes: list[Adaptivity], options: GridOptions
    ) -> list[Task] | None:
        self.sample_results_ = None
        is_one_path = len(options.l1_ratios) * len(options.adaptive_penalties) == 1
        if self.search_rows is None or len(rows.X) <= self.search_rows or is_one_path:
            return None
        sample = sample_rows(rows, self.search_rows, self.random_state)
        if not sample.splits:
            return None
        folds = [class_folds(sample, adaptivity, options) for adaptivity in classes]
        cells = grid_cells(folds, options, self.n_jobs)
        self.sample_results_ = Table(**joined(cells))
        return best_tasks(grid_tasks(len(classes), options), cells)

    def _select(self, rows: FoldedRows, grid: Grid) -> Any:
        return super()._select(rows, grid).set_params(class_weight=self.class_weight)
