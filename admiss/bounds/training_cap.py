"""A cap for ``risk_certificate``, from training rows.

    B = (3 x the largest root mean square of cross-validated residuals of a model)^2

Of normal residuals with this standard deviation it cuts off .3 %. Residuals on the rows that a model was fitted to
would be too small: 0 for an unpruned tree, whose capped risk would then be 0. One model that predicts badly raises the
cap, and with it the bounds of all: leave it out of both, before the held-out rows are seen.
"""

import math
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.model_selection import KFold, cross_val_predict

from admiss.bounds.held_out_losses import largest_loss, predicted_numbers, read_loss, read_models
from admiss.estimator.cv import Split
from admiss.estimator.validation import read_classes, read_random_state, read_regression_target, seeded
from formulations.arrays import FloatArray

# Residuals of more than this many standard deviations are cut off.
DEVIATIONS = 3.0


def cap_from_training(models: Any, X: Any, y: Any, *, loss: str = "auto", cv: Any = 5, random_state: Any = 0) -> float:
    """A cap for ``risk_certificate`` that does not depend on held-out rows.

    Parameters
    ----------
    models : estimator, list of estimators, or dict of them by name
        Copies are fitted to the folds; the models themselves do not change and need not be fitted.
    X : array or data frame of shape (n, d)
        Features of the training rows.
    y : array of shape (n,)
        Their targets.
    loss : {"auto", "squared", "zero_one", "brier"}
        As in ``risk_certificate``. The cap of the losses for classes is their largest value.
    cv : int or splitter
        Number of folds, or a splitter of scikit-learn that holds out every row once.
    random_state : int, RandomState or None
        Seed of the folds, and of models without a seed.

    Returns
    -------
    float
        (3 x the largest root mean square of cross-validated residuals)^2.

    Examples
    --------
    >>> from sklearn.dummy import DummyRegressor
    >>> y = np.tile([-1.0, 1.0], 50)
    >>> round(cap_from_training(DummyRegressor(), np.zeros((100, 1)), y), 1)
    9.1
    """
    named = read_models(models)
    loss = read_loss(loss, named)
    n = len(X)
    rng = read_random_state(random_state)
    if loss != "squared":
        return largest_loss(loss, len(read_classes(BaseEstimator(), y, n)[0]))
    target = read_regression_target(BaseEstimator(), y, n)
    if isinstance(cv, int | np.integer) and not isinstance(cv, bool):
        if not 2 <= cv or n < 2:
            raise ValueError(f"Cross-validation needs 2 or more folds and rows, not cv={cv} for {n:,} rows.")
        cv = KFold(min(int(cv), n), shuffle=True, random_state=rng)
    if not hasattr(cv, "get_n_splits"):
        raise ValueError(f"cv must be a number of folds or a splitter of scikit-learn, not {cv!r}.")
    folds = list(cv.split(X, target))
    seed = int(rng.randint(2**31 - 1))
    # in units of the largest |y|, so that squares stay in range
    unit = float(np.abs(target).max()) or 1.0
    with np.errstate(over="ignore"):
        deviation = unit * max(
            float(np.sqrt(np.mean(((target - _held_out(name, seeded(model, seed), X, target, folds)) / unit) ** 2)))
            for name, model in named.items()
        )
    try:
        cap = (DEVIATIONS * deviation) ** 2
    except OverflowError:
        cap = math.inf
    if not 0 < cap < math.inf:
        raise ValueError(
            f"The largest cross-validated residual standard deviation is {deviation:.3g}, whose square is no cap: give "
            "a positive number in the units of y^2."
        )
    return cap


def _held_out(name: str, model: Any, X: Any, y: FloatArray, folds: list[Split]) -> FloatArray:
    return predicted_numbers(name, cross_val_predict(model, X, y, cv=folds), len(y))
