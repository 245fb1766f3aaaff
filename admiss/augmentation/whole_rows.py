"""Folds of a search among rows with copies: a row and its copies are in the same fold.

Otherwise a model is tested on copies of rows that it has seen, with the same target, and too little penalty is chosen.
The search is the estimator itself, or the last step of a pipeline: its ``cv`` becomes a list of folds, made of the rows
as they are by the ``cv`` that it had. If that is None, it becomes 5, also in estimators whose None is leave-one-out.
"""

from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from admiss.estimator.cv import Split, make_folds
from admiss.estimator.notices import warn
from formulations.arrays import FloatArray, IntArray

FOLDS = 5
# Rows above which HistGradientBoosting stops early by default.
AUTO_STOPS = 10_000


def with_whole_rows(
    estimator: Any, X: FloatArray, y: Any, labels: IntArray | None, s: FloatArray, rows: IntArray, random_state: Any
) -> Any:
    """The estimator with folds for its rows with copies, if it has a parameter ``cv``.

    Parameters
    ----------
    estimator : estimator
        It is changed.
    X, y, labels, s
        The rows as they are, see ``make_folds``; rows of weight 0 are in no fold.
    rows : int array
        Of each row and copy the index of its row among those of positive weight.
    """
    _warn_of_single_rows(estimator, len(rows))
    name, cv = _own_folds(estimator)
    if name is not None and not isinstance(cv, str):
        folds = make_folds(X, y, labels, s, FOLDS if cv is None else cv, random_state)
        estimator.set_params(**{name: [_copied(fold, rows) for fold in folds]})
    return estimator


def _warn_of_single_rows(estimator: Any, n: int) -> None:
    """Warn of estimators that hold out single rows of the n that they are given."""
    settings = {key.rpartition("__")[2]: value for key, value in estimator.get_params().items()}
    early = settings.get("early_stopping", settings.get("n_iter_no_change") is not None)
    if early is True or (early == "auto" and n > AUTO_STOPS) or settings.get("oob_score"):
        warn(
            "Early stopping and out-of-bag scores hold out single rows, so that copies of a row are on both sides: set "
            "early_stopping=False and oob_score=False."
        )


def _own_folds(estimator: Any) -> tuple[str | None, Any]:
    """Name and value of the parameter with the folds of the outermost search; warns of searches inside of it."""
    found = {key: value for key, value in estimator.get_params().items() if key.rpartition("__")[2] == "cv"}
    prefix, last = "", estimator
    while isinstance(last, Pipeline):
        step, last = last.steps[-1]
        prefix += f"{step}__"
    name = f"{prefix}cv" if f"{prefix}cv" in found else None
    inner = [key for key, value in found.items() if key != name and not isinstance(value, str)]
    if inner:
        warn(
            f"{', '.join(inner)}: folds of a search inside another estimator, in which copies of a row may be apart; "
            "its penalties can come out too small."
        )
    return name, found.get(name) if name else None


def _copied(fold: Split, rows: IntArray) -> Split:
    train, test = (np.flatnonzero(np.isin(rows, part)) for part in fold)
    return train, test
