"""Predictors tuned by cross-validation (:mod:`admiss.baselines.tuning.search`), as scikit-learn estimators."""

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin

from admiss.baselines.tuning.grids import Grid
from admiss.baselines.tuning.kinds import Rows
from admiss.baselines.tuning.scoring import CLASSIFICATION, REGRESSION
from admiss.baselines.tuning.search import Tuned
from admiss.estimator.cv import make_folds
from admiss.estimator.validation import (
    read_classes,
    read_features,
    read_regression_target,
    read_weights,
    refuse_extremes,
    unchanged_on_error,
)
from formulations.arrays import FloatArray


class TunedRegressor(RegressorMixin, Tuned):
    """A regressor tuned by cross-validation.

    Parameters
    ----------
    kind : str or list of str
        ``"linear"`` (elastic net), ``"tree"``, ``"forest"``, ``"xgboost"``, ``"hist_boosting"``; a list to select the
        best from; or ``"best"``, the best of the first four.
    imputer : transformer or None
        Completes the rows before the predictor sees them; it is fitted to the training rows of each fold, and finally
        to all rows. Without it, all kinds but the linear one accept missing values, and a feature that is missing only
        at prediction is set to its training mean, with a warning.
    grid : str or dict
        ``"default"``, ``"authors"``, or lists of values by parameter; for several kinds a dict of grids by kind.
    cv : int, splitter or iterable
        Number of folds, stratified by pattern, or any splitter of scikit-learn.
    scoring : {"r2", "squared_error"}
        Score to maximise, as the mean over folds.
    random_state : int, RandomState or None
        Seed of folds and predictors, and of the imputer if it has none.
    n_jobs : int, optional
        Number of threads. The result does not depend on it.

    Attributes
    ----------
    best_estimator_ : estimator
        The selected predictor, fitted to all rows; with an imputer a pipeline of both.
    best_kind_ : str
        The selected kind of predictor.
    best_params_ : dict
        Its parameters.
    best_score_ : float
        Their mean score over the folds.
    best_index_ : int
        Their row in ``cv_results_``.
    cv_results_ : Table
        Kind, parameters and scores of every cell (NaN if a linear fit does not meet the optimality conditions).
    n_fits_ : int
        Number of fits of predictors; a path over lambda counts as one.
    n_features_in_ : int
    feature_names_in_ : array of str, if X has column names

    Examples
    --------
    >>> from admiss.baselines import TunedRegressor
    >>> from admiss.datasets import make_synthetic
    >>> data = make_synthetic(n=200, mechanism="censoring", random_state=0)
    >>> grid = {"n_estimators": [10, 20, 40], "max_depth": [2, 4, 8]}
    >>> model = TunedRegressor("forest", grid=grid, random_state=0).fit(data.X_train, data.y_train)
    >>> model.cv_results_.n_rows, model.n_fits_
    (9, 6)
    """

    _scores = REGRESSION

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Tune and fit.

        Parameters
        ----------
        X : array or data frame of shape (n, d)
            Features, NaN (None, NA, null) where missing.
        y : array of shape (n,)
            Target.
        sample_weight : array of shape (n,), optional
            Weights of the rows, in fits and scores.
        """
        grids = self._read_parameters()
        with unchanged_on_error(self):
            X = read_features(self, X, reset=True)
            y = read_regression_target(self, y, len(X))
            s = read_weights(sample_weight, X)
            refuse_extremes(y, s)
            used, seed = s > 0, self._seed()
            splits = make_folds(X, y, None, s, self.cv, seed)
            self._tune(grids, Rows(X[used], y[used], None if sample_weight is None else s[used], 0), splits, seed)
        return self

    def predict(self, X: Any) -> FloatArray:
        """Predicted target of each row."""
        X = self._rows_to_predict(X)
        return np.asarray(self.best_estimator_.predict(X), dtype=float)


class TunedClassifier(ClassifierMixin, Tuned):
    """A classifier tuned by cross-validation.

    Parameters
    ----------
    kind, imputer, grid, cv, random_state, n_jobs
        As in :class:`TunedRegressor`; folds are stratified by pattern and class. ``class_weight`` in a grid may have
        dicts by the labels in y; classes that are not listed have weight 1.
    scoring : {"log_loss", "auc"}
        Score to maximise, as the mean over folds; the paper reports the area under the curve.

    Attributes
    ----------
    classes_ : array of shape (K,)
    best_estimator_ : estimator
        As in :class:`TunedRegressor`; its classes are indices into ``classes_``.
    best_kind_, best_params_, best_score_, best_index_, cv_results_, n_fits_, n_features_in_, feature_names_in_
        As in :class:`TunedRegressor`.

    Examples
    --------
    >>> from admiss.baselines import TunedClassifier
    >>> from admiss.datasets import make_synthetic
    >>> data = make_synthetic(n=200, mechanism="censoring", random_state=0)
    >>> model = TunedClassifier("tree", scoring="auc", random_state=0).fit(data.X_train, data.y_train > 0)
    >>> model.predict_proba(data.X_test).shape[1]
    2
    """

    _scores = CLASSIFICATION

    def __init__(
        self,
        kind: str | Sequence[str] = "best",
        imputer: Any = None,
        grid: Any = "default",
        cv: Any = 5,
        scoring: str = "log_loss",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(kind, imputer, grid, cv, scoring, random_state, n_jobs)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Tune and fit; parameters as in :meth:`TunedRegressor.fit`, with class labels in y."""
        grids = self._read_parameters()
        with unchanged_on_error(self):
            X = read_features(self, X, reset=True)
            classes, codes = read_classes(self, y, len(X))
            _check_class_weights(grids, classes.tolist())
            s = read_weights(sample_weight, X)
            refuse_extremes(np.ones(len(X)), s)
            used, seed = s > 0, self._seed()
            present = np.unique(codes[used])
            if len(present) < 2:
                raise ValueError("TunedClassifier needs rows of at least two classes, and y has one class only.")
            self.classes_ = classes[present]
            labels = np.searchsorted(present, codes)  # of no meaning for rows of weight 0
            splits = make_folds(X, codes, labels, s, self.cv, seed)
            s_used = None if sample_weight is None else s[used]
            rows = Rows(X[used], labels[used], s_used, len(present), self.classes_.tolist())
            self._tune(grids, rows, splits, seed)
        return self

    def predict_proba(self, X: Any) -> FloatArray:
        """Probability of each class."""
        X = self._rows_to_predict(X)
        return np.asarray(self.best_estimator_.predict_proba(X), dtype=float)

    def predict(self, X: Any) -> Any:
        """Most likely class of each row."""
        codes = self.predict_proba(X).argmax(axis=1)
        return self.classes_[codes]


def _check_class_weights(grids: dict[str, Grid], classes: list[Any]) -> None:
    """Refuse weights of classes absent from y, and invalid weights."""
    for grid in grids.values():
        for weights in grid.get("class_weight", []):
            if not isinstance(weights, Mapping):
                continue  # None, or a name known to the predictor
            unknown = [label for label in weights if label not in classes]
            if unknown:
                raise ValueError(f"class_weight has labels that y does not have, {unknown}: leave them out.")
            if any(not isinstance(weight, Real) or not 0 <= float(weight) < np.inf for weight in weights.values()):
                raise ValueError(f"Class weights must be non-negative numbers, not {dict(weights)}.")
