"""Class labels as targets -1 and 1, log-odds as class probabilities, and scores of these.

Two classes give one target, for the log-odds of the second; more are fitted one against the rest. Searches score
thousands of candidates: a call of scikit-learn's ``roc_auc_score`` or ``log_loss`` takes 50 to 200 times as long.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.utils import compute_sample_weight

from admiss.estimator.validation import read_classes, read_weights, require_two_classes
from formulations.arrays import BoolArray, FloatArray, IntArray

# Probabilities are at least this large, as in scikit-learn: one certain mistake does not make a loss infinite.
SMALLEST_PROBABILITY = float(np.finfo(float).eps)


def read_class_targets(
    estimator: Any, y: Any, X: FloatArray, sample_weight: Any
) -> tuple[Any, IntArray, list[FloatArray], FloatArray]:
    """Classes, class of each row, targets, and sample weights multiplied by class weights."""
    classes, codes = read_classes(estimator, y, len(X))
    s = read_weights(sample_weight, X)
    if not (estimator.class_weight is None or isinstance(estimator.class_weight, str | Mapping)):
        raise ValueError(f"class_weight must be 'balanced', a dictionary or None, not {estimator.class_weight!r}.")
    by_class = compute_sample_weight(estimator.class_weight, classes[codes])
    if not np.all(np.isfinite(by_class) & (by_class >= 0)):
        raise ValueError(f"class_weight must hold non-negative numbers, not {estimator.class_weight!r}.")
    with np.errstate(over="ignore"):
        s = s * (balanced(codes, s, len(classes)) if isinstance(estimator.class_weight, str) else by_class)
    if not np.isfinite(s).all():
        raise ValueError("class_weight times sample_weight is beyond the range of floating point: use smaller weights.")
    require_two_classes(estimator, codes[s > 0])
    wanted: Sequence[int] = range(len(classes)) if len(classes) > 2 else [1]
    return classes, codes, [np.where(codes == c, 1.0, -1.0) for c in wanted], s


def balanced(codes: IntArray, s: FloatArray, n_classes: int, train: IntArray | None = None) -> FloatArray:
    """Class weight of each row that makes all classes weigh the same, among the rows ``train`` (all by default).

    A class that is not among these rows has the weight that it has among all rows.

    Examples
    --------
    >>> balanced(np.array([0, 0, 1, 2]), np.ones(4), 3, np.array([0, 1, 2])).round(2).tolist()
    [0.75, 0.75, 1.5, 1.33]
    """
    weights = np.zeros(n_classes)
    for rows in (np.arange(len(codes)), *([] if train is None else [train])):
        sums = np.bincount(codes[rows], s[rows], n_classes)
        seen = sums > 0
        weights = np.divide(sums.sum(), seen.sum() * sums, out=weights, where=seen)
    return np.asarray(weights[codes])


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
