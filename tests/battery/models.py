"""Every estimator with its defaults, and the pipelines of scikit-learn that no default may be far below.

A reference imputes means, adds an indicator of missing values per column, brings all columns to the same scale, and
fits a linear model: with a fixed penalty (``Ridge(1.0)``, ``LogisticRegression()``), or with one that is selected by
cross-validation. Of several grids for that selection the better one counts. Static weights do not depend on the pattern
by definition: their reference has no indicators.

Left out, with reasons: fully adaptive weights, one model per pattern, and polynomial ones, whose number grows with the
square of the features, need many rows per pattern, which these tables do not have; ``JointImputeRegressor`` fits
whatever predictor it is given, without a penalty by default; the tuned baselines of the paper want an imputer first.
"""

from typing import Any

import numpy as np
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV, Ridge, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from admiss import (
    AdaptiveClassifier,
    AdaptiveClassifierCV,
    AdaptiveRegressor,
    AdaptiveRegressorCV,
    AdaptiveStackClassifier,
    AdaptiveStackRegressor,
    ExpectedFeaturesClassifier,
    ExpectedFeaturesRegressor,
    FiniteClassifier,
    FiniteClassifierCV,
    FiniteRegressor,
    FiniteRegressorCV,
)

SEED = {"random_state": 0}
PENALTIES = np.logspace(-3, 3, 13)
LOGISTIC = {"max_iter": 1000, "l1_ratios": (0.0,), "use_legacy_attributes": False}

FIXED: dict[str, dict[str, Any]] = {
    "regression": {
        "static": AdaptiveRegressor("static"),
        "affine_intercept": AdaptiveRegressor(),
        "affine": AdaptiveRegressor("affine"),
        "finite": FiniteRegressor(),
    },
    "classification": {
        "static": AdaptiveClassifier("static"),
        "affine_intercept": AdaptiveClassifier(),
        "affine": AdaptiveClassifier("affine"),
        "finite": FiniteClassifier(),
    },
}
SEARCHED: dict[str, dict[str, Any]] = {
    "regression": {
        "adaptive CV": AdaptiveRegressorCV(**SEED),
        "finite CV": FiniteRegressorCV(**SEED),
        "expected features": ExpectedFeaturesRegressor(**SEED),
        "stack": AdaptiveStackRegressor(**SEED),
    },
    "classification": {
        "adaptive CV": AdaptiveClassifierCV(**SEED),
        "finite CV": FiniteClassifierCV(**SEED),
        "expected features": ExpectedFeaturesClassifier(**SEED),
        "stack": AdaptiveStackClassifier(**SEED),
    },
}


def _imputed(model: Any, indicators: bool = True) -> Any:
    return make_pipeline(SimpleImputer(add_indicator=indicators), StandardScaler(), model)


REFERENCES: dict[tuple[str, str], list[Any]] = {
    ("static", "regression"): [_imputed(Ridge(1.0), indicators=False)],
    ("static", "classification"): [_imputed(LogisticRegression(max_iter=1000), indicators=False)],
    ("fixed", "regression"): [_imputed(Ridge(1.0))],
    ("fixed", "classification"): [_imputed(LogisticRegression(max_iter=1000))],
    ("searched", "regression"): [_imputed(RidgeCV()), _imputed(RidgeCV(PENALTIES))],
    ("searched", "classification"): [
        _imputed(LogisticRegressionCV(scoring="accuracy", **LOGISTIC)),
        _imputed(LogisticRegressionCV(scoring="neg_log_loss", **LOGISTIC)),
    ],
}


def reference_of(label: str) -> str:
    """Which references an estimator is compared with."""
    return "static" if label == "static" else "fixed" if label in FIXED["regression"] else "searched"
