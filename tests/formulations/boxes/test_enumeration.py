"""The enumeration of partitions into boxes agrees with brute force, whatever the prices."""

from itertools import combinations

import numpy as np
import pytest

from formulations.boxes import partition
from formulations.boxes.partition import best_partition


def instance(seed):
    rng = np.random.default_rng(seed)
    n_cells, most = int(rng.integers(2, 7)), int(rng.integers(1, 5))
    sets = {tuple(range(n_cells))} | {(p,) for p in range(n_cells)}
    sets |= {tuple(np.flatnonzero(rng.random(n_cells) < 0.5).tolist()) for _ in range(12)}
    cells = [np.array(held) for held in sorted(sets - {()})]
    cost = rng.integers(1, 20, size=len(cells)).astype(float)
    pi, sigma = rng.normal(size=n_cells) + 2.0, -float(rng.random())
    reduced = cost - sigma - np.array([pi[held].sum() for held in cells])
    return cells, cost, reduced, np.arange(len(cells)), most, n_cells, float(pi.sum()) + most * sigma


@pytest.mark.parametrize("seed", range(60))
def test_equals_brute_force(seed):
    cells, cost, reduced, retained, most, n_cells, L = instance(seed)
    expected = min(
        cost[list(chosen)].sum()
        for size in range(1, most + 1)
        for chosen in combinations(range(len(cells)), size)
        if sorted(np.concatenate([cells[B] for B in chosen]).tolist()) == list(range(n_cells))
    )
    boxes, value = best_partition(cells, cost, reduced, retained, most, expected + 1.0, L, n_cells)
    assert value == pytest.approx(expected)
    assert sorted(np.concatenate([cells[B] for B in boxes]).tolist()) == list(range(n_cells))
    assert best_partition(cells, cost, reduced, retained, most, expected, L, n_cells) == ([], expected)


def test_a_long_search_says_nothing(monkeypatch):
    cells, cost, reduced, retained, most, n_cells, L = instance(0)
    monkeypatch.setattr(partition, "MOST_STEPS", 1)
    assert best_partition(cells, cost, reduced, retained, most, 1e9, L, n_cells) is None
