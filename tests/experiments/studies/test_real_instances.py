"""The instances of the study on real features."""

import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from admiss.datasets import Dataset, DataUnavailableError, Origin, load_dataset, semi_synthetic
from experiments.studies.methods.rows import StudyRows
from experiments.studies.real_design import instances as real_instances
from experiments.studies.real_design.instances import (
    FEATURES_THAT_VARY,
    LAPTOP_ROWS,
    RealTarget,
    SemiSynthetic,
    k_missing_values,
    numeric_missing_sets,
    real_target_instances,
    semi_synthetic_instances,
    target_sets,
)
from formulations.arrays import BoolArray

MCAS = SemiSynthetic("Ecdat-MCAS", "mar", "linear", 2)


@pytest.fixture(scope="module")
def mcas() -> StudyRows:
    return MCAS.make()


def test_sets_and_counts_are_those_of_the_paper() -> None:
    names = numeric_missing_sets()
    assert len(names) == 52
    assert list(FEATURES_THAT_VARY) == names
    assert len(target_sets()) == 36
    assert "datasets-airquality" not in target_sets()
    assert len(real_target_instances("paper")) == 360
    assert len(real_target_instances("laptop")) == 36


def test_instances_of_the_scales() -> None:
    paper, laptop = semi_synthetic_instances("paper"), semi_synthetic_instances("laptop")
    assert {i.split for i in paper} == set(range(10))
    assert {i.split for i in laptop} == {0}
    assert {i.max_rows for i in paper} == {None}
    assert {i.max_rows for i in laptop} == {LAPTOP_ROWS}
    assert {i.dataset for i in paper} == {i.dataset for i in laptop} == set(numeric_missing_sets())
    settings = {(i.design, i.signal) for i in laptop}
    assert settings == {(design, signal) for design in ("mar", "nmar", "am") for signal in ("linear", "nn")}
    assert {i.k_missing for i in paper if i.dataset == "Ecdat-Schooling"} == set(range(11))
    assert {i.k_missing for i in laptop if i.dataset == "Ecdat-Schooling"} == {0, 5, 10}
    assert len(set(paper)) == len(paper)
    assert len(set(laptop)) == len(laptop)
    smoke = semi_synthetic_instances("smoke")
    assert len(smoke) == 2 * 3 * 2
    assert {i.dataset for i in smoke} == {i.dataset for i in real_target_instances("smoke")}
    assert {i.signal for i in semi_synthetic_instances("smoke", ("tree",))} == {"tree"}
    with pytest.raises(ValueError, match="Unknown scale 'huge'"):
        semi_synthetic_instances("huge")


def test_listing_needs_no_data(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("the data were read")

    monkeypatch.setattr(real_instances, "load_dataset", refuse)
    assert semi_synthetic_instances("paper")
    assert real_target_instances("paper")


def test_k_missing_is_limited_to_what_there_is() -> None:
    assert k_missing_values("arrhythmia") == [0, 5]
    assert k_missing_values("heart-disease-hungarian") == [2, 5, 10]
    assert k_missing_values("sem-Tests", range(11)) == [6]
    with pytest.raises(ValueError, match="'mushroom' is not a data set with missing numerical features"):
        k_missing_values("mushroom")


@pytest.mark.data
@pytest.mark.parametrize("max_rows", [None, LAPTOP_ROWS])
def test_every_listed_k_missing_can_be_drawn(max_rows: int | None) -> None:
    for name, (n_missing, n_complete) in FEATURES_THAT_VARY.items():
        X = real_instances.some_rows(name, max_rows).without_missing_levels().X
        with np.errstate(all="ignore"):
            varies = np.nanmax(X, axis=0) > np.nanmin(X, axis=0)
        missing = np.isnan(X).any(axis=0)
        found = int((varies & missing).sum()), int((varies & ~missing).sum())
        if max_rows is None:
            assert found == (n_missing, n_complete), name
        k = min(10, sum(found))
        values = k_missing_values(name, range(11))
        assert values[0] >= k - found[1], name
        assert values[-1] <= min(k, found[0]), name


def test_the_same_recipe_gives_the_same_rows_in_another_process(mcas: StudyRows) -> None:
    code = (
        "from experiments.studies.real_design.instances import SemiSynthetic\n"
        "rows = SemiSynthetic('Ecdat-MCAS', 'mar', 'linear', 2).make()\n"
        "print(repr(float(rows.y_train[0])), repr(float(rows.y_test.sum())))"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert [float(value) for value in told] == [mcas.y_train[0], mcas.y_test.sum()]


def test_rows_are_those_of_the_data_set(mcas: StudyRows) -> None:
    source = load_dataset("Ecdat-MCAS").without_missing_levels().X
    X, X_full = np.vstack([mcas.X_train, mcas.X_test]), np.vstack([mcas.X_full_train, mcas.X_full_test])
    assert len(mcas.X_test) == 54
    assert len(mcas.X_train) == 126
    assert np.array_equal(_sorted(X), _sorted(source), equal_nan=True)
    assert not np.isnan(X_full).any()
    assert np.array_equal(X, np.where(np.isnan(X), np.nan, X_full), equal_nan=True)
    facts = {"task": "regression", "n_train": 126, "d": 13, "k": 10, "fraction_missing": 0.2}
    assert facts.items() <= mcas.facts.items()
    assert mcas.facts["missing"] == np.isnan(mcas.X_train).sum() / mcas.X_train.size
    assert mcas.facts["ceiling"] == pytest.approx(2 / 3)


def _sorted(X: np.ndarray) -> np.ndarray:
    return X[np.lexsort(np.nan_to_num(X, nan=-1e9).T)]


def test_the_target_is_that_of_the_generator_and_the_splits_share_it(mcas: StudyRows) -> None:
    seed = real_instances._seed("target", "Ecdat-MCAS", "linear", 2)
    data = semi_synthetic("Ecdat-MCAS", "mar", "linear", k=10, k_missing=2, random_state=seed)
    targets = np.sort(np.append(data.y_train, data.y_test))
    for split in (0, 1):
        rows = replace(MCAS, split=split).make()
        assert np.array_equal(np.sort(np.append(rows.y_train, rows.y_test)), targets)
    assert not np.array_equal(np.sort(rows.y_test), np.sort(mcas.y_test))


def test_designs_and_signals_share_the_rows_of_a_split(mcas: StudyRows) -> None:
    nn, nmar, am = (
        replace(MCAS, **change).make() for change in ({"signal": "nn"}, {"design": "nmar"}, {"design": "am"})
    )
    for rows in (nn, nmar):
        assert np.array_equal(rows.X_train, mcas.X_train, equal_nan=True)
        assert not np.array_equal(rows.y_train, mcas.y_train)
    # The adversary moves patterns, and nothing else.
    assert np.array_equal(am.X_full_train, mcas.X_full_train)
    assert np.array_equal(am.y_train, mcas.y_train)
    assert not np.array_equal(np.isnan(am.X_train), np.isnan(mcas.X_train))
    assert _n_missing(am) == _n_missing(mcas)


def test_rows_of_equal_values_stay_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.RandomState(0)
    level, number = np.minimum(rng.randint(6, size=80), 2), rng.randint(3, size=80)
    X = np.column_stack([level == 0, level == 1, level == 2, number]).astype(float)
    X[rng.uniform(size=80) < 0.4, :3] = np.nan
    origin = (*(Origin("c", "level", level) for level in "abc"), Origin("x", "number"))
    data = Dataset("few values", X, origin, None, None, None)
    monkeypatch.setattr(real_instances, "some_rows", lambda *_: data)
    mar, am, nn = (
        SemiSynthetic("few values", *what, 3).make() for what in (("mar", "linear"), ("am", "linear"), ("mar", "nn"))
    )
    assert np.array_equal(am.y_train, mar.y_train)
    assert np.array_equal(nn.X_train, mar.X_train, equal_nan=True)
    assert not np.array_equal(np.isnan(am.X_train), np.isnan(mar.X_train))


def _n_missing(rows: StudyRows) -> int:
    M: BoolArray = np.isnan(np.vstack([rows.X_train, rows.X_test]))
    return int(M.sum())


def test_a_small_set_is_the_same_at_all_scales(mcas: StudyRows) -> None:
    rows = replace(MCAS, max_rows=LAPTOP_ROWS).make()
    assert np.array_equal(rows.X_test, mcas.X_test, equal_nan=True)
    assert np.array_equal(rows.y_test, mcas.y_test)


def test_fewer_rows_are_some_of_the_rows() -> None:
    few, again = (replace(MCAS, max_rows=100, split=split).make() for split in (0, 1))
    assert (len(few.X_train), len(few.X_test)) == (70, 30)
    rows = [_sorted(np.vstack([r.X_train, r.X_test])) for r in (few, again)]
    assert np.array_equal(*rows, equal_nan=True)
    whole = {tuple(row) for row in np.nan_to_num(load_dataset("Ecdat-MCAS").X, nan=-1)}
    assert {tuple(row) for row in np.nan_to_num(rows[0], nan=-1)} <= whole


def test_classes_are_split_in_their_shares() -> None:
    rows, other = RealTarget("MASS-Pima.tr2").make(), RealTarget("MASS-Pima.tr2", split=1).make()
    assert rows.task == "binary"
    assert set(rows.y_train) == {0, 1}
    assert rows.X_full_train is None
    assert rows.y_train.sum() == round(0.7 * load_dataset("MASS-Pima.tr2").y.sum()) == other.y_train.sum()
    assert not np.array_equal(rows.X_test, other.X_test, equal_nan=True)
    assert {"task": "binary", "n_train": 210, "d": 7}.items() <= rows.facts.items()


@pytest.mark.parametrize(("name", "task"), [("Ecdat-MCAS", "regression"), ("car-Chile", "multiclass")])
def test_numbers_are_predicted_as_they_are_and_of_several_classes_the_first(name: str, task: str) -> None:
    rows, data = RealTarget(name).make(), load_dataset(name)
    assert data.task == task
    assert rows.task == ("regression" if task == "regression" else "binary")
    expected = data.y if task == "regression" else data.y == min(data.y)
    assert np.array_equal(np.sort(np.append(rows.y_train, rows.y_test)), np.sort(expected))


def test_a_set_that_is_not_there_is_an_error_of_make_only(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setenv("ADMISS_DATA", str(tmp_path))
    monkeypatch.setenv("ADMISS_CACHE", str(tmp_path))
    monkeypatch.setattr("admiss.datasets.paper.storage._fetch", _no_network)
    real_instances.some_rows.cache_clear()
    instance = RealTarget("auto-mpg")
    with pytest.raises(DataUnavailableError, match="auto-mpg"):
        instance.make()
    with pytest.raises(ValueError, match="datasets-airquality has no target: choose one of target_sets"):
        RealTarget("datasets-airquality").make()


def _no_network(file: Any) -> bytes:
    raise DataUnavailableError(f"{file.path} cannot be fetched")


def test_what_methods_share_is_no_part_of_the_rows() -> None:
    one = np.zeros((1, 1))
    a, b = (StudyRows(one, one[0], one, one[0], None, None, "regression") for _ in range(2))
    a.cache["imputed"] = one
    assert b.cache == {}
