"""The study of classes: which classes run where, and its table on rows that are made up."""

import numpy as np
import polars as pl
import pytest

from experiments.studies.classes.grid import METHODS, REFERENCE, STUDY, InteractingDraw
from experiments.studies.classes.tables import classes_sections


def test_every_class_runs_on_generated_rows_and_small_ones_on_wide_sets():
    generated, *real = STUDY.products("laptop")
    names = [method.name for method in METHODS]
    assert [method.name for method in generated.methods] == names
    assert len(real) == 36
    by_set = {each.instances[0].dataset: {method.name for method in each.methods} for each in real}
    assert by_set["MASS-Pima.tr2"] == set(names)
    assert set(names) - by_set["arrhythmia"] == {"affine", "polynomial 2", "fully adaptive", "low rank", "fused"}


def test_draws_differ_and_repeat():
    first, again, other = (InteractingDraw(50, 6, r).make().X_train for r in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other, equal_nan=True)


def made_up(scores):
    """A table of two groups: draws, and real sets on one of which a method was not run."""
    rows = []
    for method, gain in scores.items():
        for r in range(1, 7):
            rows.append(("InteractingDraw", method, r, None, 0.1 * r + gain + 1e-4 * (r % 2)))
        for k, name in enumerate("abcd"):
            if not (method == "fused" and name == "a"):
                rows.append(("RealTarget", method, None, name, 0.2 * k - gain + 1e-4 * (k % 2)))
    columns = ["kind", "method", "replicate", "dataset", "score"]
    return pl.DataFrame(rows, schema=columns, orient="row").with_columns(
        pl.lit("done").alias("status"), pl.lit(1.0).alias("seconds"), pl.lit(0.25).alias("reliance")
    )


def test_differences_are_paired_over_units():
    found = {each.title: each for each in classes_sections(made_up({REFERENCE: 0.0, "shared": 0.05, "fused": -0.2}))}
    table = {row[0]: dict(zip(found["Classes"].header, row, strict=True)) for row in found["Classes"].rows}
    assert table[REFERENCE]["interacting"] == "0.350"
    assert table["shared"]["interacting: difference"].startswith("+0.050")
    assert table["shared"]["interacting: difference"].endswith("(6)")
    assert table["fused"]["real: difference"].endswith("(3)")
    assert table["binned"]["real"] == "-"
    assert found["Reliance and seconds"].rows[0][0] == "static"


@pytest.mark.parametrize("noise", [0.01, 10.0])
def test_verdicts_are_adjusted(noise):
    table = made_up({REFERENCE: 0.0, "shared": 0.05})
    rng = np.random.default_rng(0)
    noisy = table.with_columns(pl.col("score") + noise * pl.Series(rng.normal(size=table.height)))
    section = classes_sections(noisy)[0]
    row = dict(zip(section.header, next(row for row in section.rows if row[0] == "shared"), strict=True))
    assert row["interacting: verdict"] == ("better" if noise < 1 else "undecided")
    assert ("interacting: better" in section.conclusion) == (noise < 1)


def test_no_table_without_the_reference():
    assert classes_sections(made_up({"shared": 0.0})) == []
