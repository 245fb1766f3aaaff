"""Augmentation, expected features, intervals, stacks, baselines, reliance, bounds, verification."""

from functools import partial
from typing import Any

import numpy as np
from sklearn.impute import SimpleImputer

from admiss import (
    AdaptiveClassifier,
    AdaptiveRegressor,
    AdaptiveRegressorCV,
    AdaptiveStackClassifier,
    AdaptiveStackRegressor,
    DeletionAugmentedClassifier,
    DeletionAugmentedRegressor,
    ExpectedFeatures,
    ExpectedFeaturesClassifier,
    ExpectedFeaturesRegressor,
    FiniteRegressor,
    PatternConformalClassifier,
    PatternConformalRegressor,
    bounds,
    reliance,
    verify,
)
from admiss.baselines import BASELINES, ChainedEquations, CompleteFeatures, TunedClassifier, TunedRegressor, baseline
from admiss.partition import BoxPartition, Greedy, OptimalTree, PatternGroups
from tests.record.facts import Cases, Facts, facts_of, plain
from tests.record.tables import TABLES

CV = {"cv": 3, "random_state": 0}
MEMBERS = ["conditional_mean", ("affine", AdaptiveRegressorCV("affine", n_lambdas=5, **CV))]
SMALL = {"max_depth": 2, "min_rows": 15}
CLASSES: tuple[Any, ...] = ("static", "affine_intercept", "affine", ("polynomial", 2), "fully_adaptive")


def fitted(model: Any, labels: bool = False, table: str = "plain") -> Facts:
    """One fit."""
    rows = TABLES[table]
    return facts_of(model.fit(rows.X, rows.labels if labels else rows.y), rows.X_new)


def intervals(model: Any, labels: bool = False) -> Facts:
    """Intervals or sets of labels."""
    rows = TABLES["few patterns"]
    model.fit(rows.X, rows.labels if labels else rows.y)
    found = model.predict_set(rows.X_new) if labels else model.predict_interval(rows.X_new)
    return facts_of(model, rows.X_new, intervals=found[1])


def relied(model: Any) -> Facts:
    """The reliance of a model on missing values."""
    rows = TABLES["plain"]
    return {"reliance": reliance(model.fit(rows.X, rows.y), rows.X_new)}


def verified(model: Any) -> Facts:
    """What is checked of a certificate."""
    rows = TABLES["plain"]
    found = verify(model.fit(rows.X, rows.y), rows.X, rows.y)
    return {"verdict": str(found).splitlines()[0]}


def bound_of(adaptivity: Any, **settings: Any) -> Facts:
    """A bound of the theorem, with its parts."""
    found = bounds.generalization_bound(bounds.BoundSetting(4, 1.0, 3.0, **settings), 1000, adaptivity)
    return {"bias": found.bias, "estimation": found.estimation, "total": found.total, "p": found.p}


def bounds_of_data() -> Facts:
    """Estimates and recommendations from rows."""
    rows = TABLES["few patterns"]
    models = {"static": AdaptiveRegressor("static"), "affine": AdaptiveRegressor("affine")}
    half = len(rows.y) // 2
    fits = {name: model.fit(rows.X[:half], rows.y[:half]) for name, model in models.items()}
    cap = bounds.cap_from_training(models, rows.X[:half], rows.y[:half], cv=3)
    certificate = bounds.risk_certificate(fits, rows.X[half:], rows.y[half:], cap=cap)
    return {
        "noise": bounds.estimate_noise(rows.X, rows.y, random_state=0).value,
        "bias": bounds.estimate_bias(rows.X, rows.y, "static", cv=3, random_state=0).value,
        "range": bounds.estimate_range(rows.y).value,
        "ranking": [str(entry.name) for entry in bounds.recommend_from_data(rows.X, rows.y).ranking],
        "cap": cap,
        "risks": [risk.bound for risk in certificate.risks],
    }


def bounds_of_moments() -> Facts:
    """Biases from moments, gains and crossovers."""
    moments = np.zeros(4), 0.5 * np.eye(4) + 0.5
    return {
        "biases": [bounds.moment_bias(name, moments, missing=0.3, beta=np.ones(4)).value for name in CLASSES],
        "gain": bounds.moment_gain("static", "affine", moments, missing=0.3, beta=np.ones(4)),
        "crossover": bounds.crossover(bounds.BoundSetting(4, 1.0, 3.0, missing=0.01), "static", "affine"),
        "ranking": [entry.name for entry in bounds.recommend(bounds.BoundSetting(4, 1.0, 3.0), 1000).ranking],
        "counts": [bounds.coefficient_count(name, 4) for name in CLASSES],
    }


def cases() -> Cases:
    """All of them."""
    linear, labelled = AdaptiveRegressor(lam=0.5), AdaptiveClassifier(lam=0.5)
    found: Cases = {"bounds, data": bounds_of_data, "bounds, moments": bounds_of_moments}
    estimators = {
        "augmented": DeletionAugmentedRegressor(linear, random_state=0),
        "augmented, copies": DeletionAugmentedRegressor(linear, (0.1, 0.5), 2, 0.3, 0),
        "augmented, laws": DeletionAugmentedRegressor(AdaptiveRegressor("conditional_mean"), copies=2, random_state=0),
        "expected features": ExpectedFeatures(8, random_state=0),
        "expected features, censored": ExpectedFeatures(0, law="censored"),
        "expected regressor": ExpectedFeaturesRegressor(8, random_state=0),
        "expected regressor, folds": ExpectedFeaturesRegressor(0, **CV),
        "expected regressor, relu": ExpectedFeaturesRegressor(8, expected_relu=True, random_state=0),
        "stack": AdaptiveStackRegressor(MEMBERS, **CV),
        "chained equations": ChainedEquations(random_state=0),
        "complete features": CompleteFeatures(),
        "tuned linear": TunedRegressor("linear", SimpleImputer(), {"l1_ratio": [0.5], "lam": [0.1, 1.0]}, **CV),
        "tuned tree": TunedRegressor("tree", None, {"max_depth": [2, 4]}, **CV),
        "tuned forest": TunedRegressor("forest", None, {"n_estimators": [5], "max_depth": [2, None]}, **CV),
        "tuned boosting": TunedRegressor("xgboost", None, {"n_estimators": [5], "max_depth": [2]}, **CV),
    }
    for name, model in estimators.items():
        found[name] = partial(fitted, model)
    classifiers = {
        "augmented classifier": DeletionAugmentedClassifier(labelled, copies=2, random_state=0),
        "expected classifier": ExpectedFeaturesClassifier(8, random_state=0),
        "stack classifier": AdaptiveStackClassifier(["conditional_mean"], **CV),
        "tuned logistic": TunedClassifier("linear", SimpleImputer(), {"l1_ratio": [0.5], "lam": [0.1, 1.0]}, **CV),
        "tuned tree, labels": TunedClassifier("tree", None, {"max_depth": [2, 4]}, **CV),
    }
    for name, model in classifiers.items():
        found[name] = partial(fitted, model, labels=True)
    grid = {"max_depth": [2, 3]}
    for name in BASELINES:
        model = baseline(name) if name == "floor" else baseline(name, "tree", grid=grid, **CV)
        found[f"baseline, {name}"] = partial(fitted, model)
    quantiles = AdaptiveRegressor(loss="quantile")
    conformal = partial(PatternConformalRegressor, linear, random_state=0)
    for name, model in {
        "absolute": conformal(),
        "by count": conformal(basis="count"),
        "scaled": conformal(conformity_score="scaled"),
        "quantile": PatternConformalRegressor(quantiles, 0.8, conformity_score="quantile", random_state=0),
    }.items():
        found[f"intervals, {name}"] = partial(intervals, model)
    found["intervals, labels"] = partial(intervals, PatternConformalClassifier(labelled, random_state=0), labels=True)
    finite = {
        "greedy": Greedy(**SMALL),
        "tree": OptimalTree(**SMALL),
        "boxes": BoxPartition(**SMALL),
        "groups": PatternGroups(2, min_rows=15),
    }
    checked: dict[str, Any] = {name: FiniteRegressor(partitioner) for name, partitioner in finite.items()}
    for name in ("static", "affine"):
        checked |= {f"{name}, l1_ratio {ratio}": AdaptiveRegressor(name, l1_ratio=ratio) for ratio in (0.0, 1.0)}
        checked[f"{name}, huber"] = AdaptiveRegressor(name, loss="huber")
    for name, model in checked.items():
        found[f"reliance, {name}"] = partial(relied, model)
        found[f"verify, {name}"] = partial(verified, model)
    for adaptivity in CLASSES:
        for settings in ({}, {"bias": "paper", "constant": "paper", "count": "table"}, {"missing": 0.1}):
            title = f"bound, {plain(adaptivity)}, {', '.join(settings) or 'default'}"
            found[title] = partial(bound_of, adaptivity, **settings)
    return found
