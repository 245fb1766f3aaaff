"""No default is a trap: on tables in natural units, with offsets, heavy tails, few rows, rare classes and so on, no
estimator with its defaults is more than .03 of R2 or AUC below mean imputation with indicators and a linear model.

A reference imputes means, adds an indicator of missing values per column, brings all columns to the same scale, and
fits a linear model: with a fixed penalty (``Ridge(1.0)``, ``LogisticRegression()``), or with one that is selected by
cross-validation. Of several grids for that selection the better one counts. Static weights do not depend on the pattern
by definition: their reference has no indicators. Scores are means over seeds that no default was chosen on.

Every row is predicted by a model of the other four folds. R2 is that of all rows together, since a fold of six rows has
none of its own to speak of; AUC (with several classes the mean over each class against the rest) is the mean over the
folds, which are stratified by class.
"""

import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV, Ridge, RidgeCV
from sklearn.metrics import r2_score, roc_auc_score
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from admiss import AdaptiveClassifier, AdaptiveRegressor, AdaptiveRegressorCV, FiniteClassifierCV, FiniteRegressorCV
from admiss.compare.setting import Setting
from admiss.datasets import load_dataset
from admiss.finite.cv import DEFAULT_RIDGES
from admiss.finite.estimators import FiniteClassifier, FiniteRegressor
from admiss.tables import read_table
from tests.properties.default_tables import TABLES, Table, customers
from tests.properties.table import FIXED_PENALTY, SEARCHED_PENALTY

FOLDS = 5
WITHIN = 0.03
SEEDS = (300, 301, 302, 303, 304)
# Affine weights of 150 and more columns, and cross-validation of as many, take minutes.
WIDE = ("wide", "one_hot", "one_hot_classes")
QUICK = ("offsets", "constants_and_copies", "indicators_alone", "noise_only", "two_classes")
# Tables on which cross-validated models are fitted in the slow tier; in the exhaustive one they are fitted on all.
HARD = ("offsets", "tiny_target", "heavy_tails", "few_rows", "indicators_alone", "censored", "rarely_measured",
        "noise_only", "few_rows_of_classes", "rare_class")  # fmt: skip
SEARCHES = ("adaptive CV", "finite CV", "expected features")

PENALTIES = np.logspace(-3, 3, 13)
LOGISTIC = {"max_iter": 1000, "l1_ratios": (0.0,), "use_legacy_attributes": False}


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


def score(model: Any, table: Table, seed: int) -> float:
    """The score of a model on a table, on folds of a seed."""
    classes = table.task == "classification"
    folds = (StratifiedKFold if classes else KFold)(FOLDS, shuffle=True, random_state=seed)
    held_out, found = np.empty(len(table.y)), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # all-missing columns, and references that stop before they converge
        for train, test in folds.split(table.X, table.y):
            fitted = _fit(model, table, train)
            if classes:
                found.append(_auc(table.y[test], fitted, table.X[test], _some(table.weights, test)))
            else:
                held_out[test] = fitted.predict(table.X[test])
    return float(np.mean(found) if classes else r2_score(table.y, held_out, sample_weight=table.weights))


def _fit(model: Any, table: Table, rows: np.ndarray) -> Any:
    model, weights = clone(model), _some(table.weights, rows)
    if weights is None:
        return model.fit(table.X[rows], table.y[rows])
    if isinstance(model, Pipeline):
        parameters = {f"{name}__sample_weight": weights for name in list(model.named_steps)[1:]}
        return model.fit(table.X[rows], table.y[rows], **parameters)
    return model.fit(table.X[rows], table.y[rows], sample_weight=weights)


def _auc(y: np.ndarray, fitted: Any, X: np.ndarray, weights: np.ndarray | None) -> float:
    p = fitted.predict_proba(X)
    columns = [1] if p.shape[1] == 2 else range(p.shape[1])
    return float(np.mean([roc_auc_score(y == fitted.classes_[k], p[:, k], sample_weight=weights) for k in columns]))


def _some(weights: np.ndarray | None, rows: np.ndarray) -> np.ndarray | None:
    return None if weights is None else weights[rows]


@cache
def mean_score(kind: str, label: str, table: str, seeds: tuple[int, ...]) -> float:
    """Mean of the scores of an estimator, or of one of the references of a kind."""
    drawn = {seed: TABLES[table](seed) for seed in seeds}
    task = drawn[seeds[0]].task
    estimators = FIXED_PENALTY[task] | SEARCHED_PENALTY[task]
    model = estimators[label] if kind == "estimator" else REFERENCES[kind, task][int(label)]
    return float(np.mean([score(model, t, seed) for seed, t in drawn.items()]))


def check(table: str, labels: tuple[str, ...], seeds: tuple[int, ...] = SEEDS) -> None:
    task = TABLES[table](seeds[0]).task
    below = {}
    for label in labels:
        kind = "static" if label == "static" else "fixed" if label in FIXED_PENALTY[task] else "searched"
        best = max(mean_score(kind, str(k), table, seeds) for k in range(len(REFERENCES[kind, task])))
        found = mean_score("estimator", label, table, seeds)
        if not found >= best - WITHIN:
            below[label] = f"{found:.3f}, and the reference has {best:.3f}"
    assert not below


@pytest.mark.parametrize("table", QUICK)
def test_fixed_penalties_on_some_tables(table):
    check(table, tuple(FIXED_PENALTY["regression"]), SEEDS[:2])


@pytest.mark.parametrize("table", ["offsets", "indicators_alone"])
def test_searched_penalties_on_some_tables(table):
    check(table, SEARCHES, SEEDS[:1])


@pytest.mark.slow
@pytest.mark.parametrize("table", [name for name in TABLES if name not in WIDE])
def test_fixed_penalties(table):
    check(table, tuple(FIXED_PENALTY["regression"]))


@pytest.mark.slow
@pytest.mark.parametrize("table", WIDE)
def test_fixed_penalties_on_wide_tables(table):
    check(table, ("static", "affine_intercept", "finite"))


@pytest.mark.slow
@pytest.mark.parametrize("table", HARD)
def test_searched_penalties(table):
    check(table, SEARCHES)


@pytest.mark.exhaustive
@pytest.mark.parametrize("table", [name for name in TABLES if name not in HARD])
def test_searched_penalties_on_the_other_tables(table):
    check(table, SEARCHES)


@pytest.mark.exhaustive
@pytest.mark.parametrize("table", WIDE)
def test_affine_weights_on_wide_tables(table):
    check(table, ("affine",))


@pytest.mark.exhaustive
@pytest.mark.parametrize("table", [name for name in TABLES if name not in WIDE])
def test_stacks(table):
    check(table, ("stack",))


@pytest.mark.slow
@pytest.mark.parametrize(("target", "models"), [
    ("y", {"fixed": AdaptiveRegressor(), "searched": FiniteRegressorCV(random_state=0)}),
    ("churn", {"fixed": AdaptiveClassifier(), "searched": FiniteClassifierCV(random_state=0)}),
])  # fmt: skip
def test_customers_as_compare_reads_them(tmp_path: Path, target, models):
    """A file with a year, an income, '?' and 'NA', a constant, an ID, a date and a zip code."""
    path = tmp_path / "customers.csv"
    customers(7, target).to_csv(path, index=False)
    read = read_table(path, target)
    table = Table(read.X, read.y, read.task)
    expected = max(score(reference, table, 7) for reference in REFERENCES["searched", read.task])
    for name, model in models.items():
        assert score(model, table, 7) > expected - 0.02, name


@pytest.mark.data
def test_ridge_paths_end_far_enough_down():
    data = load_dataset("auto-mpg")
    table = Table(np.asarray(data.X), np.asarray(data.y))
    reference = score(REFERENCES["searched", "regression"][1], table, 0)
    found = score(AdaptiveRegressorCV(l1_ratios=[0.0], random_state=0), table, 0)
    by_glmnet = score(AdaptiveRegressorCV(l1_ratios=[0.0], eps="glmnet", random_state=0), table, 0)
    assert found > reference - 0.005 > by_glmnet + 0.02


def test_the_defaults_of_leaves_are_the_same_by_every_door():
    setting, defaults = Setting(), FiniteRegressor().get_params(deep=False)
    for name in ("ridge", "leaf_model", "ridge_scale", "center", "scale"):
        assert defaults[name] == FiniteClassifier().get_params(deep=False)[name] == getattr(setting, name), name
    for search in (FiniteRegressorCV(), FiniteClassifierCV()):
        assert defaults["ridge"] in search.ridges
        assert defaults["leaf_model"] in search.leaf_models
    assert defaults["ridge"] in DEFAULT_RIDGES
    greedy = Setting().estimator("greedy")
    assert greedy.partitioner.get_params() == FiniteRegressor()._check_parameters()[0].get_params()
