"""Grid and selection of a search over adaptive models, for both tasks."""

from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any

import numpy as np

from admiss.adaptivity import Adaptivity, resolve_adaptivity
from admiss.estimator.folds import FoldedRows
from admiss.estimator.searched import SearchedModel
from admiss.linear.grid_paths import EPS_RULES, ClassFolds, GridOptions, best_cell, joined, path_cells
from admiss.terminal.table import Table
from formulations.arrays import FloatArray
from formulations.losses import Logistic, Loss, Squared

AUTO, AUTO_CLASSES = "auto", ("affine_intercept", "affine")
# Affine weights are left out of the default classes if they have more coefficients than this, since their paths would
# take minutes, or than rows, since cross-validation then finds them by chance.
AFFINE_COLUMNS = 300
DEFAULT_L1_RATIOS = (0.0, 0.5, 1.0)
DEFAULT_ADAPTIVE_PENALTIES = (0.25, 1.0, 4.0)
FINITE = "finite"
MOST_LAMBDAS = 10_000

# Folds of a class, ready for paths.
MakeFolds = Callable[[FoldedRows, Adaptivity, GridOptions], ClassFolds]
# Adaptivity classes, finite candidates, and the grid of the classes.
Grid = tuple[list[Adaptivity], list[Any], GridOptions]


class AdaptiveSearch(SearchedModel):
    """Grid and selection, for both tasks."""

    _finite_type: type
    _loss: Loss
    _class_folds: MakeFolds

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

    def _read_grid(self) -> Grid:
        single = isinstance(self.adaptivity, str | Adaptivity | self._finite_type) or np.ndim(self.adaptivity) == 0
        listed = [self.adaptivity] if single else list(self.adaptivity)
        listed = list(AUTO_CLASSES) if self._is_auto() else listed
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
            center=bool(self.center),
            scale=bool(self.scale),
            fit_intercept=bool(self.fit_intercept),
            stop_early=bool(self.stop_early),
        )
        return classes, finite, options

    def _is_auto(self) -> bool:
        return isinstance(self.adaptivity, str) and self.adaptivity == AUTO

    def _is_finite(self, item: Any) -> bool:
        return isinstance(item, self._finite_type) or (isinstance(item, str) and item == FINITE)

    def _select(self, rows: FoldedRows, grid: Grid) -> Any:
        return self._select_on(self._class_folds, rows, grid)

    def _select_on(self, class_folds: MakeFolds, rows: FoldedRows, grid: Grid) -> Any:
        """Select on the folds that ``class_folds`` makes of each class."""
        classes, finite, options = grid
        (n, d), missable = rows.X.shape, int(np.isnan(rows.X).any(axis=0).sum())
        if self._is_auto() and not few_affine_columns(d, missable, n):
            classes = classes[:1]
        folds = [class_folds(rows, adaptivity, options) for adaptivity in classes]
        parts = path_cells(folds, options, self.n_jobs)
        held_out = [candidate.search(rows, self._loss) for candidate in finite]
        for k, (candidate, found) in enumerate(zip(finite, held_out, strict=True), start=len(classes)):
            parts.append({"class_index": k, **candidate.cells(found)})
        results, best = self._best(parts, self._rounding(rows))
        k = int(results["class_index"][best])
        if k < len(classes):
            return self._chosen(classes, results, best)
        candidate, found = finite[k - len(classes)], held_out[k - len(classes)]
        cell, parameters = candidate.best_parameters(found)  # by its own rule for the choice among its cells
        self._record(results, int(np.flatnonzero(results["class_index"] == k)[cell]), parameters)
        return candidate._estimator().set_params(**parameters)

    def _best(self, parts: list[dict[str, Any]], rounding: float) -> tuple[Table, int]:
        """All cells, and the one that is selected."""
        results = joined(parts)
        if not np.isfinite(results["mean_loss"]).any():
            raise ValueError(
                "No cell of the grid has a best fit: the classes are linearly separable by columns without penalty, so "
                "use adaptive_penalties > 0."
            )
        return results, best_cell(results, rounding)

    def _chosen(self, classes: list[Adaptivity], results: Table, best: int) -> Any:
        """The adaptive model of a cell, not yet fitted."""
        searched = ("adaptive_penalty", "l1_ratio", "lam")
        chosen = classes[int(results["class_index"][best])]
        parameters = {"adaptivity": chosen, **{name: float(results[name][best]) for name in searched}}
        self._record(results, best, parameters)
        return self._estimator("adaptivity").set_params(**parameters)

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
