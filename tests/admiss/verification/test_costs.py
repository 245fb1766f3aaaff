"""Exact sums, leaf costs and optima against the exact optimum of the tests of partitions, which shares no code."""

from fractions import Fraction

import numpy as np
import pytest
from flint import fmpq, fmpz_mat
from hypothesis import given, settings
from hypothesis import strategies as st

from admiss.verification.claim import NotCoveredError
from admiss.verification.exact import (
    independent_columns,
    integers_of,
    leaf_features,
    pattern_sums,
    power_of_two,
    ridges_of,
)
from admiss.verification.partitions import BoxSums, best_groups_cost, best_tree_cost, no_cover_below
from tests.admiss.partition.exact_leaves import ExactLeaves
from tests.admiss.partition.exact_partitions import ExactOptimum

FINITE = st.floats(allow_nan=False, allow_infinity=False, width=64)


def as_fraction(value):
    return Fraction(int(fmpq(value).p), int(fmpq(value).q))


@given(st.lists(st.tuples(FINITE, FINITE), min_size=1, max_size=6))
def test_integers_are_the_floats(rows):
    table = np.array(rows)
    integers = integers_of(table)
    back = [Fraction(n) * power_of_two(-integers.exponents[i % 2]) for i, n in enumerate(integers.numbers)]
    assert back == [Fraction(x) for x in table.ravel().tolist()]


def table(seed, n=40, d=3, kind="plain"):
    rng = np.random.default_rng(seed)
    X, s = rng.standard_normal((n, d)), rng.integers(1, 4, n) / 2.0
    if kind == "duplicated":
        X[:, 1] = X[:, 0]
    if kind == "near":
        X[:, 1] = X[:, 0] + 1e-7 * X[:, 1]
    if kind == "offset":
        X += 1e6
    y = X @ np.arange(1, d + 1) + rng.standard_normal(n)
    X[rng.random((n, d)) < 0.4] = np.nan
    if kind == "zero":
        X[:, 2] = 0.0
    return X, y, s


def both(rows, model="static", ridge=1.0, ridge_scale="leaf", center=False, scale=False):
    """The sums to be tested; and the exact leaves, of features that are not divided by their units."""
    X, y, s = rows
    M, deviation = np.isnan(X), np.nanstd(X, axis=0)
    deviation = np.where(deviation > 0, deviation, 1.0)
    unit = np.exp2(np.round(np.log2(deviation))) if center or scale else np.ones(X.shape[1])
    centre = np.nanmean(X, axis=0) if center else np.zeros(X.shape[1])
    divisor = deviation if scale else np.ones(X.shape[1])
    A = leaf_features(X, centre, unit, model)
    sums = pattern_sums(X, y, s, A, ridges_of(X, divisor, unit, A.shape[1], ridge), ridge_scale)
    indicators = M[:, M.any(axis=0)] if model == "affine_intercept" else M[:, :0]
    own = np.column_stack([np.where(M, 0.0, X - centre), indicators])
    ridges = np.append(ridge * (divisor / unit) ** 2 * unit**2, np.full(indicators.shape[1], ridge))
    return sums, ExactLeaves(M, own, y, s, ridges, ridge_scale)


@pytest.mark.parametrize("kind", ["plain", "duplicated", "near", "offset", "zero"])
@pytest.mark.parametrize("ridge", [0.0, 1e-14, 1.0])
@pytest.mark.parametrize("model", ["static", "affine_intercept"])
@pytest.mark.parametrize(("center", "scale"), [(False, False), (True, True), (True, False)])
def test_leaf_costs_enclose_the_exact_ones(kind, ridge, model, center, scale):
    sums, leaves = both(table(0, kind=kind), model, ridge, "leaf", center, scale)
    for members in ([0], [0, 1], range(len(sums.rows))):
        low, high = (sums.unit * end for end in sums.enclose_members(np.array(members)))
        assert low <= as_fraction(leaves.exact(sum(1 << p for p in members))) <= high
        assert float(high - low) <= 1e-25 * float(high) + 1e-30


@pytest.mark.parametrize("ridge_scale", ["leaf", "sample"])
def test_values_of_models_are_exact(ridge_scale):
    X, y, s = table(1)
    sums, leaves = both((X, y, s), "affine_intercept", 0.75, ridge_scale)
    b, w = 0.3, np.linspace(-1, 1, len(leaves.ridges))
    residuals = [
        Fraction(t) - Fraction(b) - sum(Fraction(a) * Fraction(c) for a, c in zip(row, w.tolist(), strict=True))
        for t, row in zip(leaves.y.tolist(), leaves.A.tolist(), strict=True)
    ]
    weight = sum(map(Fraction, s.tolist())) if ridge_scale == "sample" else 1
    expected = sum(Fraction(v) * r**2 for v, r in zip(leaves.s.tolist(), residuals, strict=True))
    expected += weight * sum(Fraction(3, 4) * Fraction(c) ** 2 for c in w.tolist())
    assert sums.value(np.arange(len(sums.rows)), b, w) == expected


def test_dependent_columns_are_found():
    A = integers_of(np.random.default_rng(0).integers(-5, 5, (20, 3)).astype(float)).matrix()
    joined = A * fmpz_mat([[1, 0, 0, 1, 2], [0, 1, 0, 1, 0], [0, 0, 1, -3, 0]])
    assert independent_columns(joined.transpose() * joined) == [0, 1, 2]


def ends_of(optimum, sums):
    """The exact optimum in units of the costs, with room for lower ends of costs: 1e-30 of them, and rounding."""
    low, high = (as_fraction(end) / sums.unit for end in optimum)
    return int(low - low / 10**30) - 10, int(high) + 1


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("depth", "most", "least"), [(2, 4, 1), (3, 3, 4), (3, 6, 5), (1, 2, 1)])
def test_best_trees_and_covers_are_the_exact_ones(seed, depth, most, least):
    rows = table(seed, kind=["plain", "duplicated", "near"][seed % 3])
    sums, leaves = both(rows, ridge=[0.0, 1.0][seed % 2], center=seed > 2, scale=seed > 2)
    exact = ExactOptimum(leaves, least)
    boxes = BoxSums.of(sums, np.array(exact.varying), depth, least)
    costs = boxes.costs()
    low, high = ends_of(exact.tree(depth, most), sums)
    assert low <= best_tree_cost(boxes, costs, most) <= high
    low, high = ends_of(exact.boxes(depth, most), sums)
    assert no_cover_below(boxes, costs, most, low) == low
    assert low <= no_cover_below(boxes, costs, most, high + 1) <= high


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("most", "least"), [(1, 1), (2, 8), (3, 1), (8, 3)])
def test_best_groups_are_the_exact_ones(seed, most, least):
    sums, leaves = both(table(seed), ridge=0.5, center=seed > 1, scale=seed > 1)
    low, high = ends_of(ExactOptimum(leaves, least).groups(most), sums)
    assert low <= best_groups_cost(sums, most, least) <= high


def test_too_much_work_is_refused_in_a_sentence():
    rng = np.random.default_rng(0)
    X = np.where(rng.random((60, 25)) < 0.5, np.nan, rng.standard_normal((60, 25)))
    sums, _ = both((X, rng.standard_normal(60), np.ones(60)))
    with pytest.raises(NotCoveredError, match="groups of at most 14 patterns"):
        best_groups_cost(sums, 3, 1)
    with pytest.raises(NotCoveredError, match="boxes are too many .* lower max_depth"):
        BoxSums.of(sums, np.arange(25), 12, 1).costs()


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([1e-150, 1e-6, 1.0, 1e6, 1e150]))
def test_units_of_a_column_do_not_matter_without_a_ridge(seed, unit):
    X, y, s = table(seed, n=25)
    power = 2.0 ** np.round(np.log2(unit))
    ends = []
    for factor in (1.0, power):
        sums, _ = both((X * np.array([1.0, factor, 1.0]), y, s), ridge=0.0)
        ends.append([sums.unit * end for end in sums.enclose_members(range(len(sums.rows)))])
    assert max(low for low, _ in ends) <= min(high for _, high in ends)
