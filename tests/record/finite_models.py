"""Finite models of rows in memory, and joint imputation."""

from functools import partial
from typing import Any

from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.tree import DecisionTreeRegressor

from admiss import (
    FiniteClassifier,
    FiniteClassifierCV,
    FiniteRegressor,
    FiniteRegressorCV,
    JointImputeClassifier,
    JointImputeRegressor,
)
from admiss.joint import PaperSearch
from admiss.partition import BoxPartition, Greedy, OptimalTree, PatternGroups, SplitAssignTree
from tests.record.facts import Cases, Facts, facts_of
from tests.record.tables import TABLES

PARTITIONERS = {
    "greedy": Greedy(max_depth=2, min_rows=15),
    "tree": OptimalTree(max_depth=2, min_rows=15),
    "tree as a program": OptimalTree(max_depth=2, min_rows=15, method="mio"),
    "tree of three leaves": OptimalTree(max_depth=2, max_leaves=3, min_rows=15),
    "boxes": BoxPartition(max_depth=2, min_rows=15),
    "groups": PatternGroups(max_leaves=2, min_rows=15, time_limit=None),
}


def regression(table: str, partitioner: Any, **parameters: Any) -> Facts:
    """One fit of a regressor, with its leaves."""
    rows = TABLES[table]
    model = FiniteRegressor(partitioner, **parameters).fit(rows.X, rows.y, rows.s)
    return facts_of(model, rows.X_new, rows=model.leaf_rows_)


def classification(table: str, partitioner: Any, **parameters: Any) -> Facts:
    """One fit of a classifier, with its leaves."""
    rows = TABLES[table]
    model = FiniteClassifier(partitioner, **parameters).fit(rows.X, rows.labels, rows.s)
    return facts_of(model, rows.X_new, rows=model.leaf_rows_)


def search(table: str, partitioner: Any, labels: bool = False, **parameters: Any) -> Facts:
    """One cross-validation."""
    rows = TABLES[table]
    cells = {"max_depths": (1, 2), "ridges": (0.5, 10.0), "cv": 3, "random_state": 0}
    estimator = (FiniteClassifierCV if labels else FiniteRegressorCV)(partitioner, **cells | parameters)
    return facts_of(estimator.fit(rows.X, rows.labels if labels else rows.y, sample_weight=rows.s), rows.X_new)


def joint(table: str, model: Any, labels: bool = False) -> Facts:
    """One joint search, with the imputed values."""
    rows = TABLES[table]
    model.fit(rows.X, rows.labels if labels else rows.y, sample_weight=rows.s)
    return facts_of(model, rows.X_new, imputed=model.imputation_)


def cases() -> Cases:
    """All of them."""
    found: Cases = {}
    for name, partitioner in PARTITIONERS.items():
        for table in TABLES:
            if name in ("greedy", "tree", "boxes") or table in ("plain", "weighted"):
                found[f"finite, {table}, {name}"] = partial(regression, table, partitioner)
    for name in ("greedy", "tree", "boxes"):
        for leaf_model in ("affine_intercept", "static"):
            for ridge_scale in ("leaf", "sample"):
                title = f"finite, weighted, {name}, {leaf_model}, ridge by {ridge_scale}"
                parameters = {"leaf_model": leaf_model, "ridge_scale": ridge_scale, "ridge": 0.5}
                found[title] = partial(regression, "weighted", PARTITIONERS[name], **parameters)
        for loss in ("huber", "absolute", "quantile"):
            found[f"finite, plain, {name}, {loss}"] = partial(regression, "plain", PARTITIONERS[name], loss=loss)
        found[f"finite classifier, plain, {name}"] = partial(classification, "plain", PARTITIONERS[name])
        found[f"finite classifier, weighted, {name}"] = partial(classification, "weighted", PARTITIONERS[name])
    linear = {"ridge": 0, "loss": "absolute", "leaf_model": "static"}
    for table in ("plain", "weighted"):
        assigned = partial(regression, table, SplitAssignTree(max_depth=1, min_rows=15), **linear)
        found[f"finite, {table}, split and assign"] = assigned
    bare = {"center": False, "scale": False, "truncate": False}
    found["finite, plain, tree, as it is"] = partial(regression, "plain", PARTITIONERS["tree"], **bare)
    found["finite CV, plain, greedy"] = partial(search, "plain", Greedy())
    found["finite CV, weighted, tree"] = partial(search, "weighted", OptimalTree())
    found["finite CV, few patterns, tree"] = partial(search, "few patterns", OptimalTree(), max_leaves=(2, 4))
    found["finite classifier CV, plain, greedy"] = partial(search, "plain", None, labels=True, ridges=(10.0,))
    regressors = {
        "ridge, paper": lambda: JointImputeRegressor(Ridge(), "paper", random_state=0),
        "ridge, closed form": lambda: JointImputeRegressor(Ridge(), random_state=0),
        "ridge, shuffled": lambda: JointImputeRegressor(Ridge(), PaperSearch("shuffled"), random_state=0),
        "tree, paper": lambda: JointImputeRegressor(DecisionTreeRegressor(max_depth=3, random_state=0), "paper", 0),
    }
    for name, make in regressors.items():
        for table in ("plain", "weighted"):
            found[f"joint, {table}, {name}"] = lambda table=table, make=make: joint(table, make())
    logistic = partial(JointImputeClassifier, LogisticRegression(tol=1e-8))
    found["joint classifier, paper"] = lambda: joint("plain", logistic("paper", random_state=0), labels=True)
    found["joint classifier, auc"] = lambda: joint("plain", logistic("paper", "auc", 0), labels=True)
    found["joint classifier, closed form"] = lambda: joint("plain", logistic(random_state=0), labels=True)
    return found
