"""Adaptive linear regression as methods of a study (Section 2 of the paper).

``text``      lambda_k = lambda / n_k, "no split" among the depths, leaves of at least 2 (d + 1) rows, predictions kept
              within the range seen in training.
``authors``   as in the authors' code: penalty weights from the share of zeros in a column; depths 1, 3, .., 15 without
              "no split", leaves of at least 10 rows, splits that gain at least 1 %, no truncation. Leaves are ridge
              regressions instead of elastic nets with alpha = 0.2.

In both, one cross-validation of 5 folds selects all parameters. Missing values are 0 in these models: with ``centre``,
the observed training means are subtracted first (once, not in each fold), which makes 0 the mean. The score in
cross-validation is minus the mean squared error, or log-loss, of all held-out rows.
"""

import time
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from sklearn.preprocessing import StandardScaler

from admiss import (
    AdaptiveClassifierCV,
    AdaptiveRegressorCV,
    FiniteClassifierCV,
    FiniteRegressor,
    FiniteRegressorCV,
)
from admiss.finite.base import LEAF_MODELS
from admiss.finite.cv import DEFAULT_RIDGES
from admiss.partition import Greedy
from admiss.study import Scores
from experiments.studies.methods.outcome import outcome
from experiments.studies.methods.rows import StudyRows
from formulations.arrays import FloatArray

AUTHORS_DEPTHS = (1, 3, 5, 7, 9, 11, 13, 15)


def adaptive(
    rows: StudyRows,
    seed: int,
    *,
    adaptivity: str,
    l1_ratios: Sequence[float] = (0.0, 0.5, 1.0),
    adaptive_penalties: Sequence[float] = (0.25, 1.0, 4.0),
    penalty_weights: str = "count",
    n_lambdas: int = 50,
    centre: bool = False,
) -> Scores:
    """Fit an adaptivity class with its penalty selected by cross-validation."""
    start = time.process_time()
    X_train, X_test = _features(rows, centre)
    search: Any = AdaptiveClassifierCV
    if rows.task == "regression":
        search = partial(AdaptiveRegressorCV, max_extrapolation=np.inf)
    model = search(
        adaptivity,
        l1_ratios=l1_ratios,
        adaptive_penalties=adaptive_penalties,
        penalty_weights=penalty_weights,
        n_lambdas=n_lambdas,
        eps="glmnet",
        center=False,
        stop_early=True,
        random_state=seed,
    ).fit(X_train, rows.y_train)
    seconds = time.process_time() - start
    selected = {name: value for name, value in model.best_params_.items() if name != "adaptivity"}
    return outcome(rows, model, X_test, cv_score=model.best_score_, seconds=seconds, selected=selected)


def _features(rows: StudyRows, centre: bool) -> tuple[FloatArray, FloatArray]:
    if not centre:
        return rows.X_train, rows.X_test
    scaler = StandardScaler(with_std=False).fit(rows.X_train)
    return scaler.transform(rows.X_train), scaler.transform(rows.X_test)


def finite(
    rows: StudyRows,
    seed: int,
    *,
    protocol: str = "text",
    ridges: Sequence[float] = DEFAULT_RIDGES,
    leaf_models: Sequence[str] = LEAF_MODELS,
    centre: bool = False,
) -> Scores:
    """Fit the finitely adaptive model with greedy splits; cross-validation selects depth, ridge and leaf model."""
    start = time.process_time()
    X_train, X_test = _features(rows, centre)
    search = FiniteRegressorCV if rows.task == "regression" else FiniteClassifierCV
    if protocol == "text":
        greedy = Greedy(min_rows=min(2 * (X_train.shape[1] + 1), len(X_train)))
        model = search(greedy, ridges=ridges, leaf_models=leaf_models, center=False, random_state=seed)
        model.fit(X_train, rows.y_train)
        results, row = model.cv_results_, model.best_index_
    else:
        model, results, row = _as_authors(X_train, rows.y_train, seed)
    seconds = time.process_time() - start
    selected = {name: results[name][row] for name in ("leaf_model", "max_depth", "ridge")}
    cv_score = -float(results["mean_loss"][row])
    found = {"depth": model.partition_.depth, "leaves": model.partition_.n_leaves}
    return {**outcome(rows, model, X_test, cv_score=cv_score, seconds=seconds, selected=selected), **found}


def _as_authors(X: FloatArray, y: FloatArray, seed: int) -> tuple[Any, Any, int]:
    """The model of the best depth with at least one split, the table of all depths, and its row there."""
    greedy = Greedy(min_rows=10, min_improvement=0.01)
    results = (
        FiniteRegressorCV(
            greedy,
            max_depths=AUTHORS_DEPTHS,
            leaf_models=("affine_intercept",),
            center=False,
            truncate=False,
            one_standard_error=False,
            random_state=seed,
        )
        .fit(X, y)
        .cv_results_
    )
    row = int(np.argmin(np.where(results["max_depth"] > 0, results["mean_loss"], np.inf)))
    model = FiniteRegressor(
        greedy.set_params(max_depth=int(results["max_depth"][row])),
        ridge=float(results["ridge"][row]),
        leaf_model="affine_intercept",
        center=False,
        scale=True,
        truncate=False,
    )
    return model.fit(X, y), results, row
