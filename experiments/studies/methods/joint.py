"""Joint impute-then-regress as methods of a study (Section 3.2 of the paper).

The predictor is tuned after mean imputation, and its imputed values are then learned with the selected parameters; 5
folds of the whole search give its score in cross-validation. The linear predictor is a ridge regression whose penalty
is selected at each fit; linear predictors elsewhere are elastic nets.

``text``      Algorithm 2 of the paper
``authors``   as in the authors' code: means and steps of training and test rows together, coordinates in random order
``auto``      the closed form of admiss, used if cross-validation prefers it to the mean
"""

import json
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from admiss.estimator.cross_validation import make_folds
from admiss.joint import ImputationSearch, JointImputeClassifier, JointImputeRegressor, PaperSearch
from admiss.joint.cv import held_out_scores
from admiss.study import Scores
from experiments.studies.methods.outcome import outcome
from experiments.studies.methods.rows import StudyRows
from experiments.studies.methods.tuned import FOLDS, fitted

PENALTIES = np.logspace(-3, 4, 15)


def joint(
    rows: StudyRows,
    seed: int,
    *,
    kind: str,
    grid: Mapping[str, Any],
    protocol: str = "text",
    trees: int | None = None,
) -> Scores:
    """Fit a predictor together with its imputed values; ``trees`` as in ``tuned``."""
    predictor, selected, before = _tuned_predictor(rows, seed, kind, grid)
    start = time.process_time()
    estimator = estimator_of(rows, seed, predictor, protocol)
    cv_score = float(np.mean(held_out_scores(estimator, rows.X_train, rows.y_train, None, folds_of(rows, seed))))
    if trees is not None:
        estimator, selected = estimator.set_params(estimator__n_estimators=trees), {**selected, "n_estimators": trees}
    model = estimator.fit(rows.X_train, rows.y_train)
    seconds = before + time.process_time() - start
    found = {
        "mu": json.dumps([round(float(mu), 6) for mu in model.imputation_]),
        "moves": sum(len(round.moves) for round in model.history_),
        "note": model.note_,
    }
    return {**outcome(rows, model, rows.X_test, cv_score=cv_score, seconds=seconds, selected=selected), **found}


def _tuned_predictor(
    rows: StudyRows, seed: int, kind: str, grid: Mapping[str, Any]
) -> tuple[Any, dict[str, Any], float]:
    """The predictor with the best parameters after mean imputation, these parameters, and the CPU seconds."""
    if kind != "linear":
        model, _, seconds = fitted(rows, seed, imputer="mean", kind=kind, grid=grid)
        return clone(model.best_estimator_["predictor"]), model.best_params_, seconds
    if rows.task == "regression":
        return linear_predictor(), {}, 0.0
    start = time.process_time()
    logistic = [("scale", StandardScaler()), ("predictor", LogisticRegression(max_iter=1000))]
    search = GridSearchCV(
        Pipeline([("mean", SimpleImputer(keep_empty_features=True)), *logistic]),
        {"predictor__C": (1 / PENALTIES[2:11]).tolist()},
        scoring="neg_log_loss",
        cv=folds_of(rows, seed),
    ).fit(rows.X_train, rows.y_train)
    selected = {"C": search.best_params_["predictor__C"]}
    predictor = Pipeline(logistic).set_params(predictor__C=selected["C"])
    return predictor, selected, time.process_time() - start


def linear_predictor() -> Any:
    """A ridge regression that selects its penalty."""
    return make_pipeline(StandardScaler(), RidgeCV(PENALTIES))


def estimator_of(rows: StudyRows, seed: int, predictor: Any, protocol: str) -> Any:
    """The unfitted joint estimator of a predictor."""
    algorithms: dict[str, str | ImputationSearch] = {
        "text": "paper",
        "auto": "auto",
        "authors": PaperSearch(variant="authors", reference=np.vstack([rows.X_train, rows.X_test])),
    }
    if protocol not in algorithms:
        raise ValueError(f"Unknown protocol {protocol!r}: choose one of {', '.join(algorithms)}.")
    estimator = JointImputeRegressor if rows.task == "regression" else JointImputeClassifier
    return estimator(predictor, algorithm=algorithms[protocol], random_state=seed)


def folds_of(rows: StudyRows, seed: int) -> list[Any]:
    """Training and held-out rows of each fold."""
    labels = None if rows.task == "regression" else np.unique(rows.y_train, return_inverse=True)[1]
    return make_folds(rows.X_train, rows.y_train, labels, np.ones(len(rows.y_train)), FOLDS, seed)
