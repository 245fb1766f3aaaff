"""Raw tables in front of the estimators: in pipelines inside of them, and encoded by skrub."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline

from admiss import (
    AdaptiveClassifier,
    AdaptiveRegressor,
    AdaptiveRegressorCV,
    JointImputeClassifier,
    JointImputeRegressor,
    PatternConformalClassifier,
    PatternConformalRegressor,
    TableEncoder,
)


def raw_table(n=400, seed=0):
    """Text, dates and numbers with missing values, and a target that depends on all of them."""
    rng = np.random.default_rng(seed)
    plan, age = rng.choice(["free", "pro", "team"], n), rng.normal(40, 9, n)
    day = rng.integers(0, 900, n)
    y = 3.0 * (plan == "pro") + age / 9 + day / 300 + rng.normal(size=n) / 2
    frame = pd.DataFrame({"plan": plan, "age": age, "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(day, "D")})
    return frame.mask(rng.random((n, 3)) < 0.2), y


@pytest.mark.parametrize("library", [pd.DataFrame, lambda frame: pl.from_pandas(frame)])
def test_intervals_around_a_pipeline_have_the_pattern_of_the_table(library):
    frame, y = raw_table()
    table = library(frame)
    model = PatternConformalRegressor(make_pipeline(TableEncoder(), AdaptiveRegressor()), random_state=0).fit(table, y)
    assert model.n_features_in_ == 3
    assert model.calibration_patterns_.shape == (120, 3)
    order = np.random.RandomState(0)
    order.randint(2**31 - 1)
    held_out = np.sort(order.permutation(400)[:120])
    np.testing.assert_array_equal(model.calibration_patterns_, frame.isna().to_numpy()[held_out])
    prediction, intervals = model.predict_interval(table)
    np.testing.assert_array_equal(prediction, model.predict(table))
    assert 0.8 < ((intervals[:, 0, 0] <= y) & (y <= intervals[:, 1, 0])).mean() < 1
    report = model.coverage_report(table, y).table
    assert {"plan missing", "since observed"} <= set(report["group"])


def test_sets_around_a_pipeline_and_models_that_are_fitted():
    frame, y = raw_table()
    pipeline = make_pipeline(TableEncoder(), AdaptiveClassifier())
    sets = PatternConformalClassifier(pipeline, random_state=0).fit(frame, y > 6).predict_set(frame)[1]
    assert sets.shape == (400, 2, 1)
    fitted = make_pipeline(TableEncoder(), AdaptiveRegressor()).fit(frame[:200], y[:200])
    model = PatternConformalRegressor(fitted, prefit=True, random_state=0).fit(frame[200:], y[200:])
    np.testing.assert_array_equal(model.predict(frame), fitted.predict(frame))
    with pytest.raises(ValueError, match="method='mda_exact' deletes values of numbers"):
        PatternConformalRegressor(pipeline, method="mda_exact").fit(frame, y)
    with pytest.raises(ValueError, match=r"since of X are dates.* The columns plan of X are not numbers.*TableEncoder"):
        PatternConformalRegressor(AdaptiveRegressor()).fit(frame, y)


def test_joint_imputation_in_front_of_the_last_steps_of_a_pipeline():
    frame, y = raw_table()
    model = JointImputeRegressor(make_pipeline(TableEncoder(), Ridge()), random_state=0).fit(frame, y)
    outside = make_pipeline(TableEncoder(), JointImputeRegressor(make_pipeline(Ridge()), random_state=0)).fit(frame, y)
    np.testing.assert_array_equal(model.imputation_, outside[-1].imputation_)
    np.testing.assert_array_equal(model.predict(frame), outside.predict(frame))
    assert model.n_features_in_ == 3
    assert len(model.imputation_) == 5
    labels = np.where(y > 6, "high", "low")
    classifier = JointImputeClassifier(make_pipeline(TableEncoder(), AdaptiveClassifier()), random_state=0)
    assert classifier.fit(frame, labels).score(frame, labels) > 0.7
    numbers = frame[["age"]].fillna(40.0)
    assert JointImputeRegressor(make_pipeline(Ridge())).fit(numbers, y).encoder_ is None


def test_skrub_encodes_tables_for_the_estimators():
    """A missing text has a column of its own there; missing numbers and dates stay missing."""
    import skrub

    frame, y = raw_table(600)
    models = {
        "pipeline": skrub.tabular_pipeline(AdaptiveRegressorCV(random_state=0)),
        "vectorizer": make_pipeline(skrub.TableVectorizer(), AdaptiveRegressorCV(random_state=0)),
        "encoder": make_pipeline(TableEncoder(), AdaptiveRegressorCV(random_state=0)),
    }
    scores = {name: model.fit(frame[:400], y[:400]).score(frame[400:], y[400:]) for name, model in models.items()}
    assert min(scores.values()) > 0.5
    assert max(scores.values()) - min(scores.values()) < 0.15
    assert np.isnan(np.asarray(models["vectorizer"][0].transform(frame), dtype=float)).any()
