"""Sums over sets of missing features: blocks, anchors, limits."""

import numpy as np
import pytest

from admiss.statistics.blocks import RowBlock, Shape
from admiss.statistics.missing_sets import MissingSets
from admiss.streaming import RowStatistics


def rows(n: int, seed: int = 0, offset: float = 0.0) -> RowBlock:
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((n, 4)) < 0.4, np.nan, rng.normal(size=(n, 4)) + offset)
    return RowBlock(X, rng.normal(size=n) + offset, np.ones(n), rng.integers(0, 2, n))


def test_blocks_whose_arrays_change_afterwards_and_other_anchors_give_the_same_sums() -> None:
    def part() -> MissingSets:
        return MissingSets(Shape(4, 2), 2)

    whole, blocks, other = part(), part(), part()
    data = rows(300, offset=5.0)
    for begin in (0, 100):
        block = RowBlock(*(getattr(data, name)[begin : begin + 100].copy() for name in ("X", "y", "s", "fold")))
        blocks.update(block)
        block.X[:], block.y[:], block.s[:] = 1e9, 1e9, 1e9
    whole.anchor = blocks.anchor.copy()
    whole.update(data)
    other.update(data.block(slice(200, 300)))
    found, expected = blocks.merged(other), whole
    assert not np.array_equal(blocks.anchor, other.anchor)
    for name, values in expected.arrays().items():
        if name not in ("additions", "moved"):
            np.testing.assert_allclose(found.arrays()[name], values, rtol=1e-10, atol=1e-10)
    assert found.additions > max(blocks.additions, other.additions)
    assert (found.moved >= np.abs(other.anchor - blocks.anchor)).all()


def test_sums_that_take_too_much_memory_are_refused_before_the_pass() -> None:
    with pytest.raises(ValueError, match="use a smaller tree_depth, or tree_depth=None"):
        RowStatistics.of(np.zeros((2, 200)), np.zeros(2), adaptivity=[], tree_depth=3)
