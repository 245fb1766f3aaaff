"""Tables of missingness patterns against plain sorting and search."""

import numpy as np
import pytest

from admiss.patterns import PatternTable, lookup, nearest


@pytest.mark.parametrize("d", [0, 1, 7, 8, 9, 63, 64, 65, 130])
def test_table_equals_unique_rows(d):
    rng = np.random.default_rng(d)
    pool = rng.uniform(size=(15, d)) < 0.5
    M = pool[rng.integers(15, size=200)]
    s = rng.uniform(size=200)
    table = PatternTable.of(M, s)
    expected, codes, counts = np.unique(M, axis=0, return_inverse=True, return_counts=True)
    np.testing.assert_array_equal(table.patterns, expected)
    np.testing.assert_array_equal(table.codes, codes.ravel())
    np.testing.assert_array_equal(table.counts, counts)
    np.testing.assert_allclose(table.weights, [s[codes.ravel() == k].sum() for k in range(len(expected))])
    X = np.where(M, np.nan, 1.0)
    for weights in (s, np.full(200, 2.0)):
        plain, compact = PatternTable.of(M, weights), PatternTable.of_missing(X, weights)
        for name in ("patterns", "counts", "weights"):
            np.testing.assert_allclose(getattr(compact, name), getattr(plain, name))


def test_lookup_and_nearest_equal_brute_force():
    rng = np.random.default_rng(0)
    table = PatternTable.of(rng.uniform(size=(40, 6)) < 0.3)
    M = rng.uniform(size=(100, 6)) < 0.5
    found, near = lookup(table.patterns, M), nearest(table.patterns, table.weights, M)
    assert (found < 0).any()
    for m, exact, index in zip(M, found, near, strict=True):
        distance = (table.patterns != m).sum(axis=1)
        ranking = sorted(range(len(distance)), key=lambda i: (distance[i], -table.weights[i], tuple(table.patterns[i])))
        assert index == ranking[0]
        assert exact == (ranking[0] if distance[ranking[0]] == 0 else -1)


def test_packing_is_much_faster_than_unique_rows():
    """Counted, not timed: one integer per row is sorted."""
    M = np.random.default_rng(0).uniform(size=(1000, 50)) < 0.5
    sorted_shapes = []
    original = np.unique
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(np, "unique", lambda a, **kwargs: sorted_shapes.append(a.shape) or original(a, **kwargs))
        PatternTable.of(M)
    assert sorted_shapes == [(1000,)]
