"""Compilation of the loops of the search, before its clock starts.

Compiling takes seconds, in the first search after an installation; later processes load the result from numba's cache.
Each compiled function is called once here, with arguments of the types that the search has, since a small search need
not reach all of them.
"""

from functools import cache

import numpy as np

from formulations.groups.exchange import improve_group, improve_partition
from formulations.groups.joining import join_groups
from formulations.groups.pricing.branch_and_bound import price_groups
from formulations.groups.pricing.choice import GroupChoice


@cache
def compile_loops() -> None:
    """Compile what the search needs, once per process."""
    quadratics, base = np.stack([np.eye(2), 2.0 * np.eye(2)]), np.zeros((2, 2))
    rows, prices, labels = np.ones(2, dtype=np.int64), np.ones(2), np.zeros(2, dtype=np.int64)
    c = GroupChoice(quadratics, base, rows, 1, np.zeros((2, 2), dtype=bool))
    c.cost(np.ones(2, dtype=bool))
    improve_partition(quadratics, base, rows, 1, labels, 2, 1)
    improve_group(quadratics, base, prices, rows, 1, c.forbidden, np.ones(2, dtype=bool))
    priced = price_groups(c, prices, 2.0, lambda: False, 4)
    join_groups(quadratics, base, prices, rows, 1, priced.groups, priced.values, -1.0, 2, 0.0, np.array([1]))
