"""Scores of a fitted model on the test rows.

regression       score       R2 = 1 - MSE / Var(y_test), as in scikit-learn
                 r2_authors  1 - MSE / mean((y_test - mean(y_train))^2), the form that the authors of the paper report
classification   score       2 AUC - 1; with several classes the mean over each one against the rest
"""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from admiss.estimator.scoring import score
from admiss.study import Scores
from experiments.studies.methods.rows import StudyRows
from formulations.arrays import FloatArray


def outcome(
    rows: StudyRows, model: Any, X_test: FloatArray, *, cv_score: float, seconds: float, selected: Mapping[str, Any]
) -> Scores:
    """Score a model on test rows; facts about the rows and the selection of the model are added.

    Parameters
    ----------
    rows : StudyRows
    model : fitted estimator
    X_test : array
        The test rows in the form that the model takes.
    cv_score : float
        Score in cross-validation, by which a choice among methods is made; larger is better.
    seconds : float
        CPU time of the fit with its search.
    selected : dict
        Parameters selected by cross-validation.
    """
    known = {**rows.facts, "task": rows.task, "cv_score": float(cv_score), "seconds": seconds}
    known["chosen"] = plain(selected)
    if rows.task != "regression":
        return {"score": 2 * _area(rows, model, X_test) - 1, **known}
    squared = float(np.mean((rows.y_test - model.predict(X_test)) ** 2))
    around = {"score": rows.y_test.mean(), "r2_authors": rows.y_train.mean()}
    r2 = {name: 1 - squared / float(np.mean((rows.y_test - mean) ** 2)) for name, mean in around.items()}
    if not np.isfinite(list(r2.values())).all():
        raise ValueError(f"R2 is {r2}, not a finite number")
    return {**r2, **known}


def _area(rows: StudyRows, model: Any, X_test: FloatArray) -> float:
    """Area under the curve over the classes present in the test rows."""
    probabilities = model.predict_proba(X_test)
    absent = set(np.unique(rows.y_test)) - set(model.classes_)
    if absent:
        raise ValueError(f"Classes {sorted(map(str, absent))} occur only in the test rows: choose another split.")
    present = np.isin(model.classes_, rows.y_test)
    if present.sum() < 2:
        raise ValueError("The test rows are all of one class, for which the area under the curve is undefined.")
    if len(model.classes_) > 2:
        probabilities = probabilities[:, present]
    codes = np.searchsorted(model.classes_[present], rows.y_test)
    return score("auc", codes, probabilities, None)


def plain(selected: Mapping[str, Any]) -> str:
    """Encode selected parameters as JSON, with objects by their repr.

    Examples
    --------
    >>> plain({"lam": np.float64(0.5), "kind": "tree"})
    '{"kind": "tree", "lam": 0.5}'
    """
    return json.dumps({str(name): value for name, value in selected.items()}, sort_keys=True, default=_as_plain)


def _as_plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.generic | np.ndarray) else repr(value)
