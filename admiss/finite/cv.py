"""Finite models with depth (or number of leaves), ridge and leaf model selected by cross-validation.

"No split" is always a candidate. :mod:`admiss.finite.search` compares the cells of the grid and selects one, which is
fitted on all rows.
"""

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone

from admiss.estimator.cross_validation import FoldedRows, SearchedClassifier, SearchedModel, SearchedRegressor
from admiss.estimator.validation import feature_names, unchanged_on_error
from admiss.finite.base import LEAF_MODELS
from admiss.finite.estimators import FiniteClassifier, FiniteRegressor
from admiss.finite.from_statistics import Chunks, statistics_losses
from admiss.finite.search import NO_SPLIT, FiniteGrid, HeldOut, held_out_losses
from admiss.partition.base import Partitioner
from admiss.partition.greedy import Greedy
from admiss.statistics.row_statistics import RowStatistics, adopt_features, require_squared
from admiss.terminal.table import Table
from formulations.losses import Loss

DEFAULT_DEPTHS = (1, 2, 3, 4)
DEFAULT_RIDGES = (0.1, 0.5, 2.0, 10.0, 50.0, 200.0, 1000.0)


class _FiniteCV(SearchedModel):
    """Grid and selection, for both tasks."""

    # Parameters with which the programs are those of the paper.
    _printed: ClassVar[dict[str, Any]] = {
        "ridges": (0.0,), "leaf_models": ("static",), "center": False, "scale": False, "one_standard_error": False,
    }  # fmt: skip

    partitioner: Partitioner | None
    max_depths: Sequence[int]
    max_leaves: Sequence[int] | None
    ridges: Sequence[float]
    leaf_models: Sequence[str]
    loss: str | Loss
    ridge_scale: str
    center: bool
    scale: bool
    on_unseen_pattern: str
    one_standard_error: bool

    @classmethod
    def paper(cls, **parameters: Any) -> Self:
        """Algorithm 1 of the paper as it is printed, with the depth of the tree by 5-fold cross-validation.

        For what differs by default, and why, see :meth:`admiss.FiniteRegressor.paper`; by default the smallest tree
        within one standard error is chosen, and the best one here.

        Parameters
        ----------
        **parameters
            Of the estimator, such as ``max_depths``; those given replace the printed ones.
        """
        return cls(**(cls._printed | parameters))

    def _read_grid(self) -> Loss:
        for name in ("ridges", "leaf_models"):
            values = getattr(self, name)
            if isinstance(values, str) or not np.ndim(values) or not len(values):
                raise ValueError(f"{name} must be a list with at least one entry, not {values!r}.")
        if not isinstance(self.one_standard_error, bool | np.bool_):
            raise ValueError(f"one_standard_error must be True or False, not {self.one_standard_error!r}.")
        estimator = self._estimator()
        for ridge in self.ridges:
            estimator.set_params(ridge=ridge)._check_parameters()
        for leaf_model in self.leaf_models:
            estimator.set_params(leaf_model=leaf_model)._check_parameters()
        for size in self._sizes():
            self._partitioner(size).check_limits()
        loss: Loss = estimator._check_parameters()[1]
        return loss

    def _sizes(self) -> list[int]:
        """Candidates for depth or leaves, "no split" first."""
        values = self.max_depths if self.max_leaves is None else self.max_leaves
        if isinstance(values, str) or np.ndim(values) != 1 or any(size is None for size in values):
            raise ValueError(f"max_depths and max_leaves must be lists of whole numbers, not {values!r}.")
        return [NO_SPLIT, *(size for size in values if not (size == NO_SPLIT and isinstance(size, int)))]

    def _partitioner(self, size: int) -> Partitioner:
        partitioner = Greedy() if self.partitioner is None else clone(self.partitioner)
        if size == NO_SPLIT:
            return Greedy(max_leaves=1)
        if self._size_name() not in partitioner.get_params():
            raise ValueError(f"{type(partitioner).__name__} has no max_depth: search over max_leaves=[..] instead.")
        return partitioner.set_params(**{self._size_name(): size})

    def search(self, rows: FoldedRows, loss: Loss) -> HeldOut:
        """Held-out losses of every cell of the grid."""
        return held_out_losses(self._grid(loss), rows, self.n_jobs)

    def _grid(self, loss: Loss) -> FiniteGrid:
        return FiniteGrid(
            partitioners={size: self._partitioner(size) for size in self._sizes()},
            ridges=[float(ridge) for ridge in self.ridges],
            leaf_models=list(self.leaf_models),
            loss=loss,
            ridge_scale=self.ridge_scale,
            center=bool(self.center),
            scale=bool(self.scale),
            truncate=bool(getattr(self, "truncate", False)),
        )

    def cells(self, held_out: HeldOut) -> dict[str, Any]:
        """The cells as columns of a table of adaptive models."""
        results = held_out.table
        splits = [f"{self._size_name()}={size}" if size != NO_SPLIT else "no split" for size in results["size"]]
        return {
            "adaptivity": [
                f"finite({model}, {split})" for model, split in zip(results["leaf_model"], splits, strict=True)
            ],
            "columns": results["columns"],
            "adaptive_penalty": np.nan,
            "l1_ratio": 0.0,
            "lam": results["ridge"],
            "mean_loss": results["mean_loss"],
            "violation": np.nan,
        }

    def best_parameters(self, held_out: HeldOut) -> tuple[int, dict[str, Any]]:
        """The selected cell and its parameters."""
        best, results = held_out.best(bool(self.one_standard_error)), held_out.table
        return best, {
            "partitioner": self._partitioner(int(results["size"][best])),
            "ridge": float(results["ridge"][best]),
            "leaf_model": str(results["leaf_model"][best]),
        }

    def _size_name(self) -> str:
        return "max_depth" if self.max_leaves is None else "max_leaves"

    def _select(self, rows: FoldedRows, grid: Loss) -> Any:
        return self._selected(self.search(rows, grid))

    def _selected(self, held_out: HeldOut) -> Any:
        """Record the losses, and return the selected estimator, not yet fitted."""
        table = held_out.table
        results = {"leaf_model": table["leaf_model"], self._size_name(): table["size"]}
        results |= {column: table[column] for column in ("ridge", "leaves", "mean_loss")}
        return self._chosen(results, *self.best_parameters(held_out))

    def apply(self, X: Any) -> Any:
        """The leaf of each row, see :meth:`FiniteRegressor.apply`."""
        return self._model().apply(X)

    def leaf_table(self) -> Table:
        """The leaves, see :meth:`FiniteRegressor.leaf_table`."""
        return self._model().leaf_table()

    @property
    def partition_(self) -> Any:
        """Partition of the selected model."""
        return self._model().partition_


class FiniteRegressorCV(SearchedRegressor, _FiniteCV):
    """Finite regression with depth (or leaves), ridge and leaf model selected by cross-validation.

    Parameters
    ----------
    partitioner : Partitioner, optional
        How leaves are chosen, :class:`~admiss.partition.Greedy` by default; its other limits are kept.
    max_depths : sequence of int
        Candidates for its ``max_depth``; 0, no split, is always added.
    max_leaves : sequence of int, optional
        Candidates for its ``max_leaves``; if given, they are searched instead of the depth.
    ridges : sequence of float
        Candidates for the ridge of the leaves.
    leaf_models : sequence of str
        Candidates for the leaf model.
    loss, ridge_scale, center, scale, truncate, on_unseen_pattern
        As in :class:`FiniteRegressor`.
    one_standard_error : bool
        Select the fewest splits whose loss is within one standard error of the smallest, instead of the smallest loss.
    cv : int, splitter or iterable
        Number of folds, stratified by pattern, or anything that scikit-learn accepts.
    random_state : int, RandomState or None
        Seed of the folds.
    n_jobs : int, optional
        Threads. The result does not depend on it.

    Attributes
    ----------
    best_estimator_ : FiniteRegressor
        The selected model, fitted on all rows.
    best_params_ : dict
        Its partitioner, ridge and leaf model.
    best_score_ : float
        Minus its held-out loss.
    best_index_ : int
        Its row in ``cv_results_``.
    cv_results_ : Table
        Every cell with its held-out loss and mean number of leaves.
    partition_, certificate_, n_features_in_, feature_names_in_
        As in :class:`FiniteRegressor`.

    Examples
    --------
    >>> from admiss import FiniteRegressorCV
    >>> from admiss.datasets import make_synthetic
    >>> data = make_synthetic(n=300, mechanism="censoring", random_state=0)
    >>> model = FiniteRegressorCV(max_depths=[1, 2], random_state=0).fit(data.X_train, data.y_train)
    >>> model.cv_results_.n_rows
    42
    """

    _single = FiniteRegressor
    _printed = _FiniteCV._printed | {"truncate": False}

    def __init__(
        self,
        partitioner: Partitioner | None = None,
        max_depths: Sequence[int] = DEFAULT_DEPTHS,
        max_leaves: Sequence[int] | None = None,
        ridges: Sequence[float] = DEFAULT_RIDGES,
        leaf_models: Sequence[str] = LEAF_MODELS,
        loss: str | Loss = "squared",
        ridge_scale: str = "leaf",
        center: bool = True,
        scale: bool = True,
        truncate: bool = True,
        on_unseen_pattern: str = "nearest",
        one_standard_error: bool = True,
        cv: Any = 5,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.partitioner = partitioner
        self.max_depths = max_depths
        self.max_leaves = max_leaves
        self.ridges = ridges
        self.leaf_models = leaf_models
        self.loss = loss
        self.ridge_scale = ridge_scale
        self.center = center
        self.scale = scale
        self.truncate = truncate
        self.on_unseen_pattern = on_unseen_pattern
        self.one_standard_error = one_standard_error
        self.cv = cv
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit_statistics(self, statistics: RowStatistics, settle: Chunks | None = None) -> Self:
        """Select a model by cross-validation and fit it, from statistics of the rows with folds.

        The folds are those of the statistics; ``cv`` is not used. Held-out losses are those of predictions that are not
        truncated, and the rule of one standard error takes its error from the means of the folds.

        Parameters
        ----------
        statistics, settle
            As in :meth:`FiniteRegressor.fit_statistics`; ``settle`` is for the selected model.
        """
        loss = self._read_grid()
        require_squared(loss)
        with unchanged_on_error(self):
            adopt_features(self, statistics)
            held_out = statistics_losses(self._grid(loss), statistics, feature_names(self), self.n_jobs)
            self.best_estimator_ = self._selected(held_out).fit_statistics(statistics, settle)
        return self


class FiniteClassifierCV(SearchedClassifier, _FiniteCV):
    """Finite logistic regression with depth (or leaves), ridge and leaf model selected by cross-validation.

    Parameters
    ----------
    partitioner, max_depths, max_leaves, ridges, leaf_models, ridge_scale, center, scale, on_unseen_pattern, \
one_standard_error, cv, random_state, n_jobs
        As in :class:`FiniteRegressorCV`.
    loss : str or Loss
        "logistic".
    class_weight : dict, "balanced" or None
        As in :class:`FiniteClassifier`; it weights the held-out loss too.

    Attributes
    ----------
    best_estimator_ : FiniteClassifier
        The selected model, fitted on all rows.
    classes_ : array of shape (n_classes,)
    best_params_, best_score_, best_index_, cv_results_, partition_, certificate_, n_features_in_, feature_names_in_
        As in :class:`FiniteRegressorCV`.

    Examples
    --------
    >>> from admiss import FiniteClassifierCV
    >>> from admiss.datasets import make_synthetic
    >>> data = make_synthetic(n=200, mechanism="censoring", random_state=0)
    >>> model = FiniteClassifierCV(max_depths=[1], ridges=[1.0, 10.0], random_state=0)
    >>> model.fit(data.X_train, data.y_train > 0).score(data.X_test, data.y_test > 0) > 0.7
    True
    """

    _single = FiniteClassifier
    _printed = _FiniteCV._printed | {"ridges": (1e-6,)}

    def __init__(
        self,
        partitioner: Partitioner | None = None,
        max_depths: Sequence[int] = DEFAULT_DEPTHS,
        max_leaves: Sequence[int] | None = None,
        ridges: Sequence[float] = DEFAULT_RIDGES,
        leaf_models: Sequence[str] = LEAF_MODELS,
        loss: str | Loss = "logistic",
        ridge_scale: str = "leaf",
        center: bool = True,
        scale: bool = True,
        class_weight: Any = None,
        on_unseen_pattern: str = "nearest",
        one_standard_error: bool = True,
        cv: Any = 5,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.partitioner = partitioner
        self.max_depths = max_depths
        self.max_leaves = max_leaves
        self.ridges = ridges
        self.leaf_models = leaf_models
        self.loss = loss
        self.ridge_scale = ridge_scale
        self.center = center
        self.scale = scale
        self.class_weight = class_weight
        self.on_unseen_pattern = on_unseen_pattern
        self.one_standard_error = one_standard_error
        self.cv = cv
        self.random_state = random_state
        self.n_jobs = n_jobs
