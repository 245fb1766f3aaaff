"""The study of intervals: its instances and shifts, its methods, and its tables."""

import json

import numpy as np
import polars as pl
import pytest

from experiments.studies.intervals.figures import interval_drawings
from experiments.studies.intervals.grid import CASES
from experiments.studies.intervals.instances import ConformalDraw
from experiments.studies.intervals.methods import METHODS, cover
from experiments.studies.intervals.tables import by_case, interval_sections, pooled


@pytest.mark.parametrize(("mechanism", "shift"), CASES)
def test_mechanisms_and_shifts(mechanism, shift):
    rows = ConformalDraw(mechanism, shift, 1000).make()
    before, after = np.isnan(rows.X_train).mean(axis=0), np.isnan(rows.X_test).mean(axis=0)
    usual = 0.1 if shift in ("one", "all") else 0.2
    shifted = {"one": [0.4, 0.1], "all": [0.4, 0.4], "gone": [1.0, 0.2]}.get(shift, [0.2, 0.2])
    np.testing.assert_allclose(before, usual, atol=0.045)  # 4.5 standard errors of 2,000 rows
    np.testing.assert_allclose(after[:2], shifted, atol=0.07)  # of 1,000 rows
    if mechanism == "target":
        high = rows.y_train > np.quantile(rows.y_train, 0.75)
        assert np.isnan(rows.X_train[high]).mean() > 2 * np.isnan(rows.X_train[~high]).mean()


def cells():
    found = []
    for mechanism, shift in CASES[:2]:
        rows = ConformalDraw(mechanism, shift, 100).make()
        for name, options in METHODS.items():
            identity = {"kind": "ConformalDraw", "mechanism": mechanism, "shift": shift, "n": 100, "method": name}
            found.append({**identity, **cover(rows, 1, **options)})
    return pl.DataFrame(found)


@pytest.mark.slow
def test_cells_tables_and_figure():
    table = cells()
    by_method = {row["method"]: row for row in table.filter(pl.col("mechanism") == "mcar").to_dicts()}
    assert by_method["class"]["basis"] == "count"
    assert by_method["class (1, m)"]["basis"] == "features"
    counts = json.loads(by_method["split"]["counts"])
    covered = (counts["x0 missing"][1] + counts["x0 observed"][1]) / 1000
    assert covered == pytest.approx(by_method["split"]["score"])
    sections = interval_sections(table)
    assert [len(section.rows) for section in sections] == [2 * len(METHODS), 0]
    (drawing,) = interval_drawings(table)
    assert len(drawing.rows) == 2 * len(METHODS)
    assert len(by_case(table)) == 2 * len(METHODS)
    assert interval_drawings(table.clear()) == []


def test_groups_are_pooled_before_the_lowest_is_taken():
    counts = [{"x0 missing": [10, 5], "x1 missing": [10, 10], "missing x0": [10, 9], "nothing missing": [10, 9]},
              {"x0 missing": [10, 10], "x1 missing": [30, 20], "x2 missing": [2, 0]}]  # fmt: skip
    texts = [json.dumps(each) for each in counts]
    rows = pl.DataFrame({"counts": texts, "score": [0.8, 1.0], "width": [1.0, None], "infinite": [0.0, 1.0]})
    found = pooled(rows, fewest=10)
    assert found.lowest_feature == ("x0 missing", 0.75)
    assert found.lowest_pattern == ("missing x0", 0.9)
    assert (found.draws, found.coverage, found.error, found.width, found.infinite) == pytest.approx(
        (2, 0.9, 0.1, 1, 0.5)
    )
