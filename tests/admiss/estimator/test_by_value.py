"""Adaptivity classes and partitioners are equal by value."""

import numpy as np
import pytest
from sklearn.base import clone

from admiss.adaptivity import Affine, AffineIntercept, BinnedAffine, FullyAdaptive, Polynomial
from admiss.partition import BoxPartition, Greedy, OptimalTree


@pytest.mark.parametrize(
    "item",
    [AffineIntercept(), Polynomial(3), BinnedAffine(4), Greedy(2), OptimalTree(split_features=np.arange(3))],
    ids=lambda item: type(item).__name__,
)
def test_copies_are_equal(item):
    assert item == clone(item)
    assert hash(item) == hash(clone(item))
    assert item in [1, clone(item)]


def test_others_are_not():
    different = [AffineIntercept(), Affine(), Polynomial(2), Polynomial(3), Greedy(2), Greedy(3), BoxPartition(2), "x"]
    for i, first in enumerate(different):
        for second in different[:i]:
            assert first != second


def test_what_was_learned_counts():
    M = np.array([[True, False], [False, False]])
    X = np.where(M, np.nan, 1.0)
    first, second = FullyAdaptive().fit(X, M), FullyAdaptive().fit(X, M)
    assert first == second != FullyAdaptive()
    assert first != FullyAdaptive().fit(X[1:], M[1:])
