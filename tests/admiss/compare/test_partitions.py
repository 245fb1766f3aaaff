"""Comparisons in Python: classes, references, curves, time limits, interrupts, and the sentences about them."""

import json
import signal
import time
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import t as student
from sklearn.metrics import log_loss, r2_score, roc_auc_score

import admiss.partition.optimal_tree
from admiss import FiniteClassifier, FiniteRegressor
from admiss.compare.comparison import INTERVALS
from admiss.compare.page import write_page
from admiss.compare.partitions import Run, TimeBudget, compare_partitions
from admiss.compare.scores import LINEAR, SCORES, reference, reference_names
from admiss.compare.setting import METHODS, Setting
from admiss.datasets import make_interacting, make_synthetic
from admiss.estimator.cross_validation import make_folds
from admiss.partition import Greedy, OptimalTree, Partition, Partitioner
from admiss.plots import plot_comparison
from formulations.certificate import Certificate

DATA = make_interacting(n=400, d=4, n_test=300, random_state=0)
FAST = Setting(max_depth=2, folds=3)


def labels(y, n_classes):
    return np.array([f"class {c}" for c in np.digitize(y, np.linspace(-2, 2, n_classes - 1))])


def by_method(comparison):
    return {row["method"]: row for row in comparison.to_dict()["methods"]}


@pytest.mark.slow
def test_every_method_by_name():
    data = make_interacting(n=80, d=4, n_test=200, random_state=0)
    setting = Setting(max_depth=2, max_leaves=3, folds=0, min_rows=15, references=False)
    methods = tuple(name for name in METHODS if name != "split-assign")
    compared = compare_partitions(
        data.X_train, data.y_train, data.X_test, data.y_test, methods=methods, setting=setting
    )
    cost = dict(zip(compared.table["method"], compared.table["cost"], strict=True))
    assert cost["groups"] <= cost["boxes"] <= cost["tree"] <= cost["greedy"] <= cost["none"]
    assert cost["tree-mio"] == pytest.approx(cost["tree"], rel=1e-9)
    assert "cv_R2" not in compared.table
    absolute = Setting(max_depth=2, max_leaves=3, folds=0, min_rows=15, loss="absolute", ridge=0.0, references=False)
    textbook = compare_partitions(
        data.X_train, data.y_train, methods=("greedy", "tree", "split-assign"), setting=absolute
    ).table
    assert textbook["cost"][2] == pytest.approx(textbook["cost"][1], rel=1e-6)
    assert "test_R2" not in textbook


class ByCount(Partitioner):
    """Leaves by the number of missing values; the last leaf takes the rest."""

    def partition(self, statistics, leaf_cost, feature_names=None):
        limits = self.limits(statistics, feature_names)
        count = statistics.patterns.sum(axis=1)
        leaf = np.unique(np.minimum(count, count.min() + limits.leaves - 1), return_inverse=True)[1]
        cost = sum(leaf_cost.cost(np.flatnonzero(leaf == q)) for q in range(leaf.max() + 1))
        proof = Certificate(cost, -np.inf, "heuristic", "ByCount", "1.0", 0.0)
        return Partition(statistics.patterns, statistics.weights, leaf, proof)


def test_partitioners_are_compared_with_named_methods(tmp_path):
    mine, small = ByCount(max_leaves=2), OptimalTree(max_depth=1)
    methods = ["tree", "greedy", mine, small]
    rows = (DATA.X_train, DATA.y_train, DATA.X_test, DATA.y_test)
    compared = compare_partitions(*rows, methods=methods, setting=FAST, verify=True)
    by_name = by_method(compared)
    assert list(by_name)[:4] == ["tree", "greedy", "ByCount(max_leaves=2)", "OptimalTree(max_depth=1)"]
    for partitioner in (mine, small):
        alone = FiniteRegressor(partitioner).fit(*rows[:2])
        row = by_name[repr(partitioner)]
        assert (row["leaves"], row["cost"]) == (alone.n_leaves_, alone.certificate_.objective)
        assert row["test_R2"] == pytest.approx(r2_score(DATA.y_test, alone.predict(DATA.X_test)))
        assert np.isfinite(row["cv_R2"])
    assert by_name[repr(mine)]["above_bound_percent"] is None
    # the optimum of smaller trees is proven for these only
    assert by_name[repr(small)]["status"] == by_name["tree"]["status"] == "optimal"
    assert by_name[repr(small)]["bound"] > by_name["tree"]["cost"]
    assert by_name["tree"]["above_bound_percent"] < 1e-6
    assert by_name["greedy"]["above_bound_percent"] == pytest.approx(
        100 * (by_name["greedy"]["cost"] / by_name["tree"]["bound"] - 1), abs=1e-9
    )
    written = json.loads(json.dumps(compared.to_dict()))
    assert written["setting"]["own"] == [repr(mine), repr(small)]
    write_page([compared], tmp_path / "page.html")
    assert "ByCount(max_leaves=2)" in (tmp_path / "page.html").read_text()
    plot_comparison([compared], tmp_path / "trees.png")


def test_one_method_needs_no_list_and_time_limits_are_those_of_the_comparison():
    setting = Setting(max_depth=2, folds=0, references=False, time_limit=50.0)
    for method in ("tree", OptimalTree(max_depth=2)):
        assert len(compare_partitions(DATA.X_train, DATA.y_train, methods=method, setting=setting).models) == 1
    own, (name,) = setting.naming(OptimalTree(time_limit=30.0))
    assert [own.partitioner(name, seconds).time_limit for seconds in (None, 20.0, 40.0)] == [30.0, 20.0, 30.0]
    assert own.partitioner(name).time_limit == 30.0
    with pytest.raises(
        ValueError, match=r"Unknown method <class .*Greedy'>: choose among none, .*or give a partitioner"
    ):
        compare_partitions(DATA.X_train, DATA.y_train, methods=[Greedy], setting=setting)


def test_partitioners_of_two_classes_need_two_names():
    other = type("Greedy", (Greedy,), {})
    with pytest.raises(ValueError, match=r"both Greedy\(max_leaves=2\): rename"):
        compare_partitions(DATA.X_train, DATA.y_train, methods=[Greedy(max_leaves=2), other(max_leaves=2)])
    assert Setting().naming([Greedy(), Greedy()])[1] == ("Greedy()",)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_classes(n_classes):
    y, y_test = labels(DATA.y_train, n_classes), labels(DATA.y_test, n_classes)
    methods = ("none", "greedy", "tree", "boxes")
    compared = compare_partitions(DATA.X_train, y, DATA.X_test, y_test, methods=methods, setting=FAST)
    assert compared.setting.task == "classification"
    assert compared.setting.loss == "logistic"
    assert "class 0" in compared.description
    rows = by_method(compared)
    assert list(rows) == [*methods, *reference_names("classification")]
    assert rows["boxes"]["cost"] <= rows["tree"]["cost"] * (1 + 1e-9) <= rows["greedy"]["cost"] * (1 + 2e-9)
    assert rows["tree"]["status"] == "optimal"
    assert not any(name.endswith("R2") for name in compared.table)
    for name, row in rows.items():
        assert all(np.isfinite(row[f"{kind}_{score}"]) for kind in ("cv", "test") for score in SCORES["classification"])
        assert (row["cost"] is None) == (name in compared.references)
    model = FiniteClassifier(Greedy(max_depth=2)).fit(DATA.X_train, y)
    P = model.predict_proba(DATA.X_test)
    assert rows["greedy"]["test_log_loss"] == pytest.approx(log_loss(y_test, P), rel=1e-12)
    area = roc_auc_score(y_test, P[:, 1]) if n_classes == 2 else roc_auc_score(y_test, P, multi_class="ovr")
    assert rows["greedy"]["test_AUC"] == pytest.approx(area, rel=1e-12)
    assert rows["greedy"]["test_accuracy"] == model.score(DATA.X_test, y_test)
    json.dumps(compared.to_dict(), allow_nan=False)


def test_classes_that_some_folds_or_test_rows_do_not_have():
    y, y_test = labels(DATA.y_train, 3).astype(object), labels(DATA.y_test, 3).astype(object)
    y[0], y[1:3], y_test[0], y_test[1] = "once", "twice", "never seen", "once"
    compared = compare_partitions(DATA.X_train, y, DATA.X_test, y_test, setting=FAST)
    scores = [name for name in compared.table if name.startswith(("cv_", "test_"))]
    assert all(np.isfinite(compared.table[name]).all() for name in scores)
    assert "failed" not in compared.table["status"].tolist()
    assert any("never seen, once, twice" in note and "probability 0" in note for note in compared.notes)
    lonely = np.where(np.arange(len(y)) == 5, "yes", "no")
    binary = compare_partitions(DATA.X_train, lonely, setting=FAST).table
    assert np.isfinite(binary["cv_log_loss"]).all()


def test_integers_are_numbers_unless_the_task_says_otherwise():
    y = np.digitize(DATA.y_train, [0])
    setting = Setting(max_depth=1, folds=0, references=False)
    assert "R2" in "".join(compare_partitions(DATA.X_train, y, DATA.X_train, y, setting=setting).table)
    classes = compare_partitions(DATA.X_train, y, DATA.X_train, y, setting=setting, task="classification")
    assert "test_AUC" in classes.table


@pytest.mark.parametrize("task", LINEAR)
def test_references_are_scored_on_the_same_folds_and_test_rows(task):
    y, y_test = DATA.y_train, DATA.y_test
    codes = None
    if task == "classification":
        y, y_test, codes = labels(y, 2), labels(y_test, 2), (labels(y, 2) == "class 1").astype(int)
    compared = compare_partitions(
        DATA.X_train, y, DATA.X_test, y_test, methods=("none",), setting=Setting(folds=4, seed=3)
    )
    folds = make_folds(DATA.X_train, y, codes, np.ones(len(y)), 4, 3)
    for name in reference_names(task):
        held_out = np.empty(len(y))
        predict = (lambda m, X: m.predict(X)) if task == "regression" else (lambda m, X: m.predict_proba(X)[:, 1])
        for train, held in folds:
            model = reference(name, task, y[train], 3).fit(DATA.X_train[train], y[train])
            held_out[held] = predict(model, DATA.X_train[held])
        model = reference(name, task, y, 3).fit(DATA.X_train, y)
        score, column = (r2_score, "R2") if task == "regression" else (roc_auc_score, "AUC")
        assert compared.score(name, f"cv_{column}") == pytest.approx(score(y, held_out), abs=1e-9)
        tested = score(y_test, predict(model, DATA.X_test))
        assert compared.score(name, f"test_{column}") == pytest.approx(tested, abs=1e-9)


def test_a_reference_that_fails_is_a_row(monkeypatch):
    class Broken:
        def fit(self, X, y):
            raise ArithmeticError("no\nluck")

    monkeypatch.setattr("admiss.compare.partitions.reference", lambda *arguments: Broken())
    compared = compare_partitions(DATA.X_train, DATA.y_train, methods=("none",), setting=FAST)
    assert compared.table["status"].tolist() == ["heuristic", "failed", "failed"]
    assert "HistGradientBoosting failed: no luck" in compared.notes
    assert not compared.references


@pytest.mark.parametrize("task", ["regression", "classification"])
@pytest.mark.parametrize("changes", [{}, {"center": False, "scale": False, "leaf_model": "static"}, {"max_leaves": 3}])
def test_curves_are_costs_of_the_certificates(task, changes):
    X = 100.0 * DATA.X_train + 1000.0
    y = 20.0 * DATA.y_train - 7.0 if task == "regression" else labels(DATA.y_train, 3)
    setting = Setting(max_depth=2, folds=0, references=False, **changes)
    compared = compare_partitions(X, y, setting=setting)
    cost = {name: model.certificate_.objective for name, model in compared.models.items()}
    assert compared.curves["greedy"][-1] == pytest.approx(cost["greedy"], rel=1e-9)
    assert compared.curves["greedy"][0] == pytest.approx(cost["none"], rel=1e-9)
    assert compared.curves["optimum"][0] == pytest.approx(cost["none"], rel=1e-7)
    assert compared.curves["optimum"][-1] == pytest.approx(cost["tree"], rel=1e-7)
    assert compared.curves["optimum"][-1] <= compared.models["tree"].certificate_.bound * (1 + 1e-9)


def test_without_time_all_rows_say_so():
    stopped = compare_partitions(DATA.X_train, DATA.y_train, setting=Setting(time_limit=0.0), verify=True)
    assert set(stopped.table["status"]) == {"time limit"}
    assert np.isnan(stopped.table["cost"]).all()
    assert stopped.models == stopped.references == stopped.curves == {}
    assert stopped.verdict() == ""
    assert stopped.notes[-1].startswith("Not finished within the time limit of 0 s: fit of mean + indicators + ridge, ")
    json.dumps(stopped.to_dict(), allow_nan=False)


@pytest.mark.parametrize("limit", [0.3, 1.0])
def test_the_time_limit_covers_everything(limit):
    data = make_synthetic(n=2000, d=14, n_active=5, random_state=0)
    y = labels(data.y_train, 4)
    setting = Setting(max_depth=4, min_rows=20, time_limit=limit)
    compare_partitions(data.X_train[:50], y[:50], setting=Setting(time_limit=0.0))  # compiles
    start = time.monotonic()
    compared = compare_partitions(data.X_train, y, data.X_test, labels(data.y_test, 4), setting=setting)
    assert time.monotonic() - start < limit + 15  # a machine under load
    rows = by_method(compared)
    for row in rows.values():
        if row["status"] == "time limit" and row["cost"] is None:
            assert all(row[name] is None for name in row if name.startswith(("cv_", "test_")))
    assert rows["tree"]["status"] == "time limit"
    assert rows["tree"]["cv_AUC"] is None
    assert any("time limit" in note and "tree" in note for note in compared.notes)


def test_a_fold_out_of_time_leaves_no_score(monkeypatch):
    estimator = Run._estimator

    def slow(self, name, y, seconds):
        time.sleep(1.5)
        return estimator(self, name, y, seconds)

    monkeypatch.setattr(Run, "_estimator", slow)
    setting = Setting(max_depth=1, folds=2, references=False, time_limit=1.0)
    compared = compare_partitions(DATA.X_train, DATA.y_train, methods=("none",), setting=setting)
    assert np.isnan(compared.table["cv_R2"]).all()
    assert np.isfinite(compared.table["cost"]).all()
    (note,) = compared.notes
    assert note.startswith("Not finished within the time limit of 1 s: cross-validation of none; costs of ")


def test_references_are_first_and_no_signal_is_touched(monkeypatch):
    handlers, taken = [], []
    fit = Run._fit

    def watched(self, name, seconds):
        taken.append(name)
        handlers.append(signal.getsignal(signal.SIGINT))
        fit(self, name, seconds)

    monkeypatch.setattr(Run, "_fit", watched)
    setting = Setting(max_depth=1, folds=0, time_limit=60.0)
    compare_partitions(DATA.X_train, DATA.y_train, setting=setting)
    assert taken == [*reference_names("regression"), "none", "greedy", "tree"]
    assert set(handlers) == {signal.getsignal(signal.SIGINT)}


def test_a_step_gets_its_share_of_what_is_left():
    budget = TimeBudget(100.0, [1, 1, 2])
    assert budget.share(1) == pytest.approx(25, abs=1)
    assert budget.share(1) == pytest.approx(100 / 3, abs=1)  # nothing was used
    assert budget.share(2) == pytest.approx(100, abs=1)
    assert TimeBudget(100.0, [1] * 50).share(1) == pytest.approx(25, abs=1)
    assert TimeBudget(0.0, [1]).share(1) == 0
    assert TimeBudget(None, [1]).share(1) is None


def test_an_interrupt_keeps_what_is_there(monkeypatch):
    def interrupted(*arguments, **keywords):
        raise KeyboardInterrupt

    monkeypatch.setattr("admiss.compare.partitions.compile_kernels", lambda *arguments: None)
    monkeypatch.setattr(admiss.partition.optimal_tree, "box_costs", interrupted)
    compared = compare_partitions(DATA.X_train, DATA.y_train, methods=("greedy", "tree", "boxes", "none"), setting=FAST)
    assert compared.table["method"].tolist() == ["greedy", "tree", "none", *reference_names("regression")]
    assert compared.table["status"][1] == "interrupted"
    assert compared.interrupted
    assert np.isfinite(compared.table["cv_R2"][[0, 2, 3, 4]]).all()
    assert np.isnan(compared.table["cv_R2"][1])


def test_warnings_become_notes(monkeypatch):
    monkeypatch.setattr(admiss.partition.optimal_tree, "MOST_BOXES", 3)
    setting = Setting(max_depth=2, folds=2, references=False)
    compared = compare_partitions(DATA.X_train, DATA.y_train, methods=("greedy", "tree"), setting=setting)
    assert [note for note in compared.notes if "boxes are too many to enumerate" in note] == compared.notes
    assert len(compared.notes) == 1
    assert "optimum" not in compared.curves


def test_the_verdict_says_what_came_out():
    data = make_synthetic(n=300, d=4, rank=3, n_active=3, random_state=0)
    plain = Setting(max_depth=1, folds=0, references=False)
    assert compare_partitions(data.X_train, data.y_train, setting=plain).verdict() == "Greedy found the optimal tree."
    assert compare_partitions(data.X_train, data.y_train, methods=("none",), setting=plain).verdict() == ""
    whole = compare_partitions(np.nan_to_num(DATA.X_train), DATA.y_train, setting=Setting(folds=2, references=False))
    assert whole.verdict() == "Greedy found the optimal tree. No method splits."
    interacting = compare_partitions(DATA.X_train, DATA.y_train, setting=replace(FAST, folds=5)).verdict()
    assert "The exact tree predicts better than greedy's in cross-validation: R2 " in interacting
    assert "Splitting is better than one leaf in cross-validation: R2 " in interacting
    assert "No reference predicts better in cross-validation: R2 " in interacting
    full = np.nan_to_num(data.X_train)
    curved = np.sin(3 * full[:, 0]) + (full[:, 1] > 0)
    better = compare_partitions(data.X_train, curved, methods=("none", "greedy"), setting=FAST)
    assert "radient boosting predicts better than every partition here in cross-validation: R2 " in better.verdict()


def with_fold_scores(compared, **scores):
    """Replace scores by some with these values by fold, for each method."""
    for name, by_method in scores.items():
        for row, (method, values) in enumerate(zip(compared.table["method"], by_method, strict=True)):
            compared.table[f"cv_{name}"][row] = np.mean(values)
            compared.fold_scores[str(method)][name] = list(values)


def test_a_reference_may_be_better_by_one_score_only():
    compared = compare_partitions(DATA.X_train, labels(DATA.y_train, 2), methods=("none",), setting=FAST)
    wiggle = np.array([-0.001, 0.0, 0.001])
    losses = [0.5 + wiggle, 0.6 - wiggle, 0.7 + wiggle]
    with_fold_scores(compared, AUC=[0.7 + wiggle, 0.8 - wiggle, 0.6 + wiggle], log_loss=losses)
    linear = "Mean imputation with indicators and logistic regression"
    assert compared.verdict() == (
        f"{linear} predicts better than every partition here in cross-validation: AUC 0.800 against 0.700 (none), "
        f"+0.100 [+0.092, +0.108], but one leaf has the better log-loss, 0.500 against 0.600. {INTERVALS}"
    )
    with_fold_scores(compared, AUC=[0.7 + wiggle, 0.701 - wiggle, 0.6 + wiggle])
    assert compared.verdict() == (
        "No difference between the best partition and the best reference is seen in cross-validation: AUC 0.700 (none) "
        f"against 0.701 (mean imputation with indicators and logistic regression), -0.001 [-0.009, +0.007]. {INTERVALS}"
    )


def test_better_is_said_of_differences_that_are_larger_than_their_spread_over_folds():
    setting = Setting(max_depth=2, folds=5, references=False)
    compared = compare_partitions(DATA.X_train, DATA.y_train, setting=setting)
    values = np.array([0.60, 0.55, 0.62, 0.58, 0.61])
    for differences, words in (
        ([0.005, 0.006, 0.004, 0.005, 0.005], "The exact tree predicts better than greedy's in cross-validation"),
        ([-0.005, -0.006, -0.004, -0.005, -0.005], "The exact tree predicts worse than greedy's in cross-validation"),
        ([0.05, -0.03, 0.04, -0.06, 0.025], "No difference between the predictions of both trees is seen"),
    ):
        with_fold_scores(compared, R2=[values, values, values + differences])
        assert words in compared.verdict()
        found = compared.difference("tree", "greedy", "R2")
        # Nadeau and Bengio: s^2 = v (1 / 5 + n_test / n_train) with n_test / n_train = 1 / 4
        half = student.ppf(0.975, 4) * np.sqrt(np.var(differences, ddof=1) * (1 / 5 + 1 / 4))
        assert (found.low, found.high) == pytest.approx((np.mean(differences) - half, np.mean(differences) + half))
        assert f"{np.mean(differences):+.3f} [{found.low:+.3f}, {found.high:+.3f}]" in compared.verdict()


@pytest.mark.parametrize("n_classes", [1, 2, 3])
def test_scores_by_fold_are_parts_of_the_score_of_all_rows(n_classes):
    y = DATA.y_train if n_classes == 1 else labels(DATA.y_train, n_classes)
    compared = compare_partitions(DATA.X_train, y, setting=FAST)
    assert compared.overlap == pytest.approx(1 / 2, rel=0.02)
    for method, scores in compared.fold_scores.items():
        for name, values in scores.items():
            assert len(values) == 3
            tolerance = 0.05 if name == "AUC" else 1e-9
            assert np.mean(values) == pytest.approx(compared.score(method, f"cv_{name}"), abs=tolerance)


def test_costs_above_the_optimum_have_one_percentage():
    compared = compare_partitions(DATA.X_train, DATA.y_train, setting=Setting(max_depth=2, folds=0, references=False))
    cost = {name: model.certificate_.objective for name, model in compared.models.items()}
    above = 100 * (cost["greedy"] / cost["tree"] - 1)
    assert above > 10
    assert by_method(compared)["greedy"]["above_bound_percent"] == pytest.approx(above, rel=1e-6)
    assert compared.near.greedy_percent == pytest.approx(above, rel=1e-6)
    assert f"Greedy's training cost is {above:.3g} % above the optimum." in compared.verdict()


def test_without_cross_validation_test_scores_are_said_without_a_verdict():
    setting = Setting(max_depth=2, folds=0)
    verdict = compare_partitions(DATA.X_train, DATA.y_train, DATA.X_test, DATA.y_test, setting=setting).verdict()
    assert "The exact tree and greedy's on test rows: R2 " in verdict
    assert "Splitting and one leaf on test rows: R2 " in verdict
    assert "better" not in verdict
    assert "[" not in verdict


def test_the_repair_of_zeros_is_not_sold_as_a_gain():
    rng = np.random.default_rng(0)
    year, X = rng.normal(2000, 5, 400), rng.normal(size=(400, 3))
    y = year + X[:, 1]
    X[:, 0] = np.where(rng.random(400) < 0.3, np.nan, year)
    settings = [
        Setting(max_depth=1, center=center, scale=False, leaf_model="static", folds=5, references=False)
        for center in (True, False)
    ]
    centred, not_centred = (compare_partitions(X, y, setting=setting).verdict() for setting in settings)
    assert "No gain or loss by splitting is seen" in centred
    assert "not centred" not in centred
    assert "Splitting is better than one leaf" in not_centred
    assert "Features are not centred: a split also replaces the 0" in not_centred


def test_verified_is_a_column():
    setting = Setting(max_depth=1, folds=0)
    compared = compare_partitions(DATA.X_train, DATA.y_train, setting=setting, verify=True)
    assert compared.table["verified"].tolist() == ["cost only", "cost only", "yes", "-", "-"]


def test_bad_rows_are_refused_in_one_sentence():
    with pytest.raises(ValueError, match="y contains NaN"):
        compare_partitions(DATA.X_train, np.full(len(DATA.y_train), np.nan))
    with pytest.raises(ValueError, match="more than the"):
        compare_partitions(DATA.X_train, DATA.y_train, setting=Setting(min_rows=10**6))
    with pytest.raises(ValueError, match="at least two classes"):
        compare_partitions(DATA.X_train, np.full(len(DATA.y_train), "a"), setting=Setting(folds=0))


@pytest.mark.parametrize("n", [2, 4, 60])
def test_few_rows_and_nothing_missing(n, tmp_path):
    X = np.random.default_rng(0).normal(size=(n, 2))
    compared = compare_partitions(X, X[:, 0] + X[:, 1] ** 2, setting=Setting(folds=5))
    assert compared.near.within[0].trees.most == 1
    assert np.isfinite(compared.table["cv_R2"]).all()
    write_page([compared], tmp_path / "page.html")


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_boosting_leaves_out_columns_without_a_value_in_training(task):
    X, y = np.column_stack([DATA.X_train, np.full(len(DATA.y_train), np.nan)]), DATA.y_train
    y = y if task == "regression" else y > 0
    model = reference("HistGradientBoosting", task, y, 0).fit(X, y)
    X[:, -1] = 1.0  # observed later
    assert np.isfinite(model.predict(X)).all()
