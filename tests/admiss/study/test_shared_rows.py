"""Instances that share rows: splits of one table are recognised, fresh draws are not, and intervals account for it."""

import json
import sqlite3
from dataclasses import astuple, dataclass

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_matrix
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import LinearRegression

from admiss.estimates import estimate
from admiss.study import Study, instance_seed
from admiss.study.report.comparisons import compared
from admiss.study.report.page import comparison_section
from admiss.study.report.presentation import Presentation
from admiss.study.shared_rows import row_sketch, shared_tables
from admiss.study.store import FILE

METHODS = {"mean": DummyRegressor(), "ols": LinearRegression()}


def table_of(seed, n=120):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, X[:, 0] + 3 * rng.normal(size=n)


def air():
    return table_of(0)


def rain():
    return table_of(1)


def wind(seed):
    X, y = table_of(2)
    order = np.random.default_rng(seed).permutation(len(y))
    train, test = order[30:], order[:30]
    return X[train], X[test], y[train], y[test]


def fresh(seed):
    return table_of(seed)


@dataclass(frozen=True)
class Deleted:
    """One table in which other values are missing in every replicate and at every share."""

    share: float
    replicate: int = 0

    def make(self):
        X, y = table_of(3)
        return np.where(np.random.default_rng(instance_seed(self)).random(X.shape) < self.share, np.nan, X), y


def judged(folder, instances, methods=METHODS, **options):
    """The table, the rows that count and the comparisons of a study."""
    study = Study("rows", instances=instances, methods=methods, replicates=5, **options)
    study.run(folder=folder, workers=2)
    table, presentation = study.table(folder=folder), Presentation(study)
    rows = presentation.rows(table)
    return table, rows, compared(rows, study, presentation.labels).comparisons, presentation


def gains(table):
    """Differences of the two methods by replicate."""
    wide = table.pivot("method", index="replicate", values="r2").sort("replicate")
    return (wide["ols"] - wide["mean"]).to_numpy()


@pytest.mark.parametrize("made", [air, wind])
def test_splits_of_a_table_that_a_function_gives_have_the_interval_of_nadeau_and_bengio(tmp_path, made):
    table, rows, (found,), presentation = judged(tmp_path, [("air", made)])
    assert set(table["shared_rows"]) == {"table 1"}
    assert astuple(found.estimate) == pytest.approx(astuple(estimate(gains(table), 30 / 90)))
    assert "Nadeau and Bengio" in comparison_section(compared(rows, presentation.study, presentation.labels)).text


def test_fresh_rows_are_independent(tmp_path):
    table, rows, (found,), presentation = judged(tmp_path, [("fresh", fresh)])
    assert set(table["shared_rows"]) == {"none"}
    assert astuple(found.estimate) == pytest.approx(astuple(estimate(gains(table))))
    text = comparison_section(compared(rows, presentation.study, presentation.labels)).text
    assert "Nadeau" not in text
    assert "not recorded" not in text


def test_tables_are_units_however_they_are_given(tmp_path):
    instances = [("air", air), ("rain", rain), ("given", table_of(4))]
    _, _, found, _ = judged(tmp_path, instances)
    overall = found[0]
    assert (overall.setting, overall.estimate.units, overall.instances) == ("", 3, 15)
    air_only = next(each for each in found if each.level == "air")
    assert air_only.estimate.units == 5
    with_fresh = [("air", air), ("fresh", fresh)]
    _, _, found, _ = judged(tmp_path / "mixed", with_fresh)
    assert found[0].estimate.units == 1 + 5


def test_one_table_with_other_missing_values_is_one_data_set(tmp_path):
    methods = {"mean": DummyRegressor(), "ones": DummyRegressor(strategy="constant", constant=1.0)}
    instances = [Deleted(0.1), Deleted(0.3)]
    table, rows, found, _ = judged(tmp_path, instances, methods)
    assert set(table["shared_rows"]) == {"table 1"}
    assert rows["unit"].n_unique() == 1
    assert [each.estimate.units for each in found] == [5, 5, 5]


def test_cells_without_a_record_of_rows_count_as_before_and_the_page_says_so(tmp_path):
    _, _, _, presentation = judged(tmp_path, [("air", air)])
    with sqlite3.connect(tmp_path / FILE) as store:
        store.execute("DROP TABLE instances")
    study = presentation.study
    table = study.table(folder=tmp_path)
    assert table["shared_rows"].null_count() == table.height
    rows = presentation.rows(table)
    (found,) = compared(rows, study, presentation.labels).comparisons
    assert astuple(found.estimate) == pytest.approx(astuple(estimate(gains(table))))
    text = comparison_section(compared(rows, study, presentation.labels)).text
    assert "The rows of 5 instances are not recorded" in text


def shared(*made):
    """Whether all instances share one table; partly sharing is neither."""
    found = shared_tables({str(number): json.loads(row_sketch(rows)) for number, rows in enumerate(made)})
    assert len(found) in (0, len(made))
    return bool(found)


def taken(table, chosen):
    return tuple(part[chosen] for part in table)


X, Y = table_of(5, n=200)
KINDS = pd.DataFrame({"n": [1, 2, 3, 4] * 30, "town": ["Ulm", "Bonn", None, "Jena"] * 30, "x": np.arange(120.0)})
TOWNS = KINDS[["n", "town"]].astype("category")


@pytest.mark.parametrize(
    "draw",
    [
        lambda rng: taken((X, Y), rng.permutation(200)),
        lambda rng: taken((X, Y), rng.permutation(200)[:150]),
        lambda rng: taken((X, Y), rng.integers(0, 200, 200)),  # with replacement
        lambda rng: taken((X, np.sign(Y)), rng.integers(0, 200, 200)),
        lambda rng: (np.where(rng.random(X.shape) < 0.3, np.nan, X), np.sign(Y)),
        lambda rng: taken((X.round(), np.sign(Y)), rng.permutation(200)),  # most rows are there several times
        lambda rng: taken((X[:9], Y[:9]), rng.permutation(9)),
        lambda rng: (csr_matrix(X)[order := rng.permutation(200)], Y[order]),
        lambda rng: (KINDS.iloc[order := rng.permutation(120)], KINDS["x"].iloc[order]),
        lambda rng: (pl.from_pandas(KINDS)[order := rng.permutation(120)], np.array(["a", "b"] * 60)[order]),
        lambda rng: (TOWNS.iloc[order := rng.permutation(120)], np.arange(120)[order]),
    ],
)  # fmt: skip
def test_rows_of_one_table_are_recognised(draw):
    assert shared(*(draw(np.random.default_rng(seed)) for seed in range(4)))


@pytest.mark.parametrize("n", [5, 20, 100, 1000])
@pytest.mark.parametrize("values", [2, 4, 10, 40])
@pytest.mark.parametrize("columns", [1, 3])
def test_fresh_discrete_rows_that_coincide_by_chance_are_not_one_table(n, values, columns):
    for case in range(10):
        rng = np.random.default_rng((case, n, values, columns))
        made = [(rng.integers(0, values, (n, columns)), rng.integers(0, values, n)) for _ in range(5)]
        assert not shared(*made)


def test_fresh_targets_or_fresh_features_are_fresh_rows():
    rng = np.random.default_rng(6)
    assert not shared(*((X, rng.normal(size=200)) for _ in range(4)))
    assert not shared(*((rng.normal(size=X.shape), np.sign(Y)) for _ in range(4)))


def test_a_sketch_does_not_depend_on_types_orders_and_markers_of_missing_values():
    values = np.array([[1.0, np.nan], [0.0, 2.5], [3.0, 4.0]] * 4)
    target = np.arange(12)
    expected = row_sketch((values, target))
    odd = values.copy()
    odd.view(np.uint64)[np.isnan(values)] |= 1  # another bit pattern of NaN
    odd[1, 0] = -0.0
    whole = pd.DataFrame({"a": values[:, 0].astype(int), "b": pd.array(values[:, 1], dtype="Float32")})
    for other in (odd, values.astype(np.float32), pd.DataFrame(values), pl.DataFrame(values), whole, values.tolist()):
        assert row_sketch((other, target)) == expected
    assert row_sketch((values[::-1], target[::-1].astype(float))) == expected
    assert row_sketch((values[:8], values[8:], target[:8], target[8:])) == expected
    assert row_sketch((values + 1, target)) != expected
    nullable = pd.DataFrame({"a": values[:, 0].astype(object), "b": [None if v != v else v for v in values[:, 1]]})
    assert row_sketch((nullable, target)) == expected
    for no_table in ("rows", (np.zeros((12, 3, 4)), target), ([[1], [1, 2]], [1, 2]), (values, target[:3]), (1, 2)):
        assert row_sketch(no_table) == ""
