"""Sums over sets of missing features: blocks, anchors, interruptions, limits."""

import pickle
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from admiss.statistics.blocks import RowBlock, Shape
from admiss.statistics.missing_sets import MissingSets
from admiss.streaming import RowStatistics
from formulations.arrays import FloatArray
from formulations.leaves import set_sums
from formulations.leaves.set_sums import Rows, SetSums, rows_at_once


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
    with pytest.raises(ValueError, match="200 features.* tree_depth=None"):
        RowStatistics.of(np.zeros((2, 200)), np.zeros(2), adaptivity=[], tree_depth=3)


@pytest.mark.parametrize(
    "read",
    [
        lambda part: part.moments(np.arange(2)),
        lambda part: part.arrays(),
        lambda part: pickle.dumps(part),
        lambda part: part.merged(MissingSets(Shape(4, 2), 2)),
        lambda part: part.update(rows(5)),
    ],
)
def test_sums_whose_addition_was_interrupted_are_refused(
    read: Callable[[MissingSets], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    add = SetSums.add

    def interrupted(self: SetSums, blocks: Sequence[Rows], origin: FloatArray) -> float:
        add(self, blocks, origin)
        raise KeyboardInterrupt

    part = MissingSets(Shape(4, 2), 2)
    part.update(rows(100))
    monkeypatch.setattr(SetSums, "add", interrupted)
    with pytest.raises(KeyboardInterrupt):
        part.moments(np.arange(2))
    monkeypatch.undo()
    with pytest.raises(ValueError, match="was interrupted: start from a saved copy"):
        read(part)


def test_rows_are_added_in_chunks_of_limited_size(monkeypatch: pytest.MonkeyPatch) -> None:
    add, numbers = SetSums.add, []

    def counted(self: SetSums, blocks: Sequence[Rows], origin: FloatArray) -> float:
        numbers.append(sum(len(y) for _, y, _ in blocks))
        return add(self, blocks, origin)

    monkeypatch.setattr(SetSums, "add", counted)
    monkeypatch.setattr(set_sums, "MOST_BYTES", 64 * 8 * 6)
    assert rows_at_once(4) == 64
    assert rows_at_once(100) < 64 * 7 / 100
    part = MissingSets(Shape(4, 2), 2)
    for begin in range(0, 900, 300):
        part.update(rows(900).block(slice(begin, begin + 300)))
    part.complete()
    assert sum(numbers) == 900
    assert max(numbers) <= 64
    assert len(numbers) <= 2 * -(-900 // 2 // 56)
    data = rows(900)
    sums, _ = SetSums.of(data.X, data.y, data.s, part.origin, 2)
    assert max(numbers) <= 64
    np.testing.assert_allclose(part.moments(np.arange(2)).sums.second, sums.second, rtol=1e-10, atol=1e-10)
