"""The rules for columns as a transformer: raw frames in a pipeline."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

from admiss import AdaptiveRegressorCV, TableEncoder
from admiss.tables import read_table
from tests.admiss.tables.test_features import customers


def raw(n=200, seed=0):
    """Text, categories, dates, time spans, an ID and marks of missing values."""
    rng = np.random.default_rng(seed)
    plan = rng.choice(["free", "pro", "team"], n).astype(object)
    a = rng.normal(size=n)
    y = a + 2 * (plan == "pro") + rng.normal(size=n) / 4
    plan[rng.random(n) < 0.3] = None
    frame = pd.DataFrame({
        "PID": rng.permutation(n) + 1000,
        "plan": pd.Categorical(plan),
        "since": pd.Series(pd.date_range("2020-01-01", periods=n)).where(rng.random(n) < 0.7),
        "span": pd.to_timedelta(rng.integers(1, 99, n), unit="h"),
        "price": [f"{value:.2f}".replace(".", ",") if value > -1 else "n/a" for value in a],
    })  # fmt: skip
    return frame, y


@pytest.mark.parametrize("make", [lambda frame: frame, pl.from_pandas, pa.Table.from_pandas])
def test_a_raw_frame(make):
    frame, _ = raw()
    encoder = TableEncoder().fit(make(frame))
    assert encoder.get_feature_names_out().tolist() == [
        "plan=free", "plan=pro", "plan=team", "since", "span", "price"
    ]  # fmt: skip
    X = encoder.transform(make(frame))
    levels = np.isnan(X[:, :3])
    assert (levels.all(axis=1) == levels.any(axis=1)).all()
    np.testing.assert_array_equal(levels[:, 0], frame["plan"].isna())
    np.testing.assert_array_equal(X[:, 4], frame["span"] / pd.Timedelta(days=1))
    np.testing.assert_array_equal(np.isnan(X[:, 5]), frame["price"] == "n/a")
    assert "PID" in str(encoder.schema_)
    assert "ID" in TableEncoder(keep=["PID"]).fit(make(frame)).get_feature_names_out()[0]


def test_a_pipeline():
    frame, y = raw()
    model = make_pipeline(TableEncoder(), AdaptiveRegressorCV(n_lambdas=10, cv=3, random_state=0))
    assert cross_val_score(model, frame, y, cv=3).mean() > 0.7
    model.fit(frame, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(frame[:9]), model.predict(frame[:9]))
    assert clone(model).get_params()["tableencoder__unknown"] == "missing"


def test_new_levels_and_new_columns():
    frame, _ = raw()
    encoder = TableEncoder().fit(frame)
    new = frame[:3].assign(plan=["gold", "pro", None], price=["1,5", "??", "2,5"], other=7).drop(columns="PID")
    X = encoder.transform(new[new.columns[::-1]])
    np.testing.assert_array_equal(X[:, :3], [[np.nan] * 3, [0, 1, 0], [np.nan] * 3])
    np.testing.assert_array_equal(X[:, 5], [1.5, np.nan, 2.5])
    strict = TableEncoder(unknown="error").fit(frame)
    with pytest.raises(ValueError, match="column 'plan' holds 'gold', which is not one of its known values"):
        strict.transform(new)
    with pytest.raises(ValueError, match="X has no columns since and span"):
        encoder.transform(new.drop(columns=["since", "span"]))
    with pytest.raises(ValueError, match="unknown must be"):
        TableEncoder(unknown="ignore").fit(frame)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_output_as_a_frame(library):
    frame, _ = raw()
    encoder = TableEncoder().set_output(transform=library)
    found = encoder.fit_transform(frame)
    assert type(found).__module__.startswith(library)
    assert list(found.columns) == encoder.get_feature_names_out().tolist()


def test_the_columns_are_those_of_a_file(tmp_path):
    frame = customers()
    frame.to_csv(tmp_path / "t.csv", index=False)
    table = read_table(tmp_path / "t.csv", "y")
    encoder = TableEncoder().fit(frame.drop(columns="y"))
    assert encoder.get_feature_names_out().tolist() == table.names
    np.testing.assert_allclose(encoder.transform(frame), table.X, rtol=1e-12)
    in_memory = read_table(frame, "y")
    np.testing.assert_array_equal(in_memory.X, encoder.transform(frame))


def test_arrays():
    X = np.array([[1, "u"], ["?", "v"], [2.5, None]], dtype=object)
    encoder = TableEncoder().fit(X)
    assert encoder.get_feature_names_out().tolist() == ["x0", "x1=v"]
    np.testing.assert_array_equal(encoder.transform(X), [[1, 0], [np.nan, 1], [2.5, np.nan]])
    numbers = np.array([[1.0, 2.0], [np.nan, 3.0]])
    np.testing.assert_array_equal(TableEncoder().fit_transform(numbers), numbers)


def test_scikit_learns_checks():
    checks = check_estimator(TableEncoder(), on_skip=None)
    assert sum(check["status"] == "passed" for check in checks) > 40


def test_words_among_dates_in_digits_are_missing():
    texts = [f"2018{month:02d}15" for month in range(1, 13)]
    frame = pd.DataFrame({"day": ["unknown", *texts, "20190101"]})
    encoder = TableEncoder(unknown="error").fit(frame)
    np.testing.assert_array_equal(encoder.transform(frame)[:3, 0], [np.nan, 0.0, 31.0])


def test_equal_names_of_a_frame_of_pyarrow_are_named():
    frame = pa.table([pa.array([1.0, 2.0]), pa.array([3.0, 4.0])], ["a", "a"])
    with pytest.raises(ValueError, match="two columns 'a'"):
        TableEncoder().fit(frame)
