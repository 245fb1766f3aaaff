"""The study of shifts: its laws, its robust programs against brute force, its tables and figure."""

from itertools import combinations

import numpy as np
import polars as pl
import pytest

from admiss.patterns import PatternTable
from experiments.paper.claims import judge
from experiments.studies.gains import mean_of
from experiments.studies.methods.rows import StudyRows
from experiments.studies.shift.claims import CLAIMS
from experiments.studies.shift.figures import shift_drawings
from experiments.studies.shift.gains import WORDS, gain, scores
from experiments.studies.shift.grid import CASES, products
from experiments.studies.shift.instances import GONE, ShiftDraw, most_correlated
from experiments.studies.shift.methods import ESTIMATORS, ROBUST, group_scores, predict
from experiments.studies.shift.robust import RobustStatic
from experiments.studies.shift.tables import shift_sections


def shares(case):
    before, _, after = case.partition("-")
    word = before.split()[0]
    if case in GONE:
        return 0.2, 0.2
    if after.isdigit():
        return int(before.split()[1]) / 100, int(after) / 100
    return (0.3, 0.3) if word in ("mcar", "censoring", "new") else None


@pytest.mark.parametrize("case", CASES)
def test_laws(case):
    rows, same = ShiftDraw(case, 1000).make(), ShiftDraw("mcar 30-30", 1000).make()
    np.testing.assert_array_equal(rows.y_test, same.y_test)
    before, after = np.isnan(rows.X_train), np.isnan(rows.X_test)
    first, second = shares(case)
    gone = np.flatnonzero(after.all(axis=0))
    assert len(gone) == GONE.get(case, 0)
    np.testing.assert_allclose(before.mean(axis=0), first, atol=0.075)  # five standard errors of 1,000 rows
    np.testing.assert_allclose(np.delete(after, gone, axis=1).mean(axis=0), second, atol=0.055)
    if case == "new patterns":
        patterns = PatternTable.of(before).patterns
        shared = PatternTable.of(after[after.any(axis=1)]).patterns
        both = [m for m in patterns.tolist() if m in shared.tolist()]
        # pairs (0, 1), .. and (1, 2), .., (7, 0) have only the full pattern in common
        assert all(sum(m) == 8 for m in both)


def test_the_most_useful_feature_goes_first():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 3))
    X[:, 2] = 1.0
    y = X[:, 1] + 0.1 * X[:, 0]
    X[::3, 1] = np.nan
    assert most_correlated(X, y) == [1, 0, 2]


def test_scores_of_groups():
    X_train = np.array([[1.0, np.nan], [1.0, 1.0]])
    X_test = np.ones((120, 2))
    X_test[:40, 0], X_test[40:80, 1] = np.nan, np.nan
    y = np.tile([0.0, 1.0], 60)
    predicted = np.where(np.arange(120) < 40, 0.5, y)
    rows = StudyRows(X_train, y[:2], X_test, y, None, None, "regression")
    found = group_scores(rows, predicted)
    assert found == pytest.approx({"score": 2 / 3, "worst_feature": 0.0, "unseen": 0.0, "unseen_share": 1 / 3})
    assert group_scores(StudyRows(X_train, y[:2], X_test[:100], y[:100], None, None, "regression"), predicted[:100])[
        "worst_feature"
    ] == pytest.approx(0.0)


def rows_with_patterns(n=40, d=3):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, d))
    y = X @ [1.0, -1.0, 0.5] + 0.3 * rng.normal(size=n)
    return np.where(rng.uniform(size=X.shape) < 0.3, np.nan, X), y


def robust_value(model, X, y, w, b):
    """The objective of a robust program from its definition."""
    Z, unit = np.nan_to_num((X - np.nanmean(X, axis=0)) / np.nanstd(X, axis=0)), np.std(y)
    r = (y - np.mean(y)) / unit - b - Z @ w
    ridge = model.lam / (2 * len(y)) * w @ w
    if model.deletions:
        subsets = [D for k in range(model.deletions + 1) for D in combinations(range(X.shape[1]), k)]
        return np.mean(np.max([(r + Z[:, D] @ w[list(D)]) ** 2 for D in map(list, subsets)], axis=0)) + ridge
    table = PatternTable.of(np.isnan(X))
    losses = np.array([np.mean(r[table.codes == p] ** 2) for p in range(len(table.patterns))])
    order = np.argsort(-losses)
    share, left, total = table.counts / len(y), 1 - model.level, 0.0
    for p in order:  # the worst patterns, the last of them in part
        part = min(share[p], left)
        total, left = total + part * losses[p], left - part
    return total / (1 - model.level) + ridge


@pytest.mark.parametrize(
    "model",
    [RobustStatic(), RobustStatic(0.5), RobustStatic(0.9), RobustStatic(deletions=1), RobustStatic(deletions=2)],
)
def test_robust_programs_have_the_stated_value_and_no_better_neighbour(model):
    X, y = rows_with_patterns()
    model.fit(X, y)
    w, b = model.coef_ / np.std(y), (model.intercept_ - np.mean(y)) / np.std(y)
    assert robust_value(model, X, y, w, b) == pytest.approx(model.value_, rel=1e-6)
    rng = np.random.default_rng(0)
    for size in (1e-3, 0.1):
        others = [robust_value(model, X, y, w + size * rng.normal(size=3), b + size * rng.normal()) for _ in range(50)]
        assert min(others) >= model.value_ * (1 - 1e-7)
    Z = np.nan_to_num((X - np.nanmean(X, axis=0)) / np.nanstd(X, axis=0))
    np.testing.assert_allclose(model.predict(X), model.intercept_ + Z @ model.coef_)


def fabricated(effect=0.1):
    """Augmented methods are better by ``effect`` and a little noise."""
    rng, found = np.random.default_rng(0), []
    for product in products("laptop"):
        for instance in product.instances:
            for method in product.methods:
                options = method.parameters
                value = 0.5 + effect * options["augmented"] + 0.001 * rng.normal()
                identity = {"kind": type(instance).__name__, "status": "done", "method": method.name}
                found.append(
                    {**identity, **vars(instance), "score": value, "worst_feature": value - 0.1, "unseen": None}
                )
    return pl.DataFrame(found, infer_schema_length=None)


@pytest.mark.slow
def test_tables_claims_and_figure():
    table = fabricated()
    generated, real, over_generated, _, robust, claims = shift_sections(table)
    assert len(generated.rows) == len(CASES) * (len(ESTIMATORS) - len(ROBUST))
    verdicts = {row[1]: row[8] for row in generated.rows if row[0] == WORDS["one gone"]}
    assert verdicts["affine"] == "better"
    assert generated.rows[0][-1] == "-"
    assert len(robust.rows) == 3 * len(ROBUST)
    assert "better" in real.conclusion
    by_words = {each.claim.words: each.verdict for each in judge(CLAIMS, table)}
    assert by_words["training on further deletions helps: affine, MCAR 10 -> 50 % (+.073)"] == "confirmed"
    assert by_words["without shift, under censoring, it costs: affine (.02 to .05)"] == "not confirmed"
    assert len(claims.rows) == len(CLAIMS)
    assert {row[0] for row in over_generated.rows} >= {"affine", "affine, augmented"}
    (drawing,) = shift_drawings(table)
    assert len(drawing.rows) == len(generated.rows)
    assert shift_drawings(table.clear()) == []
    assert [section.rows for section in shift_sections(table.clear())] == [[]] * 6


def test_only_common_units_are_compared():
    table = fabricated().filter(~((pl.col("method") == "affine") & (pl.col("replicate") == 3)))
    found = gain(table, "generated", "one gone", "affine")
    assert set(found) == {str(k) for k in range(10)} - {"3"}
    assert mean_of([found, {"0": 1.0}]).keys() == {"0"}
    assert scores(table, "generated", "one gone", "nobody") == {}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["static", "shared", "finite greedy", "conditional mean", "joint", "stack"])
def test_methods_of_a_small_draw(name):
    rows = ShiftDraw("mcar 10-50", 100).make()
    for augmented in (False, True):
        found = predict(rows, 2**33, estimator=name, augmented=augmented)
        assert 0 < found["score"] < 1
        assert found["unseen_share"] > 0.5
        assert found == {**predict(rows, 2**33, estimator=name, augmented=augmented), "seconds": found["seconds"]}
