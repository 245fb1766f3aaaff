"""Finite models: limits of the hierarchy, descriptions, classes, losses, truncation."""

import re

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

from admiss import AdaptiveRegressor, FiniteClassifier, FiniteRegressor
from admiss.datasets import make_synthetic
from admiss.partition import Greedy, OptimalTree, PatternGroups, SplitAssignTree
from admiss.plots import plot_tree


@pytest.fixture(scope="module")
def data():
    return make_synthetic(n=400, d=4, rank=3, n_active=3, mechanism="censoring", random_state=0)


@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize("center", [True, False])
def test_one_leaf_is_the_model_of_its_class(data, center, scale):
    """Mean or zero imputation, with indicators or without, and a ridge."""
    X, y = data.X_train, data.y_train
    unit = np.nanstd(X, axis=0) if scale else 1.0
    filled, M = np.nan_to_num((X - center * np.nanmean(X, axis=0)) / unit), np.isnan(X)
    options = {"ridge": 2.0, "truncate": False, "center": center, "scale": scale}
    static = FiniteRegressor(Greedy(max_leaves=1), leaf_model="static", **options).fit(X, y)
    np.testing.assert_allclose(static.predict(X), Ridge(alpha=2.0).fit(filled, y).predict(filled), rtol=1e-8)
    affine = FiniteRegressor(Greedy(max_leaves=1), **options).fit(X, y)
    both = np.hstack([filled, M])
    np.testing.assert_allclose(affine.predict(X), Ridge(alpha=2.0).fit(both, y).predict(both), rtol=1e-8)


def test_a_leaf_for_each_pattern_is_fully_adaptive(data):
    X, y = data.X_train, data.y_train
    finite = FiniteRegressor(
        OptimalTree(max_depth=4, min_rows=1), ridge=0.0, leaf_model="static", truncate=False, ridge_scale="sample"
    ).fit(X, y)
    full = AdaptiveRegressor("fully_adaptive", lam=0.0).fit(X, y)
    assert np.sum((y - finite.predict(X)) ** 2) == pytest.approx(np.sum((y - full.predict(X)) ** 2), rel=1e-6)


def test_without_missing_data_every_partition_is_ridge(data):
    X, y = data.X_full_train, data.y_train
    for scale, center in ((True, True), (False, True), (False, False)):
        Z = X / X.std(axis=0) if scale else X
        expected = Ridge(alpha=10.0).fit(Z, y).predict(Z)
        for partitioner in (Greedy(), OptimalTree(), PatternGroups()):
            model = FiniteRegressor(partitioner, center=center, scale=scale, truncate=False).fit(X, y)
            np.testing.assert_allclose(model.predict(X), expected, rtol=1e-8)


def test_predictions_are_truncated_to_the_range_of_training(data):
    X, y = data.X_train, data.y_train
    far = X * 100
    model = FiniteRegressor().fit(X, y)
    assert y.min() <= model.predict(far).min()
    assert model.predict(far).max() <= y.max()
    free = FiniteRegressor(truncate=False).fit(X, y)
    assert np.abs(free.predict(far)).max() > np.abs(y).max()


def test_default_leaves_have_enough_rows(data):
    model = FiniteRegressor(Greedy(max_depth=None)).fit(data.X_train, data.y_train)
    assert model.leaf_rows_.min() >= 10 * (4 + 1)


@pytest.mark.parametrize("loss", ["absolute", "huber", "quantile"])
def test_other_losses(data, loss):
    X, y = data.X_train[:150], data.y_train[:150]
    limits, shared = {"max_depth": 2, "min_rows": 10}, {"loss": loss, "ridge": 0.1, "leaf_model": "static"}
    greedy = FiniteRegressor(Greedy(**limits), **shared).fit(X, y)
    exact = FiniteRegressor(OptimalTree(**limits, method="both"), **shared).fit(X, y)
    assert exact.certificate_.status == "optimal"
    assert exact.certificate_.objective <= greedy.certificate_.objective * (1 + 1e-9)
    assert greedy.score(X, y) > 0.3


def test_textbook_tree_agrees_with_the_exact_tree(data):
    X, y = data.X_train[:60, :3], data.y_train[:60]
    shared = {"loss": "absolute", "ridge": 0.0, "leaf_model": "static"}
    exact = FiniteRegressor(OptimalTree(max_depth=2, min_rows=8), **shared).fit(X, y)
    textbook = FiniteRegressor(SplitAssignTree(max_depth=2, min_rows=8), **shared).fit(X, y)
    assert textbook.certificate_.status == "optimal"
    assert textbook.certificate_.objective == pytest.approx(exact.certificate_.objective, rel=1e-6)


def test_text_names_every_split_and_leaf(data):
    model = FiniteRegressor(Greedy(max_depth=2, min_rows=20)).fit(data.X_train, data.y_train)
    text = model.to_text()
    assert text.count("is missing:") == text.count("else:") == model.n_leaves_ - 1
    assert text.count("y = ") == model.n_leaves_
    table = model.leaf_table()
    assert table["rows"].sum() == 400
    assert all("missing" in name or "observed" in name for name in table["holds"])
    groups = FiniteRegressor(PatternGroups(max_leaves=2)).fit(data.X_train, data.y_train)
    assert "leaf 1: " in groups.to_text()
    with pytest.raises(ValueError, match="do not form a tree"):
        plot_tree(groups)


@pytest.mark.parametrize("center", [True, False])
def test_text_is_the_model(data, center):
    """The lines of a tree, read by a program, predict what the model predicts."""
    X, X_test = data.X_train + 50.0, data.X_test[:200] + 50.0
    model = FiniteRegressor(OptimalTree(max_depth=2), center=center, truncate=False).fit(X, data.y_train)
    lines = model.to_text(precision=17).splitlines()
    assert bool(re.search(r"\(x\d - (49|50)\.\d\d?\)", model.to_text())) == center

    def read(x, start=0, indent=0):
        line = lines[start].strip()
        if line.startswith("y = "):
            line = re.sub(r"\((x\d) - ([\d.]+)\)", r"\1:\2", line[4:])
            tokens = line.replace("- ", "-").replace("+ ", "+").replace(" missing]", "_missing]").split()
            value, k = float(tokens[0]), 1
            while k < len(tokens):
                name, _, origin = tokens[k + 1].partition(":")
                missing = name.startswith("[")
                j = int(name.strip("[]").removesuffix("_missing")[1:])
                part = float(np.isnan(x[j])) if missing else np.nan_to_num(x[j] - float(origin or 0.0))
                value, k = value + float(tokens[k]) * part, k + 2
            return value
        j = int(line.split()[1][1:])
        other = next(i for i in range(start + 1, len(lines)) if lines[i] == " " * indent + "else:")
        return read(x, start + 1 if np.isnan(x[j]) else other + 1, indent + 4)

    np.testing.assert_allclose([read(x) for x in X_test], model.predict(X_test), rtol=1e-9)


def test_coefficient_table_by_leaf(data):
    model = FiniteRegressor(Greedy(max_depth=1), scale=True).fit(data.X_train, data.y_train)
    table = model.coef_table()
    assert set(table["leaf"]) == {0, 1}
    j = model.partition_.tree[0]
    assert not np.any((table["leaf"] == 1) & (table["feature"] == f"x{j}"))  # constant where it is missing
    pattern = np.zeros(4)
    for leaf, feature, term, value in zip(*table.values(), strict=True):
        if leaf == 0 and term == "value":
            assert model.coef_at(pattern)[int(feature[1:])] == pytest.approx(value)


def test_classes(data):
    X, z = data.X_train, data.y_train
    labels = np.digitize(z, np.quantile(z, [0.3, 0.7]))
    model = FiniteClassifier(Greedy(max_depth=2)).fit(X, np.array(["a", "b", "c"])[labels])
    assert model.predict_proba(X).shape == (400, 3)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    assert model.score(X, np.array(["a", "b", "c"])[labels]) > 0.6
    assert set(model.coef_table()["class"]) == {"a", "b", "c"}
    assert model.coef_at(np.zeros(4)).shape == (3, 4)
    assert "log-odds of b against the rest" in model.to_text()
    for center in (True, False):
        options = {"leaf_model": "static", "center": center, "scale": False}
        two = FiniteClassifier(Greedy(max_leaves=1), ridge=0.5, **options).fit(X, z > 0)
        filled = np.nan_to_num(X - center * np.nanmean(X, axis=0))
        reference = LogisticRegression(C=1.0, tol=1e-10, max_iter=1000).fit(filled, z > 0)
        np.testing.assert_allclose(two.decision_function(X), reference.decision_function(filled), atol=1e-4)


def test_class_weight_is_a_sample_weight(data):
    X, y = data.X_train, data.y_train > 0
    by_class = FiniteClassifier(class_weight={False: 1.0, True: 3.0}).fit(X, y)
    by_row = FiniteClassifier().fit(X, y, sample_weight=np.where(y, 3.0, 1.0))
    np.testing.assert_allclose(by_class.decision_function(X), by_row.decision_function(X))


def test_classification_without_ridge_is_refused(data):
    with pytest.raises(ValueError, match="ridge > 0"):
        FiniteClassifier(ridge=0.0).fit(data.X_train, data.y_train > 0)


def test_leaf_costs_are_those_of_the_certificate_and_change_nothing():
    data = make_synthetic(n=300, d=4, rank=3, n_active=3, random_state=0)
    labels = data.y_train > 0
    model = FiniteClassifier(Greedy(max_depth=1, min_rows=20)).fit(data.X_train, labels)
    leaf_cost = model.leaf_cost(data.X_train, labels)
    leaves = [model.partition_.members(leaf) for leaf in range(model.n_leaves_)]
    np.testing.assert_allclose(leaf_cost.total(leaves), model.certificate_.objective, rtol=1e-9)
    with pytest.raises(ValueError, match="y must have the classes of the fitted model, False, True"):
        model.leaf_cost(data.X_train, np.where(labels, "a", "b"))
    assert model.classes_.tolist() == [False, True]
