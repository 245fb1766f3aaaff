"""The report of a study: its numbers are those of the table, its text cannot break it, and it needs no network."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import polars as pl
import pytest
from scipy.stats import ttest_1samp

from admiss.estimates import holm
from admiss.study import EngineError
from admiss.study.report.comparisons import compared, leaderboard
from admiss.study.report.page import comparison_section, undecided_words, write_report
from admiss.study.report.presentation import Presentation, ReferenceTable
from admiss.study.report.results import COMPARISON_HEADER, comparison_numbers, write_results
from admiss.study.table import scored_rows, scoreless
from tests.admiss.study.report.report_tables import FACTS, LABELS, SPITEFUL, plain, presented, real_design, synthetic

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
        assert len(attributes["aria-label"]) > 20
    assert all("scope" in attributes for tag, attributes in reader.elements if tag == "th")
    assert "A <comparison>" in reader.texts["h3"]
    if table.filter(pl.col("reason") == SPITEFUL).height:
        assert any(SPITEFUL in text for text in [*reader.texts["th"], *reader.texts["td"]])


def test_embedded_cells_are_those_of_the_table(case):
    study, table, page = case
    data = json.loads(re.search(r'<script type="application/json" id="cells">(.*?)</script>', page, re.S)[1])
    done = table.filter(pl.col("status") == "done")
    (values,) = data["values"]
    assert len(values) == done.height
    expected = sorted((row["method"], value(row), row["seconds"]) for row in done.rows(named=True))
    found = sorted((data["methods"][m], v, s) for m, v, s in zip(data["method"], values, data["seconds"], strict=True))
    assert [name for name, *_ in found] == [name for name, *_ in expected]
    np.testing.assert_allclose([v for _, v, _ in found], [v for _, v, _ in expected], rtol=1e-8)
    fields = [name for name in ("kind", *study.settings, "replicate", "split") if name in table.columns]
    assert len(set(data["instance"])) == done.select(fields).unique().height


def board_of(study, table):
    presentation = Presentation(study)
    rows = presentation.rows(table)
    return leaderboard(compared(rows, study, presentation.labels))


def test_the_leaderboard_is_in_the_order_of_means_with_differences_to_the_reference(tmp_path):
    study, table = plain()
    board = board_of(study, table)
    means = dict(table.group_by("method").agg(pl.col("score").mean()).iter_rows())
    assert [line.method for line in board.lines] == sorted(means, key=lambda method: -means[method])
    assert board.header == [
        "Method", "R²", "", "Minus mean + ridge", "Better on", "mae", "CPU seconds", "Cells",
    ]  # fmt: skip
    scores = {name: part.sort("n", "mechanism", "replicate") for (name,), part in table.group_by("method")}
    gains = scores["indicators + ridge"]["score"].to_numpy() - scores["mean + ridge"]["score"].to_numpy()
    low, high = ttest_1samp(gains, 0.0).confidence_interval(0.95)
    errors = {name: -part["neg_mae"].drop_nulls().mean() for name, part in scores.items()}
    for line in board.lines:
        assert line.mean == f"{means[line.method]:.3f}"
        assert line.cells[2] == f"{errors[line.method]:,.0f}"  # an error is positive
        assert line.cells[-1] == "30"
    assert board.lines[0].cells[0] == f"{gains.mean():+.3f} [{low:+.3f}, {high:+.3f}]"
    assert board.lines[0].cells[1] == f"{(gains > 0).sum()} of 30"
    assert board.sentence == (
        f"indicators + ridge is best by its mean: R² {means['indicators + ridge']:.3f}, {board.lines[0].cells[0]} "
        f"compared with mean + ridge, better on {(gains > 0).sum()} of 30 instances."
    )
    path = write_report(table, Presentation(study), tmp_path / "page.html", facts=CLEAN)
    page = Reader(path.read_text(encoding="utf-8"))
    assert board.sentence in page.texts["p"]
    assert [name for name in page.texts["th"] if name in means][:3] == [line.method for line in board.lines]


def test_an_error_is_shown_positive_and_smaller_is_better():
    study, table = plain()
    errors = table.with_columns(pl.col("neg_mae").fill_null(-30_000.0))
    study = replace(study, metrics=("neg_mean_absolute_error",))
    errors = errors.with_columns(pl.col("neg_mae").alias("score"), pl.col("neg_mae").alias("neg_mean_absolute_error"))
    board = board_of(study, errors)
    means = dict(errors.group_by("method").agg(-pl.col("score").mean()).iter_rows())
    assert [line.method for line in board.lines] == sorted(means, key=means.__getitem__)
    assert board.header[1] == "Mean absolute error"
    assert [line.mean for line in board.lines] == [f"{means[line.method]:,.0f}" for line in board.lines]
    worst = next(line for line in board.lines if line.method == "boosting")
    assert worst.cells[0].startswith(f"{means['boosting'] - means['mean + ridge']:+,.0f} [")
    section = comparison_section(compared(Presentation(study).rows(errors), study, Presentation(study).labels))
    (shown,) = [row for row in section.rows if row[:2] == ["boosting", "all"]]
    assert worst.cells[0] == f"{shown[3]} [{shown[4].replace(' to ', ', ')}]"
    (main, scores, _) = Presentation(study).figures(Presentation(study).rows(errors))
    assert "below 0 is better" in main.caption
    assert "smaller is better" in scores.caption
    assert all(row[3] > 0 for row in scores.rows)


def test_the_answer_if_the_reference_is_best_or_nothing_is_decided():
    study, table = plain()
    board = board_of(replace(study, reference="indicators + ridge"), table)
    assert "; it is the reference. Next is mean + ridge, -0.0" in board.sentence
    one = table.filter(pl.col("n") == 100, pl.col("mechanism") == "mcar", pl.col("replicate") == 0)
    assert board_of(study, one).sentence.endswith("of 1 instances; this difference is undecided.")
    first = (pl.col("n") == 3000) == (pl.col("method") == "indicators + ridge")
    apart = board_of(study, table.filter(first | (pl.col("method") == "boosting")))
    assert "; it has no instance in common with mean + ridge. Next is boosting, -" in apart.sentence
    assert {line.method: line.cells[0] for line in apart.lines}["indicators + ridge"] == "no instance in common"
    assert apart.sentence.endswith("a difference is over those that both have.")


def test_undecided_comparisons_are_one_sentence(tmp_path):
    study, table = synthetic()
    page = write_report(table, presented(study), tmp_path / "page.html", facts=CLEAN).read_text(encoding="utf-8")
    rows = presented(study).rows(table)
    found = compared(rows, study, LABELS).comparisons
    undecided = [each for each in found if each.verdict == "undecided"]
    overall = [each for each in undecided if not each.setting]
    words = f"{', '.join(each.method for each in overall)} over all instances, and {len(undecided) - len(overall)} at "
    assert f"{len(undecided)} of {len(found)} comparisons are undecided: {words}single levels of settings." in page
    assert "undecided: 6 methods over all instances." in undecided_words((overall * 6)[:6])


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
    rows = scored_rows(table.with_columns(task.alias("task")), study)
    assert rows["task"].null_count() == 0
    assert rows["instance"].n_unique() == scored_rows(table, study)["instance"].n_unique()


@pytest.mark.slow
def test_warnings_and_failures(case, tmp_path):
    study, table, page = case
    assert page.count('class="warning"><strong>') == 2
    cells = table.filter((pl.col("status") == "failed") & pl.col("key").is_not_null())
    counts = re.findall(r'more than (\d) minutes\.</th><td class="">(\d+)</td>', page)
    expected = cells.filter(pl.col("reason") != SPITEFUL)["reason"].value_counts()
    assert sum(int(count) for _, count in counts) == expected["count"].sum()
    done = table.filter(pl.col("status") == "done").head(40)
    clean = write_report(done, Presentation(study), tmp_path / "page.html", facts=CLEAN)
    text = clean.read_text(encoding="utf-8")
    assert 'class="warning"><strong>' not in text
    assert 'id="failed"' not in text
    assert 'href="#failed"' not in text
    bare = Presentation(study, drawings=lambda rows: [])
    stale = write_report(done, bare, tmp_path / "page.html", facts={**FACTS, "stale": 1234})
    assert "1,234 cells are stale" in stale.read_text(encoding="utf-8")


def test_no_cell_is_done(tmp_path):
    study, table = synthetic(sizes=(40,), replicates=1)
    none = table.filter(pl.col("status") == "nothing")
    page = write_report(none, presented(study), tmp_path / "page.html", facts=CLEAN).read_text(encoding="utf-8")
    assert "No cell is done yet." in page
    assert re.findall(r'<section id="(\w+)"', page) == ["comparison", "provenance"]  # a table that needs no cells


def test_figures_of_a_study_that_binds_nothing():
    study, table = synthetic(replicates=2)
    plain, labelled = Presentation(study), presented(study)
    assert [drawing.name for drawing in plain.figures(plain.rows(table))] == ["differences", "scores", "seconds"]
    rows = labelled.rows(table)
    drawn = {drawing.name: drawing for drawing in labelled.figures(rows)}
    # eleven methods are more than there are styles: each has a line
    numbers = {tuple(row[:2]): row[2:] for row in drawn["differences"].rows}
    assert {where for where, _ in numbers} == {"all instances", "MCAR", "censoring"}
    inside = rows.filter(pl.col("kind") == "AuthorsInstance", pl.col("mechanism") == "mcar")
    base = dict(inside.filter(pl.col("method") == "Mean - best").select("instance", "value").iter_rows())
    mine = inside.filter(pl.col("method") == "Affine").select("instance", "value").iter_rows()
    gains = [value - base[instance] for instance, value in mine if instance in base]
    interval = ttest_1samp(gains, 0.0).confidence_interval(0.95)
    assert numbers["MCAR", "Affine"] == pytest.approx([np.mean(gains), *interval, len(gains)])
    assert "95% intervals (Student's t) over instances" in drawn["differences"].caption
    assert "no reference" not in drawn["differences"].caption


def test_no_two_methods_of_a_figure_look_the_same():
    study, table = real_design(sets=4)
    names = table["method"].unique(maintain_order=True).to_list()
    for count in range(2, len(names) + 1):
        presentation = Presentation(replace(study, reference=names[0]))
        rows = presentation.rows(table.filter(pl.col("method").is_in(names[:count])))
        for drawing in presentation.figures(rows)[:2]:
            _, labels = drawing.figure.axes[0].get_legend_handles_labels()
            if drawing.header[0] == "setting":
                lines = [each.lines[0] for each in drawing.figure.axes[0].containers]
                assert len({(line.get_color(), line.get_marker()) for line in lines}) == len(lines) >= count - 1
                assert set(names[1:count]) <= set(labels)
            else:
                assert count > 7


def test_figures_by_setting():
    study, table = synthetic(replicates=2)
    few = table.filter(pl.col("method").is_in(["Affine", "Finite", "CART MIA", "Mean - best"]))
    presentation = Presentation(study)
    differences, scores, *_ = presentation.figures(presentation.rows(few))
    assert "The study names no reference: Affine is its first method." in differences.caption
    assert {row[0] for row in scores.rows} == {"kind", "mechanism", "signal", "missing fraction", "n"}
    assert {row[1] for row in scores.rows if row[0] == "n"} == {"40", "100", "300", "1000"}
    axes = {ax.get_xlabel(): ax for ax in differences.figure.axes}
    assert axes["n"].get_xscale() == "log"
    assert axes["missing fraction"].get_xscale() == "linear"
    assert [text.get_text() for text in axes["mechanism"].get_xticklabels()] == ["censoring", "mcar"]
    low, high = differences.figure.axes[0].get_ylim()
    assert -2 < low < 0 < high < 2  # whatever the fits that diverged
    assert "outside the axes" in differences.caption


@pytest.mark.slow
def test_results_are_reproducible_files(tmp_path):
    study, table = synthetic(sizes=(40, 100), replicates=2)
    paths = write_results(table, presented(study), tmp_path / "one", "a command")
    again = write_results(
        table.sample(fraction=1.0, shuffle=True, seed=3), presented(study), tmp_path / "two", "a command"
    )
    assert [path.name for path in paths] == [path.name for path in again]
    for one, other in zip(paths, again, strict=True):
        assert one.read_bytes() == other.read_bytes(), one.name
    names = {path.name for path in paths}
    assert {"README.md", "means.csv", "comparisons.csv", "a-comparison.csv", "leaderboard.tex"} <= names
    assert {f"{name.removesuffix('.csv')}.tex" for name in names if name.endswith(".csv")} <= names
    tex = (tmp_path / "one" / "a-comparison.tex").read_text(encoding="utf-8")
    assert r"\textless{}b\textgreater{}Affine\textless{}/b\textgreater{} & 0.12345 \\" in tex
    assert {f"differences{end}" for end in (".svg", ".pdf", ".png", "-one-column.svg", "-one-column.pdf")} <= names
    svg = (tmp_path / "one" / "differences.svg").read_text(encoding="utf-8")
    assert "<text" not in svg  # outlines need no font
    assert b"/Type3" not in (tmp_path / "one" / "differences.pdf").read_bytes()
    means = pl.read_csv(tmp_path / "one" / "means.csv", infer_schema_length=None)
    all_instances = means.filter(pl.col("setting").is_null(), pl.col("method") == "RF MIA").row(0, named=True)
    done = table.filter(pl.col("status") == "done", pl.col("kind") == "AuthorsInstance", pl.col("method") == "RF MIA")
    assert all_instances["mean"] == pytest.approx(done["r2_authors"].mean(), rel=1e-5)
    assert all_instances["cells"] == done.height


def test_a_figure_that_fails_leaves_no_folder(tmp_path):
    study, table = synthetic(sizes=(40,), replicates=1)

    def fail(rows):
        raise RuntimeError("no figure")

    with pytest.raises(RuntimeError, match="no figure"):
        write_results(table, Presentation(study, drawings=fail), tmp_path / "results", "a command")
    assert not (tmp_path / "results").exists()


def test_places_that_cannot_be_written(tmp_path):
    study, table = synthetic(sizes=(40,), replicates=1)
    bare = replace(presented(study), drawings=lambda rows: [])
    file = tmp_path / "file"
    file.write_text("not a folder")
    with pytest.raises(EngineError, match=r"cannot be written to .*page\.html \(.+\): name another file with --html"):
        write_report(table, bare, file / "page.html", facts=CLEAN)
    with pytest.raises(EngineError, match=r"cannot be written to .*file \(.+\): name another folder"):
        write_results(table, bare, file, "a command")


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
    assert '<td class="">0.501</td><td class="">-0.001</td>' in page
    assert "CART &lt;1&gt;" in page
    assert page.count('<th scope="col">a book</th>') == 2
    assert "Nothing yet." not in page


def test_comparisons_of_the_page(tmp_path):
    study, table = plain()
    presentation = Presentation(study)
    rows = presentation.rows(table)
    section = comparison_section(compared(rows, study, presentation.labels))
    assert section.text.startswith("12 comparisons with mean + ridge; the 12 p values are adjusted together")
    assert "names no reference" not in section.text
    assert [row[1] for row in section.rows[::2]] == [
        "all", "n = 100", "n = 300", "n = 3000", "mechanism = censoring", "mechanism = mcar",
    ]  # fmt: skip
    scores = {name: part.sort("n", "mechanism", "replicate") for (name,), part in table.group_by("method")}
    gains = scores["indicators + ridge"]["score"].to_numpy() - scores["mean + ridge"]["score"].to_numpy()
    low, high = ttest_1samp(gains, 0.0).confidence_interval(0.95)
    method, _, verdict, difference, interval, signs, units, *_ = section.rows[0]
    assert (method, verdict, units) == ("indicators + ridge", "better", "30")
    assert difference == f"+{gains.mean():.3f}"
    assert interval == f"+{low:.3f} to +{high:.3f}"
    assert signs == f"{(gains > 0).sum()} / 0 / {(gains < 0).sum()}"
    unnamed = Presentation(replace(study, reference=""))
    words = comparison_section(compared(rows, unnamed.study, unnamed.labels)).text
    assert "(the study names no reference: mean + ridge is its first method)" in words
    numbers = comparison_numbers(compared(rows, study, presentation.labels))
    p_values = [row[COMPARISON_HEADER.index("p")] for row in numbers]
    assert [row[COMPARISON_HEADER.index("p_holm")] for row in numbers] == pytest.approx(holm(p_values))


def test_comparisons_without_p_values():
    study, table = plain(replicates=1)
    one = Presentation(study).rows(table.filter(pl.col("n") == 100, pl.col("mechanism") == "mcar"))
    section = comparison_section(compared(one, study, Presentation(study).labels))
    assert "2 comparisons with mean + ridge; none has a p value" in section.text
    assert [row[1:3] for row in section.rows] == [["all", "undecided"]] * 2
    alone = Presentation(study).rows(table.filter(pl.col("method") == "boosting"))
    assert not comparison_section(compared(alone, study, Presentation(study).labels)).rows
    (scores, *_) = Presentation(study).figures(alone)
    assert scores.name == "scores"


def test_splits_of_one_table_are_corrected_and_said_to_be():
    study, table = plain()
    sizes = {"dataset": pl.lit("flats"), "n_train": pl.lit(150), "n_test": pl.lit(50)}
    rows = Presentation(study).rows(table.with_columns(**sizes))
    assert set(rows["unit"].to_list()) == {"flats"}
    assert rows["repetition"].n_unique() == 5
    assert " of 5 splits." in board_of(study, table.with_columns(**sizes)).sentence
    section = comparison_section(compared(rows, study, Presentation(study).labels))
    assert "Nadeau and Bengio" in section.text
    assert section.rows[0][6] == "5"
    main = Presentation(study).figures(rows)[0]
    assert "corrected as these share rows (Nadeau and Bengio, 2003)" in main.caption
    several = table.with_columns(pl.concat_str(pl.lit("set "), "mechanism").alias("dataset"))
    assert set(Presentation(study).rows(several)["unit"].to_list()) == {"set mcar", "set censoring"}


def test_decimals_follow_the_size_of_numbers():
    study, table = plain()
    for factor, places in ((1.0, 3), (1e5, 0), (1e-4, 7)):
        scaled = table.with_columns(pl.col("score") * factor)
        section = comparison_section(compared(Presentation(study).rows(scaled), study, Presentation(study).labels))
        difference = section.rows[0][3]
        assert float(difference.replace(",", "")) == pytest.approx(0.05 * factor, rel=0.5)
        assert len(difference.partition(".")[2]) == places
