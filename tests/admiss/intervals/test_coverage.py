"""Coverage: the report against counts by hand, its figure, and the guarantee in simulations."""

import matplotlib
import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest

from admiss import AdaptiveClassifier, AdaptiveRegressor, PatternConformalClassifier, PatternConformalRegressor
from formulations.conformal.program import ThresholdProblem
from formulations.conformal.thresholds import conservative_thresholds, thresholds_at
from tests.properties.entry import make_rows

matplotlib.use("agg")


def test_report_counts():
    X, y = make_rows(AdaptiveRegressor(), 600)
    model = PatternConformalRegressor(AdaptiveRegressor(), [0.9, 0.6], "features", random_state=0).fit(X, y)
    X, y = make_rows(AdaptiveRegressor(), 500, 1)
    report = model.coverage_report(X, y)
    table, interval = report.table, model.predict_interval(X)[1]
    M, kinds = np.isnan(X), table["kind"].tolist()
    assert set(kinds) == {"all", "missing", "observed", "n_missing", "pattern"}
    for k, level in enumerate((0.9, 0.6)):
        covered = (interval[:, 0, k] <= y) & (y <= interval[:, 1, k])
        groups = {"all rows": np.ones(500, bool), "x0 missing": M[:, 0], "x3 observed": ~M[:, 3]}
        groups |= {"2 missing": M.sum(axis=1) == 2, "nothing missing": ~M.any(axis=1)}
        for name, rows in groups.items():
            (at,) = np.flatnonzero((table["group"] == name) & (table["level"] == level))
            assert table["rows"][at] == rows.sum()
            assert table["coverage"][at] == pytest.approx(covered[rows].mean())
            exact = binomtest(int(covered[rows].sum()), int(rows.sum())).proportion_ci(0.95, "exact")
            assert (table["low"][at], table["high"][at]) == pytest.approx((exact.low, exact.high))
            assert table["mean_width"][at] == pytest.approx(np.diff(interval[rows, :, k], axis=1).mean())
    assert min(n for n, kind in zip(table["rows"], kinds, strict=True) if kind == "pattern") >= 50
    assert not any(word in " ".join(table["group"]) for word in ("x1 missing", "x1 observed"))
    assert "all rows" in repr(report)


def test_report_of_classes_and_figure(tmp_path):
    X, z = make_rows(AdaptiveClassifier(), 300)
    model = PatternConformalClassifier(AdaptiveClassifier(), [0.9, 0.7], "count", random_state=0).fit(X, z)
    report = model.coverage_report(X, z)
    sets = model.predict_set(X)[1]
    assert report.table["mean_size"][0] == pytest.approx(sets[:, :, 0].sum(axis=1).mean())
    ax = report.plot(level=0.7)
    assert ax.get_yticklabels()[0].get_text() == "all rows  (300)"
    assert "0.7" in ax.get_xlabel()
    ax.figure.savefig(tmp_path / "coverage.png")
    matplotlib.pyplot.close(ax.figure)
    with pytest.raises(ValueError, match="choose one of 0.7, 0.9"):
        report.plot(level=0.5)


def test_labels_of_the_figure_are_not_clipped():
    X, y = make_rows(AdaptiveRegressor(), 400)
    names = [f"household_income_before_tax_in_year_{j}" for j in range(X.shape[1])]
    model = PatternConformalRegressor(AdaptiveRegressor(), random_state=0).fit(pd.DataFrame(X, columns=names), y)
    ax = model.coverage_report(pd.DataFrame(X, columns=names), y).plot()
    ax.figure.canvas.draw()
    width, height = ax.figure.canvas.get_width_height()
    for text in (ax.xaxis.label, *ax.get_yticklabels()):
        box = text.get_window_extent()
        assert min(box.x0, box.y0) >= 0
        assert (box.x1 <= width, box.y1 <= height) == (True, True)
    assert ax.get_window_extent().width >= 2.5 * ax.figure.dpi
    matplotlib.pyplot.close(ax.figure)


@pytest.mark.slow
def test_exactness():
    """3,000 draws; missingness depends on the score. Every mean of f(M) (covered - 0.9) is judged by its own error.

    f is the indicator of a missing or of an observed feature, or 1: nine functions. If the guarantee holds, a deviation
    of 4.5 standard errors has probability 6e-5 in all of them together.
    """
    draws, n, tests, d, a = 3000, 200, 20, 4, 0.1
    rng = np.random.default_rng(0)
    kinds = ("randomised", "conservative", "split")
    deviations = {kind: np.zeros((draws, 2 * d + 1)) for kind in kinds}
    shares = np.zeros((draws, 2 * d + 1))
    for r in range(draws):
        S = np.abs(rng.normal(size=n + tests))
        chance = np.where((S > 1)[:, None], [0.6, 0.4, 0.3, 0.2], [0.2, 0.3, 0.3, 0.25])
        M = rng.uniform(size=(n + tests, d)) < chance
        phi = np.column_stack([np.ones(n + tests), M])
        problem = ThresholdProblem(S[:n], phi[:n], a)
        patterns, codes = np.unique(phi[n:], axis=0, return_inverse=True)
        u = rng.uniform(-a, 1 - a, size=len(patterns))
        thresholds = {
            "randomised": thresholds_at(problem, patterns, u),
            "conservative": conservative_thresholds(problem, patterns),
            "split": np.full(len(patterns), np.sort(S[:n])[180]),
        }
        f = np.column_stack([phi[n:], 1 - M[n:]])
        shares[r] = f.mean(axis=0)
        for kind in kinds:
            covered = S[n:] <= thresholds[kind][codes.ravel()]
            deviations[kind][r] = f.T @ (covered - (1 - a)) / tests
    z = {kind: x.mean(axis=0) / (x.std(axis=0) / np.sqrt(draws)) for kind, x in deviations.items()}
    coverage = {kind: 1 - a + x.mean(axis=0) / shares.mean(axis=0) for kind, x in deviations.items()}
    assert np.abs(z["randomised"]).max() < 4.5, coverage
    assert z["conservative"].min() > -4.5, coverage
    assert coverage["conservative"].max() < 0.93, coverage
    assert coverage["split"][1:].min() < 0.87, coverage  # the experiment can tell
