"""The law of deletions and copies drawn from it."""

import numpy as np
import pytest

from admiss.augmentation.deletions import Deletions, with_copies


@pytest.mark.parametrize(("rate", "expected"), [((0.0, 0.7), (0.0, 0.7)), ([0.2, 1], (0.2, 1.0)), (0.4, (0.4, 0.4))])
def test_rates(rate, expected):
    law = Deletions.of(rate, 0.5)
    assert (law.low, law.high) == expected


@pytest.mark.parametrize(
    "rate", [(0.0, 0.0), 0.0, (0.5, 0.2), (-0.1, 0.5), (0.1, 1.1), "0.5", (0.1,), None, (0, np.nan)]
)
def test_bad_rates(rate):
    with pytest.raises(ValueError, match="rate must be a pair of rates"):
        Deletions.of(rate, 0.5)


@pytest.mark.parametrize("law", [Deletions(0.0, 0.7, 0.5), Deletions(0.1, 0.4, 0.0), Deletions(0.3, 0.3, 0.2)], ids=str)
def test_copies_have_the_rates_of_the_law(law):
    n, copies = 4000, 3
    rng = np.random.default_rng(0)
    X, s = rng.normal(size=(n, 4)), rng.uniform(1, 2, n)
    X[:, 3] = np.nan
    rows, found, weights = with_copies(X, rng.normal(size=n), s, law, copies, np.random.RandomState(0))
    np.testing.assert_allclose(np.bincount(rows, weights), s)
    observed = ~np.isnan(found)
    for size in (1, 2, 3):
        share = np.average(observed[:, :size].all(axis=1), weights=weights)
        assert share == pytest.approx(law.kept(np.array([size]))[0], abs=5 * 0.5 / np.sqrt(n * copies) * 1.5)
    # what is left are the values as they were
    same = np.where(observed, found == X[rows], True)
    assert same.all()
    first = found[:n]
    assert (law.keep == 0) != np.array_equal(first, X, equal_nan=True)


def test_equal_rows_have_equal_deletions_in_any_order():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 5))
    y = rng.normal(size=50)
    law, order = Deletions(0.2, 0.6, 0.5), np.concatenate([rng.permutation(50), [3, 3, 7]])
    _, found, _ = with_copies(X, y, np.ones(50), law, 2, np.random.RandomState(5))
    _, again, _ = with_copies(X[order], y[order], np.ones(53), law, 2, np.random.RandomState(5))
    for copy in range(3):
        np.testing.assert_array_equal(again[53 * copy : 53 * (copy + 1)], found[50 * copy : 50 * (copy + 1)][order])


def test_rates_that_differ_by_rounding_are_one_rate():
    expected = 0.7 ** np.arange(5)
    for high in (0.3, 0.1 + 0.2, 0.3 + 1e-14):
        assert Deletions.of((0.3, high), 0.0).kept(np.arange(5)) == pytest.approx(expected, rel=1e-12)
