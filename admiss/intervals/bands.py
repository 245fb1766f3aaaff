"""Scores of a numeric target: how far it lies outside a band.

A band has a lower end l(x), an upper end h(x) and a scale s(x) > 0; the score of y is max(l - y, y - h) / s, and the
set of all y with a score of at most t is [l - t s, h + t s], empty if its ends are in the wrong order.

============== ==================== =========== ======================================================================
score          l, h                 s           models
============== ==================== =========== ======================================================================
``absolute``   f, f                 1           one estimator of y
``scaled``     f, f                 g           and one of |y - f|, fitted to held-out errors on the training rows
``quantile``   q_low, q_high        1           two quantile models (Romano, Patterson and Candes 2019)
============== ==================== =========== ======================================================================
"""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import KFold, cross_val_predict
from sklearn.utils.validation import check_is_fitted

from admiss.estimator.notices import silence
from admiss.estimator.validation import seeded
from formulations.arrays import FloatArray

SCORES = ("absolute", "scaled", "quantile")
# The smallest scale, as a share of the mean absolute error on the training rows.
SMALLEST_SCALE = 0.05
# Folds for the held-out errors to which the model of the scale is fitted.
SCALE_FOLDS = 5


class BandModels:
    """The fitted models of a band.

    Attributes
    ----------
    lower, upper, point : estimators
        One and the same model, except for the score "quantile". ``point`` is None if the middle of the band is the
        prediction.
    scale : estimator or None
    smallest_scale : float
    """

    def __init__(self, lower: Any, upper: Any, point: Any, scale: Any = None, smallest_scale: float = 0.0) -> None:
        self.lower, self.upper, self.point = lower, upper, point
        self.scale, self.smallest_scale = scale, smallest_scale

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
    folds = KFold(min(SCALE_FOLDS, len(y)), shuffle=True, random_state=seed)
    with silence():  # what the folds would say has been said of all rows
        held_out = cross_val_predict(seeded(estimator, seed), X, y, cv=folds)
    errors = np.abs(y - held_out)
    scale = seeded(point if scale_estimator is None else scale_estimator, seed).fit(X, errors)
    return BandModels(point, point, point, scale, SMALLEST_SCALE * float(errors.mean()) or 1.0)


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
        if parameters.get("loss") == "quantile":
            from formulations.losses import Quantile

            return [clone(estimator).set_params(loss=Quantile(q)) for q in ends]
    raise ValueError(
        "conformity_score='quantile' needs quantile models (lower, upper) or (lower, upper, prediction); if they are "
        "fitted here, an estimator with a parameter quantile, or with loss='quantile', will do."
    )


def check_estimators(estimator: Any, score: str, scale_estimator: Any, prefit: bool) -> None:
    """Refuse parameters that do not belong together, before any work starts."""
    if score not in SCORES:
        raise ValueError(f"conformity_score must be one of {', '.join(map(repr, SCORES))}, not {score!r}.")
    for model in estimators_of(estimator, score, None if prefit else 0.5):
        if not hasattr(model, "fit") or not hasattr(model, "predict"):
            raise ValueError(f"estimator must be an estimator with fit and predict, not {model!r}.")
    if scale_estimator is not None and score != "scaled":
        raise ValueError("scale_estimator is used with conformity_score='scaled' only.")
    if score == "scaled" and prefit and scale_estimator is None:
        raise ValueError("conformity_score='scaled' with prefit=True needs a fitted scale_estimator of |y - f|.")
    if scale_estimator is not None and not isinstance(scale_estimator, BaseEstimator):
        raise ValueError(f"scale_estimator must be an estimator, not {scale_estimator!r}.")
