"""Prediction intervals and sets around any estimator that accepts missing values.

A row is covered if its score is at most a threshold that depends on its missingness pattern. The threshold is such that
the coverage holds for every non-negative function of the pattern in the span of a basis (``basis``;
``formulations/conformal/program.py`` has the program and the proof). The names are those of mapie: ``conformalize``,
``predict_interval``, ``predict_set``, ``confidence_level``, ``prefit``.

*Where it loses.* With few calibration rows for a feature its sets are wide, or infinite below (1 - a) / a rows; the
basis (1, m) can be worse than split conformal prediction for the worst single pattern, about which it promises nothing.

*Scores of a numeric target.* A band has a lower end l(x), an upper end h(x) and a scale s(x) > 0; the score of y is
max(l - y, y - h) / s, and the set of all y with a score of at most t is [l - t s, h + t s], empty if its ends are in
the wrong order.

============== ==================== =========== ======================================================================
score          l, h                 s           models
============== ==================== =========== ======================================================================
``absolute``   f, f                 1           one estimator of y
``scaled``     f, f                 g           and one of |y - f|, fitted to held-out errors on the training rows
``quantile``   q_low, q_high        1           two quantile models (Romano, Patterson and Candes 2019)
============== ==================== =========== ======================================================================
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.model_selection import KFold, cross_val_predict
from sklearn.utils.validation import check_is_fitted

from admiss.estimator.notices import silence
from admiss.estimator.validation import (
    read_classes,
    read_regression_target,
    require_choice,
    require_two_classes,
    seeded,
)
from admiss.intervals.base import PatternConformal
from admiss.intervals.masking import nested_comparisons, nested_intervals, nested_sets
from formulations.arrays import BoolArray, FloatArray, IntArray

SCORES = ("absolute", "scaled", "quantile")


@dataclass(frozen=True)
class BandModels:
    """The fitted models of a band."""

    # One and the same model, except for the score "quantile"; no point if the middle of the band is the prediction.
    lower: Any
    upper: Any
    point: Any
    scale: Any = None
    smallest_scale: float = 0.0

    def predict(self, X: Any) -> FloatArray:
        """Predictions of the target."""
        if self.point is not None:
            return np.asarray(self.point.predict(X), dtype=float)
        return np.asarray(self.lower.predict(X) / 2 + self.upper.predict(X) / 2, dtype=float)

    def band(self, X: Any) -> FloatArray:
        """Lower end, upper end and scale of each row, of shape (n, 3)."""
        lower = np.asarray(self.lower.predict(X), dtype=float)
        upper = lower if self.upper is self.lower else np.asarray(self.upper.predict(X), dtype=float)
        scale = np.ones(len(lower))
        if self.scale is not None:
            scale = np.maximum(np.asarray(self.scale.predict(X), dtype=float), self.smallest_scale)
        return np.column_stack([lower, upper, scale])


def band_scores(band: FloatArray, y: FloatArray) -> FloatArray:
    """max(l - y, y - h) / s for bands of shape (.., 3).

    Examples
    --------
    >>> band_scores(np.array([[1.0, 2.0, 0.5]]), np.array([4.0])).tolist()
    [4.0]
    """
    return np.asarray(np.maximum(band[..., 0] - y, y - band[..., 1]) / band[..., 2])


def fit_band(estimator: Any, score: str, scale_estimator: Any, level: float, X: Any, y: FloatArray, seed: int) -> Any:
    """Fit the models of a band to training rows."""
    if score == "scaled" and len(y) < 2:
        raise ValueError(
            "conformity_score='scaled' needs at least 2 training rows to hold out errors, and 1 is left: give more "
            "rows, lower calibration_size, or use conformity_score='absolute'."
        )
    models = [seeded(model, seed).fit(X, y) for model in estimators_of(estimator, score, level)]
    if score == "quantile":
        return BandModels(models[0], models[1], models[2] if len(models) == 3 else None)
    point = models[0]
    if score == "absolute":
        return BandModels(point, point, point)
    folds = KFold(min(5, len(y)), shuffle=True, random_state=seed)
    with silence():  # what the folds would say has been said of all rows
        held_out = cross_val_predict(seeded(estimator, seed), X, y, cv=folds)
    errors = np.abs(y - held_out)
    scale = seeded(point if scale_estimator is None else scale_estimator, seed).fit(X, errors)
    smallest = 0.05 * float(errors.mean()) or 1.0  # no prediction is taken to be far better than the others
    return BandModels(point, point, point, scale, smallest)


def fitted_band(estimator: Any, score: str, scale_estimator: Any) -> BandModels:
    """The band of models that were fitted elsewhere."""
    models = estimators_of(estimator, score, None)
    for model in [*models, *([scale_estimator] if score == "scaled" else [])]:
        check_is_fitted(model)
    if score == "quantile":
        return BandModels(models[0], models[1], models[2] if len(models) == 3 else None)
    scale = scale_estimator if score == "scaled" else None
    return BandModels(models[0], models[0], models[0], scale, float(np.finfo(float).tiny))


def estimators_of(estimator: Any, score: str, level: float | None) -> list[Any]:
    """The estimators of a band: the given one, or lower end, upper end and perhaps the prediction.

    One estimator of quantiles is copied for the quantiles (1 - level) / 2 and (1 + level) / 2.
    """
    if score != "quantile":
        return [estimator]
    if isinstance(estimator, list | tuple):
        if len(estimator) in (2, 3):
            return list(estimator)
    elif level is not None:
        parameters = estimator.get_params(deep=False)
        ends = ((1 - level) / 2, (1 + level) / 2)
        if "quantile" in parameters:
            return [clone(estimator).set_params(quantile=q) for q in ends]
        loss = parameters.get("loss")
        if isinstance(loss, str) and loss == "quantile":
            from formulations.losses import Quantile

            return [clone(estimator).set_params(loss=Quantile(q)) for q in ends]
    raise ValueError(
        "conformity_score='quantile' needs quantile models (lower, upper) or (lower, upper, prediction); if they are "
        "fitted here, an estimator with a parameter quantile, or with loss='quantile', will do."
    )


def check_estimators(estimator: Any, score: str, scale_estimator: Any, prefit: bool) -> None:
    """Refuse parameters that do not belong together, before any work starts."""
    for model in estimators_of(estimator, score, None if prefit else 0.5):
        if not hasattr(model, "fit") or not hasattr(model, "predict"):
            raise ValueError(f"estimator must be an estimator with fit and predict, not {model!r}.")
    if scale_estimator is not None and score != "scaled":
        raise ValueError("scale_estimator is used with conformity_score='scaled' only.")
    if score == "scaled" and prefit and scale_estimator is None:
        raise ValueError("conformity_score='scaled' with prefit=True needs a fitted scale_estimator of |y - f|.")
    if scale_estimator is not None and not isinstance(scale_estimator, BaseEstimator):
        raise ValueError(f"scale_estimator must be an estimator, not {scale_estimator!r}.")


class PatternConformalRegressor(RegressorMixin, PatternConformal):
    """Prediction intervals whose coverage holds by missingness pattern.

    Parameters
    ----------
    estimator : estimator, or (lower, upper) or (lower, upper, prediction)
        Any regressor that accepts NaN; quantile models for ``conformity_score="quantile"``. A pipeline also
        takes raw tables, with text and dates: it is given the frame, whose null values are the pattern.
    confidence_level : float or list of float
        Level 1 - a. The intervals of several levels are nested: if those of a lower level reach further, they are
        taken for the higher ones as well.
    basis : {"auto", "constant", "count", "features"} or adaptivity
        Functions of the pattern for which the coverage holds: see :mod:`admiss.intervals.basis`.
    conformity_score : {"absolute", "scaled", "quantile"}
        How far y is from the prediction: see the table in :mod:`admiss.intervals.estimators`.
    method : {"class", "mda_exact", "mda_nested"}
        Thresholds for the basis, or from calibration rows with further deletions: see :mod:`admiss.intervals.masking`.
    prefit : bool
        Whether the estimator is fitted already; it is then used as it is, and all rows calibrate.
    random_state : int, RandomState or None
        Seed of the split, of estimators without a seed of their own, and of randomised thresholds.
    calibration_size : float
        Share of the rows of ``fit`` that calibrate; with 0 call ``conformalize`` with other rows.
    randomize : bool
        Coverage exactly at the level instead of at least, if scores have no ties: thresholds are drawn, one for each
        pattern. With ties, as of rounded targets, nothing is promised: leave it off.
    scale_estimator : estimator, optional
        Model of |y - f| for ``conformity_score="scaled"``; the estimator itself by default.

    Attributes
    ----------
    models_ : BandModels
        The fitted models.
    basis_ : PatternBasis
    guarantee_ : str
        For whom the coverage holds, in one sentence.
    scores_, calibration_patterns_ : arrays of shape (n_calibration,) and (n_calibration, d)
    n_features_in_, feature_names_in_

    Examples
    --------
    >>> from admiss import AdaptiveRegressor, PatternConformalRegressor
    >>> from admiss.datasets import make_synthetic
    >>> data = make_synthetic(n=2000, d=5, missing_fraction=0.3, random_state=0)
    >>> model = PatternConformalRegressor(AdaptiveRegressor(), random_state=0).fit(data.X_train, data.y_train)
    >>> prediction, interval = model.predict_interval(data.X_test)
    >>> model.basis_.name, interval.shape == (len(data.X_test), 2, 1)
    ('features', True)
    """

    _size_name: ClassVar[str] = "width"
    models_: BandModels

    def __init__(
        self,
        estimator: Any,
        confidence_level: Any = 0.9,
        basis: Any = "auto",
        conformity_score: str = "absolute",
        method: str = "class",
        prefit: bool = False,
        random_state: Any = None,
        calibration_size: float = 0.3,
        randomize: bool = False,
        scale_estimator: Any = None,
    ) -> None:
        super().__init__(estimator, confidence_level, basis, method, prefit, random_state, calibration_size, randomize)
        self.conformity_score = conformity_score
        self.scale_estimator = scale_estimator

    def predict(self, X: Any) -> FloatArray:
        """Predictions of the estimator."""
        check_is_fitted(self)
        return self.models_.predict(self._given(self._read_table(X, reset=False)))

    def predict_interval(self, X: Any) -> tuple[FloatArray, FloatArray]:
        """Predictions, and intervals of shape (n, 2, levels): lower and upper ends, NaN for the empty set."""
        rows = self._read_rows(X)
        return self.models_.predict(self._given(rows)), self._intervals(rows)

    def _intervals(self, X: FloatArray) -> FloatArray:
        if self.method == "mda_nested":
            assert self.calibration_rows_ is not None
            intervals = np.empty((len(X), 2, len(self._levels())))
            comparisons = nested_comparisons(*self.calibration_rows_, self._outputs, self._scores, X)
            for block, values, scores, codes in comparisons:
                intervals[block] = nested_intervals(values, scores, codes, self._levels())
        else:
            band, t = self._outputs(X), self._thresholds(X)
            reach = t * band[:, 2:]
            intervals = np.stack([band[:, :1] - reach, band[:, 1:2] + reach], axis=1)
        empty = intervals[:, 0] > intervals[:, 1]
        return np.where(empty[:, None], np.nan, intervals)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_choice(self, "conformity_score", SCORES)
        check_estimators(self.estimator, self.conformity_score, self.scale_estimator, self.prefit)

    def _read_target(self, y: Any, n: int, *, reset: bool) -> FloatArray:
        return read_regression_target(self, y, n)

    def _fit_models(self, X: Any, y: FloatArray, seed: int) -> None:
        level = self._levels()[0]
        self.models_ = fit_band(self.estimator, self.conformity_score, self.scale_estimator, level, X, y, seed)

    def _take_models(self) -> None:
        self.models_ = fitted_band(self.estimator, self.conformity_score, self.scale_estimator)

    def _outputs(self, X: FloatArray) -> FloatArray:
        return self.models_.band(self._given(X))

    def _scores(self, outputs: FloatArray, y: FloatArray) -> FloatArray:
        return band_scores(outputs, y)

    def _evaluate(self, X: FloatArray, y: FloatArray) -> tuple[BoolArray, FloatArray]:
        intervals = self._intervals(X)
        covered = (intervals[:, 0] <= y[:, None]) & (y[:, None] <= intervals[:, 1])
        return covered, np.nan_to_num(intervals[:, 1] - intervals[:, 0], nan=0.0, posinf=np.inf)


class PatternConformalClassifier(ClassifierMixin, PatternConformal):
    """Sets of classes whose coverage holds by missingness pattern.

    The score of a class is 1 minus its probability.

    Parameters
    ----------
    estimator : estimator
        Any classifier with ``predict_proba`` that accepts NaN; a pipeline takes raw tables.
    confidence_level, basis, method, prefit, random_state, calibration_size, randomize
        As in :class:`PatternConformalRegressor`.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    estimator_ : estimator
        The fitted classifier.
    basis_, guarantee_, scores_, calibration_patterns_, n_features_in_, feature_names_in_
        As in :class:`PatternConformalRegressor`.

    Examples
    --------
    >>> from admiss import AdaptiveClassifier, PatternConformalClassifier
    >>> from admiss.datasets import make_synthetic
    >>> data = make_synthetic(n=500, mechanism="censoring", random_state=0)
    >>> model = PatternConformalClassifier(AdaptiveClassifier(), random_state=0).fit(data.X_train, data.y_train > 0)
    >>> prediction, sets = model.predict_set(data.X_test)  # of shapes (n,) and (n, classes, levels)
    >>> sets.shape[1:], bool(sets[np.arange(len(sets)), (data.y_test > 0).astype(int), 0].mean() > 0.85)
    ((2, 1), True)
    """

    _size_name: ClassVar[str] = "size"

    def predict_proba(self, X: Any) -> FloatArray:
        """Probability of each class."""
        check_is_fitted(self)
        return self._outputs(self._read_table(X, reset=False))

    def predict(self, X: Any) -> Any:
        """Most likely class of each row."""
        best = self.predict_proba(X).argmax(axis=1)
        return self.classes_[best]

    def predict_set(self, X: Any) -> tuple[Any, BoolArray]:
        """Most likely classes, and whether each class is in the set, of shape (n, classes, levels)."""
        rows = self._read_rows(X)
        return self.classes_[self._outputs(rows).argmax(axis=1)], self._sets(rows)

    def _sets(self, X: FloatArray) -> BoolArray:
        if self.method == "mda_nested":
            assert self.calibration_rows_ is not None
            sets = np.empty((len(X), len(self.classes_), len(self._levels())), dtype=bool)
            comparisons = nested_comparisons(*self.calibration_rows_, self._outputs, self._scores, X)
            for block, values, scores, codes in comparisons:
                sets[block] = nested_sets(values, scores, codes, self._levels())
            return sets
        return (1.0 - self._outputs(X))[:, :, None] <= self._thresholds(X)[:, None]

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not hasattr(self.estimator, "fit") or not hasattr(self.estimator, "predict_proba"):
            raise ValueError(f"estimator must be a classifier with predict_proba, not {self.estimator!r}.")

    def _read_target(self, y: Any, n: int, *, reset: bool) -> IntArray:
        classes, codes = read_classes(self, y, n)
        if self.prefit:
            check_is_fitted(self.estimator)
            self.classes_ = np.asarray(self.estimator.classes_)
        elif reset:
            self.classes_ = classes
            require_two_classes(self, classes)
        unknown = classes[~np.isin(classes, self.classes_)]
        if len(unknown):
            raise ValueError(f"y has classes that the estimator does not know: {', '.join(map(str, unknown))}.")
        return np.asarray(np.searchsorted(self.classes_, classes)[codes])

    def _fit_models(self, X: Any, y: IntArray, seed: int) -> None:
        self.estimator_ = seeded(self.estimator, seed).fit(X, self.classes_[y])

    def _take_models(self) -> None:
        self.estimator_ = self.estimator

    def _outputs(self, X: FloatArray) -> FloatArray:
        probabilities = np.zeros((len(X), len(self.classes_)))
        known = np.searchsorted(self.classes_, self.estimator_.classes_)
        probabilities[:, known] = self.estimator_.predict_proba(self._given(X))
        return probabilities

    def _scores(self, outputs: FloatArray, y: IntArray) -> FloatArray:
        return 1.0 - outputs[np.arange(len(y)), y]

    def _evaluate(self, X: FloatArray, y: IntArray) -> tuple[BoolArray, FloatArray]:
        sets = self._sets(X)
        return sets[np.arange(len(y)), y], sets.sum(axis=1).astype(float)
