"""Predictions and patterns of files: those of the rows in memory."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from admiss import AdaptiveRegressor, FiniteRegressor
from admiss.streaming import RowStatistics, open_source, pattern_report, predict_to_parquet
from admiss.streaming.file_model import FileModel, load_model
from admiss.tables.column import SourceError
from tests.admiss.streaming.parquet_rows import make_rows, write_rows

X, Y = make_rows()
FRAME = pd.DataFrame(X, columns=[f"x{j}" for j in range(4)])


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr("admiss.tables.source.BATCH_ROWS", 50)
    return open_source(write_rows(tmp_path / "rows", X, Y, 3), drop=["id", "y"])


def test_rows_keep_their_order_and_columns(tmp_path: Path, source: Any) -> None:
    model = AdaptiveRegressor().fit(FRAME, Y)
    assert predict_to_parquet(model, source, tmp_path / "p.parquet", keep=["id", "x1"]) == len(Y)
    found = pq.read_table(tmp_path / "p.parquet")
    assert found.column_names == ["id", "x1", "prediction"]
    assert found["id"].to_pylist() == list(range(len(Y)))
    np.testing.assert_array_equal(found["x1"].to_numpy(), X[:, 1])
    np.testing.assert_array_equal(found["prediction"].to_numpy(), model.predict(FRAME))


def test_a_name_of_a_csv_file_gives_a_csv_file(tmp_path: Path, source: Any) -> None:
    model = AdaptiveRegressor().fit(FRAME, Y)
    assert predict_to_parquet(model, source, tmp_path / "p.csv", keep=["id"]) == len(Y)
    found = pd.read_csv(tmp_path / "p.csv")
    assert found.columns.tolist() == ["id", "prediction"]
    np.testing.assert_allclose(found["prediction"], model.predict(FRAME), rtol=1e-14)


@pytest.mark.parametrize("model", [AdaptiveRegressor("affine"), FiniteRegressor()])
def test_patterns_are_those_of_all_rows(source: Any, model: Any) -> None:
    model.fit(FRAME[:300], Y[:300])
    found, expected = pattern_report(model, source), model.pattern_report(FRAME)
    assert list(found) == list(expected)
    for name in expected:
        assert found[name].tolist() == expected[name].tolist()
    assert found["rows"].sum() == len(Y)


def test_a_model_of_statistics_does_not_know_the_patterns_of_training(source: Any) -> None:
    model = AdaptiveRegressor().fit_statistics(RowStatistics.of(FRAME, Y, tree_depth=None))
    assert list(pattern_report(model, source)) == ["pattern", "rows"]


def test_no_part_of_a_file_is_left_by_an_error(tmp_path: Path, source: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model = AdaptiveRegressor().fit(FRAME, Y)
    (tmp_path / "p.parquet").write_bytes(b"old")
    calls = []

    def predict(frame: Any) -> Any:
        calls.append(1)
        if len(calls) > 3:
            raise OSError("No space left on device")
        return np.zeros(len(frame))

    monkeypatch.setattr(model, "predict", predict)
    with pytest.raises(OSError, match="No space left"):
        predict_to_parquet(model, source, tmp_path / "p.parquet")
    assert (tmp_path / "p.parquet").read_bytes() == b"old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["p.parquet", "rows"]
    with pytest.raises(ValueError, match="cannot be kept"):
        predict_to_parquet(model, source, tmp_path / "p.parquet", keep=["prediction"])
    with pytest.raises(SourceError, match="0000.parquet, row group 0 has no column 'z'"):
        predict_to_parquet(model, source, tmp_path / "p.parquet", keep=["z"])
    with pytest.raises(ValueError, match="There is no folder"):
        predict_to_parquet(model, source, tmp_path / "none" / "p.parquet")


def test_a_model_remembers_its_columns(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    plan, a = rng.choice(["free", "pro", "team"], 200), rng.normal(size=200)
    y = a + (plan == "pro")
    pq.write_table(pa.table({"a": a, "plan": plan, "y": y}), tmp_path / "t.parquet")
    source = open_source(tmp_path / "t.parquet", "y")
    frame = pd.DataFrame(np.vstack([b.X for c in source.chunks() for b in c.batches()]), columns=source.schema.names)
    model = FileModel(AdaptiveRegressor().fit(frame, y), source.schema)
    model.save(tmp_path / "m.joblib")
    loaded = load_model(tmp_path / "m.joblib")
    rows = pd.DataFrame({"plan": plan[:5], "a": a[:5]})
    np.testing.assert_array_equal(loaded.predict(rows), model.estimator.predict(frame[:5]))
    with pytest.raises(SourceError, match="the frame: column 'plan' holds 'x'"):
        loaded.predict(rows.assign(plan="x"))
    new = pd.DataFrame({"plan": plan[:5], "a": a[:5], "id": range(5)})
    predict_to_parquet(
        model.estimator, open_source(new, schema=model.schema.without_target()), tmp_path / "p", keep=["id"]
    )
    assert pq.read_table(tmp_path / "p").column_names == ["id", "prediction"]
    (tmp_path / "m.joblib").write_bytes(b"")
    with pytest.raises(ValueError, match="could not be loaded"):
        load_model(tmp_path / "m.joblib")
