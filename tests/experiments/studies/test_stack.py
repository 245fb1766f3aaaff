"""The study of the stack: the scores of its cells, and its tables."""

import json

import numpy as np
import polars as pl
import pytest

from experiments.studies.methods.rows import StudyRows
from experiments.studies.stack.grid import STACK, products
from experiments.studies.stack.methods import single, stack
from experiments.studies.stack.tables import stack_sections


@pytest.fixture
def rows(make_rows):
    X, y = make_rows(n=160, d=3)
    return StudyRows(X[:100], y[:100], X[100:], y[100:], None, None, "regression", {})


def test_a_cell_has_the_candidates_scores(rows):
    scores = stack(rows, 0, candidates=["conditional_mean", "expected_features"], shrinkage=30.0)
    alone = {name: scores[f"score of {name}"] for name in ("conditional_mean", "expected_features")}
    assert scores["hindsight"] == max(alone.values()) == alone[scores["best_candidate"]]
    assert sum(json.loads(scores["chosen"]).values()) == pytest.approx(1)
    assert 0.3 < scores["score"] < 1
    json.dumps(scores)


def test_a_candidate_on_its_own(rows):
    scores = single(rows, 0, name="conditional_mean")
    assert 0.3 < scores["score"] < 1
    assert scores["cv_score"] < 0


def test_classes(rows):
    train, test = ((y > 0).astype(int) for y in (rows.y_train, rows.y_test))
    binary = StudyRows(rows.X_train, train, rows.X_test, test, None, None, "binary", {})
    scores = stack(binary, 0, candidates=["conditional_mean", "forest"], shrinkage=30.0)
    assert scores["hindsight"] >= max(scores["score of forest"], scores["score of conditional_mean"])


def test_defaults_were_not_chosen_on_the_splits_of_the_study():
    for scale in ("laptop", "paper"):
        assert min(instance.split for instance in products(scale)[1].instances) == 3


def generated_table():
    found = []
    for replicate in range(1, 6):
        for n in (200, 800):
            place = {
                "status": "done", "mechanism": "mcar", "signal": "linear", "n": n, "missing_fraction": 0.3,
                "replicate": replicate, "dataset": None, "task": "regression",
            }  # fmt: skip
            found += [
                {**place, "method": STACK, "score": 0.6 + 0.01 * replicate, "hindsight": 0.65 + 0.01 * replicate},
                {**place, "method": "Affine", "score": 0.5, "hindsight": None},
            ]
    return pl.DataFrame(found)


def test_generated_data_by_signal():
    main, others, loss = stack_sections(generated_table())
    by_method = {row[0]: row for row in main.rows}
    assert by_method[STACK][1:3] == ["0.630", "-"]
    gains = 0.1 + 0.01 * np.arange(1, 6)
    assert by_method["Affine"][1] == "0.500"
    assert by_method["Affine"][2] == f"+{gains.mean():.3f} ± {gains.std(ddof=1) / np.sqrt(5):.3f}"
    assert by_method["Affine"][3] == "-"
    assert "rank 5" in main.text
    assert {row[0]: row[1] for row in others.rows}[STACK] == "0.640"
    assert loss.rows[-1] == ["all", "10", "+0.050", "+0.050", "+0.050"]


def test_real_data_by_set():
    found = []
    for dataset, task, base in (("a", "regression", 0.4), ("b", "binary", 0.6)):
        for split in (3, 4):
            place = {
                "kind": "RealTarget", "status": "done", "dataset": dataset, "split": split, "task": task, "max_rows": 5,
                "mechanism": None,
            }  # fmt: skip
            own = {"score of forest": base + 0.1 * (split == 3), "score of boosting": base + 0.1 * (split == 4)}
            found += [
                {**place, "method": STACK, "score": base, **own},
                {**place, "method": "XGBoost", "score": base - 0.05, **dict.fromkeys(own)},
            ]
    main, gap = stack_sections(pl.DataFrame(found))
    by_method = {row[0]: row for row in main.rows}
    assert by_method[STACK] == [STACK, "2", "0.500", "0.400", "0.600", "-"]
    assert by_method["XGBoost"][-1] == "+0.050 ± 0.000"
    # over the two splits either candidate is .05 above the stack, in each split one of them is .1 above it
    assert [row[:4] for row in gap.rows] == [
        ["its candidates", "set", "2", "+0.050"],
        ["its candidates", "split", "4", "+0.100"],
        ["all methods", "set", "2", "-0.050"],
        ["all methods", "split", "4", "-0.050"],
    ]


def test_no_cell_of_the_stack_yet():
    assert stack_sections(generated_table().filter(pl.col("method") != STACK)) == []
