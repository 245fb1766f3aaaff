"""Log-odds as class probabilities, and scores of these.

Searches score thousands of candidates: a call of scikit-learn's ``roc_auc_score`` or ``log_loss`` takes 50 to 200 times
as long.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.base import ClassifierMixin

from formulations.arrays import BoolArray, FloatArray, IntArray

# Probabilities are at least this large, as in scikit-learn: one certain mistake does not make a loss infinite.
SMALLEST_PROBABILITY = float(np.finfo(float).eps)


class LogOddsClassifier(ClassifierMixin):
    """Mixin of classifiers whose ``_scores`` are log-odds, of the second class or of each class against the rest."""

    classes_: Any
    # log-odds of shape (n,), (n, 1) or (n, classes)
    _scores: Callable[[Any], FloatArray]

    def decision_function(self, X: Any) -> FloatArray:
        """Log-odds of the second class, or of each class against the rest."""
        scores = self._scores(X)
        return scores[:, 0] if scores.ndim == 2 and scores.shape[1] == 1 else scores

    def predict_proba(self, X: Any) -> FloatArray:
        """Probability of each class; one-against-the-rest probabilities are scaled to sum to 1."""
        return class_probabilities(self.decision_function(X))

    def predict(self, X: Any) -> Any:
        """Most likely class of each row."""
        codes = most_likely(self.decision_function(X))
        return self.classes_[codes]


def class_probabilities(scores: FloatArray) -> FloatArray:
    """Probability of each class; one-against-the-rest probabilities are scaled to sum to 1."""
    positive = expit(scores)
    if positive.ndim == 1:
        return np.column_stack([1.0 - positive, positive])
    sums = positive.sum(axis=1, keepdims=True)
    return np.where(sums > 0, positive / np.where(sums > 0, sums, 1.0), 1.0 / positive.shape[1])


def most_likely(scores: FloatArray) -> IntArray:
    """Index of the most likely class."""
    return (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)


def area_under_curve(is_class: BoolArray, scores: FloatArray, sample_weight: FloatArray) -> float:
    """Weighted share of pairs of one row inside and one outside a class whose scores are in order; ties count half.

    NaN if a score is NaN. Rows inside and outside the class must have positive weight.

    Examples
    --------
    >>> area_under_curve(np.array([False, True, True]), np.array([0.5, 0.5, 0.8]), np.array([1.0, 1.0, 3.0]))
    0.875
    """
    if np.isnan(scores).any():
        return float("nan")
    rank = np.unique(scores, return_inverse=True)[1].ravel()
    inside, outside = np.bincount(rank, sample_weight * is_class), np.bincount(rank, sample_weight * ~is_class)
    below = np.cumsum(outside) - outside / 2
    return float(inside @ below / (inside.sum() * outside.sum()))


def log_losses(
    codes: IntArray, probabilities: FloatArray, smallest_probability: float = SMALLEST_PROBABILITY
) -> FloatArray:
    """Minus the logarithm of the probability of the class of each row; the classes are columns of the probabilities.

    Examples
    --------
    >>> log_losses(np.array([0, 1]), np.array([[0.5, 0.5], [1.0, 0.0]])).round(4).tolist()
    [0.6931, 36.0437]
    """
    return -np.log(np.maximum(probabilities[np.arange(len(codes)), codes], smallest_probability))
