"""Features: IDs, dates, text with few and many values, copies, and --drop and --keep."""

import numpy as np
import pandas as pd
import pytest

from admiss.tables import read_table

N = 60


def values(table, name):
    return table.X[:, table.names.index(name)]


def customers(n=600, seed=7):
    """A year, an income, "?" and "NA", a constant, a copy, an ID, a date and a zip code."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({
        "customer_id": np.arange(100_000, 100_000 + n),
        "signup": pd.date_range("2015-01-01", periods=n, freq="17h").astype(str),
        "year": rng.integers(1990, 2024, n).astype(float),
        "region": rng.choice(["North", "South", "East", "West", "?"], n),
        "plan": rng.choice(["basic", "pro", "NA", "enterprise"], n),
        "income": np.exp(rng.normal(10, 1.5, n)),
        "bp": rng.normal(130, 15, n),
        "const": 1.0,
        "zip": rng.choice([f"Z{k:03d}" for k in range(150)], n),
    })  # fmt: skip
    for column in ("year", "income", "bp"):
        frame.loc[rng.random(n) < 0.25, column] = np.nan
    return frame.assign(bp_copy=frame.bp, y=rng.normal(size=n), churn=rng.choice(["yes", "no"], n))


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_customers(here, note, ending):
    frame = customers()
    frame.to_csv("t.csv", index=False) if ending == "csv" else frame.to_parquet("t.parquet")
    table = read_table(f"t.{ending}", "y", drop=["churn"])
    numbers = ["income", "bp", "year"]
    assert [name for name in table.names if "=" not in name] == ["signup", "year", "income", "bp"]
    np.testing.assert_allclose(np.column_stack([values(table, name) for name in numbers]), frame[numbers], rtol=1e-15)
    assert [name for name in table.names if name.startswith(("region", "plan"))] == [
        "region=East", "region=North", "region=South", "region=West", "plan=basic", "plan=enterprise", "plan=pro"
    ]  # fmt: skip
    zips = [name for name in table.names if name.startswith("zip=")]
    assert len(zips) == 11
    assert (sum(values(table, name) for name in zips) == 1).all()
    assert np.isnan(values(table, "region=East")).sum() == (frame.region == "?").sum()
    np.testing.assert_allclose(values(table, "signup"), np.arange(600) * 17 / 24, atol=1e-9)
    assert "--task regression or --task classification decides" in note(table, "y is a number with 600 distinct values")
    assert "signup (since 2015-01-01); --drop signup" in note(table, "Dates")
    assert "region (4 values) and plan (3 values); --drop NAME" in note(table, "0/1 columns of its values")
    assert "--keep zip uses every value" in note(table, "zip (10 of ")
    assert "const; --keep const" in note(table, "all values are equal")
    assert "customer_id; --keep customer_id" in note(table, "ID")
    assert "bp_copy (of bp); --keep bp_copy" in note(table, "copy")
    assert len(table.notes) == 7
    kept = read_table(f"t.{ending}", "churn", keep=["zip", "customer_id", "bp_copy", "const"], drop=["y"])
    assert kept.task == "classification"
    assert set(kept.y) == {"yes", "no"}
    assert sum(name.startswith("zip=") for name in kept.names) == frame.zip.nunique()
    assert {"customer_id", "bp_copy", "const"} < set(kept.names)
    assert "customer_id, const and bp_copy" in note(kept, "Used as --keep says")


@pytest.mark.parametrize(
    ("name", "column", "is_id"),
    [
        ("n", np.arange(N), True),
        ("n", np.random.default_rng(0).permutation(N) + 5000, True),
        ("n", np.random.default_rng(0).permutation(10**6)[:N], True),
        ("n", [f"C-{i}" for i in range(N)], True),
        ("n", [f"C-{i}" if i else None for i in range(N)], True),
        ("n", [12345678901234567890 + i for i in range(N)], True),
        ("clientId", np.arange(N) ** 3 + 1, True),
        ("PID", np.arange(N) ** 3 + 526301100, True),
        ("Order No", [i**3 if i % 5 else None for i in range(N)], True),
        ("population", np.arange(N) ** 3 + 1, False),
        ("n", np.exp(np.random.default_rng(0).normal(10, 1, N)).round(), False),
        ("n", [i if i % 5 else None for i in range(N)], False),
        ("n", np.arange(N) + 1950, False),
        ("n", np.arange(N) + 0.25, False),
        ("n", np.arange(N) // 2, False),
        ("day", pd.date_range("2020-01-01", periods=N), False),
    ],
)  # fmt: skip
def test_ids(read, name, column, is_id):
    table = read({name: column, "x": (1.5, 2.5, 7)})
    assert (name not in table.names) == is_id
    assert any("as an ID" in text for text in table.notes) == is_id
    kept = read({name: column, "x": (1.5, 2.5, 7)}, keep=[name])
    assert name in kept.names
    assert np.isfinite(values(kept, name)).sum() == pd.Series(column).notna().sum()


def test_few_rows_have_no_ids(here):
    pd.DataFrame({"a": ["x", "y", "z"], "b": [1, 2, 3], "y": [0.5, 1.5, 3]}).to_csv("t.csv", index=False)
    assert read_table("t.csv", "y").names == ["a=x", "a=y", "a=z", "b"]


def test_few_values_of_text(read, note):
    table = read({"a": ("x", " y ", None, "z"), "b": ("no", "yes", "?"), "c": ("true", "False", ""), "d": ("on", None)})
    assert table.names == ["a=x", "a=y", "a=z", "b=yes", "c", "d=on"]
    np.testing.assert_array_equal(table.X[:4, 1], [0, 1, np.nan, 0])
    np.testing.assert_array_equal(table.X[:3, 3], [0, 1, np.nan])
    np.testing.assert_array_equal(table.X[:3, 4], [1, 0, np.nan])
    np.testing.assert_array_equal(table.X[:2, 5], [1, np.nan])
    note(table, "0/1 columns of its values: a (3 values) and b (2 values); --drop NAME leaves one out")
    note(table, "Only the missing values can matter, as all others are equal: d; --drop d leaves it out")


def test_many_values_of_text(read, note):
    rare = [f"rare {i}" for i in range(N)]
    town = [("Rom", "Oslo")[i % 2] if i < 30 else rare[i] for i in range(N)]
    word = [f"w{i // 2}" for i in range(N)]
    table = read({"town": town, "word": word, "long": [f"a long text {i % 6} " + "." * 80 for i in range(N)]})
    assert table.names[:3] == ["town=Oslo", "town=Rom", "town=other values"]
    np.testing.assert_array_equal(table.X[[0, 1, 40], :3], [[0, 1, 0], [1, 0, 0], [0, 0, 1]])
    note(
        table, "most frequent values and one of all others: town (2 of 32 values); --keep town uses every value, --drop"
    )
    note(table, "none is frequent: word (30 values); --keep word uses every value")
    assert len(table.names) == 3 + 6
    assert max(map(len, table.names)) <= 64


def test_kept_text(read, note):
    word = [f"w{i // 2:02d}" for i in range(N)]
    code = [f"c{(7 * i) % N:02d}" for i in range(N)]
    table = read({"word": word, "code": code, "none": [None] * N}, keep=["word", "code", "none"])
    assert table.names == [*sorted({f"word={text}" for text in word}), "code", "none"]
    np.testing.assert_array_equal(table.X[:, -2], [(7 * i) % N for i in range(N)])
    assert np.isnan(table.X[:, -1]).all()
    note(table, "0/1 columns of all its values, as --keep says: word (30 values)")
    note(table, "position of each value in alphabetical order, as --keep says: code (60 values)")
    note(table, "Used as --keep says: none")


def test_columns_without_information(read, note):
    half = [1.5 if i % 2 else None for i in range(N)]
    table = read(
        {
            "a": (1.5, 2),
            "b": (2.5,),
            "c": ("same",),
            "d": ("NA", "?"),
            "e": (1.5, 2),
            "f": half,
            "g": ("x", "y"),
            "h": ("x", "y"),
        }
    )
    assert table.names == ["a", "f", "g=y"]
    note(table, "all values are equal: b and c; --keep NAME uses one")
    note(table, "every value is missing: d; --keep d")
    note(table, "exact copy: e (of a) and h (of g); --keep NAME")
    note(table, "all others are equal: f; --drop f")
    kept = read({"a": (1.5, 2), "b": (2.5,), "c": ("same",), "e": (1.5, 2)}, keep=["b", "c", "e"])
    assert kept.names == ["a", "b", "c=same", "e"]
    assert read({"a": (1.5, 2), "e": (1.5, 2)}, drop=["a"]).names == ["e"]


def test_constants_are_those_of_rows_with_a_target(here, note):
    pd.DataFrame({"a": [1.0] * 9 + [2], "b": range(10), "y": [*np.arange(9) + 0.5, None]}).to_csv("t.csv", index=False)
    table = read_table("t.csv", "y")
    assert table.names == ["b"]
    note(table, "1 row without y is left out")


def test_infinite_values(read, note):
    table = read({"a": (1.5, np.inf, -np.inf, 3)})
    np.testing.assert_array_equal(table.X[:4, 0], [1.5, np.nan, np.nan, 3])
    note(table, "Infinite values are treated as missing: a (30)")


def test_two_hundred_columns_of_text_are_one_note(read):
    table = read({f"c{j}": ("u", "v", "w", str(j)) for j in range(200)})
    assert len(table.names) == 800
    assert len(table.notes) == 2
    assert (
        "c0 (4 values), c1 (4 values), c2 (4 values), c3 (4 values), c4 (4 values), c5 (4 values) and 194 more"
        in table.notes[1]
    )


def test_names_of_features_differ(read):
    table = read(
        {"a": ("x", "y", "z"), "a=x": (1.5, 3), "b": ("other values", *(f"v{i}" for i in range(59)))}, keep=["b"]
    )
    assert len(set(table.names)) == len(table.names)
    assert "a=x (2)" in table.names


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"drop": ["x1"]}, "t.csv has no column 'x1': it has y, x and z. Did you mean 'x'?"),
        ({"keep": ["other"]}, "t.csv has no column 'other': it has y, x and z."),
        ({"drop": ["x", "z"], "keep": ["z"]}, "z cannot be both dropped and kept: use --drop or --keep, not both."),
        ({"drop": ["y"]}, "y is the target: --drop and --keep are for other columns."),
        ({"drop": ["x"]}, "t.csv has no features to predict y from. Left out, as all values are equal: z; --keep z"),
    ],
)  # fmt: skip
def test_names_that_cannot_be_dropped_or_kept(read, options, sentence):
    with pytest.raises(ValueError, match=sentence.replace("?", r"\?")):
        read({"x": (1.5, 2), "z": (1,)}, **options)


def test_rows_as_a_data_frame(read):
    frame = read({"x": (1.5, None), "z": ("u", "v", "w")}).features(np.array([1, 3]))
    assert frame.shape == (2, 4)
    np.testing.assert_array_equal(np.asarray(frame["z=v"]), [1.0, 0.0])
