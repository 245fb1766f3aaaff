"""Adaptive linear models with adaptivity class and penalty selected by cross-validation (Section 2.4 of the paper).

Adaptivity class, l1_ratio (the paper's alpha), adaptive penalty and lambda are selected jointly, by the held-out loss
(squared error or logistic loss) over all folds. Ties, to a relative 1e-9, go to the simpler model: fewer columns, then
larger lambda, larger adaptive penalty, larger l1_ratio. The selected model is fitted on all rows.

Finite models can be candidates on the same folds: this is "Adaptive LR - best" of the paper.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from admiss.adaptivity import Adaptivity, resolve_adaptivity
from admiss.estimator.folds import FoldedRows
from admiss.estimator.searched import SearchedClassifier, SearchedModel, SearchedRegressor
from admiss.finite.cv import FiniteClassifierCV, FiniteRegressorCV
from admiss.linear.estimators import AdaptiveClassifier, AdaptiveRegressor
from admiss.linear.fold_paths import ClassFolds, GridOptions, logistic_folds, path_cells, squared_folds
from admiss.terminal.table import Table
from formulations.arrays import FloatArray
from formulations.losses import Logistic, Loss, Squared

DEFAULT_CLASSES = ("affine_intercept", "affine")
DEFAULT_L1_RATIOS = (0.0, 0.5, 1.0)
DEFAULT_ADAPTIVE_PENALTIES = (0.25, 1.0, 4.0)
TIE = 1e-9
FINITE = "finite"

# Adaptivity classes, finite candidates, and the grid of the classes.
Grid = tuple[list[Adaptivity], list[Any], GridOptions]


class _AdaptiveCV(SearchedModel):
    """Grid and selection, for both tasks."""

    _finite_type: type
    _loss: Loss
    _class_folds: Callable[[FoldedRows, Adaptivity, GridOptions], ClassFolds]

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

    def _read_grid(self) -> Grid:
        single = isinstance(self.adaptivity, str | Adaptivity | self._finite_type)
        listed = [self.adaptivity] if single else list(self.adaptivity)
        if not listed:
            raise ValueError("adaptivity is empty: name at least one class.")
        finite = [self._finite_type() if item == FINITE else item for item in listed if self._is_finite(item)]
        for candidate in finite:
            if not isinstance(candidate._read_grid(), Squared | Logistic):
                raise ValueError(f"A finite candidate must have the loss of the others, not {candidate.loss!r}.")
        classes = [resolve_adaptivity(adaptivity) for adaptivity in listed if not self._is_finite(adaptivity)]
        for adaptivity in classes:
            if adaptivity.has_structure():
                raise ValueError(
                    f"{type(adaptivity).__name__} has a structure of its own, which the fast paths do not support: "
                    "search over its parameters with scikit-learn's GridSearchCV."
                )
        for name, largest in (("l1_ratios", 1.0), ("adaptive_penalties", np.inf)):
            values = np.asarray(getattr(self, name), dtype=float)
            in_range = (values >= 0) & (values <= largest) & (values < np.inf)
            if values.ndim != 1 or not len(values) or not np.all(in_range):
                limits = "numbers between 0 and 1" if largest == 1.0 else "non-negative numbers"
                raise ValueError(f"{name} must be a list of {limits}, not {getattr(self, name)!r}.")
        if not isinstance(self.n_lambdas, int | np.integer) or self.n_lambdas < 1:
            raise ValueError(f"n_lambdas must be a positive whole number, not {self.n_lambdas!r}.")
        if self.eps is not None and not 0 < self.eps < 1:
            raise ValueError(f"eps must be between 0 and 1, not {self.eps!r}.")
        self._estimator("adaptivity")._check_parameters()
        options = GridOptions(
            l1_ratios=[float(alpha) for alpha in self.l1_ratios],
            adaptive_penalties=[float(c) for c in self.adaptive_penalties],
            n_lambdas=int(self.n_lambdas),
            eps=self.eps,
            penalty_weights=self.penalty_weights,
            scale=bool(self.scale),
            fit_intercept=bool(self.fit_intercept),
            stop_early=bool(self.stop_early),
        )
        return classes, finite, options

    def _is_finite(self, item: Any) -> bool:
        return isinstance(item, self._finite_type) or (isinstance(item, str) and item == FINITE)

    def _select(self, rows: FoldedRows, grid: Grid) -> Any:
        classes, finite, options = grid
        folds = [self._class_folds(rows, adaptivity, options) for adaptivity in classes]
        parts = list(path_cells(folds, options, self.n_jobs))
        held_out = [candidate.search(rows, self._loss) for candidate in finite]
        for k, (candidate, found) in enumerate(zip(finite, held_out, strict=True), start=len(classes)):
            parts.append({"class_index": k, **candidate.cells(found)})
        results = _joined(parts)
        if not np.isfinite(results["mean_loss"]).any():
            raise ValueError(
                "No cell of the grid has a best fit: the classes are linearly separable by columns without penalty, so "
                "use adaptive_penalties > 0."
            )
        best = _best_cell(results, self._rounding(rows))
        k = int(results["class_index"][best])
        if k < len(classes):
            searched = ("adaptive_penalty", "l1_ratio", "lam")
            parameters = {"adaptivity": classes[k], **{name: float(results[name][best]) for name in searched}}
            self._record(results, best, parameters)
            return self._estimator("adaptivity").set_params(**parameters)
        candidate, found = finite[k - len(classes)], held_out[k - len(classes)]
        cell, parameters = candidate.best_parameters(found)  # by its own rule for the choice among its cells
        self._record(results, int(np.flatnonzero(results["class_index"] == k)[cell]), parameters)
        return candidate._estimator().set_params(**parameters)

    def _rounding(self, rows: FoldedRows) -> float:
        """Losses below this are rounding."""
        return 0.0

    @property
    def imputation_(self) -> FloatArray:
        """The values that the selected model imputes, see :attr:`AdaptiveRegressor.imputation_`."""
        return self._model().imputation_


def _joined(parts: list[dict[str, Any]]) -> Table:
    """One table of all cells; a single value holds for all cells of its part."""
    columns = {}
    for name in parts[0]:
        values = [np.broadcast_to(np.asarray(part[name]), len(part["lam"])) for part in parts]
        columns[name] = np.concatenate(values)
    return Table(**columns)


def _best_cell(results: Table, rounding: float = 0.0) -> int:
    """The smallest loss; among ties, and among losses that are rounding, the simpler model."""
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


class AdaptiveRegressorCV(SearchedRegressor, _AdaptiveCV):
    """Adaptive linear regression with all parameters selected by cross-validation.

    Parameters
    ----------
    adaptivity : str, Adaptivity or list
        Candidate classes. "finite", or a :class:`FiniteRegressorCV` with its own grid and partitioner, adds finite
        models on the same folds.
    l1_ratios : sequence of float
        Candidates for the paper's alpha.
    n_lambdas : int
        Length of each path.
    eps : float, optional
        Smallest lambda as a share of the largest; by default 1e-4, and 1e-2 if there are more columns than rows.
    adaptive_penalties : sequence of float
        Candidates for the factor on the penalty of the columns that depend on the pattern.
    cv : int, splitter or iterable
        Number of folds, stratified by pattern, or anything that scikit-learn accepts.
    penalty_weights, scale, fit_intercept, on_unseen_pattern, solver
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
    _class_folds = staticmethod(squared_folds)

    def _rounding(self, rows: FoldedRows) -> float:
        return 1e-14 * float(rows.s @ rows.targets[0] ** 2 / rows.s.sum())


class AdaptiveClassifierCV(SearchedClassifier, _AdaptiveCV):
    """Adaptive logistic regression with all parameters selected by cross-validation.

    Folds are stratified by pattern and class. More than two classes are fitted one against the rest with the same
    parameters, selected by the sum of their logistic losses.

    Parameters
    ----------
    adaptivity, l1_ratios, n_lambdas, eps, adaptive_penalties, cv, penalty_weights, scale, fit_intercept, \
on_unseen_pattern, stop_early, solver, random_state, n_jobs
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
        super().__init__(
            adaptivity, l1_ratios, n_lambdas, eps, adaptive_penalties, cv, penalty_weights, scale, fit_intercept,
            on_unseen_pattern, stop_early, solver, random_state, n_jobs,
        )  # fmt: skip
        self.class_weight = class_weight

    def _select(self, rows: FoldedRows, grid: Grid) -> Any:
        return super()._select(rows, grid).set_params(class_weight=self.class_weight)
