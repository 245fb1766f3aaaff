"""Scores of what a classifier says of rows: the area under the curve, and the log-loss of probabilities."""

import numpy as np

from formulations.arrays import BoolArray, FloatArray, IntArray

# Probabilities are kept so far from 0, as in scikit-learn, so that one sure mistake does not make a loss infinite.
SMALLEST_PROBABILITY = float(np.finfo(float).eps)


def area_under_curve(is_class: BoolArray, scores: FloatArray, sample_weight: FloatArray) -> float:
    """The share of pairs of a row in and a row out of a class, by weight, whose scores are in order.

    A tie, which is two equal scores, is half in order. NaN among the scores makes the area NaN. There must be rows of
    positive weight both in and out of the class.

    Examples
    --------
    >>> area_under_curve(np.array([False, True, True]), np.array([0.5, 0.5, 0.8]), np.ones(3))
    0.75
    >>> area_under_curve(np.array([False, True, True]), np.array([0.5, 0.5, 0.8]), np.array([1.0, 1.0, 3.0]))
    0.875
    """
    if np.isnan(scores).any():
        return float("nan")
    place = np.unique(scores, return_inverse=True)[1].ravel()
    inside, outside = np.bincount(place, sample_weight * is_class), np.bincount(place, sample_weight * ~is_class)
    below = np.cumsum(outside) - outside / 2
    return float(inside @ below / (inside.sum() * outside.sum()))


def log_losses(
    codes: IntArray, probabilities: FloatArray, smallest_probability: float = SMALLEST_PROBABILITY
) -> FloatArray:
    """Minus the logarithm of the probability of the class of each row; classes are columns of the probabilities.

    Examples
    --------
    >>> log_losses(np.array([0, 1]), np.array([[0.5, 0.5], [1.0, 0.0]])).round(4).tolist()
    [0.6931, 36.0437]
    """
    chosen = probabilities[np.arange(len(codes)), codes]
    return -np.log(np.maximum(chosen, smallest_probability))
