"""Targets: the task that is assumed, and targets that cannot be predicted."""

import numpy as np
import pytest

from admiss.tables import read_table

N = 60
NOISE = np.random.default_rng(0).normal(size=N)


@pytest.mark.parametrize(
    ("target", "task", "kind"),
    [
        (("yes", "no"), "classification", "U"),
        ((True, False), "classification", "U"),
        (("TRUE", "false", "?"), "classification", "U"),
        ((1, 2, 3), "classification", "i"),
        ((1.0, 2.0, None), "classification", "i"),
        ((" 1", "2 ", "NA"), "classification", "i"),
        (range(N), "regression", "f"),
        ((0.5, 1.5), "regression", "f"),
        (tuple(range(11)), "regression", "f"),
        ([1, 2, 3, *[None] * (N - 3)], "regression", "f"),
        (("1,5", "2", "?"), "regression", "f"),
        (("2020-01-01", "2021-05-05"), "regression", "f"),
    ],
)  # fmt: skip
def test_the_task_of_a_target(write, note, target, task, kind):
    write({"x": NOISE, "t": target})
    table = read_table("t.csv", "t")
    assert table.task == task
    assert table.y.dtype.kind == kind
    assert "--task" in note(table, f"{task} is assumed")
    assert len(table.X) == len(table.y) <= N
    forced = read_table("t.csv", "t", task=task)
    assert not any("assumed" in text for text in forced.notes)
    np.testing.assert_array_equal(forced.y, table.y)


def test_the_task_can_be_chosen(write):
    write({"x": NOISE, "t": (1, 2, 3), "u": (0.5, 2), "v": (True, False)})
    assert read_table("t.csv", "t", task="regression").y.tolist()[:3] == [1.0, 2.0, 3.0]
    assert read_table("t.csv", "u", task="classification").y.tolist()[:2] == ["0.5", "2.0"]
    assert read_table("t.csv", "v", task="regression").y.tolist()[:2] == [1.0, 0.0]
    with pytest.raises(ValueError, match="must be one of auto, regression, classification, not 'classes'"):
        read_table("t.csv", "t", task="classes")


@pytest.mark.parametrize(
    ("target", "task", "sentence"),
    [
        ([1.0] * N, "auto", "The target t is 1 in every row: there is nothing to predict."),
        (("a", None), "auto", "The target t is a in every row: there is nothing to predict."),
        (("long " * 99, None), "auto", r"The target t is long .{50,60}\.\. in every row"),
        ([None] * N, "auto", "The target t has no values."),
        ([f"name {i}" for i in range(N)], "auto", "has 60 different values in 60 rows, too many for classes"),
        (("a", "b"), "regression", "The target t is not a column of numbers: use --task classification."),
        (np.linspace(0.1, 1, N), "classification", "60 different values in 60 rows, too many for classes"),
    ],
)  # fmt: skip
def test_targets_that_cannot_be_predicted(write, target, task, sentence):
    write({"x": NOISE, "t": target})
    with pytest.raises(ValueError, match=sentence):
        read_table("t.csv", "t", task=task)


def test_labels_are_one_line(write, note):
    write({"x": NOISE, "t": ("a  b", "c\nd", "TRUE", "x" * 50)})
    table = read_table("t.csv", "t")
    assert set(table.y) == {"a b", "c d", "TRUE", "x" * 50}
    note(table, "4 classes (a b: 15 rows, c d: 15 rows, TRUE: 15 rows")


def test_a_class_with_one_row_is_left_out(write, note):
    write({"x": np.arange(N) % 7 + 0.5, "t": ["c", *"ba" * 29, "b"]})
    table = read_table("t.csv", "t")
    assert set(table.y) == {"a", "b"}
    assert len(table.X) == len(table.y) == N - 1
    np.testing.assert_array_equal(table.X[:, table.names.index("x")], np.arange(1, N) % 7 + 0.5)
    note(table, "Rows of classes with one row are left out: 'c'")
