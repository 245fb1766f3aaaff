"""The paper's studies in reports: values, units, tables beside the paper's, and figures."""

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import experiments.paper
from admiss.study.report.page import make_filters, write_report
from experiments.catalogue import CATALOGUE
from experiments.paper.labels import LABELS
from tests.admiss.study.report.report_tables import FACTS, partitions, real_design, synthetic

PAPER = Path(experiments.paper.__file__).parent


def bound(study):
    """A drawn study in place of the one of the same name."""
    return replace(CATALOGUE[study.name], study=study, sections=lambda table: ())


def drawn(table, study):
    presentation = bound(study)
    return {drawing.name: drawing for drawing in presentation.figures(presentation.rows(table))}


def test_levels_outside_the_averages_are_not_selected_at_first():
    study, table = real_design(sets=3)
    filters = {each.name: each for each in make_filters(bound(study).rows(table), study, LABELS)}
    signal = filters["signal"]
    assert dict(zip(signal.levels, signal.selected, strict=True)) == {
        "linear": True, "nn": True, "tree": False, "real": True,
    }  # fmt: skip
    assert filters["task"].levels == ["classification", "regression"]


def test_paper_table_has_interpolated_averages():
    study, table = synthetic(sizes=(40, 200, 1000), replicates=10)
    (paper,) = bound(study).comparison(bound(study).rows(table))
    assert paper.settings == ["MCAR, linear", "MCAR, NN", "censoring, linear", "censoring, NN"]
    cells = dict(paper.rows)
    with (PAPER / "synthetic_r2_from_40_rows.csv").open() as lines:
        compared = {(r["method"], r["mechanism"], r["signal"]): r["compared"] for r in csv.DictReader(lines)}
    sizes, fractions = (40, 200, 1000), (0.1, 0.4, 0.8)
    for index, (mechanism, signal) in enumerate(
        (("mcar", "linear"), ("mcar", "nn"), ("censoring", "linear"), ("censoring", "nn"))
    ):
        mine = table.filter(
            (pl.col("kind") == "AuthorsInstance") & (pl.col("status") == "done") & (pl.col("method") == "CART MIA"),
            (pl.col("mechanism") == mechanism) & (pl.col("signal") == signal),
        )
        at_size = []
        for n in sizes:
            means = []
            for p in fractions:
                here = mine.filter((pl.col("n") == n) & (pl.col("missing_fraction") == p))
                signals = [here.filter((pl.col("replicate") - 1) % 5 == s)["r2_authors"].mean() for s in range(5)]
                means.append(np.mean(signals))
            at_size.append(np.interp(np.arange(1, 9) / 10, fractions, means).mean())
        average = np.interp(np.log(np.arange(40, 1001, 20)), np.log(sizes), at_size).mean()
        number = float(compared["CART MIA", mechanism, signal])
        assert cells["CART MIA"][3 * index : 3 * index + 3] == pytest.approx([average, number, average - number])
    assert cells["Finite"][10:] == [None, None]  # the authors' average exploded
    assert "Mean - linear" not in cells  # the paper has no such row


@pytest.mark.slow
def test_paper_table_without_averages_is_not_shown(tmp_path):
    study, table = synthetic(sizes=(40,), replicates=1)
    (paper,) = bound(study).comparison(bound(study).rows(table))
    assert paper.rows == []
    page = write_report(table, bound(study), tmp_path / "page.html", facts=FACTS).read_text(encoding="utf-8")
    assert "do not span the paper&#x27;s grid" not in page
    assert paper.title not in page


@pytest.mark.slow
def test_figures_need_their_columns():
    study, table = synthetic(replicates=1)
    assert set(drawn(table.filter(pl.col("kind") == "AuthorsInstance"), study)) == {
        "value-by-missing-fraction", "value-by-n", "adaptive-value-by-missing-fraction", "adaptive-value-by-n",
        "depth-by-n", "wins", "seconds",
    }  # fmt: skip
    assert "depth-by-n" not in drawn(table.drop("selected_depth"), study)
    few = table.filter(pl.col("n") == 40).drop("depth", "selected_depth", "mechanism")
    assert set(drawn(few, study)) == {"seconds"}


def test_numbers_of_figures():
    study, table = real_design()
    figures = drawn(table, study)
    assert {
        "value-by-fraction-missing",
        "designs",
        "designs-regression",
        "wins",
        "wins-classification",
        "seconds",
    } <= set(figures)
    done = table.filter((pl.col("status") == "done") & (pl.col("design") == "mar") & (pl.col("signal") != "tree"))
    fields = ["dataset", "signal", "k_missing"]
    scores = {name: {tuple(row[:3]): row[3] for row in part.select(*fields, "score").iter_rows()}
              for (name,), part in done.group_by("method")}  # fmt: skip
    common = set.intersection(*(set(mine) for name, mine in scores.items() if name != "Affine intercept"))
    drawing = figures["value-by-fraction-missing"]
    shares = {(row["dataset"], row["k_missing"]): row["fraction_missing"] for row in done.rows(named=True)}
    here = [key for key in common if round(shares[key[0], key[2]], 1) == 0.5]
    numbers = {tuple(row[:3]): row[3:] for row in drawing.rows}
    mean, error, cells = numbers["MAR", "RF MIA", 0.5]
    assert (mean, cells) == (pytest.approx(np.mean([scores["RF MIA"][key] for key in here])), len(here))
    of_sets = {key[0]: np.mean([scores["RF MIA"][k] for k in here if k[0] == key[0]]) for key in here}
    assert error == pytest.approx(np.std(list(of_sets.values()), ddof=1) / len(of_sets) ** 0.5)
    assert "Bars are standard errors over data sets." in drawing.caption
    base = scores["Mean - best"]
    gains = {key: score - base[key] for key, score in scores["XGBoost"].items() if key in base}
    sets = {name: np.mean([gain for key, gain in gains.items() if key[0] == name]) for name, *_ in gains}
    shares = {tuple(row[:2]): row[2:] for row in figures["wins"].rows}
    assert shares["MAR", "XGBoost"] == pytest.approx(
        [np.mean([gain > 0 for gain in gains.values()]), len(gains), np.mean([s > 0 for s in sets.values()]), len(sets)]
    )


def test_loss_of_greedy():
    study, table = partitions()
    figures = drawn(table, study)
    assert {"partitions-by-n", "partitions-by-n-tuned", "greedy-loss"} <= set(figures)
    by_depth = {row[1]: row[3] for row in figures["greedy-loss"].rows if row[0] == "largest depth"}
    assert by_depth == pytest.approx({1: 2.0, 2: 4.0, 3: 6.0})
    unproven = table.with_columns(pl.lit("stopped").alias("proof"))
    assert "greedy-loss" not in drawn(unproven, study)


def test_methods_done_on_few_instances_are_left_out():
    study, table = synthetic(replicates=1)
    drawing = drawn(table.filter((pl.col("method") != "XGBoost") | (pl.col("n") == 40)), study)["value-by-n"]
    assert "left out, as done on less than half of them: XGBoost" in drawing.caption
    assert "XGBoost" not in {row[2] for row in drawing.rows}


def test_units_are_signals_and_data_sets():
    study, table = synthetic(sizes=(40, 100), replicates=6)
    rows = bound(study).rows(table)
    authors = rows.filter(pl.col("kind") == "AuthorsInstance")
    assert authors["unit"].n_unique() == 2 * 5  # two kinds of signals; replicates 1 and 6 share one
    assert "standard errors over signals" in drawn(table, study)["value-by-n"].caption
    assert (authors["value"] == authors["r2_authors"]).all()
    assert "in their form" in CATALOGUE["synthetic"].score_words(rows)
    fresh = rows.filter(pl.col("kind") == "TextInstance")
    assert fresh["unit"].n_unique() == fresh["instance"].n_unique()
    study, table = real_design(sets=3)
    rows = bound(study).rows(table)
    assert set(rows["unit"].to_list()) == set(table["dataset"].to_list())
    assert set(rows.filter(pl.col("kind") == "RealTarget")["design"].to_list()) == {"real"}
    assert "2 AUC - 1" in CATALOGUE["real-design"].score_words(rows)
