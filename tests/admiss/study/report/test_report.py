"""The report of a study: its numbers are those of the table, its text cannot break it, and it needs no network."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import polars as pl
import pytest

from admiss.study.export import save_figures
from admiss.study.report.page import write_report
from admiss.study.report.presentation import Presentation, ReferenceTable
from admiss.study.report.rows import scored_rows, scoreless
from admiss.study.report.summary import make_filters, summarise
from tests.admiss.study.report.report_tables import FACTS, LABELS, SPITEFUL, presented, real_design, synthetic

CLEAN = {**FACTS, "digests": [("0123", 5)], "failed": 0, "pending": 0}


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


@pytest.fixture(scope="module", params=[synthetic, real_design], ids=lambda make: make.__name__)
def case(request, tmp_path_factory):
    study, table = request.param()
    path = tmp_path_factory.mktemp("report") / "deep" / "page.html"
    assert write_report(table, presented(study), path, facts=FACTS) == path
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
    rows = presented(study).rows(table)
    lines = {line.method: line for line in summarise(rows, make_filters(rows, study, LABELS), LABELS)}
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


def test_a_cell_without_a_number_is_not_counted(tmp_path):
    study, table = real_design(sets=3)
    first = table["status"].to_list().index("done")
    for bad in (float("nan"), float("inf"), None):
        scores = [bad if i == first else score for i, score in enumerate(table["score"])]
        broken = table.with_columns(pl.Series("score", scores, dtype=pl.Float64))
        assert scoreless(broken) == 1
        assert scored_rows(broken, study).height == scored_rows(table, study).height - 1
    twice = pl.concat([broken.head(60), broken[50:52]])
    page = write_report(twice, Presentation(study), tmp_path / "page.html", facts=CLEAN).read_text(encoding="utf-8")
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
    clean = write_report(done, Presentation(study), tmp_path / "page.html", facts=CLEAN)
    text = clean.read_text(encoding="utf-8")
    assert 'class="warning"><strong>' not in text
    assert "Nothing failed." in text
    assert "The study has no tables of its own." in text


def test_no_cell_is_done(tmp_path):
    study, table = synthetic(sizes=(40,), replicates=1)
    none = table.filter(pl.col("status") == "nothing")
    page = write_report(none, presented(study), tmp_path / "page.html", facts=CLEAN).read_text(encoding="utf-8")
    assert "No cell is done yet." in page
    facts = {name: fact for name, fact in CLEAN.items() if name not in ("machine", "digests")}
    with pytest.raises(ValueError, match="lack machine, digests"):
        write_report(table, presented(study), tmp_path / "page.html", facts=facts)


def test_figures_of_a_study_that_binds_nothing():
    study, table = synthetic(replicates=1)
    plain, labelled = Presentation(study), presented(study)
    names = [drawing.name for drawing in plain.figures(plain.rows(table))]
    assert names == ["value-by-missing-fraction", "value-by-n", "seconds"]
    drawn = {drawing.name: drawing for drawing in labelled.figures(labelled.rows(table))}
    assert set(drawn) == {*names, "wins"}
    assert {row[0] for row in drawn["wins"].rows} == {"AuthorsInstance", "fresh draws of the text"}
    done = table.filter(pl.col("status") == "done", pl.col("kind") == "AuthorsInstance", pl.col("method") == "Affine")
    cells = {row[2]: row[-1] for row in drawn["value-by-n"].rows if row[:2] == ["AuthorsInstance", "Affine"]}
    assert set(cells) == set(done["n"].to_list())


def test_negative_scores_have_no_floor():
    study, table = synthetic(replicates=1)
    losses = Presentation(study, value=lambda table: pl.col("score") - 20)
    drawing = next(drawing for drawing in losses.figures(losses.rows(table)) if drawing.name == "value-by-n")
    low, high = drawing.figure.axes[0].get_ylim()
    assert low < -20 < high < -18
    assert "outside the axes" not in drawing.caption


def test_figures_are_reproducible_files(tmp_path):
    study, table = synthetic(sizes=(40,), replicates=1)
    presentation = Presentation(study, drawings=lambda rows: Presentation(study).figures(rows)[-1:])
    for form in ("png", "svg"):
        (path,) = save_figures(table, presentation, tmp_path / "figures", form)
        assert path.stat().st_size > 3000
        first = path.read_bytes()
        save_figures(table, presentation, tmp_path / "figures", form)
        assert path.read_bytes() == first
    with pytest.raises(ValueError, match="choose png or svg"):
        save_figures(table, presentation, tmp_path, "gif")


def test_tables_beside_published_numbers(tmp_path):
    study, table = synthetic(sizes=(40,), replicates=1)
    means = {("Affine", "mcar"): 0.5, ("CART <1>", "mcar"): 0.25}
    published = {("Affine", "mcar"): 0.501, ("Affine", "censoring"): 0.4}
    beside = ReferenceTable.of("Main", "Beside.", "a book", means, published, [("mcar",), ("censoring",)], LABELS)
    assert beside.settings == ["MCAR", "censoring"]
    assert dict(beside.rows)["Affine"] == [0.5, 0.501, pytest.approx(-0.001), None, 0.4, None]
    presentation = replace(
        presented(study), comparison=lambda rows: [beside, replace(beside, text="Nothing yet.", rows=[])]
    )
    page = write_report(table, presentation, tmp_path / "page.html", facts=CLEAN).read_text(encoding="utf-8")
    assert '<td class="published">0.501</td><td class="difference">-0.001</td>' in page
    assert "CART &lt;1&gt;" in page
    assert '<th scope="col">a book</th>' in page
    assert page.count("class='reference'") == 1
    assert "<p>Nothing yet.</p>" in page
