"""Programs of finite models in Pyomo agree with fits; once changed, with brute force and other solvers."""

import itertools
import shutil
import subprocess
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyomo.environ as pyo
import pytest

from admiss import FiniteClassifier, FiniteRegressor
from admiss.datasets import make_interacting
from admiss.partition import BoxPartition, Greedy, OptimalTree, PatternGroups
from formulations.trees.dynamic_program import leaves_of
from tests.admiss.partition.nasty import nasty, one_bad_box
from tests.admiss.partition.proof_checks import fitted

NAMES = ["income", "net income", "âge", "km/h"]


@pytest.fixture(scope="module")
def rows():
    return make_interacting(n=400, d=4, random_state=0)


@pytest.fixture
def table(rows):
    return pd.DataFrame(rows.X_train, columns=NAMES)


@pytest.fixture
def glpsol():
    if shutil.which("glpsol") is None:
        pytest.fail("glpsol is missing: install glpk-utils.")
    return "glpsol"


def tree(**limits):
    return FiniteRegressor(OptimalTree(**{"max_depth": 2, "min_rows": 15} | limits))


PARTITIONERS = {
    "tree": OptimalTree(max_depth=3, min_rows=15),
    "leaves": OptimalTree(max_depth=3, max_leaves=5, min_rows=15),
    "boxes": BoxPartition(max_depth=3, max_leaves=4, min_rows=15),
    "groups": PatternGroups(max_leaves=3, min_rows=15),
}


@pytest.mark.parametrize("name", PARTITIONERS)
@pytest.mark.parametrize("last_splits", ["all", "best"])
def test_program_and_fit_agree(name, last_splits, rows):
    X, y = rows.X_train[:, :3], rows.y_train
    weights = np.random.default_rng(0).choice([0.0, 0.5, 2.0], size=len(y))
    for estimator in (FiniteRegressor(PARTITIONERS[name]), FiniteRegressor(PARTITIONERS[name], loss="huber")):
        if name == "groups" and estimator.loss == "huber":
            continue
        program = estimator.program(X, y, sample_weight=weights, last_splits=last_splits)
        assert not hasattr(estimator, "n_features_in_")
        model, fit = program.solve(), estimator.fit(X, y, sample_weight=weights)
        assert model.certificate_.objective == pytest.approx(fit.certificate_.objective, rel=1e-9)
        assert model.certificate_.status == "solver's bound"
        assert fit.certificate_.bound * (1 - 1e-6) <= model.certificate_.bound <= model.certificate_.objective
        assert model.predict(rows.X_test[:, :3]) == pytest.approx(fit.predict(rows.X_test[:, :3]), rel=1e-8)
        assert model.partition_.certificate == model.certificate_
        assert pyo.value(program.model.objective) * pyo.value(program.model.unit) == pytest.approx(
            fit.certificate_.objective, rel=1e-8
        )


def test_classes_frames_and_features_that_are_never_missing(rows):
    X = rows.X_train.copy()
    X[:, 1] = np.where(np.isnan(X[:, 1]), 0.0, X[:, 1])
    labels = np.where(rows.y_train > 1, "high", np.where(rows.y_train < -1, "low", "middle"))
    for frame in (pd.DataFrame(X, columns=NAMES), pl.DataFrame(X, schema=NAMES)):
        estimator = FiniteClassifier(OptimalTree(max_depth=2, min_rows=20), leaf_model="static")
        program = estimator.program(frame, labels)
        assert "net income" not in program.model.FEATURES
        model, fit = program.solve(), estimator.fit(frame, labels)
        assert model.certificate_.objective == pytest.approx(fit.certificate_.objective, rel=1e-9)
        assert model.predict_proba(frame) == pytest.approx(fit.predict_proba(frame), abs=1e-8)
        assert list(model.feature_names_in_) == NAMES
    with pytest.raises(ValueError, match="different names"):
        tree().program(pd.DataFrame(X, columns=["a", "a", "b", "c"]), rows.y_train)
    with pytest.raises(ValueError, match="same name"):
        tree().program(pd.DataFrame(X, columns=["a", "b", "a observed, c", "c"]), rows.y_train)


@pytest.mark.parametrize("kind", ["tree", "boxes", "groups"])
def test_on_tables_made_to_break_it_the_bound_is_below_the_proven_optimum(kind):
    closed = 0
    for seed in range(12):
        for table in (one_bad_box(seed), nasty(seed, most_features=4, most_patterns=9)):
            fit = fitted(kind, table)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                program = fit.program(table.X, table.y, sample_weight=table.weights)
                one_leaf = FiniteRegressor(Greedy(max_leaves=1), **table.settings).fit(table.X, table.y, table.weights)
            model, proof = program.solve(), fit.certificate_
            found = model.certificate_
            noise = 1e-6 * proof.objective + 1e-9 * one_leaf.certificate_.objective
            assert found.bound <= proof.objective + noise
            assert proof.bound <= found.objective * (1 + 1e-12)
            if found.status == "solver's bound":
                closed += 1
                assert found.objective <= proof.objective + noise
    assert closed >= 12


def all_trees(names, depth):
    """Every tree over some features."""
    yield None
    for j in range(len(names)) if depth else ():
        below = list(all_trees(names, depth - 1))
        for observed, missing in itertools.product(below, below):
            yield j, observed, missing


def costs_of(program, names, depth):
    """The cost and the features of every tree that is a solution."""
    cost = program.model.cost

    def box(literals):
        held = dict(literals)
        words = [f"{names[j]} {'missing' if held[j] else 'observed'}" for j in sorted(held)]
        return ", ".join(words) or "all patterns"

    for each in all_trees(names, depth):
        leaves = leaves_of(each)
        if all(len(dict(leaf)) == len(leaf) for leaf in leaves) and all(box(leaf) in cost for leaf in leaves):
            yield sum(cost[box(leaf)].value for leaf in leaves), {j for leaf in leaves for j, _ in leaf}, len(leaves)


@pytest.mark.parametrize("solver", ["highs", "glpk"])
def test_features_cost_money_once_each(solver, table, rows, glpsol):
    price = {"income": 200.0, "net income": 90.0, "âge": 30.0, "km/h": 0.0}
    program = tree().program(table, rows.y_train)
    model = program.model
    model.use = pyo.Var(model.FEATURES, domain=pyo.Binary)
    model.pay = pyo.Constraint(model.SPLITS, rule=lambda m, B, j: m.split[B, j] <= m.use[j])
    money = pyo.quicksum(price[j] * model.use[j] for j in model.FEATURES)
    model.objective.set_value((model.training_cost + money) / model.unit)
    changed = program.solve(solver)
    known = list(costs_of(program, NAMES, 2))
    expected = min(cost + sum(price[NAMES[j]] for j in used) for cost, used, _ in known)
    assert changed.certificate_.objective == pytest.approx(expected, rel=1e-7)
    assert changed.certificate_.bound <= expected * (1 + 1e-9)
    assert changed.certificate_.status == "solver's bound"
    plain = tree().fit(table, rows.y_train)
    assert changed.leaf_costs_.sum() > plain.certificate_.objective * (1 + 1e-6)


def test_a_budget_of_features_and_of_leaves(table, rows):
    program = tree(max_depth=2).program(table, rows.y_train)
    model = program.model
    model.use = pyo.Var(model.FEATURES, domain=pyo.Binary)
    model.pay = pyo.Constraint(model.SPLITS, rule=lambda m, B, j: m.split[B, j] <= m.use[j])
    model.budget = pyo.Constraint(expr=pyo.quicksum(model.use.values()) <= 1)
    assert program.solve().n_leaves_ <= 2
    model.budget.set_value(pyo.quicksum(model.use.values()) <= 2)
    known = list(costs_of(program, NAMES, 2))
    for most in (4, 3, 2, 1):
        model.max_leaves = most
        expected = min(cost for cost, used, leaves in known if len(used) <= 2 and leaves <= most)
        assert program.solve().certificate_.objective == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("suffix", ["lp", "mps"])
def test_a_feature_may_not_split_in_three_solvers(suffix, table, rows, glpsol, tmp_path):
    program = tree(max_leaves=3).program(table, rows.y_train, integer=True)
    for B, j in program.model.SPLITS:
        if j == "income":
            program.model.split[B, j].fix(0)
    by_highs = program.solve()
    listed = FiniteRegressor(OptimalTree(max_depth=2, max_leaves=3, min_rows=15, split_features=NAMES[1:]))
    expected = listed.fit(table, rows.y_train).certificate_.objective
    assert by_highs.certificate_.objective == pytest.approx(expected, rel=1e-9)

    results = pyo.SolverFactory("glpk").solve(program.model)
    assert results.solver.termination_condition == "optimal"
    elsewhere = program.fitted()
    assert elsewhere.certificate_.objective == pytest.approx(expected, rel=1e-9)
    assert elsewhere.certificate_.bound == -np.inf
    assert elsewhere.certificate_.status == "solved elsewhere: no bound"
    assert elsewhere.predict(table) == pytest.approx(by_highs.predict(table))

    path = tmp_path / f"tree.{suffix}"
    program.write(path)
    text = path.read_text(encoding="ascii")
    assert "leaf(income_missing_net_income_observed)" in text
    option = "--lp" if suffix == "lp" else "--freemps"
    subprocess.run([glpsol, option, path, "-o", tmp_path / "out"], check=True, capture_output=True)
    line = next(line for line in (tmp_path / "out").read_text().splitlines() if line.startswith("Objective"))
    value = float(line.split("=")[1].split()[0]) * pyo.value(program.model.unit)
    assert value == pytest.approx(expected, rel=1e-7)


def test_names_in_files_are_distinct(rows, glpsol, tmp_path):
    frame = pd.DataFrame(rows.X_train[:, :3], columns=["a b", "a_b", "ä" + 300 * "x"])
    program = tree().program(frame, rows.y_train)
    program.write(tmp_path / "tree.lp")
    run = subprocess.run([glpsol, "--lp", tmp_path / "tree.lp"], check=True, capture_output=True, text=True)
    assert f"{len(program.model.leaf) + len(program.model.split)} columns" in run.stdout
    with pytest.raises(ValueError, match=r"\.lp or \.mps"):
        program.write(tmp_path / "tree.txt")


def test_another_objective(table, rows):
    program = tree().program(table, rows.y_train)
    best = tree().fit(table, rows.y_train)
    model = program.model
    model.near = pyo.Constraint(expr=model.training_cost <= 1.3 * best.certificate_.objective)
    model.objective.deactivate()
    model.fewest = pyo.Objective(expr=pyo.quicksum(model.leaf.values()))
    fewest = program.solve()
    known = list(costs_of(program, NAMES, 2))
    least = min(leaves for cost, _, leaves in known if cost <= 1.3 * best.certificate_.objective)
    assert fewest.n_leaves_ == least < best.n_leaves_
    assert fewest.certificate_.objective == pytest.approx(least)


def test_what_is_not_a_solution_is_refused(table, rows):
    program = tree().program(table, rows.y_train)
    with pytest.raises(ValueError, match="no values"):
        program.fitted()
    program.solve()
    program.model.impossible = pyo.Constraint(expr=pyo.quicksum(program.model.leaf.values()) >= 5)
    with pytest.raises(ValueError, match="violate 'impossible'"):
        program.fitted()
    for integer in (None, True):
        changed = tree().program(table, rows.y_train, integer=integer)
        changed.model.impossible = pyo.Constraint(expr=pyo.quicksum(changed.model.leaf.values()) >= 5)
        with pytest.raises(ValueError, match="contradict each other"):
            changed.solve()
    loose = tree().program(table, rows.y_train, integer=True)
    loose.model.flow.deactivate()
    with pytest.raises(ValueError, match="not a tree"):
        loose.solve()
    cover = FiniteRegressor(BoxPartition(max_depth=2, min_rows=15)).program(table, rows.y_train)
    cover.model.cover.deactivate()
    with pytest.raises(ValueError, match="not a partition"):
        cover.solve()
    with pytest.raises(ValueError, match="'nonsense'"):
        program.solve("nonsense")
    for partitioner in (None, Greedy()):
        with pytest.raises(ValueError, match="OptimalTree"):
            FiniteRegressor(partitioner).program(table, rows.y_train)
    with pytest.raises(ValueError, match="last_splits"):
        tree().program(table, rows.y_train, last_splits="none")
    with pytest.raises(ValueError, match="integer"):
        tree().program(table, rows.y_train, integer="yes")


def test_a_fractional_solution_names_the_option(table, rows):
    half = tree().program(table, rows.y_train, integer=False)
    model = half.model
    model.tie = pyo.Constraint(expr=pyo.quicksum(model.leaf.values()) == 2.5)
    with pytest.raises(ValueError, match="integer=True"):
        half.solve()
    default = tree().program(table, rows.y_train)
    default.model.most = pyo.Constraint(expr=default.model.leaf["all patterns"] >= 0.5)
    assert default.solve().n_leaves_ == 1
    assert default.model.leaf["all patterns"].is_binary()


def test_many_patterns_have_the_groups_of_column_generation():
    data = make_interacting(n=600, d=5, random_state=1)
    estimator = FiniteRegressor(PatternGroups(max_leaves=3, min_rows=20), ridge=0.1, ridge_scale="sample")
    with pytest.warns(UserWarning, match="heuristic"):
        program = estimator.program(data.X_train, data.y_train)
    model, fit = program.solve(), estimator.fit(data.X_train, data.y_train)
    assert len(program.model.PATTERNS) > 14
    assert model.certificate_.objective == pytest.approx(fit.certificate_.objective, rel=1e-9)
    assert model.certificate_.bound == -np.inf
    assert "heuristic" in model.certificate_.status


def test_no_time_and_too_many_boxes(table, rows):
    with pytest.raises(RuntimeError, match="time limit"):
        tree().program(table, rows.y_train).solve(time_limit=0)
    wide = np.random.default_rng(0).normal(size=(100, 60))
    wide[np.random.default_rng(1).random(wide.shape) < 0.3] = np.nan
    with pytest.raises(ValueError, match="too many"):
        tree(max_depth=4).program(wide, np.arange(100.0))


def test_one_objective_is_minimised(table, rows):
    program = tree(max_depth=2).program(table, rows.y_train)
    program.model.other = pyo.Objective(expr=program.model.training_cost)
    with pytest.raises(ValueError, match="one active objective, and has 2"):
        program.solve()
    program.model.objective.deactivate()
    assert program.solve().certificate_.objective > 0
    program.model.other.deactivate()
    with pytest.raises(ValueError, match="one active objective, and has 0"):
        program.solve()
    program.model.most = pyo.Objective(expr=program.model.training_cost, sense=pyo.maximize)
    with pytest.raises(ValueError, match="must be minimised"):
        program.solve()


@pytest.mark.parametrize("changed", ["added", "multiplied"])
def test_costs_of_leaves_may_be_changed(changed, table, rows):
    program = tree().program(table, rows.y_train)
    cost = program.model.cost
    before = {B: cost[B].value for B in cost}
    for B in cost:
        cost[B] = before[B] + 5000.0 if changed == "added" else 2.0 * before[B]
    expected = min(cost for cost, _, _ in costs_of(program, NAMES, 2))
    certificate = program.solve().certificate_
    assert certificate.status == "solver's bound"
    assert certificate.objective == pytest.approx(expected, rel=1e-6)
    assert certificate.bound <= expected * (1 + 1e-9)


def test_a_closed_gap_of_another_objective_has_the_status_of_one(table, rows):
    program = tree().program(table, rows.y_train)
    program.model.objective.deactivate()
    program.model.most = pyo.Objective(expr=-pyo.quicksum(program.model.leaf.values()))
    certificate = program.solve().certificate_
    assert certificate.gap <= certificate.tolerance
    assert certificate.status == "solver's bound"


def test_limits_of_time_and_failures_say_what_to_do(table, rows, glpsol):
    with pytest.raises(ValueError, match="at least 0, not -1"):
        tree().program(table, rows.y_train).solve(time_limit=-1)
    program = tree().program(table, rows.y_train)
    program.model.impossible = pyo.Constraint(expr=pyo.quicksum(program.model.leaf.values()) >= 50)
    with pytest.raises((RuntimeError, ValueError), match="contradict each other"):
        program.solve("glpk")
