"""Adaptivity classes as methods of a study, and two references.

    by path       cross-validation of 5 folds over the penalties (l1 ratios 0 and 1, adaptive penalties 1/4, 1 and 4, 30
                  lambdas), as ``AdaptiveRegressorCV`` and ``AdaptiveClassifierCV`` do it. Classes that are meant to be
                  sparse have the l1 ratio 1 only
    structured    classes with a structure on W: the strength by a quarter of the training rows, lam = 1, ridge
    ridge         the mean imputed, indicators of missing values appended, ``RidgeCV`` or ``RidgeClassifierCV``
    boosting      ``HistGradientBoosting`` with its defaults, which takes missing values as they are

The score is R2, or 2 AUC - 1 for classes. ``reliance`` is that of :func:`admiss.reliance` on the test rows.
"""

import time
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from admiss import (
    AdaptiveClassifier,
    AdaptiveClassifierCV,
    AdaptiveRegressor,
    AdaptiveRegressorCV,
    reliance,
)
from admiss.adaptivity import Adaptivity, FusedPatterns, LowRankAffine, Polynomial, resolve_adaptivity
from admiss.study import Scores
from experiments.studies.indicators.methods import make_imputer, make_learner
from experiments.studies.methods.outcome import outcome
from experiments.studies.methods.rows import StudyRows

STRUCTURED: dict[str, Callable[[float], Adaptivity]] = {"low_rank": LowRankAffine, "fused": FusedPatterns}
HELD_OUT = 0.25


def by_path(rows: StudyRows, seed: int, *, adaptivity: str, l1_ratios: Sequence[float]) -> Scores:
    """A class with its penalties selected by cross-validation."""
    start = time.process_time()
    search = AdaptiveRegressorCV if rows.task == "regression" else AdaptiveClassifierCV
    own = Polynomial(2) if adaptivity == "polynomial_2" else resolve_adaptivity(adaptivity)
    model = search(own, l1_ratios=l1_ratios, n_lambdas=30, stop_early=True, random_state=seed)
    model.fit(rows.X_train, rows.y_train)
    seconds = time.process_time() - start
    return _scores(rows, model, model.best_score_, seconds, {"lam": model.best_params_["lam"]})


def structured(rows: StudyRows, seed: int, *, adaptivity: str, strengths: Sequence[float]) -> Scores:
    """A class with a structure, its strength selected on held-out rows."""
    start = time.process_time()
    estimator: Any = AdaptiveRegressor if rows.task == "regression" else AdaptiveClassifier
    classes = None if rows.task == "regression" else rows.y_train
    train, test = train_test_split(
        np.arange(len(rows.y_train)), test_size=HELD_OUT, random_state=seed, stratify=classes
    )
    models = {strength: estimator(STRUCTURED[adaptivity](strength)) for strength in strengths}
    found = {
        strength: float(
            model.fit(rows.X_train[train], rows.y_train[train]).score(rows.X_train[test], rows.y_train[test])
        )
        for strength, model in models.items()
    }
    best = max(found, key=found.__getitem__)
    model = models[best].fit(rows.X_train, rows.y_train)
    seconds = time.process_time() - start
    return _scores(rows, model, found[best], seconds, {"strength": best})


def _scores(rows: StudyRows, model: Any, cv_score: float, seconds: float, selected: dict[str, Any]) -> Scores:
    scores = outcome(rows, model, rows.X_test, cv_score=cv_score, seconds=seconds, selected=selected)
    return {**scores, "reliance": reliance(model, rows.X_test), "certificate": model.certificate_.status}


def reference(rows: StudyRows, seed: int, *, learner: str) -> Scores:
    """Mean imputation with indicators and ridge, or boosting of the rows as they are."""
    start = time.process_time()
    model = make_learner(learner, rows.task, seed)
    if learner == "ridge":
        model = make_pipeline(make_imputer("mean", seed, 0, 0, add_indicator=True), model)
    model.fit(rows.X_train, rows.y_train)
    seconds = time.process_time() - start
    if rows.task != "regression" and learner == "ridge":  # its scores order the rows as probabilities would
        score = model.decision_function(rows.X_test)
        model = SimpleNamespace(classes_=model.classes_, predict_proba=lambda _: np.column_stack([-score, score]))
    return outcome(rows, model, rows.X_test, cv_score=0.0, seconds=seconds, selected={})
