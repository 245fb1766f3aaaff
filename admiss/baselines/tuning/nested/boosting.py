"""Boosting after every number of rounds, read off one fit.

A round of boosting depends only on previous rounds, so the model of R rounds is the beginning of every longer one. Its
margins equal, to the last digit, those of a separate fit with the same ``random_state``. (Rows and columns are drawn
round by round; early stopping must be off.)

The depth of the trees cannot be read off: after another tree every later round fits other residuals.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from scipy.special import expit, softmax
from xgboost import DMatrix

from formulations.arrays import FloatArray


def xgboost_rounds(model: Any, X: FloatArray, rounds: Sequence[int]) -> Iterator[tuple[int, FloatArray]]:
    """Predictions of an XGBoost model after some of its rounds.

    The rounds from a to b are added to the margin after a: one pass over the trees, in the order of XGBoost itself.

    Parameters
    ----------
    model : XGBRegressor or XGBClassifier
        Fitted with trees, to the squared error or the log-loss.
    X : array of shape (n, d)
        Rows, NaN where missing.
    rounds : sequence of int
        Numbers of rounds, increasing.

    Yields
    ------
    number of rounds, and predictions of shape (n,) or probabilities of shape (n, K) after these rounds

    Examples
    --------
    >>> from xgboost import XGBRegressor
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(60, 2)), rng.normal(size=60)
    >>> model = XGBRegressor(n_estimators=20, max_depth=2, n_jobs=1).fit(X, y)
    >>> found = dict(xgboost_rounds(model, X, [5, 20]))
    >>> np.array_equal(found[20], model.predict(X))
    True
    """
    booster = model.get_booster()
    _check_rounds(rounds, booster.num_boosted_rounds())
    rows = DMatrix(X, nthread=1)
    done = 0
    for count in rounds:
        margin = booster.predict(rows, output_margin=True, iteration_range=(done, count))
        yield count, _from_margin(margin) if hasattr(model, "classes_") else margin
        rows.set_base_margin(margin)
        done = count


def _from_margin(margin: FloatArray) -> FloatArray:
    """Class probabilities, from one margin for two classes, otherwise from one margin per class."""
    margin = margin.astype(float)
    return np.column_stack([expit(-margin), expit(margin)]) if margin.ndim == 1 else softmax(margin, axis=1)


def _check_rounds(rounds: Sequence[int], fitted: int) -> None:
    if any(more <= fewer for fewer, more in zip([0, *rounds], rounds, strict=False)) or rounds[-1] > fitted:
        raise ValueError(f"rounds must increase from at least 1 to at most {fitted}, not {list(rounds)}.")


def histogram_rounds(model: Any, X: FloatArray, rounds: Sequence[int]) -> Iterator[tuple[int, FloatArray]]:
    """The same for HistGradientBoostingRegressor and HistGradientBoostingClassifier without early stopping.

    Examples
    --------
    >>> from sklearn.ensemble import HistGradientBoostingRegressor
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(60, 2)), rng.normal(size=60)
    >>> model = HistGradientBoostingRegressor(max_iter=20, early_stopping=False).fit(X, y)
    >>> found = dict(histogram_rounds(model, X, [5, 20]))
    >>> np.array_equal(found[20], model.predict(X))
    True
    """
    _check_rounds(rounds, model.n_iter_)
    requested = set(rounds)
    stages = model.staged_predict_proba(X) if hasattr(model, "classes_") else model.staged_predict(X)
    for count, outputs in enumerate(stages, start=1):
        if count in requested:
            yield count, outputs
