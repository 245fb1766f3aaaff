"""The report of a study: its numbers are those of the table, its text cannot break it, and it needs no network."""

import csv
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from admiss.study.report.figures import drawings, figures, save_figures
from admiss.study.report.page import write_report
from admiss.study.report.rows import scored_rows, scoreless
from admiss.study.report.summary import make_filters, summarise
from experiments.paper.averages import paper_tables
from tests.admiss.study.report.report_tables import FACTS, SPITEFUL, partitions, real_design, synthetic

PAPER = Path(__file__).parents[2] / "experiments" / "paper"
CLEAN = {**FACTS, "digests": [("0123", 5)], "failed": 0, "pending": 0}


class Section:
    title, text = "A <comparison>", "Some & more."
    header = ("method", "R2")
    rows = (("<b>Affine</b>", 0.12345), ("Finite", None))


class Reader(HTMLParser):
    """Elements of a page with their attributes, and the text inside each kind of element."""

    def __init__(self, page):
        super().__init__()
        self.elements, self.texts, self.open = [], {}, []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in ("meta", "link", "br", "input", "img", "col"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open:
            self.texts.setdefault(self.open[-1], []).append(data)


@pytest.fixture(scope="module", params=[synthetic, real_design, partitions], ids=lambda make: make.__name__)
def case(request, tmp_path_factory):
    study, table = request.param()
    path = tmp_path_factory.mktemp("report") / "deep" / "page.html"
    assert write_report(table, study, path, comparison=[Section()], facts=FACTS) == path
    return study, table, path.read_text(encoding="utf-8")


def value(row):
    return row["r2_authors"] if row["kind"] == "AuthorsInstance" else row["score"]


def test_page_needs_no_network_and_is_well_formed(case):
    _, table, page = case
    reader = Reader(page)
    assert not reader.open
    ids = [attributes["id"] for _, attributes in reader.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    for tag, attributes in reader.elements:
        for name in ("src", "href", "xlink:href", "srcset", "action"):
            assert attributes.get(name, "#").startswith(("#", "data:")), (tag, attributes)
            if attributes.get(name, "").startswith("#"):
                assert attributes[name][1:] in ids
        assert not any(name.startswith("on") for name in attributes)
    for target in re.findall(r"url\(#([^)]*)\)", page):
        assert target in ids
    assert "@import" not in page
    assert {tag for tag, _ in reader.elements} & {"img", "i", "b", "iframe"} == set()
    pictures = [attributes for tag, attributes in reader.elements if tag == "svg"]
    assert pictures
    for attributes in pictures:
        assert attributes["role"] == "img"
        assert re.search(r"\d", attributes["aria-label"])
    assert all("scope" in attributes for tag, attributes in reader.elements if tag == "th")
    assert "A <comparison>" in reader.texts["h3"]
    if table.filter(pl.col("reason") == SPITEFUL).height:
        assert any(SPITEFUL in text for text in [*reader.texts["th"], *reader.texts["td"]])


def test_embedded_cells_are_those_of_the_table(case):
    study, table, page = case
    data = json.loads(re.search(r'<script type="application/json" id="cells">(.*?)</script>', page, re.S)[1])
    done = table.filter(pl.col("status") == "done")
    assert len(data["cells"]["value"]) == done.height
    expected = sorted((row["method"], value(row), row["seconds"]) for row in done.rows(named=True))
    cells = data["cells"]
    found = sorted(
        (data["methods"][m], v, s) for m, v, s in zip(cells["method"], cells["value"], cells["seconds"], strict=True)
    )
    assert [name for name, *_ in found] == [name for name, *_ in expected]
    np.testing.assert_allclose([v for _, v, _ in found], [v for _, v, _ in expected], rtol=1e-8)
    fields = [name for name in ("kind", *study.settings, "replicate", "split") if name in table.columns]
    assert max(cells["instance"]) + 1 == len(data["instances"][0]) == done.select(fields).unique().height


def test_means_by_method():
    study, table = synthetic()
    rows = scored_rows(table, study)
    lines = {line.method: line for line in summarise(rows, make_filters(rows, study))}
    mine = [row for row in table.rows(named=True) if row["status"] == "done" and row["kind"] == "AuthorsInstance"]
    recipe = lambda row: tuple(row[name] for name in (*study.settings, "replicate"))  # noqa: E731
    base = {recipe(row): value(row) for row in mine if row["method"] == "Mean - best"}
    assert set(lines) == set(table["method"].to_list())
    for method, line in lines.items():
        values = [value(row) for row in mine if row["method"] == method]
        gains = [value(row) - base[recipe(row)] for row in mine if row["method"] == method and recipe(row) in base]
        assert (line.cells, line.mean) == (len(values), pytest.approx(np.mean(values)))
        assert line.error == pytest.approx(np.std(values, ddof=1) / len(values) ** 0.5)
        assert line.difference == pytest.approx(np.mean(gains), abs=1e-12)
        wins = sum(gain > 0 for gain in gains) + sum(gain == 0 for gain in gains) / 2
        assert line.better == pytest.approx(wins / len(gains))
    assert lines["Mean - best"].better == 0.5


def test_levels_outside_the_averages_are_not_chosen_at_first():
    study, table = real_design(sets=3)
    filters = {each.name: each for each in make_filters(scored_rows(table, study), study)}
    signal = filters["signal"]
    assert dict(zip(signal.levels, signal.chosen, strict=True)) == {
        "linear": True, "nn": True, "tree": False, "real": True,
    }  # fmt: skip
    assert filters["task"].levels == ["classification", "regression"]


def test_a_cell_without_a_number_is_not_counted(tmp_path):
    study, table = real_design(sets=3)
    place = table["status"].to_list().index("done")
    for bad in (float("nan"), float("inf"), None):
        scores = [bad if i == place else score for i, score in enumerate(table["score"])]
        broken = table.with_columns(pl.Series("score", scores, dtype=pl.Float64))
        assert scoreless(broken) == 1
        assert scored_rows(broken, study).height == scored_rows(table, study).height - 1
    twice = pl.concat([broken.head(60), broken[50:52]])
    page = write_report(twice, study, tmp_path / "page.html", facts=CLEAN).read_text(encoding="utf-8")
    assert "2 cells repeat a method on an instance" in page
    assert "1 rows are done and have no finite score" in page


def test_a_task_that_only_some_methods_give_is_that_of_the_instance():
    study, table = real_design(sets=2)
    task = pl.when(pl.col("method") == "Mean - best").then(pl.col("task"))
    rows = scored_rows(table.with_columns(task.alias("task")), replace(study, settings=(*study.settings, "task")))
    assert rows["task"].null_count() == 0
    assert rows["instance"].n_unique() == scored_rows(table, study)["instance"].n_unique()


def test_warnings_and_failures(case, tmp_path):
    study, table, page = case
    assert page.count('class="warning"><strong>') == 3
    cells = table.filter((pl.col("status") == "failed") & pl.col("key").is_not_null())
    counts = re.findall(r"more than (\d) minutes\.</th><td>(\d+)</td>", page)
    expected = cells.filter(pl.col("reason") != SPITEFUL)["reason"].value_counts()
    assert sum(int(count) for _, count in counts) == expected["count"].sum()
    done = table.filter(pl.col("status") == "done").head(40)
    clean = write_report(done, study, tmp_path / "page.html", comparison="As text <1>.", facts=CLEAN)
    text = clean.read_text(encoding="utf-8")
    assert 'class="warning"><strong>' not in text
    assert "Nothing failed." in text
    assert "As text &lt;1&gt;." in text


def test_no_cell_is_done(tmp_path):
    study, table = synthetic(sizes=(40,), replicates=1)
    none = table.filter(pl.col("status") == "nothing")
    page = write_report(none, study, tmp_path / "page.html", facts=CLEAN).read_text(encoding="utf-8")
    assert "No cell is done yet." in page
    facts = {name: fact for name, fact in CLEAN.items() if name not in ("machine", "digests")}
    with pytest.raises(ValueError, match="lack machine, digests"):
        write_report(table, study, tmp_path / "page.html", facts=facts)


def test_paper_table_has_interpolated_averages():
    study, table = synthetic(sizes=(40, 200, 1000), replicates=10)
    (paper,) = paper_tables(scored_rows(table, study), study)
    assert paper.settings == ["MCAR, linear", "MCAR, NN", "censoring, linear", "censoring, NN"]
    cells = dict(paper.rows)
    with (PAPER / "synthetic_r2_from_40_rows.csv").open() as lines:
        compared = {(r["method"], r["mechanism"], r["signal"]): r["compared"] for r in csv.DictReader(lines)}
    sizes, fractions = (40, 200, 1000), (0.1, 0.4, 0.8)
    for place, (mechanism, signal) in enumerate(
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
        assert cells["CART MIA"][3 * place : 3 * place + 3] == pytest.approx([average, number, average - number])
    assert cells["Finite"][10:] == [None, None]  # the authors' average exploded
    assert "Mean - linear" not in cells  # the paper has no such row


def test_paper_table_without_averages_is_a_sentence(tmp_path):
    study, table = synthetic(replicates=1)
    (paper,) = paper_tables(scored_rows(table, study), study)
    assert paper.rows == []
    page = write_report(table, study, tmp_path / "page.html", facts=CLEAN).read_text(encoding="utf-8")
    assert "do not reach the ends of the paper&#x27;s grid" in page
    assert "class='paper'" not in page


def test_figures_are_there_where_their_columns_are(tmp_path):
    study, table = synthetic(replicates=1)
    assert set(figures(table.filter(pl.col("kind") == "AuthorsInstance"), study)) == {
        "value-by-missing-fraction", "value-by-n", "adaptive-value-by-missing-fraction", "adaptive-value-by-n",
        "depth-by-n", "wins", "seconds",
    }  # fmt: skip
    assert "depth-by-n" not in figures(table.drop("selected_depth"), study)
    few = table.filter(pl.col("n") == 40).drop("depth", "selected_depth", "mechanism")
    assert set(figures(few, study)) == {"seconds"}
    for form in ("png", "svg"):
        (path,) = save_figures(few, study, tmp_path / "figures", form)
        assert path.stat().st_size > 3000
        first = path.read_bytes()
        save_figures(few, study, tmp_path / "figures", form)
        assert path.read_bytes() == first
    with pytest.raises(ValueError, match="choose png or svg"):
        save_figures(few, study, tmp_path, "gif")


def test_numbers_of_figures():
    study, table = real_design()
    drawn = {drawing.name: drawing for drawing in drawings(scored_rows(table, study))}
    assert {
        "value-by-fraction-missing",
        "designs",
        "designs-regression",
        "wins",
        "wins-classification",
        "seconds",
    } <= set(drawn)
    done = table.filter((pl.col("status") == "done") & (pl.col("design") == "mar") & (pl.col("signal") != "tree"))
    fields = ["dataset", "signal", "k_missing"]
    scores = {name: {tuple(row[:3]): row[3] for row in part.select(*fields, "score").iter_rows()}
              for (name,), part in done.group_by("method")}  # fmt: skip
    common = set.intersection(*(set(mine) for name, mine in scores.items() if name != "Affine intercept"))
    drawing = drawn["value-by-fraction-missing"]
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
    shares = {tuple(row[:2]): row[2:] for row in drawn["wins"].rows}
    assert shares["MAR", "XGBoost"] == pytest.approx(
        [np.mean([gain > 0 for gain in gains.values()]), len(gains), np.mean([s > 0 for s in sets.values()]), len(sets)]
    )
    best = max(drawn["designs"].rows[:9], key=lambda row: row[2])
    assert f"MAR: {best[1]} {best[2]:.3f}" in drawn["designs"].alternative


def test_loss_of_greedy():
    study, table = partitions()
    drawn = {drawing.name: drawing for drawing in drawings(scored_rows(table, study))}
    assert {"partitions-by-n", "partitions-by-n-tuned", "greedy-loss"} <= set(drawn)
    by_depth = {row[1]: row[3] for row in drawn["greedy-loss"].rows if row[0] == "largest depth"}
    assert by_depth == pytest.approx({1: 2.0, 2: 4.0, 3: 6.0})
    unproven = table.with_columns(pl.lit("stopped").alias("proof"))
    assert "greedy-loss" not in figures(unproven, study)


def test_methods_done_on_few_instances_are_left_out():
    study, table = synthetic(replicates=1)
    rows = scored_rows(table.filter((pl.col("method") != "XGBoost") | (pl.col("n") == 40)), study)
    drawing = next(drawing for drawing in drawings(rows) if drawing.name == "value-by-n")
    assert "left out, as done on less than half of them: XGBoost" in drawing.caption
    assert "XGBoost" not in {row[2] for row in drawing.rows}
