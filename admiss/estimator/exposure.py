"""Targets, exposures, limits and scores of regressions with a log link.

    log of the mean of y_i = z_i + log e_i,       z_i = f(x_i, m_i)

e_i is the exposure of a row: the time, the number or the area for which y_i was counted. In the risk its target is
y_i / e_i and its weight s_i e_i^(2 - p), with p the power of the variance (:mod:`formulations.log_link`). Means, scales
and penalties depend on the weights s_i alone. Predictors z are kept within their range in training, extended on either
side by a multiple of its width: that is what ``max_extrapolation`` does here. Cells without a positive target, whose
predictors are a number that stands for minus infinity, do not count in that range.
"""

from typing import Any

import numpy as np
from sklearn.utils.validation import check_array, check_consistent_length, column_or_1d

from formulations.arrays import FloatArray
from formulations.log_link import LogLink
from formulations.losses import Loss


def read_exposure(exposure: Any, loss: Loss, n: int) -> FloatArray | None:
    """The exposure of n rows, or an error if it cannot be one."""
    if exposure is None:
        return None
    require_log_link(loss)
    e = column_or_1d(check_array(exposure, ensure_2d=False, dtype=np.float64, input_name="exposure"))
    if len(e) != n:
        raise ValueError(f"exposure must have one entry for each of the {n} rows, not {len(e)}.")
    if not np.all(e > 0):
        raise ValueError("exposure must be larger than 0 in every row.")
    return np.asarray(e)


def require_log_link(loss: Loss) -> LogLink:
    """The loss, or an error if it takes no exposure."""
    if not isinstance(loss, LogLink):
        raise ValueError(f"exposure is for losses with a log link ('poisson', 'gamma', 'tweedie'), not for {loss}.")
    return loss


def refuse_signs(y: FloatArray, loss: LogLink) -> None:
    """Raise an error for targets of rows that count which the loss does not have."""
    name = type(loss).__name__
    if loss.b == 0 and y.min() <= 0:
        raise ValueError(f"The {name} loss needs targets larger than 0, and y has values that are 0 or negative.")
    if y.min() < 0:
        raise ValueError(f"The {name} loss needs targets that are 0 or larger, and y has negative values.")


def per_exposure(y: FloatArray, s: FloatArray, exposure: Any, loss: Loss) -> tuple[FloatArray, FloatArray | None]:
    """Targets per unit of exposure, and the exposure; the loss must have a log link and take these targets."""
    e = read_exposure(exposure, loss, len(y))
    used = y[s > 0]
    refuse_signs(used, require_log_link(loss))
    if not used.any():
        raise ValueError("y is 0 in every row: a model with a log link has no best fit to it.")
    return y if e is None else y / e, e


def deviance_explained(loss: LogLink, y: Any, predictions: FloatArray, sample_weight: Any, exposure: Any) -> float:
    """D^2: 1 - deviance / deviance of the best constant rate, as scikit-learn's generalised linear models have it."""
    n = len(predictions)
    y = check_array(column_or_1d(y), ensure_2d=False, dtype=np.float64, input_name="y")
    check_consistent_length(y, predictions)
    s = np.ones(n) if sample_weight is None else np.asarray(sample_weight, dtype=float)
    refuse_signs(y[s > 0], loss)
    e = np.ones(n) if exposure is None else np.asarray(exposure, dtype=float)
    weights, rate = s * loss.weight_of(e), y / e
    constant = np.full(n, loss.best_constant(rate, weights))
    deviance, null = (float(weights @ loss.value(rate, z)) for z in (np.log(predictions / e), constant))
    if null == 0:
        return 1.0 if deviance == 0 else 0.0
    return 1.0 - deviance / null
