"""Searches as large as those of the authors, timed and compared with the reduced ones.

adaptive    for each l1_ratio, adaptive penalty and each of 5 folds, lambda by 10 folds within the training rows; the
            best pair is fitted with lambda by 10 folds of all rows
joint       for each cell of the grid and each of 5 folds, the whole search over imputed values
"""

import time
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from admiss import AdaptiveRegressorCV
from admiss.baselines.kinds import KINDS, TrainingRows
from admiss.estimator.scoring import score
from admiss.joint.cv import held_out_scores
from admiss.study import Scores
from experiments.studies.methods.joint import estimator_of, folds_of, linear_predictor
from experiments.studies.methods.outcome import outcome
from experiments.studies.methods.rows import StudyRows

INNER_FOLDS = 10


def nested_adaptive(
    rows: StudyRows, seed: int, *, adaptivity: str, l1_ratios: Sequence[float], adaptive_penalties: Sequence[float]
) -> Scores:
    """Fit an adaptivity class as the authors tuned it."""
    start = time.process_time()
    X, y = rows.X_train, rows.y_train
    found = []
    for alpha, c in product(l1_ratios, adaptive_penalties):
        scores = []
        for train, held_out in folds_of(rows, seed):
            model = _path(adaptivity, alpha, c, seed).fit(X[train], y[train])
            scores.append(score("r2", y[held_out], model.predict(X[held_out]), None))
        found.append((float(np.mean(scores)), alpha, c))
    cv_score, alpha, c = max(found)
    model = _path(adaptivity, alpha, c, seed).fit(X, y)
    selected = {"l1_ratio": alpha, "adaptive_penalty": c, "lam": model.best_params_["lam"]}
    seconds = time.process_time() - start
    return outcome(rows, model, rows.X_test, cv_score=cv_score, seconds=seconds, selected=selected)


def _path(adaptivity: str, alpha: float, c: float, seed: int) -> AdaptiveRegressorCV:
    return AdaptiveRegressorCV(
        adaptivity,
        l1_ratios=[alpha],
        adaptive_penalties=[c],
        cv=INNER_FOLDS,
        penalty_weights="authors",
        eps="glmnet",
        center=False,
        max_extrapolation=np.inf,
        random_state=seed,
    )


def nested_joint(rows: StudyRows, seed: int, *, kind: str, grid: Mapping[str, Any], protocol: str) -> Scores:
    """Tune a predictor, learning its imputed values in each cell and fold."""
    start = time.process_time()
    found = []
    for number, parameters in enumerate(_cells(kind, grid)):
        estimator = estimator_of(rows, seed, _predictor(rows, seed, kind, parameters), protocol)
        scores = held_out_scores(estimator, rows.X_train, rows.y_train, None, folds_of(rows, seed))
        found.append((float(np.mean(scores)), -number, parameters))
    cv_score, _, selected = max(found, key=lambda one: one[:2])
    model = estimator_of(rows, seed, _predictor(rows, seed, kind, selected), protocol).fit(rows.X_train, rows.y_train)
    seconds = time.process_time() - start
    return outcome(rows, model, rows.X_test, cv_score=cv_score, seconds=seconds, selected=selected)


def _cells(kind: str, grid: Mapping[str, Any]) -> list[dict[str, Any]]:
    """All combinations; the ridge of the linear predictor selects its penalty itself."""
    return [{}] if kind == "linear" else [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]


def _predictor(rows: StudyRows, seed: int, kind: str, parameters: dict[str, Any]) -> Any:
    if kind == "linear":
        return linear_predictor()
    return KINDS[kind].make(TrainingRows(rows.X_train, rows.y_train, None), parameters, seed)
