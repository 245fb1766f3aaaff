"""Exact sums, leaf costs and optima against plain enumeration in rational numbers and 50 digits."""

from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, product

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from admiss.verification.claim import NotCoveredError
from admiss.verification.exact import independent_columns, integers_of, power_of_two
from admiss.verification.partitions import BoxSums, best_groups_cost, best_tree_cost, no_cover_below
from admiss.verification.pattern_sums import PatternSums, leaf_features, pattern_sums, ridges_of

FINITE = st.floats(allow_nan=False, allow_infinity=False, width=64)


@given(st.lists(st.tuples(FINITE, FINITE), min_size=1, max_size=6))
def test_integers_are_the_floats(rows: list[tuple[float, float]]) -> None:
    table = np.array(rows)
    integers = integers_of(table)
    back = [Fraction(n) * power_of_two(-integers.exponents[i % 2]) for i, n in enumerate(integers.numbers)]
    assert back == [Fraction(x) for x in table.ravel().tolist()]


def table(seed: int, n: int = 40, d: int = 3, kind: str = "plain") -> tuple[np.ndarray, np.ndarray, np.ndarray]:
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


@dataclass(frozen=True)
class Coordinates:
    """Origin, divisor in the ridge and power of two of each feature."""

    centre: np.ndarray
    scale: np.ndarray
    unit: np.ndarray

    @classmethod
    def of(cls, X: np.ndarray, center: bool = False, scale: bool = False) -> "Coordinates":
        deviation = np.nanstd(X, axis=0)
        deviation = np.where(deviation > 0, deviation, 1.0)
        near = np.exp2(np.round(np.log2(deviation))) if center or scale else np.ones(len(deviation))
        centre = np.nanmean(X, axis=0) if center else np.zeros(len(deviation))
        return cls(centre, deviation if scale else np.ones(len(deviation)), near)


def sums_of(
    X: np.ndarray,
    y: np.ndarray,
    s: np.ndarray,
    model: str,
    ridge: float,
    ridge_scale: str,
    at: Coordinates | None = None,
) -> PatternSums:
    at = at or Coordinates.of(X)
    A = leaf_features(X, at.centre, at.unit, model)
    return pattern_sums(X, y, s, A, ridges_of(X, at.scale, at.unit, A.shape[1], ridge), ridge_scale)


def precise_cost(
    X: np.ndarray, y: np.ndarray, s: np.ndarray, inside: np.ndarray, model: str, ridge: float, at: Coordinates
) -> mpmath.mpf:
    """The cost of a leaf in 60 digits: columns are orthogonalised one by one, and what is left of none is dropped.

    Features are not divided by their units: the ridge of a weight of x - c is multiplied by the square instead.
    """
    with mpmath.workdps(60):
        M, d = np.isnan(X), X.shape[1]
        indicators = M[:, M.any(axis=0)] if model == "affine_intercept" else M[:, :0]
        A = np.column_stack([np.ones(len(X)), np.where(M, 0.0, X - at.centre), indicators])[inside]
        root = [mpmath.sqrt(mpmath.mpf(w)) for w in s[inside]]
        k = A.shape[1]
        ridges = [
            mpmath.mpf(float(r)) * mpmath.mpf(float(u)) ** 2
            for r, u in zip(ridge * (at.scale / at.unit) ** 2, at.unit, strict=True)
        ]
        ridges = [mpmath.mpf(0), *ridges, *[mpmath.mpf(ridge)] * (k - 1 - d)]
        columns = []
        for j in range(k):
            penalty = [mpmath.sqrt(ridges[j]) if i == j else mpmath.mpf(0) for i in range(k)]
            columns.append([r * mpmath.mpf(a) for r, a in zip(root, A[:, j], strict=True)] + penalty)
        left = [r * mpmath.mpf(t) for r, t in zip(root, y[inside], strict=True)] + [mpmath.mpf(0)] * k
        kept: list[list[mpmath.mpf]] = []
        for column in columns:
            size = mpmath.fdot(column, column)
            for _ in range(2):
                for q in kept:
                    share = mpmath.fdot(q, column)
                    column = [c - share * b for c, b in zip(column, q, strict=True)]
            norm = mpmath.sqrt(mpmath.fdot(column, column))
            if norm > mpmath.mpf(10) ** -40 * mpmath.sqrt(size) and norm > 0:
                kept.append([c / norm for c in column])
        for q in kept:
            share = mpmath.fdot(q, left)
            left = [c - share * b for c, b in zip(left, q, strict=True)]
        return mpmath.fdot(left, left)


@pytest.mark.parametrize("kind", ["plain", "duplicated", "near", "offset", "zero"])
@pytest.mark.parametrize("ridge", [0.0, 1e-14, 1.0])
@pytest.mark.parametrize("model", ["static", "affine_intercept"])
@pytest.mark.parametrize(("center", "scale"), [(False, False), (True, True), (True, False)])
def test_leaf_costs_agree_with_many_digits(kind: str, ridge: float, model: str, center: bool, scale: bool) -> None:
    X, y, s = table(0, kind=kind)
    at = Coordinates.of(X, center, scale)
    sums = sums_of(X, y, s, model, ridge, "leaf", at)
    codes = [next(p for p, m in enumerate(sums.patterns) if np.all(m == row)) for row in np.isnan(X)]
    for members in ([0], [0, 1], range(len(sums.rows))):
        low, high = (sums.unit * end for end in sums.enclose_members(np.array(members)))
        expected = precise_cost(X, y, s, np.isin(codes, members), model, ridge, at)
        assert low <= high
        assert float(high - low) <= 1e-25 * float(high) + 1e-30
        assert float(low) == pytest.approx(float(expected), rel=1e-13, abs=1e-25)


def test_values_of_models_are_exact() -> None:
    X, y, s = table(1)
    for scale, scaled in product(("leaf", "sample"), (False, True)):
        at = Coordinates.of(X, scaled, scaled)
        sums = sums_of(X, y, s, "affine_intercept", 0.75, scale, at)
        A = np.column_stack([np.where(np.isnan(X), 0.0, (X - at.centre) / at.unit), np.isnan(X)])
        ridges = [*(0.75 * (at.scale / at.unit) ** 2).tolist(), 0.75, 0.75, 0.75]
        b, w = 0.3, np.linspace(-1, 1, A.shape[1])
        residual = [
            Fraction(t) - Fraction(b) - sum(Fraction(a) * Fraction(c) for a, c in zip(row, w.tolist(), strict=True))
            for t, row in zip(y.tolist(), A.tolist(), strict=True)
        ]
        weight = sum(map(Fraction, s.tolist())) if scale == "sample" else 1
        expected = sum(Fraction(v) * r**2 for v, r in zip(s.tolist(), residual, strict=True))
        expected += weight * sum(Fraction(r) * Fraction(c) ** 2 for r, c in zip(ridges, w.tolist(), strict=True))
        assert sums.value(np.arange(len(sums.rows)), b, w) == expected


def test_dependent_columns_are_found() -> None:
    rng = np.random.default_rng(0)
    A = integers_of(rng.integers(-5, 5, (20, 3)).astype(float)).matrix()
    from flint import fmpz_mat

    joined = A * fmpz_mat([[1, 0, 0, 1, 2], [0, 1, 0, 1, 0], [0, 0, 1, -3, 0]])
    assert independent_columns(joined.transpose() * joined) == [0, 1, 2]


def every_tree(M: np.ndarray, rows: np.ndarray, features: list[int], depth: int, least: int):
    """The leaves of all trees, as tuples of tuples of patterns."""

    def grow(members: tuple[int, ...], left: int):
        yield (members,)
        for j in features if left else []:
            sides = [tuple(p for p in members if M[p, j] == side) for side in (False, True)]
            if min(sum(rows[p] for p in side) for side in sides) >= max(1, least):
                for a, b in product(*(list(grow(side, left - 1)) for side in sides)):
                    yield a + b

    return grow(tuple(range(len(M))), depth)


def cheapest(sums: PatternSums, partitions, most: int) -> int:
    known: dict[tuple[int, ...], int] = {}

    def cost(leaf: tuple[int, ...]) -> int:
        if leaf not in known:
            known[leaf] = sums.enclose_members(np.array(leaf))[0]
        return known[leaf]

    return min(sum(map(cost, leaves)) for leaves in partitions if len(leaves) <= most)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("depth", "most", "least"), [(2, 4, 1), (3, 3, 4), (3, 6, 5), (1, 2, 1)])
def test_best_trees_are_those_of_enumeration(seed: int, depth: int, most: int, least: int) -> None:
    X, y, s = table(seed, kind=["plain", "duplicated", "near"][seed % 3])
    sums = sums_of(X, y, s, "static", [0.0, 1.0][seed % 2], "leaf", Coordinates.of(X, seed > 2, seed > 2))
    boxes = BoxSums.of(sums, np.arange(3), depth, least)
    found = best_tree_cost(boxes, boxes.costs(), most)
    trees = every_tree(sums.patterns, sums.rows, [0, 1, 2], depth, least)
    assert abs(found - cheapest(sums, trees, most)) <= most  # units of the last place


def every_cover(boxes: BoxSums, costs: dict, cells: frozenset[int]):
    if not cells:
        yield ()
        return
    first = min(cells)
    for box in costs:
        inside = frozenset(boxes.members(box).tolist())
        if first in inside and inside <= cells:
            for rest in every_cover(boxes, costs, cells - inside):
                yield (box, *rest)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("depth", "most", "least"), [(2, 4, 1), (3, 3, 4), (3, 5, 5)])
def test_covers_are_those_of_enumeration(seed: int, depth: int, most: int, least: int) -> None:
    X, y, s = table(seed)
    sums = sums_of(X, y, s, "static", 1.0, "sample", Coordinates.of(X, seed > 2, seed > 2))
    boxes = BoxSums.of(sums, np.arange(3), depth, least)
    costs = boxes.costs()
    covers = every_cover(boxes, costs, frozenset(range(len(boxes.cells))))
    best = min(sum(costs[box] for box in cover) for cover in covers if len(cover) <= most)
    assert no_cover_below(boxes, costs, most, best) == best
    assert no_cover_below(boxes, costs, most, best - 1) == best - 1
    assert no_cover_below(boxes, costs, most, best + 1) < best + 1


def every_partition(members: list[int]):
    if not members:
        yield ()
        return
    first, rest = members[0], members[1:]
    for size in range(len(rest) + 1):
        for others in combinations(rest, size):
            for tail in every_partition([p for p in rest if p not in others]):
                yield ((first, *others), *tail)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("most", "least"), [(1, 1), (2, 8), (3, 1), (8, 3)])
def test_groups_are_those_of_enumeration(seed: int, most: int, least: int) -> None:
    X, y, s = table(seed)
    sums = sums_of(X, y, s, "static", 0.5, "leaf", Coordinates.of(X, seed > 1, seed > 1))
    allowed = (
        groups
        for groups in every_partition(list(range(len(sums.rows))))
        if len(groups) == 1 or all(sums.rows[list(g)].sum() >= least for g in groups)
    )
    found = best_groups_cost(sums, most, least)
    assert abs(found - cheapest(sums, allowed, most)) <= most


def test_too_much_work_is_refused_in_a_sentence() -> None:
    rng = np.random.default_rng(0)
    X = np.where(rng.random((60, 25)) < 0.5, np.nan, rng.standard_normal((60, 25)))
    sums = sums_of(X, rng.standard_normal(60), np.ones(60), "static", 1.0, "leaf")
    with pytest.raises(NotCoveredError, match="groups of at most 14 patterns"):
        best_groups_cost(sums, 3, 1)
    with pytest.raises(NotCoveredError, match=r"boxes would take (about .* hours|too much memory): lower max_depth"):
        BoxSums.of(sums, np.arange(25), 12, 1).costs()


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([1e-150, 1e-6, 1.0, 1e6, 1e150]))
def test_units_of_a_column_do_not_matter_without_a_ridge(seed: int, unit: float) -> None:
    X, y, s = table(seed, n=25)
    power = 2.0 ** np.round(np.log2(unit))
    ends = []
    for factor in (1.0, power):
        sums = sums_of(X * np.array([1.0, factor, 1.0]), y, s, "static", 0.0, "leaf")
        ends.append([sums.unit * end for end in sums.enclose_members(range(len(sums.rows)))])
    assert max(low for low, _ in ends) <= min(high for _, high in ends)
