"""The study of indicators: its instances, its methods beside pipelines of scikit-learn, and its tables."""

from itertools import product

import numpy as np
import polars as pl
import pytest
from scipy.stats import ttest_1samp
from sklearn.metrics import r2_score, roc_auc_score
from sklearn.pipeline import make_pipeline

from admiss.datasets.paper.registry import registry
from experiments.paper.sections import claims_section
from experiments.studies.indicators.claims import CLAIMS
from experiments.studies.indicators.figures import indicator_drawings
from experiments.studies.indicators.gains import LINEAR, MCAR, REAL, by_draw, by_unit, imputation_gain, indicator_gain
from experiments.studies.indicators.grid import MECHANISMS, method_name
from experiments.studies.indicators.instances import (
    COMPLETE_SETS,
    FEWEST_FEATURES,
    FEWEST_ROWS,
    CompleteDraw,
    CompleteSet,
    complete_rows,
)
from experiments.studies.indicators.methods import (
    IMPUTERS,
    LEARNERS,
    impute_and_predict,
    make_imputer,
    make_learner,
)
from experiments.studies.indicators.tables import indicator_sections

SMALL = {"trees": 3, "sweeps": 2}


def real(mechanism="mcar", fraction=0.2, name="Ecdat-MCAS", signal="real"):
    return CompleteSet(name, signal, mechanism, fraction, 0, 120, 6)


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("imputer", IMPUTERS)
@pytest.mark.parametrize("name", ["Ecdat-MCAS", "MASS-Pima.tr2"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_method_is_a_pipeline(name, imputer, learner):
    rows = real(name=name).make()
    for indicators in (False, True):
        scores = impute_and_predict(rows, 3, imputer=imputer, indicators=indicators, learner=learner, **SMALL)
        imputing = make_imputer(imputer, 3, **SMALL, add_indicator=indicators)
        pipeline = make_pipeline(imputing, make_learner(learner, rows.task, 3)).fit(rows.X_train, rows.y_train)
        if rows.task == "regression":
            expected = r2_score(rows.y_test, pipeline.predict(rows.X_test))
        else:
            score = getattr(pipeline, "decision_function" if learner != "forest" else "predict_proba")(rows.X_test)
            expected = 2 * roc_auc_score(rows.y_test, score if score.ndim == 1 else score[:, 1]) - 1
        assert scores["score"] == pytest.approx(expected, abs=1e-9)
        assert imputing.transform(rows.X_test).shape[1] == rows.X_test.shape[1] * (1 + indicators)


def test_imputed_values_are_computed_once():
    rows = real().make()
    for indicators in (False, True):
        impute_and_predict(rows, 0, imputer="mean", indicators=indicators, learner="ridge", **SMALL)
    assert len(rows.cache) == 1


def test_accuracy_of_imputed_values():
    rows = CompleteDraw("linear", "mcar", 0.2, 300).make()
    found = {
        name: impute_and_predict(rows, 0, imputer=name, indicators=False, learner="ridge", **SMALL)["imputation_r2"]
        for name in IMPUTERS
    }
    # The features have rank 5, so that linear equations nearly determine the missing ones.
    assert found["mean"] == pytest.approx(0)
    assert 0.3 < found["forest"] < found["iterative"] < 1


@pytest.mark.parametrize(
    "make", [real, lambda *how: CompleteDraw("nn", *how, 120), lambda *how: real(*how, signal="linear")]
)
def test_mechanisms_remove_values_of_the_same_rows(make):
    few, many, high = make("mcar", 0.2).make(), make("mcar", 0.5).make(), make("censoring", 0.2).make()
    for part in ("train", "test"):
        X = [getattr(rows, f"X_{part}") for rows in (few, many, high)]
        for rows in (many, high):
            assert np.array_equal(getattr(rows, f"X_full_{part}"), getattr(few, f"X_full_{part}"))
            assert np.array_equal(getattr(rows, f"y_{part}"), getattr(few, f"y_{part}"))
        assert (np.isnan(X[1]) >= np.isnan(X[0])).all()
    everything = np.vstack([high.X_train, high.X_test]), np.vstack([high.X_full_train, high.X_full_test])
    for x, full in zip(everything[0].T, everything[1].T, strict=True):
        assert full[np.isnan(x)].min() >= np.nanmax(x)
        assert np.isnan(x).mean() == pytest.approx(0.2, abs=0.005)


def test_splits_differ():
    first, second = (CompleteSet("Ecdat-MCAS", "real", "mcar", 0.2, split).make() for split in (0, 1))
    assert first.X_train.shape == second.X_train.shape
    assert not np.array_equal(first.y_train, second.y_train)


@pytest.mark.slow
@pytest.mark.data
def test_the_sets_are_those_of_the_rule():
    found = []
    for name, record in registry().items():
        if record.task is not None and name != "communities-and-crime-2":
            X, y, _ = complete_rows(name)
            assert not np.isnan(X).any()
            assert len(X) == len(y)
            if X.shape[1] >= FEWEST_FEATURES and len(X) >= FEWEST_ROWS:
                found.append(name)
    assert tuple(found) == COMPLETE_SETS


SETS, SPLITS = "abcde", 2


@pytest.fixture(scope="module")
def table():
    """Scores of which indicators gain .1 under MCAR, and .3 under censoring, plus noise by set and split."""
    rng, found = np.random.RandomState(0), []
    for dataset, split, signal, (mechanism, fraction) in product(SETS, range(SPLITS), ("real", "linear"), MECHANISMS):
        place = {
            "kind": "CompleteSet", "dataset": dataset, "split": split, "signal": signal, "mechanism": mechanism,
            "missing_fraction": fraction, "replicate": None, "n": None,
        }  # fmt: skip
        for imputer, learner, indicators in product(IMPUTERS, LEARNERS, (False, True)):
            gain = indicators * (0.1 if mechanism == "mcar" else 0.3)
            score = 0.2 * (imputer != "mean") + gain + 0.01 * rng.normal()
            name = method_name(imputer, learner, indicators)
            found.append({**place, "method": name, "status": "done", "score": score, "imputation_r2": 0.5})
    return pl.DataFrame(found, schema_overrides={"replicate": pl.Int64, "n": pl.Int64})


def gains_of(table, imputer, learner, mechanism, fraction):
    """Gains by set in plain loops."""
    found = {}
    for dataset in SETS:
        scores = {True: [], False: []}
        for row in table.iter_rows(named=True):
            place = (row["dataset"], row["signal"], row["mechanism"], row["missing_fraction"])
            for indicators in (True, False):
                if place == (dataset, "real", mechanism, fraction) and row["method"] == method_name(
                    imputer, learner, indicators
                ):
                    scores[indicators].append(row["score"])
        found[dataset] = np.mean(scores[True]) - np.mean(scores[False])
    return found


def test_gains_by_set(table):
    expected = gains_of(table, "mean", "ridge", "mcar", 0.2)
    assert indicator_gain(table, REAL, [MCAR[0]], ["mean"], ["ridge"]) == pytest.approx(expected)
    both = [gains_of(table, "mean", learner, "mcar", 0.2) for learner in ("ridge", "forest")]
    mean = {dataset: (both[0][dataset] + both[1][dataset]) / 2 for dataset in SETS}
    assert indicator_gain(table, REAL, [MCAR[0]], ["mean"], ["ridge", "forest"]) == pytest.approx(mean)
    assert np.mean(list(imputation_gain(table, REAL, MCAR).values())) == pytest.approx(0.2, abs=0.01)


def test_an_instance_without_one_of_the_methods_does_not_count(table):
    name = method_name("forest", "ridge", True)
    lacks = (pl.col("dataset") == "a") & (pl.col("split") == 0) & (pl.col("method") == name)
    partial = table.with_columns(pl.when(lacks).then(pl.lit("failed")).otherwise("status").alias("status"))
    other = table.filter(pl.col("split") == 1)
    assert by_unit(partial, REAL, MCAR[0])["a"] == by_unit(other, REAL, MCAR[0])["a"]
    assert by_unit(partial, REAL, MCAR[0])["b"] == by_unit(table, REAL, MCAR[0])["b"]


def test_the_table_of_gains(table):
    gains = indicator_sections(table)[0]
    rows = [dict(zip(gains.header, row, strict=True)) for row in gains.rows]
    assert len(rows) == 2 * 27
    under = [row for row in rows if row["target"] == REAL and row["mechanism"].startswith("MCAR")]
    tests = []
    for row in under:
        values = list(
            gains_of(table, row["imputer"], row["learner"], "mcar", int(row["mechanism"][5:7]) / 100).values()
        )
        test = ttest_1samp(values, 0)
        tests.append(test.pvalue)
        low, high = test.confidence_interval(0.95)
        assert row["gain"] == f"{np.mean(values):+.4f}"
        assert (row["low"], row["high"]) == (f"{low:+.4f}", f"{high:+.4f}")
        assert (row["units"], row["verdict"]) == ("5", "confirmed")
    ranks = np.argsort(np.argsort(tests))
    adjusted = [max((18 - ranks[j]) * tests[j] for j in range(18) if ranks[j] <= ranks[i]) for i in range(18)]
    assert [row["adjusted p"] for row in under] == [f"{p:.4f}" for p in adjusted]
    assert gains.conclusion.endswith("18 comparisons, adjusted: 18 confirmed.")


def test_claims(table):
    section = indicator_sections(table)[-1]
    rows = {row[1]: dict(zip(section.header, row, strict=True)) for row in section.rows}
    verdicts = {words: (row["verdict"], row["adjusted"]) for words, row in rows.items()}
    assert verdicts["indicators are beneficial, even under MCAR (MCAR 20 %)"] == ("confirmed", "confirmed")
    assert verdicts["indicators are beneficial, even under MCAR (targets: generated nn, n = 200)"][0] == "not measured"
    assert verdicts[f"indicators help more under censoring than under MCAR (targets: {LINEAR})"][1] == "confirmed"
    # better imputation gains .2 with every learner
    assert verdicts["with powerful models, improved imputation has only a minor effect"] == (
        "not confirmed",
        "not confirmed",
    )
    assert verdicts["imputation matters less with expressive models"] == ("undecided", "undecided")


def test_adjusted_verdicts_count_the_claims_with_a_p_value(table):
    section = claims_section(CLAIMS, table)
    counted = sum(row[section.header.index("adjusted p")] != "-" for row in section.rows)
    assert counted == 14
    assert "all 14 claims of this study that have one" in section.text


def test_figures(table):
    mcar, censoring = indicator_drawings(table)
    assert (len(mcar.rows), len(censoring.rows)) == (2 * 18, 2 * 9)
    assert len(mcar.figure.axes) == len(mcar.narrow().axes) == 2
    assert [row[4] > 0.2 for row in censoring.rows] == [True] * 18
    assert indicator_drawings(table.clear()) == []


def test_no_cell_has_ended(table):
    assert [list(section.rows) for section in indicator_sections(table.clear())] == [[]] * 4


def test_mechanisms_share_the_draws():
    draws = pl.DataFrame(
        {
            "kind": ["CompleteDraw", "CompleteDraw", "CompleteSet"],
            "signal": ["nn", "nn", "real"],
            "mechanism": ["mcar", "censoring", "mcar"],
            "n": [200, 200, None],
            "replicate": [1, 1, None],
            "unit": ["instance 0", "instance 1", "a"],
            "unit_kind": ["instances", "instances", "data sets"],
        }
    )
    assert by_draw(draws)["unit"].to_list() == ["nn, n = 200, draw 1", "nn, n = 200, draw 1", "a"]
    assert by_draw(draws)["unit_kind"].to_list() == ["draws", "draws", "data sets"]
