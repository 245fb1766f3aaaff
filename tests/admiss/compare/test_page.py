"""The page of a comparison: everything of the comparison is in it, once escaped; figures agree with the numbers."""

import re
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from itertools import combinations
from math import inf, nan

import numpy as np
import pandas as pd
import pytest

from admiss.compare.comparison import Comparison
from admiss.compare.figures import chart_drawings, no_split_cost, tree_drawings
from admiss.compare.page import write_page
from admiss.compare.partitions import compare_partitions
from admiss.compare.setting import Setting
from admiss.datasets import make_interacting
from admiss.drawing import EXACT, GREEDY, GREY
from admiss.report.figures import print_style
from admiss.terminal.table import Table
from admiss.versions import versions

VOID = {"meta", "link", "br"}
ODD = ["<script>alert(1)</script>", 'it\'s "q" & co', "größe 日本語", "x" * 300, "a\nb", "{{ title }} $x$"]


class Parsed(HTMLParser):
    """Elements of a page, and the rows of its tables as text; every element is closed in its place."""

    def __init__(self, page):
        super().__init__()
        self.open, self.elements, self.words, self.rows = [], [], "", []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("th", "td"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.words += data
        if self.open and self.open[-1] in ("th", "td"):
            self.rows[-1][-1] += data.strip()


def written(comparisons, tmp_path):
    path = tmp_path / "new" / "page.html"
    write_page(comparisons, path)
    page = path.read_text(encoding="utf-8")
    return page, Parsed(page)


@pytest.fixture(scope="module")
def regression():
    data = make_interacting(n=400, d=5, random_state=0)
    setting = Setting(max_depth=2, folds=2, time_limit=None)
    methods = ("none", "greedy", "tree", "boxes")
    found = compare_partitions(data.X_train, data.y_train, methods=methods, setting=setting, title="interacting")
    some = slice(60), slice(3)
    groups = setting.estimator("groups").fit(data.X_train[some], data.y_train[some[0]])
    return replace(found, models=found.models | {"groups": groups})


@pytest.fixture(scope="module")
def classification():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, len(ODD)))
    M = rng.random(X.shape) < 0.3
    y = np.array(["no <b>", "yes & no", "ä"])[np.digitize(X[:, 0] + M[:, 1] + 2 * (M[:, 2] ^ M[:, 3]), [0, 1.5])]
    X = pd.DataFrame(np.where(M, np.nan, X), columns=ODD)
    return compare_partitions(
        X, y, setting=Setting(max_depth=2, min_rows=15, folds=2, references=False, time_limit=None)
    )


@pytest.mark.parametrize("kind", ["regression", "classification"])
def test_everything_is_in_the_page(kind, request, tmp_path):
    comparison = request.getfixturevalue(kind)
    comparison = replace(comparison, notes=["zip: 150 levels & more", "id: dropped"], title='<i>"data"</i>')
    page, parsed = written([comparison], tmp_path)
    words = " ".join(parsed.words.split())
    sentences = [comparison.verdict(), *comparison.near.lines(), *comparison.notes, comparison.title]
    for sentence in [*sentences, *map(str, comparison.references.values()), *versions().values()]:
        assert " ".join(sentence.split()) in words
    cells = {cell for row in parsed.rows for cell in row}
    for model in comparison.models.values():
        assert " ".join(model.to_text().split()) in words
        assert {f"{cell:.4g}" for cell in model.coef_table()["coefficient"]} <= cells
        for leaf in model.leaf_table()["holds"]:
            assert " ".join(leaf.split()) in words
    for name in comparison.setting.to_dict():
        assert name.replace("_", " ") in words
    assert not re.search(r"<script|https?://|src=|@import|url\((?!#)", page)
    assert not any(tag in ("script", "img", "iframe", "i", "b") for tag, _ in parsed.elements)
    ids = [attrs["id"] for _, attrs in parsed.elements if "id" in attrs]
    assert len(ids) == len(set(ids))


def test_table_has_headers_references_and_the_best_scores_in_bold(regression, tmp_path):
    page, parsed = written([regression], tmp_path)
    header, *rows = parsed.rows[: 1 + regression.table.n_rows]
    assert header[:5] == ["method", "leaves", "cost, %", "bound, %", "above bound, %"]
    assert [row[0] for row in rows] == regression.table["method"].tolist()
    scores = regression.table["cv_R2"]
    assert [row[header.index("R² cv")] for row in rows] == [f"{score:.3f}" for score in scores]
    whole = no_split_cost(regression)
    costs = 100 * regression.table["cost"] / whole
    assert [row[2] for row in rows] == [f"{cost:.2f}" if np.isfinite(cost) else "-" for cost in costs]
    assert f'title="{regression.table["cost"][1]:.10g}"' in page
    best = scores.round(3) == np.nanmax(scores).round(3)
    assert page.count(' best"') == best.sum()
    assert page.count('class="reference"') == len(regression.references)
    assert rows[1][3] == "-"  # greedy proves no bound


def test_columns_are_read_generically(regression, tmp_path):
    table = Table(
        method=["none", "greedy", "tree"], leaves=[1.0, nan, 12345.0], cost=[3e-9, 2e-9, inf], bound=[-inf, 0.0, 1e-9],
        test_log_loss=[0.5, 0.25, nan], test_accuracy=[0.5, 0.5, nan], verified=["yes", "no", "-"],
    )  # fmt: skip
    bare = replace(regression, table=table, references={}, models={}, curves={})
    _, parsed = written([bare], tmp_path)
    assert [row[1:] for row in parsed.rows[1:4]] == [
        ["1", "0.00000000300000", "-", "0.500", "0.500", "yes"],
        ["-", "0.00000000200000", "0.00000000000000", "0.250", "0.500", "no"],
        ["12,345", "-", "0.00000000100000", "-", "-", "-"],
    ]


def test_the_curves_are_the_costs_in_per_cent_of_no_split(regression):
    with print_style():
        costs, near = chart_drawings(regression, "c")
    ax = costs.figure.axes[0]
    lines = {line.get_label(): line for line in ax.lines}
    for label, name, colour in (("greedy tree", "greedy", GREEDY), ("best tree (proven bound)", "optimum", EXACT)):
        shown = 100 * np.array(regression.curves[name]) / regression.curves[name][0]
        np.testing.assert_allclose(lines[label].get_ydata(), shown)
        assert lines[label].get_color() == colour
    assert ax.get_ylim()[0] == 0
    assert len(near.figure.axes[0].lines) == 2
    few = replace(regression.near, curve=regression.near.curve[:1])
    assert len(chart_drawings(replace(regression, near=few), "c")) == 1


def overlapping(figure):
    """Pairs of texts of a figure that cover each other."""
    figure.draw_without_rendering()
    texts = [text for ax in figure.axes for text in ax.texts]
    boxes = [(text.get_text(), text.get_window_extent().padded(-0.5)) for text in texts]
    return [(a, b) for (a, one), (b, other) in combinations(boxes, 2) if one.overlaps(other)]


@pytest.mark.parametrize("kind", ["regression", "classification"])
def test_trees_have_their_splits_and_leaves_and_no_text_covers_another(kind, request):
    comparison = request.getfixturevalue(kind)
    models = [comparison.models[name] for name in ("greedy", "tree")]
    drawn = tree_drawings(comparison, "c")
    assert len(drawn) == 2
    shared = set.intersection(
        *({frozenset(m.partition_.members(q).tolist()) for q in range(m.n_leaves_)} for m in models)
    )
    for drawing, model, colour in zip(drawn, models, (GREEDY, EXACT), strict=True):
        texts = [text for text in drawing.figure.axes[0].texts if text.get_bbox_patch()]
        leaves = [text for text in texts if text.get_text().startswith("leaf")]
        assert (len(leaves), len(texts)) == (model.n_leaves_, 2 * model.n_leaves_ - 1)
        colours = [text.get_bbox_patch().get_edgecolor() for text in leaves]
        from matplotlib.colors import to_hex

        assert sum(to_hex(each) == GREY.lower() for each in colours) == len(shared)
        assert {to_hex(each) for each in colours} <= {colour.lower(), GREY.lower()}
        percent = [float(re.search(r"cost ([\d.e+-]+)%", text.get_text())[1]) for text in leaves]
        assert sum(percent) == pytest.approx(100 * model.leaf_costs_.sum() / no_split_cost(comparison), rel=0.01)
        assert overlapping(drawing.figure) == []
    same = replace(comparison, models=comparison.models | {"greedy": models[1]})
    (one,) = tree_drawings(same, "c")
    assert "Greedy found the same tree." in one.caption


def test_svg_follows_the_page(regression):
    svg = tree_drawings(regression, "c")[0].svg()
    assert "var(--orange)" in svg
    assert not re.search(r"#[0-9a-f]{6}\b", svg)
    assert "http" not in svg
    assert "<style" not in svg


def test_several_comparisons_are_linked(regression, classification, tmp_path):
    _, parsed = written([regression, classification], tmp_path)
    links = [attrs["href"] for tag, attrs in parsed.elements if tag == "a"]
    ids = [attrs["id"] for tag, attrs in parsed.elements if tag == "section"]
    assert links[1:] == [f"#{name}" for name in ids] == ["#comparison-0", "#comparison-1"]


def test_unfinished_comparison_and_broken_text(regression, tmp_path):
    empty = Table(method=["none", "greedy"], leaves=[nan, nan], cost=[nan, nan], status=["time limit", "-"])
    comparison = Comparison("lone \ud800", regression.setting, {}, empty, interrupted=True)
    page, parsed = written([comparison], tmp_path)
    assert "Interrupted" in parsed.words
    assert "lone &#55296;" in page
    assert "<svg" not in page
    some = replace(regression, curves={"greedy": [5.0], "optimum": [inf]}, near=None)
    assert len(chart_drawings(some, "c")) == 1


def test_long_formulas_are_folded_and_complete(tmp_path):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 40))
    X[rng.random(X.shape) < 0.1] = np.nan
    setting = Setting(max_depth=1, folds=0, references=False, min_rows=20)
    comparison = compare_partitions(X, rng.normal(size=300), methods=("none", "greedy"), setting=setting)
    page, _ = written([comparison], tmp_path)
    whole = re.findall(r'<details class="rest">.*?</summary>(.*?)</details>', page, re.S)
    formulas = [" ".join(unescape(re.sub("<[^>]*>", "", part)).split()) for part in whole]
    lines = [line.strip() for model in comparison.models.values() for line in model.to_text().splitlines()]
    assert sorted(formulas) == sorted(line for line in lines if line.startswith("y ="))
