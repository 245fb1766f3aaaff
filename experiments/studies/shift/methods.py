"""Adaptive models and others, trained on the rows as they are, or also on rows with further deletions.

    static, affine intercept, affine    the class, with its ridge selected by cross-validation
    fused, shared                       deviations of patterns from their neighbours (its penalty fixed: a search would
                                        take minutes), or from one shared model
    finite exact, finite greedy         a tree over patterns of depth up to 3, the best one or a greedy one
    conditional mean                    a linear model of the expected values under a normal law of the features
    stack                               affine intercept, affine, conditional mean and boosting (XGBoost)
    joint                               imputation by learned constants and a ridge
    mean + forest, boosting             mean imputation before a random forest; HistGradientBoosting, 50 rounds
    CVaR, worst deletions               robust static models, see ``robust``; never augmented

``augmented`` puts the same estimator into ``DeletionAugmentedRegressor`` with its defaults.

Scores are R2 of test rows: of all (``score``); of those that lack a feature, for the feature with the lowest R2
(``worst_feature``); and of those whose pattern does not occur in training (``unseen``). The variance is that of the
same rows. Groups of fewer than 30 rows do not count.
"""

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from admiss import (
    AdaptiveRegressor,
    AdaptiveRegressorCV,
    AdaptiveStackRegressor,
    DeletionAugmentedRegressor,
    ExpectedFeaturesRegressor,
    FiniteRegressorCV,
    JointImputeRegressor,
)
from admiss.adaptivity import FusedPatterns, SharedPatterns
from admiss.estimator.validation import seeded
from admiss.partition import Greedy, OptimalTree
from admiss.patterns import PatternTable, lookup
from admiss.study import Scores
from experiments.studies.methods.rows import StudyRows
from experiments.studies.shift.robust import RobustStatic
from formulations.arrays import BoolArray, FloatArray

FEWEST = 30
PENALTIES = np.logspace(-3, 4, 15)
PATHS = {"l1_ratios": (0.0,), "n_lambdas": 30, "stop_early": True}
DEPTHS, RIDGES = (0, 1, 2, 3), (0.1, 1.0, 10.0, 100.0)


def _class(name: Any, **options: Any) -> Any:
    return AdaptiveRegressorCV(name, **{**PATHS, **options})


def _candidates() -> list[Any]:
    return [
        ("affine intercept", _class("affine_intercept")),
        ("affine", _class("affine")),
        "conditional_mean",
        "boosting",
    ]


def _finite(partitioner: Any, d: int) -> Any:
    limits = {"min_rows": 2 * (d + 1)}
    return FiniteRegressorCV(partitioner(**limits), max_depths=DEPTHS, ridges=RIDGES, leaf_models=("affine_intercept",))


ESTIMATORS: dict[str, Callable[[int], Any]] = {
    "static": lambda d: _class("static"),
    "affine intercept": lambda d: _class("affine_intercept"),
    "affine": lambda d: _class("affine"),
    "fused": lambda d: AdaptiveRegressor(FusedPatterns()),
    "shared": lambda d: _class(SharedPatterns(min_rows=5), l1_ratios=(1.0,)),
    "finite exact": lambda d: _finite(OptimalTree, d),
    "finite greedy": lambda d: _finite(Greedy, d),
    "conditional mean": lambda d: ExpectedFeaturesRegressor(0, cv=5),
    "stack": lambda d: AdaptiveStackRegressor(_candidates(), cv=3),
    "joint": lambda d: JointImputeRegressor(make_pipeline(StandardScaler(), RidgeCV(PENALTIES))),
    "mean + forest": lambda d: make_pipeline(SimpleImputer(), RandomForestRegressor(100, min_samples_leaf=3)),
    "boosting": lambda d: HistGradientBoostingRegressor(max_iter=50),
    "CVaR 50 %": lambda d: RobustStatic(level=0.5),
    "CVaR 90 %": lambda d: RobustStatic(level=0.9),
    "worst deletion": lambda d: RobustStatic(deletions=1),
    "worst two deletions": lambda d: RobustStatic(deletions=2),
}
ROBUST = tuple(name for name in ESTIMATORS if name.startswith(("CVaR", "worst")))
COSTLY = ("boosting", "stack")
FUSED = ("fused",)
CHEAP = tuple(name for name in ESTIMATORS if name not in (*ROBUST, *COSTLY, *FUSED))


def predict(rows: StudyRows, seed: int, *, estimator: str, augmented: bool) -> Scores:
    """Fit an estimator, and score it on groups of test rows."""
    model = ESTIMATORS[estimator](rows.X_train.shape[1])
    seed = seed % 2**31
    model = DeletionAugmentedRegressor(model, random_state=seed) if augmented else seeded(model, seed)
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # features that are never missing in training disappear in test rows
        predicted = model.fit(rows.X_train, rows.y_train).predict(rows.X_test)
    seconds = time.process_time() - start
    return {**rows.facts, **group_scores(rows, predicted), "seconds": seconds}


def group_scores(rows: StudyRows, predicted: FloatArray) -> dict[str, Any]:
    """R2 of all test rows, of the feature with the lowest, and of unseen patterns."""
    M = np.isnan(rows.X_test)
    unseen = lookup(PatternTable.of(np.isnan(rows.X_train)).patterns, M) < 0
    by_feature = [r2(rows.y_test, predicted, missing) for missing in M.T]
    known = [value for value in by_feature if value is not None]
    return {
        "score": r2(rows.y_test, predicted, np.ones(len(M), dtype=bool)),
        "worst_feature": min(known) if known else None,
        "unseen": r2(rows.y_test, predicted, unseen),
        "unseen_share": float(unseen.mean()),
    }


def r2(y: FloatArray, predicted: FloatArray, group: BoolArray) -> float | None:
    """R2 of a group of rows, None if it is too small or its target constant.

    Examples
    --------
    >>> y = np.arange(40.0)
    >>> r2(y, y + 1, y >= 0), r2(y, y + 1, y > 20)
    (0.9924953095684803, None)
    """
    if group.sum() < FEWEST or np.ptp(y[group]) == 0:
        return None
    errors = float(np.mean((y - predicted)[group] ** 2))
    return 1 - errors / float(np.var(y[group]))
