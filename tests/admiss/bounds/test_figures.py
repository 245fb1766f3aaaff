"""The figures of the bounds show the computed numbers."""

import sys

import matplotlib
import numpy as np
import pytest

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from admiss.bounds import BoundSetting, Estimate, crossover, generalization_bound, plot_bias_estimation, plot_bounds
from admiss.drawing import STYLES

SETTING = BoundSetting(5, 0.2, 1.0, missing=0.05)


def six(**options):
    return BoundSetting(6, 1.0, 1.0, **options)


@pytest.fixture(autouse=True)
def _no_figure_left_open():
    yield
    plt.close("all")


def texts(ax):
    return [text.get_text() for text in ax.texts]


def labels(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_curves_are_the_bounds():
    classes = ["static", "affine", ("polynomial", 3), "fully_adaptive"]
    ax = plot_bounds(SETTING, classes, n=(100, 10_000))
    assert labels(ax) == ["static (vacuous)", "affine", "order 3", "fully adaptive"]
    shown = {line.get_label(): line for line in ax.lines}
    for name, adaptivity in (("order 3", ("polynomial", 3)), ("fully adaptive", "fully_adaptive")):
        for n, total in zip(*shown[name].get_data(), strict=True):
            bound = generalization_bound(SETTING, n, adaptivity)
            assert np.isnan(total) if bound.vacuous else total == pytest.approx(bound.total)
    assert np.isnan(shown["static (vacuous)"].get_ydata()).all()


def test_changes_of_the_best_class_are_marked():
    ax = plot_bounds(SETTING)
    marked = [text for text in texts(ax) if text.startswith("n = ")]
    expected = crossover(SETTING, ("polynomial", 3), ("polynomial", 4))
    assert f"n = {expected:,.0f}" in marked
    # one class takes over from another at each mark, and nowhere else in the range of non-vacuous bounds
    rows = np.geomspace(200, 1e5, 500)
    classes = ["static", "affine", *(("polynomial", t) for t in (2, 3, 4)), "fully_adaptive"]
    best = [np.argmin([generalization_bound(SETTING, n, F).total for F in classes]) for n in rows]
    changes = rows[1:][np.diff(best) != 0]
    marks = [float(text.split()[-1].replace(",", "")) for text in marked]
    assert len(changes) == sum(n > 200 for n in marks)
    assert all(min(abs(np.log(n / changes))) < 0.02 for n in marks if n > 200)


def test_curves_are_distinguishable():
    classes = ["static", "affine_intercept", "affine", *(("polynomial", t) for t in (2, 3, 4)), "fully_adaptive"]
    ax = plot_bounds(BoundSetting(8, 0.2, 1.0, missing=0.01), classes)
    lines = [line for line in ax.lines if not line.get_label().startswith("_")]
    assert len(lines) == 7
    assert len({line.get_color() for line in lines}) == 7
    assert len({line.get_marker() for line in lines}) == 7
    with pytest.raises(ValueError, match="7 classes, not 8"):
        plot_bounds(BoundSetting(9, 0.2, 1.0), [*classes, ("polynomial", 5)])


def test_colours_are_okabe_and_ito():
    known = {"#0072B2", "#D55E00", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#009E73"}
    assert {style[0] for style in STYLES} == known


@pytest.mark.parametrize(
    "options", [{"bias": "paper"}, {"constant": "paper"}, {"bias": 0.1}, {"count": "table"}, {"missing": np.eye(6)}, {}]
)
def test_what_is_not_a_bound_is_labelled(options):
    setting = six(**options)
    caveat = generalization_bound(setting, 100, "affine").caveat
    label = plot_bounds(setting).get_ylabel().replace("\n", " ")
    assert label == "bound on the risk, c = 1" + (f" ({caveat})" if caveat else "")
    total, bias, estimation = labels(plot_bias_estimation(setting, 100))
    assert total == "total" + (f" ({caveat})" if caveat else "")
    assert ("as printed, not a bound" in bias) == (setting.bias == "paper")
    assert ("as printed, not a bound" in estimation) == (setting.constant == "paper")
    assert any("vacuous" in text for text in texts(plot_bounds(setting)))


def test_parts_over_the_order():
    setting = BoundSetting(6, 0.2, 1.0, missing=0.05)
    ax = plot_bias_estimation(setting, 10_000)
    lines = {line.get_label(): line.get_data() for line in ax.lines}
    bounds = [generalization_bound(setting, 10_000, ("polynomial", t)) for t in range(7)]
    assert lines["total"][1] == pytest.approx([bound.total for bound in bounds])
    assert lines["estimation part"][1] == pytest.approx([bound.estimation for bound in bounds])
    assert lines["bias part 8 b(F)"][1] == pytest.approx([bound.bias for bound in bounds[:6]])
    assert "0" in texts(ax)
    best = int(np.argmin([bound.total for bound in bounds]))
    assert f"smallest: t = {best}" in texts(ax)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("d", [1, 2, 30, 1000])
def test_few_and_many_features(d, tmp_path):
    figure, axes = plt.subplots(1, 2)
    setting = BoundSetting(d, 0.0, 2.0, missing=0.001)
    plot_bounds(setting, ax=axes[0])
    plot_bias_estimation(setting, 1000, ax=axes[1])
    figure.savefig(tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 5000


def test_one_bias_for_each_class():
    classes = ["static", "fully_adaptive"]
    for biases in ([0.01, 0.0], [Estimate(0.01, 0.1, ""), Estimate(-0.02, 0.1, "")]):
        setting = BoundSetting(5, 0.2, 1.0, bias=biases)
        ax = plot_bounds(setting, classes, (100, 100_000))
        assert f"n = {crossover(setting, *classes):,.0f}" in texts(ax)
        lines = [line for line in ax.lines if line.get_label()[0] != "_"]
        for line, F, b in zip(lines, classes, (0.01, 0.0), strict=True):
            rows, totals = line.get_data()
            expected = generalization_bound(BoundSetting(5, 0.2, 1.0, bias=b), rows[-1], F)
            assert totals[-1] == pytest.approx(expected.total)
    parts = plot_bias_estimation(BoundSetting(5, 0.2, 1.0, bias=Estimate(0.01, 0.1, "")), 1000)
    assert parts.lines[1].get_ydata() == pytest.approx(0.08)
    with pytest.raises(ValueError, match="3 entries for 2 classes"):
        plot_bounds(BoundSetting(5, 0.2, 1.0, bias=[0.1, 0.2, 0.3]), classes)


@pytest.mark.filterwarnings("error")
def test_numbers_beyond_the_largest_float(tmp_path):
    # 8 b(F) as printed, for an order far from both ends
    classes = ["static", ("polynomial", 300), "fully_adaptive"]
    printed = BoundSetting(100_000, 1.0, 1.0, bias="paper")
    ax = plot_bounds(printed, classes)
    assert labels(ax) == ["static (vacuous)", "order 300 (vacuous)", "fully adaptive (vacuous)"]
    only = plot_bounds(printed, classes[1:2])
    parts = plot_bias_estimation(six(), 10**400)
    assert parts.get_ylabel().endswith("(n = 1.00e+400)")
    for k, axes in enumerate((ax, only, parts)):
        axes.figure.savefig(tmp_path / f"{k}.png")


def test_labels_fit_into_low_axes():
    figure, axes = plt.subplots(1, 2, figsize=(8, 2.4), layout="constrained")
    plot_bounds(six(bias="paper"), ax=axes[0])
    plot_bias_estimation(six(bias="paper"), 10_000, ax=axes[1])
    figure.canvas.draw()
    for ax in axes:
        label = ax.yaxis.label.get_window_extent()
        assert label.y0 >= 0
        assert label.y1 <= figure.bbox.height


def test_clear_errors(monkeypatch):
    for n in ((100, 10), 5, (10, 10**400), (1, 2, 3), "ab", (0.5, 10), (1, np.nan)):
        with pytest.raises(ValueError, match="^n must be a pair"):
            plot_bounds(SETTING, n=n)
    for classes in ("affine", 3, ("polynomial", 2)):
        with pytest.raises(ValueError, match="^classes must be a list"):
            plot_bounds(SETTING, classes)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    for draw in (lambda: plot_bounds(SETTING), lambda: plot_bias_estimation(SETTING, 100)):
        with pytest.raises(ImportError, match=r"admiss\[plots\]"):
            draw()


def test_biases_by_second_moments():
    moments = (np.zeros(5), np.eye(5) / 2 + 0.5)
    setting = BoundSetting(5, 0.2, 1.0, bias="moments", missing=0.05, moments=moments, beta=np.ones(5))
    ax = plot_bias_estimation(setting, 10_000)
    lines = {line.get_label(): line.get_data() for line in ax.lines}
    bounds = [generalization_bound(setting, 10_000, ("polynomial", t)) for t in range(6)]
    total, bias, _ = labels(ax)
    assert "M independent of (X, y)" in total
    assert lines[bias][1] == pytest.approx([bound.bias for bound in bounds if bound.bias > 0])
    assert "second moments" in plot_bounds(setting).get_ylabel().replace("\n", " ")
