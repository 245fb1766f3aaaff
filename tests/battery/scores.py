"""Scores on held-out rows: R2, or AUC (with several classes the mean over each class against the rest).

Every row is predicted by a model of the other four folds. R2 is that of all rows together, since a fold of six rows has
none of its own to speak of; AUC is the mean over the folds, which are stratified by class.
"""

import warnings
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.metrics import r2_score, roc_auc_score
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.pipeline import Pipeline

from tests.battery.tables import Table

FOLDS = 5
WITHIN = 0.03


def score(model: Any, table: Table, seed: int) -> float:
    """The score of a model on a table, on folds of a seed."""
    classes = table.task == "classification"
    folds = (StratifiedKFold if classes else KFold)(FOLDS, shuffle=True, random_state=seed)
    held_out, found = np.empty(len(table.y)), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # all-missing columns, and references that stop before they converge
        for train, test in folds.split(table.X, table.y):
            fitted = _fit(model, table, train)
            if classes:
                found.append(_auc(table.y[test], fitted, table.X[test], _some(table.weights, test)))
            else:
                held_out[test] = fitted.predict(table.X[test])
    return float(np.mean(found) if classes else r2_score(table.y, held_out, sample_weight=table.weights))


def _fit(model: Any, table: Table, rows: np.ndarray) -> Any:
    model, weights = clone(model), _some(table.weights, rows)
    if weights is None:
        return model.fit(table.X[rows], table.y[rows])
    if isinstance(model, Pipeline):
        parameters = {f"{name}__sample_weight": weights for name in list(model.named_steps)[1:]}
        return model.fit(table.X[rows], table.y[rows], **parameters)
    return model.fit(table.X[rows], table.y[rows], sample_weight=weights)


def _auc(y: np.ndarray, fitted: Any, X: np.ndarray, weights: np.ndarray | None) -> float:
    p = fitted.predict_proba(X)
    columns = [1] if p.shape[1] == 2 else range(p.shape[1])
    return float(np.mean([roc_auc_score(y == fitted.classes_[k], p[:, k], sample_weight=weights) for k in columns]))


def _some(weights: np.ndarray | None, rows: np.ndarray) -> np.ndarray | None:
    return None if weights is None else weights[rows]
