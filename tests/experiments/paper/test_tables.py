"""Tables of the paper's two studies on fabricated results, as text and as files."""

import csv

import numpy as np
import polars as pl
import pytest

from admiss.report import figures
from admiss.study.plan import Best
from admiss.study.report.presentation import Presentation
from admiss.study.report.results import write_results
from admiss.terminal.table import number, signed
from experiments.catalogue import CATALOGUE
from experiments.paper.claims import UNDECIDED, judge
from experiments.paper.commands import compare_paper
from experiments.paper.real_design.claims import REAL_DESIGN_CLAIMS
from experiments.paper.real_design.tables import real_design_sections
from experiments.paper.sections import claims_section
from experiments.paper.sets import by_set, of_design, wins_by_set
from experiments.paper.synthetic.tables import synthetic_sections
from tests.experiments.paper.fabricated import found, real_table, reference, synthetic_table

BEST = (Best("Adaptive LR - best", ("Affine intercept", "Affine", "Finite")),)
SECTIONS = {"synthetic": synthetic_sections, "real-design": real_design_sections}


def sections_of(table, name):
    return {section.title: section for section in SECTIONS[name](table, BEST)}


def test_authors_levels_are_within_and_shifted_ones_are_not():
    rows = found(sections_of(synthetic_table(), "synthetic")["Synthetic R2"], "Mean - best", "censoring", "nn")
    assert rows[0]["R2"] == "0.478"
    assert rows[0]["s.e."] == number(np.std(0.1 * np.arange(5), ddof=1) / np.sqrt(5))
    assert (rows[0]["cells"], rows[0]["printed"], rows[0]["within"]) == ("9", "0.469", "yes")
    for shift, forest, linear in ((0.012, "yes", "no"), (-0.017, "no", "no")):
        table = synthetic_table(lambda *setting, shift=shift: reference(*setting) + shift)
        sections = sections_of(table, "synthetic")
        assert {row["within"] for row in found(sections["Synthetic R2"], "RF MIA")} == {forest}
        assert {row["within"] for row in found(sections["Synthetic R2"], "CART MIA")} == {linear}
        finite = found(sections["Synthetic R2 by adaptivity level"], "Finite")
        assert [row["within"] for row in finite] == [linear, linear, "not compared", "not compared"]


def test_affine_under_censoring_is_compared_without_the_run_that_exploded():
    section = sections_of(synthetic_table(), "synthetic")["Synthetic R2 by adaptivity level"]
    (row,) = found(section, "Affine", "censoring", "nn")
    assert (row["authors n >= 40"], row["compared"], row["difference"][-3:], row["within"]) == (
        "0.535",
        "0.562",
        "000",
        "yes",
    )


def test_tables_by_n_fraction_depth_seconds_and_choices():
    table = synthetic_table(
        depth=lambda method, n, p, mechanism: 9 - np.log(n),
        selected_depth=lambda method, n, p, mechanism: 10 - np.log(n),
        seconds=lambda method, n, p, mechanism: 10 * p,
        r2_authors=lambda method, n, p, mechanism: np.log(n) * p,
    )
    sections = sections_of(table, "synthetic")
    assert found(sections["R2 by n"], "mcar", "nn", "200")[0]["Affine"] == number(np.log(200) * 0.45)
    assert found(sections["R2 by n"], "mcar", "nn", "200")[0]["cells"] == "3"
    mean_log = np.mean(np.log(np.arange(40, 1001, 20)))
    assert found(sections["R2 by missing fraction"], "mcar", "nn", "0.3")[0]["XGBoost"] == number(0.3 * mean_log)
    for title, most in (("Selected", 10), ("Grown", 9)):
        depth = found(sections[f"{title} depth of the finite model by n"], "censoring", "nn", "1000")[0]["Finite"]
        assert depth == number(most - np.log(1000), 2)
    assert not any("Selected" in title for title in sections_of(table.drop("selected_depth"), "synthetic"))
    (row,) = found(sections["Synthetic seconds"], "XGBoost", "mcar", "linear")
    assert (row["seconds"], row["printed"], row["ratio"]) == ("4.500", "87.768", number(87.768 / 4.5, 1))
    chosen = found(sections["Chosen members"], "Adaptive LR - best", "mcar", "nn")
    assert [(row["member"], row["share"]) for row in chosen] == [
        ("Affine intercept", "0.000"),
        ("Affine", number(1 / 3)),
        ("Finite", number(2 / 3)),
    ]


@pytest.mark.parametrize(("sizes", "over"), [((40, 1000), "grid"), ((100, 500), "run")])
def test_fresh_draws_give_differences(sizes, over):
    table = synthetic_table(sizes=sizes, kind="TextInstance")
    sections = sections_of(table, "synthetic")
    (row,) = found(sections["Differences on fresh draws"], "mice - best", "mcar", "nn")
    assert (row["instances"], row["over"], row["authors"]) == ("30", over, "+0.025")
    assert float(row["difference"]) == pytest.approx(0.025, abs=0.002)
    assert 0 <= float(row["s.e."]) < 0.002
    assert sections["Synthetic R2"].rows == []  # fresh draws are no levels


def test_incomplete_tables_have_no_numbers_and_no_errors():
    full = synthetic_table()
    empty = sections_of(full.clear(), "synthetic")
    assert all(section.rows == [] for title, section in empty.items() if title != "Chosen members")
    assert "28 averages are not given" in empty["Synthetic R2"].text
    text = compare_paper(full.clear(), CATALOGUE["synthetic"])
    assert "| method | mechanism | signal | cells | R2 |" not in text
    some = full.filter(pl.col("method") != "Affine", pl.col("mechanism") == "mcar")
    section = sections_of(some, "synthetic")["Synthetic R2 by adaptivity level"]
    assert [row[:3] for row in section.rows] == [
        [method, "mcar", signal] for method in ("Affine intercept", "Finite") for signal in ("linear", "nn")
    ]
    assert "8 averages are not given" in section.text
    few = full.filter(pl.col("n") < 1000)
    assert sections_of(few, "synthetic")["Synthetic R2"].rows == []
    failed = full.with_columns(pl.lit("failed").alias("status"), pl.lit(None, pl.Float64).alias("r2_authors"))
    assert sections_of(failed, "synthetic")["Synthetic R2"].rows == []


def test_moves_of_the_joint_search():
    table = synthetic_table().with_columns(
        pl.when(pl.col("method") == "Mean - linear")
        .then(0)
        .when(pl.col("method") == "Finite")
        .then(pl.col("n"))
        .alias("moves")
    )
    section = sections_of(table, "synthetic")["Moves of the joint search"]
    assert [row[0] for row in section.rows] == ["Finite", "Mean - linear"]
    assert [row[2:] for row in section.rows] == [["0.000", "200"], ["1.000", "0"]]
    assert "For Mean - linear that is nearly every cell" in section.text
    assert "Moves of the joint search" not in sections_of(synthetic_table(), "synthetic")


def test_accuracy_by_design():
    def level(method, design, k):
        return 0.5 + {"mar": 0.0, "nmar": 0.01, "am": 0.02}.get(design, 0.1) + 0.03 * (method == "Joint - best")

    table = real_table(level)
    sections = sections_of(table, "real-design")
    (row,) = found(sections["Accuracy by design"], "Joint - best", "am")
    assert (row["sets"], row["instances"], row["printed"]) == ("8", "48", "0.546")
    am = table.filter(pl.col("design") == "am", pl.col("signal") != "tree", pl.col("method") == "Joint - best")
    assert row["over instances"] == number(am["score"].mean())
    assert row["difference"] == signed(am["score"].mean() - 0.546)
    (row,) = found(sections["Differences by design"], "Joint - best", "am")
    assert float(row["difference"]) == pytest.approx(0.03, abs=0.002)
    assert float(row["s.e."]) < 0.002  # sets differ by far more than paired differences do
    assert row["difference of printed"] == "+0.014"
    assert found(sections["Accuracy by design"], "Oracle - best", "real")[0]["over instances"] == "-"
    assert (row["sets"], found(sections["Accuracy by design"], "Joint - best", "am")[0]["below -1"]) == ("8", "0.000")
    assert found(sections["R2 by missing features"], "nmar", "0.5", "mice - best")[0]["printed"] == "0.505"
    assert float(found(sections["Tree signals"], "XGBoost", "mar")[0]["over sets"]) > 4
    assert [row["sets"] for row in found(sections["Real targets by task"], "XGBoost")] == ["4", "4"]
    assert found(sections["Win rates"], "Joint - best", "real, binary")[0]["win rate"] == "1.000"
    assert found(sections["Seconds by design"], "Finite", "am")[0]["seconds"] == "1.00"


def test_medians_and_shares_of_far_off_fits():
    table = real_table(lambda method, design, k: 0.5, spread=0)
    off = (pl.col("dataset") == "set 0") & (pl.col("k_missing") == 5) & (pl.col("method") == "Affine")
    table = table.with_columns(pl.when(off).then(-500.0).otherwise(pl.col("score")).alias("score"))
    (row,) = found(sections_of(table, "real-design")["Accuracy by design"], "Affine", "am")
    assert float(row["over sets"]) < -10
    assert float(row["median of sets"]) == pytest.approx(0.5, abs=0.01)
    assert row["below -1"] == number(2 / 48)
    rows = found(claims_section(REAL_DESIGN_CLAIMS, table, clipped=True))
    (row,) = [row for row in rows if row["claim"] == "affine intercept and affine have comparable performance"]
    assert float(row["value"]) > 10  # all scores as they are
    assert row["verdict"] == UNDECIDED
    close = table.with_columns(pl.col("score").clip(-1.0))
    clipped = judge(REAL_DESIGN_CLAIMS, close)
    assert [row["clipped at -1"] for row in rows] == [each.verdict for each in clipped]


def test_sets_are_averaged_first_and_methods_share_instances():
    table = real_table(lambda method, design, k: float(k or 0), sets=2, spread=0)
    odd = (pl.col("dataset") == "set 0") & (pl.col("k_missing") == 10) & (pl.col("method") == "Affine")
    table = table.filter(~odd)
    sets = by_set(of_design(table, "mar"), ["Affine", "Finite"])
    assert sets["Affine"].to_list() == pytest.approx([2.5, 5.0], abs=0.01)
    assert sets["Finite"].to_list() == pytest.approx([2.5, 5.0], abs=0.01)


def test_ties_are_half_wins():
    table = real_table(lambda method, design, k: 0.5, sets=2).with_columns(pl.lit(0.5).alias("score"))
    assert wins_by_set(of_design(table, "mar"), "Joint - best", "Mean - best")["wins"].to_list() == [0.5, 0.5]


@pytest.mark.slow
def test_incomplete_tables_of_real_designs():
    full = real_table(lambda method, design, k: 0.5, sets=2)
    for table in (
        full.clear(),
        full.filter(pl.col("kind") == "RealTarget"),
        full.drop("k_missing", "design", "signal"),
    ):
        sections = sections_of(table, "real-design")
        assert found(sections["Accuracy by design"], "Affine intercept", "am")[0]["over sets"] == "-"
    single = full.filter(pl.col("dataset") == "set 0")
    (row,) = found(sections_of(single, "real-design")["Accuracy by design"], "Affine", "am")
    assert row["over sets"] != "-"
    assert row["s.e."] == "-"


@pytest.mark.slow
def test_text_and_files(tmp_path, monkeypatch):
    # The other forms are made of the same figures, which the tests of reports check.
    monkeypatch.setattr(figures, "FORMS", {"svg": figures.FORMS["svg"]})
    table = synthetic_table()
    text = compare_paper(table, CATALOGUE["synthetic"])
    assert "| Mean - best | censoring | nn | 9 | 0.478 |" in text
    assert "## Claims" in text
    assert text.splitlines()[-1].startswith("50 claims: ")
    arguments = (CATALOGUE["synthetic"], tmp_path, "python -m experiments run synthetic", {"polars": "1"})
    paths = write_results(table, *arguments)
    names = [path.name for path in paths]
    assert {"synthetic-r2.csv", "r2-by-n.csv", "claims.csv", "README.md"} <= set(names)
    readme = (tmp_path / "README.md").read_text()
    for words in ("    python -m experiments run synthetic", "* digest: abc", "* machine: here", "* polars: 1"):
        assert words in readme.splitlines()
    with (tmp_path / "synthetic-r2-by-adaptivity-level.csv").open() as lines:
        rows = list(csv.DictReader(lines))
    assert [row["compared"] for row in rows][-2:] == ["", ""]
    before = {path: path.read_bytes() for path in paths}
    shuffled = table.sample(fraction=1.0, shuffle=True, seed=1)
    write_results(shuffled, *arguments)
    assert {path: path.read_bytes() for path in paths} == before


def test_studies_without_tables_of_the_paper():
    assert "no tables" in compare_paper(pl.DataFrame({"kind": []}), Presentation(CATALOGUE["synthetic"].study))
