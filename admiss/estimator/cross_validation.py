"""Cross-validation with missing data: folds, and estimators that search a grid and delegate to the selected model.

Rows are stratified by their pattern, in classification by pattern and class, so every training fold contains each
pattern that occurs often enough. Patterns with fewer rows than folds are pooled.
"""

import warnings
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Self

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.model_selection import KFold, StratifiedKFold, check_cv
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, get_routing_for_object, process_routing
from sklearn.utils.validation import check_is_fitted

from admiss.estimator.validation import (
    AllowsMissing,
    balanced,
    feature_names,
    read_random_state,
    read_samples,
    read_weights,
    refuse_arguments,
    unchanged_on_error,
    without_traces,
)
from admiss.patterns import PatternTable
from admiss.terminal.table import Table
from formulations.arrays import BoolArray, FloatArray, IntArray

Split = tuple[IntArray, IntArray]
NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True)
class FoldedRows:
    """Rows of positive weight and their folds.

    Attributes
    ----------
    X : array of shape (n, d)
        Features with NaN.
    targets : list of arrays of shape (n,)
        The target of a regression, or -1 and 1 for each binary problem of a classification.
    s : array of shape (n,)
        Sample weights.
    splits : list of (train, test)
        Training and held-out rows of each fold.
    names : list of str
        Names of the features.
    fold_weights : list of arrays of shape (n,)
        Weights of all rows in each fold: class weights may be computed from its training rows.
    exposure : array of shape (n,), optional
        Exposure of each row; targets are per unit of it.
    """

    X: FloatArray
    targets: list[FloatArray]
    s: FloatArray
    splits: list[Split]
    names: list[str]
    fold_weights: list[FloatArray]
    exposure: FloatArray | None = None


def make_folds(
    X: FloatArray,
    y: Any,
    labels: IntArray | None,
    s: FloatArray,
    cv: Any,
    random_state: Any,
    of_split: Mapping[str, Any] = NOTHING,
) -> list[Split]:
    """Training and held-out rows of each fold, as indices among the rows of positive weight.

    Parameters
    ----------
    X : array of shape (n, d)
        Features with NaN.
    y : array of shape (n,)
        Target, for splitters of scikit-learn that use it.
    labels : int array of shape (n,), optional
        Classes.
    s : array of shape (n,)
        Sample weights; rows of weight 0 are in no fold.
    cv : int, splitter or iterable of (train, test)
        A number makes stratified folds; anything else is used as it is, and its indices count all rows.
    random_state : int, RandomState or None
        Seed of the stratified folds.
    of_split : dict
        Further arguments of the splitter, see :class:`SplitsRows`.
    """
    used, random_state = np.flatnonzero(s > 0), read_random_state(random_state)
    if isinstance(cv, int | np.integer) and not isinstance(cv, bool):
        if not 2 <= cv <= len(used):
            raise ValueError(f"cv must be between 2 and the number of rows, n_samples={len(used)}, not {cv}.")
        strata = pattern_strata(np.isnan(X[used]), None if labels is None else labels[used], int(cv))
        splitter: Any = StratifiedKFold(int(cv), shuffle=True, random_state=random_state)
        if np.bincount(strata).max() < cv:  # no stratum is large enough
            splitter = KFold(int(cv), shuffle=True, random_state=random_state)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a class with fewer rows than folds is only in some of them
            return list(splitter.split(np.empty((len(used), 1)), strata))
    index = np.full(len(X), -1)
    index[used] = np.arange(len(used))
    folds = []
    for split in _splits(cv, X, y, of_split):
        train, test = (index[rows] for rows in split)
        folds.append((train[train >= 0], test[test >= 0]))
        if not len(folds[-1][0]) or not len(folds[-1][1]):
            raise ValueError(f"Fold {len(folds)} of cv has no rows to train on or no held-out rows.")
    if not folds:
        raise ValueError("cv has no folds.")
    return folds


def _splits(cv: Any, X: FloatArray, y: FloatArray, of_split: Mapping[str, Any]) -> list[Split]:
    """Rows to train on and held-out rows, by a splitter or as they are given."""
    refusal = ValueError("cv must be a number of folds, a splitter, or a list of pairs (train, test) of rows of X.")
    rows = np.arange(len(X))
    if needs_groups(cv) and of_split.get("groups") is None:
        raise ValueError(f"{type(cv).__name__} needs groups: pass them to fit, fit(X, y, groups=..).")
    try:
        cv = cv if cv is None or hasattr(cv, "split") else [(rows[train], rows[test]) for train, test in cv]
    except (TypeError, ValueError, IndexError) as error:
        raise refusal from error
    try:
        return [(rows[train], rows[test]) for train, test in check_cv(cv).split(X, y, **of_split)]
    except (TypeError, IndexError) as error:
        raise refusal from error


def needs_groups(splitter: Any) -> bool:
    """Whether a splitter of scikit-learn splits by groups of rows."""
    if isinstance(splitter, type):
        return False
    return "groups" in getattr(getattr(get_routing_for_object(splitter), "split", None), "requests", ())


def pattern_strata(M: BoolArray, labels: IntArray | None, n_folds: int) -> IntArray:
    """Strata of rows: pattern (and class), with rare patterns pooled; none has fewer rows than folds.

    Examples
    --------
    >>> strata = pattern_strata(np.array([[0], [0], [0], [1]], bool), None, 2)
    >>> len(set(strata.tolist()))
    1
    """
    codes = PatternTable.of(M).codes
    counts = np.bincount(codes)
    rare = counts[codes] < n_folds
    strata = np.where(rare, -1, codes)
    if labels is not None:
        strata = (strata + 1) * (labels.max() + 1) + labels
    strata = np.unique(strata, return_inverse=True)[1].ravel()
    counts = np.bincount(strata)
    largest = int(counts.argmax())
    small = counts[strata] < n_folds
    if labels is None:
        return np.where(small, largest, strata)
    # a small stratum joins the largest one of its own class
    by_class = [np.append(np.bincount(strata[labels == c]), 0).argmax() for c in range(labels.max() + 1)]
    return np.where(small, np.asarray(by_class)[labels], strata)


def sample_rows(rows: FoldedRows, count: int, random_state: Any) -> FoldedRows:
    """About ``count`` rows of a classification with their folds, drawn evenly over class labels and patterns.

    A label has at least count / (2 * number of labels) rows, if there are as many; the rows of each label are weighted
    such that their total weight stays. Folds that lose a label of their training rows, or all others, are left out.
    """
    random = read_random_state(random_state)
    labels = np.unique(np.column_stack(rows.targets), axis=0, return_inverse=True)[1].ravel()
    sizes = np.bincount(labels)
    target_sizes = np.maximum(count * sizes / len(labels), count / (2 * len(sizes)))
    patterns = PatternTable.of(np.isnan(rows.X)).codes
    order = np.lexsort((random.permutation(len(labels)), patterns, labels))
    drawn_rows = []
    factor = np.zeros(len(labels))
    for own, size in zip(np.split(order, np.cumsum(sizes)[:-1]), target_sizes, strict=True):
        drawn = min(len(own), int(np.ceil(size)))
        places = (np.arange(drawn) + random.uniform()) * (len(own) / drawn)
        part = own[places.astype(int)]
        factor[part] = rows.s[own].sum() / rows.s[part].sum()
        drawn_rows.append(part)
    chosen = np.sort(np.concatenate(drawn_rows))
    index = np.full(len(labels), -1)
    index[chosen] = np.arange(len(chosen))
    splits = []
    fold_weights = []
    for (train, test), s in zip(rows.splits, rows.fold_weights, strict=True):
        split = index[train][index[train] >= 0], index[test][index[test] >= 0]
        if len(split[1]) and len(np.unique(labels[chosen[split[0]]])) == len(np.unique(labels[train])):
            splits.append(split)
            fold_weights.append(s[chosen] * factor[chosen])
    targets = [y[chosen] for y in rows.targets]
    return FoldedRows(rows.X[chosen], targets, (rows.s * factor)[chosen], splits, rows.names, fold_weights)


class SplitsRows:
    """Mixin of estimators whose fit splits the rows by ``cv``, and passes metadata such as groups on to it."""

    cv: Any

    def get_metadata_routing(self) -> MetadataRouter:
        """What the methods of the estimator, and the splitter of its fit, request."""
        router = MetadataRouter(owner=self).add_self_request(self)
        if hasattr(self.cv, "split"):
            router.add(splitter=self.cv, method_mapping=MethodMapping().add(caller="fit", callee="split"))
        return router

    def _split_parameters(self, sample_weight: Any, params: Mapping[str, Any]) -> dict[str, Any]:
        """What of further arguments of fit is for the splitter: ``groups``, or with metadata routing what it requests.

        Anything else is refused.
        """
        if get_config()["enable_metadata_routing"]:
            weights = {} if sample_weight is None else {"sample_weight": sample_weight}
            routed = process_routing(self, "fit", **weights, **params)
            return dict(routed.splitter.split) if hasattr(self.cv, "split") else {}
        if unknown := set(params) - {"groups"}:
            refuse_arguments(self, unknown)
        given = {name: value for name, value in params.items() if value is not None}
        if given and not hasattr(self.cv, "split"):
            raise ValueError(f"groups need a splitter that uses them, such as cv=GroupKFold(5), not cv={self.cv!r}.")
        return given


class SearchedModel(SplitsRows, AllowsMissing, BaseEstimator):
    """Base class of estimators with ``best_estimator_``, an estimator of type ``_single``."""

    cv: Any
    random_state: Any
    n_jobs: int | None

    _single: type[BaseEstimator]
    _task: str
    best_estimator_: Any

    @abstractmethod
    def _read_grid(self) -> Any:
        """The grid, after checks of all parameters."""

    @abstractmethod
    def _select(self, rows: FoldedRows, grid: Any) -> Any:
        """Set ``cv_results_`` and ``best_*``, and return the selected estimator, not yet fitted."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> Self:
        """Select a model by cross-validation and fit it on all rows.

        Parameters
        ----------
        X : array or data frame of shape (n, d)
            Features, NaN (None, NA, null) if missing.
        y : array of shape (n,)
            Target, or class labels.
        sample_weight : array of shape (n,), optional
            A weight equals that many copies of the row.
        **params
            Passed to the splitter ``cv``: ``groups`` of the rows for ``GroupKFold`` and the like. With metadata routing
            of scikit-learn, whatever the splitter requests.
        """
        return self._fit(X, y, sample_weight, self._split_parameters(sample_weight, params))

    def _fit(self, X: Any, y: Any, sample_weight: Any, of_split: Mapping[str, Any], **of_rows: Any) -> Self:
        """Select and fit; ``of_rows`` are further arguments of the selected model's fit."""
        grid = self._read_grid()
        with unchanged_on_error(self):
            rows = self._read_rows(X, y, sample_weight, of_split, **of_rows)
            self.best_estimator_ = self._select(rows, grid).fit(X, y, sample_weight, **of_rows)
            for name in ("n_features_in_", "feature_names_in_", "classes_"):
                if hasattr(self.best_estimator_, name):
                    setattr(self, name, getattr(self.best_estimator_, name))
        return self

    def _read_rows(
        self, X: Any, y: Any, sample_weight: Any, of_split: Mapping[str, Any] = NOTHING, **of_rows: Any
    ) -> FoldedRows:
        """The rows with their folds."""
        samples = read_samples(self, X, y, sample_weight, **of_rows, task=self._task)
        counted = samples.of_positive_weight()
        features = without_traces(counted.X)
        random_state = read_random_state(self.random_state)
        target = samples.targets[0] if samples.codes is None else samples.codes
        splits = make_folds(samples.X, target, samples.codes, samples.s, self.cv, random_state, of_split)
        fold_weights = [counted.s] * len(splits)
        if isinstance(getattr(self, "class_weight", None), str):  # balanced, among the training rows of each fold
            own = read_weights(sample_weight, samples.X)[samples.s > 0]
            codes, n_classes = counted.codes, len(samples.classes)
            fold_weights = [own * balanced(codes, own, n_classes, train) for train, _ in splits]
        names = feature_names(self)
        return FoldedRows(features, counted.targets, counted.s, splits, names, fold_weights, counted.exposure)

    def _estimator(self, *searched: str) -> Any:
        """A single estimator with the parameters that it has in common with the search, except ``searched``."""
        shared = set(self._get_param_names()) & set(self._single._get_param_names()) - set(searched)
        return self._single(**{name: getattr(self, name) for name in shared})

    def _chosen(
        self, results: dict[str, Any], best: int, parameters: dict[str, Any], candidate: "SearchedModel | None" = None
    ) -> Any:
        """Record the choice of a cell, and return its estimator, which is that of a search among the candidates.

        It is not fitted yet.
        """
        self.cv_results_ = Table(**results)
        self.best_index_ = best
        self.best_score_ = -float(results["mean_loss"][best])
        self.best_params_ = parameters
        estimator = (candidate or self)._estimator(*parameters)
        return estimator.set_params(**parameters)

    def _model(self) -> Any:
        check_is_fitted(self)
        return self.best_estimator_

    def predict(self, X: Any) -> Any:
        """Predictions of the selected model."""
        return self._model().predict(X)

    def coef_at(self, pattern: Any) -> FloatArray:
        """Weights of the selected model at a pattern: 0/1 for each feature, or the names of the missing ones."""
        return self._model().coef_at(pattern)

    def intercept_at(self, pattern: Any) -> Any:
        """Intercept of the selected model at a pattern."""
        return self._model().intercept_at(pattern)

    def coef_table(self) -> Table:
        """Coefficients of the selected model as a table."""
        return self._model().coef_table()

    def pattern_report(self, X: Any, rows: Any = None) -> Table:
        """The patterns of X in words, with their rows here and in training."""
        return self._model().pattern_report(X, rows)

    def to_text(self, precision: int = 4) -> str:
        """The selected model in words."""
        return self._model().to_text(precision)

    @property
    def certificate_(self) -> Any:
        """Certificate of the selected model."""
        return self._model().certificate_


class SearchedRegressor(RegressorMixin, SearchedModel):
    """A search for a regression."""

    _task = "regression"


class SearchedClassifier(ClassifierMixin, SearchedModel):
    """A search for a classification."""

    class_weight: Any

    _task = "classification"

    def decision_function(self, X: Any) -> FloatArray:
        """Log-odds of the selected model."""
        return self._model().decision_function(X)

    def predict_proba(self, X: Any) -> FloatArray:
        """Probabilities of the selected model."""
        return self._model().predict_proba(X)
