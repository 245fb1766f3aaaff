"""Impute, append indicators or not, and predict: the methods of the study.

A method is the pipeline of scikit-learn

    StandardScaler -> SimpleImputer or IterativeImputer (add_indicator) -> learner

on features in units of their observed standard deviation. Indicators are those of all features.

    mean        the mean of the observed values
    iterative   chained equations by ``BayesianRidge``, at most 10 sweeps (``IterativeImputer``)
    forest      chained equations by a random forest, as in missForest

    ridge       ``RidgeCV``, or ``RidgeClassifierCV`` for classes; the penalty by leave-one-out
    forest      a random forest of 100 trees, leaves of at least 3 rows, a third of the features at each split
    boosting    ``HistGradientBoosting`` with its defaults; it gets the imputed values, not the missing ones

The imputed values are the same with and without indicators and for all learners, and are computed once per instance.
The score is R2, or 2 AUC - 1 for classes. ``imputation_r2`` is that of the imputed values of the test rows, over all
features: 1 - sum (imputed - true)^2 / sum (true)^2 in standard units of the training rows, 0 for the mean.
"""

import time
import warnings
from typing import Any, NamedTuple

import numpy as np
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, SimpleImputer
from sklearn.linear_model import RidgeClassifierCV, RidgeCV
from sklearn.metrics import get_scorer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from admiss.study import Scores
from experiments.studies.methods.rows import StudyRows
from formulations.arrays import FloatArray

IMPUTERS = ("mean", "iterative", "forest")
LEARNERS = ("ridge", "forest", "boosting")
PENALTIES = np.logspace(-2, 4, 13)
FOREST = {"n_estimators": 100, "min_samples_leaf": 3, "max_features": 1 / 3}


def impute_and_predict(
    rows: StudyRows, seed: int, *, imputer: str, indicators: bool, learner: str, trees: int, sweeps: int
) -> Scores:
    """Score a learner on imputed features; ``trees`` and ``sweeps`` are those of the forest imputation."""
    key = (imputer, trees, sweeps)
    if key not in rows.cache:
        rows.cache[key] = _imputed(rows, make_imputer(imputer, seed, trees, sweeps))
    imputed = rows.cache[key]
    X_train, X_test = imputed.train, imputed.test
    if indicators:
        X_train, X_test = (
            np.hstack([X, np.isnan(original)]) for X, original in ((X_train, rows.X_train), (X_test, rows.X_test))
        )
    start = time.process_time()
    model = make_learner(learner, rows.task, seed).fit(X_train, rows.y_train)
    seconds = imputed.seconds + time.process_time() - start
    is_regression = rows.task == "regression"
    found = float(get_scorer("r2" if is_regression else "roc_auc")(model, X_test, rows.y_test))
    return {
        **rows.facts,
        "imputer": imputer,
        "indicators": indicators,
        "learner": learner,
        "score": found if is_regression else 2 * found - 1,
        "imputation_r2": imputed.r2,
        "seconds": seconds,
        "shared_seconds": imputed.seconds,
    }


def make_imputer(name: str, seed: int, trees: int, sweeps: int, *, add_indicator: bool = False) -> Any:
    """An imputer of features in standard units."""
    if name == "mean":
        return make_pipeline(StandardScaler(), SimpleImputer(add_indicator=add_indicator))
    forest = RandomForestRegressor(trees, min_samples_leaf=3, max_features="sqrt", random_state=seed)
    each = {"max_iter": sweeps, "estimator": forest} if name == "forest" else {}
    chained = IterativeImputer(random_state=seed, skip_complete=True, add_indicator=add_indicator, **each)
    return make_pipeline(StandardScaler(), chained)


def make_learner(name: str, task: str, seed: int) -> Any:
    """A regressor or a classifier."""
    is_regression = task == "regression"
    if name == "ridge":
        return (RidgeCV if is_regression else RidgeClassifierCV)(alphas=PENALTIES)
    if name == "forest":
        return (RandomForestRegressor if is_regression else RandomForestClassifier)(**FOREST, random_state=seed)
    return (HistGradientBoostingRegressor if is_regression else HistGradientBoostingClassifier)(random_state=seed)


class _Imputed(NamedTuple):
    """Imputed rows, the R2 of the imputed values of the test rows, and CPU seconds."""

    train: FloatArray
    test: FloatArray
    r2: float | None
    seconds: float


def _imputed(rows: StudyRows, imputer: Any) -> _Imputed:
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the number of sweeps is part of the method
        train, test = imputer.fit_transform(rows.X_train), imputer.transform(rows.X_test)
    seconds = time.process_time() - start
    is_missing = np.isnan(rows.X_test)
    truth = imputer[0].transform(rows.X_full_test)[is_missing]
    total = float(truth @ truth)
    r2 = 1 - float(np.sum((test[is_missing] - truth) ** 2)) / total if total else None
    return _Imputed(train, test, r2, seconds)
