"""Scores equal those of scikit-learn, also for models that have not seen all classes."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, log_loss, r2_score, roc_auc_score

from admiss.compare.scores import fitted, is_better, predicted, scores_of
from admiss.compare.setting import task_of


@pytest.mark.parametrize(
    ("y", "task"),
    [
        (["a", "b"], "classification"),
        ([True, False], "classification"),
        (np.array([True, False], dtype=object), "classification"),
        (pd.Series(["u", "v"], dtype="category"), "classification"),
        ([0.5, 1.0], "regression"),
        (np.array([0.5, 1.0], dtype=object), "regression"),
        ([0, 1], "of integers"),
        (np.array([0, 1], dtype=object), "of integers"),
    ],
)
def test_the_task_follows_from_the_target(y, task):
    assert task_of(y, None, "of integers") == task
    assert task_of(y, "given", "of integers") == "given"


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_scores_are_those_of_scikit_learn(n_classes):
    rng = np.random.default_rng(n_classes)
    classes = np.array([f"class {c}" for c in range(n_classes)])
    y = classes[rng.integers(0, n_classes, 200)]
    P = rng.dirichlet(np.ones(n_classes), 200)
    found = scores_of(y, P, classes)
    assert found["log_loss"] == pytest.approx(log_loss(y, P, labels=classes), rel=1e-12)
    area = roc_auc_score(y, P[:, 1]) if n_classes == 2 else roc_auc_score(y, P, multi_class="ovr", average="macro")
    assert found["AUC"] == pytest.approx(area, rel=1e-12)
    assert found["accuracy"] == accuracy_score(y, classes[P.argmax(axis=1)])
    numbers = rng.normal(size=200)
    assert scores_of(numbers, P[:, 0], None) == {"R2": r2_score(numbers, P[:, 0])}


def test_columns_are_aligned_by_class():
    rng = np.random.default_rng(0)
    X, classes = rng.normal(size=(60, 2)), np.array(["a", "b", "c", "d"])
    y = np.array(["b", "d"])[(X[:, 0] > 0).astype(int)]
    P = predicted(LogisticRegression().fit(X, y), X, classes)
    assert P.shape == (60, 4)
    assert not P[:, [0, 2]].any()
    assert scores_of(y, P, classes)["accuracy"] > 0.9
    unseen = scores_of(np.full(60, "a"), P, classes)
    assert unseen["log_loss"] == pytest.approx(-np.log(np.finfo(float).eps))
    assert np.isnan(unseen["AUC"])


def test_rows_of_one_class_have_a_model():
    model = fitted(LogisticRegression(), np.zeros((4, 1)), np.full(4, "x"))
    np.testing.assert_array_equal(predicted(model, np.zeros((2, 1)), np.array(["w", "x"])), [[0, 1], [0, 1]])


def test_the_better_of_two_values():
    assert is_better("R2", 0.5, 0.4) > 0
    assert is_better("log_loss", 0.5, 0.4) < 0
