"""Models beyond the paper as methods of a study.

The cell of a stack also has the scores of its candidates on the same test rows, each fitted to all training rows:
``hindsight`` is the best of these, which cannot be known beforehand.
"""

import time
from types import SimpleNamespace
from typing import Any

import numpy as np

from admiss import AdaptiveStackClassifier, AdaptiveStackRegressor
from admiss.stack.candidates import candidate, default_candidates
from admiss.study import Scores
from experiments.studies.methods.outcome import outcome
from experiments.studies.methods.rows import StudyRows
from formulations.arrays import FloatArray


def stack(rows: StudyRows, seed: int, *, candidates: str | list[str], shrinkage: float) -> Scores:
    """An ``AdaptiveStackRegressor`` or ``AdaptiveStackClassifier``."""
    start = time.process_time()
    estimator = AdaptiveStackRegressor if _task(rows) == "regression" else AdaptiveStackClassifier
    names = _default_names(rows) if candidates == "auto" else candidates
    models = [(name, _candidate(name, _task(rows))) for name in names]
    model = estimator(models, shrinkage, random_state=seed).fit(rows.X_train, rows.y_train)
    seconds = time.process_time() - start
    weights = dict(zip(model.weights_["candidate"].tolist(), model.weights_["weight"].tolist(), strict=True))
    scores = outcome(rows, model, rows.X_test, cv_score=-model.error_, seconds=seconds, selected=weights)
    predictions = model.candidate_predictions(rows.X_test)
    alone = {name: _alone(rows, found) for name, found in predictions.items()}
    found = {f"score of {name}": score for name, score in alone.items()}
    return {**scores, **found, "hindsight": max(alone.values()), "best_candidate": max(alone, key=alone.__getitem__)}


def _alone(rows: StudyRows, predictions: FloatArray) -> float:
    """The score of predictions of the test rows."""
    fixed = SimpleNamespace(
        predict=lambda _: predictions, predict_proba=lambda _: predictions, classes_=np.unique(rows.y_train)
    )
    return float(outcome(rows, fixed, rows.X_test, cv_score=0.0, seconds=0.0, selected={})["score"])


def single(rows: StudyRows, seed: int, *, name: str) -> Scores:
    """A candidate on its own."""
    model = _candidate(name, _task(rows))
    start = time.process_time()
    model.set_params(random_state=seed).fit(rows.X_train, rows.y_train)
    seconds = time.process_time() - start
    return outcome(rows, model, rows.X_test, cv_score=-model.error_, seconds=seconds, selected={})


def _default_names(rows: StudyRows) -> list[str]:
    return default_candidates(rows.X_train.shape[1], int(np.isnan(rows.X_train).any(axis=0).sum()))


def _candidate(name: str, task: str) -> Any:
    """A candidate of this study: its paths of penalties end where those of glmnet do."""
    model = candidate(name, task)
    return model.set_params(eps="glmnet") if name in ("affine_intercept", "affine") else model


def _task(rows: StudyRows) -> str:
    return "regression" if rows.task == "regression" else "classification"
