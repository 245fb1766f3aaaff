"""Class labels as targets -1 and 1, and log-odds as class probabilities.

Two classes give one target, for the log-odds of the second; more are fitted one against the rest.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.utils import compute_sample_weight

from admiss.estimator.validation import read_classes, read_weights
from formulations.arrays import FloatArray, IntArray


def read_class_targets(
    estimator: Any, y: Any, X: FloatArray, sample_weight: Any
) -> tuple[Any, IntArray, list[FloatArray], FloatArray]:
    """Classes, class of each row, targets, and sample weights multiplied by class weights."""
    classes, codes = read_classes(estimator, y, len(X))
    by_class = compute_sample_weight(estimator.class_weight, classes[codes])
    if not np.all(np.isfinite(by_class) & (by_class >= 0)):
        raise ValueError(f"class_weight must hold non-negative numbers, not {estimator.class_weight!r}.")
    s = read_weights(sample_weight, X) * by_class
    if len(np.unique(codes[s > 0])) < 2:
        raise ValueError(f"{type(estimator).__name__} needs rows of at least two classes, and y has one class only.")
    wanted: Sequence[int] = range(len(classes)) if len(classes) > 2 else [1]
    return classes, codes, [np.where(codes == c, 1.0, -1.0) for c in wanted], s


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
