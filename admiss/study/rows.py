"""Rows of an instance for estimators: training and test rows, from whatever form the instance makes them in.

    X, y                                    split at random by the seed of the instance
    X_train, X_test, y_train, y_test        in the order of scikit-learn's ``train_test_split``
    an object with these four attributes    as it is; its ``facts``, a dict of plain values, are added to the scores

Classes keep their shares in a random split: y is stratified if it has few values and each occurs twice.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

PARTS = ("X_train", "X_test", "y_train", "y_test")
# Targets with more distinct values are not stratified: integers with more are quantities rather than classes.
MOST_STRATA = 20


@dataclass(frozen=True)
class Rows:
    """Training and test rows: arrays or data frames, with missing values or without.

    Attributes
    ----------
    X_train, X_test, y_train, y_test : arrays or data frames
    facts : dict
        Plain values that are added to the scores.
    """

    X_train: Any
    X_test: Any
    y_train: Any
    y_test: Any
    facts: Mapping[str, Any] = field(default_factory=dict)


def is_rows(made: Any) -> bool:
    """Whether an instance has made rows in one of the forms."""
    return all(hasattr(made, part) for part in PARTS) or (isinstance(made, tuple | list) and len(made) in (2, 4))


def rows_of(made: Any, seed: int, test_share: float) -> Any:
    """Training and test rows of what an instance has made."""
    if not is_rows(made):
        raise ValueError(
            f"the instance made {type(made).__name__} instead of rows: return X, y, or X_train, X_test, y_train, y_test"
        )
    if not isinstance(made, tuple | list):
        return made
    from sklearn.model_selection import train_test_split
    from sklearn.utils import check_consistent_length

    if len(made) == 4:
        rows = Rows(*made)
    else:
        X, y = made
        check_consistent_length(X, y)
        rows = Rows(*train_test_split(X, y, test_size=test_share, random_state=seed, stratify=_strata(y, test_share)))
    check_consistent_length(rows.X_train, rows.y_train)
    check_consistent_length(rows.X_test, rows.y_test)
    return rows


def _strata(y: Any, test_share: float) -> Any:
    values, counts = np.unique(np.asarray(y).astype(str), return_counts=True)
    held_out = test_share * counts.sum()
    few = len(values) <= min(MOST_STRATA, held_out, counts.sum() - held_out)
    return y if few and counts.min() >= 2 else None


def size_facts(rows: Any) -> dict[str, Any]:
    """Numbers of rows and columns, and the share of missing values in training."""
    X = rows.X_train
    if not hasattr(X, "shape") or len(X.shape) != 2:
        X = np.asarray(X)
    n, d = X.shape
    facts = {"n_train": int(n), "n_test": len(rows.y_test), "d": int(d)}
    return {**facts, "missing": _missing_share(X)} if n and d else facts


def _missing_share(X: Any) -> float:
    if hasattr(X, "tocsr"):  # sparse
        return float(np.isnan(X.tocsr().data).sum() / (X.shape[0] * X.shape[1]))
    columns = [X[name] for name in X.columns] if hasattr(X, "columns") else [X]
    return float(np.mean([np.mean(is_missing(np.asarray(column))) for column in columns]))


def is_missing(values: Any) -> Any:
    """Which entries of an array are missing: NaN, None or a marker of pandas."""
    if values.dtype.kind == "f":
        return np.isnan(values)
    if values.dtype.kind == "O":
        # NaN differs from itself, pandas.NA has no boolean
        is_one = np.frompyfunc(lambda v: v is None or type(v).__name__ in ("NAType", "NaTType") or v != v, 1, 1)
        return is_one(values).astype(bool)
    return np.zeros(values.shape, dtype=bool)
