"""The default models of a stack, for regression and classification.

All of them handle missing values. Penalties are selected by cross-validation or leave-one-out within each fit; forest
and boosting have fixed, moderate parameters, since tuning them would cost more than everything else together. Affine
weights are left out if they have more than 300 coefficients, because they would then dominate the cost.
"""

from collections.abc import Sequence
from typing import Any

from sklearn.base import is_classifier
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

from admiss.laws.expected_ridge import ExpectedFeaturesClassifier, ExpectedFeaturesRegressor
from admiss.linear.cv import AdaptiveClassifierCV, AdaptiveRegressorCV, few_affine_columns

CANDIDATES = (
    "affine_intercept",
    "affine",
    "conditional_mean",
    "conditional_mean_censored",
    "expected_features",
    "expected_features_censored",
    "forest",
    "boosting",
)
FOREST = {"n_estimators": 100, "min_samples_leaf": 3, "max_features": 0.5}
BOOSTING = {
    "n_estimators": 100, "max_depth": 3, "learning_rate": 0.05, "subsample": 0.8, "min_child_weight": 3,
    "colsample_bytree": 0.7, "n_jobs": 1,
}  # fmt: skip
# The stack centres features itself.
PATHS = {"l1_ratios": (0.0, 0.5), "n_lambdas": 50, "eps": "auto", "center": False, "stop_early": True}


def candidate(name: str, task: str) -> Any:
    """Estimator of a given name.

    Examples
    --------
    >>> candidate("expected_features", "regression")
    ExpectedFeaturesRegressor()
    """
    classes = task == "classification"
    if name in ("affine_intercept", "affine"):
        search: Any = AdaptiveClassifierCV if classes else AdaptiveRegressorCV
        return search(name, **PATHS)
    if name == "forest":
        return (RandomForestClassifier if classes else RandomForestRegressor)(**FOREST)
    if name == "boosting":
        from xgboost import XGBClassifier, XGBRegressor  # slow to import

        return (XGBClassifier if classes else XGBRegressor)(**BOOSTING)
    expected: Any = ExpectedFeaturesClassifier if classes else ExpectedFeaturesRegressor
    model = expected(law="censored" if name.endswith("censored") else "gaussian")
    return model.set_params(n_random=0) if name.startswith("conditional_mean") else model


def default_candidates(d: int, missable: int) -> list[str]:
    """Names of the default candidates for d features, ``missable`` of which have missing values.

    Examples
    --------
    >>> "affine" in default_candidates(10, 10), "affine" in default_candidates(200, 20)
    (True, False)
    """
    small = few_affine_columns(d, missable)
    return [name for name in CANDIDATES if small or name != "affine"]


def read_candidates(candidates: Any, task: str) -> list[tuple[str, Any]]:
    """Names and estimators of the candidates that a user listed."""
    if isinstance(candidates, str) or not isinstance(candidates, Sequence) or not len(candidates):
        raise ValueError(f"candidates must be 'auto' or a list of names and (name, estimator), not {candidates!r}.")
    read = [_read_one(item, task) for item in candidates]
    names = [name for name, _ in read]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise ValueError(f"Candidates must have different names, and {', '.join(repeated)} occurs more than once.")
    return read


def _read_one(item: Any, task: str) -> tuple[str, Any]:
    if isinstance(item, str):
        if item not in CANDIDATES:
            raise ValueError(f"Unknown candidate {item!r}: choose one of {', '.join(map(repr, CANDIDATES))}.")
        return item, candidate(item, task)
    if not isinstance(item, tuple) or len(item) != 2 or not hasattr(item[1], "fit"):
        raise ValueError(f"A candidate is a known name or a pair (name, estimator), not {item!r}.")
    name, estimator = item
    if is_classifier(estimator) != (task == "classification"):
        raise ValueError(f"The candidate {name!r} is not for {task}.")
    if task == "classification" and not hasattr(estimator, "predict_proba"):
        raise ValueError(f"The candidate {name!r} has no predict_proba.")
    return str(name), estimator
