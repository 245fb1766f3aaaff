"""Scores of predictions, and the methods of scikit-learn that partitions are compared with.

The first reference imputes means, adds an indicator of missing values per feature, brings all columns to the same
scale, and selects the penalty of a linear model by cross-validation: no partition, but the same information. The second
one is gradient boosting with its defaults, which splits on values and on missing values.

Scores are R2 of numbers; log-loss, AUC and accuracy of class probabilities.

Probabilities are columns in the order of all classes. A model that has not seen a class gives it probability 0, which
the log-loss counts as the smallest positive number next to 1. AUC is that of the second of two classes, or the mean of
one against the rest over the classes that occur, as in scikit-learn.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV, RidgeCV
from sklearn.metrics import r2_score, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from admiss.estimator.notices import silence
from formulations.arrays import FloatArray

# For each task its scores, and whether larger is better.
SCORES = {"regression": {"R2": True}, "classification": {"log_loss": False, "AUC": True, "accuracy": True}}
SMALLEST = float(np.finfo(float).eps)
# Penalties of the ridge, and inverse penalties of the logistic regression.
PENALTIES = np.logspace(-3, 4, 15)
INVERSE_PENALTIES = np.logspace(-4, 2, 7)
# Name of each reference in the table, and in sentences.
LINEAR = {
    "regression": ("mean + indicators + ridge", "mean imputation with indicators and ridge"),
    "classification": ("mean + indicators + logistic", "mean imputation with indicators and logistic regression"),
}
BOOSTING = ("HistGradientBoosting", "gradient boosting")


def reference_names(task: str) -> dict[str, str]:
    """Names of the references in the table, with those in sentences."""
    return dict([LINEAR[task], BOOSTING])


def reference(name: str, task: str, y: Any, seed: int) -> Any:
    """The reference of a name for these training targets."""
    if name == BOOSTING[0]:
        boosting: Any = HistGradientBoostingRegressor(random_state=seed)
        if task == "classification":
            # its validation rows are stratified, which needs two rows per class
            stopped = "auto" if _rarest(y) > 1 else False
            boosting = HistGradientBoostingClassifier(random_state=seed, early_stopping=stopped)
        return make_pipeline(_ObservedColumns(), boosting)
    model: Any = RidgeCV(alphas=PENALTIES)
    if task == "classification":
        folds = min(5, _rarest(y))
        model = LogisticRegression(max_iter=1000)
        if folds > 1:
            model = LogisticRegressionCV(
                Cs=INVERSE_PENALTIES,
                cv=folds,
                scoring="neg_log_loss",
                max_iter=1000,
                l1_ratios=(0.0,),
                use_legacy_attributes=False,
            )
    return make_pipeline(SimpleImputer(add_indicator=True), StandardScaler(), model)


class _ObservedColumns(TransformerMixin, BaseEstimator):
    """Leaves out columns without a value in training, which histograms cannot bin."""

    def fit(self, X: Any, y: Any = None) -> "_ObservedColumns":
        self.observed_ = ~np.isnan(np.asarray(X, dtype=float)).all(axis=0)
        return self

    def transform(self, X: Any) -> Any:
        return np.asarray(X, dtype=float)[:, self.observed_]


def _rarest(y: Any) -> int:
    """Rows of the rarest class."""
    return int(np.unique(y, return_counts=True)[1].min())


def predicted(model: Any, X: Any, classes: Any) -> FloatArray:
    """Predictions of a regression, or probabilities of all classes by a model that may have seen only some."""
    if classes is None:
        return np.asarray(model.predict(X), dtype=float)
    P = np.zeros((len(X), len(classes)))
    P[:, np.searchsorted(classes, model.classes_)] = model.predict_proba(X)
    return P


def fitted(model: Any, X: FloatArray, y: Any) -> Any:
    """The model fitted to some rows; if these are of one class, the model that predicts it."""
    if hasattr(model, "predict_proba") and len(np.unique(y)) == 1:
        model = DummyClassifier(strategy="prior")
    return model.fit(X, y)


def scores_of(y: Any, predictions: FloatArray, classes: Any) -> dict[str, float]:
    """Scores of predictions, NaN if undefined.

    Examples
    --------
    >>> P = np.array([[0.9, 0.1], [0.2, 0.8], [0.4, 0.6]])
    >>> {name: round(value, 3) for name, value in scores_of(np.array([0, 1, 0]), P, np.array([0, 1])).items()}
    {'log_loss': 0.415, 'AUC': 1.0, 'accuracy': 0.667}
    """
    if classes is None:
        with silence():  # a single row has no R2
            return {"R2": float(r2_score(y, predictions))}
    codes = np.searchsorted(classes, y)
    likely = np.clip(predictions[np.arange(len(codes)), codes], SMALLEST, 1.0)
    wanted: Sequence[int] = range(len(classes)) if len(classes) > 2 else [1]
    areas = [_area(codes == c, predictions[:, c]) for c in wanted]
    known = [area for area in areas if np.isfinite(area)]
    return {
        "log_loss": float(-np.log(likely).mean()),
        "AUC": float(np.mean(known)) if known else np.nan,
        "accuracy": float(np.mean(predictions.argmax(axis=1) == codes)),
    }


def fold_scores(y: Any, predictions: FloatArray, classes: Any, held_out: Sequence[Any]) -> dict[str, list[float]]:
    """Scores by fold, NaN if undefined.

    The mean of these is the score of all rows, to which fold k of K contributes K times the loss of its rows,

        R2          1 - K sum_k (y_i - f_i)^2 / sum (y_i - mean)^2
        log-loss    K sum_k log-loss_i / n,     accuracy    K sum_k 1(right) / n,

    except for AUC, which is that of the rows of the fold.

    Examples
    --------
    >>> y, predictions = np.array([0.0, 1.0, 2.0, 4.0]), np.array([0.0, 1.5, 2.5, 3.0])
    >>> by_fold = fold_scores(y, predictions, None, [[0, 1], [2, 3]])["R2"]
    >>> round(float(np.mean(by_fold)), 6) == round(scores_of(y, predictions, None)["R2"], 6)
    True
    """
    sizes = np.array([len(rows) for rows in held_out]) * len(held_out) / len(y)
    if classes is None:
        spread = float(np.sum((y - np.mean(y)) ** 2))
        losses = np.array([np.sum((y[rows] - predictions[rows]) ** 2) for rows in held_out])
        return {"R2": (1 - len(held_out) * losses / spread).tolist() if spread > 0 else [np.nan] * len(held_out)}
    each = [scores_of(y[rows], predictions[rows], classes) for rows in held_out]
    shares = {"log_loss": sizes, "AUC": np.ones(len(held_out)), "accuracy": sizes}
    return {name: (share * [scores[name] for scores in each]).tolist() for name, share in shares.items()}


def _area(positive: Any, score: FloatArray) -> float:
    return float(roc_auc_score(positive, score)) if 0 < positive.sum() < len(positive) else np.nan


def is_better(name: str, first: Any, second: Any) -> Any:
    """How much better the first value, or each of the first values, of a score is, negative if it is worse."""
    larger = next(scores[name] for scores in SCORES.values() if name in scores)
    return first - second if larger else second - first
