"""The page of a comparison: everything of the comparison is in it, once escaped; drawings agree with the numbers."""

import re
from dataclasses import replace
from html import escape, unescape
from html.parser import HTMLParser
from math import inf, nan

import numpy as np
import pandas as pd
import pytest

from admiss.compare.comparison import Comparison
from admiss.compare.drawings import name_lines
from admiss.compare.page import write_page
from admiss.compare.partitions import compare_partitions
from admiss.compare.setting import Setting
from admiss.datasets import make_interacting
from admiss.terminal.table import Table
from admiss.versions import versions
from formulations.trees.dynamic_program import leaves_of

VOID = {"meta", "link", "br", "rect", "circle", "path"}
ODD = ["<script>alert(1)</script>", 'it\'s "q" & co', "größe 日本語", "x" * 300, "a\nb", "$title"]


class Parsed(HTMLParser):
    """Elements of a page; every one is closed in its place."""

    def __init__(self, page):
        super().__init__()
        self.open, self.elements, self.words = [], [], ""
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.words += data

    def having(self, name):
        """Elements of a class."""
        return [(tag, attrs) for tag, attrs in self.elements if name in (attrs.get("class") or "").split()]


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
    return compare_partitions(X, y, setting=Setting(max_depth=2, folds=2, references=False, time_limit=None))


@pytest.mark.parametrize("kind", ["regression", "classification"])
def test_everything_is_in_the_page(kind, request, tmp_path):
    comparison = request.getfixturevalue(kind)
    comparison = replace(comparison, notes=["zip: 150 levels & more", "id: dropped"], title='<i>"data"</i>')
    page, parsed = written([comparison], tmp_path)
    words = " ".join(parsed.words.split())
    sentences = [comparison.verdict(), *comparison.near.lines(), *comparison.notes, comparison.title]
    for sentence in [*sentences, *map(str, comparison.references.values())]:
        assert " ".join(sentence.split()) in words
    for model in comparison.models.values():
        assert escape(model.to_text()) in page
        for cell in model.coef_table()["coefficient"]:
            assert f"<td>{cell:.4g}</td>" in page
        for leaf in model.leaf_table()["holds"]:
            assert escape(leaf) in page
    for version in versions().values():
        assert f"<dd>{escape(version)}</dd>" in page
    for name in comparison.setting.to_dict():
        assert f"<dt>{name.replace('_', ' ')}</dt>" in page
    assert not re.search(r"<script|https?://|src=|@import|url\(", page)
    assert not any(tag in ("script", "img", "iframe") for tag, _ in parsed.elements)


def test_table_has_headers_references_and_the_best_scores_in_bold(regression, tmp_path):
    table = re.search(r'aria-label="Methods"><table>(.*?)</table>', written([regression], tmp_path)[0]).group(1)
    assert re.findall(r'<th scope="col"[^>]*>(.*?)</th>', table)[:5] == [
        "method",
        "leaves",
        "cost",
        "bound",
        "above bound,\N{NO-BREAK SPACE}%",
    ]
    rows = re.findall(r"<tr( class=\"reference\")?><th scope=\"row\">(.*?)</th>(.*?)</tr>", table)
    names = [re.sub("<.*", "", name).strip() for _, name, _ in rows]
    assert names == regression.table["method"].tolist()
    assert [bool(kind) for kind, _, _ in rows] == [name in regression.references for name in names]
    scores = regression.table["cv_R2"]
    best = scores.round(3) == np.nanmax(scores).round(3)
    assert ["<b>" in cells for _, _, cells in rows] == best.tolist()
    assert ">-<" in rows[1][2]  # greedy proves no bound


def test_columns_are_read_generically(regression, tmp_path):
    table = Table(
        method=["none", "greedy", "tree"], leaves=[1.0, nan, 12345.0], cost=[3e-9, 2e-9, inf], bound=[-inf, 0.0, 1e-9],
        test_log_loss=[0.5, 0.25, nan], test_accuracy=[0.5, 0.5, nan], verified=["yes", "no", "-"],
    )  # fmt: skip
    page, _ = written([replace(regression, table=table, references={})], tmp_path)
    rows = re.findall(r'<tr><th scope="row">(?:none|greedy|tree) .*?</th>(.*?)</tr>', page)
    cells = [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in rows]
    assert cells == [
        ["1", "3.00000e-09", "-", "0.500", "0.500", "yes"],
        ["-", "2.00000e-09", "0.00000e+00", "<b>0.250</b>", "0.500", "no"],
        ["12,345", "-", "1.00000e-09", "-", "-", "-"],
    ]


def test_points_of_the_frontier_are_at_their_costs(regression, tmp_path):
    page, parsed = written([regression], tmp_path)
    costs = {"rect": regression.curves["greedy"], "circle": regression.curves["optimum"]}
    centres, values, places = [], [], {tag: iter(listed) for tag, listed in costs.items()}
    chart = page.split('class="chart"')[1].split("</svg>")[0]
    for tag, words in re.findall(r'<title>.*?</title><circle[^>]*/><(circle|rect|path) class="marker (.*?)/>', chart):
        number = {name: float(value) for name, value in re.findall(r'(\w+)="([-\d.]+)"', words)}
        if tag != "path":
            centres.append(number["cy"] if tag == "circle" else number["y"] + number["height"] / 2)
            values.append(next(places[tag]))
    assert len(centres) == sum(map(len, costs.values()))
    slope, shift = np.polyfit(values, centres, 1)
    assert slope < 0
    np.testing.assert_allclose(slope * np.array(values) + shift, centres, atol=0.1)
    assert len(parsed.having("loss")) == 2


def test_trees_have_their_splits_and_leaves(regression, tmp_path):
    page, parsed = written([regression], tmp_path)
    greedy, exact = (regression.models[name] for name in ("greedy", "tree"))
    assert greedy.partition_.tree != exact.partition_.tree
    leaves = parsed.having("leaf")
    assert len(leaves) == greedy.n_leaves_ + exact.n_leaves_
    assert len(parsed.having("split")) == len(leaves) - 2
    holds = [{frozenset(literals) for literals in leaves_of(m.partition_.tree)} for m in (greedy, exact)]
    assert len(parsed.having("shared")) == 2 * len(holds[0] & holds[1])
    labels = [attrs["aria-label"] for tag, attrs in parsed.elements if tag == "svg" and attrs.get("role") == "img"]
    assert len(labels) == 4
    assert f"Exact tree: {exact.n_leaves_} leaves" in labels[3]
    same = replace(regression, models=regression.models | {"greedy": exact})
    page, parsed = written([same], tmp_path)
    assert len(parsed.having("leaf")) == exact.n_leaves_
    assert "Greedy found the same tree." in page


def test_several_comparisons_are_linked(regression, classification, tmp_path):
    _, parsed = written([regression, classification], tmp_path)
    links = [attrs["href"] for tag, attrs in parsed.elements if tag == "a"]
    ids = [attrs["id"] for _, attrs in parsed.elements if "id" in attrs]
    assert links == [f"#{name}" for name in ids] == ["#comparison-0", "#comparison-1"]


def test_unfinished_comparison_and_broken_text(regression, tmp_path):
    empty = Table(method=["none", "greedy"], leaves=[nan, nan], cost=[nan, nan], status=["time limit", "-"])
    comparison = Comparison("lone \ud800", regression.setting, {}, empty, interrupted=True)
    page, parsed = written([comparison], tmp_path)
    assert "Interrupted" in parsed.words
    assert "lone &#55296;" in page
    assert not parsed.having("tree")
    assert not parsed.having("chart")
    some = replace(regression, curves={"greedy": [5.0], "optimum": [inf]}, near=None)
    assert len(written([some], tmp_path)[1].having("chart")) == 1


def test_long_formulas_are_folded_and_complete(tmp_path):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 40))
    X[rng.random(X.shape) < 0.1] = np.nan
    setting = Setting(max_depth=1, folds=0, references=False, min_rows=20)
    comparison = compare_partitions(X, rng.normal(size=300), methods=("none", "greedy"), setting=setting)
    page, _ = written([comparison], tmp_path)
    whole = re.findall(r'<details class="rest">.*?</summary>(.*?)</details>', page)
    formulas = [unescape(re.sub("<[^>]*>", "", part)).strip() for part in whole]
    lines = [line.strip() for model in comparison.models.values() for line in model.to_text().splitlines()]
    assert sorted(formulas) == sorted(line for line in lines if line.startswith("y ="))


@pytest.mark.parametrize("name", [*ODD, "", "W" * 40, "ab " * 20, "e\u0301" * 50, "日" * 30])
def test_names_fit_into_a_split(name):
    lines = name_lines(name)
    assert 1 <= len(lines) <= 2
    assert all(0 < len(line) <= 30 for line in lines)
    assert len(lines[0]) >= min(4, len(name.split()[0]) if name.split() else 4)
