"""After compilation, no search compiles anything."""

import pytest

from formulations.groups import exchange, joining
from formulations.groups.compilation import compile_loops
from formulations.groups.pricing import branch_and_bound, quadratics
from formulations.groups.problem import solve_pattern_groups
from tests.formulations.groups.test_problem import draw


@pytest.mark.parametrize("ridge_scale", ["sample", "leaf"])
def test_no_loop_is_compiled_during_a_search(ridge_scale, monkeypatch):
    compile_loops()
    loops = [
        quadratics.least_value,
        exchange.improve_partition,
        exchange.improve_group,
        joining.join_groups,
        branch_and_bound._search,
    ]
    before = [loop.signatures for loop in loops]
    assert all(before)
    joined = []
    monkeypatch.setattr(
        "formulations.groups.search.join_groups", lambda *a: joined.append(a) or joining.join_groups(*a)
    )
    for seed in range(12):
        problem, _ = draw(seed, 10, features=4, rows=80, ridge=0.01, ridge_scale=ridge_scale, max_groups=3, min_rows=10)
        solve_pattern_groups(problem, start=[0, 1] * 5 if seed % 2 else None, time_limit=600)
    assert joined
    assert [loop.signatures for loop in loops] == before
