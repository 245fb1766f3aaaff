"""The best number of leaves under a penalty, against all numbers one by one."""

from math import inf

import numpy as np
import pytest

from formulations.trees.near_optimal import penalty_ranges


@pytest.mark.parametrize("seed", range(50))
def test_the_number_of_leaves_is_the_best_one_inside_its_range(seed):
    rng = np.random.default_rng(seed)
    costs = -np.sort(-rng.integers(0, 40, size=rng.integers(1, 9)).astype(float))
    ranges = penalty_ranges(costs.tolist())
    assert ranges[0].high == inf
    assert ranges[-1].low == 0
    assert [part.high for part in ranges[1:]] == [part.low for part in ranges[:-1]]
    for part in ranges:
        assert part.low < part.high
        for gamma in (part.low, (part.low + min(part.high, 100)) / 2, min(part.high, 1e3)):
            total = costs + gamma * np.arange(1, len(costs) + 1)
            assert total[part.leaves - 1] == pytest.approx(total.min(), abs=1e-9)


def test_without_splits_there_is_one_range():
    (part,) = penalty_ranges([3.0])
    assert (part.leaves, part.low, part.high) == (1, 0.0, inf)
