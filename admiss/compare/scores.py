"""Scores of predictions: R2 of numbers; log-loss, AUC and accuracy of class probabilities.

Probabilities are columns in the order of all classes. A model that has not seen a class gives it probability 0, which
the log-loss counts as the smallest positive number next to 1. AUC is that of the second of two classes, or the mean of
one against the rest over the classes that occur, as in scikit-learn.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.dummy import DummyClassifier
from sklearn.metrics import r2_score, roc_auc_score

from admiss.estimator.notices import silence
from formulations.arrays import FloatArray

# For each task its scores, and whether larger is better.
SCORES = {"regression": {"R2": True}, "classification": {"log_loss": False, "AUC": True, "accuracy": True}}
SMALLEST = float(np.finfo(float).eps)


def task_of(y: Any, task: str | None, of_integers: str) -> str:
    """The task: as given, or classification for text and truth values, and regression for other numbers than integers.

    Examples
    --------
    >>> task_of(["a", "b"], None, "regression"), task_of([0.5, 1.0], None, "regression")
    ('classification', 'regression')
    """
    if task is not None:
        return task
    kind = np.asarray(np.asarray(y).tolist()).dtype.kind  # objects as what they are
    return of_integers if kind in "iu" else "regression" if kind == "f" else "classification"


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
