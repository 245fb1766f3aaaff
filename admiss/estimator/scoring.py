"""Scores of held-out predictions; larger is better.

================= ==================================================================================================
``r2``            1 - sum_i s_i (y_i - f_i)^2 / sum_i s_i (y_i - mean of the held-out y)^2
``squared_error`` minus the mean of (y_i - f_i)^2
``log_loss``      minus the mean of -log p_i, the probability of the class of row i
``auc``           area under the curve; with more than two classes the mean over each class against the rest
================= ==================================================================================================

They are those of scikit-learn; if all held-out y are equal, R2 is 1 for exact predictions and otherwise 0.
"""

import numpy as np

from admiss.estimator.labels import area_under_curve, log_losses
from formulations.arrays import FloatArray, IntArray

REGRESSION = ("r2", "squared_error")
CLASSIFICATION = ("log_loss", "auc")


def score(name: str, y: FloatArray | IntArray, outputs: FloatArray, s: FloatArray | None) -> float:
    """The score of predictions of shape (n,), or of probabilities of shape (n, K) for codes y.

    Examples
    --------
    >>> score("r2", np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 2.0]), None)
    0.5
    >>> score("auc", np.array([0, 1, 1]), np.array([[0.9, 0.1], [0.2, 0.8], [0.95, 0.05]]), None)
    0.5
    """
    weights = np.ones(len(y)) if s is None else s
    if name == "auc":
        rest = [1] if outputs.shape[1] == 2 else range(outputs.shape[1])
        return float(np.mean([area_under_curve(y == k, outputs[:, k], weights) for k in rest]))
    losses = log_losses(y.astype(int), outputs) if name == "log_loss" else (y - outputs) ** 2
    mean = np.average(losses, weights=weights)
    if name != "r2":
        return -float(mean)
    total = np.average((y - np.average(y, weights=weights)) ** 2, weights=weights)
    return 1.0 - float(mean / total) if total > 0 else float(mean == 0)


def check_held_out(name: str, y: FloatArray | IntArray, held_out: IntArray, fold: int, parameter: str) -> None:
    """Refuse held-out rows for which a score is undefined.

    ``parameter`` is what the caller calls the choice of the score; "" if there is none.
    """
    if name == "r2" and len(held_out) < 2:
        undefined, reason, other = "R2", "which has one row", "squared_error"
    elif name == "auc" and len(np.unique(y[held_out])) < len(np.unique(y)):
        undefined, reason, other = "The area under the curve", "which lacks a class", "log_loss"
    else:
        return
    instead = f", or {parameter}={other!r}" if parameter else ""
    raise ValueError(f"{undefined} is undefined on held-out fold {fold}, {reason}: use fewer folds{instead}.")
