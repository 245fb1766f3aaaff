"""Folds for cross-validation with missing data.

Rows are stratified by their pattern, and in classification by pattern and class, so that a pattern that occurs often
enough is in every training fold. Patterns with fewer rows than folds are pooled.
"""

from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold, check_cv

from admiss.patterns import BoolArray, FloatArray, IntArray, PatternTable

Split = tuple[IntArray, IntArray]


def make_folds(X: FloatArray, y: Any, labels: IntArray | None, cv: Any, random_state: Any) -> list[Split]:
    """Training and held-out rows of each fold.

    Parameters
    ----------
    X : array of shape (n, d)
        Features with NaN.
    y : array of shape (n,)
        Target, for splitters of scikit-learn that look at it.
    labels : int array of shape (n,), optional
        Classes.
    cv : int, splitter or iterable of (train, test)
        A number makes stratified folds, anything else is taken as it is.
    random_state : int, RandomState or None
        Seed of the stratified folds.
    """
    if isinstance(cv, int | np.integer) and not isinstance(cv, bool):
        if not 2 <= cv <= len(X):
            raise ValueError(f"cv must be between 2 and the number of rows, n_samples={len(X)}, not {cv}.")
        strata = pattern_strata(np.isnan(X), labels, int(cv))
        splitter = StratifiedKFold(int(cv), shuffle=True, random_state=random_state)
        return list(splitter.split(np.empty((len(X), 1)), strata))
    folds = [(np.asarray(train), np.asarray(test)) for train, test in check_cv(cv).split(X, y)]
    if not folds:
        raise ValueError("cv has no folds.")
    return folds


def pattern_strata(M: BoolArray, labels: IntArray | None, n_folds: int) -> IntArray:
    """Strata of rows: pattern (and class), the rare patterns together, none with fewer rows than folds.

    Examples
    --------
    >>> pattern_strata(np.array([[0], [0], [0], [1]], bool), None, 2).tolist()
    [0, 0, 0, 0]
    """
    codes = PatternTable.of(M).codes
    counts = np.bincount(codes)
    rare = counts[codes] < n_folds
    strata = np.where(rare, -1, codes)
    if labels is not None:
        strata = (strata + 1) * (labels.max() + 1) + labels
    strata = np.unique(strata, return_inverse=True)[1].ravel()
    counts = np.bincount(strata)
    largest = int(counts.argmax())
    small = counts[strata] < n_folds
    if labels is None:
        return np.where(small, largest, strata)
    # a small stratum joins the largest one of its own class
    by_class = [np.bincount(strata[labels == c]).argmax() for c in range(labels.max() + 1)]
    return np.where(small, np.asarray(by_class)[labels], strata)
