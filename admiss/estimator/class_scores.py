"""Area under the curve and log-loss, as in scikit-learn.

Searches score thousands of candidates, and a call of ``roc_auc_score`` or ``log_loss`` takes 50 to 200 times as long.
"""

import numpy as np

from formulations.arrays import BoolArray, FloatArray, IntArray

# Probabilities are at least this large, as in scikit-learn: one certain mistake does not make a loss infinite.
SMALLEST_PROBABILITY = float(np.finfo(float).eps)


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
