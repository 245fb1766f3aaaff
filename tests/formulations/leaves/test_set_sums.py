"""Sums over sets of missing features against sums of fractions, and what follows from them against the rows."""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from formulations.leaves import set_sums
from formulations.leaves import subsets as subsets_module
from formulations.leaves.box_costs import members_of
from formulations.leaves.set_moments import SetMoments, atoms, subsets
from formulations.leaves.set_sums import SetSums


def table(n: int, d: int, seed: int, share: float = 0.4) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((n, d)) < share, np.nan, rng.normal(size=(n, d)) + 3.0)
    return X, rng.normal(size=n), rng.uniform(0.5, 2.0, n)


def moments_of(X: np.ndarray, y: np.ndarray, s: np.ndarray, depth: int) -> SetMoments:
    origin = np.zeros(X.shape[1] + 1)
    sums, additions = SetSums.of(X, y, s, origin, depth)
    return SetMoments(sums, origin, additions)


def expanded(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    M = np.isnan(X)
    return np.column_stack([np.ones(len(y)), np.where(M, 0.0, X), M, y])


@pytest.mark.parametrize(
    ("n", "d", "depth"), [(3, 3, 1), (60, 4, 2), (3000, 6, 2), (1500, 5, 4), (200, 2, 4), (90, 5, 0)]
)
def test_moments_are_those_of_the_rows_of_every_set(n: int, d: int, depth: int) -> None:
    X, y, s = table(n, d, n)
    moments, E, M = moments_of(X, y, s, depth), expanded(X, y), np.isnan(X)
    for k in range(min(d, depth) + 1):
        sets = subsets(d, k)
        ranks = np.arange(len(sets))
        for U, found, rows in zip(sets, moments.of_sets(ranks, k), moments.counts(ranks, k), strict=True):
            inside = M[:, U].all(axis=1)
            assert rows == inside.sum()
            np.testing.assert_allclose(found, (E[inside] * s[inside, None]).T @ E[inside], atol=1e-12 * n)


@pytest.mark.parametrize("depth", [0, 1, 2, 3])
@pytest.mark.parametrize("block", [1, 2, 3, 4])
def test_sums_do_not_depend_on_the_division_into_blocks(
    block: int, depth: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y, s = table(700, 7, 5, 0.5)
    whole = moments_of(X, y, s, depth).sums
    monkeypatch.setattr(subsets_module, "BLOCK_FEATURES", block)
    divided = moments_of(X, y, s, depth).sums
    for name in ("second", "first", "weights"):
        np.testing.assert_allclose(getattr(divided, name), getattr(whole, name), rtol=1e-12, atol=1e-10)


def test_rows_that_always_miss_many_features_are_added_in_runs_and_chunks() -> None:
    X, y, s = table(40_000, 6, 0)
    X[::2, :5] = np.nan
    moments, E = moments_of(X, y, s, 2), expanded(X, y)
    found = moments.of_sets(np.array([0]), 2)[0]
    inside = np.isnan(X[:, :2]).all(axis=1)
    np.testing.assert_allclose(found, (E[inside] * s[inside, None]).T @ E[inside], rtol=1e-12, atol=1e-9)


@pytest.mark.parametrize("at_once", [400, 30])
def test_error_bound_holds_against_fractions(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(set_sums, "MOST_BYTES", 8 * 6 * at_once)
    rng = np.random.default_rng(1)
    X, y, s = table(400, 4, 1)
    X *= 10.0 ** rng.integers(-8, 8, X.shape)
    moments, M = moments_of(X, y, s, 2), np.isnan(X)
    for U in combinations(range(4), 2):
        inside = np.flatnonzero(M[:, U].all(axis=1))
        i, j = (k for k in range(4) if k not in U)
        weighted = [
            (Fraction(s[r]), Fraction(np.nan_to_num(X[r, i])), Fraction(np.nan_to_num(X[r, j]))) for r in inside
        ]
        exact = sum((a * b * c for a, b, c in weighted), Fraction(0))
        sizes = [float(sum((a * z * z for a, z in pairs), Fraction(0))) for pairs in
                 ([(a, b) for a, b, _ in weighted], [(a, c) for a, _, c in weighted])]  # fmt: skip
        found = moments.box([(u, True) for u in U], np.eye(10))[0][1 + i, 1 + j]
        assert abs(Fraction(found) - exact) <= moments.error * np.sqrt(sizes[0] * sizes[1])


def test_boxes_and_atoms_count_and_sum_the_same_rows() -> None:
    X, y, s = table(800, 6, 2)
    moments, E, M = moments_of(X, y, s, 3), expanded(X, y), np.isnan(X)
    rng = np.random.default_rng(0)
    T, features = rng.normal(size=(4, 14)), np.array([0, 2, 3, 5])
    patterns, numbers = atoms(moments, features)
    for _ in range(30):
        chosen = rng.permutation(len(features))[: rng.integers(0, 4)]
        inner = [(int(j), bool(rng.random() < 0.5)) for j in chosen]
        box = [(int(features[j]), missing) for j, missing in inner]
        inside = members_of(M, box)
        V = E[inside] @ T.T
        G, N = moments.box(box, T)
        exact = (V * s[inside, None]).T @ V
        assert moments.rows(box) == len(inside) == numbers[members_of(patterns, inner)].sum()
        assert (np.abs(G - exact) <= 1e-11 * np.sqrt(np.outer(N, N)) + 1e-12).all()


def test_other_origins_and_merged_parts_give_the_same_sums() -> None:
    X, y, s = table(500, 5, 3)
    shift = np.random.default_rng(0).normal(size=6)
    moved = moments_of(X, y, s, 2).rebased(shift)
    direct = moments_of(X + shift[:-1], y + shift[-1], s, 2)
    parts = moments_of(X[:99], y[:99], s[:99], 2).sums.plus(moments_of(X[99:], y[99:], s[99:], 2).sums)
    for name in ("second", "first", "weights"):
        np.testing.assert_allclose(getattr(moved.sums, name), getattr(direct.sums, name), rtol=1e-9, atol=1e-9)
        whole = getattr(moments_of(X, y, s, 2).sums, name)
        np.testing.assert_allclose(getattr(parts, name), whole, rtol=1e-12, atol=1e-11)
    np.testing.assert_array_equal(moved.moved, np.abs(shift))
