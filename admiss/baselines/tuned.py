"""Predictors tuned by cross-validation, in the same way for all kinds, as scikit-learn estimators.

In each fold the imputer, if any, is fitted to the training rows; then every kind of predictor is fitted once for each
combination of crossed parameters, and its nested parameters are read off that fit (see :mod:`admiss.baselines.kinds`).
The parameters with the best mean score over the folds, the first of equals, are used to fit one ordinary estimator to
all rows. The folds do not depend on the kind.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, is_classifier
from sklearn.pipeline import Pipeline
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from admiss.baselines.grids import Grid, check_class_weights, resolve_grid
from admiss.baselines.kinds import KINDS, Parameters, TrainingRows, fit_predictor
from admiss.estimator.cross_validation import Split, SplitsRows, make_folds
from admiss.estimator.notices import silence, warn_never_missing
from admiss.estimator.scaling import observed_moments
from admiss.estimator.scoring import CLASSIFICATION, REGRESSION, check_held_out, score
from admiss.estimator.validation import (
    feature_names,
    read_classes,
    read_features,
    read_random_state,
    read_regression_target,
    read_weights,
    refuse_extremes,
    require_two_classes,
    seeded,
    unchanged_on_error,
)
from admiss.terminal.progress import progress
from admiss.terminal.table import Table
from formulations.arrays import FloatArray, IntArray

# The kinds that "best" stands for in the paper.
BEST = ("linear", "tree", "forest", "xgboost")
Fold = tuple[TrainingRows, TrainingRows]


class Tuned(SplitsRows, BaseEstimator):
    """Shared by the tuned regressor and the tuned classifier."""

    _scores: tuple[str, ...]

    def __init__(
        self,
        kind: str | Sequence[str] = "best",
        imputer: Any = None,
        grid: Any = "default",
        cv: Any = 5,
        scoring: str = "r2",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.kind = kind
        self.imputer = imputer
        self.grid = grid
        self.cv = cv
        self.scoring = scoring
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _kinds(self) -> tuple[str, ...]:
        kinds = BEST if isinstance(self.kind, str) and self.kind == "best" else listed_kinds(self.kind)
        unknown = [kind for kind in kinds if not isinstance(kind, str) or kind not in KINDS]
        if unknown or not kinds:
            known = ", ".join(map(repr, ("best", *KINDS)))
            raise ValueError(f"kind must be one of {known}, or a list of them without 'best', not {self.kind!r}.")
        return kinds

    def _read_parameters(self) -> dict[str, Grid]:
        """The grid of each kind; invalid parameters are refused."""
        grids = resolve_grid(self.grid, self._kinds())
        for kind, grid in grids.items():
            KINDS[kind].check(kind, grid, is_classifier(self))
        if not isinstance(self.scoring, str) or self.scoring not in self._scores:
            raise ValueError(f"scoring must be one of {', '.join(map(repr, self._scores))}, not {self.scoring!r}.")
        if self.imputer is not None and not (hasattr(self.imputer, "fit") and hasattr(self.imputer, "transform")):
            raise ValueError(f"imputer must be a transformer of scikit-learn or None, not {self.imputer!r}.")
        return grids

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> Self:
        """Tune and fit.

        Parameters
        ----------
        X : array or data frame of shape (n, d)
            Features, NaN (None, NA, null) where missing.
        y : array of shape (n,)
            Target, numbers or class labels.
        sample_weight : array of shape (n,), optional
            Weights of the rows, in fits and scores.
        **params
            Passed to the splitter ``cv``, see :meth:`AdaptiveRegressorCV.fit`.
        """
        of_split = self._split_parameters(sample_weight, params)
        grids = self._read_parameters()
        with unchanged_on_error(self):
            X = read_features(self, X, reset=True)
            s = read_weights(sample_weight, X)
            target, labels = self._read_target(y, s, grids)
            fixed = isinstance(self.random_state, int | np.integer)
            random = read_random_state(self.random_state)
            seed = int(self.random_state if fixed else random.randint(2**31 - 1))
            splits = make_folds(X, target, labels, s, self.cv, seed, of_split)
            used = s > 0
            weights = None if sample_weight is None else s[used]
            y = (target if labels is None else labels)[used]
            classes = None if labels is None else self.classes_
            self._tune(grids, TrainingRows(X[used], y, weights, classes), splits, seed)
        return self

    def _read_target(self, y: Any, s: FloatArray, grids: dict[str, Grid]) -> tuple[FloatArray, IntArray | None]:
        """The target of splitters, and for classes indices into ``classes_``."""
        raise NotImplementedError

    def _tune(self, grids: dict[str, Grid], rows: TrainingRows, splits: list[Split], seed: int) -> None:
        """Select and fit; ``rows`` have positive weights."""
        self._refuse_nan(rows.X)
        _refuse_beyond_single(rows.X, grids)
        if "linear" in grids:
            refuse_extremes(np.ones(len(rows.X)), rows.weights, rows.X, feature_names(self))
        for k, (train, test) in enumerate(splits, start=1):
            if rows.n_classes and np.ptp(rows.y[train]) == 0:
                raise ValueError(f"All training rows of fold {k} are of one class: use fewer folds, or more rows.")
            check_held_out(self.scoring, rows.y, test, k, "scoring")
        threads = Parallel(n_jobs=self.n_jobs, prefer="threads", return_as="generator")
        prepared = threads(delayed(_prepared)(self.imputer, rows, train, test, seed) for train, test in splits)
        folds = list(progress(prepared, len(splits), "cross-validation: imputation"))
        imputer, completed = _imputed(self.imputer, rows, seed)
        if "linear" in grids and any(np.isnan(part.X).any() for part in sum(folds, (completed,))):
            raise ValueError("The imputer leaves NaN, which a linear predictor does not accept: use another.")

        cells = [(kind, *cell) for kind, grid in grids.items() for cell in KINDS[kind].cells(grid, completed)]
        tasks = [(cell, fold) for cell in cells for fold in folds]
        runs = threads(delayed(_scores)(*cell, *fold, self.scoring, seed) for cell, fold in tasks)
        scores = list(progress(runs, len(tasks), "cross-validation: fits"))
        candidates: list[tuple[str, Parameters]] = []
        by_fold: list[tuple[float, ...]] = []
        for k, (kind, *_) in enumerate(cells):
            of_cell = scores[k * len(folds) : (k + 1) * len(folds)]
            candidates += [(kind, parameters) for parameters, _ in of_cell[0]]
            by_fold += zip(*([value for _, value in one] for one in of_cell), strict=True)
        self._select(candidates, np.array(by_fold))

        predictor = fit_predictor(KINDS[self.best_kind_].make(rows, self.best_params_, seed), completed)
        self.n_fits_ = len(tasks) + 1
        self.best_estimator_ = (
            predictor if imputer is None else Pipeline([("imputer", imputer), ("predictor", predictor)])
        )
        self._mean = observed_moments(rows.X, rows.weights)[0]
        self._missable = np.isnan(rows.X).any(axis=0)

    def _select(self, candidates: list[tuple[str, Parameters]], scores: FloatArray) -> None:
        """Fill ``cv_results_``, and select its best row."""
        names = list(dict.fromkeys(name for _, parameters in candidates for name in parameters))
        mean = scores.mean(axis=1)
        self.cv_results_ = Table(
            kind=[kind for kind, _ in candidates],
            **{name: [parameters.get(name) for _, parameters in candidates] for name in names},
            mean_score=mean,
            std_score=scores.std(axis=1),
            **{f"split{k}_score": scores[:, k] for k in range(scores.shape[1])},
        )
        if np.isnan(mean).all():
            raise ValueError("No cell of the grid could be fitted in all folds: use larger values of 'lam'.")
        self.best_index_ = int(np.nanargmax(mean))
        self.best_score_ = float(mean[self.best_index_])
        self.best_kind_, self.best_params_ = candidates[self.best_index_]

    def _rows_to_predict(self, X: Any) -> FloatArray:
        check_is_fitted(self)
        X = read_features(self, X, reset=False)
        _refuse_beyond_single(X, [self.best_kind_])
        if self.imputer is not None:
            return X
        self._refuse_nan(X)
        never = np.flatnonzero(np.isnan(X).any(axis=0) & ~self._missable)
        warn_never_missing(feature_names(self), never)
        return _filled(X, self._missable, self._mean)

    def _refuse_nan(self, X: FloatArray) -> None:
        if not self.__sklearn_tags__().input_tags.allow_nan and np.isnan(X).any():
            raise ValueError(
                "X contains NaN, which a linear predictor does not accept: use an imputer, or other kinds."
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        needs_values = any(isinstance(kind, str) and kind in ("best", "linear") for kind in listed_kinds(self.kind))
        tags.input_tags.allow_nan = self.imputer is not None or not needs_values
        return tags


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

    def _read_target(self, y: Any, s: FloatArray, grids: dict[str, Grid]) -> tuple[FloatArray, IntArray | None]:
        target = read_regression_target(self, y, len(s))
        refuse_extremes(target, s)
        return target, None

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

    def _read_target(self, y: Any, s: FloatArray, grids: dict[str, Grid]) -> tuple[FloatArray, IntArray | None]:
        classes, codes = read_classes(self, y, len(s))
        check_class_weights(grids, classes.tolist())
        refuse_extremes(np.ones(len(s)), s)
        present = np.unique(codes[s > 0])
        require_two_classes(self, present)
        self.classes_ = classes[present]
        return codes, np.searchsorted(present, codes)  # labels of rows of weight 0 have no meaning

    def predict_proba(self, X: Any) -> FloatArray:
        """Probability of each class."""
        X = self._rows_to_predict(X)
        return np.asarray(self.best_estimator_.predict_proba(X), dtype=float)

    def predict(self, X: Any) -> Any:
        """Most likely class of each row."""
        codes = self.predict_proba(X).argmax(axis=1)
        return self.classes_[codes]


def _refuse_beyond_single(X: FloatArray, kinds: Iterable[str]) -> None:
    """Refuse values that XGBoost cannot hold, lest it fail in the middle of a search."""
    if "xgboost" in kinds and np.nanmax(np.abs(X), initial=0.0) > np.finfo(np.float32).max:
        raise ValueError("X is too large for XGBoost, which computes in single precision: use other units.")


def listed_kinds(kind: Any) -> tuple[Any, ...]:
    """The given kinds, one or several, not validated."""
    return (kind,) if isinstance(kind, str) or not np.iterable(kind) else tuple(kind)


def _prepared(imputer: Any, rows: TrainingRows, train: IntArray, test: IntArray, seed: int) -> Fold:
    """Training rows and held-out rows, both imputed."""
    learned, held_out = rows.take(train), rows.take(test)
    if imputer is None:
        missable = np.isnan(learned.X).any(axis=0)
        return learned, replace(
            held_out, X=_filled(held_out.X, missable, observed_moments(learned.X, learned.weights)[0])
        )
    with silence():  # the imputer warns when it is fitted to all rows
        fitted, learned = _imputed(imputer, learned, seed)
        completed = check_array(fitted.transform(held_out.X), dtype=np.float64, ensure_all_finite="allow-nan")
        return learned, replace(held_out, X=completed)


def _imputed(imputer: Any, rows: TrainingRows, seed: int) -> tuple[Any, TrainingRows]:
    """The imputer fitted to the rows, and the completed rows."""
    if imputer is None:
        return None, rows
    imputer = seeded(imputer, seed)
    last = imputer
    while isinstance(last, Pipeline):  # the steps before the last may need the names
        last = last[-1]
    if hasattr(last, "set_output"):  # predictors are fitted to arrays, and would warn about data frames
        last.set_output(transform="default")
    weights = {"sample_weight": rows.s} if rows.s is not None and has_fit_parameter(imputer, "sample_weight") else {}
    try:
        completed = imputer.fit_transform(rows.X, rows.y, **weights)
    except (TypeError, OverflowError) as error:
        raise ValueError(f"{type(imputer).__name__} cannot be fitted with its parameters: {error}.") from error
    return imputer, replace(rows, X=check_array(completed, dtype=np.float64, ensure_all_finite="allow-nan"))


def _filled(X: FloatArray, missable: Any, mean: FloatArray) -> FloatArray:
    """X with the training means of features that were never missing in training."""
    return np.where(np.isnan(X) & ~missable, mean, X)


def _scores(
    kind: str,
    parameters: Parameters,
    nested: Grid,
    train: TrainingRows,
    held_out: TrainingRows,
    scoring: str,
    seed: int,
) -> list[tuple[Parameters, float]]:
    """Scores of one fit on a fold at each value of its nested parameters."""
    n_classes = train.n_classes
    present = np.arange(n_classes)
    if n_classes:  # all rows of a rare class may be held out
        present, codes = np.unique(train.y, return_inverse=True)
        train = replace(train, y=codes, classes=train.classes[present])
    scores = []
    for cell, outputs in KINDS[kind].held_out(parameters, nested, train, held_out.X, seed):
        if len(present) < n_classes:
            known = outputs
            outputs = np.zeros((len(known), n_classes))
            outputs[:, present] = known
        scores.append(({**parameters, **cell}, score(scoring, held_out.y, outputs, held_out.s)))
    return scores
