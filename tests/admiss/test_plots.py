"""Figures of comparisons: nodes are apart, axes begin at 0, greedy and exact have one colour each."""

import json
import sys
from itertools import combinations

import matplotlib
import matplotlib.pyplot
import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

from admiss.compare.partitions import compare_partitions
from admiss.compare.setting import Setting
from admiss.datasets import make_interacting
from admiss.drawing import EXACT, GREEDY
from admiss.plots import plot_comparison
from tests.docs.test_pages import DOCS

matplotlib.use("agg")
# Inches around a node.
MARGIN = 0.05
SETTING = Setting(max_depth=4, min_rows=12, folds=0, references=False)


@pytest.fixture
def figures(monkeypatch):
    """The figures that are saved."""
    saved = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, *_, **__: saved.append(figure))
    return saved


def test_nodes_of_trees_are_apart_at_large_costs(figures, tmp_path):
    data = make_interacting(n=1000, random_state=0)
    compared = compare_partitions(data.X_train, 1e6 * data.y_train, setting=SETTING)
    plot_comparison([compared], tmp_path / "c.svg")
    (figure,) = figures
    figure.draw_without_rendering()
    drawn = 0
    for ax in figure.axes[2:]:
        boxes = [text.get_bbox_patch() for text in ax.texts if text.get_text() not in ("observed", "missing")]
        nodes = [box.get_window_extent().padded(MARGIN * figure.dpi) for box in boxes]
        assert not any(first.overlaps(second) for first, second in combinations(nodes, 2))
        drawn += len(nodes)
    assert drawn == sum(2 * model.n_leaves_ - 1 for name, model in compared.models.items() if name != "none")


def test_costs_are_from_zero_in_the_colours_of_greedy_and_exact(figures, tmp_path):
    data = make_interacting(n=1000, random_state=0)
    plot_comparison([compare_partitions(data.X_train, data.y_train, setting=SETTING)], tmp_path / "c.svg")
    ax = figures[0].axes[0]
    assert ax.get_ylim()[0] == 0
    assert [line.get_ydata()[0] for line in ax.lines] == pytest.approx([100, 100])
    assert {line.get_label().split()[0]: line.get_color() for line in ax.lines} == {"greedy": GREEDY, "best": EXACT}


@pytest.mark.parametrize("page", ["plot_02_frontier_of_leaves", "plot_03_nearly_optimal_trees"])
def test_pages_of_the_gallery_have_the_colours_of_greedy_and_exact(page):
    matplotlib.pyplot.close("all")
    exec(compile((DOCS / "gallery" / f"{page}.py").read_text(), page, "exec"), {})
    for ax in matplotlib.pyplot.gcf().axes:
        assert {line.get_color(): line.get_linestyle() for line in ax.lines} == {EXACT: "-", GREEDY: "--"}
    matplotlib.pyplot.close("all")


def test_the_picture_of_the_readme_is_up_to_date(figures, monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(DOCS)
    import frontier

    shown = json.loads(Image.open(frontier.PICTURE).info["Description"])
    costs = frontier.frontier_costs()
    assert shown.keys() == costs.keys()
    for title in costs:
        for name in costs[title]:
            np.testing.assert_allclose(shown[title][name], costs[title][name], atol=0.01)
    frontier.draw(tmp_path / "frontier.png")
    assert [ax.get_ylim()[0] for ax in figures[0].axes] == [0, 0]
    assert len({ax.get_ylim() for ax in figures[0].axes}) == 1
    del sys.modules["frontier"]
