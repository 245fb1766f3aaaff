"""Estimators by cross-validation: they read the rows, search a grid, and delegate to the selected model."""

from abc import abstractmethod
from typing import Any, Self

from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from admiss.estimator.folds import FoldedRows, make_folds
from admiss.estimator.labels import balanced, read_class_targets
from admiss.estimator.validation import (
    AllowsMissing,
    feature_names,
    read_features,
    read_regression_target,
    read_weights,
    refuse_arguments,
    refuse_extremes,
    unchanged_on_error,
    without_traces,
)
from admiss.terminal.table import Table
from formulations.arrays import FloatArray


class SearchedModel(AllowsMissing, BaseEstimator):
    """Base class of estimators with ``best_estimator_``, an estimator of type ``_single``."""

    cv: Any
    random_state: Any
    n_jobs: int | None

    _single: type[BaseEstimator]
    best_estimator_: Any

    @abstractmethod
    def _read_grid(self) -> Any:
        """The grid, after checks of all parameters."""

    @abstractmethod
    def _read_rows(self, X: Any, y: Any, sample_weight: Any) -> FoldedRows:
        """The rows with their folds."""

    @abstractmethod
    def _select(self, rows: FoldedRows, grid: Any) -> Any:
        """Set ``cv_results_`` and ``best_*``, and return the selected estimator, not yet fitted."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **unknown: Any) -> Self:
        """Select a model by cross-validation and fit it on all rows.

        Parameters
        ----------
        X : array or data frame of shape (n, d)
            Features, NaN (None, NA, null) if missing.
        y : array of shape (n,)
            Target, or class labels.
        sample_weight : array of shape (n,), optional
            A weight equals that many copies of the row.
        **unknown
            Refused. Folds of groups are given as ``cv=list(GroupKFold(5).split(X, y, groups))``.
        """
        refuse_arguments(self, unknown)
        grid = self._read_grid()
        with unchanged_on_error(self):
            self.best_estimator_ = self._select(self._read_rows(X, y, sample_weight), grid).fit(X, y, sample_weight)
            for name in ("n_features_in_", "feature_names_in_", "classes_"):
                if hasattr(self.best_estimator_, name):
                    setattr(self, name, getattr(self.best_estimator_, name))
        return self

    def _estimator(self, *searched: str) -> Any:
        """A single estimator with the parameters that it has in common with the search, except ``searched``."""
        shared = set(self._get_param_names()) & set(self._single._get_param_names()) - set(searched)
        return self._single(**{name: getattr(self, name) for name in shared})

    def _record(self, results: Table, best: int, parameters: dict[str, Any]) -> None:
        self.cv_results_ = results
        self.best_index_ = best
        self.best_score_ = -float(results["mean_loss"][best])
        self.best_params_ = parameters

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

    def _read_rows(self, X: Any, y: Any, sample_weight: Any) -> FoldedRows:
        rows = read_features(self, X, reset=True)
        target = read_regression_target(self, y, len(rows))
        s = read_weights(sample_weight, rows)
        refuse_extremes(target, s, rows, feature_names(self))
        splits, used = make_folds(rows, target, None, s, self.cv, self.random_state), s > 0
        return FoldedRows(without_traces(rows[used]), [target[used]], s[used], splits, feature_names(self))


class SearchedClassifier(ClassifierMixin, SearchedModel):
    """A search for a classification."""

    class_weight: Any

    def _read_rows(self, X: Any, y: Any, sample_weight: Any) -> FoldedRows:
        rows = read_features(self, X, reset=True)
        classes, codes, targets, s = read_class_targets(self, y, rows, sample_weight)
        refuse_extremes(targets[0], s, rows, feature_names(self))
        splits, used = make_folds(rows, codes, codes, s, self.cv, self.random_state), s > 0
        by_fold = None
        if isinstance(self.class_weight, str):  # balanced
            own = read_weights(sample_weight, rows)[used]
            by_fold = [own * balanced(codes[used], own, len(classes), train) for train, _ in splits]
        kept = [target[used] for target in targets]
        return FoldedRows(without_traces(rows[used]), kept, s[used], splits, feature_names(self), by_fold)

    def decision_function(self, X: Any) -> FloatArray:
        """Log-odds of the selected model."""
        return self._model().decision_function(X)

    def predict_proba(self, X: Any) -> FloatArray:
        """Probabilities of the selected model."""
        return self._model().predict_proba(X)
