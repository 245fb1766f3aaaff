"""Splits that the limits forbid are never costed; a single leaf costs no more than its fit."""

import time

import numpy as np
import pytest

from admiss import FiniteClassifier, FiniteRegressor
from admiss.partition import BoxPartition, Greedy, OptimalTree, PatternGroups
from formulations.leaves.any_loss import ProgramLeafCost
from formulations.leaves.cost import LeafCost
from formulations.leaves.logistic import LogisticLeafCost
from formulations.leaves.squared import SquaredLeafCost
from formulations.losses import Absolute
from tests.formulations.leaves.test_cost import make_pattern_rows

COSTS = {
    "squared": lambda rows: SquaredLeafCost(rows, 1.0),
    "absolute": lambda rows: ProgramLeafCost(rows, Absolute(), 1.0),
    "logistic": lambda rows: LogisticLeafCost(rows, 1.0),
}


@pytest.fixture
def costed(monkeypatch):
    """Sets of patterns whose cost was computed, by any way but their fit."""
    seen = []

    def spy(kind, name):
        original = getattr(kind, name)

        def record(self, members, *rest):
            seen.append(np.asarray(members))
            return original(self, members, *rest)

        monkeypatch.setattr(kind, name, record)

    for kind, name in [(LeafCost, "fit"), (SquaredLeafCost, "cost"), (LeafCost, "best_split")]:
        spy(kind, name)
    return seen


@pytest.mark.parametrize("loss", COSTS)
@pytest.mark.parametrize("limits", [{"max_leaves": 1}, {"min_rows": 41}], ids=str)
def test_greedy_fits_one_leaf_and_nothing_else(loss, limits, costed, monkeypatch):
    rows = make_pattern_rows(n=80, d=4, classes=loss == "logistic")
    monkeypatch.setattr(SquaredLeafCost, "grams", property(lambda self: pytest.fail("Gram matrices were computed")))
    partition = Greedy(**limits).partition(rows, COSTS[loss](rows))
    assert partition.n_leaves == 1
    assert {len(members) for members in costed} == {len(rows.patterns)}


@pytest.mark.parametrize("loss", COSTS)
def test_greedy_costs_only_sides_with_enough_rows(loss, monkeypatch):
    rows, least, counted = make_pattern_rows(n=60, d=4, classes=loss == "logistic"), 20, []
    leaf_cost, original = COSTS[loss](rows), LeafCost.fit
    monkeypatch.setattr(LeafCost, "fit", lambda self, members: counted.append(members) or original(self, members))
    partition = Greedy(max_depth=4, min_rows=least).partition(rows, leaf_cost)
    assert min(rows.counts[partition.members(leaf)].sum() for leaf in range(partition.n_leaves)) >= least
    assert min(rows.counts[members].sum() for members in counted) >= least
    free = Greedy(max_depth=4, min_rows=1).partition(rows, COSTS[loss](rows))
    assert free.certificate.objective <= partition.certificate.objective


def test_forbidden_splits_are_not_factored(monkeypatch):
    rows = make_pattern_rows(n=80, d=4)
    leaf_cost, everything = SquaredLeafCost(rows, 1.0), np.arange(len(rows.patterns))
    missing = rows.counts @ rows.patterns
    least = int(np.sort(np.minimum(missing, 80 - missing))[2])
    factored = []
    original = SquaredLeafCost.costs_of_grams
    monkeypatch.setattr(SquaredLeafCost, "costs_of_grams", lambda self, G: factored.append(len(G)) or original(self, G))
    split = leaf_cost.best_split(everything, np.arange(4), least)
    allowed = np.minimum(missing, 80 - missing) >= least
    assert sum(factored) == 2 * allowed.sum()
    assert allowed[split.feature]


@pytest.mark.parametrize("memory", [1, 10**9])
def test_splits_are_costed_in_parts_that_fit_into_memory(memory, monkeypatch):
    rows = make_pattern_rows(n=80, d=4)
    whole = SquaredLeafCost(rows, 1.0).best_split(np.arange(len(rows.patterns)), np.arange(4), 1)
    monkeypatch.setattr("formulations.leaves.squared.MOST_GRAMS", memory)
    parts = SquaredLeafCost(rows, 1.0).best_split(np.arange(len(rows.patterns)), np.arange(4), 1)
    assert whole == parts


@pytest.mark.parametrize("partitioner", [OptimalTree(2), BoxPartition(2), PatternGroups()], ids=str)
def test_one_leaf_is_proven_without_a_search(partitioner, make_rows):
    X, y = make_rows(n=40, d=4)
    model = FiniteRegressor(partitioner.set_params(max_leaves=1)).fit(X, y)
    greedy = FiniteRegressor(Greedy(max_leaves=1)).fit(X, y)
    assert model.certificate_.status == "optimal"
    assert model.certificate_.solver == "one leaf"
    assert model.certificate_.objective == greedy.certificate_.objective
    assert np.array_equal(model.predict(X), greedy.predict(X))


@pytest.mark.slow
@pytest.mark.parametrize("classes", [False, True])
def test_wide_tables_take_one_fit(classes):
    rng = np.random.default_rng(0)
    X = np.where(rng.random((112, 300)) < 0.2, np.nan, rng.normal(size=(112, 300)))
    y = np.nansum(X[:, :5], axis=1) + rng.normal(size=112)
    model = FiniteClassifier(Greedy(max_leaves=1)) if classes else FiniteRegressor(Greedy(max_leaves=1))
    y = y > 0 if classes else y
    model.fit(X[:30, :3], y[:30])
    start = time.perf_counter()
    model.fit(X, y)
    assert time.perf_counter() - start < 60.0
