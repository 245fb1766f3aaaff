"""Adaptive linear models of rows in memory."""

from functools import partial
from typing import Any

import numpy as np

from admiss import AdaptiveClassifier, AdaptiveClassifierCV, AdaptiveRegressor, AdaptiveRegressorCV, compare_classes
from admiss.adaptivity import BinnedAffine, ConditionalMean, FrequentPatterns, Polynomial
from tests.record.facts import Cases, Facts, facts_of, plain
from tests.record.tables import TABLES

CLASSES: dict[str, Any] = {
    "static": "static",
    "affine intercept": "affine_intercept",
    "affine": "affine",
    "polynomial": Polynomial(2),
    "fully adaptive": "fully_adaptive",
    "shared patterns": "shared_patterns",
    "conditional mean": "conditional_mean",
    "censored mean": ConditionalMean("censored"),
    "frequent patterns": FrequentPatterns(8),
    "binned": BinnedAffine(4),
    "missingness avoiding": "missingness_avoiding",
    "low rank": "low_rank_affine",
    "fused": "fused_patterns",
}
QUICK = ("static", "affine intercept", "affine", "fully adaptive")
LAWS = ("conditional mean", "censored mean")
PATHS = {"n_lambdas": 10, "cv": 3, "random_state": 0}
OPTIONS: dict[str, dict[str, Any]] = {
    "no centring or scaling": {"center": False, "scale": False, "adaptive_penalty": 1.0},
    "no intercept": {"fit_intercept": False},
    "weights of the authors": {"penalty_weights": "authors"},
    "stated program": {"solver": "cvxpy", "l1_ratio": 0.5},
    "adaptive penalty": {"adaptive_penalty": 0.1},
    "no extrapolation": {"max_extrapolation": 0.0},
    "large penalty": {"lam": 1e6},
    "small penalty": {"lam": 1e-6},
}


def regression(table: str, adaptivity: Any, **parameters: Any) -> Facts:
    """One fit of a regressor."""
    rows = TABLES[table]
    model = AdaptiveRegressor(adaptivity, **{"lam": 1.0} | parameters).fit(rows.X, rows.y, rows.s)
    return facts_of(model, rows.X_new)


def counts(loss: str, adaptivity: Any, search: bool = False, **parameters: Any) -> Facts:
    """One fit with a log link, of positive targets with exposure."""
    rows = TABLES["plain"]
    model = AdaptiveRegressorCV(adaptivity, **PATHS) if search else AdaptiveRegressor(adaptivity, lam=1.0)
    model.set_params(loss=loss, **parameters)
    exposure = 1.0 + np.arange(len(rows.y)) % 3
    return facts_of(model.fit(rows.X, np.exp(rows.y / np.std(rows.y)), rows.s, exposure=exposure), rows.X_new)


def classification(table: str, adaptivity: Any, three: bool = False, **parameters: Any) -> Facts:
    """One fit of a classifier."""
    rows = TABLES[table]
    labels = rows.three_labels if three else rows.labels
    return facts_of(AdaptiveClassifier(adaptivity, **parameters).fit(rows.X, labels, rows.s), rows.X_new)


def search(table: str, adaptivity: Any, labels: bool = False, **parameters: Any) -> Facts:
    """One cross-validation."""
    rows = TABLES[table]
    estimator = (AdaptiveClassifierCV if labels else AdaptiveRegressorCV)(adaptivity, **PATHS | parameters)
    return facts_of(estimator.fit(rows.X, rows.labels if labels else rows.y, sample_weight=rows.s), rows.X_new)


def classes_compared() -> Facts:
    """The table of ``compare_classes``."""
    rows = TABLES["plain"]
    table = compare_classes(rows.X, rows.y, cv=3, random_state=0, lams=(1.0, 10.0), sigma2=1.0, L=3.0)
    return {name: plain(column) for name, column in table.items() if name != "seconds"}


def cases() -> Cases:
    """All of them."""
    found: Cases = {"compare_classes": classes_compared}
    for table in TABLES:
        for name, adaptivity in CLASSES.items():
            if table == "plain" or name in QUICK:
                for l1_ratio in (0.0, 0.5, 1.0):
                    title = f"regressor, {table}, {name}, l1_ratio {l1_ratio}"
                    found[title] = partial(regression, table, adaptivity, l1_ratio=l1_ratio)
    for name in ("affine intercept", "affine", "fused"):
        for loss in ("huber", "absolute", "quantile"):
            for l1_ratio in (0.0, 0.5):
                title = f"regressor, plain, {name}, {loss}, l1_ratio {l1_ratio}"
                found[title] = partial(regression, "plain", CLASSES[name], loss=loss, l1_ratio=l1_ratio)
    for loss in ("poisson", "gamma", "tweedie"):
        for name in ("affine intercept", "affine", "fully adaptive"):
            for l1_ratio in (0.0, 0.5):
                title = f"regressor, plain, {name}, {loss}, l1_ratio {l1_ratio}"
                found[title] = partial(counts, loss, CLASSES[name], l1_ratio=l1_ratio)
        found[f"regressor CV, plain, affine intercept, {loss}"] = partial(counts, loss, "affine_intercept", search=True)
    found["regressor CV, plain, affine intercept, quantile"] = partial(
        search, "plain", "affine_intercept", loss="quantile"
    )
    for title, options in OPTIONS.items():
        found[f"regressor, plain, affine, {title}"] = partial(regression, "plain", "affine", **options)
    for name, adaptivity in CLASSES.items():
        for l1_ratio in (0.0, 0.5):
            title = f"classifier, weighted, {name}, l1_ratio {l1_ratio}"
            found[title] = partial(classification, "weighted", adaptivity, l1_ratio=l1_ratio)
    found["classifier, three labels"] = partial(classification, "plain", "affine_intercept", three=True)
    balanced = partial(classification, "plain", "affine", class_weight="balanced")
    found["classifier, balanced"] = balanced
    for table in ("plain", "weighted", "offset", "few patterns"):
        for name in ("affine intercept", "affine", "polynomial", "fully adaptive"):
            found[f"regressor CV, {table}, {name}"] = partial(search, table, CLASSES[name])
    for name in (*LAWS, "binned", "shared patterns"):
        found[f"regressor CV, plain, {name}"] = partial(search, "plain", CLASSES[name], l1_ratios=(0.0,))
    found["regressor CV, plain, auto"] = partial(search, "plain", "auto")
    found["classifier CV, plain, auto"] = partial(search, "plain", "auto", labels=True)
    for name in ("affine intercept", "affine"):
        found[f"classifier CV, weighted, {name}"] = partial(search, "weighted", CLASSES[name], labels=True)
    return found
