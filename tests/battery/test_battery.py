"""No default is a trap: on tables in natural units, with offsets, heavy tails, few rows, rare classes and so on, no
estimator with its defaults is more than .03 of R2 or AUC below mean imputation with indicators and a linear model.

Scores are means over seeds that no default was chosen on.
"""

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from admiss import AdaptiveClassifier, AdaptiveRegressor, AdaptiveRegressorCV, FiniteClassifierCV, FiniteRegressorCV
from admiss.compare.setting import Setting
from admiss.datasets import load_dataset
from admiss.finite.cv import DEFAULT_RIDGES
from admiss.finite.estimators import FiniteClassifier, FiniteRegressor
from admiss.tables import read_table
from tests.battery.models import FIXED, REFERENCES, SEARCHED, reference_of
from tests.battery.scores import WITHIN, score
from tests.battery.tables import TABLES, Table, customers

SEEDS = (300, 301, 302, 303, 304)
# Affine weights of 150 and more columns, and cross-validation of as many, take minutes.
WIDE = ("wide", "one_hot", "one_hot_classes")
QUICK = ("offsets", "constants_and_copies", "indicators_alone", "noise_only", "two_classes")
# Tables on which cross-validated models are fitted in the slow tier; in the exhaustive one they are fitted on all.
HARD = ("offsets", "tiny_target", "heavy_tails", "few_rows", "indicators_alone", "censored", "rarely_measured",
        "noise_only", "few_rows_of_classes", "rare_class")  # fmt: skip


@cache
def mean_score(kind: str, label: str, table: str, seeds: tuple[int, ...]) -> float:
    """Mean of the scores of an estimator, or of one of the references of a kind."""
    drawn = {seed: TABLES[table](seed) for seed in seeds}
    task = drawn[seeds[0]].task
    models = REFERENCES[kind, task][int(label)] if kind in ("static", "fixed", "searched") else None
    model = models or (FIXED[task] | SEARCHED[task])[label]
    return float(np.mean([score(model, t, seed) for seed, t in drawn.items()]))


def check(table: str, labels: tuple[str, ...], seeds: tuple[int, ...] = SEEDS) -> None:
    task = TABLES[table](seeds[0]).task
    below = {}
    for label in labels:
        kind = reference_of(label)
        best = max(mean_score(kind, str(k), table, seeds) for k in range(len(REFERENCES[kind, task])))
        found = mean_score("estimator", label, table, seeds)
        if not found >= best - WITHIN:
            below[label] = f"{found:.3f}, and the reference has {best:.3f}"
    assert not below


@pytest.mark.parametrize("table", QUICK)
def test_fixed_penalties_on_some_tables(table):
    check(table, tuple(FIXED["regression"]), SEEDS[:2])


@pytest.mark.parametrize("table", ["offsets", "indicators_alone"])
def test_searched_penalties_on_some_tables(table):
    check(table, ("adaptive CV", "finite CV", "expected features"), SEEDS[:1])


@pytest.mark.slow
@pytest.mark.parametrize("table", [name for name in TABLES if name not in WIDE])
def test_fixed_penalties(table):
    check(table, tuple(FIXED["regression"]))


@pytest.mark.slow
@pytest.mark.parametrize("table", WIDE)
def test_fixed_penalties_on_wide_tables(table):
    check(table, ("static", "affine_intercept", "finite"))


@pytest.mark.slow
@pytest.mark.parametrize("table", HARD)
def test_searched_penalties(table):
    check(table, ("adaptive CV", "finite CV", "expected features"))


@pytest.mark.exhaustive
@pytest.mark.parametrize("table", [name for name in TABLES if name not in HARD])
def test_searched_penalties_on_the_other_tables(table):
    check(table, ("adaptive CV", "finite CV", "expected features"))


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
