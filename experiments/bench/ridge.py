"""Searches in which ridge branches (alpha = 0) matter, beside scikit-learn's searches on the same rows.

* ``AdaptiveRegressorCV("affine_intercept")`` on 150 x 300, against LassoCV on imputed means;
* ``AdaptiveClassifierCV()`` on 600 x 29, against LogisticRegressionCV, and the ridge branch of affine weights alone;
* ``JointImputeClassifier()`` on 300 x 300, with values missing at random and with large values missing.

All times are CPU seconds of one thread after a first fit that compiles, the minimum of a few.
"""

import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LassoCV, LogisticRegressionCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from admiss import AdaptiveClassifierCV, AdaptiveRegressorCV, JointImputeClassifier
from experiments.bench.records import footer, measured, table, timed
from formulations.arrays import FloatArray


def run(folder: Path, *, quick: bool = False) -> str:
    """Run the missing measurements, and return the report."""
    share = 5 if quick else 1
    measures = {"wide regression": wide_regression, "classes": classes, "joint": joint}
    records = measured(folder, {name: partial(measure, share) for name, measure in measures.items()})
    rows = [
        [name, what, f"{seconds:.2f}"]
        for name, record in records.items()
        for what, seconds in record.items()
        if what != "memory"
    ]
    return table(["workload", "model", "seconds"], rows, f"CPU seconds of one thread, least of 3; {footer()}")


def wide_regression(share: int) -> dict[str, Any]:
    """150 rows of 300 features, a tenth of the values missing."""
    rng = np.random.default_rng(2000)
    X = rng.normal(size=(150, 300 // share))
    y = 2.0 * X[:, 0] + X[:, 1] + rng.normal(size=150)
    X = np.where(rng.random(X.shape) < 0.1, np.nan, X)
    lasso = make_pipeline(SimpleImputer(), StandardScaler(), LassoCV(random_state=0))
    return {
        "AdaptiveRegressorCV, affine intercept": _seconds(
            partial(AdaptiveRegressorCV, "affine_intercept", random_state=0), X, y
        ),
        "LassoCV": _seconds(lambda: lasso, X, y),
    }


def classes(share: int) -> dict[str, Any]:
    """600 rows of 29 features in natural units with heavy tails, of which eight or all are sometimes missing."""
    rng = np.random.default_rng(2000)
    n, d = 600 // share, 29
    X = rng.standard_t(3, size=(n, d)) * 10.0 ** rng.integers(-2, 3, size=d)
    y = X[:, 0] / np.std(X[:, 0]) + X[:, 9] / np.std(X[:, 9]) + rng.normal(size=n) > 1.0
    missing = rng.random(X.shape) < 0.25
    some, everywhere = np.where(missing & (np.arange(d) < 8), np.nan, X), np.where(missing, np.nan, X)
    peer = make_pipeline(SimpleImputer(), StandardScaler(), LogisticRegressionCV(max_iter=1000))
    ridge = partial(AdaptiveClassifierCV, "affine", l1_ratios=(0.0,), random_state=0)
    return {
        "AdaptiveClassifierCV": _seconds(partial(AdaptiveClassifierCV, random_state=0), some, y),
        "AdaptiveClassifierCV, all features missing": _seconds(
            partial(AdaptiveClassifierCV, random_state=0), everywhere, y
        ),
        "AdaptiveClassifierCV, affine, ridge, all features missing": _seconds(ridge, everywhere, y),
        "LogisticRegressionCV": _seconds(lambda: peer, some, y),
    }


def joint(share: int) -> dict[str, Any]:
    """300 rows of 300 features, a fifth of the values missing."""
    rng = np.random.default_rng(2000)
    X = rng.normal(size=(300, 300 // share))
    y = X[:, 0] + X[:, 1] + rng.normal(size=300) > 0
    at_random = np.where(rng.random(X.shape) < 0.2, np.nan, X)
    large = np.where(X > 0.8, np.nan, X)
    model = partial(JointImputeClassifier, random_state=0)
    return {
        "JointImputeClassifier, missing at random": _seconds(model, at_random, y),
        "JointImputeClassifier, large values missing": _seconds(model, large, y),
    }


def _seconds(model: Callable[[], Any], X: FloatArray, y: Any) -> float:
    """Least CPU seconds of a fit, after one to a few rows that compiles."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about features never missing in a fold, and steps of the peers
        model().fit(X[:60, :5], y[:60])
        return min(timed(partial(model().fit, X, y))[0] for _ in range(3))
