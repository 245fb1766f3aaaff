"""The 63 data sets: the printed tables, the encodings, and the user interface."""

import dataclasses

import numpy as np
import pytest

from admiss.datasets import list_datasets, load_dataset, real_target_rows, summary
from admiss.datasets.paper.encodings import encode_authors, encode_clean, one_hot
from admiss.datasets.paper.raw_tables import read_raw
from admiss.datasets.paper.registry import Encoding, Record, registry

NAMES = [
    pytest.param(name, marks=[pytest.mark.data] if record.source == "uci" else [])
    for name, record in registry().items()
]
# Rows left by the authors' filter, if it drops some.
REAL_TARGET_ROWS = {
    "MASS-Cars93": 91, "MASS-Pima.tr2": 298, "Ecdat-RetSchool": 3076, "survival-mgus": 237, "car-Chile": 2531,
    "survival-cancer": 226, "arrhythmia": 450, "heart-disease-hungarian": 293, "heart-disease-switzerland": 121,
    "hepatitis": 153, "echocardiogram": 127, "thyroid-disease-allbp": 2794, "thyroid-disease-allhyper": 2794,
    "thyroid-disease-allhypo": 2794, "thyroid-disease-allrep": 2794, "thyroid-disease-dis": 2794,
    "thyroid-disease-sick": 2794, "thyroid-disease-sick-euthyroid": 3159, "horse-colic": 287,
    "communities-and-crime": 1993, "communities-and-crime-2": 1993, "wiki4he": 775,
}  # fmt: skip
# (missing categorical, patterns) counted by variable, if the printed ones differ.
BY_VARIABLE = {
    "heart-disease-cleveland": (7, 3), "COUNT-loomis": (9, 6), "shuttle-landing-control": (14, 7),
    "congressional-voting-records": (32, 76), "lung-cancer": (6, 3), "soybean-large": (96, 8), "rpart-stagec": (2, 4),
    "mlmRev-star": (25, 19), "heart-disease-hungarian": (14, 16),
    "ggplot2-msleep": (10, 16),
    "MASS-survey": (13, 8), "thyroid-disease-sick": (2, 25), "survival-pbc": (12, 9),
    "thyroid-disease-sick-euthyroid": (2, 23), "horse-colic": (50, 186), "plyr-baseball": (6, 18),
    "communities-and-crime": (3, 3), "communities-and-crime-2": (3, 3), "wiki4he": (23, 236),
}  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_the_printed_row(name):
    record = registry()[name]
    data = load_dataset(name, encoding="authors")
    assert dataclasses.astuple(summary(data)) == record.paper
    if data.y is not None:
        assert len(real_target_rows(data).y) == REAL_TARGET_ROWS.get(name, record.paper[0])


@pytest.mark.parametrize("name", NAMES)
def test_the_clean_encoding(name):
    record = registry()[name]
    data = load_dataset(name)
    found = summary(data)
    assert (found.n, found.d, found.patterns) == record.clean
    if name in BY_VARIABLE:
        assert (found.missing_categorical, found.patterns) == BY_VARIABLE[name]
    assert not np.isinf(data.X).any()
    assert (np.nanmin(data.X, axis=0) > -np.inf).all()
    assert len(set(data.feature_names)) == found.d
    # Indicators of a variable are 0 or 1 and sum to 1.
    for variable in {origin.variable for origin in data.origin if origin.kind != "number"}:
        columns = [j for j, origin in enumerate(data.origin) if origin.variable == variable]
        np.testing.assert_array_equal(data.X[:, columns].sum(axis=1), 1.0)
        assert np.isin(data.X[:, columns], (0, 1)).all()
    check_both_forms(data)
    if data.task is None:
        assert data.y is None
        return
    assert len(data.y) == found.n
    assert record.encodings["clean"].target not in {origin.variable for origin in data.origin}
    if data.task == "regression":
        assert np.isfinite(data.y).all()
    elif data.task == "binary":
        assert set(data.y) == {0, 1}
    else:
        assert len(set(data.y)) > 2


def check_both_forms(data):
    """With and without levels for missing, the data are the same."""
    M, other = data.M, data.without_missing_levels()
    np.testing.assert_array_equal(np.isnan(other.X), M)
    np.testing.assert_array_equal(other.M, M)
    columns = [j for j, origin in enumerate(data.origin) if origin.kind != "missing"]
    assert other.feature_names == [data.feature_names[j] for j in columns]
    np.testing.assert_array_equal(other.X[~M], data.X[:, columns][~M])


@pytest.mark.data
def test_targets_that_the_authors_got_wrong():
    leak = load_dataset("arrhythmia", encoding="authors")
    assert any(np.array_equal(leak.y, column) for column in leak.X.T)
    clean = load_dataset("arrhythmia")
    assert clean.y.sum() == 452 - 245
    assert "irradiat" in load_dataset("breast-cancer", "authors").target
    assert load_dataset("breast-cancer").y.sum() == 85
    assert load_dataset("echocardiogram", "authors").y.sum() == 50
    assert len(load_dataset("echocardiogram").y) == 74
    original = load_dataset("breast-cancer-wisconsin-original", "authors")
    assert original.y.sum() == 462
    assert load_dataset("breast-cancer-wisconsin-original").y.sum() == 241
    for name in ("arrhythmia", "breast-cancer", "dermatology", "echocardiogram"):
        assert load_dataset(name).cautions


@pytest.mark.data
def test_cautions_are_true():
    def both(name):
        return load_dataset(name), load_dataset(name, "authors")

    def rows_that_differ(clean, authors, variable):
        X, Y = (data.X[:, [origin.variable == variable for origin in data.origin]] for data in (clean, authors))
        return int((X != Y).any(axis=1).sum())

    assert rows_that_differ(*both("auto-mpg"), "cylinders") == 24
    assert rows_that_differ(*both("auto-mpg"), "origin") == 0
    clean, authors = both("breast-cancer-wisconsin-original")
    assert (clean.y == authors.y).sum() == 4  # 1 is malignant here, benign there
    for name, there, here in (("allbp", 9, 133), ("allhyper", 8, 77), ("allhypo", 154, 220)):
        clean, authors = both(f"thyroid-disease-{name}")
        assert (authors.y.sum(), clean.y.sum()) == (there, here)
    va, switzerland = load_dataset("heart-disease-va"), load_dataset("heart-disease-switzerland")
    assert np.isnan(va.X[:, va.feature_names.index("chol")]).sum() == 7 + 49
    assert (switzerland.y == 0).sum() == 8
    assert "chol" not in {origin.variable for origin in switzerland.origin}
    assert not any("futime" in name for name in load_dataset("survival-mgus").feature_names)


def test_targets_of_r_sets():
    assert load_dataset("rpart-car.test.frame", "authors").y.sum() == 1
    assert load_dataset("rpart-car.test.frame").task == "regression"
    assert load_dataset("survival-mgus", "authors").y.sum() == 57
    assert load_dataset("survival-mgus").y.sum() == 241 - 57
    assert set(load_dataset("car-Chile").y) == {"A", "N", "U", "Y"}


def test_list_of_data_sets():
    table = list_datasets()
    assert table.n_rows == 63
    assert list(table["name"]) == list(registry())
    printed = list_datasets("authors")
    assert (printed["task"] == "none").sum() == 17
    assert int(printed["n"][list(printed["name"]).index("ggplot2-movies")]) == 58788
    assert str(table).count("\n") == 63
    assert max(map(len, str(table).splitlines())) < 200
    assert all(table["licence"] != "")


def test_frames_keep_the_names():
    data = load_dataset("datasets-airquality")
    for backend in ("pandas", "polars"):
        frame = data.to_frame(backend)
        assert list(frame.columns) == data.feature_names
        np.testing.assert_array_equal(frame.to_numpy(), data.X)
    assert "153 rows, 4 features, no target" in repr(data)


def test_error_messages():
    with pytest.raises(ValueError, match="did you mean 'mushroom'"):
        load_dataset("mushrom")
    with pytest.raises(ValueError, match="choose 'clean' or 'authors'"):
        load_dataset("auto-mpg", encoding="text")
    with pytest.raises(ValueError, match="choose 'clean' or 'authors'"):
        list_datasets("text")
    with pytest.raises(ValueError, match="has no target"):
        real_target_rows(load_dataset("car-Davis", "authors"))


def record_of(encodings, **facts):
    return Record(
        name="toy", source="uci", sha256="", licence="", columns=(), clean=(0, 0, 0), paper=(0, 0, 0, 0, 0, 0, "bin."),
        encodings=encodings, **facts,
    )  # fmt: skip


def test_quirks_on_a_toy_table():
    """Prefixes, joins by id, words among numbers and missing targets, on a table small enough to check by eye."""
    words = np.array(["a", None, "b", "b", "a", "a", "b"], dtype=object)
    flags = np.array([1.0, 0.0, np.nan, 1.0, 0.0, 1.0, 1.0])
    numbers = np.array(["1", "2.5", "rotary", None, "3", "4", "5"], dtype=object)
    target = np.array([1.0, 0.0, 1.0, np.nan, 0.0, 1.0, 1.0])
    ids = np.array(["p", "q", "r", "s", "s", "t", "u"], dtype=object)
    table = {"words": words, "flags": flags, "numbers": numbers, "y": target, "id": ids}
    features = ("words", "flags", "numbers")
    authors = Encoding("y", features, frozenset({"words", "flags"}), joined_by="id")
    clean = Encoding("y", features, frozenset({"words", "flags"}))
    record = record_of({"clean": clean, "authors": authors}, positive="1", also_missing=("rotary",))

    data = encode_authors(record, table)
    assert data.feature_names == [
        "words=a",
        "words=b",
        "words=missing",
        "flags=0",
        "flags=1",
        "flags=missing",
        "numbers",
    ]
    # Rows 3 and 4 share an id: both are a and b, and both flags.
    np.testing.assert_array_equal(data.X[3:5, :5], [[1, 1, 0, 1, 1], [1, 1, 0, 1, 1]])
    # words (CC) is missing in row 1, so all indicators are; flags (CC_1) in row 2, so only its own. A word is not NaN.
    M = data.M.astype(int)
    np.testing.assert_array_equal(M[1], [1, 1, 1, 1, 0])
    np.testing.assert_array_equal(M[2], [0, 0, 1, 1, 0])
    np.testing.assert_array_equal(M[3], [0, 0, 0, 0, 1])
    # y is 1 for the level 0, in row 3 through the id.
    np.testing.assert_array_equal(data.y, [0, 1, 0, 1, 1, 0, 0])

    data = encode_clean(record, table)
    np.testing.assert_array_equal(data.y, [1, 0, 1, 0, 1, 1])
    np.testing.assert_array_equal(data.X[:, -1], [1, 2.5, np.nan, 3, 4, 5])
    np.testing.assert_array_equal(data.M.astype(int)[1], [1, 1, 0, 0, 0])
    with pytest.raises(ValueError, match="words among its numbers"):
        encode_clean(record_of({"clean": clean}, positive="1"), table)


def test_levels_in_the_order_of_numbers():
    columns = one_hot("x", np.array([10.0, 2.0, np.nan]))
    assert [origin.column for origin, _ in columns] == ["x=2", "x=10", "x=missing"]


def test_raw_columns_are_numbers_or_words():
    table = read_raw(registry()["MASS-Cars93"])
    assert table["Cylinders"].dtype == object
    assert "rotary" in table["Cylinders"]
    assert sum(value == "None" for value in table["AirBags"]) == 34
    assert table["Price"].dtype == float
