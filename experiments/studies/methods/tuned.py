"""Predictors tuned by cross-validation as methods of a study: impute-then-regress, native missing values, oracles.

mean                means of the training rows, within each fold
mice                chained equations, fitted to the training rows within each fold
together            chained equations over training and test rows at once, before any fold, as in the authors' code
native              missing values are left to trees, forests and boosting
complete_features   only features that are never missing in training
oracle              the values before removal, and the missingness indicators
"""

import time
from collections.abc import Mapping
from copy import copy
from typing import Any

import numpy as np
from sklearn.base import clone

from admiss.baselines import TunedClassifier, TunedRegressor, baseline_features, complete_transductive
from admiss.baselines.methods import IMPUTERS
from admiss.study import Scores
from experiments.studies.methods.outcome import outcome
from experiments.studies.methods.rows import StudyRows
from formulations.arrays import FloatArray

FOLDS = 5


def tuned(
    rows: StudyRows, seed: int, *, imputer: str, kind: str, grid: Mapping[str, Any], trees: int | None = None
) -> Scores:
    """Tune a kind of predictor; a forest may have more trees in the final fit than during tuning."""
    model, X_test, seconds = fitted(rows, seed, imputer=imputer, kind=kind, grid=grid)
    if trees is not None:
        start = time.process_time()
        model = _with_more_trees(model, _features(rows, seed, imputer)[0], rows.y_train, trees)
        seconds += time.process_time() - start
    selected = {**model.best_params_, **({} if trees is None else {"n_estimators": trees})}
    found = {"depth": selected["max_depth"]} if kind == "tree" else {}
    if imputer == "together":  # included in the seconds of every kind
        found["shared_seconds"] = rows.cache[imputer][2]
    scores = outcome(rows, model, X_test, cv_score=model.best_score_, seconds=seconds, selected=selected)
    return {**scores, **found}


def _with_more_trees(search: Any, X: FloatArray, y: Any, trees: int) -> Any:
    """The tuned model with a larger forest."""
    model = copy(search)
    prefix = "" if search.imputer is None else "predictor__"
    codes = y if not hasattr(search, "classes_") else np.searchsorted(search.classes_, y)
    model.best_estimator_ = clone(search.best_estimator_).set_params(**{f"{prefix}n_estimators": trees}).fit(X, codes)
    return model


def fitted(
    rows: StudyRows, seed: int, *, imputer: str, kind: str, grid: Mapping[str, Any]
) -> tuple[Any, FloatArray, float]:
    """The tuned model, its test rows, and the CPU seconds; cached for methods that build on it."""
    key = (imputer, kind, repr(grid))
    if key not in rows.cache:
        X_train, X_test, before = _features(rows, seed, imputer)
        start = time.process_time()
        search = TunedRegressor if rows.task == "regression" else TunedClassifier
        model = search(kind, imputer=_imputer(imputer), grid=dict(grid), cv=FOLDS, random_state=seed)
        model.fit(X_train, rows.y_train)
        rows.cache[key] = model, X_test, before + time.process_time() - start
    return rows.cache[key]


def _imputer(name: str) -> Any:
    """The imputer that is fitted within each fold."""
    if name in ("together", "native", "oracle"):
        return None
    return clone(IMPUTERS[name])


def _features(rows: StudyRows, seed: int, imputer: str) -> tuple[FloatArray, FloatArray, float]:
    """Training and test rows before any fold, and the CPU seconds spent on them."""
    if imputer == "oracle":
        if rows.X_full_train is None or rows.X_full_test is None:
            raise ValueError("An oracle needs the values before they were removed.")
        seen = [
            baseline_features("oracle_pattern", X, full)
            for X, full in ((rows.X_train, rows.X_full_train), (rows.X_test, rows.X_full_test))
        ]
        return seen[0], seen[1], 0.0
    if imputer != "together":
        return rows.X_train, rows.X_test, 0.0
    if imputer not in rows.cache:
        start = time.process_time()
        completed = complete_transductive(rows.X_train, rows.X_test, random_state=seed)
        rows.cache[imputer] = *completed, time.process_time() - start
    return rows.cache[imputer]
