"""The figures of the bounds show the computed numbers."""

import sys

import matplotlib
import numpy as np
import pytest

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from admiss.bounds import figures
from admiss.bounds.crossovers import crossover
from admiss.bounds.estimates import Estimate
from admiss.bounds.figures import plot_bias_estimation, plot_bounds
from admiss.bounds.theorem import generalization_bound

SETTING = {"d": 5, "sigma2": 0.2, "L": 1.0, "missing": 0.05}


@pytest.fixture(autouse=True)
def _few_points(monkeypatch):
    """Curves of few points, and no figure left open."""
    monkeypatch.setattr(figures, "POINTS", 31)
    yield
    plt.close("all")


def texts(ax):
    return [text.get_text() for text in ax.texts]


def labels(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_curves_are_the_bounds():
    classes = ["static", "affine", ("polynomial", 3), "fully_adaptive"]
    ax = plot_bounds(**SETTING, classes=classes, n=(100, 10_000))
    assert labels(ax) == ["static (vacuous)", "affine", "order 3", "fully adaptive"]
    shown = {line.get_label(): line for line in ax.lines}
    for name, adaptivity in (("order 3", ("polynomial", 3)), ("fully adaptive", "fully_adaptive")):
        for n, total in zip(*shown[name].get_data(), strict=True):
            bound = generalization_bound(n, adaptivity=adaptivity, **SETTING)
            assert np.isnan(total) if bound.vacuous else total == pytest.approx(bound.total)
    assert np.isnan(shown["static (vacuous)"].get_ydata()).all()


def test_changes_of_the_best_class_are_marked():
    ax = plot_bounds(**SETTING)
    marked = [text for text in texts(ax) if text.startswith("n = ")]
    expected = crossover(("polynomial", 3), ("polynomial", 4), **SETTING)
    assert f"n = {expected:,.0f}" in marked
    # one class takes over from another at each mark, and nowhere else in the range of non-vacuous bounds
    rows = np.geomspace(200, 1e5, 500)
    classes = ["static", "affine", *(("polynomial", t) for t in (2, 3, 4)), "fully_adaptive"]
    best = [np.argmin([generalization_bound(n, adaptivity=F, **SETTING).total for F in classes]) for n in rows]
    changes = rows[1:][np.diff(best) != 0]
    found = [float(text.split()[-1].replace(",", "")) for text in marked]
    assert len(changes) == sum(n > 200 for n in found)
    assert all(min(abs(np.log(n / changes))) < 0.02 for n in found if n > 200)


def test_curves_are_distinguishable():
    classes = ["static", "affine_intercept", "affine", *(("polynomial", t) for t in (2, 3, 4)), "fully_adaptive"]
    ax = plot_bounds(8, 0.2, 1.0, classes=classes, missing=0.01)
    lines = [line for line in ax.lines if not line.get_label().startswith("_")]
    assert len(lines) == 7
    assert len({line.get_color() for line in lines}) == 7
    assert len({line.get_marker() for line in lines}) == 7
    with pytest.raises(ValueError, match="can show 1 to 7 classes, not 8"):
        plot_bounds(9, 0.2, 1.0, classes=[*classes, ("polynomial", 5)])


def test_what_is_not_a_bound_is_labelled():
    assert "as printed, not a bound" in plot_bounds(6, 1.0, 1.0, bias="paper").get_ylabel()
    assert "as printed, not a bound" in plot_bounds(6, 1.0, 1.0, constant="paper").get_ylabel()
    printed = " (as printed, not a bound)"
    expected = ["total" + printed, "bias part 8 b(F)" + printed, "estimation part"]
    assert labels(plot_bias_estimation(100, 6, 1.0, 1.0, bias="paper")) == expected
    expected = ["total" + printed, "bias part 8 b(F)", "estimation part" + printed]
    assert labels(plot_bias_estimation(100, 6, 1.0, 1.0, constant="paper")) == expected
    assert labels(plot_bias_estimation(100, 6, 1.0, 1.0)) == ["total", "bias part 8 b(F)", "estimation part"]
    assert labels(plot_bias_estimation(100, 6, 1.0, 1.0, bias=0.1))[0] == "total (given b(F))"
    assert plot_bounds(6, 1.0, 1.0).get_ylabel() == "bound on the risk, c = 1"
    assert "not a bound" in plot_bounds(6, 1.0, 1.0, count="table").get_ylabel()
    assert "not a bound" in labels(plot_bias_estimation(100, 6, 1.0, 1.0, missing=np.eye(6)))[0]
    assert plot_bounds(6, 1.0, 1.0, bias=0.1).get_ylabel() == "bound on the risk, c = 1\n(given b(F))"
    assert any("vacuous" in text for text in texts(plot_bounds(**SETTING)))


def test_parts_over_the_order():
    ax = plot_bias_estimation(10_000, **{**SETTING, "d": 6})
    shown = {line.get_label(): line.get_data() for line in ax.lines}
    bounds = [
        generalization_bound(10_000, adaptivity=("polynomial", t), **{**SETTING, "d": 6}) for t in range(7)
    ]  # fmt: skip
    assert shown["total"][1] == pytest.approx([bound.total for bound in bounds])
    assert shown["estimation part"][1] == pytest.approx([bound.estimation for bound in bounds])
    assert shown["bias part 8 b(F)"][1] == pytest.approx([bound.bias for bound in bounds[:6]])
    assert "0" in texts(ax)
    best = int(np.argmin([bound.total for bound in bounds]))
    assert f"smallest: t = {best}" in texts(ax)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("d", [1, 2, 30, 1000])
def test_few_and_many_features(d, tmp_path):
    figure, axes = plt.subplots(1, 2)
    plot_bounds(d, 0.0, 2.0, missing=0.001, ax=axes[0])
    plot_bias_estimation(1000, d, 0.0, 2.0, missing=0.001, ax=axes[1])
    figure.savefig(tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 5000


def test_biases_of_each_class():
    ax = plot_bounds(5, 0.2, 1.0, classes=["static", "fully_adaptive"], bias=[0.01, 0.0])
    expected = crossover("static", "fully_adaptive", 5, 0.2, 1.0, bias=(0.01, 0.0))
    assert f"n = {expected:,.0f}" in texts(ax)


def test_estimates_as_biases():
    classes = ["static", "fully_adaptive"]
    ax = plot_bounds(5, 0.2, 1.0, classes, (100, 1000), bias=[Estimate(0.01, 0.1, ""), Estimate(-0.02, 0.1, "")])
    assert "given b(F)" in ax.get_ylabel()
    for line, F, b in zip([line for line in ax.lines if line.get_label()[0] != "_"], classes, (0.01, 0.0), strict=True):
        rows, totals = line.get_data()
        assert totals[-1] == pytest.approx(generalization_bound(rows[-1], 5, F, 0.2, 1.0, bias=b).total)
    parts = plot_bias_estimation(1000, 5, 0.2, 1.0, bias=Estimate(0.01, 0.1, ""))
    assert parts.lines[1].get_ydata() == pytest.approx(0.08)


@pytest.mark.filterwarnings("error")
def test_numbers_beyond_the_largest_float(tmp_path):
    # 8 b(F) as printed, for an order far from both ends
    classes = ["static", ("polynomial", 300), "fully_adaptive"]
    ax = plot_bounds(100_000, 1.0, 1.0, classes, bias="paper")
    assert labels(ax) == ["static (vacuous)", "order 300 (vacuous)", "fully adaptive (vacuous)"]
    only = plot_bounds(100_000, 1.0, 1.0, classes[1:2], bias="paper")
    parts = plot_bias_estimation(10**400, 6, 1.0, 1.0)
    assert parts.get_ylabel().endswith("(n = 1.00e+400)")
    for k, axes in enumerate((ax, only, parts)):
        axes.figure.savefig(tmp_path / f"{k}.png")


def test_labels_fit_into_low_axes():
    figure, axes = plt.subplots(1, 2, figsize=(8, 2.4), layout="constrained")
    plot_bounds(6, 1.0, 1.0, bias="paper", ax=axes[0])
    plot_bias_estimation(10_000, 6, 1.0, 1.0, bias="paper", ax=axes[1])
    figure.canvas.draw()
    for ax in axes:
        label = ax.yaxis.label.get_window_extent()
        assert label.y0 >= 0
        assert label.y1 <= figure.bbox.height


def test_clear_errors(monkeypatch):
    with pytest.raises(ValueError, match="bias has 3 entries for 2 classes"):
        plot_bounds(**SETTING, classes=["static", "affine"], bias=[0.1, 0.2, 0.3])
    for n in ((100, 10), 5, (10, 10**400), (1, 2, 3), "ab", (0.5, 10), (1, np.nan)):
        with pytest.raises(
            ValueError, match="n must be a pair of a smallest and a largest number of rows, between 1 and"
        ):
            plot_bounds(**SETTING, n=n)
    for classes in ("affine", 3, ("polynomial", 2)):
        with pytest.raises(ValueError, match="classes must be a list of classes, such as"):
            plot_bounds(**SETTING, classes=classes)
    for draw in (plot_bounds, lambda *setting: plot_bias_estimation(100, *setting)):
        for d in (0, "a"):
            with pytest.raises(ValueError, match="d must be a positive whole number of features, not"):
                draw(d, 0.2, 1.0)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    for draw in (lambda: plot_bounds(**SETTING), lambda: plot_bias_estimation(100, **SETTING)):
        with pytest.raises(ImportError, match=r"admiss\[plots\]"):
            draw()


def test_biases_by_second_moments():
    known = {"moments": (np.zeros(5), np.eye(5) / 2 + 0.5), "beta": np.ones(5)}
    ax = plot_bias_estimation(10_000, **SETTING, bias="moments", **known)
    shown = {line.get_label(): line.get_data() for line in ax.lines}
    bounds = [generalization_bound(10_000, adaptivity=("polynomial", t), **SETTING, bias="moments", **known)
              for t in range(6)]  # fmt: skip
    total, bias, _ = labels(ax)
    assert "M independent of (X, y)" in total
    expected = [bound.bias for bound in bounds if bound.bias > 0]
    assert shown[bias][1] == pytest.approx(expected)
    assert "second moments" in plot_bounds(**SETTING, bias="moments", **known).get_ylabel().replace("\n", " ")


def test_colours_are_okabe_and_ito():
    known = {"#0072B2", "#D55E00", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#009E73"}
    assert {style[0] for style in figures.STYLES} == known
