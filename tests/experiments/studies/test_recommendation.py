"""The study of recommendations: its laws, its cells and its tables."""

import json

import numpy as np
import polars as pl
import pytest

from admiss.study.plan import instance_recipe
from experiments.studies.recommendation.grid import HALVES, DrawnLaw
from experiments.studies.recommendation.methods import CLASSES, RECOMMENDATION
from experiments.studies.recommendation.tables import CONSTANTS, Case, recommendation_sections
from experiments.studies.synthetic.instances import AuthorsInstance


@pytest.mark.parametrize("law", range(4))
def test_laws_do_not_depend_on_the_size(law):
    small, large = (DrawnLaw("further", law, n).make() for n in (50, 100))
    assert len(small.X_train) == 50
    assert small.X_train.shape[1] == large.X_train.shape[1]
    rates = np.isnan(small.X_test).mean(axis=0), np.isnan(large.X_test).mean(axis=0)
    assert rates[0] == pytest.approx(rates[1], abs=0.05)
    assert small.y_test[0] != large.y_test[0]
    other = DrawnLaw("calibration", law, 50).make()
    assert other.y_train[0] != small.y_train[0]


@pytest.mark.slow
def test_cells_and_tables():
    rows = []
    for instance in [AuthorsInstance(60, "mcar", "linear", 0.3, 1), *(DrawnLaw(half, 0, 60) for half in HALVES)]:
        scores = RECOMMENDATION.run(instance.make(), 0)
        assert scores["score"] == scores["r2"][list(CLASSES).index(scores["recommended"])]
        texts = {name: json.dumps(value) if isinstance(value, list) else value for name, value in scores.items()}
        rows.append({**instance_recipe(instance), "method": RECOMMENDATION.name, "status": "done", **texts})
    comparison, constants = recommendation_sections(pl.DataFrame(rows, infer_schema_length=None))
    assert [row[:2] for row in comparison.rows] == [
        ["further laws", "1"],
        ["paper, MCAR", "1"],
        ["n = 60", "2"],
        ["all", "2"],
    ]
    assert len(constants.rows) == len(CONSTANTS)
    assert recommendation_sections(pl.DataFrame(rows[:0], schema=["status", "kind"])) == []


def test_the_recommended_and_the_chosen_class():
    case = Case(
        "paper, MCAR", 100, [0.5, 0.6, 0.7, 0.8], [3.0, 2.0, 1.0, 4.0], [1.0, 0.95, 0.9, 0.1], [5, 10, 20, 3000]
    )
    assert [case.recommended(c) for c in (0.0, 0.4, 10.0)] == [3, 2, 0]
    assert case.chosen == 2
