"""Comparisons of methods: intervals, p values and adjustments agree with scipy and with definitions by brute force."""

import math
from itertools import combinations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import t as student
from scipy.stats import ttest_rel

from admiss.estimates import estimate, holm
from admiss.study.report.comparisons import compare, group_estimates, paired_differences
from admiss.study.table import DATA_SETS


def rows_of(values, **columns):
    """Rows that count: ``values[method]`` is one value per instance; columns are one value per instance too."""
    frames = []
    for method, mine in values.items():
        instances = range(len(mine))
        facts = {"unit": [f"instance {i}" for i in instances], "repetition": [str(i) for i in instances], **columns}
        frames.append(pl.DataFrame({"method": method, "instance": instances, "value": mine, **facts}))
    return pl.concat(frames)


@pytest.mark.parametrize("units", [2, 3, 10, 200])
def test_intervals_and_p_values_are_those_of_the_paired_t_test(units):
    rng = np.random.default_rng(units)
    values = {"a": rng.normal(size=units), "b": rng.normal(size=units), "base": rng.normal(size=units)}
    found = {each.method: each for each in compare(rows_of(values), "base", ["a", "b", "base"], {})}
    assert list(found) == ["a", "b"]
    for method, each in found.items():
        test = ttest_rel(values[method], values["base"])
        low, high = test.confidence_interval(0.95)
        assert each.estimate.mean == pytest.approx(np.mean(values[method] - values["base"]))
        assert (each.estimate.low, each.estimate.high) == (pytest.approx(low), pytest.approx(high))
        assert each.estimate.p == pytest.approx(test.pvalue)
        assert each.wins == np.sum(values[method] > values["base"])
        assert each.wins + each.ties + each.losses == each.estimate.units == units


def closed_test(p_values):
    """Adjusted p by closed testing: the largest Bonferroni p of all intersections that contain the hypothesis."""
    everyone = range(len(p_values))
    subsets = [chosen for size in range(1, len(p_values) + 1) for chosen in combinations(everyone, size)]
    bonferroni = {chosen: min(1.0, len(chosen) * min(p_values[i] for i in chosen)) for chosen in subsets}
    return [max(p for chosen, p in bonferroni.items() if index in chosen) for index in everyone]


@given(st.lists(st.floats(0, 1) | st.sampled_from([0.0, 0.01, 0.05, 1.0]), max_size=7))
def test_holm_is_the_closed_test_of_bonferroni(p_values):
    assert holm(p_values) == pytest.approx(closed_test(p_values))


def test_verdicts_are_adjusted_over_all_levels():
    rng = np.random.default_rng(0)
    base = rng.normal(size=60)
    setting = np.repeat(["x", "y", "z"], 20)
    values = {"base": base, "far": base + 1 + 0.1 * rng.normal(size=60), "near": base + rng.normal(scale=0.5, size=60)}
    values["worse"] = base - 0.25 + rng.normal(scale=0.6, size=60)
    found = compare(rows_of(values, setting=setting), "base", list(values), {"setting": ["x", "y", "z"]})
    assert len(found) == 3 * 4
    assert [each.adjusted for each in found] == pytest.approx(closed_test([each.estimate.p for each in found]))
    for each in found:
        expected = "undecided" if each.adjusted > 0.05 else "better" if each.estimate.mean > 0 else "worse"
        assert each.verdict == expected
        assert each.instances == (20 if each.setting else 60)
    assert {each.verdict for each in found if each.method == "far"} == {"better"}
    assert {each.verdict for each in found if each.method == "worse"} >= {"worse"}
    assert any(each.estimate.p <= 0.05 < each.adjusted for each in found)


def test_splits_of_one_data_set_are_corrected():
    rng = np.random.default_rng(4)
    splits = 8
    values = {"a": rng.normal(0.3, size=splits), "base": rng.normal(size=splits)}
    facts = {
        "unit_kind": [DATA_SETS] * splits,
        "unit": ["one"] * splits,
        "n_train": [70] * splits,
        "n_test": [30] * splits,
    }
    (each,) = compare(rows_of(values, **facts), "base", ["a"], {})
    gains = values["a"] - values["base"]
    error = math.sqrt(np.var(gains, ddof=1) * (1 / splits + 30 / 70))
    half = student.ppf(0.975, splits - 1) * error
    assert each.estimate.units == splits
    assert (each.estimate.low, each.estimate.high) == pytest.approx((gains.mean() - half, gains.mean() + half))
    assert each.estimate.p == pytest.approx(2 * student.sf(abs(gains.mean()) / error, splits - 1))
    # without the sizes nothing is known about what splits share
    (each,) = compare(rows_of(values, **{**facts, "n_train": [None] * splits}), "base", ["a"], {})
    assert (each.estimate.units, each.estimate.p, each.verdict) == (1, None, "undecided")
    assert each.estimate.mean == pytest.approx(gains.mean())


def test_settings_of_one_split_are_one_unit():
    values = {"a": [1.0, 2.0, 4.0, 5.0], "base": [0.0, 0.0, 0.0, 0.0]}
    facts = {"unit_kind": [DATA_SETS] * 4, "unit": ["one"] * 4, "n_train": [80] * 4, "n_test": [20] * 4}
    facts |= {"repetition": ["first", "first", "second", "second"], "fraction": [0.1, 0.5] * 2}
    rows = rows_of(values, **facts)
    overall, low, high = compare(rows, "base", ["a"], {"fraction": [0.1, 0.5]})
    expected = estimate(np.array([1.5, 4.5]), 0.25)
    assert overall.estimate == expected
    assert low.estimate == estimate(np.array([1.0, 4.0]), 0.25)
    assert high.estimate == estimate(np.array([2.0, 5.0]), 0.25)


def test_data_sets_are_units_and_their_splits_are_units_within_one():
    values = {"a": [1.0, 3.0, 5.0, 9.0, 2.0], "base": [0.0] * 5}
    sets = ["p", "p", "q", "q", "r"]
    facts = {"dataset": sets, "unit_kind": [DATA_SETS] * 5, "unit": sets, "n_train": [90] * 5, "n_test": [10] * 5}
    overall, p, _, r = compare(rows_of(values, **facts), "base", ["a"], {"dataset": ["p", "q", "r"]})
    assert overall.estimate == estimate(np.array([2.0, 7.0, 2.0]))
    assert p.estimate == estimate(np.array([1.0, 3.0]), 10 / 90)
    assert (r.estimate.units, r.estimate.low, r.verdict) == (1, None, "undecided")


def test_degenerate_differences():
    one = estimate(np.array([0.4]))
    assert (one.mean, one.low, one.high, one.p, one.units) == (0.4, None, None, None, 1)
    equal = estimate(np.zeros(5))
    assert (equal.mean, equal.low, equal.high, equal.p) == (0.0, 0.0, 0.0, 1.0)
    base = np.array([0.1, 0.2, 0.7])
    values = {"base": base, "same": base.copy(), "rounded": base * (1 + 2e-16), "shifted": base + 0.1}
    found = {each.method: each for each in compare(rows_of(values), "base", list(values), {})}
    for method in ("same", "rounded"):
        assert (found[method].ties, found[method].estimate.p, found[method].verdict) == (3, 1.0, "undecided")
    shifted = found["shifted"]
    assert shifted.estimate.identical
    assert (shifted.wins, shifted.estimate.p, shifted.adjusted, shifted.verdict) == (3, None, None, "undecided")


def test_only_common_instances_count_and_repeated_cells_are_averaged():
    rows = rows_of({"base": [1.0, 2.0, 3.0], "a": [2.0, 4.0, 9.0]})
    rows = rows.filter((pl.col("method") == "a") | (pl.col("instance") < 2))
    rows = pl.concat([rows, rows.filter(pl.col("method") == "base").with_columns(pl.col("value") + 1)])
    pairs = paired_differences(rows, "base")
    assert pairs["difference"].to_list() == [0.5, 1.5]
    assert compare(rows, "nobody", ["a"], {}) == []


@given(st.lists(st.floats(-5, 5), min_size=2, max_size=12), st.floats(0, 1))
def test_estimates_do_not_depend_on_the_order_and_widen_with_the_overlap(values, ratio):
    numbers = np.array(values)
    found, turned = estimate(numbers, ratio), estimate(numbers[::-1], ratio)
    assert found.mean == pytest.approx(turned.mean, abs=1e-12)
    plain = estimate(numbers)
    if found.low is not None and found.p is not None:
        assert found.low <= found.mean <= found.high
        assert found.high - found.low >= plain.high - plain.low - 1e-12
        assert found.p >= plain.p - 1e-12


def test_groups():
    rows = rows_of({"a": [1.0, 2.0, 3.0, 5.0], "b": [0.0, 1.0, 1.0, 1.0]}, level=["x", "x", "y", "y"])
    found = group_estimates(rows, ["level", "method"], "value")
    assert found["y", "a"] == estimate(np.array([3.0, 5.0]))
    assert found["y", "b"].identical
